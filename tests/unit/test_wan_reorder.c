/* SPDX-License-Identifier: Apache-2.0 */
/* A path that reorders: when only time makes a loss, how long it waits, what it forgets, what ACKs
 * report. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_link.h"
#include "tests/lib/wan_one_path.h"

#define RTT (20 * RWY_MS)

/* One round trip measured. */
static struct wan_path *start(rwy_time now)
{
	struct wan_path *p = wan_one_path(8192, now);

	for (int i = 0; i < 40; i++)
		wan_rtt_sample(p, RTT, 0, now);
	return p;
}

static uint64_t send_n(struct wan_path *p, unsigned n, rwy_time now)
{
	uint64_t first = wan_one_send(p, now);

	while (--n)
		wan_one_send(p, now);
	return first;
}

/* A round in order. */
static rwy_time calm_round(struct wan_path *p, rwy_time now)
{
	uint64_t first = send_n(p, 40, now);

	wan_one_ack(p, first, first + 39, now + RTT);
	return now + RTT;
}

/* One datagram overtaken, none given up: three later ones no longer make a loss. */
static void test_seen(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = RWY_SEC;
	uint64_t first = send_n(p, 10, now);

	wan_one_ack(p, first + 1, first + 2, now + RTT);
	wan_one_ack(p, first, first + 2, now + RTT);
	assert_int_equal(p->t->c.lost, 0);
	assert_true(wan_path_reorders(p));
	wan_one_ack(p, first + 4, first + 9, now + RTT);
	assert_int_equal(wan_one_state(p, first + 3), WAN_SENT_INFLIGHT);
	assert_int_equal(wan_loss_next(p), now + p->srtt + p->min_rtt / 4); /* RFC 8985 6.2: reo_wnd */
	wan_loss_tick(p, now + p->srtt + p->min_rtt / 4);
	assert_int_equal(wan_one_state(p, first + 3), WAN_SENT_LOST);
	wan_free(p->t);
}

/* Given up, but it arrived: the window grows to the time it took, at most a round trip. */
static void test_spurious(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = RWY_SEC;
	uint64_t first = send_n(p, 40, now);

	wan_one_ack(p, first + 1, first + 39, now + RTT);
	assert_int_equal(wan_one_state(p, first), WAN_SENT_LOST);
	wan_one_ack(p, first, first + 39, now + RTT + RTT / 2);
	assert_int_equal(wan_one_state(p, first), WAN_SENT_ACKED);
	assert_int_equal(p->t->c.spurious_retransmit, 1);
	assert_in_range(p->reorder.window, RTT / 2, RTT * 5 / 8);
	assert_true(wan_reorder_limit(p) >= RTT + RTT / 2);
	assert_true(wan_pto(p) >= wan_reorder_limit(p));
	now += 2 * RTT;
	first = send_n(p, 40, now);
	wan_one_ack(p, first + 1, first + 39, now + RTT);
	wan_loss_tick(p, now + RTT + RTT / 2); /* the same again is no loss */
	assert_int_equal(wan_one_state(p, first), WAN_SENT_INFLIGHT);
	now += 10 * RTT;
	wan_loss_tick(p, now);
	wan_one_ack(p, first, first + 39, now);
	assert_int_equal(p->reorder.window, p->srtt);
	wan_free(p->t);
}

/* One of a thousand is no reason to wait longer for all. */
static void test_rare(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = RWY_SEC;
	uint64_t first = send_n(p, 1000, now), late;

	wan_one_ack(p, first, first + 499, now + RTT);
	late = first + 500;
	wan_one_ack(p, late + 1, first + 999, now + RTT);
	assert_int_equal(wan_one_state(p, late), WAN_SENT_LOST);
	wan_one_ack(p, late, late, now + RTT + RTT / 2);
	assert_int_equal(p->t->c.spurious_retransmit, 1);
	assert_int_equal(p->reorder.window, 0);
	wan_free(p->t);
}

