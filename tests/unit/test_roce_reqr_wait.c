/* SPDX-License-Identifier: Apache-2.0 */
/* RC requester: how long it waits for a host, and when it gives up: RNR NAKs, timeouts, round trips.
 * test_roce_reqr.c has the rest. */
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

static void test_rnr(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 10);
	rq_send(&q);
	rq_nak(&q, P(4), 0x20 | 14);
	assert_int_equal(q.done, 4);
	assert_int_equal(q.r.rnr_naks, 1);
	assert_int_equal(roce_reqr_next(&q.r), q.now + roce_rnr_time(14));
	assert_int_equal(rq_send(&q), 0);
	rq_nak(&q, P(4), SEQ); /* for the packets after it */
	assert_string_equal(str(q.act.drop), "nak_while_rnr");
	rq_nak(&q, P(4), 0x20 | 14);
	assert_string_equal(str(q.act.drop), "repeated_nak");
	q.now += roce_rnr_time(14) - 1;
	rq_tick(&q);
	assert_int_equal(rq_send(&q), 0);
	q.now++;
	rq_tick(&q);
	assert_int_equal(rq_send(&q), 1); /* one packet, until it is ready */
	assert_true(q.tx[0].ack_req);
	assert_int_equal(q.tx[0].b->psn, P(4));
	rq_ack(&q, P(4));
	assert_int_equal(q.r.rnr_count, 0);
	assert_int_equal(rq_send(&q), 5);
	assert_int_equal(q.r.window, 32); /* not a loss */
	rq_fini(&q);
}

static void test_rnr_limit(void **state)
{
	struct rq q;

	for (uint8_t limit = 0; limit < 7; limit++) {
		rq_init(&q, START, 1024);
		q.r.cfg.rnr_retry = limit;
		rq_push_sends(&q, 1);
		for (unsigned i = 0; i < limit; i++) {
			assert_int_equal(rq_send(&q), 1);
			rq_nak(&q, START, 0x20);
			assert_false(q.act.failed);
			q.now += 656 * RWY_MS;
		}
		rq_send(&q);
		rq_nak(&q, START, 0x20);
		assert_true(q.act.failed);
		assert_int_equal(q.act.end, ROCE_REQR_NOT_READY);
		assert_int_equal(q.act.fail_syndrome, 0x63);
		assert_int_equal(q.act.fail_psn, START);
		rq_fini(&q);
	}
	rq_init(&q, START, 1024); /* 7: without limit */
	rq_push_sends(&q, 1);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(rq_send(&q), 1);
		rq_nak(&q, START, 0x21);
		assert_false(q.act.failed);
		q.now += RWY_SEC;
	}
	rq_fini(&q);
}

/* A host that gives credits is waited for: its real peer would not have sent more than they allow. */
static void test_rnr_credits(void **state)
{
	struct rq q;

	for (uint8_t limit = 0; limit < 7; limit++) {
		rq_init(&q, START, 1024);
		q.r.cfg.rnr_retry = limit;
		rq_push_sends(&q, 2);
		/* One packet, which asks: with credits, its peer would not have sent more before. */
		assert_int_equal(rq_send(&q), 1);
		assert_true(q.tx[0].ack_req);
		rq_nak(&q, START, 0x02); /* an ACK with credits for two messages */
		assert_int_equal(q.done, 1);
		assert_int_equal(rq_send(&q), 1);
		for (unsigned i = 0; i < 100; i++) {
			rq_nak(&q, P(1), 0x21);
			assert_false(q.act.failed);
			q.now += RWY_SEC;
			assert_int_equal(rq_send(&q), 1);
			assert_int_equal(q.tx[0].b->psn, P(1));
		}
		rq_ack(&q, P(1));
		assert_int_equal(q.done, 2);
		rq_fini(&q);
	}
}

/* A requester that begins anew after a restart of its gateway has not heard the host's credits. */
static void test_rnr_resumed(void **state)
{
	for (unsigned credits = 0; credits < 2; credits++) {
		struct rq q;

		rq_init(&q, START, 1024);
		q.r.cfg.rnr_retry = 0;
		q.r.resumed = true;
		rq_push_sends(&q, 3);
		assert_int_equal(rq_send(&q), 1);
		rq_nak(&q, START, 0x21);
		assert_false(q.act.failed);
		q.now += RWY_SEC;
		assert_int_equal(rq_send(&q), 1);
		rq_nak(&q, START, credits ? 0x02 : ROCE_AETH_CREDIT_INVALID);
		assert_int_equal(q.done, 1);
		assert_int_equal(rq_send(&q), 2);
		rq_nak(&q, P(1), 0x21);
		assert_int_equal(q.act.failed, !credits);
		rq_fini(&q);
	}
}

