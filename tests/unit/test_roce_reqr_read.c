/* SPDX-License-Identifier: Apache-2.0 */
/* RC requester: READ and ATOMIC, lost responses, implied NAKs, path MTU. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "roce/reqr.h"
#include "tests/lib/rc_reqr.h"

#define START  0xfffff0u
#define P(n)   roce_psn_add(START, n)
#define str(s) ((s) ? (s) : "")
#define FIRST  ROCE_RC_READ_RESP_FIRST
#define MIDDLE ROCE_RC_READ_RESP_MIDDLE
#define LAST   ROCE_RC_READ_RESP_LAST
#define ONLY   ROCE_RC_READ_RESP_ONLY

static void test_read(void **state)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct rq q;

		rq_init(&q, START, mtu);
		rq_push(&q, ROCE_RC_SEND_ONLY, 1);
		rq_push_len(&q, ROCE_RC_READ_REQ, 20, 19 * mtu + 1);
		rq_push(&q, ROCE_RC_SEND_ONLY, 1);
		assert_int_equal(rq_send(&q), 3);
		assert_false(q.tx[1].ack_req);
		assert_int_equal(q.r.high, P(22));
		rq_resp(&q, FIRST, P(1), 31, mtu); /* acknowledges the SEND */
		assert_true(q.act.forward);
		assert_int_equal(q.done, 1);
		for (unsigned i = 1; i < 19; i++) {
			rq_resp(&q, MIDDLE, P(1 + i), 0, mtu);
			assert_true(q.act.forward && q.act.progress);
			assert_int_equal(q.r.una, P(2 + i));
		}
		assert_int_equal(q.done, 1);
		rq_resp(&q, LAST, P(20), 31, 1);
		assert_true(q.act.forward);
		assert_int_equal(q.done, 2);
		rq_resp(&q, LAST, P(20), 31, 1);
		assert_string_equal(str(q.act.drop), "old_response");
		assert_false(q.act.forward);
		rq_ack(&q, P(21));
		assert_int_equal(q.done, 3);
		rq_fini(&q);
	}
}

static void test_lost_response_partial_read(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_READ_REQ, 10);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	rq_resp(&q, FIRST, P(0), 31, 1024);
	rq_resp(&q, MIDDLE, P(1), 31, 1024);
	rq_resp(&q, MIDDLE, P(3), 31, 1024); /* 2 was lost */
	assert_string_equal(str(q.act.drop), "response_gap");
	assert_false(q.act.forward);
	assert_int_equal(rq_send(&q), 2);
	assert_int_equal(q.tx[0].skip, 2);
	assert_true(q.tx[0].again);
	rq_resp(&q, MIDDLE, P(4), 31, 1024); /* the same gap: no repeated request */
	assert_int_equal(rq_send(&q), 0);
	assert_int_equal(q.r.implied_naks, 1);
	rq_resp(&q, FIRST, P(2), 31, 1024); /* the host starts again */
	assert_true(q.act.forward);
	for (unsigned i = 3; i < 9; i++)
		rq_resp(&q, MIDDLE, P(i), 31, 1024);
	rq_resp(&q, LAST, P(9), 31, 1024);
	assert_int_equal(q.done, 1);
	/* Only the last response is missing: ONLY. */
	rq_push(&q, ROCE_RC_READ_REQ, 2);
	rq_send(&q);
	rq_ack(&q, P(10));
	rq_resp(&q, FIRST, P(11), 31, 1024);
	q.now += RWY_SEC;
	rq_tick(&q);
	assert_int_equal(rq_send(&q), 1);
	assert_int_equal(q.tx[0].skip, 1);
	rq_resp(&q, ONLY, P(12), 31, 1024);
	assert_true(q.act.forward);
	assert_int_equal(q.done, 3);
	rq_fini(&q);
}