/* Sixteen rounds in order: as at the beginning. */
static void test_calm(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = RWY_SEC;
	uint64_t first = send_n(p, 40, now);

	wan_one_ack(p, first + 1, first + 39, now + RTT);
	wan_one_ack(p, first, first + 39, now + RTT + RTT / 2);
	now += 2 * RTT;
	for (int i = 0; i < 10; i++)
		now = calm_round(p, now);
	assert_true(wan_path_reorders(p) && p->reorder.window);
	for (int i = 0; i < 10; i++)
		now = calm_round(p, now);
	assert_false(wan_path_reorders(p));
	assert_int_equal(p->reorder.window, 0);
	first = send_n(p, 10, now);
	wan_one_ack(p, first + 1, first + 3, now + RTT);
	assert_int_equal(wan_one_state(p, first), WAN_SENT_LOST);
	wan_free(p->t);
}

/* Each datagram has its own delay, 15 to 25 ms: the newest acknowledged is one of the fastest. Then
 * round trips are means over all, none is given up, and the path does not count as congested. */
static rwy_time jitter_for(struct wan_path *p, unsigned ticks, rwy_time now)
{
	uint64_t rng = 1;
	static rwy_time at[8192];

	for (unsigned tick = 0; tick < ticks; tick++, now += 100 * RWY_US) {
		uint64_t pn = wan_one_send(p, now);

		at[pn & 8191] = now + 15 * RWY_MS + wan_rng_below(&rng, 10000) * RWY_US;
		for (uint64_t k = pn > 400 ? pn - 400 : 0; k <= pn; k++)
			if (wan_one_state(p, k) != WAN_SENT_ACKED && at[k & 8191] <= now)
				wan_one_ack(p, k, k, now);
		if (now >= wan_loss_next(p))
			wan_loss_tick(p, now);
	}
	return now;
}

static void test_jitter(void **state)
{
	struct wan_path *p = start(RWY_SEC);

	jitter_for(p, 8000, RWY_SEC);
	assert_true(wan_path_reorders(p) && wan_path_reorders_much(p));
	assert_in_range(p->srtt, 19 * RWY_MS, 21 * RWY_MS);
	assert_in_range(p->min_rtt, 18 * RWY_MS, 21 * RWY_MS);
	assert_in_range(p->t->c.lost, 0, 80); /* until it was known */
	assert_int_equal(p->congest.st.begins, 0);
	wan_free(p->t);
}

/* An outage loses ACKs: a datagram that is acknowledged only after it took no longer than the
 * rest. */
static void test_silence(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = jitter_for(p, 4000, RWY_SEC), end = now + 3 * RWY_SEC;

	assert_true(wan_path_reorders_much(p));
	uint64_t last = send_n(p, 100, now) + 99;

	for (; now < end; now += RWY_MS)
		wan_loss_tick(p, now);
	for (uint64_t pn = last - 99; pn <= last; pn++)
		wan_one_ack(p, pn, pn, now);
	jitter_for(p, 1000, now);
	assert_in_range(p->srtt, 15 * RWY_MS, 30 * RWY_MS);
	wan_free(p->t);
}

/* A datagram that a repair rebuilt may only be late: on such a path it is no sign of loss. */
static void test_rebuilt(void **state)
{
	struct wan_path *p = start(RWY_SEC);

	send_n(p, 2, RWY_SEC);
	p->sent[0].group = p->sent[1].group = 1;
	wan_loss_on_rebuilt(p, 0, 1, RWY_SEC);
	assert_true(wan_loss_ppm(p) > 0 && p->fec.est.lost > 0);
	p->reorder.order = WAN_ORDER_REORDERS;
	p->loss_fp = 0;
	p->fec.est.lost = 0;
	wan_loss_on_rebuilt(p, 1, 1, RWY_SEC);
	assert_true(wan_loss_ppm(p) == 0 && p->fec.est.lost == 0);
	wan_free(p->t);
}

/* --- the receiving half ----------------------------------------------------------------------- */
/* Reads the ACKs that are due; returns how many frames, and marks in got[] what they acknowledge. */
static unsigned read_acks(struct wan_path *p, bool *got, uint64_t n, rwy_time now)
{
	unsigned frames = 0;

	while (wan_ack_due(p, now)) {
		struct wan_tx tx;
		struct wan_out o = {.tx = &tx, .p = p, .at = tx.hdr, .limit = WAN_HDR_MAX};
		struct wan_f_ack a;

		if (!wan_ack_put(p, &o, now))
			break;
		assert_non_null(wan_f_ack_get(tx.hdr + 1, o.at, tx.hdr[0], &a));
		for (unsigned i = 0; i < a.n; i++)
			for (uint64_t k = a.r[i].lo; k <= a.r[i].hi && k < n; k++)
				got[k] = true;
		frames++;
	}
	return frames;
}

