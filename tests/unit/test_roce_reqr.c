/* SPDX-License-Identifier: Apache-2.0 */
/* RC requester: queue, window, AckReq, ACKs, NAKs. RNR NAKs and timeouts: test_roce_reqr_wait.c; READ
 * and ATOMIC: test_roce_reqr_read.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "roce/reqr.h"
#include "tests/lib/rc_reqr.h"

#define START  0xfffff0u
#define SEQ    0x60
#define P(n)   roce_psn_add(START, n)
#define str(s) ((s) ? (s) : "")

static void test_push(void **state)
{
	struct rwy_buf *b;
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 2);
	q.next = START;
	assert_int_equal(rq_push_len(&q, ROCE_RC_SEND_ONLY, 1, 4), ROCE_REQR_OLD);
	q.next = P(3);
	assert_int_equal(rq_push_len(&q, ROCE_RC_SEND_ONLY, 1, 4), ROCE_REQR_HOLE);
	assert_int_equal(q.r.q.n, 2);
	assert_int_equal(q.r.tail, P(2));
	b = q.r.q.head;
	assert_ptr_equal(q.r.next, b);
	rq_fini(&q);
}

static void test_send_and_ack(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 20);
	assert_int_equal(rq_send(&q), 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(q.tx[i].b->psn, P(i));
		assert_false(q.tx[i].again);
		assert_int_equal(q.tx[i].skip, 0);
		assert_int_equal(
		    q.tx[i].ack_req, i % 8 == 7 || i == 19); /* window 32: each 8th, and the last */
	}
	assert_int_equal(rq_send(&q), 0);
	rq_ack(&q, P(7)); /* coalesced */
	assert_int_equal(q.done, 8);
	assert_true(q.act.progress);
	assert_null(q.act.drop);
	rq_ack(&q, P(3));
	assert_string_equal(str(q.act.drop), "old_ack");
	assert_false(q.act.progress);
	rq_ack(&q, P(20));
	assert_string_equal(str(q.act.drop), "ghost_ack");
	rq_nak(&q, P(20), SEQ);
	assert_string_equal(str(q.act.drop), "ghost_ack");
	assert_int_equal(q.done, 8);
	rq_ack(&q, P(19));
	assert_int_equal(q.done, 20);
	assert_int_equal(roce_reqr_next(&q.r), RWY_NEVER);
	assert_int_equal(q.r.una, P(20));
	rq_fini(&q);
}

static void test_window(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 2000);
	assert_int_equal(rq_send(&q), 32);
	assert_true(q.tx[31].ack_req);
	rq_ack(&q, P(0));
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].ack_req); /* fills the window */
	for (unsigned i = 1; i < 2000; i++) {
		rq_ack(&q, P(i));
		rq_send(&q);
	}
	assert_int_equal(q.done, 2000);
	assert_int_equal(q.r.window, 71); /* 32 + 33 + ... + 70 packets acknowledged */
	rq_fini(&q);

	rq_init(&q, START, 1024);
	q.r.cfg.window_max = 33;
	rq_push_sends(&q, 500);
	for (unsigned i = 0; i < 500; i++) {
		rq_send(&q);
		rq_ack(&q, P(i));
		assert_true(q.r.window <= 33);
	}
	rq_fini(&q);
}

/* A message whose rest is late: its last packet does not ask at once, and then goes again to ask. */
static void test_rest_of_a_message(void **state)
{
	struct roce_reqr_act act;
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_SEND_FIRST, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].ack_req); /* nobody knows whether others come quickly */
	rq_ack(&q, P(0));
	q.now += RWY_MS / 4;
	rq_push(&q, ROCE_RC_SEND_MIDDLE, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_false(q.tx[0].ack_req);
	assert_int_equal(roce_reqr_next(&q.r), q.now + 2 * RWY_MS);
	q.now += 2 * RWY_MS;
	roce_reqr_tick(&q.r, &act, q.now);
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].ack_req);
	assert_false(q.tx[0].again);
	assert_int_equal(q.tx[0].b->psn, P(1));
	assert_true(q.tx[0].asks);
	assert_int_equal(q.r.resent, 0);
	assert_int_equal(q.r.timeouts, 0);
	q.now += RWY_MS;
	rq_ack(&q, P(1));
	assert_int_equal(q.done, 2);
	assert_true(q.r.srtt < RWY_MS); /* Karn */
	assert_int_equal(roce_reqr_next(&q.r), RWY_NEVER);

	/* Requests that come slowly ask at once. */
	rq_push(&q, ROCE_RC_SEND_MIDDLE, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].ack_req);
	rq_ack(&q, P(2));

	/* The answer comes before the question goes: what comes next is no repeat. */
	q.now += RWY_MS / 4;
	rq_push(&q, ROCE_RC_SEND_MIDDLE, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_false(q.tx[0].ack_req);
	q.now += 2 * RWY_MS;
	roce_reqr_tick(&q.r, &act, q.now);
	rq_ack(&q, P(3)); /* the remote host had set AckReq itself */
	rq_push(&q, ROCE_RC_SEND_LAST, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_int_equal(q.tx[0].b->psn, P(4));
	assert_true(q.tx[0].ack_req);
	assert_false(q.tx[0].asks);

	/* Without an answer the timer goes on as ever. */
	q.now = roce_reqr_next(&q.r);
	roce_reqr_tick(&q.r, &act, q.now);
	assert_int_equal(q.r.timeouts, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].again);
	rq_fini(&q);
}

