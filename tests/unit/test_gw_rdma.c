/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA connections without RDMA: credits (gateway/carrier/rdma_flow.h) and set-up
 * (gateway/carrier/rdma_setup.h), sealed messages (gateway/carrier/rdma_seal.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/carrier/rdma_flow.h"
#include "gateway/carrier/rdma_seal.h"
#include "gateway/carrier/rdma_setup.h"
#include "tests/lib/rng.h"

/* --- set-up ----------------------------------------------------------------------------------- */
/* All cells but the four that go on: LOSE before the end, nothing after it. */
static void set_up(void **state)
{
	static const struct {
		enum gw_rdma_state s;
		enum gw_rdma_event e;
		enum gw_rdma_state next;
		enum gw_rdma_do what;
	} good[] = {{GW_RDMA_ADDRESS, GW_RDMA_EV_RESOLVED, GW_RDMA_ROUTE, GW_RDMA_DO_ROUTE},
	    {GW_RDMA_ROUTE, GW_RDMA_EV_ROUTED, GW_RDMA_REQUESTED, GW_RDMA_DO_CONNECT},
	    {GW_RDMA_REQUESTED, GW_RDMA_EV_ESTABLISHED, GW_RDMA_UP, GW_RDMA_DO_OPEN},
	    {GW_RDMA_ACCEPTED, GW_RDMA_EV_ESTABLISHED, GW_RDMA_UP, GW_RDMA_DO_NOTHING}};
	unsigned went_on = 0;

	for (int s = 0; s < GW_RDMA_STATE_COUNT; s++)
		for (int e = 0; e < GW_RDMA_EVENT_COUNT; e++) {
			struct gw_rdma_step got = gw_rdma_step((enum gw_rdma_state)s, (enum gw_rdma_event)e);
			struct gw_rdma_step want = {
			    GW_RDMA_ENDED, s == GW_RDMA_ENDED ? GW_RDMA_DO_NOTHING : GW_RDMA_DO_LOSE};

			for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
				if ((int)good[i].s == s && (int)good[i].e == e) {
					want = (struct gw_rdma_step){good[i].next, good[i].what};
					went_on++;
				}
			if (got.next != want.next || got.what != want.what)
				fail_msg("%s, event %d: %s, %d", gw_rdma_state_name((enum gw_rdma_state)s), e,
				    gw_rdma_state_name(got.next), got.what);
		}
	assert_int_equal(went_on, 4);
}

static void greetings(void **state)
{
	static const struct {
		const char *what;
		int at;
		uint8_t value;
	} wrong[] = {
	    {"magic", 3, 'r'}, {"version", 4, 2}, {"cipher", 5, 3}, {"too few", 6, 0}, {"too many", 6, 0x41}};
	struct gw_rdma_greeting g = {.slots = 512, .cipher = 2}, few = {.slots = 8}, got;
	uint8_t b[GW_RDMA_GREETING + 40] = {0};

	gw_rdma_greeting_put(b, &g);
	assert_int_equal(gw_rdma_greeting_get(b, sizeof(b), &got), 0); /* the CM's zeros behind it */
	assert_int_equal(got.slots, 512);
	assert_int_equal(got.cipher, 2);
	for (size_t n = 0; n < GW_RDMA_GREETING; n++)
		assert_int_equal(gw_rdma_greeting_get(b, n, &got), RWY_EMALFORMED);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		gw_rdma_greeting_put(b, wrong[i].at == 6 ? &few : &g);
		b[wrong[i].at] = wrong[i].value;
		if (gw_rdma_greeting_get(b, sizeof(b), &got) != RWY_EMALFORMED)
			fail_msg("%s", wrong[i].what);
	}
	g = (struct gw_rdma_greeting){.slots = GW_RDMA_SLOTS_MAX};
	gw_rdma_greeting_put(b, &g);
	assert_int_equal(gw_rdma_greeting_get(b, sizeof(b), &got), 0);
	assert_int_equal(got.slots, GW_RDMA_SLOTS_MAX);
	assert_int_equal(got.cipher, 0);
}

/* A REJ says why; what else comes in one says nothing, and no REJ is a greeting. */
static void refusals(void **state)
{
	uint8_t b[GW_RDMA_GREETING + 40] = {0};
	struct gw_rdma_greeting g;

	for (unsigned why = GW_RDMA_R_VERSION; why <= GW_RDMA_R_RATE; why++) {
		gw_rdma_refusal_put(b, (enum gw_rdma_refusal)why);
		assert_non_null(gw_rdma_refusal_get(b, sizeof(b)));
		assert_int_equal(gw_rdma_greeting_get(b, sizeof(b), &g), RWY_EMALFORMED);
	}
	assert_null(gw_rdma_refusal_get(b, GW_RDMA_GREETING - 1));
	b[5] = 99;
	assert_null(gw_rdma_refusal_get(b, sizeof(b)));
	memset(b, 0, sizeof(b));
	assert_null(gw_rdma_refusal_get(b, sizeof(b)));
}

