/* SPDX-License-Identifier: Apache-2.0 */
/* The witness of a pair of gateways: what it grants and refuses, whatever is lost, late or sent again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_sites.h"
#include "wan/tunnel.h"

/* Everything is as it shall be after S took over from A, which is alive or not. */
static void check_taken(struct wan_sites *s)
{
	assert_true(wan_sites_granted(s, S));
	assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
	assert_int_equal(s->g[W].restarts, 1);
	assert_int_equal(s->g[S].granted, 1);
	assert_int_equal(s->g[S].replaced, 0);
	assert_int_equal(s->g[W].replaced, 0);
}

/* --- taking over -------------------------------------------------------------------------------- */
/* What the witness has in custody goes to the standby. */
static void test_take_after_silence(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
	struct wan_txflow *f;

	s->g[A].delivers = false;
	assert_int_equal(wan_tx_open(s->g[W].t, &f, (const uint8_t *)"", 1, NULL, s->now), 0);
	for (unsigned i = 0; i < 20; i++) {
		struct rwy_buf *b = wan_pool_get(&s->pool, 100);

		memset(b->data, 0, b->len);
		wan_tx_send(f, b, s->now);
	}
	assert_true(wan_sites_reach(s, RWY_SEC, s->g[A].got == 20));
	wan_sites_kill(s, A);
	assert_true(wan_sites_reach(s, SITES_DOWN + SITES_RTT, !s->g[W].up));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	check_taken(s);
	assert_true(wan_sites_reach(s, RWY_SEC, s->g[S].got == 20 && !wan_tx_queued(f)));
	wan_sites_claim(s, S, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, S)));
	assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
	assert_true(wan_sites_free(s));
}

static void test_take_while_alive(void **state)
{
	for (unsigned flood = 0; flood < 2; flood++) {
		struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

		s->flood = flood;
		wan_sites_claim(s, S, WAN_CLAIM_TAKE);
		assert_true(wan_sites_reach(s, 2 * SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
		check_taken(s);
		/* it hears of that as soon as it has said something */
		assert_true(wan_sites_reach(s, 300 * RWY_MS + 4 * SITES_RTT, s->g[A].replaced));
		assert_int_equal(wan_claimed(s->g[A].t), WAN_CLAIM_SILENT);
		assert_true(wan_claim_over(s->g[A].t));
		wan_sites_run(s, 5 * RWY_SEC);
		assert_int_equal(s->g[A].replaced, 1);
		check_taken(s);
		/* for good */
		wan_sites_claim(s, A, WAN_CLAIM_TAKE);
		assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[A].replaced == 2));
		wan_sites_kill(s, S);
		assert_true(wan_sites_reach(s, SITES_DOWN + SITES_RTT, !s->g[W].up));
		wan_sites_claim(s, A, WAN_CLAIM_TAKE);
		assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[A].replaced == 3));
		assert_false(s->g[W].up);
		/* as a new process it may come back */
		wan_sites_start(s, A, WAN_CLAIM_KEEP);
		assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
		assert_int_equal(s->g[W].restarts, 2);
		assert_true(wan_sites_free(s));
	}
}

static void test_take_from_keep(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_KEEP);

	for (unsigned i = 0; i < 2; i++) {
		wan_sites_claim(s, S, i ? WAN_CLAIM_INHERIT : WAN_CLAIM_TAKE);
		assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[S].replaced == i + 1));
		assert_false(s->g[S].up || wan_claim_over(s->g[S].t));
	}
	assert_true(wan_sites_counters(s, W)->drop_refused >= 2);
	assert_int_equal(s->g[W].restarts, 0);
	assert_true(wan_sites_believes(s, W, A) && wan_sites_granted(s, A));
	/* It may have it when the other one lets it go. */
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_granted(s, A)));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_believes(s, W, S));
	assert_true(wan_sites_free(s));
}

