/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways with several workers (engine/board.h): a follower gets to the state that
 * its leader has, whatever it missed; a leader waits for its followers, and hears what happens to
 * them. Here each of them is alone, and the test plays the other one on the board.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cc/cc.h"
#include "engine/standby.h"
#include "tests/lib/heap_buf.h"
#include "wan/tunnel.h"

#define WAN     0u
#define CABLE   1u
#define WORKERS 2u
#define BEAT    (10 * RWY_MS)

static struct eng *e;
static struct eng_board *board;
static uint64_t bufs;
static rwy_time now;
static unsigned changes; /* of the board, by this engine */
static bool serves, replaced;

/* --- callbacks -------------------------------------------------------------------------------- */

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	if (tx->buf && tx->own)
		heap_buf_free(&bufs, tx->buf);
}

static void on_serves(void *ctx, bool on, bool over, rwy_time at)
{
	serves = on;
	replaced |= over;
}

static void on_change(void *ctx)
{
	changes++;
}

static const struct eng_ops ops = {
    .lan_tx = lan_tx, .wan_tx = wan_tx, .serves = on_serves, .board_changed = on_change};

/* --- one worker ------------------------------------------------------------------------------- */

static void start(uint8_t worker)
{
	struct eng_cfg *c = malloc(sizeof(*c));

	assert_non_null(c);
	eng_cfg_default(c);
	c->tunnels = 2;
	for (unsigned i = 0; i < c->tunnels; i++) {
		wan_cfg_default(&c->tunnel[i].wan);
		c->tunnel[i].wan.cc = cc_find("fixed");
		c->tunnel[i].wan.cc_cfg.rate_Bps = 1250000000;
		c->tunnel[i].wan.tunnel_id = 7 + i;
		snprintf(c->tunnel[i].name, ENG_NAME_MAX, "t%u", i);
	}
	c->tunnel[CABLE].wan.keepalive = BEAT;
	c->conns_max = 64;
	c->seed = 1;
	c->worker = worker;
	c->workers = WORKERS;
	c->standby = (struct eng_standby_cfg){.on = true, .tunnel = CABLE, .wait = RWY_SEC, .board = board};
	assert_int_equal(eng_new(&e, c, &ops, NULL, (struct rwy_bufs){&heap_buf_ops, &bufs}, now), 0);
	free(c);
	e->tunnel[CABLE].up = true;
}

static int set_up(void **state)
{
	now = RWY_SEC;
	changes = 0;
	serves = replaced = false;
	return eng_board_new(&board);
}

static int tear_down(void **state)
{
	eng_free(e);
	eng_board_free(board);
	assert_int_equal(bufs, 0);
	return 0;
}

static void turn(void)
{
	now += RWY_MS;
	eng_poll(e, now);
}

static const char *state_now(void)
{
	struct eng_standby_info i;

	assert_true(eng_standby_info(e, &i));
	return i.state;
}

static enum wan_claim claim(void)
{
	return wan_claimed(e->tunnel[WAN].wan);
}

/* The test is the leader. */
static struct eng_board_lead lead;

static void says(enum eng_sb_state s)
{
	lead.serial++;
	lead.state = (uint8_t)s;
	lead.whole = false;
	eng_board_say(board, &lead);
}

static void leads_to(enum eng_sb_state s, const char *state)
{
	says(s);
	turn();
	assert_string_equal(state_now(), state);
	assert_int_equal(eng_board_reported(board, 1).serial, lead.serial);
}

/* The test is the follower. */
static void reports(bool walked, bool linked)
{
	eng_board_report(board, 1,
	    &(struct eng_board_follow){
	        .serial = eng_board_hear(board).serial, .walked = walked, .linked = linked, .serves = true});
}

/* --- the board -------------------------------------------------------------------------------- */

