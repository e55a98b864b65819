/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of decision of the flight recorder (engine/recorder.h) is reached: two engines with a perfect
 * WAN, whose hosts and tunnels give reason for it. The last test lists what no other one reached.
 */
#include "tests/lib/eng_pair.h"

#include "engine/emit.h"
#include "engine/pair.h"
#include "engine/port.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "tests/lib/eng_cm.h"

#define QPN   0x200
#define B_QPN 0x1200
#define COST  2048

static bool reached[ENG_REC_KINDS];
static const uint8_t host_a[4] = {10, 1, 0, 3}, host_b[4] = {10, 2, 0, 3};

/* The newest entry of this kind at a site; false: there is none. */
static bool find(unsigned at, enum eng_record_kind kind, struct eng_record *out)
{
	const struct eng_recorder_ring *ring = eng_recorder(site[at].e);

	for (uint32_t i = 0, newest = ring->newest; i < ring->entries && i < newest; i++)
		if (eng_recorder_get(ring, newest - i, out) && out->kind == kind)
			return true;
	return false;
}

static struct eng_record last(unsigned at, enum eng_record_kind kind)
{
	struct eng_record r = {0};

	if (!find(at, kind, &r))
		fail_msg("no entry %s at site %u", eng_record_name(kind), at);
	return r;
}

static int tear_down(void **state)
{
	for (unsigned at = 0; at < 2; at++) {
		const struct eng_recorder_ring *ring = eng_recorder(site[at].e);

		for (uint32_t i = 0, newest = ring->newest; i < ring->entries && i < newest; i++) {
			struct eng_record r;

			if (eng_recorder_get(ring, newest - i, &r))
				reached[r.kind] = true;
		}
	}
	return eng_pair_tear_down(state);
}

static void host_a_asks(uint8_t opcode, uint32_t qpn, roce_psn psn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .ack_req = true,
	    .dqpn = qpn,
	    .payload_len = opcode == ROCE_RC_SEND_ONLY ? 64 : 0,
	    .len = opcode == ROCE_RC_READ_REQ ? 64 : 0,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

static void host_b_says(uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = B_QPN,
	    .syndrome = syndrome,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
}

static struct eng_responder *responder(void)
{
	struct eng_key k = {rwy_ip_from4(host_a), rwy_ip_from4(host_b), QPN, 0};

	return (struct eng_responder *)eng_find(site[0].e, &k, false);
}

static struct eng_requester *requester(void)
{
	struct eng_key k = {rwy_ip_from4(host_a), rwy_ip_from4(host_b), QPN, 0};

	return (struct eng_requester *)eng_find(site[1].e, &k, true);
}

/* Host A's connection, one request acknowledged by host B. */
static void connect_hosts(void)
{
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 0);
	eng_pair_run(5 * RWY_MS);
	host_b_says(0x1f, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(responder()->side.state, ENG_R_RUNNING);
}

static void test_begin(void **state)
{
	struct eng_record r;

	assert_int_equal(last(0, ENG_REC_START).seq, 1);
	r = last(0, ENG_REC_TUNNEL);
	assert_int_equal(r.to, ENG_TUNNEL_UP);
	assert_int_equal(r.side, ENG_OF_ENGINE);
	connect_hosts();
	last(1, ENG_REC_BEGIN);
	last(1, ENG_REC_OPENED);
	last(1, ENG_REC_TURN);
	r = last(1, ENG_REC_SENT);
	assert_int_equal(r.to, ENG_CTRL_SYNC);
	assert_int_equal(last(0, ENG_REC_RECEIVED).to, ENG_CTRL_SYNC);
	r = last(1, ENG_REC_PAIR);
	assert_int_equal(r.to, ENG_BY_PROBE);
	r = last(0, ENG_REC_RESPONDER);
	assert_int_equal(r.from, ENG_R_WAITING);
	assert_int_equal(r.to, ENG_R_RUNNING);
	/* Whose it is, as operators see it. */
	assert_memory_equal(&r.local, &responder()->side.key.src, 16);
	assert_int_equal(r.local_qpn, B_QPN);
	assert_int_equal(r.remote_qpn, QPN);
	r = last(1, ENG_REC_REQUESTER);
	assert_int_equal(r.to, ENG_Q_RUNNING);
	assert_memory_equal(&r.local, &responder()->side.key.dst, 16);
	assert_int_equal(r.local_qpn, QPN);
}

/* Ordinary packets leave no entry. */
static void test_silence(void **state)
{
	uint32_t before[2];

	connect_hosts();
	for (unsigned i = 0; i < 2; i++)
		before[i] = eng_recorder(site[i].e)->newest;
	for (roce_psn psn = 1; psn < 100; psn++) {
		host_a_asks(ROCE_RC_SEND_ONLY, QPN, psn);
		eng_pair_run(5 * RWY_MS);
		host_b_says(0x1f, psn);
		eng_pair_run(5 * RWY_MS);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(eng_recorder(site[i].e)->newest, before[i]);
}

static void test_naks(void **state)
{
	struct eng_record r;

	connect_hosts();
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 1);
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 3);
	eng_pair_run(RWY_MS);
	r = last(0, ENG_REC_NAK_SENT);
	assert_int_equal(r.psn, 2);
	assert_int_equal(eng_pair_flow(0).naks_sent, 1);
	host_a_asks(ROCE_RC_READ_REQ, QPN, 2);
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 3);
	eng_pair_run(5 * RWY_MS);
	host_b_says(0x60, 1);
	eng_pair_run(RWY_MS);
	assert_int_equal(last(1, ENG_REC_NAK_RECEIVED).psn, 1);
	last(1, ENG_REC_RESENT);
	host_b_says(0x20 | 6, 1); /* RNR, 80 us */
	eng_pair_run(RWY_MS);
	r = last(1, ENG_REC_RNR_NAK);
	assert_int_equal(r.psn, 1);
	assert_int_equal(r.value, 80);
	host_b_says(0x1f, 3); /* the READ's answer is missing */
	eng_pair_run(RWY_MS);
	assert_int_equal(last(1, ENG_REC_IMPLIED_NAK).psn, 2);
	assert_int_equal(eng_counters(site[1].e)->implied_nak_seq_err, 1);
	assert_int_equal(eng_counters(site[1].e)->rnr_nak_received, 1);
	assert_int_equal(eng_counters(site[1].e)->packet_seq_err, 1);
}

