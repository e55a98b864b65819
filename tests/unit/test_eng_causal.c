/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ack mode `causal`: host B gets a request after what host A had been told is done on its other
 * queue pairs. Two engines, a perfect WAN; host B answers when the test says so.
 */
#include "tests/lib/eng_pair.h"

#include "engine/eng.h"
#include "wan/tunnel.h"

#define FIRST 5 /* PSN that each queue pair begins with */
#define QPS   200

static unsigned told[QPS]; /* A's ACKs: the PSN after the last one acknowledged */
static roce_msn msn[QPS];

static uint32_t qpn_a(unsigned q)
{
	return 0x1000 + q;
}

static uint32_t qpn_b(unsigned q)
{
	return 0x2000 + q;
}

static void send_op(unsigned q, uint8_t opcode, roce_psn psn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = qpn_b(q),
	    .ack_req = true,
	    .len = opcode == ROCE_RC_WRITE_FIRST ? 320 : 64,
	    .payload_len = opcode == ROCE_RC_READ_REQ      ? 0
	                   : opcode == ROCE_RC_WRITE_FIRST ? 256
	                                                   : 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

static void a_writes(unsigned q, roce_psn psn)
{
	send_op(q, ROCE_RC_WRITE_ONLY, psn);
}

/* B's ACK (0x1f) or another syndrome. */
static void b_answers(unsigned q, roce_psn psn, uint8_t syndrome)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = qpn_a(q),
	    .syndrome = syndrome,
	    .msn = ++msn[q],
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
}

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (s->idx == 0 && pkt->info->op == ROCE_OP_ACK &&
	    roce_aeth_type(roce_aeth_syndrome(pkt)) == ROCE_AETH_ACK)
		told[pkt->dqpn - 0x1000] = pkt->psn + 1;
}

/* Requests of a queue pair that B got, without repeats. */
static unsigned got(unsigned q)
{
	return site[1].psn_of[qpn_b(q) & 255] - FIRST + 1;
}

static uint64_t lists(void)
{
	return eng_counters(site[0].e)->causal_lists;
}

static uint64_t held_back(void)
{
	return site[1].e->tunnel[0].wan->c.rx_held_back;
}

static void causal(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_CAUSAL;
}

static int set_up(void **state)
{
	memset(told, 0, sizeof(told));
	memset(msn, 0, sizeof(msn));
	if (!eng_pair_tune)
		eng_pair_tune = causal;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	site[0].heard = heard;
	return 0;
}

static void connect_qps(unsigned n)
{
	for (unsigned q = 0; q < n; q++) {
		a_writes(q, FIRST);
		eng_pair_run(10 * RWY_MS);
		b_answers(q, FIRST, 0x1f);
		eng_pair_run(10 * RWY_MS);
		assert_int_equal(told[q], FIRST + 1);
		assert_int_equal(got(q), 1);
	}
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
}

static void test_one(void **state)
{
	connect_qps(1);
	for (unsigned i = 1; i < 50; i++) {
		a_writes(0, FIRST + i);
		eng_pair_run(RWY_MS);
		assert_int_equal(told[0], FIRST + i + 1);
	}
	assert_int_equal(lists(), 0);
	assert_int_equal(held_back(), 0);
}

static void test_two(void **state)
{
	connect_qps(2);
	a_writes(0, FIRST + 1);
	eng_pair_run(RWY_MS);
	assert_int_equal(told[0], FIRST + 2); /* early, as in `near` */
	a_writes(1, FIRST + 1);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(told[1], FIRST + 2);
	assert_int_equal(got(0), 2);
	assert_int_equal(got(1), 1);
	b_answers(0, FIRST + 1, 0x1f);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(got(1), 2);
	assert_int_equal(lists(), 0);
}

/* READs are held back, too: A reads what it wrote. */
static void test_read(void **state)
{
	connect_qps(2);
	a_writes(0, FIRST + 1);
	eng_pair_run(RWY_MS);
	send_op(1, ROCE_RC_READ_REQ, FIRST + 1);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(got(1), 1);
	b_answers(0, FIRST + 1, 0x1f);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(got(1), 2);
}

