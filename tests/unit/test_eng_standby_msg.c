/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages in the tunnel of a pair of gateways (engine/standby_port.c, engine/store.c): what is
 * malformed, late, or not meant for this process is counted and changes nothing.
 */
#include "tests/lib/eng_site_hosts.h"

#include "engine/store.h"
#include "rwy/endian.h"
#include "wan/tunnel.h"

#define STATE_LEN  17 /* of a message with a state */
#define NOTE_HDR   9
#define NOTE_LINKS 253

static uint64_t bad_before;

static struct eng_tunnel *cable(unsigned gw)
{
	return &sp_gw[gw].e->tunnel[SP_CABLE];
}

static uint64_t bad(unsigned gw)
{
	return sp_counters(gw)->drop_tunnel_msg;
}

static struct rwy_buf *message(unsigned gw, const void *bytes, uint32_t len, uint8_t kind)
{
	struct rwy_buf *b = rwy_buf_alloc(&sp_gw[gw].e->bufs, WAN_HDR_MAX, len);

	assert_non_null(b);
	memcpy(b->data, bytes, len);
	b->kind = kind;
	return b;
}

/* The gateway says that it is in this state, to the process that has this epoch. */
static void says(unsigned gw, uint64_t epoch, uint8_t state, uint32_t len)
{
	uint8_t m[STATE_LEN + 1] = {0};

	for (unsigned i = 0; i < 8; i++)
		m[i] = (uint8_t)(epoch >> (56 - 8 * i));
	m[8] = state;
	assert_non_null(cable(gw)->mgmt);
	wan_tx_send(cable(gw)->mgmt, message(gw, m, len, RWY_BUF_CTRL), sp_now);
	sp_run(2 * RWY_MS);
}

static uint64_t epoch_of(unsigned gw)
{
	return sp_gw[gw].e->cfg.tunnel[SP_CABLE].wan.epoch;
}

static void still_paired(void)
{
	assert_string_equal(sp_state(SP_A1), "paired");
	assert_string_equal(sp_state(SP_A2), "ready");
	assert_int_equal(sp_gw[SP_A1].told, 1);
	assert_int_equal(sp_gw[SP_A2].told, 0);
}

/* --- messages of states ------------------------------------------------------------------------- */

static void test_malformed_state(void **state)
{
	uint64_t n = bad(SP_A2);

	says(SP_A1, epoch_of(SP_A2), ENG_SB_ALONE, STATE_LEN - 1);
	assert_int_equal(bad(SP_A2), ++n);
	says(SP_A1, epoch_of(SP_A2), ENG_SB_ALONE, STATE_LEN + 1);
	assert_int_equal(bad(SP_A2), ++n);
	says(SP_A1, epoch_of(SP_A2), ENG_SB_ALONE, 1);
	assert_int_equal(bad(SP_A2), ++n);
	says(SP_A1, epoch_of(SP_A2), ENG_SB_NONE, NOTE_HDR); /* a note of no bytes */
	assert_int_equal(bad(SP_A2), ++n);
	says(SP_A1, epoch_of(SP_A2), NOTE_LINKS, NOTE_HDR); /* the same */
	assert_int_equal(bad(SP_A2), ++n);
	for (unsigned s = ENG_SB_STATE_COUNT; s < 256; s++) {
		if (s == NOTE_LINKS) /* it has the bytes of a note */
			continue;
		says(SP_A1, epoch_of(SP_A2), (uint8_t)s, STATE_LEN);
		assert_int_equal(bad(SP_A2), ++n);
	}
	still_paired();
	sh_connect();
	sh_request(6);
	assert_true(sh_acked(6));
}