static void test_silent_host(void **state)
{
	struct eng_record r;

	connect_hosts();
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 1);
	eng_pair_run(2 * RWY_SEC);
	r = last(1, ENG_REC_TIMEOUT);
	assert_true(r.value > 1);
	assert_int_equal(r.psn, 1);
	assert_int_equal(last(1, ENG_REC_RESENT).psn, 1);
	assert_true(eng_pair_flow(1).host_timeouts > 1);
	while (!eng_counters(site[0].e)->conns_failed)
		eng_pair_run(10 * RWY_MS);
	assert_int_equal(last(1, ENG_REC_FAIL).value, ENG_END_SILENT);
	r = last(0, ENG_REC_FAIL);
	assert_int_equal(r.value, ENG_END_SILENT);
	assert_string_equal(eng_record_why(&r), "the far host did not answer: retry count exceeded");
	/* The log names the command that prints it. */
	assert_non_null(strstr(site[0].warning, "more=\"roceway why 10.1.0.3 10.2.0.3 512\""));
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 2);
	r = last(0, ENG_REC_REFUSED);
	assert_string_equal(eng_record_why(&r), "request on a failed connection: answered with NAK");
}

static void test_again(void **state)
{
	struct eng_record r;

	connect_hosts();
	eng_pair_run(RWY_SEC);
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 0x400000);
	eng_pair_run(5 * RWY_MS);
	r = last(0, ENG_REC_RESTART);
	assert_int_equal(r.psn, 0x400000);
	assert_int_equal(r.to, ENG_REUSE_gap_wide);
	last(1, ENG_REC_UNPAIR);
	eng_responder_free(responder(), eng_now);
	assert_int_equal(last(0, ENG_REC_FORGET).value, 0);
}