/* The near gateway is a new process: the READ's responses so far are lost, and are sent again. */
static void test_reread(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	roce_reqr_reread(&q.r, START);
	rq_push(&q, ROCE_RC_READ_REQ, 4);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	roce_reqr_reread(&q.r, START); /* no response yet */
	assert_int_equal(rq_send(&q), 0);
	rq_resp(&q, FIRST, P(0), 31, 1024);
	rq_resp(&q, MIDDLE, P(1), 0, 1024);
	roce_reqr_reread(&q.r, START);
	assert_int_equal(rq_send(&q), 2);
	assert_int_equal(q.tx[0].skip, 0);
	rq_resp(&q, MIDDLE, P(2), 0, 1024); /* of the first execution */
	assert_false(q.act.forward);
	rq_send(&q);
	rq_resp(&q, FIRST, P(0), 31, 1024);
	rq_resp(&q, MIDDLE, P(1), 0, 1024);
	rq_resp(&q, MIDDLE, P(2), 0, 1024);
	roce_reqr_reread(&q.r, P(1)); /* the first one had arrived */
	assert_int_equal(rq_send(&q), 2);
	assert_int_equal(q.tx[0].skip, 1);
	roce_reqr_reread(&q.r, roce_psn_add(START, -1)); /* not of this request */
	roce_reqr_reread(&q.r, P(2));                    /* no PSN to go back to */
	assert_int_equal(rq_send(&q), 0);
	roce_reqr_reread(&q.r, START);
	assert_int_equal(rq_send(&q), 2);
	for (unsigned i = 0; i < 4; i++) {
		rq_resp(&q, i == 0 ? FIRST : i == 3 ? LAST : MIDDLE, P(i), 31, 1024);
		assert_true(q.act.forward);
	}
	rq_ack(&q, P(4));
	assert_int_equal(q.done, 2);
	rq_fini(&q);
}

static void test_implied_nak_by_ack(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_push(&q, ROCE_RC_READ_REQ, 4);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	rq_ack(&q, P(5));
	assert_int_equal(q.done, 1); /* not the READ, so no request after it */
	assert_int_equal(q.r.implied_naks, 1);
	assert_int_equal(rq_send(&q), 3);
	assert_int_equal(q.tx[0].b->psn, P(1));
	rq_ack(&q, P(6));
	assert_int_equal(rq_send(&q), 0); /* once */
	rq_resp(&q, FIRST, P(1), 31, 1024);
	rq_ack(&q, P(4)); /* even an ACK of the READ's own PSN is no response */
	assert_int_equal(q.done, 1);
	assert_int_equal(rq_send(&q), 3);
	assert_int_equal(q.tx[0].skip, 1);
	rq_fini(&q);
}

static void test_implied_nak_by_response(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_FETCH_ADD, 1);
	rq_push(&q, ROCE_RC_READ_REQ, 1);
	rq_push(&q, ROCE_RC_CMP_SWAP, 1);
	rq_send(&q);
	rq_resp(&q, ONLY, P(1), 31, 1024);
	assert_string_equal(str(q.act.drop), "response_gap");
	assert_false(q.act.forward);
	assert_int_equal(rq_send(&q), 3);
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(0), 31, 0);
	assert_true(q.act.forward);
	assert_int_equal(q.done, 1);
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(2), 31, 0);
	assert_string_equal(str(q.act.drop), "response_gap");
	rq_resp(&q, ONLY, P(1), 31, 1024);
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(2), 31, 0);
	assert_int_equal(q.done, 3);
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(2), 31, 0);
	assert_string_equal(str(q.act.drop), "old_response");
	rq_fini(&q);
}

static void test_atomic_retry_same_psn(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_FETCH_ADD, 1);
	rq_send(&q);
	q.now += RWY_SEC;
	rq_tick(&q);
	assert_int_equal(rq_send(&q), 1);
	assert_int_equal(q.tx[0].b->psn, START);
	assert_true(q.tx[0].again);
	rq_ack(&q, START); /* no response */
	assert_int_equal(q.done, 0);
	rq_fini(&q);
}