static void test_notes(void **state)
{
	static const uint8_t text[] = "10.1.0.2 is at 02:00:00:00:00:02";
	uint8_t most[ENG_NOTE_MAX];

	memset(most, 7, sizeof(most));
	assert_int_equal(
	    eng_standby_note(sp_gw[SP_A1].e, ENG_STANDBY_NEIGHBOURS, text, sizeof(text), sp_now), 0);
	sp_run(SH_SOON);
	assert_int_equal(sp_gw[SP_A2].note_len, sizeof(text));
	assert_memory_equal(sp_gw[SP_A2].note, text, sizeof(text));
	assert_int_equal(sp_gw[SP_A2].note_kind, ENG_STANDBY_NEIGHBOURS);
	assert_int_equal(eng_standby_note(sp_gw[SP_A2].e, ENG_STANDBY_LINKS, most, sizeof(most), sp_now), 0);
	sp_run(SH_SOON);
	assert_int_equal(sp_gw[SP_A1].note_len, sizeof(most));
	assert_memory_equal(sp_gw[SP_A1].note, most, sizeof(most));
	assert_int_equal(sp_gw[SP_A1].note_kind, ENG_STANDBY_LINKS);
	still_paired();
	assert_int_equal(bad(SP_A1) + bad(SP_A2), 0);
	assert_int_equal(
	    eng_standby_note(sp_gw[SP_B].e, ENG_STANDBY_NEIGHBOURS, text, sizeof(text), sp_now), RWY_EAGAIN);
	sp_gw[SP_A2].note_len = 0;
	says(SP_A1, epoch_of(SP_A2) + 2, ENG_SB_NONE, STATE_LEN); /* for the process before */
	assert_int_equal(sp_gw[SP_A2].note_len, 0);
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", SP_WAIT);
	assert_int_equal(
	    eng_standby_note(sp_gw[SP_A1].e, ENG_STANDBY_NEIGHBOURS, text, sizeof(text), sp_now), RWY_EAGAIN);
}

/* The standby counts as having everything only when it has the program's part, too. */
static void test_program_lacks(void **state)
{
	const uint32_t round = eng_standby_round(sp_gw[SP_A1].e);

	assert_true(round > 0 && eng_standby_gates(sp_gw[SP_A1].e));
	assert_int_equal(eng_standby_round(sp_gw[SP_A2].e), 0);
	sp_kill(SP_A2);
	sp_reach(SP_A1, "alone", SP_WAIT);
	assert_int_equal(eng_standby_round(sp_gw[SP_A1].e), 0);
	assert_false(eng_standby_gates(sp_gw[SP_A1].e));
	sp_gw[SP_A1].lacks = true;
	sp_start(SP_A2);
	sp_reach(SP_A1, "copying", SP_WAIT);
	sp_run(SP_WAIT);
	assert_string_equal(sp_state(SP_A1), "copying");
	assert_string_equal(sp_state(SP_A2), "storing");
	assert_int_equal(eng_standby_round(sp_gw[SP_A1].e), round + 1);
	sp_gw[SP_A1].lacks = false;
	sp_reach(SP_A1, "paired", SP_WAIT);
	sp_reach(SP_A2, "ready", SP_WAIT);
}

static const struct wan_resuming *resume_of(unsigned gw)
{
	return &sp_gw[gw].e->tunnel[SP_WAN].wan->path[0].resume;
}

/* The active gateway tells what paths carry. Of a path or tunnel that is not here it counts for
 * nothing, and so does what the standby says. */
static void test_paths(void **state)
{
	struct {
		uint8_t hdr[NOTE_HDR];
		uint8_t path[2][25];
	} m = {0};

	sh_connect();
	for (roce_psn p = 6; p < 40; p++)
		sh_request(p);
	assert_true(resume_of(SP_A2)->from.rate_Bps > 0);
	assert_in_range(resume_of(SP_A2)->from.rtt, 2 * SP_WAN_WAY, 4 * SP_WAN_WAY);
	assert_int_equal(resume_of(SP_A1)->from.rate_Bps, 0);
	for (unsigned gw = SP_A1; gw <= SP_A2; gw++) {
		uint64_t id = sp_gw[gw].e->cfg.tunnel[SP_WAN].wan.tunnel_id;

		rwy_put64(m.hdr, epoch_of(!gw));
		m.hdr[8] = 254;
		for (unsigned i = 0; i < 2; i++) {
			rwy_put64(m.path[i], id + !i); /* the first one is no tunnel's */
			m.path[i][8] = i ? 7 : 0;      /* nor is there such a path */
			rwy_put64(m.path[i] + 9, 12345);
			rwy_put64(m.path[i] + 17, RWY_MS);
		}
		wan_tx_send(cable(gw)->mgmt, message(gw, &m, sizeof(m), RWY_BUF_CTRL), sp_now);
		sp_run(2 * RWY_MS);
		assert_int_not_equal(resume_of(!gw)->from.rate_Bps, 12345);
		m.path[1][8] = 0;
		wan_tx_send(cable(gw)->mgmt, message(gw, &m, sizeof(m), RWY_BUF_CTRL), sp_now);
		sp_run(2 * RWY_MS);
		assert_int_equal(resume_of(!gw)->from.rate_Bps == 12345, gw == SP_A1);
	}
	still_paired();
	assert_int_equal(bad(SP_A1) + bad(SP_A2), 0);
}

