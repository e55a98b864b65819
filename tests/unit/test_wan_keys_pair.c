/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and a pair of gateways: both may have keys with the witness, and only one has the tunnel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/aead_test.h"
#include "tests/lib/wan_sites.h"
#include "wan/tunnel.h"

/* A has the tunnel, with keys and this claim; S is silent and has no keys. */
static struct wan_sites *begin(enum wan_claim c, enum wan_claim of_witness)
{
	struct wan_sites *s = wan_sites_new();

	s->aead = &aead_test;
	wan_sites_start(s, A, c);
	wan_sites_start(s, S, WAN_CLAIM_SILENT);
	wan_sites_start(s, W, of_witness);
	wan_sites_keys(s, A, W);
	assert_true(
	    wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A) && wan_sites_believes(s, W, A)));
	return s;
}

/* The witness sends n packets; A gets all of them at once. */
static void passes(struct wan_sites *s, struct wan_txflow **f, unsigned n)
{
	uint64_t before = s->g[A].got;

	if (!*f)
		assert_int_equal(wan_tx_open(s->g[W].t, f, (const uint8_t *)"", 1, NULL, s->now), 0);
	for (unsigned i = 0; i < n; i++) {
		struct rwy_buf *b = wan_pool_get(&s->pool, 100);

		memset(b->data, 0, b->len);
		wan_tx_send(*f, b, s->now);
	}
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[A].got == before + n));
}

/* The standby has newer keys, asks, and is refused: the active gateway notices nothing of it. */
static void test_refused(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_KEEP, WAN_CLAIM_NONE);
	struct wan_txflow *f = NULL;

	passes(s, &f, 5);
	wan_sites_keys(s, S, W);
	passes(s, &f, 5);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced));
	s->speaker[0] = A; /* the switch: it has announced itself */
	passes(s, &f, 5);
	assert_true(wan_sites_granted(s, A) && wan_sites_believes(s, W, A));
	assert_true(wan_sites_free(s));
}

/* The standby asks and gets the tunnel. The gateway that lost it is told so with its own keys. */
static void test_taken(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_HOLD, WAN_CLAIM_NONE);
	struct wan_txflow *f = NULL;

	passes(s, &f, 5);
	wan_sites_keys(s, S, W);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
	wan_sites_run(s, 2 * RWY_SEC);
	assert_true(s->g[A].replaced);
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_free(s));
}

/* New keys for the one that has the tunnel take over while packets pass, at a single gateway and at
 * one of a pair. */
static void test_renewed(void **state)
{
	for (unsigned pair = 0; pair < 2; pair++) {
		struct wan_sites *s = begin(WAN_CLAIM_KEEP, pair ? WAN_CLAIM_KEEP : WAN_CLAIM_NONE);
		struct wan_txflow *f = NULL;

		assert_true(wan_sites_reach(s, RWY_SEC, !pair || wan_sites_granted(s, W)));
		for (unsigned i = 0; i < 8; i++) {
			uint64_t sets = wan_sites_counters(s, A)->key_sets;

			passes(s, &f, 3);
			wan_sites_keys(s, A, W);
			assert_true(wan_sites_reach(s, 3 * SITES_RTT,
			    wan_sites_counters(s, A)->key_sets == sets + 1 &&
			        wan_sites_counters(s, W)->key_sets == sets + 1));
			passes(s, &f, 3);
			wan_sites_run(s, 200 * RWY_MS);
		}
		assert_int_equal(wan_sites_counters(s, A)->drop_no_key, 0);
		assert_int_equal(wan_sites_counters(s, W)->drop_no_key, 0);
		assert_true(wan_sites_free(s));
	}
}