static void test_bad_responses(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_len(&q, ROCE_RC_READ_REQ, 3, 2500);
	rq_push(&q, ROCE_RC_FETCH_ADD, 1);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	rq_resp(&q, FIRST, P(0), 31, 512);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, LAST, P(0), 31, 1024);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, FIRST, P(0), 0x62, 1024);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(0), 31, 0);
	assert_string_equal(str(q.act.drop), "unexpected_response");
	rq_resp(&q, FIRST, P(0), 31, 1024);
	rq_resp(&q, MIDDLE, P(1), 31, 1024);
	rq_resp(&q, MIDDLE, P(2), 31, 1024);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, LAST, P(2), 31, 453);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, LAST, P(2), 31, 452);
	assert_true(q.act.forward);
	rq_resp(&q, ONLY, P(3), 31, 8);
	assert_string_equal(str(q.act.drop), "unexpected_response");
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(3), 0x63, 0);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, ROCE_RC_ATOMIC_ACK, P(3), 31, 0);
	assert_true(q.act.forward);
	rq_resp(&q, ONLY, P(4), 31, 8);
	assert_string_equal(str(q.act.drop), "unexpected_response");
	rq_resp(&q, ONLY, P(9), 31, 8);
	assert_string_equal(str(q.act.drop), "ghost_response");
	assert_int_equal(q.done, 2);
	rq_fini(&q);
}

static void test_fatal_with_read_unanswered(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_READ_REQ, 4);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	rq_resp(&q, FIRST, P(0), 31, 1024);
	rq_nak(&q, P(4), 0x62);
	assert_true(q.act.failed);
	assert_int_equal(q.act.fail_psn, P(1)); /* no request after the READ can complete */
	rq_fini(&q);
	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_push(&q, ROCE_RC_READ_REQ, 4);
	rq_send(&q);
	rq_nak(&q, P(1), 0x62);
	assert_int_equal(q.done, 1);
	assert_int_equal(q.act.fail_psn, P(1));
	rq_fini(&q);
}

static void test_rnr_and_seq_with_read(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push(&q, ROCE_RC_READ_REQ, 4);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	rq_send(&q);
	rq_nak(&q, P(4), 0x20 | 1); /* passes the READ: its responses were lost */
	assert_int_equal(q.r.rnr_naks, 0);
	assert_int_equal(q.r.implied_naks, 1);
	assert_int_equal(rq_send(&q), 2);
	rq_fini(&q);
}

/* A READ of 1 GiB is one packet in the window and a million PSNs. */
static void test_big_reads_do_not_block(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.window = 4;
	for (unsigned i = 0; i < 5; i++)
		rq_push_len(&q, ROCE_RC_READ_REQ, 1u << 20, 1u << 30);
	assert_int_equal(rq_send(&q), 4);
	for (uint32_t k = 0; k < 1u << 20; k++) {
		rq_resp(&q, k == 0 ? FIRST : k == (1u << 20) - 1 ? LAST : MIDDLE, P(k), 31, 1024);
		if (!q.act.forward)
			fail();
	}
	assert_int_equal(q.done, 1);
	assert_int_equal(rq_send(&q), 1);
	assert_int_equal(q.r.una, P(1u << 20));
	rq_fini(&q);
}

/* --- path MTU -------------------------------------------------------------------------------- */

static void test_count_unknown_first(void **state)
{
	struct rq q;

	rq_init(&q, START, 0);
	assert_int_equal(rq_push_len(&q, ROCE_RC_READ_REQ, 0, 5000), ROCE_REQR_PUSHED);
	assert_int_equal(rq_send(&q), 1);
	rq_resp(&q, FIRST, P(0), 31, 1000);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, FIRST, P(0), 31, 1024);
	assert_true(q.act.forward);
	assert_int_equal(q.r.pmtu, 1024);
	assert_int_equal(q.r.high, P(5));
	assert_int_equal(q.r.tail, P(5));
	q.next = P(5);
	rq_push(&q, ROCE_RC_SEND_ONLY, 1);
	for (unsigned i = 1; i < 4; i++)
		rq_resp(&q, MIDDLE, P(i), 31, 1024);
	q.freed = P(0);
	rq_resp(&q, LAST, P(4), 31, 5000 - 4096);
	assert_int_equal(q.done, 1);
	rq_fini(&q);
}

static void test_count_unknown_only(void **state)
{
	struct rq q;

	rq_init(&q, START, 0);
	rq_push_len(&q, ROCE_RC_READ_REQ, 0, 300);
	rq_send(&q);
	rq_resp(&q, ONLY, P(0), 31, 299);
	assert_string_equal(str(q.act.drop), "bad_response");
	rq_resp(&q, ONLY, P(0), 31, 300);
	assert_true(q.act.forward);
	assert_int_equal(q.done, 1);
	assert_int_equal(q.r.una, P(1));
	rq_fini(&q);
}

