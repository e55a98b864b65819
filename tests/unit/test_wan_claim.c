/* SPDX-License-Identifier: Apache-2.0 */
/* Claims of a pair of gateways: when they count as granted, and what a gateway without the tunnel does
 * not send. What the witness decides: test_wan_witness.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/aead_test.h"
#include "tests/lib/wan_sites.h"
#include "wan/stream.h"
#include "wan/tunnel.h"

/* --- granted ------------------------------------------------------------------------------------ */
static void test_hold(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	assert_int_equal(s->g[A].granted, 1);
	assert_int_equal(wan_claimed(s->g[A].t), WAN_CLAIM_HOLD);
	assert_false(wan_sites_granted(s, W));
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_HOLD);
	wan_sites_run(s, RWY_SEC);
	assert_true(s->g[A].hellos < 20);
	uint64_t hellos = s->hellos;

	/* and then it is quiet */
	wan_sites_run(s, 3 * RWY_SEC);
	assert_true(s->hellos == hellos);
	assert_int_equal(s->g[A].granted, 1);
	assert_true(s->g[A].up && s->g[W].up);
	assert_true(wan_sites_free(s));
}

/* The answer to the claim before does not confirm the new one. */
static void test_change(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_KEEP);

	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_false(wan_sites_granted(s, A));
	wan_sites_run(s, SITES_DELAY + RWY_MS);
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_HOLD);
	wan_sites_claim(s, A, WAN_CLAIM_KEEP);
	wan_sites_run(s, SITES_DELAY); /* the answer to HOLD has come */
	assert_false(wan_sites_granted(s, A));
	assert_int_equal(s->g[A].granted, 1);
	assert_true(wan_sites_reach(s, SITES_RTT, wan_sites_granted(s, A)));
	assert_int_equal(s->g[A].granted, 2);
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
	/* the same again is no change */
	wan_sites_claim(s, A, WAN_CLAIM_KEEP);
	assert_true(wan_sites_granted(s, A));
	/* no longer one of a pair */
	wan_sites_claim(s, A, WAN_CLAIM_NONE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_NO_CLAIM);
	assert_true(wan_sites_free(s));
}

/* The claim's number comes round while nothing arrives; and a HELLO with an old claim comes late. */
static void test_numbers(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	for (unsigned outage = 1; outage < 300; outage += 63) {
		s->cut = true;
		for (unsigned i = 0; i < outage; i++) {
			wan_sites_claim(s, A, i & 1 ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP);
			wan_sites_run(s, RWY_MS);
		}
		wan_sites_claim(s, A, WAN_CLAIM_KEEP);
		s->cut = false;
		assert_true(wan_sites_reach(s, 3 * RWY_SEC, wan_sites_granted(s, A)));
		assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
	}
	s->keep_of = A;
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	s->keep_of = -1;
	wan_sites_claim(s, A, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	assert_true(s->kept_n);
	wan_sites_replay(s, W);
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced));
	assert_true(wan_sites_believes(s, W, A));
	assert_true(wan_sites_free(s));
}

/* The witness restarts, and falls silent: the claim is granted no longer, and then again. */
static void test_lapse(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_KEEP);

	wan_sites_start(s, W, WAN_CLAIM_NONE);
	assert_true(wan_sites_reach(s, 4 * SITES_RTT, s->g[A].restarts == 1));
	assert_true(wan_sites_reach(s, 4 * SITES_RTT, s->g[A].granted == 2));
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
	s->cut = true;
	assert_true(wan_sites_reach(s, SITES_DOWN + SITES_RTT, !s->g[A].up));
	assert_false(wan_sites_granted(s, A));
	wan_sites_run(s, RWY_SEC);
	s->cut = false;
	assert_true(wan_sites_reach(s, 2 * RWY_SEC, wan_sites_granted(s, A)));
	assert_true(wan_sites_believes(s, W, A));
	assert_int_equal(s->g[A].granted, 3);
	assert_int_equal(s->g[W].restarts, 0);
	assert_true(wan_sites_free(s));
}