static void test_ackreq_at_most_16_apart(void **state)
{
	unsigned since = 0;
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.cfg.window_max = q.r.window = 1024;
	rq_push_sends(&q, 1000);
	assert_int_equal(rq_send(&q), 1000);
	for (unsigned i = 0; i < 1000; i++) {
		since = q.tx[i].ack_req ? 0 : since + 1;
		assert_true(since < 16);
	}
	assert_true(q.tx[999].ack_req);
	rq_fini(&q);
}

/* The remote host's own AckReq is needed only where no later packet of the burst asks. */
static void test_one_ack_for_a_burst(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 20);
	assert_int_equal(rq_send(&q), 20); /* window 32 */
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(q.tx[i].ack_less, !q.tx[i].ack_req);
	rq_push_sends(&q, 12); /* up to the window's end */
	assert_int_equal(rq_send(&q), 12);
	assert_true(q.tx[11].ack_req && !q.tx[11].ack_less);
	rq_fini(&q);
}

/* What the burst ends with, because the caller takes no more, keeps its AckReq, as does a READ. */
static void test_last_packets_keep_ackreq(void **state)
{
	struct roce_reqr_tx tx[6];
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 20);
	assert_int_equal(roce_reqr_send(&q.r, tx, 6, q.now), 6);
	for (unsigned i = 0; i < 6; i++)
		assert_false(tx[i].ack_req || tx[i].ack_less);
	assert_int_equal(roce_reqr_send(&q.r, tx, 6, q.now), 6); /* the eighth of all asks */
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(tx[i].ack_less, i < 1);
	rq_fini(&q);
	rq_init(&q, START, 1024);
	rq_push_sends(&q, 1);
	rq_push(&q, ROCE_RC_READ_REQ, 1);
	rq_push_sends(&q, 1);
	assert_int_equal(rq_send(&q), 3);
	assert_true(q.tx[0].ack_less && !q.tx[1].ack_less && q.tx[2].ack_req);
	rq_fini(&q);
}

static void test_probe(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.probe = true;
	rq_push_sends(&q, 10);
	assert_int_equal(rq_send(&q), 1);
	assert_true(q.tx[0].ack_req);
	assert_int_equal(rq_send(&q), 0);
	rq_ack(&q, P(0));
	roce_reqr_go(&q.r);
	assert_int_equal(rq_send(&q), 9);
	rq_fini(&q);
}

static void test_seq_nak(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 30);
	rq_send(&q);
	rq_nak(&q, P(10), SEQ);
	assert_int_equal(q.done, 10); /* the packets before were received */
	assert_int_equal(q.r.seq_naks, 1);
	assert_int_equal(q.r.window, 16);
	assert_int_equal(rq_send(&q), 16); /* go-back-N, one window */
	assert_int_equal(q.tx[0].b->psn, P(10));
	assert_true(q.tx[0].again);
	assert_true(q.tx[15].ack_req);
	rq_nak(&q, P(10), SEQ);
	assert_string_equal(str(q.act.drop), "repeated_nak");
	assert_int_equal(rq_send(&q), 0);
	/* The first transmission, late: it releases packets that are not yet sent again. */
	rq_ack(&q, P(29));
	assert_int_equal(q.done, 30);
	assert_int_equal(rq_send(&q), 0);
	rq_push_sends(&q, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_false(q.tx[0].again);
	assert_int_equal(q.r.nxt, P(31));
	rq_fini(&q);
}