static void test_words(void **state)
{
	const struct eng_board_lead l = {0xfedcba98, 0xffff, ENG_SB_REPLACED, true};
	const struct eng_board_follow f[2] = {{0xfedcba98, true, false, true}, {1, false, true, false}};
	struct eng_board_lead a = eng_board_hear(board);

	assert_int_equal(a.serial, 0);
	assert_int_equal(a.state, ENG_SB_ASKING);
	eng_board_say(board, &l);
	a = eng_board_hear(board);
	assert_true(a.serial == l.serial && a.cleared == l.cleared && a.state == l.state && a.whole);
	for (unsigned i = 0; i < 2; i++) {
		struct eng_board_follow b;

		assert_true(eng_board_report(board, 63, &f[i]));
		assert_false(eng_board_report(board, 63, &f[i]));
		b = eng_board_reported(board, 63);
		assert_true(b.serial == f[i].serial && b.walked == f[i].walked && b.linked == f[i].linked &&
		            b.serves == f[i].serves);
	}
	start(0); /* for tear_down */
}

/* --- a follower ------------------------------------------------------------------------------- */

static void reach_taking(void)
{
	start(1);
	lead = (struct eng_board_lead){.serial = 0, .cleared = 1};
	leads_to(ENG_SB_STORING, "storing");
	leads_to(ENG_SB_READY, "ready");
	assert_int_equal(claim(), WAN_CLAIM_SILENT);
	leads_to(ENG_SB_TAKING, "taking");
	assert_int_equal(claim(), WAN_CLAIM_TAKE);
	assert_false(eng_board_reported(board, 1).serves);
}

/* The witness's answer. */
static void grant(void)
{
	e->tunnel[WAN].wan->claim.granted = true;
	turn();
}

static void reach_alone(void)
{
	reach_taking();
	leads_to(ENG_SB_ALONE, "taking");
	grant();
	assert_string_equal(state_now(), "alone");
	assert_true(serves && eng_board_reported(board, 1).serves);
	assert_int_equal(claim(), WAN_CLAIM_KEEP);
}

static void reach_paired(void)
{
	reach_alone();
	leads_to(ENG_SB_COPYING, "copying");
	turn();
	assert_true(eng_board_reported(board, 1).walked);
	leads_to(ENG_SB_PAIRING, "pairing");
	assert_int_equal(claim(), WAN_CLAIM_KEEP);
	turn();
	assert_true(eng_board_reported(board, 1).walked);
	lead.whole = true;
	eng_board_say(board, &lead);
	turn();
	assert_int_equal(claim(), WAN_CLAIM_HOLD);
	leads_to(ENG_SB_PAIRED, "paired");
	assert_int_equal(claim(), WAN_CLAIM_HOLD);
}

/* It takes over when the leader has, hands over, and ends. */
static void test_follows(void **state)
{
	reach_paired();
	leads_to(ENG_SB_YIELDING, "yielding");
	assert_false(serves);
	assert_int_equal(claim(), WAN_CLAIM_YIELD);
	leads_to(ENG_SB_REPLACED, "replaced");
	assert_true(replaced);
}

/* The witness refuses while it believes in the worker of an earlier process: it asks again. */
static void refuse(enum wan_claim c)
{
	wan_claim(e->tunnel[WAN].wan, WAN_CLAIM_SILENT, now);
	eng_sb_refused(e, WAN, now);
	turn();
	assert_int_equal(atomic_load(&board->of[1].events), 0);
	assert_int_equal(claim(), WAN_CLAIM_SILENT);
	now += RWY_SEC;
	turn();
	assert_int_equal(claim(), c);
}

static void test_asks_again(void **state)
{
	reach_taking();
	refuse(WAN_CLAIM_TAKE);
	grant(); /* before its leader serves */
	assert_string_equal(state_now(), "taking");
	leads_to(ENG_SB_ALONE, "alone");
	refuse(WAN_CLAIM_KEEP);
}

/* Where copies were thrown away in states that it missed, it has none of them, and ends up right. */
static void test_misses_states(void **state)
{
	static const struct {
		enum eng_sb_state lead;
		const char *state;
	} to[] = {{ENG_SB_ASKING, "asking"}, {ENG_SB_STORING, "storing"}, {ENG_SB_READY, "ready"},
	    {ENG_SB_ALONE, "alone"}, {ENG_SB_REPLACED, "replaced"}};

	for (unsigned from = 0; from < 4; from++)
		for (unsigned i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
			start(1);
			lead = (struct eng_board_lead){.serial = 0};
			if (from)
				leads_to(ENG_SB_STORING, "storing");
			if (from > 1)
				leads_to(ENG_SB_READY, "ready");
			if (from > 2)
				leads_to(ENG_SB_TAKING, "taking");
			lead.cleared++;
			leads_to(to[i].lead, to[i].state);
			eng_free(e);
			eng_board_free(board);
			assert_int_equal(set_up(state), 0);
		}
	start(1);
}