/* The HELLO that asks for the new keys is lost. */
static void test_renewed_with_loss(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_KEEP, WAN_CLAIM_KEEP);
	uint64_t sets;

	wan_sites_run(s, RWY_SEC);
	sets = wan_sites_counters(s, A)->key_sets;
	s->cut = true;
	wan_sites_keys(s, A, W);
	wan_sites_run(s, 100 * RWY_MS);
	assert_int_equal(wan_sites_counters(s, A)->key_sets, sets);
	s->cut = false;
	assert_true(wan_sites_reach(s, RWY_SEC,
	    wan_sites_counters(s, A)->key_sets == sets + 1 &&
	        wan_sites_counters(s, W)->key_sets == sets + 1));
	assert_true(wan_sites_free(s));
}

static unsigned sets(struct wan_sites *s, int i, enum wan_key_state state)
{
	unsigned n = 0;

	for (unsigned j = 0; j < WAN_KEY_SETS; j++)
		n += s->g[i].t->keys->set[j].state == state;
	return n;
}

/*
 * The standby has keys before it needs them, and asks for the tunnel at once: also when it
 * did not get the last ones, and when the tunnel's own keys were renewed meanwhile.
 */
static void test_reserved(void **state)
{
	for (unsigned lost = 0; lost < 2; lost++)
		for (unsigned i = 0; i < 4; i++) {
			bool renewed = i & 1, down = i & 2; /* the witness has noticed the silence */
			struct wan_sites *s = begin(WAN_CLAIM_HOLD, WAN_CLAIM_NONE);
			struct wan_txflow *f = NULL;

			for (unsigned k = 0; k < 5; k++) {
				wan_sites_reserve(s, S, W, true);
				wan_sites_run(s, RWY_MS);
			}
			if (lost)
				wan_sites_reserve(s, S, W, false);
			if (renewed)
				wan_sites_keys(s, A, W);
			passes(s, &f, 5);
			assert_int_equal(sets(s, W, WAN_KEY_RESERVED), 2);
			assert_int_equal(sets(s, W, WAN_KEY_ASIDE), 0);
			wan_sites_kill(s, A);
			wan_sites_run(s, down ? 2 * SITES_DOWN : SITES_DOWN / 2);
			wan_sites_claim(s, S, WAN_CLAIM_TAKE);
			assert_true(wan_sites_reach(s, 2 * SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
			assert_true(wan_sites_believes(s, W, S));
			assert_int_equal(s->g[W].t->keys->used->state, WAN_KEY_USED);
			assert_true(s->g[W].t->keys->used->reserved);
			assert_int_equal(wan_sites_counters(s, W)->drop_no_key, 0);
			wan_sites_keys(s, S, W); /* its own exchange, which it begins when it asks */
			wan_sites_run(s, 2 * RWY_SEC);
			assert_true(wan_sites_granted(s, S) && wan_sites_believes(s, W, S));
			assert_true(wan_sites_free(s));
		}
}

/* Keys that the standby did not get do not push out those that it has. */
static void test_reserved_in_vain(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_HOLD, WAN_CLAIM_NONE);
	struct wan_txflow *f = NULL;

	wan_sites_reserve(s, S, W, true);
	for (unsigned i = 0; i < 5; i++) {
		wan_sites_run(s, RWY_MS);
		wan_sites_reserve(s, S, W, false);
	}
	assert_int_equal(sets(s, W, WAN_KEY_RESERVED), 2);
	passes(s, &f, 5);
	wan_sites_kill(s, A);
	wan_sites_run(s, SITES_DOWN / 2);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
	assert_true(wan_sites_free(s));
}

/* A standby that is refused has used them: the active gateway notices nothing, and next ones work. */
static void test_reserved_refused(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_KEEP, WAN_CLAIM_NONE);
	struct wan_txflow *f = NULL;

	wan_sites_reserve(s, S, W, true);
	passes(s, &f, 5);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced));
	s->speaker[0] = A;
	passes(s, &f, 5);
	assert_true(wan_sites_granted(s, A) && wan_sites_believes(s, W, A));
	wan_sites_start(s, S, WAN_CLAIM_SILENT); /* as a new process */
	wan_sites_reserve(s, S, W, true);
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	passes(s, &f, 5);
	wan_sites_run(s, RWY_SEC);
	wan_sites_kill(s, A);
	wan_sites_run(s, SITES_DOWN / 2);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
	assert_true(wan_sites_free(s));
}