/* Two flows of the same hosts, and nobody answers. */
static void test_turns(void **state)
{
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, 0);
	host_a_asks(ROCE_RC_SEND_ONLY, QPN + 1, 0);
	eng_pair_run(3 * RWY_SEC);
	last(1, ENG_REC_TURN_END);
}

static void test_flow_ends(void **state)
{
	struct wan_txflow *flow;

	connect_hosts();
	flow = responder()->requests;
	eng_responder_reset(responder(), eng_now);
	last(0, ENG_REC_REFUSED_FLOW);
	wan_tx_abort(flow, eng_now); /* as if the far gateway had refused it */
	site[1].starved = true;
	eng_requester_fail(requester(), 1, 0x64, ENG_END_SILENT, eng_now);
	assert_int_equal(last(1, ENG_REC_OWED).to, ENG_CTRL_FAIL);
	site[1].starved = false;
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(last(1, ENG_REC_SENT).to, ENG_CTRL_FAIL);
}

static void test_lost(void **state)
{
	connect_hosts();
	assert_true(eng_requester_end_lost(requester()->responder, ENG_END_UNDELIVERED, eng_now));
	assert_int_equal(last(1, ENG_REC_LOST).value, ENG_END_UNDELIVERED);
}

static void test_worker(void **state)
{
	struct eng_record r;

	eng_wan_ops.congested(
	    &site[0].e->tunnel[0], 1, &(struct wan_congest_state){.by = WAN_CONGEST_DELAY}, eng_now);
	r = last(0, ENG_REC_CONGESTED);
	assert_int_equal(r.to, WAN_CONGEST_DELAY);
	assert_int_equal(r.value, 1);
	eng_settle_begin(site[0].e, eng_now);
	r = last(0, ENG_REC_DRAIN);
	assert_int_equal(r.from, ENG_SERVING);
	assert_int_equal(r.to, ENG_SETTLING);
}

static void tune_small(struct eng_cfg *c)
{
	c->buf_cost = COST;
	c->custody_conn = 4 * COST;
	c->memory_conn = 16 * COST;
	c->tunnel[0].wan.fec = WAN_FEC_OFF;
}

static int set_up_small(void **state)
{
	eng_pair_tune = tune_small;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return 0;
}

/* In an outage custody fills up: first ACKs wait, then requests are refused. */
static void test_memory(void **state)
{
	struct eng_flow_info f;
	struct eng_record r;

	connect_hosts();
	eng_pair_cut(true);
	for (roce_psn psn = 1; psn < 40; psn++)
		host_a_asks(ROCE_RC_SEND_ONLY, QPN, psn);
	eng_pair_run(5 * RWY_MS);
	r = last(0, ENG_REC_WITHHELD);
	assert_int_equal(r.to, ENG_WAIT_MEMORY);
	assert_int_equal(r.value, 4 * COST / 1024);
	r = last(0, ENG_REC_REFUSED);
	assert_string_equal(
	    eng_record_why(&r), "requests above their connection's bound of memory: asked for again later");
	host_a_asks(ROCE_RC_SEND_ONLY, QPN, responder()->resp.allow_psn);
	last(0, ENG_REC_SINGLE);
	f = eng_pair_flow(0);
	assert_string_equal(f.limit, "memory");
	assert_int_equal(f.withheld_times, 1);
	assert_true(f.withheld >= 5 * RWY_MS);
	eng_pair_cut(false);
	for (unsigned i = 0; i < 20; i++) {
		eng_pair_run(200 * RWY_MS);
		host_b_says(0x1f, site[1].psn_of[QPN & 255]);
	}
	eng_pair_run(50 * RWY_MS);
	last(0, ENG_REC_ROOM);
	assert_true(last(0, ENG_REC_RELEASED).value > 5000);
}

static void tune_answers(struct eng_cfg *c)
{
	c->buf_cost = COST;
	c->memory_conn = 2 * COST;
	c->custody_conn = COST;
	c->memory_total = 64 * COST;
}

static int set_up_answers(void **state)
{
	eng_pair_tune = tune_answers;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return 0;
}