/* The PSN of the next request gives the count. */
static void test_count_unknown_next_tells(void **state)
{
	struct rq q;

	rq_init(&q, START, 0);
	rq_push_len(&q, ROCE_RC_READ_REQ, 0, 5000);
	rq_send(&q);
	q.next = P(4);
	assert_int_equal(rq_push_len(&q, ROCE_RC_SEND_ONLY, 1, 4), ROCE_REQR_HOLE); /* no path MTU gives 4 */
	q.next = P(3);
	assert_int_equal(rq_push_len(&q, ROCE_RC_SEND_ONLY, 1, 4), ROCE_REQR_PUSHED); /* 2048 */
	assert_int_equal(q.r.q.head->psn_cnt, 3);
	assert_int_equal(q.r.high, P(3));
	assert_int_equal(rq_send(&q), 1);
	rq_resp(&q, FIRST, P(0), 31, 2048);
	rq_resp(&q, MIDDLE, P(1), 31, 2048);
	rq_resp(&q, LAST, P(2), 31, 904);
	assert_int_equal(q.done, 1);
	rq_ack(&q, P(3));
	assert_int_equal(q.done, 2);
	rq_fini(&q);
}

static void test_pmtu_from_requests(void **state)
{
	struct rq q;

	rq_init(&q, START, 0);
	rq_push_len(&q, ROCE_RC_READ_REQ, 0, 5000);
	q.next = P(5);
	assert_int_equal(rq_push_len(&q, ROCE_RC_WRITE_FIRST, 1, 1024), ROCE_REQR_PUSHED);
	assert_int_equal(q.r.pmtu, 1024);
	assert_int_equal(q.r.q.head->psn_cnt, 5);
	q.next = P(6);
	rq_push_len(&q, ROCE_RC_WRITE_LAST, 1, 1024);
	rq_push_len(&q, ROCE_RC_READ_REQ, 0, 4097);
	assert_int_equal(q.r.q.tail->psn_cnt, 5);
	assert_int_equal(q.r.tail, P(12));
	rq_fini(&q);
}

/* Credits of a response count as those of an ACK: without them the first RNR NAK would end it. */
static void test_credits_of_responses(void **state)
{
	static const uint8_t opcodes[] = {ROCE_RC_READ_REQ, ROCE_RC_FETCH_ADD};

	for (unsigned credits = 0; credits < 2; credits++)
		for (unsigned i = 0; i < 2; i++) {
			struct rq q;

			rq_init(&q, START, 1024);
			q.r.cfg.rnr_retry = 0;
			rq_push(&q, opcodes[i], 1);
			rq_push(&q, ROCE_RC_SEND_ONLY, 1);
			rq_send(&q);
			rq_resp(&q, i ? ROCE_RC_ATOMIC_ACK : ONLY, P(0),
			    credits ? 2 : ROCE_AETH_CREDIT_INVALID, i ? 0 : 1024);
			assert_true(q.act.forward);
			assert_int_equal(rq_send(&q), 1);
			rq_nak(&q, P(1), 0x21);
			assert_int_equal(q.act.failed, !credits);
			rq_fini(&q);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read),
	    cmocka_unit_test(test_lost_response_partial_read),
	    cmocka_unit_test(test_reread),
	    cmocka_unit_test(test_implied_nak_by_ack),
	    cmocka_unit_test(test_implied_nak_by_response),
	    cmocka_unit_test(test_atomic_retry_same_psn),
	    cmocka_unit_test(test_bad_responses),
	    cmocka_unit_test(test_fatal_with_read_unanswered),
	    cmocka_unit_test(test_rnr_and_seq_with_read),
	    cmocka_unit_test(test_big_reads_do_not_block),
	    cmocka_unit_test(test_count_unknown_first),
	    cmocka_unit_test(test_count_unknown_only),
	    cmocka_unit_test(test_count_unknown_next_tells),
	    cmocka_unit_test(test_pmtu_from_requests),
	    cmocka_unit_test(test_credits_of_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