/* They were for the process before this one. */
static void test_stale_state(void **state)
{
	uint64_t n1 = bad(SP_A1), n2 = bad(SP_A2);

	for (unsigned s = ENG_SB_ALONE; s < ENG_SB_STATE_COUNT; s++) {
		says(SP_A1, epoch_of(SP_A2) + 2, (uint8_t)s, STATE_LEN);
		says(SP_A2, epoch_of(SP_A1) + 2, (uint8_t)s, STATE_LEN);
		still_paired();
	}
	assert_int_equal(bad(SP_A1), n1);
	assert_int_equal(bad(SP_A2), n2);
}

static bool only(unsigned gw)
{
	return sp_gw[gw].serves && !sp_gw[!gw].serves;
}

/* The same with the right epoch counts: else the tests above could not fail. */
static void test_states_count(void **state)
{
	says(SP_A1, epoch_of(SP_A2), ENG_SB_ALONE, STATE_LEN);
	assert_string_equal(sp_state(SP_A2), "storing");
	sp_tear_down(state);
	assert_int_equal(sp_set_up_paired(state), 0);
	says(SP_A2, epoch_of(SP_A1), ENG_SB_PAIRED, STATE_LEN);
	assert_string_equal(sp_state(SP_A1), "replaced");
	assert_int_equal(sp_gw[SP_A1].replaced, 1);
	sp_reach(SP_A2, "alone", RWY_SEC); /* it hears that, and takes over */
	assert_true(only(SP_A2));
}

/* Two that serve, by an error of somebody: exactly one goes on. */
static void test_two_serve(void **state)
{
	unsigned larger;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(sp_set_up(state), 0);
		sp_start(SP_B);
		for (unsigned k = 0; k < i; k++) {
			sp_start(SP_A1);
			sp_kill(SP_A1);
		}
		sp_cable(SP_CUT);
		sp_start(SP_A1);
		sp_reach(SP_A1, "alone", 2 * SP_WAIT);
		sp_link(SP_A_TO_B, SP_CUT);
		sp_link(SP_B_TO_A, SP_CUT);
		sp_kill(SP_B); /* another witness */
		sp_freeze(SP_A1, true);
		sp_link(SP_A_TO_B, SP_GOOD);
		sp_link(SP_B_TO_A, SP_GOOD);
		sp_start(SP_B);
		sp_start(SP_A2);
		sp_reach(SP_A2, "alone", 3 * SP_WAIT);
		sp_kill(SP_B); /* it would decide */
		sp_freeze(SP_A1, false);
		sp_run(SP_STEP);
		assert_true(sp_gw[SP_A1].serves && sp_gw[SP_A2].serves);
		larger = epoch_of(SP_A1) > epoch_of(SP_A2) ? SP_A1 : SP_A2;
		sp_cable(SP_GOOD);
		sp_reach(larger, "replaced", 2 * RWY_SEC);
		assert_true(only(!larger));
		assert_int_equal(sp_tear_down(state), 0);
	}
}

/* --- flows -------------------------------------------------------------------------------------- */

static struct eng_open copy_of(uint32_t qpn)
{
	return (struct eng_open){.type = ENG_OPEN_COPY,
	    .rnr_retry = ENG_RETRY_UNKNOWN,
	    .retry = ENG_RETRY_UNKNOWN,
	    .incarnation = 9,
	    .peer_qpn = SH_QPN_A,
	    .key = {rwy_ip_from4((uint8_t[]){10, 1, 0, 3}), rwy_ip_from4((uint8_t[]){10, 2, 0, 3}), qpn, 0}};
}