/* While a taker has not said HOLD or KEEP, only another one that takes gets the tunnel. */
static void test_take_from_taker(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	wan_sites_start(s, A, WAN_CLAIM_KEEP);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, s->g[A].replaced));
	check_taken(s);
	wan_sites_claim(s, A, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
	assert_true(wan_sites_believes(s, W, A));
	assert_true(wan_sites_free(s));
}

/* A gateway that restarts while its standby has the tunnel, or could have it, is refused. */
static void test_restart(void **state)
{
	static const enum wan_claim claims[] = {
	    WAN_CLAIM_NONE, WAN_CLAIM_HOLD, WAN_CLAIM_KEEP, WAN_CLAIM_TAKE};

	for (unsigned i = 0; i < 3; i++) {
		struct wan_sites *s = wan_sites_begin(i & 1 ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP);

		wan_sites_start(s, A, claims[i]);
		wan_sites_run(s, SITES_DOWN - 310 * RWY_MS);
		assert_int_equal(s->g[W].restarts, 0);
		assert_false(s->g[A].up || wan_sites_granted(s, A));
		assert_int_equal(s->g[A].replaced, claims[i] != WAN_CLAIM_NONE);
		assert_true(wan_sites_counters(s, W)->drop_refused);
		assert_true(wan_sites_reach(s, RWY_SEC, !s->g[W].up));
		wan_sites_claim(s, A, claims[i]);
		assert_true(wan_sites_reach(
		    s, RWY_SEC + 3 * SITES_RTT, wan_sites_believes(s, W, A) && wan_sites_believes(s, A, W)));
		assert_int_equal(s->g[W].restarts, 1);
		assert_true(wan_sites_free(s));
	}
	for (unsigned i = 0; i < 4; i++) { /* the one before is silent */
		struct wan_sites *s = wan_sites_begin(WAN_CLAIM_KEEP);

		wan_sites_kill(s, A);
		assert_true(wan_sites_reach(s, SITES_DOWN + SITES_RTT, !s->g[W].up));
		wan_sites_start(s, A, claims[i]);
		assert_true(wan_sites_reach(
		    s, 3 * SITES_RTT, wan_sites_believes(s, W, A) && wan_sites_believes(s, A, W)));
		assert_true(wan_sites_reach(
		    s, 2 * SITES_RTT, wan_sites_granted(s, A) || claims[i] == WAN_CLAIM_NONE));
		assert_int_equal(s->g[A].replaced, 0);
		assert_true(wan_sites_free(s));
	}
}

/* The engine claims again in the call that tells it of the refusal: it is refused again and again,
 * and no faster than a round trip each; when the other one is silent it is granted. */
static void test_claim_again(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

	wan_sites_start(s, A, WAN_CLAIM_KEEP);
	s->g[A].claim_again = true;
	s->g[A].again = WAN_CLAIM_KEEP;
	assert_true(wan_sites_reach(s, 2 * SITES_DOWN, wan_sites_granted(s, A)));
	assert_true(wan_sites_believes(s, W, A) && wan_sites_believes(s, A, W));
	assert_in_range(s->g[A].replaced, 10, SITES_DOWN / SITES_RTT + 1);
	assert_true(wan_sites_free(s));
}

static void inject_hello(struct wan_sites *s, uint64_t epoch, uint64_t nonce)
{
	struct wan_f_hello f = {.flags = WAN_HELLO_WANT | WAN_HELLO_HOLD << WAN_HELLO_CLAIM,
	    .claim = 1,
	    .mtu = 1472,
	    .tunnel_id = 77,
	    .epoch = epoch,
	    .nonce = nonce,
	    .rx_window = 9};
	struct rwy_buf *b = wan_pool_get(&s->pool, WAN_PKT_HDR + WAN_HELLO_LEN);

	wan_pkt_put(b->data, &(struct wan_pkt){.version = WAN_VERSION, .type = WAN_PKT_HELLO});
	wan_f_hello_put(b->data + WAN_PKT_HDR, &f);
	wan_pkt_seal(b->data, b->len, NULL, 0);
	wan_recv(s->g[W].t, 0, b, 0, s->now);
}

