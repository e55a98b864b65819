/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake's table: each cell does as states.h describes, and docs/states.md equals it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/states_page.h"
#include "tests/lib/wan_pair.h"
#include "wan/hello.h"
#include "wan/tunnel.h"

#define PEER  77
#define OTHER 88

#define STATE(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EVENT(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EDGE(a, b)     states_add("    %s -> %s\n", states_lower(#a), states_lower(#b));

static void test_page(void **state)
{
	states_begin();
	states_add("| state | meaning |\n| --- | --- |\n");
	WAN_HS_STATES(STATE)
	states_add("\n| event | meaning |\n| --- | --- |\n");
	WAN_HS_EVENTS(EVENT)
	states_add("\n| state | timer | asked | other | proof | restart | datagram | silence | stranger |\n"
	           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
#define ROW(s, a, b, c, d, e, f, g, h)                                                                       \
	states_add("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", states_lower(#s), #a, #b, #c, #d,   \
	    #e, #f, #g, #h);
	WAN_HS_TABLE(ROW)
#undef ROW
	states_add("\n```dot\ndigraph handshake {\n");
	WAN_HS_CHANGES(EDGE)
	states_add("}\n```\n");
	states_compare();
}

/* --- cells -------------------------------------------------------------------------------------- */
static unsigned told_up, told_down, told_restart;

static void on_state(void *ctx, bool up, bool restarted, rwy_time now)
{
	told_restart += restarted;
	told_up += up;
	told_down += !up;
}

static struct wan_tunnel *tunnel_in(struct wan_pair *p, struct wan_ops *ops, enum wan_hs_state s)
{
	struct wan_link_cfg l = {.delay = RWY_MS};
	struct wan_tunnel *t;
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.tx_pkts_max = 1024;
	wan_pair_init(p, &c, &l, &l, 5);
	t = p->end[0].t;
	*ops = *t->cfg.ops;
	ops->state = on_state;
	t->cfg.ops = ops;
	t->hs.state = s;
	t->peer.epoch = s == WAN_HS_ASKING ? 0 : PEER;
	t->hs.tries = s == WAN_HS_CHALLENGING ? 2 : 0;
	t->hs.repeats = s == WAN_HS_CONFIRMING ? 2 : 0;
	told_up = told_down = told_restart = 0;
	return t;
}

/* After one event: the next state, calls of the engine, whether a HELLO is due, and whether the
 * timer sends the next. */
struct cell {
	enum wan_hs_event ev;
	bool want; /* the HELLO asks for an answer */
	enum wan_hs_state to[WAN_HS_STATE_COUNT];
};
#define NONE WAN_HS_STATE_COUNT /* impossible */
static const struct cell cells[] = {
    {WAN_HSE_TIMER, false, {WAN_HS_ASKING, WAN_HS_SILENT, NONE, WAN_HS_CONFIRMING, WAN_HS_CHALLENGING}},
    {WAN_HSE_ASKED, true, {NONE, WAN_HS_SILENT, WAN_HS_UP, WAN_HS_CONFIRMING, WAN_HS_CHALLENGING}},
    {WAN_HSE_OTHER, true,
        {WAN_HS_ASKING, WAN_HS_SILENT, WAN_HS_CHALLENGING, WAN_HS_CHALLENGING, WAN_HS_CHALLENGING}},
    {WAN_HSE_PROOF, false, {WAN_HS_UP, WAN_HS_UP, WAN_HS_UP, WAN_HS_UP, WAN_HS_UP}},
    {WAN_HSE_PROOF, true,
        {WAN_HS_CONFIRMING, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING}},
    {WAN_HSE_RESTART, false, {NONE, WAN_HS_UP, WAN_HS_UP, WAN_HS_UP, WAN_HS_UP}},
    {WAN_HSE_RESTART, true,
        {NONE, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING, WAN_HS_CONFIRMING}},
    {WAN_HSE_DATAGRAM, false, {NONE, WAN_HS_UP, WAN_HS_UP, WAN_HS_UP, WAN_HS_CHALLENGING}},
    {WAN_HSE_SILENCE, false, {NONE, NONE, WAN_HS_SILENT, WAN_HS_SILENT, WAN_HS_SILENT}},
    {WAN_HSE_STRANGER, false,
        {WAN_HS_ASKING, WAN_HS_SILENT, WAN_HS_UP, WAN_HS_CONFIRMING, WAN_HS_CHALLENGING}},
};

static void check_cell(const struct cell *c, enum wan_hs_state s)
{
	struct wan_pair p;
	struct wan_ops ops;
	struct wan_tunnel *t = tunnel_in(&p, &ops, s);
	struct wan_f_hello f = {.flags = c->want ? WAN_HELLO_WANT : 0,
	    .mtu = 1472,
	    .epoch = c->ev == WAN_HSE_OTHER || c->ev == WAN_HSE_RESTART ? OTHER : PEER,
	    .nonce = 3,
	    .rx_window = 9,
	    .rx_bytes = 9999};
	bool was_up = wan_hs_up(t), reply = c->ev == WAN_HSE_ASKED || c->ev == WAN_HSE_OTHER;
	uint64_t nonce = t->hs.nonce;
	rwy_time now = p.now + RWY_SEC;

	wan_hs_event(t, c->ev, &(struct wan_hs_what){.p = &t->path[0], .f = &f, .now = now});
	assert_int_equal(t->hs.state, c->to[s]);
	assert_int_equal(t->hs.reply, reply);
	assert_int_equal(told_restart, c->ev == WAN_HSE_RESTART);
	assert_int_equal(told_down, was_up && !wan_hs_up(t));
	assert_int_equal(told_up, (!was_up && wan_hs_up(t)) || c->ev == WAN_HSE_RESTART);
	if (was_up != wan_hs_up(t))
		assert_true(t->since == now);
	if (c->ev == WAN_HSE_PROOF || c->ev == WAN_HSE_RESTART) {
		assert_int_equal(t->peer.epoch, f.epoch);
		assert_true(t->hs.nonce != nonce); /* an echo counts once */
	}
	if (c->ev == WAN_HSE_SILENCE || (c->ev == WAN_HSE_STRANGER && s == WAN_HS_ASKING))
		assert_true(wan_hs_next(t) == now);
	if (c->ev == WAN_HSE_PROOF)
		assert_true(c->want ? t->hs.next == now + 2 * RWY_MS : t->hs.next == RWY_NEVER);
	wan_pair_fini(&p);
}

static void test_cells(void **state)
{
	bool seen[WAN_HS_STATE_COUNT][WAN_HS_EVENT_COUNT] = {{false}};
	unsigned possible = 0, reached = 0;

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
		for (unsigned s = 0; s < WAN_HS_STATE_COUNT; s++) {
			if (cells[i].to[s] == NONE)
				continue;
			check_cell(&cells[i], s);
			seen[s][cells[i].ev] = true;
		}
#define IS(w)                          possible += strcmp(#w, "IMPOSSIBLE") != 0;
#define ROW(s, a, b, c, d, e, f, g, h) IS(a) IS(b) IS(c) IS(d) IS(e) IS(f) IS(g) IS(h)
	WAN_HS_TABLE(ROW)
#undef ROW
	for (unsigned s = 0; s < WAN_HS_STATE_COUNT; s++)
		for (unsigned e = 0; e < WAN_HS_EVENT_COUNT; e++)
			reached += seen[s][e];
	assert_int_equal(reached, possible);
}

/* HELLOs by the timer: repeats and challenges end. */
static void test_count_down(void **state)
{
	static const enum wan_hs_state from[] = {WAN_HS_CONFIRMING, WAN_HS_CHALLENGING};

	for (unsigned i = 0; i < 2; i++) {
		struct wan_pair p;
		struct wan_ops ops;
		struct wan_tunnel *t = tunnel_in(&p, &ops, from[i]);
		const struct wan_hs_what w = {.now = p.now};

		wan_hs_event(t, WAN_HSE_TIMER, &w);
		assert_int_equal(t->hs.state, from[i]);
		wan_hs_event(t, WAN_HSE_TIMER, &w);
		assert_int_equal(t->hs.state, WAN_HS_UP);
		assert_true(t->hs.next == RWY_NEVER);
		wan_pair_fini(&p);
	}
}

/* The peer returned while another epoch asks: that is still to be verified. */
static void test_back_to_challenge(void **state)
{
	struct wan_pair p;
	struct wan_ops ops;
	struct wan_tunnel *t = tunnel_in(&p, &ops, WAN_HS_SILENT);
	struct wan_f_hello f = {.flags = WAN_HELLO_WANT, .epoch = OTHER};

	wan_hs_event(t, WAN_HSE_OTHER, &(struct wan_hs_what){.p = &t->path[0], .f = &f, .now = p.now});
	assert_int_equal(t->hs.state, WAN_HS_SILENT);
	wan_hs_event(t, WAN_HSE_DATAGRAM, &(struct wan_hs_what){.now = p.now});
	assert_int_equal(t->hs.state, WAN_HS_CHALLENGING);
	wan_pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_page),
	    cmocka_unit_test(test_cells),
	    cmocka_unit_test(test_count_down),
	    cmocka_unit_test(test_back_to_challenge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