static void test_window_cut_once_a_window(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 60);
	rq_send(&q);
	rq_nak(&q, P(5), SEQ);
	assert_int_equal(q.r.window, 16);
	rq_send(&q);
	rq_nak(&q, P(10), SEQ);
	assert_int_equal(q.r.window, 16);
	rq_send(&q);
	rq_ack(&q, P(25));
	rq_send(&q);
	rq_ack(&q, P(31));
	rq_nak(&q, P(33), SEQ); /* beyond the reduced window */
	assert_true(q.r.window <= 9);
	rq_fini(&q);
}

static void test_last_of_retransmission_asks(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.window = 128;
	rq_push_sends(&q, 5);
	rq_send(&q);
	rq_push_sends(&q, 20);
	rq_nak(&q, P(0), SEQ);
	assert_int_equal(rq_send(&q), 25);
	assert_true(q.tx[4].again && q.tx[4].ack_req);
	assert_false(q.tx[5].again);
	rq_fini(&q);
}

static void test_fatal(void **state)
{
	static const uint8_t syndrome[] = {0x61, 0x62, 0x63};

	for (unsigned i = 0; i < 3; i++) {
		struct rq q;

		rq_init(&q, START, 1024);
		rq_push_sends(&q, 20);
		rq_send(&q);
		rq_nak(&q, P(17), syndrome[i]);
		assert_int_equal(q.done, 17);
		assert_true(q.act.failed && q.act.progress);
		assert_int_equal(q.act.fail_psn, P(17));
		assert_int_equal(q.act.fail_syndrome, syndrome[i]);
		assert_int_equal(q.act.end, ROCE_REQR_REFUSED);
		rq_fini(&q);
	}
}

static void test_reserved_syndromes(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 2);
	rq_send(&q);
	rq_nak(&q, START, 0x64); /* invalid RD request */
	assert_string_equal(str(q.act.drop), "bad_syndrome");
	rq_nak(&q, START, 0x7f);
	assert_string_equal(str(q.act.drop), "bad_syndrome");
	rq_nak(&q, START, 0x40);
	assert_string_equal(str(q.act.drop), "bad_syndrome");
	assert_int_equal(q.r.q.n, 2);
	assert_false(q.r.failed);
	rq_resp(&q, ROCE_RC_SEND_ONLY, START, 0, 4);
	assert_string_equal(str(q.act.drop), "unexpected_response");
	rq_fini(&q);
}

static void test_resumed(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.resumed = true;
	rq_push_sends(&q, 10);
	q.tx[0].b = NULL;
	roce_reqr_send(&q.r, q.tx, 4, q.now);
	rq_ack(&q, P(30)); /* the host saw those before our restart */
	assert_int_equal(q.done, 4);
	assert_null(q.act.drop);
	rq_ack(&q, P(30)); /* nothing sent: no effect */
	assert_string_equal(str(q.act.drop), "ghost_ack");
	roce_reqr_send(&q.r, q.tx, 2, q.now);
	rq_nak(&q, P(30), SEQ);
	assert_int_equal(q.done, 6);
	rq_send(&q);
	rq_ack(&q, P(9)); /* caught up: others are ghosts again */
	assert_int_equal(q.done, 10);
	rq_push_sends(&q, 1);
	rq_send(&q);
	rq_ack(&q, P(30));
	assert_string_equal(str(q.act.drop), "ghost_ack");
	rq_fini(&q);
}

/* A Soft-RoCE host that has executed a READ at most acknowledges a duplicate, late, with PSN -1. */
static void test_resumed_nothing(void **state)
{
	struct rq q;

	rq_init(&q, 0x80db70, 1024);
	q.r.resumed = true;
	rq_push_sends(&q, 10);
	rq_send(&q);
	rq_ack(&q, ROCE_PSN_MASK);
	assert_int_equal(q.done, 0);
	assert_string_equal(str(q.act.drop), "ghost_ack");
	rq_ack(&q, 0x80db70);
	assert_int_equal(q.done, 1);
	rq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_push),
	    cmocka_unit_test(test_send_and_ack),
	    cmocka_unit_test(test_window),
	    cmocka_unit_test(test_rest_of_a_message),
	    cmocka_unit_test(test_ackreq_at_most_16_apart),
	    cmocka_unit_test(test_one_ack_for_a_burst),
	    cmocka_unit_test(test_last_packets_keep_ackreq),
	    cmocka_unit_test(test_probe),
	    cmocka_unit_test(test_seq_nak),
	    cmocka_unit_test(test_window_cut_once_a_window),
	    cmocka_unit_test(test_last_of_retransmission_asks),
	    cmocka_unit_test(test_fatal),
	    cmocka_unit_test(test_reserved_syndromes),
	    cmocka_unit_test(test_resumed),
	    cmocka_unit_test(test_resumed_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
