/* SPDX-License-Identifier: Apache-2.0 */
/* Loss recovery of one path, datagram by datagram: thresholds, timers, spurious losses,
 * back-off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_one_path.h"

#define RTT (20 * RWY_MS)

static void test_packet_threshold(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC;

	for (int i = 0; i < 10; i++)
		wan_one_send(p, now);
	now += RTT;
	wan_one_ack(p, 1, 2, now); /* 0 is 2 behind: may be late */
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_INFLIGHT);
	assert_int_equal(p->inflight, 8000);
	wan_one_ack(p, 1, 3, now);
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_LOST); /* RFC 9002 6.1.1: 3 */
	assert_int_equal(p->inflight, 6000);
	assert_int_equal(p->t->c.lost, 1);
	wan_free(p->t);
}

static void test_time_threshold(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC, at;

	wan_one_send(p, now);
	wan_one_send(p, now);
	now += RTT;
	wan_one_ack(p, 1, 1, now);
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_INFLIGHT);
	at = wan_loss_next(p);
	assert_int_equal(at, RWY_SEC + RTT + RTT / 8); /* RFC 9002 6.1.2: 9/8 */
	wan_loss_tick(p, at - 1);
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_INFLIGHT);
	wan_loss_tick(p, at);
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_LOST);
	assert_int_equal(p->inflight, 0);
	assert_int_equal(wan_loss_next(p), RWY_NEVER);
	wan_free(p->t);
}

static void test_rtt(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	struct wan_f_ack a = {.n = 1, .delay_us = 4000};

	p->t->peer.ack_delay = 5 * RWY_MS;
	wan_rtt_sample(p, RTT, 0, RWY_SEC);
	assert_int_equal(p->srtt, RTT);
	assert_int_equal(p->rttvar, RTT / 2);
	uint64_t pn = wan_one_send(p, RWY_SEC);

	a.r[0] = (struct wan_range){pn, pn};
	wan_loss_on_ack(p, &a, RWY_SEC + RTT + 4 * RWY_MS); /* the peer's delay does not count */
	assert_int_equal(p->latest, RTT);
	pn = wan_one_send(p, RWY_SEC);
	a.r[0] = (struct wan_range){pn, pn};
	a.delay_us = 1000000; /* but not more than its announced limit */
	wan_loss_on_ack(p, &a, RWY_SEC + RTT + 9 * RWY_MS);
	assert_int_equal(p->latest, RTT + 4 * RWY_MS);
	wan_free(p->t);
}

static void test_pto(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC;
	rwy_dur first, last;

	wan_one_send(p, now);
	wan_one_ack(p, 0, 0, now + RTT);
	now += RTT;
	assert_int_equal(wan_loss_next(p), RWY_NEVER); /* nothing in flight */
	wan_one_send(p, now);
	p->t->tx_bytes = 1; /* custody is not empty */
	first = wan_pto(p);
	assert_int_equal(wan_loss_next(p), now + first);
	assert_int_equal(first, p->srtt + 4 * p->rttvar);
	for (int i = 0; i < 20; i++) {
		now = wan_loss_next(p);
		wan_loss_tick(p, now - 1);
		assert_int_equal(p->probes, 0);
		wan_loss_tick(p, now);
		assert_int_equal(p->probes, 2);
		p->probes = 0;
		last = wan_pto(p);
		assert_true(last <= p->srtt + 200 * RWY_MS);
	}
	assert_int_equal(p->t->c.pto, 20);
	assert_int_equal(last, p->srtt + 200 * RWY_MS);
	wan_one_send(p, now);
	wan_one_ack(p, p->next_pn - 1, p->next_pn - 1, now + RTT); /* the outage is over: back to the first */
	assert_int_equal(p->pto_count, 0);
	wan_free(p->t);
}

/* A process that is late itself reads received datagrams before it probes. Once: then it probes,
 * however late. */
static void test_late_ourselves(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC;

	wan_one_send(p, now);
	wan_one_ack(p, 0, 0, now + RTT);
	now += RTT;
	wan_one_send(p, now);
	now = wan_loss_next(p) + 5 * RWY_MS;
	wan_loss_tick(p, now);
	assert_int_equal(p->t->c.pto, 0);
	assert_in_range(wan_loss_next(p), now + 1, now + RWY_MS);
	wan_loss_tick(p, wan_loss_next(p) + 5 * RWY_MS);
	assert_int_equal(p->t->c.pto, 1);
	assert_int_equal(p->probes, 2);
	wan_free(p->t);
}

static void test_never_sent(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);

	wan_one_send(p, RWY_SEC);
	wan_one_ack(p, 0, 5, RWY_SEC + RTT);
	assert_int_equal(wan_one_state(p, 0), WAN_SENT_INFLIGHT);
	assert_int_equal(p->t->c.drop_bad_frame, 1);
	wan_free(p->t);
}

/* The map is a ring: old places are reused, an ACK far below has no effect, and acknowledgements
 * always find a place. */
static void test_ring(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC;

	for (int i = 0; i < 5000; i++) {
		uint64_t pn = wan_one_send(p, now);

		if (pn % 7)
			wan_one_ack(p, pn, pn, now + RTT);
		now += RWY_MS;
	}
	assert_true(p->next_pn - p->tail <= 4);
	wan_one_ack(p, 0, 10, now);
	for (int i = 0; i < 3000; i++) {
		struct wan_sent s = {.bytes = 60};

		wan_loss_on_sent(p, &s, false, now);
		wan_one_send(p, now);
	}
	assert_true(p->next_pn - p->tail <= p->mask + 1);
	assert_false(wan_sent_room(p));
	assert_true(p->inflight == (uint64_t)p->inflight_n * 1000);
	wan_free(p->t);
}

static void test_loss_share(void **state)
{
	struct wan_path *p = wan_one_path(1024, RWY_SEC);
	rwy_time now = RWY_SEC;

	for (int i = 0; i < 40000; i++) {
		uint64_t pn = wan_one_send(p, now);

		if (pn % 50)
			wan_one_ack(p, pn, pn, now + RTT);
		now += RWY_MS;
	}
	assert_in_range(wan_loss_ppm(p), 15000, 25000);
	for (int i = 0; i < 40000; i++) {
		uint64_t pn = wan_one_send(p, now);

		wan_one_ack(p, pn, pn, now + RTT);
		now += RWY_MS;
	}
	assert_in_range(wan_loss_ppm(p), 0, 10);
	wan_free(p->t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_packet_threshold),
	    cmocka_unit_test(test_time_threshold),
	    cmocka_unit_test(test_rtt),
	    cmocka_unit_test(test_pto),
	    cmocka_unit_test(test_late_ourselves),
	    cmocka_unit_test(test_never_sent),
	    cmocka_unit_test(test_ring),
	    cmocka_unit_test(test_loss_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