static void test_timeout(void **state)
{
	rwy_dur rto = 50 * RWY_MS;
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 40);
	for (unsigned i = 0; i < 7; i++) {
		rq_send(&q);
		/* cut once: no packet has passed since */
		assert_int_equal(q.ntx, i ? 32 >> 1 : 32);
		assert_int_equal(roce_reqr_next(&q.r), q.now + rto);
		q.now += rto - 1;
		rq_tick(&q);
		assert_int_equal(rq_send(&q), 0);
		q.now++;
		rq_tick(&q);
		assert_false(q.act.failed);
		rto = rto * 2 > RWY_SEC ? RWY_SEC : rto * 2;
	}
	rq_send(&q);
	q.now += rto;
	rq_tick(&q);
	assert_true(q.act.failed);
	assert_int_equal(q.act.end, ROCE_REQR_SILENT);
	assert_int_equal(q.act.fail_psn, START);
	assert_int_equal(q.r.timeouts, 8);
	assert_int_equal(rq_send(&q), 0);
	assert_int_equal(roce_reqr_next(&q.r), RWY_NEVER);
	rq_ack(&q, START);
	assert_string_equal(q.act.drop, "after_error");
	rq_fini(&q);
}

/* Ticks until it gives up or `end` is reached; returns the number of timeouts. */
static uint64_t silence(struct rq *q, rwy_time end)
{
	do {
		rq_send(q);
		q->now = rwy_time_min(roce_reqr_next(&q->r), end);
		rq_tick(q);
	} while (!q->act.failed && q->now < end);
	return q->r.timeouts;
}

/* The count is used up after 350 ms, but the host's peer would have waited for 10 s. */
static void test_patience(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.cfg.retry = 2;
	q.r.cfg.patience = 10 * RWY_SEC;
	rq_push_sends(&q, 4);
	assert_int_equal(silence(&q, RWY_SEC + 10 * RWY_SEC - 1), 13);
	assert_false(q.act.failed);
	/* Progress begins it anew. */
	rq_send(&q);
	rq_ack(&q, START);
	silence(&q, q.now + 10 * RWY_SEC - 1);
	assert_false(q.act.failed);
	silence(&q, q.now + 2 * RWY_SEC);
	assert_true(q.act.failed);
	assert_int_equal(q.act.end, ROCE_REQR_SILENT);
	rq_fini(&q);
}

/* Without a retry the first timeout is the end, once the peer would not have waited longer. */
static void test_no_retry(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.cfg.retry = 0;
	q.r.cfg.patience = 40 * RWY_MS;
	rq_push_sends(&q, 1);
	assert_int_equal(silence(&q, 2 * RWY_SEC), 1);
	assert_true(q.act.failed);
	assert_int_equal(q.now, RWY_SEC + 50 * RWY_MS);
	rq_fini(&q);
}

/* A peer without a timer waits for ever; the count of timeouts must not wrap. */
static void test_never_gives_up(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.cfg.patience = RWY_NEVER;
	rq_push_sends(&q, 1);
	assert_in_range(silence(&q, RWY_SEC + 1000 * RWY_SEC), 1000, 1004);
	assert_false(q.act.failed);
	assert_true(roce_reqr_next(&q.r) - q.now <= RWY_SEC);
	rq_fini(&q);
}

static void test_timeout_count_resets(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	rq_push_sends(&q, 100);
	for (unsigned i = 0; i < 50; i++) {
		rq_send(&q);
		q.now += RWY_SEC;
		rq_tick(&q);
		rq_send(&q);
		assert_false(q.act.failed);
		rq_ack(&q, P(i));
		assert_int_equal(q.r.retry_count, 0);
	}
	rq_fini(&q);
}

static void test_rtt(void **state)
{
	struct rq q;

	rq_init(&q, START, 1024);
	q.r.cfg.rto_min = RWY_MS;
	for (unsigned i = 0; i < 50; i++) {
		rq_push_sends(&q, 1);
		rq_send(&q);
		q.now += 2 * RWY_MS;
		rq_ack(&q, P(i));
	}
	assert_in_range(q.r.srtt, 1900 * RWY_US, 2100 * RWY_US);
	rq_push_sends(&q, 1);
	rq_send(&q);
	assert_in_range(roce_reqr_next(&q.r) - q.now, 2 * RWY_MS, 3 * RWY_MS);
	q.now += 10 * RWY_MS;
	rq_tick(&q);
	rq_send(&q);
	q.now += RWY_SEC;
	rq_ack(&q, P(50)); /* sent twice: no sample (Karn) */
	assert_in_range(q.r.srtt, 1900 * RWY_US, 2100 * RWY_US);
	rq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rnr),
	    cmocka_unit_test(test_rnr_limit),
	    cmocka_unit_test(test_rnr_credits),
	    cmocka_unit_test(test_rnr_resumed),
	    cmocka_unit_test(test_timeout),
	    cmocka_unit_test(test_patience),
	    cmocka_unit_test(test_no_retry),
	    cmocka_unit_test(test_never_gives_up),
	    cmocka_unit_test(test_timeout_count_resets),
	    cmocka_unit_test(test_rtt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