/* --- silence ------------------------------------------------------------------------------------ */
static void test_silent(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	s->flood = true;
	wan_sites_run(s, 10 * RWY_SEC);
	assert_int_equal(s->g[S].hellos + s->g[S].frames, 0);
	assert_true(wan_next(s->g[S].t) == RWY_NEVER);
	assert_true(wan_sites_counters(s, S)->drop_silent > 10);
	assert_int_equal(wan_sites_counters(s, S)->rx_datagrams, 0);
	/* One that was up falls silent, and comes back. */
	uint64_t hellos = s->g[A].hellos, frames = s->g[A].frames;

	wan_sites_claim(s, A, WAN_CLAIM_SILENT);
	assert_false(wan_sites_granted(s, A));
	wan_sites_run(s, RWY_MS);
	assert_false(s->g[A].up);
	assert_int_equal(wan_sites_counters(s, A)->went_down, 0);
	wan_sites_run(s, 10 * RWY_SEC);
	assert_true(s->g[A].hellos == hellos && s->g[A].frames == frames);
	assert_false(s->g[W].up);
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
	assert_true(wan_sites_believes(s, W, A));
	assert_int_equal(s->g[W].restarts, 0);
	assert_true(wan_sites_free(s));
}

static void test_yield(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	wan_sites_run(s, RWY_SEC);
	uint64_t frames = s->g[A].frames, asked = s->g[A].asked, hellos = s->g[A].hellos;

	wan_sites_claim(s, A, WAN_CLAIM_YIELD);
	assert_false(wan_sites_granted(s, A));
	wan_sites_run(s, 3 * RWY_SEC);
	assert_true(s->g[A].frames == frames && s->g[A].asked == asked);
	assert_true(s->g[A].hellos > hellos); /* the witness asks, since it hears nothing */
	assert_true(s->g[A].up && wan_sites_counters(s, A)->drop_silent);
	assert_true(wan_sites_reach(s, RWY_SEC, wan_sites_believes(s, W, A)));
	/* What it claimed before still protects it from others. */
	wan_sites_start(s, S, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced));
	assert_true(wan_sites_reach(s, RWY_SEC, wan_sites_believes(s, W, A)));
	wan_sites_claim(s, S, WAN_CLAIM_INHERIT);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(s->g[A].frames == frames && s->g[A].asked == asked);
	/* The hand-over was given up too late. */
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[A].replaced));
	assert_true(wan_sites_free(s));
}

/*
 * One that hands over believes its peer as before. It gives the tunnel to no other one, for the
 * gateway that takes over at its site may have confirmed the peer.
 */
static void test_yield_witness(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	wan_sites_claim(s, W, WAN_CLAIM_YIELD);
	wan_sites_start(s, S, WAN_CLAIM_TAKE);
	wan_sites_run(s, RWY_SEC);
	assert_true(wan_sites_believes(s, W, A));
	assert_false(wan_sites_granted(s, S) || s->g[S].replaced || s->g[A].replaced);
	wan_sites_claim(s, W, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * RWY_SEC, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_free(s));
}

/* Nor does one that asks who serves at its own site, whatever it claims. */
static void test_question_witness(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	wan_claim_question(s->g[W].t, true);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	wan_sites_run(s, RWY_SEC);
	assert_true(wan_sites_believes(s, W, A) && wan_sites_counters(s, W)->drop_refused);
	assert_false(wan_sites_granted(s, S) || s->g[S].replaced);
	wan_claim_question(s->g[W].t, false);
	assert_true(wan_sites_reach(s, 2 * RWY_SEC, wan_sites_granted(s, S)));
	assert_true(wan_sites_free(s));
}

/* --- another tunnel decides ------------------------------------------------------------------- */