/* --- sealed messages -------------------------------------------------------------------------- */
#define MSG 300

static struct {
	struct gw_rdma_seal *a, *b;
} two;

static void two_new(rwy_dur rekey)
{
	struct aead_secret s;

	memset(&s, 7, sizeof(s));
	two.a = gw_rdma_seal_new(aead_best(), AEAD_AES_128_GCM, &s, true, rekey, RWY_SEC);
	two.b = gw_rdma_seal_new(aead_best(), AEAD_AES_128_GCM, &s, false, rekey, RWY_SEC);
	assert_true(two.a && two.b);
}

static void two_free(void)
{
	gw_rdma_seal_free(two.a);
	gw_rdma_seal_free(two.b);
}

/* Message i, of any length, from `from`; returns its length. */
static uint32_t message(
    struct gw_rdma_seal *from, uint8_t out[MSG + GW_RDMA_EXTRA], unsigned i, uint32_t immediate, rwy_time now)
{
	const uint32_t n = i % (MSG + 1), head = n < 20 ? n : 20;
	uint8_t text[MSG];

	memset(text, (int)i, sizeof(text));
	assert_int_equal(
	    gw_rdma_seal_put(from, out, &(struct aead_in){text, text + head, head, n - head}, immediate, now),
	    0);
	return n + GW_RDMA_EXTRA;
}

static int opens(struct gw_rdma_seal *at, uint8_t *p, uint32_t n, uint32_t immediate)
{
	enum gw_rdma_type type;

	return gw_rdma_head_get(p, n, &type) || type != GW_RDMA_SEALED
	           ? RWY_EMALFORMED
	           : gw_rdma_seal_get(at, p, n, immediate);
}

/* All lengths, both directions, and keys that change: what was sealed comes out. No two messages of
 * the same text are alike: no nonce and key twice. */
static void sealed(void **state)
{
	uint8_t m[MSG + GW_RDMA_EXTRA], before[AEAD_TAG] = {0}, text[MSG];
	rwy_time now = RWY_SEC;

	two_new(100 * RWY_MS);
	for (unsigned i = 0; i < 4000; i++, now += RWY_MS) {
		struct gw_rdma_seal *from = i % 3 ? two.a : two.b, *to = i % 3 ? two.b : two.a;
		uint32_t n = message(from, m, i, i * 5, now);

		assert_memory_not_equal(m + n - AEAD_TAG, before, AEAD_TAG);
		memcpy(before, m + n - AEAD_TAG, AEAD_TAG);
		assert_int_equal(opens(to, m, n, i * 5), 0);
		memset(text, (int)i, sizeof(text));
		assert_memory_equal(m + GW_RDMA_HEAD, text, n - GW_RDMA_EXTRA);
	}
	assert_true(two.a->updates_sent >= 35 && two.a->updates_sent == two.b->updates_received);
	assert_true(two.b->updates_sent >= 35 && two.b->updates_sent == two.a->updates_received);
	two_free();
}

/* A phase has 2^26 messages at most, whatever the time. */
static void sealed_many(void **state)
{
	uint8_t m[MSG + GW_RDMA_EXTRA];

	two_new(3600 * RWY_SEC);
	two.a->tx.n = two.b->rx.n = GW_RDMA_PHASE - 1;
	for (unsigned i = 0; i < 3; i++) {
		uint32_t n = message(two.a, m, 30, 0, RWY_SEC);

		assert_int_equal(m[3], i > 0);
		assert_int_equal(opens(two.b, m, n, 0), 0);
	}
	assert_int_equal(two.a->updates_sent, 1);
	two_free();
}

/* Every bit of a message and of its immediate data; one that comes twice, is left out, goes back to
 * its sender, is cut or longer, or of another connection. */