/* The ACK after a report of rebuilt datagrams says their numbers again, and a new session does not. */
static void test_rebuilt_again(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	struct wan_tx tx;
	struct wan_out o = {.tx = &tx, .p = p, .at = tx.hdr, .limit = WAN_HDR_MAX};

	wan_ack_on_received(p, 7, true, RWY_SEC);
	p->fec.told[p->fec.told_n++] = (struct wan_fec_rebuilt){.pn = 7};
	assert_true(wan_ack_put(p, &o, 2 * RWY_SEC));
	assert_int_equal(tx.hdr[0], WAN_F_REBUILT);
	assert_int_equal(rwy_get64(tx.hdr + WAN_REBUILT_HEAD), 7);
	assert_int_equal(p->fec.told_n, 0);
	p->fec.told[p->fec.told_n++] = (struct wan_fec_rebuilt){.pn = 7};
	wan_path_restart(p, 3 * RWY_SEC);
	assert_int_equal(p->fec.told_n, 0);
	wan_free(p->t);
}

/* More gaps than a frame can name, and a late datagram below them: it is reported, and more than
 * once. */
static void test_acks(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	rwy_time now = RWY_SEC;
	bool got[1000] = {0};

	for (uint64_t pn = 0; pn < 400; pn += 2)
		wan_ack_on_received(p, pn, true, now);
	now += RWY_SEC;
	assert_int_equal(read_acks(p, got, 1000, now), 1); /* losses: old ones were reported */
	memset(got, 0, sizeof(got));
	for (uint64_t pn = 400; pn < 500; pn += 2) {
		wan_ack_on_received(p, pn, true, now);
		wan_ack_on_received(p, pn - 399, true, now);
	}
	now += RWY_SEC;
	for (int i = 0; i < 3; i++) {
		assert_true(read_acks(p, got, 1000, now) > 3);
		for (uint64_t pn = 400; pn < 500; pn += 2)
			assert_true(got[pn] && got[pn - 399]);
		memset(got, 0, sizeof(got));
		wan_ack_on_received(p, 500 + (uint64_t)i, true, now);
		now += RWY_SEC;
	}
	for (uint64_t pn = 503; pn < 510; pn++) { /* and no longer then */
		wan_ack_on_received(p, pn, true, now);
		now += RWY_SEC;
		read_acks(p, got, 1000, now);
	}
	wan_ack_on_received(p, 510, true, now);
	assert_int_equal(read_acks(p, got, 1000, now + RWY_SEC), 1);
	wan_free(p->t);
}

/* The peer has an ACK: numbers received before it was sent need not be reported again, later ones
 * must. */
static void test_floor(void **state)
{
	struct wan_path *p = start(RWY_SEC);
	bool got[100] = {0};
	rwy_time now = RWY_SEC;
	uint64_t carrier = p->next_pn;

	for (uint64_t pn = 0; pn < 40; pn += 2)
		wan_ack_on_received(p, pn, true, now);
	now += RWY_SEC;
	read_acks(p, got, 100, now); /* in our datagram `carrier` */
	wan_ack_on_received(p, 21, true, now);
	wan_ack_on_received(p, 50, true, now);
	wan_ack_on_acked(p, carrier);
	assert_int_equal(p->ack_floor, 21);
	memset(got, 0, sizeof(got));
	read_acks(p, got, 100, now + RWY_SEC);
	assert_true(got[21] && got[50] && !got[0]);
	wan_free(p->t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_seen),
	    cmocka_unit_test(test_spurious),
	    cmocka_unit_test(test_rare),
	    cmocka_unit_test(test_calm),
	    cmocka_unit_test(test_jitter),
	    cmocka_unit_test(test_silence),
	    cmocka_unit_test(test_rebuilt),
	    cmocka_unit_test(test_rebuilt_again),
	    cmocka_unit_test(test_acks),
	    cmocka_unit_test(test_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