/* What has no ACK yet is not waited for, nor what was acknowledged later. */
static void test_concurrent(void **state)
{
	connect_qps(2);
	a_writes(0, FIRST + 1);
	a_writes(1, FIRST + 1);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(got(0), 2);
	assert_int_equal(got(1), 2);
	assert_int_equal(held_back(), 0);
}

/* A READ that waits for its response is no reason to wait, nor what is behind it. */
static void test_behind_read(void **state)
{
	connect_qps(2);
	send_op(0, ROCE_RC_READ_REQ, FIRST + 1);
	a_writes(0, FIRST + 2);
	eng_pair_run(RWY_MS);
	a_writes(1, FIRST + 1);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(got(0), 3);
	assert_int_equal(got(1), 2);
}

/* Only the first packet of a message waits; the others follow it. */
static void test_message(void **state)
{
	connect_qps(2);
	send_op(1, ROCE_RC_WRITE_FIRST, FIRST + 1);
	eng_pair_run(RWY_MS);
	a_writes(0, FIRST + 1);
	eng_pair_run(RWY_MS);
	send_op(1, ROCE_RC_WRITE_LAST, FIRST + 2);
	eng_pair_run(50 * RWY_MS);
	/* QP 0 waits for the first packet, which A knows of. */
	assert_int_equal(got(1), 3);
	assert_int_equal(got(0), 1);
	b_answers(1, FIRST + 1, 0x1f);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(got(0), 2);
}

static void test_chain(void **state)
{
	const unsigned n = 150; /* more than a list has room for */

	connect_qps(n);
	for (unsigned q = 0; q + 1 < n; q++) {
		a_writes(q, FIRST + 1);
		if (q % 7 == 0)
			eng_pair_run(RWY_MS);
	}
	eng_pair_run(10 * RWY_MS);
	a_writes(n - 1, FIRST + 1);
	eng_pair_run(50 * RWY_MS);
	assert_true(lists() > 1);
	for (unsigned done = 0; done < n - 1;) {
		unsigned before = done;

		assert_int_equal(got(n - 1), 1);
		for (unsigned q = 0; q + 1 < n; q++)
			if (got(q) == 2 && msn[q] == 1) {
				b_answers(q, FIRST + 1, 0x1f);
				done++;
			}
		eng_pair_run(10 * RWY_MS);
		assert_true(done > before);
	}
	assert_int_equal(got(n - 1), 2);
	b_answers(n - 1, FIRST + 1, 0x1f);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(site[1].e->tunnel[0].wan->strangers ? 1 : 0, 0);
}

/* The far host refuses what was acknowledged: A is told, then the others go on. */
static void test_failed(void **state)
{
	connect_qps(3);
	a_writes(0, FIRST + 1);
	a_writes(1, FIRST + 1);
	eng_pair_run(RWY_MS);
	a_writes(2, FIRST + 1);
	eng_pair_run(10 * RWY_MS);
	b_answers(1, FIRST + 1, 0x1f);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(got(2), 1);
	b_answers(0, FIRST + 1, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS));
	for (unsigned i = 0; i < 20 && got(2) == 1; i++)
		eng_pair_run(RWY_MS);
	assert_int_equal(got(2), 2);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 1);
	a_writes(0, FIRST + 2);
	eng_pair_run(RWY_MS);
	assert_int_equal(site[0].of[0].naks, 1);
}

/* Several busy queue pairs: their ACKs go out together. */
static void slow_beat(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_CAUSAL;
	c->causal_beat = 5 * RWY_MS;
}

static int set_up_slow(void **state)
{
	eng_pair_tune = slow_beat;
	return set_up(state);
}

static void test_beat(void **state)
{
	connect_qps(3);
	a_writes(0, FIRST + 1);
	eng_pair_run(RWY_MS);
	assert_int_equal(told[0], FIRST + 2); /* alone: at once */
	a_writes(1, FIRST + 1);
	eng_pair_run(RWY_MS);
	a_writes(2, FIRST + 1);
	eng_pair_run(RWY_MS);
	assert_int_equal(told[1], FIRST + 1);
	assert_int_equal(told[2], FIRST + 1);
	eng_pair_run(4 * RWY_MS);
	assert_int_equal(told[1], FIRST + 2);
	assert_int_equal(told[2], FIRST + 2);
}