/* One is challenged, since the believed one is silent. That one comes back: the other one is refused,
 * and no HELLO but the refusal is for it any longer. */
static void test_refused_nonce(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
	unsigned refusals = 0;

	wan_sites_claim(s, A, WAN_CLAIM_SILENT);
	assert_true(wan_sites_reach(s, 2 * SITES_DOWN, !s->g[W].up));
	inject_hello(s, 999, 4711);
	wan_sites_run(s, RWY_MS);
	assert_true(s->g[W].t->hs.peer_nonce == 4711);
	wan_sites_claim(s, A, WAN_CLAIM_HOLD);
	assert_true(wan_sites_reach(s, 2 * SITES_RTT, wan_sites_believes(s, W, A)));
	s->keep_of = W;
	inject_hello(s, 999, 4712);
	wan_sites_run(s, 5 * RWY_SEC);
	assert_true(s->kept_n > 1);
	for (unsigned i = 0; i < s->kept_n; i++) {
		struct wan_f_hello f;

		assert_true(wan_f_hello_get(s->kept[i].d + WAN_PKT_HDR, WAN_HELLO_LEN, &f));
		if (f.echo_epoch != 999)
			continue;
		assert_true(f.flags == WAN_HELLO_GONE && f.echo == 4712 && !f.nonce && !f.mtu);
		refusals++;
	}
	assert_int_equal(refusals, 1);
	assert_true(wan_sites_believes(s, W, A) && wan_sites_granted(s, A));
	assert_true(wan_sites_free(s));
}

/* --- losses and old HELLOs ---------------------------------------------------------------------- */
static void test_replay(void **state)
{
	struct wan_sites *s = wan_sites_new();

	s->keep_of = A;
	wan_sites_start(s, A, WAN_CLAIM_TAKE);
	wan_sites_start(s, S, WAN_CLAIM_SILENT);
	wan_sites_start(s, W, WAN_CLAIM_NONE);
	for (unsigned i = 0; i < 20; i++) {
		assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
		wan_sites_claim(s, A, i & 1 ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP);
	}
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, A)));
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, S)));
	assert_true(wan_sites_reach(s, RWY_SEC, s->g[A].replaced));
	assert_true(s->kept_n > 20);
	wan_sites_replay(s, W);
	check_taken(s);
	assert_int_equal(s->g[A].replaced, 1);
	/* nor when the new one is silent */
	wan_sites_kill(s, S);
	assert_true(wan_sites_reach(s, SITES_DOWN + SITES_RTT, !s->g[W].up));
	wan_sites_replay(s, W);
	assert_false(s->g[W].up);
	assert_int_equal(s->g[W].restarts, 1);
	assert_true(wan_sites_free(s));
}

/* Any one HELLO is lost: the end is the same. */
static void test_losses(void **state)
{
	uint64_t n = 1;

	for (uint64_t lose = 1; lose <= n; lose++) {
		struct wan_sites *s = wan_sites_new();

		s->lose = lose;
		wan_sites_start(s, A, WAN_CLAIM_KEEP);
		wan_sites_start(s, S, WAN_CLAIM_SILENT);
		wan_sites_start(s, W, WAN_CLAIM_NONE);
		assert_true(
		    wan_sites_reach(s, RWY_SEC, wan_sites_granted(s, A) && wan_sites_believes(s, W, A)));
		wan_sites_claim(s, A, WAN_CLAIM_HOLD);
		assert_true(wan_sites_reach(s, 4 * SITES_RTT, wan_sites_granted(s, A)));
		assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_HOLD);
		wan_sites_claim(s, S, WAN_CLAIM_TAKE);
		assert_true(wan_sites_reach(s, 5 * SITES_RTT, wan_sites_granted(s, S)));
		assert_true(wan_sites_reach(s, RWY_SEC, s->g[A].replaced));
		wan_sites_claim(s, S, WAN_CLAIM_KEEP);
		assert_true(wan_sites_reach(s, 4 * SITES_RTT, wan_sites_granted(s, S)));
		wan_sites_run(s, RWY_SEC);
		assert_true(
		    wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W) && wan_sites_granted(s, S));
		assert_int_equal(s->g[W].t->peer.claim, WAN_HELLO_KEEP);
		assert_int_equal(s->g[A].replaced, 1);
		assert_int_equal(s->g[S].replaced, 0);
		assert_int_equal(s->g[W].restarts, 1);
		n = s->hellos;
		assert_true(wan_sites_free(s));
	}
	assert_in_range(n, 12, 120);
}

