/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two sites with two gateways each: all four engines choose the same pair of gateways for an
 * address pair, shares follow the weights, and if a gateway fails only its pairs move.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/steer.h"
#include "tests/lib/heap_buf.h"
#include "tests/lib/rc_pkt.h"
#include "rwy/spread.h"

#define PAIRS 8000

static const char *const name[2][2] = {{"a1", "a2"}, {"b1", "b2"}};
static const uint16_t weight[2][2] = {{3, 1}, {2, 2}}; /* of gateways */

static struct eng *eng[2][2];
static uint64_t bufs;
static unsigned to_host;

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	to_host++;
	if (tx->buf && tx->own)
		heap_buf_free(&bufs, tx->buf);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	if (tx->buf && tx->own)
		heap_buf_free(&bufs, tx->buf);
}

static const struct eng_ops ops = {.lan_tx = lan_tx, .wan_tx = wan_tx};

static struct rwy_ip host(unsigned site, unsigned n)
{
	return rwy_ip_from4((uint8_t[4]){10, (uint8_t)(site + 1), (uint8_t)(n >> 8), (uint8_t)n});
}

static int set_up(void **state)
{
	for (unsigned s = 0; s < 2; s++)
		for (unsigned g = 0; g < 2; g++) {
			struct eng_cfg *c = malloc(sizeof(*c));

			assert_non_null(c);
			eng_cfg_default(c);
			c->conns_max = 64;
			c->gateway = rwy_spread_id(name[s][g]);
			c->seed = 1;
			c->tunnels = c->prefixes = 2;
			for (unsigned p = 0; p < 2; p++) {
				/* In another order at each: the order must not matter. */
				struct eng_tunnel_cfg *t = &c->tunnel[g ? !p : p];

				snprintf(t->name, sizeof(t->name), "%s", name[!s][p]);
				t->peer = rwy_spread_id(name[!s][p]);
				t->weight = (uint16_t)(weight[s][g] * weight[!s][p]);
				wan_cfg_default(&t->wan);
				t->wan.tunnel_id = rwy_spread_draw(s, g, p);
				c->prefix[p] = (struct eng_prefix){
				    .addr = host(!s, 0), .len = 112, .tunnel = (uint8_t)p};
			}
			assert_int_equal(eng_new(&eng[s][g], c, &ops, NULL,
			                     (struct rwy_bufs){.ops = &heap_buf_ops, .ctx = &bufs}, RWY_SEC),
			    0);
			free(c);
		}
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned s = 0; s < 2; s++)
		for (unsigned g = 0; g < 2; g++)
			eng_free(eng[s][g]);
	assert_int_equal(bufs, 0);
	return 0;
}

/* The other gateway of the site, as g knows it. */
static unsigned candidates(unsigned s, unsigned g, struct eng_candidate r[2])
{
	for (unsigned p = 0; p < 2; p++)
		r[p] = (struct eng_candidate){.gateway = rwy_spread_id(name[s][!g]),
		    .peer = rwy_spread_id(name[!s][p]),
		    .weight = (uint64_t)weight[s][!g] * weight[!s][p]};
	return 2;
}

/* The gateway of site s that has the pair, as gateway g of s computes it. */
static unsigned whose(
    unsigned s, unsigned g, const struct rwy_ip *local, const struct rwy_ip *remote, unsigned n)
{
	struct eng_candidate r[2];

	candidates(s, g, r);
	return eng_candidate_find(eng[s][g], local, remote, 1, r, n) < 0 ? g : !g;
}

/* The gateway at the other end of the tunnel that g chooses. */
static unsigned far_of(unsigned s, unsigned g, const struct rwy_ip *local, const struct rwy_ip *remote)
{
	const int t = eng_steer(eng[s][g], 0, local, remote, 0);

	assert_in_range(t, 0, 1);
	return g ? !t : (unsigned)t;
}

static void ends(unsigned i, struct rwy_ip *a, struct rwy_ip *b)
{
	*a = host(0, i % 90 + 1);
	*b = host(1, i / 90 + 1);
}

static void test_both_sites_agree(void **state)
{
	unsigned first[2] = {0, 0};

	for (unsigned i = 0; i < PAIRS; i++) {
		struct rwy_ip a, b;
		unsigned ga, gb;

		ends(i, &a, &b);
		ga = whose(0, 0, &a, &b, 2);
		gb = whose(1, 0, &b, &a, 2);
		assert_int_equal(whose(0, 1, &a, &b, 2), ga);
		assert_int_equal(whose(1, 1, &b, &a, 2), gb);
		assert_int_equal(far_of(0, ga, &a, &b), gb);
		assert_int_equal(far_of(1, gb, &b, &a), ga);
		first[0] += !ga;
		first[1] += !gb;
	}
	assert_in_range(first[0], PAIRS * 72 / 100, PAIRS * 78 / 100);
	assert_in_range(first[1], PAIRS * 47 / 100, PAIRS * 53 / 100);
}