/* Host B answers a READ faster than the WAN takes it. */
static void test_read_held(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_READ_REQ,
	    .psn = 1,
	    .dqpn = QPN,
	    .len = 64 * 1024,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	connect_hosts();
	eng_host_sends(0, &m, 0);
	eng_pair_run(5 * RWY_MS);
	eng_pair_cut(true);
	for (roce_psn psn = 1; psn < 60; psn++) {
		struct rc_mk a = {.opcode = psn == 1 ? ROCE_RC_READ_RESP_FIRST : ROCE_RC_READ_RESP_MIDDLE,
		    .psn = psn,
		    .dqpn = B_QPN,
		    .payload_len = 1024,
		    .syndrome = 0x1f,
		    .src = {10, 2, 0, 3},
		    .dst = {10, 1, 0, 3}};

		eng_host_sends(1, &a, 0);
	}
	last(1, ENG_REC_READ_HELD);
	eng_pair_cut(false);
	eng_pair_run(50 * RWY_MS);
}

static void test_left_out(void **state)
{
	connect_hosts();
	for (roce_psn psn = 3; psn < 50; psn++) {
		host_a_asks(ROCE_RC_SEND_ONLY, QPN, 0x100000 + psn);
		host_a_asks(0x1c, QPN, 1); /* FLUSH is not carried */
	}
	eng_pair_run(RWY_SEC);
	host_a_asks(0x1c, QPN, 1);
	assert_true(last(0, ENG_REC_LEFT_OUT).value > 0);
}

static void tune_end(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_END;
}

static int set_up_end(void **state)
{
	eng_pair_tune = tune_end;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return 0;
}

/* Host A waits for 0.5 s, less than the round trip. */
static void test_cm(void **state)
{
	eng_pair_delay(400 * RWY_MS);
	eng_pair_run(60 * RWY_SEC);
	eng_cm_connect(0, 1, 7, 5);
	eng_pair_run(RWY_SEC);
	assert_int_equal(last(0, ENG_REC_PAIR).to, ENG_BY_CM);
	last(0, ENG_REC_IMPATIENT);
	eng_pair_cut(true);
	host_a_asks(ROCE_RC_SEND_ONLY, CM_QPN_B, CM_PSN_A);
	eng_settle_begin(site[1].e, eng_now);
	eng_cm_dreq(0);
	eng_pair_cut(false);
	eng_pair_run(50 * RWY_MS);
	last(0, ENG_REC_DISCONNECT);
}

static void test_dreq(void **state)
{
	eng_cm_connect(0, 7, 7, 18);
	eng_pair_cut(true);
	host_a_asks(ROCE_RC_SEND_ONLY, CM_QPN_B, CM_PSN_A);
	eng_pair_run(10 * RWY_MS);
	eng_cm_dreq(0);
	last(0, ENG_REC_DREQ_WAITS);
	eng_pair_cut(false);
	for (unsigned i = 0; i < 50; i++) {
		struct rc_mk m = {.opcode = ROCE_RC_ACK,
		    .psn = CM_PSN_A,
		    .dqpn = CM_QPN_A,
		    .syndrome = 0x1f,
		    .src = {10, 2, 0, 3},
		    .dst = {10, 1, 0, 3}};

		eng_pair_run(20 * RWY_MS);
		if (site[1].of_qpn[CM_QPN_B & 255])
			eng_host_sends(1, &m, 0);
	}
	last(0, ENG_REC_DREQ_SENT);
}

static void test_all_are_reached(void **state)
{
	for (unsigned i = 1; i < ENG_REC_KINDS; i++)
		if (!reached[i])
			fail_msg("%s is not reached", eng_record_name((enum eng_record_kind)i));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, eng_pair_set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_begin), TEST(test_silence), TEST(test_naks),
	    TEST(test_silent_host), TEST(test_again), TEST(test_turns), TEST(test_flow_ends), TEST(test_lost),
	    TEST(test_worker), cmocka_unit_test_setup_teardown(test_memory, set_up_small, tear_down),
	    cmocka_unit_test_setup_teardown(test_read_held, set_up_answers, tear_down), TEST(test_left_out),
	    cmocka_unit_test_setup_teardown(test_cm, set_up_end, tear_down), TEST(test_dreq),
	    cmocka_unit_test(test_all_are_reached)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