static void forged(void **state)
{
	uint8_t m[MSG + GW_RDMA_EXTRA + 1] = {0}, x[MSG + GW_RDMA_EXTRA + 1];
	const uint32_t imm = 0x1234567;
	struct gw_rdma_seal *mine;
	struct aead_secret other = {{9}};
	uint32_t n;

	two_new(3600 * RWY_SEC);
	n = message(two.a, m, 40, imm, RWY_SEC);
	for (uint32_t bit = 0; bit < 8 * n; bit++) {
		memcpy(x, m, sizeof(x));
		x[bit / 8] ^= (uint8_t)(1u << bit % 8);
		/* a phase bit of a forger makes the next key; after that nothing of the peer's counts,
		 * as the connection has ended */
		if (bit != 8 * 3 && opens(two.b, x, n, imm) != RWY_EMALFORMED)
			fail_msg("bit %u", bit);
	}
	for (unsigned bit = 0; bit < 32; bit++) {
		memcpy(x, m, sizeof(x));
		assert_int_equal(opens(two.b, x, n, imm ^ 1u << bit), RWY_EMALFORMED);
	}
	for (uint32_t k = 0; k <= n + 1; k++) {
		memcpy(x, m, sizeof(x));
		if (k != n)
			assert_int_equal(opens(two.b, x, k, imm), RWY_EMALFORMED);
	}
	memcpy(x, m, sizeof(x));
	assert_int_equal(opens(two.a, x, n, imm), RWY_EMALFORMED);
	mine = gw_rdma_seal_new(aead_best(), AEAD_AES_128_GCM, &other, false, RWY_SEC, RWY_SEC);
	memcpy(x, m, sizeof(x));
	assert_int_equal(opens(mine, x, n, imm), RWY_EMALFORMED);
	gw_rdma_seal_free(mine);
	memcpy(x, m, sizeof(x));
	assert_int_equal(opens(two.b, x, n, imm), 0); /* nothing of that has changed anything */
	assert_int_equal(opens(two.b, m, n, imm), RWY_EMALFORMED);
	(void)message(two.a, m, 41, imm, RWY_SEC); /* left out */
	n = message(two.a, m, 42, imm, RWY_SEC);
	assert_int_equal(opens(two.b, m, n, imm), RWY_EMALFORMED);
	two_free();
	two_new(3600 * RWY_SEC);
	n = message(two.a, m, 40, imm, RWY_SEC);
	m[3] ^= 1;
	assert_int_equal(opens(two.b, m, n, imm), RWY_EMALFORMED);
	two_free();
}

static void heads(void **state)
{
	static const struct {
		uint8_t b[4];
		uint32_t n;
		int rc;
	} row[] = {{{0, 96, 16, 0}, 100, 0}, {{0, 96, 17, 0}, 100, 0}, {{0, 96, 17, 1}, 100, 0},
	    {{0, 16, 17, 1}, 20, 0}, {{0, 15, 17, 1}, 19, RWY_EMALFORMED}, {{0, 0, 16, 0}, 4, RWY_EMALFORMED},
	    {{0, 96, 17, 2}, 100, RWY_EMALFORMED}, {{0, 96, 16, 1}, 100, RWY_EMALFORMED},
	    {{0, 96, 18, 0}, 100, RWY_EMALFORMED}, {{0, 96, 0, 0}, 100, RWY_EMALFORMED},
	    {{0, 97, 17, 0}, 100, RWY_EMALFORMED}, {{0, 96, 17, 0}, 3, RWY_EMALFORMED}};
	enum gw_rdma_type type;

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		if (gw_rdma_head_get(row[i].b, row[i].n, &type) != row[i].rc)
			fail_msg("%u", i);
		if (!row[i].rc)
			assert_int_equal(type, row[i].b[2]);
	}
}

/* --- credits ---------------------------------------------------------------------------------- */
/* One datagram after the other, and nobody answers: all receives but one are used. */
static void last_one_is_kept(void **state)
{
	struct gw_rdma_flow f;
	unsigned n = 0;

	gw_rdma_flow_init(&f, 64, 16);
	for (; gw_rdma_flow_room(&f); n++)
		assert_int_equal(gw_rdma_flow_send(&f, RWY_SEC), 64);
	assert_int_equal(n, 15);
	for (unsigned i = 0; i < 15; i++) { /* not owed: a quarter is 16 */
		assert_false(gw_rdma_flow_owes(&f));
		gw_rdma_flow_post(&f);
	}
	gw_rdma_flow_post(&f);
	assert_true(gw_rdma_flow_owes(&f));
	assert_int_equal(gw_rdma_flow_send(&f, RWY_SEC), 64 + 16);
	assert_false(gw_rdma_flow_owes(&f));
	assert_int_equal(gw_rdma_flow_room(&f), 0);
	assert_int_equal(gw_rdma_flow_recv(&f, 16 + 10), 0); /* the peer posted ten again */
	assert_int_equal(gw_rdma_flow_room(&f), 9);
}