/* The active gateway takes its end for that of the management flow, which it opens anew. */
static struct wan_txflow *open_flow(unsigned gw, const struct eng_open *o, size_t len)
{
	struct wan_txflow *f;
	uint8_t info[WAN_OPEN_MAX] = {0};

	eng_open_encode(info, o);
	assert_int_equal(wan_tx_open(cable(gw)->wan, &f, info, len, cable(gw), sp_now), 0);
	return f;
}

static void send(struct wan_txflow *f, const void *bytes, uint32_t len, uint8_t kind)
{
	wan_tx_send(f, message(SP_A1, bytes, len, kind), sp_now);
}

/* An opening goes out with the first message. */
static void open_with_message(unsigned gw, const struct eng_open *o, size_t len)
{
	wan_tx_send(open_flow(gw, o, len), message(gw, "", 1, RWY_BUF_CTRL), sp_now);
	sp_run(SH_SOON);
}

static void test_malformed_open(void **state)
{
	struct eng_open o = copy_of(SH_QPN_B);
	uint64_t n = bad(SP_A2);

	open_with_message(SP_A1, &o, ENG_OPEN_LEN - 1);
	assert_int_equal(bad(SP_A2), ++n);
	o.type = ENG_OPEN_REQ;
	open_with_message(SP_A1, &o, ENG_OPEN_LEN);
	assert_int_equal(bad(SP_A2), ++n);
	o.type = ENG_OPEN_RSP;
	open_with_message(SP_A1, &o, ENG_OPEN_LEN);
	assert_int_equal(bad(SP_A2), ++n);
	assert_null(sp_gw[SP_A2].e->sb.stored);
	still_paired();
}

/* A gateway that serves stores nothing. */
static void test_copies_for_the_active(void **state)
{
	struct eng_open o = copy_of(SH_QPN_B);
	struct eng_copy_msg m = {.type = ENG_COPY_BASE, .psn = 5};
	uint8_t base[ENG_COPY_LEN];
	struct wan_stats s;

	eng_copy_encode(base, &m);
	wan_tx_send(
	    open_flow(SP_A2, &o, ENG_OPEN_LEN), message(SP_A2, base, ENG_COPY_LEN, RWY_BUF_CTRL), sp_now);
	sp_run(SH_SOON);
	assert_null(sp_gw[SP_A1].e->sb.stored);
	eng_tunnel_stats(sp_gw[SP_A1].e, SP_CABLE, &s);
	assert_int_equal(s.rx_flows, 1); /* of the messages of states */
	still_paired();
}

static void send_copy_msg(struct wan_txflow *f, enum eng_copy_type type, uint16_t pmtu, roce_psn psn)
{
	struct eng_copy_msg m = {.type = (uint8_t)type, .pmtu = pmtu, .psn = psn};
	uint8_t bytes[ENG_COPY_LEN];

	send(f, bytes, (uint32_t)eng_copy_encode(bytes, &m), RWY_BUF_CTRL);
}

static void send_request(struct wan_txflow *f, uint8_t opcode, uint32_t qpn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = 5,
	    .dqpn = qpn,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	uint8_t ip[RC_PKT_MAX];

	send(f, ip, rc_pkt_make(ip, &m), RWY_BUF_PACKET);
}

/* The flow is refused: nothing of it is left, and nothing else is touched. */
static void refused(void)
{
	sp_run(SH_SOON);
	assert_null(sp_gw[SP_A2].e->sb.stored);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	still_paired();
}

static struct wan_txflow *flow_of_copies(bool based)
{
	struct eng_open o = copy_of(SH_QPN_B);
	struct wan_txflow *f = open_flow(SP_A1, &o, ENG_OPEN_LEN);

	if (based)
		send_copy_msg(f, ENG_COPY_BASE, 1024, 5);
	bad_before = bad(SP_A2);
	return f;
}