/* Keys for a standby that is no more last until the tunnel's own were renewed twice. */
static void test_reserved_ends(void **state)
{
	struct wan_sites *s = begin(WAN_CLAIM_KEEP, WAN_CLAIM_NONE);

	wan_sites_reserve(s, S, W, true);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(sets(s, W, WAN_KEY_RESERVED), 1);
		wan_sites_run(s, RWY_SEC);
		wan_sites_keys(s, A, W);
		wan_sites_run(s, RWY_SEC);
	}
	assert_int_equal(sets(s, W, WAN_KEY_RESERVED), 0);
	assert_true(wan_sites_free(s));
}

/* A standby that took over and exchanges no keys of its own loses these. Silence costs none. */
static void test_reserved_without_exchange(void **state)
{
	for (unsigned exchanges = 0; exchanges < 2; exchanges++) {
		struct wan_sites *s = begin(WAN_CLAIM_HOLD, WAN_CLAIM_NONE);
		rwy_time began;

		wan_sites_reserve(s, S, W, true);
		wan_sites_run(s, 60 * RWY_SEC);
		wan_sites_kill(s, A);
		wan_sites_run(s, SITES_DOWN / 2);
		wan_sites_claim(s, S, WAN_CLAIM_TAKE);
		began = s->now;
		assert_true(wan_sites_reach(s, 2 * SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
		wan_sites_run(s, 20 * RWY_SEC);
		assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
		if (exchanges)
			wan_sites_keys(s, S, W);
		wan_sites_run(s, began + 35 * RWY_SEC - s->now);
		assert_int_equal(wan_sites_believes(s, W, S), exchanges);
		assert_int_equal(wan_keys_ready(s->g[W].t), exchanges);
		assert_int_equal(wan_keys_ready(s->g[S].t), exchanges);
		wan_sites_keys(s, S, W);
		wan_sites_run(s, 2 * RWY_SEC);
		assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
		assert_true(wan_sites_free(s));
	}
}

/* A gateway that hands over, or is silent, while it wants to try newer keys: it waits, and rests. */
static void test_silent_with_newer_keys(void **state)
{
	static const enum wan_claim claims[] = {WAN_CLAIM_SILENT, WAN_CLAIM_YIELD};

	for (unsigned i = 0; i < 2; i++) {
		struct wan_sites *s = begin(WAN_CLAIM_HOLD, WAN_CLAIM_HOLD);
		struct wan_tunnel *t = s->g[A].t;
		struct wan_tx tx;

		wan_sites_run(s, RWY_SEC);
		s->cut = true;
		wan_sites_keys(s, A, W);
		wan_sites_run(s, RWY_MS);
		assert_true(t->keys->try_at != RWY_NEVER);
		wan_sites_claim(s, A, claims[i]);
		s->now += 5 * RWY_SEC;
		for (unsigned k = 0; k < 10; k++) { /* it went down, flows notice it */
			wan_tick(t, s->now);
			while (wan_poll(t, &tx, 1, s->now))
				assert_int_not_equal(claims[i], WAN_CLAIM_SILENT);
		}
		assert_true(wan_next(t) > s->now);
		assert_true(wan_sites_free(s));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_taken),
	    cmocka_unit_test(test_renewed),
	    cmocka_unit_test(test_renewed_with_loss),
	    cmocka_unit_test(test_reserved),
	    cmocka_unit_test(test_reserved_in_vain),
	    cmocka_unit_test(test_reserved_refused),
	    cmocka_unit_test(test_reserved_ends),
	    cmocka_unit_test(test_reserved_without_exchange),
	    cmocka_unit_test(test_silent_with_newer_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