/* A peer with many receives: our buffers are the bound, until its NIC acknowledges. */
static void own_buffers(void **state)
{
	struct gw_rdma_flow f;

	gw_rdma_flow_init(&f, 16, 4096);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(gw_rdma_flow_room(&f), 16 - i);
		(void)gw_rdma_flow_send(&f, RWY_SEC);
	}
	assert_int_equal(gw_rdma_flow_room(&f), 0);
	for (unsigned i = 0; i < 16; i++)
		gw_rdma_flow_post(&f);
	assert_false(gw_rdma_flow_owes(&f)); /* no buffer for that either */
	gw_rdma_flow_done(&f, RWY_SEC);
	assert_int_equal(gw_rdma_flow_room(&f), 1);
	assert_true(gw_rdma_flow_owes(&f));
}

/* Impossible counts: fewer than before, or more than the peer may have posted. */
static void impossible_credits(void **state)
{
	static const struct {
		uint32_t said;
		int rc;
	} row[] = {{64, 0}, {67, 0}, {67, 0}, {66, RWY_EMALFORMED}, {68, RWY_EMALFORMED}, {0, RWY_EMALFORMED},
	    {UINT32_MAX, RWY_EMALFORMED}};
	struct gw_rdma_flow f;

	gw_rdma_flow_init(&f, 64, 64);
	for (unsigned i = 0; i < 3; i++)
		(void)gw_rdma_flow_send(&f, RWY_SEC);
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		if (gw_rdma_flow_recv(&f, row[i].said) != row[i].rc)
			fail_msg("%u", row[i].said);
	assert_int_equal(gw_rdma_flow_room(&f), 64 - 3); /* buffers; none is acknowledged */
}

static void dead_peers(void **state)
{
	const rwy_time t = 100 * RWY_SEC;
	struct gw_rdma_flow f;

	gw_rdma_flow_init(&f, 64, 64);
	assert_false(gw_rdma_flow_dead(&f, t)); /* silent, but nothing is owed to us */
	(void)gw_rdma_flow_send(&f, t);
	assert_false(gw_rdma_flow_dead(&f, t + GW_RDMA_SILENCE));
	assert_true(gw_rdma_flow_dead(&f, t + GW_RDMA_SILENCE + 1));
	(void)gw_rdma_flow_send(&f, t + 3 * RWY_SEC); /* more of the same changes nothing */
	assert_true(gw_rdma_flow_dead(&f, t + GW_RDMA_SILENCE + 1));
	gw_rdma_flow_done(&f, t + 3 * RWY_SEC);
	assert_false(gw_rdma_flow_dead(&f, t + 3 * RWY_SEC + GW_RDMA_SILENCE));
	assert_true(gw_rdma_flow_dead(&f, t + 3 * RWY_SEC + GW_RDMA_SILENCE + 1));
	gw_rdma_flow_done(&f, t + 10 * RWY_SEC);
	assert_false(gw_rdma_flow_dead(&f, t + 3600 * RWY_SEC));
}

/* One message at a time is timed, by the acknowledgement of its own. */
static void round_trips(void **state)
{
	struct gw_rdma_flow f;
	rwy_time t = 100 * RWY_SEC;

	gw_rdma_flow_init(&f, 64, 64);
	for (unsigned i = 0; i < 10; i++) /* these wait in the NIC behind the first one */
		(void)gw_rdma_flow_send(&f, t);
	gw_rdma_flow_done(&f, t + 5 * RWY_MS);
	assert_int_equal(f.srtt, 5 * RWY_MS);
	assert_int_equal(f.min_rtt, 5 * RWY_MS);
	assert_int_equal(f.heard, t + 5 * RWY_MS);
	for (unsigned i = 0; i < 9; i++)
		gw_rdma_flow_done(&f, t + (6 + i) * RWY_MS);
	assert_int_equal(f.heard, t + 5 * RWY_MS);
	for (unsigned i = 0; i < 100; i++) {
		t += RWY_SEC;
		(void)gw_rdma_flow_send(&f, t);
		gw_rdma_flow_done(&f, t + 20 * RWY_MS);
	}
	assert_true(f.srtt > 19 * RWY_MS && f.srtt <= 20 * RWY_MS && f.rttvar < RWY_MS);
	assert_int_equal(f.min_rtt, 5 * RWY_MS);
}

/* --- two ends --------------------------------------------------------------------------------- */
#define WIRE 8192