/* --- proofs that the other gateway of the pair was given ----------------------------------------- */

static struct wan_proof spare_of(struct wan_sites *s, int i)
{
	struct wan_proof p;

	wan_sites_run(s, 4 * SITES_RTT); /* the last HELLO of the witness has come */
	assert_true(wan_proof_spare(s->g[i].t, &p));
	assert_int_equal(p.epoch, s->g[W].cfg.epoch);
	return p;
}

/* The active gateway dies: its standby has the tunnel a round trip later, not two. */
static void test_proof(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
	struct wan_proof p = spare_of(s, A);

	wan_sites_kill(s, A);
	wan_proof_use(s->g[S].t, &p);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	assert_true(wan_sites_reach(s, SITES_RTT + RWY_MS, wan_sites_granted(s, S)));
	wan_sites_run(s, RWY_SEC);
	assert_true(wan_sites_believes(s, W, S) && wan_sites_believes(s, S, W));
	assert_int_equal(s->g[W].restarts, 1);
	assert_true(wan_sites_free(s));
}

/*
 * The standby asks with a proof and dies; meanwhile a later claim of the active gateway was
 * confirmed. Its HELLO comes late, and is no proof.
 */
static void test_proof_late(void **state)
{
	struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
	struct wan_proof p = spare_of(s, A);

	for (unsigned i = 0; i < 2; i++) {
		wan_sites_claim(s, A, i ? WAN_CLAIM_HOLD : WAN_CLAIM_KEEP);
		assert_true(wan_sites_reach(s, 4 * SITES_RTT, wan_sites_granted(s, A)));
	}
	wan_proof_use(s->g[S].t, &p);
	wan_sites_claim(s, S, WAN_CLAIM_TAKE);
	wan_sites_run(s, SITES_DELAY / 2);
	wan_sites_kill(s, S);
	wan_sites_run(s, RWY_SEC);
	assert_true(wan_sites_believes(s, W, A) && wan_sites_granted(s, A));
	assert_int_equal(s->g[W].restarts + s->g[A].replaced, 0);
	assert_true(wan_sites_free(s));
}

/*
 * Two gateways that are both active, with a standby, come to have a nonce of each other that is
 * still good, whatever is lost on the way. Then they are silent about it.
 */
static void test_spares(void **state)
{
	for (unsigned i = 0; i < 60; i++) {
		struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
		const int of[2] = {A, W};
		uint64_t hellos;

		s->loss_ppm = i % 3 * 150000;
		wan_sites_run(s, i * RWY_MS);
		wan_sites_claim(s, W, WAN_CLAIM_HOLD);
		assert_true(
		    wan_sites_reach(s, 3 * RWY_SEC, wan_sites_granted(s, A) && wan_sites_granted(s, W)));
		wan_sites_run(s, 3 * RWY_SEC);
		s->loss_ppm = 0;
		wan_sites_run(s, RWY_SEC);
		hellos = s->hellos;
		wan_sites_run(s, 10 * RWY_SEC);
		assert_int_equal(s->hellos, hellos);
		for (unsigned k = 0; k < 2; k++) {
			struct wan_proof p;

			assert_true(wan_proof_spare(s->g[of[k]].t, &p));
			assert_int_equal(p.nonce, s->g[of[!k]].t->hs.nonce);
		}
		assert_true(wan_sites_free(s));
	}
}