static void test_malformed_copies(void **state)
{
	static const uint8_t junk[ENG_COPY_LEN + 1] = {9, 9, 9};
	struct wan_txflow *f;

	send(flow_of_copies(true), junk, ENG_COPY_LEN, RWY_BUF_CTRL);
	refused();
	send(flow_of_copies(true), junk, ENG_COPY_LEN + 1, RWY_BUF_CTRL);
	refused();
	send(flow_of_copies(true), junk, 1, RWY_BUF_CTRL);
	refused();
	send_copy_msg(flow_of_copies(true), ENG_COPY_BASE, 1024, 5); /* twice */
	refused();
	send_copy_msg(flow_of_copies(false), ENG_COPY_RELEASE, 0, 5); /* before it */
	refused();
	send_copy_msg(flow_of_copies(true), ENG_COPY_PMTU, 1000, 5);
	refused();
	send_request(flow_of_copies(false), ROCE_RC_SEND_ONLY, SH_QPN_B);
	refused();
	assert_int_equal(bad(SP_A2), bad_before + 1);
	send(flow_of_copies(true), junk, ENG_COPY_LEN, RWY_BUF_PACKET);
	refused();
	assert_int_equal(bad(SP_A2), bad_before + 1);
	send_request(flow_of_copies(true), ROCE_RC_SEND_ONLY, SH_QPN_B + 1); /* another connection's */
	refused();
	assert_int_equal(bad(SP_A2), bad_before + 1);
	send_request(flow_of_copies(true), ROCE_RC_ACK, SH_QPN_B);
	refused();
	assert_int_equal(bad(SP_A2), bad_before + 1);
	f = flow_of_copies(true);
	send_request(f, ROCE_RC_SEND_ONLY, SH_QPN_B); /* good ones are stored */
	sp_run(SH_SOON);
	assert_non_null(sp_gw[SP_A2].e->sb.stored);
	assert_true(sp_bytes(SP_A2, ENG_MEM_STORED) > 0);
	send(f, junk, ENG_COPY_LEN, RWY_BUF_CTRL);
	refused();
}

/* RELEASE of what is not there, and of what was released before. */
static void test_odd_releases(void **state)
{
	struct wan_txflow *f = flow_of_copies(true);
	const struct eng_stored *s;

	send_request(f, ROCE_RC_SEND_ONLY, SH_QPN_B);
	send_copy_msg(f, ENG_COPY_RELEASE, 0, 4);
	sp_run(SH_SOON);
	s = sp_gw[SP_A2].e->sb.stored;
	assert_non_null(s);
	assert_int_equal(s->q.n, 1);
	send_copy_msg(f, ENG_COPY_RELEASE, 0, 600);
	sp_run(SH_SOON);
	assert_int_equal(s->q.n, 0);
	assert_int_equal(s->first, 600);
	send_copy_msg(f, ENG_COPY_RELEASE, 0, 6);
	sp_run(SH_SOON);
	assert_int_equal(s->first, 600);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	still_paired();
}

/* Copies that do not fit together: their host gets an error, or nothing is taken over. */
static void test_copies_with_a_hole(void **state)
{
	struct wan_txflow *f = flow_of_copies(false);

	send_copy_msg(f, ENG_COPY_BASE, 1024, 4); /* request 4 is missing */
	send_request(f, ROCE_RC_SEND_ONLY, SH_QPN_B);
	sp_run(SH_SOON);
	sp_kill(SP_A1);
	sp_reach(SP_A2, "alone", RWY_SEC);
	assert_int_equal(sp_counters(SP_A2)->taken_over, 0);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	assert_int_equal(sp_host[SP_SITE_B].requests, 0);
	sh_request(6);
	assert_int_equal(sp_host[SP_SITE_A].naks, 1);
	assert_int_equal(sp_host[SP_SITE_A].acks, 0);
}

static int begin_paired(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	return r;
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, begin_paired, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_malformed_state),
	    CASE(test_notes),
	    CASE(test_program_lacks),
	    CASE(test_paths),
	    CASE(test_stale_state),
	    CASE(test_states_count),
	    cmocka_unit_test(test_two_serve),
	    CASE(test_malformed_open),
	    CASE(test_copies_for_the_active),
	    CASE(test_malformed_copies),
	    CASE(test_odd_releases),
	    CASE(test_copies_with_a_hole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