/* The cable and copies: it says what happened, and counts no connection as copied after that. */
static void test_reports(void **state)
{
	static const enum eng_sb_event told[] = {ENG_SBE_SILENT, ENG_SBE_STUCK, ENG_SBE_OVER};

	reach_alone();
	leads_to(ENG_SB_COPYING, "copying");
	leads_to(ENG_SB_PAIRING, "pairing");
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const unsigned before = changes;

		eng_sb_event(e, told[i], now);
		assert_int_equal(atomic_exchange(&board->of[1].events, 0), 1u << told[i]);
		assert_true(changes > before);
		assert_int_equal(atomic_load(&board->of[1].stood_still), told[i] == ENG_SBE_OVER);
		assert_string_equal(state_now(), "pairing");
	}
	eng_sb_event(e, ENG_SBE_TIMER, now); /* the leader's */
	assert_int_equal(atomic_load(&board->of[1].events), 0);
	turn();
	assert_false(eng_sb_copies(e) || eng_board_reported(board, 1).walked);
	leads_to(ENG_SB_ALONE, "alone");
	leads_to(ENG_SB_COPYING, "copying");
	turn();
	assert_true(eng_sb_copies(e) && eng_board_reported(board, 1).walked);
}

/* The cable fell silent before the copies began: they do not count as complete. */
static void test_no_link(void **state)
{
	reach_alone();
	e->tunnel[CABLE].up = false;
	leads_to(ENG_SB_COPYING, "copying");
	assert_int_equal(atomic_load(&board->of[1].events), 1u << ENG_SBE_SILENT);
	turn();
	assert_false(eng_sb_copies(e) || eng_board_reported(board, 1).walked);
}

/* It does not speak to hosts before the leader has said that nobody took over meanwhile. */
static void test_stands_still(void **state)
{
	reach_paired();
	assert_true(eng_sb_speaks(e));
	now += 4 * BEAT;
	turn();
	assert_int_equal(atomic_load(&board->of[1].stood_still), 1);
	assert_false(eng_sb_speaks(e));
	leads_to(ENG_SB_LOSING, "losing");
	assert_int_equal(claim(), WAN_CLAIM_HOLD); /* the leader's witness decides */
	leads_to(ENG_SB_ALONE, "alone");
	assert_false(eng_sb_speaks(e));
	atomic_store(&board->of[1].confirmed, 1);
	turn();
	assert_true(eng_sb_speaks(e));
	assert_false(eng_standby_hand_over(e, now)); /* an order is for the leader */
}

/* --- a leader --------------------------------------------------------------------------------- */

static void lead_alone(void)
{
	start(0);
	eng_sb_change(e, ENG_SBE_GRANTED, now);
	turn();
	assert_string_equal(state_now(), "alone");
	e->sb.other = ENG_SB_STORING;
	e->tunnel[CABLE].peer_workers = WORKERS;
}

static void lead_paired(void)
{
	lead_alone();
	reports(false, true);
	turn();
	assert_string_equal(state_now(), "copying");
	reports(true, true);
	turn();
	assert_string_equal(state_now(), "pairing");
	reports(true, true);
	turn();
	assert_true(eng_board_hear(board).whole);
	eng_sb_granted(e, WAN, now);
	turn();
	assert_string_equal(state_now(), "paired");
}

/* It says that it asks when its follower has stopped what it did before; until then it has no turns. */
static void test_rests(void **state)
{
	start(0);
	turn();
	eng_sb_change(e, ENG_SBE_SERVES, now);
	assert_string_equal(state_now(), "storing");
	eng_sb_change(e, ENG_SBE_SILENT, now);
	assert_string_equal(state_now(), "asking");
	assert_false(eng_sb_followed(e));
	now += 4 * BEAT;
	turn();
	assert_true(eng_sb_next(e) > now);
	assert_int_not_equal(e->sb.said, ENG_SB_ASKING + 1);
	reports(false, true);
	assert_true(eng_sb_next(e) <= now);
	turn();
	assert_int_equal(e->sb.said, ENG_SB_ASKING + 1);
}