/* Both active gateways die at once, and both standbys take over, at once or nearly so. */
static void test_both_sites(void **state)
{
	for (unsigned i = 0; i < 60; i++) {
		struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);

		s->flood = i & 1;
		wan_sites_claim(s, W, WAN_CLAIM_HOLD);
		wan_sites_start(s, V, WAN_CLAIM_SILENT);
		assert_true(wan_sites_reach(s, 3 * SITES_RTT, wan_sites_granted(s, W)));
		wan_sites_kill(s, A);
		wan_sites_kill(s, W);
		wan_sites_run(s, 20 * RWY_MS);
		s->lose = s->hellos + i % 7; /* 0: none */
		wan_sites_claim(s, S, WAN_CLAIM_TAKE);
		wan_sites_run(s, i / 2 * RWY_MS);
		wan_sites_claim(s, V, WAN_CLAIM_TAKE);
		/* Each waits for an active gateway that would answer at once. */
		wan_sites_run(s, 4900 * RWY_MS);
		assert_false(wan_sites_granted(s, S) || wan_sites_granted(s, V));
		assert_true(wan_sites_reach(
		    s, 1500 * RWY_MS + 6 * SITES_RTT, wan_sites_granted(s, S) && wan_sites_granted(s, V)));
		assert_true(wan_sites_believes(s, S, V) && wan_sites_believes(s, V, S));
		wan_sites_claim(s, S, WAN_CLAIM_KEEP);
		wan_sites_claim(s, V, WAN_CLAIM_HOLD);
		assert_true(
		    wan_sites_reach(s, 4 * SITES_RTT, wan_sites_granted(s, S) && wan_sites_granted(s, V)));
		wan_sites_run(s, 3 * RWY_SEC);
		assert_true(wan_sites_granted(s, S) && wan_sites_granted(s, V));
		assert_int_equal(s->g[S].restarts + s->g[V].restarts, 0);
		assert_int_equal(s->g[S].replaced + s->g[V].replaced, 0);
		assert_true(wan_sites_free(s));
	}
}

/* --- chaos -------------------------------------------------------------------------------------- */
/* What a gateway was seen to do as the witness of the other site. */
struct seen {
	uint64_t witness, believed; /* epochs */
	bool up;
	bool kept, held; /* by a claim that was granted */
	uint64_t gone[WAN_GONE_MAX];
	unsigned gone_n;
};

/* The peer that gateway i believes, if it is alive and i granted this claim to it. */
static bool holds(const struct wan_sites *s, int i, enum wan_claim c, enum wan_hello_claim wire)
{
	const struct wan_tunnel *t = s->g[i].t;
	int other = i < W ? W : A;

	for (int p = other; p < other + 2; p++) {
		const struct wan_gateway *g = &s->g[p];

		if (!g->t || g->cfg.epoch != wan_peer_epoch(t) || !wan_sites_granted(s, p) ||
		    wan_claimed(g->t) != c || wan_peer_epoch(g->t) != t->cfg.epoch)
			continue;
		/* What is granted is what the witness goes by. */
		assert_int_equal(t->peer.claim, wire);
		return true;
	}
	return false;
}

static void look(const struct wan_sites *s, int i, struct seen *v)
{
	const struct wan_tunnel *t = s->g[i].t;

	if (!t)
		return;
	if (v->witness != t->cfg.epoch)
		*v = (struct seen){.witness = t->cfg.epoch};
	if (v->believed && v->believed != wan_peer_epoch(t)) {
		assert_false(v->up && v->kept);
		if (v->up && v->held)
			assert_int_equal(t->peer.claim, WAN_HELLO_TAKE);
		for (unsigned k = 0; k < WAN_GONE_MAX && k < v->gone_n; k++)
			assert_true(v->gone[k] != wan_peer_epoch(t));
		v->gone[v->gone_n++ % WAN_GONE_MAX] = v->believed;
	}
	v->believed = wan_peer_epoch(t);
	v->up = s->g[i].up;
	v->kept = holds(s, i, WAN_CLAIM_KEEP, WAN_HELLO_KEEP);
	v->held = holds(s, i, WAN_CLAIM_HOLD, WAN_HELLO_HOLD);
}