/* An end with its receive queue, and the messages on their way to it. */
struct end {
	struct gw_rdma_flow f;
	uint32_t posted;          /* receives of the queue that no message took */
	uint32_t waiting;         /* messages that no worker has taken yet */
	uint32_t imm[WIRE], r, w; /* on their way */
	bool empty[WIRE];
	uint64_t datagrams, empties, wanted;
	uint32_t unacked; /* completions on their way back */
};

static void end_send(struct end *from, struct end *to, bool empty)
{
	assert_true(to->w - to->r < WIRE);
	to->empty[to->w % WIRE] = empty;
	to->imm[to->w++ % WIRE] = gw_rdma_flow_send(&from->f, RWY_SEC);
	from->empties += empty;
}

/* The owed message goes whenever it may, as the carrier does it. */
static void end_tell(struct end *from, struct end *to)
{
	if (gw_rdma_flow_owes(&from->f))
		end_send(from, to, true);
}

static void end_arrive(struct end *e, struct end *from)
{
	if (e->r == e->w)
		return;
	if (!e->posted)
		fail_msg("RNR: a message meets an empty receive queue");
	e->posted--;
	e->waiting++;
	e->datagrams += !e->empty[e->r % WIRE];
	assert_int_equal(gw_rdma_flow_recv(&e->f, e->imm[e->r++ % WIRE]), 0);
	from->unacked++;
}

static void end_take(struct end *e)
{
	if (!e->waiting)
		return;
	e->waiting--;
	e->posted++;
	gw_rdma_flow_post(&e->f);
}

static void turn(struct end *e, struct end *o, uint64_t *g)
{
	switch (rng_below(g, 5)) {
	case 0:
		for (uint32_t n = rng_below(g, 70); n && e->wanted && gw_rdma_flow_room(&e->f);
		     n--, e->wanted--)
			end_send(e, o, false);
		break;
	case 1:
		for (uint32_t n = rng_below(g, 70); n; n--)
			end_arrive(e, o);
		break;
	case 2:
		for (uint32_t n = rng_below(g, 70); n; n--)
			end_take(e);
		break;
	case 3:
		for (; e->unacked; e->unacked--)
			gw_rdma_flow_done(&e->f, RWY_SEC);
		break;
	default:
		break;
	}
	end_tell(e, o);
}

/* Both ends send, at random times and with random numbers of receives, from counts that wrap:
 * all arrives, no queue is ever empty, and empty messages are few. */
static void two_ends(void **state)
{
	static struct end e[2];

	for (uint64_t seed = 1; seed <= 300; seed++) {
		const uint64_t want[2] = {20000, seed % 3 ? 20000 : 0}; /* or one direction only */
		uint64_t g = seed;
		uint32_t slots[2], idle = 0;

		memset(e, 0, sizeof(e));
		for (int i = 0; i < 2; i++)
			slots[i] = UINT32_C(16) << rng_below(&g, 7);
		for (int i = 0; i < 2; i++) {
			gw_rdma_flow_init(&e[i].f, slots[i], slots[!i]);
			e[i].posted = slots[i];
			e[i].wanted = want[i];
		}
		for (int i = 0; i < 2; i++) { /* as after four billion messages */
			const uint32_t far = UINT32_MAX - 5000;

			e[i].f.sent += far;
			e[i].f.done += far;
			e[i].f.allowed += far;
			e[i].f.posted += far;
			e[i].f.told += far;
		}
		while ((e[0].datagrams < want[1] || e[1].datagrams < want[0]) && idle < 100000) {
			uint64_t had = e[0].datagrams + e[1].datagrams;
			unsigned i = rng_below(&g, 2);

			turn(&e[i], &e[!i], &g);
			idle = e[0].datagrams + e[1].datagrams == had ? idle + 1 : 0;
		}
		if (idle >= 100000)
			fail_msg("seed %u: the two ends wait for each other", (unsigned)seed);
		for (int i = 0; i < 2; i++) /* at most one for a quarter of what came */
			assert_true(e[i].empties <= (e[i].datagrams + e[!i].empties) * 4 / slots[i] + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(set_up),
	    cmocka_unit_test(greetings),
	    cmocka_unit_test(refusals),
	    cmocka_unit_test(heads),
	    cmocka_unit_test(sealed),
	    cmocka_unit_test(sealed_many),
	    cmocka_unit_test(forged),
	    cmocka_unit_test(last_one_is_kept),
	    cmocka_unit_test(own_buffers),
	    cmocka_unit_test(impossible_credits),
	    cmocka_unit_test(dead_peers),
	    cmocka_unit_test(round_trips),
	    cmocka_unit_test(two_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