/* Copies begin when the follower has the cable, and ACKs wait for them when it has copied all. */
static void test_waits(void **state)
{
	lead_alone();
	turn();
	assert_string_equal(state_now(), "alone");
	reports(true, false);
	turn();
	assert_string_equal(state_now(), "alone");
	e->tunnel[CABLE].peer_workers = WORKERS + 1;
	reports(true, true);
	turn();
	assert_string_equal(state_now(), "alone");
	e->tunnel[CABLE].peer_workers = WORKERS;
	turn();
	assert_string_equal(state_now(), "copying");
	turn();
	assert_string_equal(state_now(), "copying");
	reports(false, true);
	turn();
	assert_string_equal(state_now(), "copying");
	reports(true, true);
	turn();
	assert_string_equal(state_now(), "pairing");
	for (unsigned i = 0; i < 3; i++) {
		turn();
		assert_false(eng_board_hear(board).whole);
	}
	assert_false(eng_sb_followed(e));
	reports(true, true);
	assert_true(eng_sb_followed(e));
	turn();
	assert_true(eng_board_hear(board).whole);
}

/* A leader that asks says so when its follower asks, too, and has nothing to do before that. */
static void test_asks_later(void **state)
{
	start(0);
	eng_board_report(board, 1, &(struct eng_board_follow){.serial = 9});
	for (unsigned i = 0; i < 100; i++) {
		turn();
		assert_int_equal(e->sb.said, 0);
		assert_true(eng_next(e) > now);
	}
	reports(false, true);
	turn();
	assert_int_equal(e->sb.said, ENG_SB_ASKING + 1);
	assert_true(eng_next(e) > now);
}

/* An event of a follower is as one of the leader. */
static void test_hears(void **state)
{
	static const struct {
		enum eng_sb_event event;
		const char *state;
	} of[] = {{ENG_SBE_SILENT, "losing"}, {ENG_SBE_STUCK, "losing"}, {ENG_SBE_OVER, "replaced"}};

	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		lead_paired();
		atomic_store(&board->of[1].events, 1u << of[i].event);
		turn();
		assert_string_equal(state_now(), of[i].state);
		assert_int_equal(atomic_load(&board->of[1].events), 0);
		eng_free(e);
		eng_board_free(board);
		assert_int_equal(set_up(state), 0);
	}
	lead_alone(); /* an end of copies that had ended */
	atomic_store(&board->of[1].events, 1u << ENG_SBE_STUCK | 1u << ENG_SBE_SILENT);
	turn();
	assert_string_equal(state_now(), "alone");
}

/* A follower that stood still may speak where the witness lets nobody else take over. */
static void test_confirms(void **state)
{
	lead_alone();
	atomic_store(&board->of[1].stood_still, 3);
	turn();
	assert_int_equal(atomic_load(&board->of[1].confirmed), 3);
	tear_down(state);
	assert_int_equal(set_up(state), 0);

	lead_paired();
	atomic_store(&board->of[1].stood_still, 1);
	turn();
	assert_string_equal(state_now(), "losing");
	turn();
	assert_int_equal(atomic_load(&board->of[1].confirmed), 0);
	eng_sb_granted(e, WAN, now);
	turn();
	assert_string_equal(state_now(), "alone");
	assert_int_equal(atomic_load(&board->of[1].confirmed), 1);
}

/* Terms are the leader's. */
static void test_term(void **state)
{
	lead_alone();
	assert_int_equal(atomic_load(&board->term), e->sb.term);
	assert_int_equal(e->sb.term, 1);
	eng_free(e);
	atomic_store(&board->term, 9);
	lead = eng_board_hear(board);
	start(1);
	turn();
	assert_string_equal(state_now(), "alone");
	assert_int_equal(e->sb.term, 9);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_words),
	    CASE(test_follows),
	    CASE(test_asks_again),
	    CASE(test_misses_states),
	    CASE(test_reports),
	    CASE(test_no_link),
	    CASE(test_stands_still),
	    CASE(test_rests),
	    CASE(test_waits),
	    CASE(test_asks_later),
	    CASE(test_hears),
	    CASE(test_confirms),
	    CASE(test_term),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