/* a2 is lost: its sibling knows, and the other site has its tunnels without prefixes. */
static void test_only_the_lost_ones_move(void **state)
{
	static uint8_t was[PAIRS][2];
	unsigned moved = 0;

	for (unsigned i = 0; i < PAIRS; i++) {
		struct rwy_ip a, b;

		ends(i, &a, &b);
		was[i][0] = (uint8_t)whose(0, 0, &a, &b, 2);
		was[i][1] = (uint8_t)whose(1, 0, &b, &a, 2);
	}
	for (unsigned g = 0; g < 2; g++) {
		struct eng_prefix p = {.addr = host(0, 0), .len = 112, .tunnel = (uint8_t)g};

		assert_int_equal(eng_prefixes_set(eng[1][g], &p, 1), 0);
	}
	for (unsigned i = 0; i < PAIRS; i++) {
		struct rwy_ip a, b;
		unsigned gb;

		ends(i, &a, &b);
		assert_int_equal(whose(0, 0, &a, &b, 0), 0);
		gb = whose(1, 0, &b, &a, 2); /* its candidates to a2 are no peers of our tunnels */
		assert_int_equal(whose(1, 1, &b, &a, 2), gb);
		assert_int_equal(far_of(0, 0, &a, &b), gb);
		assert_int_equal(far_of(1, gb, &b, &a), 0);
		if (!was[i][0])
			assert_int_equal(gb, was[i][1]);
		else
			moved++;
	}
	assert_in_range(moved, PAIRS * 22 / 100, PAIRS * 28 / 100);
}

/* Weights times a factor give the same; a gateway with an unknown name, or an unknown peer's, has
 * all pairs. */
static void test_scale_and_unknown(void **state)
{
	struct eng_candidate r[2], k[2];
	struct rwy_ip a, b;
	unsigned theirs = 0;

	candidates(0, 0, r);
	for (unsigned i = 0; i < 2; i++) {
		k[i] = r[i];
		k[i].weight *= 4000000000u;
	}
	for (unsigned i = 0; i < 500; i++) {
		ends(i, &a, &b);
		theirs += eng_candidate_find(eng[0][0], &a, &b, 1, r, 2) >= 0;
		assert_int_equal(eng_candidate_find(eng[0][0], &a, &b, 1, r, 2),
		    eng_candidate_find(eng[0][0], &a, &b, 4000000000u, k, 2));
	}
	assert_true(theirs > 0);
	eng[0][0]->cfg.tunnel[1].peer = 0;
	for (unsigned i = 0; i < 500; i++) {
		ends(i, &a, &b);
		assert_int_equal(eng_candidate_find(eng[0][0], &a, &b, 1, r, 2), -1);
		assert_in_range(eng_steer(eng[0][0], 0, &a, &b, 0), 0, 1);
	}
	b = rwy_ip_from4((uint8_t[4]){10, 9, 0, 1}); /* nowhere */
	assert_int_equal(eng_candidate_find(eng[0][0], &a, &b, 1, r, 2), -1);
}

/* Two tunnels to one gateway count as one with both weights, and share its pairs. */
static void test_two_tunnels_to_a_peer(void **state)
{
	unsigned to[2] = {0, 0}, theirs = 0;

	eng[0][0]->cfg.tunnel[1].peer = eng[0][0]->cfg.tunnel[0].peer;
	for (unsigned i = 0; i < PAIRS; i++) {
		const struct eng_candidate r = {rwy_spread_id("a2"), rwy_spread_id("b1"), 12};
		struct rwy_ip a, b;
		int t;

		ends(i, &a, &b);
		theirs += eng_candidate_find(eng[0][0], &a, &b, 1, &r, 1) == 0;
		t = eng_steer(eng[0][0], 0, &a, &b, 0);
		assert_in_range(t, 0, 1);
		to[t]++;
	}
	assert_in_range(theirs, PAIRS * 47 / 100, PAIRS * 53 / 100);
	assert_in_range(to[0], PAIRS * 45 / 100, PAIRS * 55 / 100);
}

/* A host that has sent a packet has its flow here, and only here. */
static void test_holds(void **state)
{
	const struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = 7,
	    .dqpn = 0x42,
	    .ack_req = true,
	    .payload_len = 256,
	    .src = {10, 1, 0, 1},
	    .dst = {10, 2, 0, 1}};
	const struct rwy_ip a = host(0, 1), b = host(1, 1);
	struct rwy_buf *p = heap_buf_alloc(&bufs, 128, RC_PKT_MAX);

	assert_false(eng_holds(eng[0][0], &a, &b, 0x42));
	p->len = rc_pkt_make(p->data, &m);
	eng_tenant_rx(eng[0][0], &p, &(uint16_t){0}, 1, RWY_SEC);
	assert_true(eng_holds(eng[0][0], &a, &b, 0x42));
	assert_false(eng_holds(eng[0][0], &a, &b, 0x43));
	assert_false(eng_holds(eng[0][0], &b, &a, 0x42));
	assert_false(eng_holds(eng[0][1], &a, &b, 0x42));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_both_sites_agree),
	    T(test_only_the_lost_ones_move),
	    T(test_scale_and_unknown),
	    T(test_two_tunnels_to_a_peer),
	    T(test_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
