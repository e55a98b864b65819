/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which responses belong to which requests, without CM: queue pairs of two hosts with equal PSNs, a
 * capture that misses a request or begins behind some, and queue pair numbers that are used again at
 * one side. Packets are made one by one and show their headers only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "roce/opcode.h"
#include "tests/lib/rc_pkt.h"
#include "tools/analyze/analyze.h"

#define ETH_LEN  14
#define CAPTURED 100
#define MTU      1024u

/* Queue pairs of host A, which asks, and of host B. */
enum { A1 = 0x11, A2, B1 = 0x21, B2 };

static struct an *an;
static rwy_time now;

static int set_up(void **state)
{
	an = an_new(0);
	now = RWY_SEC;
	return !an;
}

static int tear_down(void **state)
{
	an_free(an);
	return 0;
}

static void put(const struct rc_mk *m)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {[12] = 8};
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, m);

	now += RWY_US;
	assert_int_equal(an_frame(an, now, frame, len < CAPTURED ? len : CAPTURED, len, false), 0);
}

static void ask(uint32_t b, uint32_t psn)
{
	put(&(struct rc_mk){.opcode = ROCE_RC_WRITE_ONLY,
	    .psn = psn & ROCE_PSN_MASK,
	    .dqpn = b,
	    .len = MTU,
	    .payload_len = MTU});
}

static void answer(uint32_t a, uint32_t psn)
{
	put(&(struct rc_mk){.opcode = ROCE_RC_ACK,
	    .psn = psn & ROCE_PSN_MASK,
	    .src = {10, 0, 0, 2},
	    .dst = {10, 0, 0, 1},
	    .dqpn = a,
	    .syndrome = 0x1f});
}

/* n WRITEs, one after the other. */
static void writes(uint32_t a, uint32_t b, uint32_t psn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		ask(b, psn + i);
		answer(a, psn + i);
	}
}

static const struct an_flow *flow(uint32_t qpn)
{
	for (const struct an_flow *f = an_flows(an); f; f = f->next)
		if (f->key.dqpn == qpn)
			return f;
	return NULL;
}

/* The QPN of the peer of this flow; 0: it has none. */
static uint32_t peer(uint32_t qpn)
{
	return flow(qpn)->peer ? flow(qpn)->peer->key.dqpn : 0;
}

/* The first request is not in the capture, and another queue pair has that PSN outstanding. */
static void test_a_request_is_missing(void **state)
{
	uint32_t slow = 0;

	ask(B2, 0);
	answer(A1, 0);
	assert_int_equal(peer(B2), A1); /* nothing says otherwise yet */
	for (uint32_t i = 1; i < 200; i++) {
		ask(B1, i);
		answer(A1, i);
		if (i % 5 == 0) {
			answer(A2, slow);
			ask(B2, ++slow);
		}
	}
	assert_int_equal(peer(B1), A1);
	assert_int_equal(peer(B2), A2);
	assert_true(flow(B1)->c.messages > 150 && flow(B2)->c.messages > 30);
	assert_true(flow(B2)->c.unasked > 0);
}

/*
 * The capture begins behind requests of both; for a while only one of the flows has the PSN that is
 * answered.
 */
static void test_begin_in_mid_flow(void **state)
{
	enum { WINDOW = 32, LATER = 13, FROM = 200 };
	uint32_t i = FROM;

	for (; i < FROM + 300; i++) { /* A1's queue pair is ahead */
		ask(B1, i);
		ask(B2, i - LATER);
		answer(A1, i - WINDOW);
		answer(A2, i - LATER - WINDOW);
		assert_true(peer(B1) != A2 && peer(B2) != A1);
	}
	for (; i < FROM + 300 + WINDOW; i++) { /* B2's pauses */
		ask(B1, i);
		answer(A1, i - WINDOW);
	}
	for (uint32_t k = i; k < i + 100; k++) {
		ask(B1, k);
		answer(A1, k);
		ask(B2, k - 60);
		answer(A2, k - 60);
	}
	assert_int_equal(peer(B1), A1);
	assert_int_equal(peer(B2), A2);
}

/* The number of A's queue pair is used again, by PSNs before and behind those of the first one. */
static void test_used_again_by_the_requester(void **state)
{
	static const uint32_t psn[] = {0x555000, 100, 900};

	for (unsigned i = 0; i < sizeof(psn) / sizeof(*psn); i++) {
		tear_down(state);
		assert_int_equal(set_up(state), 0);
		writes(A1, B1, 1000, 50);
		writes(A1, B2, psn[i], 50);
		assert_int_equal(peer(B2), A1);
		assert_int_equal(flow(B1)->c.messages, 50);
		assert_in_range(flow(B2)->c.messages, 33, 50);
		assert_true(flow(B1)->c.unasked > 0);
	}
}

/* The number of B's queue pair is used again. */
static void test_used_again_by_the_responder(void **state)
{
	writes(A1, B1, 1000, 50);
	writes(A2, B1, 0x555000, 50);
	assert_int_equal(peer(B1), A2);
	assert_true(flow(B1)->c.messages > 80);
	/* Responses of a third queue pair alone take nothing away. */
	for (uint32_t i = 0; i < 100; i++) {
		ask(B1, 0x555000 + 50 + i);
		answer(0x77, 0x555000 + 50 + i);
		answer(A2, 0x555000 + 50 + i);
	}
	assert_int_equal(peer(B1), A2);
}

/* Host B asks, too, and its requests are open while a third queue pair answers such PSNs. */
static void test_both_ways(void **state)
{
	writes(A1, B1, 1000, 50);
	for (uint32_t i = 0; i < 100; i++) {
		put(&(struct rc_mk){.opcode = ROCE_RC_SEND_ONLY,
		    .psn = 5 + i,
		    .src = {10, 0, 0, 2},
		    .dst = {10, 0, 0, 1},
		    .dqpn = A1});
		put(&(struct rc_mk){.opcode = ROCE_RC_ACK, .psn = 5 + i, .dqpn = 0x77, .syndrome = 0x1f});
		writes(A1, B1, 1050 + i, 1);
	}
	assert_int_equal(peer(A1), B1);
	assert_int_equal(flow(B1)->c.messages, 150);
	assert_int_equal(flow(A1)->c.messages, 0);
}

/* Responses that come again are no other queue pair's, whatever that has outstanding. */
static void test_repeats(void **state)
{
	writes(A1, B1, 0, 50);
	for (uint32_t i = 0; i < 50; i++)
		ask(B2, i);
	for (uint32_t n = 0; n < 3; n++) {
		ask(B1, 0);
		for (uint32_t i = 0; i < 50; i++)
			answer(A1, i);
	}
	assert_int_equal(peer(B1), A1);
	writes(A1, B1, 50, 50);
	assert_int_equal(flow(B1)->c.messages, 100);
	assert_int_equal(flow(B1)->c.unasked, 0);
	assert_int_equal(peer(B2), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_a_request_is_missing),
	    CASE(test_begin_in_mid_flow),
	    CASE(test_used_again_by_the_requester),
	    CASE(test_used_again_by_the_responder),
	    CASE(test_both_ways),
	    CASE(test_repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