/* In a stream an ACK covers what came before the beat before: the far host has a beat of time. */
static void test_stream(void **state)
{
	connect_qps(3);
	for (unsigned q = 0; q < 3; q++)
		a_writes(q, FIRST + 1);
	eng_pair_run(6 * RWY_MS);
	for (unsigned i = 2; i < 6; i++)
		for (unsigned q = 0; q < 3; q++)
			a_writes(q, FIRST + i);
	eng_pair_run(RWY_MS);
	for (unsigned q = 0; q < 3; q++)
		assert_int_equal(told[q], FIRST + 2);
	eng_pair_run(20 * RWY_MS);
	for (unsigned q = 0; q < 3; q++)
		assert_int_equal(told[q], FIRST + 6);
}

/* A far gateway that cannot keep order: as mode `end`. */
static void test_old_peer(void **state)
{
	connect_qps(2);
	site[0].e->tunnel[0].wan->peer.order = false;
	a_writes(0, FIRST + 1);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(told[0], FIRST + 1);
	a_writes(1, FIRST + 1);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(got(1), 2);
	b_answers(0, FIRST + 1, 0x1f);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(told[0], FIRST + 2);
}

/* The first entry that matches decides; a change takes effect with the next request. */
static void by_pair(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_FAR;
	c->mode[0] = (struct eng_mode){.from = rwy_ip_from4((uint8_t[]){10, 1, 0, 0}),
	    .from_len = 96 + 24,
	    .to = rwy_ip_from4((uint8_t[]){10, 2, 0, 9}),
	    .to_len = 128,
	    .mode = ENG_ACK_END};
	c->mode[1] = (struct eng_mode){
	    .to = rwy_ip_from4((uint8_t[]){10, 2, 0, 3}), .to_len = 128, .mode = ENG_ACK_CAUSAL};
	c->mode[2] = (struct eng_mode){.mode = ENG_ACK_NEAR};
	c->modes = 3;
}

static int set_up_by_pair(void **state)
{
	eng_pair_tune = by_pair;
	return set_up(state);
}

static void test_mode_of_pair(void **state)
{
	static const struct {
		uint8_t src[4], dst[4];
		enum eng_ack_mode mode;
	} want[] = {
	    {{10, 1, 0, 3}, {10, 2, 0, 9}, ENG_ACK_END},
	    {{10, 1, 1, 3}, {10, 2, 0, 9}, ENG_ACK_NEAR},
	    {{10, 1, 1, 3}, {10, 2, 0, 3}, ENG_ACK_CAUSAL},
	    {{10, 1, 0, 3}, {10, 2, 0, 4}, ENG_ACK_NEAR},
	};
	const struct eng_tenant *t = site[0].e->tenant[0];
	struct eng_tenant_cfg c = {.vni = 7, .ack_mode = ENG_ACK_FAR};

	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct eng_key k = {.src = rwy_ip_from4(want[i].src), .dst = rwy_ip_from4(want[i].dst)};

		assert_int_equal(eng_mode_of(t, &k), want[i].mode);
	}
	connect_qps(1);
	assert_string_equal(eng_pair_flow(0).ack_mode, "causal");
	c.modes = ENG_MODES_MAX + 1;
	assert_int_equal(eng_tenant_set(site[0].e, 1, &c, eng_now), RWY_EINVAL);
}

/* Other hosts do not wait. */
static void test_other_host(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_WRITE_ONLY,
	    .psn = 9,
	    .dqpn = 0x3077,
	    .ack_req = true,
	    .len = 64,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 4}};

	connect_qps(1);
	a_writes(0, FIRST + 1);
	eng_pair_run(RWY_MS);
	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].of_qpn[0x77], 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_one),
	    T(test_two),
	    T(test_read),
	    T(test_concurrent),
	    T(test_behind_read),
	    T(test_message),
	    T(test_chain),
	    T(test_failed),
	    cmocka_unit_test_setup_teardown(test_beat, set_up_slow, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_stream, set_up_slow, eng_pair_tear_down),
	    T(test_old_peer),
	    T(test_other_host),
	    cmocka_unit_test_setup_teardown(test_mode_of_pair, set_up_by_pair, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