/* One that takes waits, whatever the other one claims, until it is named; then that one is out. */
static void test_led(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_KEEP);

	s->flood = true;
	wan_claim_led(s->g[W].t, s->g[A].cfg.epoch, s->now);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	wan_sites_run(s, RWY_SEC);
	assert_true(wan_sites_believes(s, W, A));
	assert_false(s->g[S].replaced || wan_sites_granted(s, S));
	wan_claim_led(s->g[W].t, s->g[S].cfg.epoch, s->now);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_reach(s, RWY_SEC, s->g[A].replaced));
	assert_true(wan_claim_over(s->g[A].t));
	assert_true(wan_sites_free(s));
}

/* The first one of a pair waits, too. One that is not of a pair does not. */
static void test_led_first(void **state)
{
	for (unsigned pair = 0; pair < 2; pair++) {
		struct wan_sites *s = wan_sites_new();

		wan_sites_start(s, W, WAN_CLAIM_NONE);
		wan_claim_led(s->g[W].t, 0, s->now);
		wan_sites_start(s, A, pair ? WAN_CLAIM_KEEP : WAN_CLAIM_NONE);
		wan_sites_run(s, RWY_SEC);
		assert_int_equal(wan_sites_believes(s, W, A), !pair);
		wan_claim_led(s->g[W].t, s->g[A].cfg.epoch, s->now);
		assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_believes(s, W, A)));
		assert_true(wan_sites_free(s));
	}
}

/* --- others ------------------------------------------------------------------------------------- */
/* A peer that knows nothing of claims: as if there were none. */
static void test_older_peer(void **state)
{
	struct wan_sites *s = wan_sites_new();

	s->old = true;
	wan_sites_start(s, A, WAN_CLAIM_KEEP);
	wan_sites_start(s, S, WAN_CLAIM_SILENT);
	wan_sites_start(s, W, WAN_CLAIM_NONE);
	assert_true(
	    wan_sites_reach(s, 3 * SITES_RTT, wan_sites_believes(s, A, W) && wan_sites_believes(s, W, A)));
	wan_sites_run(s, 10 * RWY_SEC);
	assert_true(s->g[A].up && s->g[W].up);
	assert_int_equal(s->g[A].granted, 0);
	assert_true(s->g[A].hellos < 40);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(
	    wan_sites_reach(s, 3 * SITES_RTT, wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W)));
	assert_false(wan_sites_granted(s, S));
	assert_true(wan_sites_free(s));
}

/* The active gateway and the witness speak by a reliable carrier; the standby has none. */
static void test_stream(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	assert_int_equal(wan_stream_use(s->g[A].t, true, s->now), 0);
	assert_int_equal(wan_stream_use(s->g[W].t, true, s->now), 0);
	wan_sites_claim(s, A, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced));
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_reach(s, RWY_SEC, s->g[A].replaced));
	wan_stream_lost(s->g[W].t, s->now);
	wan_sites_claim(s, S, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, S)));
	wan_sites_run(s, 3 * RWY_SEC);
	assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
	assert_true(wan_sites_free(s));
}

/* A gateway without keys cannot claim; when it has some, it does. */
static void test_keys(void **state)
{
	struct wan_sites *s = wan_sites_new();

	s->aead = &aead_test;
	wan_sites_start(s, A, WAN_CLAIM_HOLD);
	wan_sites_start(s, S, WAN_CLAIM_SILENT);
	wan_sites_start(s, W, WAN_CLAIM_NONE);
	wan_sites_keys(s, A, W);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	wan_sites_run(s, RWY_SEC);
	assert_int_equal(s->g[S].hellos, 0);
	assert_true(wan_sites_granted(s, A));
	wan_sites_keys(s, S, W);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_free(s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_hold),
	    cmocka_unit_test(test_change),
	    cmocka_unit_test(test_numbers),
	    cmocka_unit_test(test_lapse),
	    cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_yield),
	    cmocka_unit_test(test_yield_witness),
	    cmocka_unit_test(test_question_witness),
	    cmocka_unit_test(test_led),
	    cmocka_unit_test(test_led_first),
	    cmocka_unit_test(test_older_peer),
	    cmocka_unit_test(test_stream),
	    cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