static bool look_all(const struct wan_sites *s, struct seen v[SITES_GATEWAYS])
{
	bool any = false;

	for (int i = 0; i < SITES_GATEWAYS; i++) {
		look(s, i, &v[i]);
		any |= v[i].kept || v[i].held;
	}
	return any;
}

static void act(struct wan_sites *s)
{
	static const enum wan_claim claims[] = {WAN_CLAIM_KEEP, WAN_CLAIM_HOLD, WAN_CLAIM_TAKE,
	    WAN_CLAIM_INHERIT, WAN_CLAIM_SILENT, WAN_CLAIM_YIELD, WAN_CLAIM_HOLD, WAN_CLAIM_TAKE};
	uint64_t r = wan_rng_next(&s->rng);
	enum wan_claim c = claims[r >> 8 & 7];
	int i = r >> 16 & 3;

	switch (r & 15) {
	case 0:
		wan_sites_kill(s, i);
		break;
	case 1:
	case 2:
		wan_sites_start(s, i, c);
		break;
	case 3:
		wan_sites_start(s, i, WAN_CLAIM_HOLD);
		break;
	case 4:
		s->cut = true;
		break;
	default:
		s->cut = false;
		if (s->g[i].t)
			wan_sites_claim(s, i, c);
	}
}

/* The network is good again, and one gateway of each site is left: they come up with each other. */
static void calm(struct wan_sites *s)
{
	s->loss_ppm = s->dup_ppm = 0;
	s->jitter = 0;
	s->cut = false;
	for (int i = A; i <= W; i += W - A) {
		wan_sites_kill(s, i + 1);
		wan_sites_start(s, i, WAN_CLAIM_KEEP);
		s->g[i].claim_again = true;
		s->g[i].again = WAN_CLAIM_KEEP;
	}
	assert_true(wan_sites_reach(s, 2 * SITES_DOWN, wan_sites_granted(s, A) && wan_sites_granted(s, W)));
	assert_true(wan_sites_believes(s, W, A) && wan_sites_believes(s, A, W));
}

/* The gateways of both pairs claim whatever they like, die and restart, on a bad network. What is
 * granted holds. */
static void test_chaos(void **state)
{
	uint64_t restarts = 0, granted = 0;

	for (uint64_t seed = 0; seed < 500; seed++) {
		struct wan_sites *s = wan_sites_begin(WAN_CLAIM_HOLD);
		struct seen v[SITES_GATEWAYS] = {{0}};

		s->rng = seed;
		s->flood = seed & 1;
		s->loss_ppm = seed & 2 ? 200000 : 0;
		s->dup_ppm = seed & 4 ? 100000 : 0;
		s->jitter = seed & 8 ? 30 * RWY_MS : 0;
		if (seed & 16)
			wan_sites_start(s, V, WAN_CLAIM_SILENT);
		for (unsigned i = 0; i < 100; i++) {
			rwy_time until = s->now + (wan_rng_next(&s->rng) % 4 ? 100 : 1500) * RWY_MS;

			act(s);
			while (wan_sites_step(s, until))
				granted += look_all(s, v);
		}
		restarts += s->g[A].restarts + s->g[W].restarts;
		calm(s);
		assert_true(wan_sites_free(s));
	}
	assert_true(restarts > 300 && granted > 100000); /* it was not for nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_take_after_silence),
	    cmocka_unit_test(test_take_while_alive),
	    cmocka_unit_test(test_take_from_keep),
	    cmocka_unit_test(test_take_from_taker),
	    cmocka_unit_test(test_restart),
	    cmocka_unit_test(test_claim_again),
	    cmocka_unit_test(test_refused_nonce),
	    cmocka_unit_test(test_replay),
	    cmocka_unit_test(test_losses),
	    cmocka_unit_test(test_proof),
	    cmocka_unit_test(test_proof_late),
	    cmocka_unit_test(test_spares),
	    cmocka_unit_test(test_both_sites),
	    cmocka_unit_test(test_chaos),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
