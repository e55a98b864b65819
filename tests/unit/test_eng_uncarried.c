/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that no gateway carries: a host on a known connection gets NAK invalid request at that
 * PSN; what cannot be answered has a counter and a line in the log. Two engines, a perfect WAN.
 */
#include "tests/lib/roce_cm_pkt.h"
#include "tests/lib/eng_pair.h"

#define QPN_A        0x51
#define QPN_B        0x50
#define FLUSH        0x1c
#define ATOMIC_WRITE 0x1d
#define XRC_SEND     0xa4
#define PSN_XRC      0x700
#define INV_REQ      0x61

/* What host A heard: the last ACK or NAK. */
static struct {
	unsigned acks, naks;
	uint8_t opcode, syndrome;
	uint32_t qpn;
	roce_psn psn;
} a;

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (s->idx || pkt->info->op != ROCE_OP_ACK)
		return;
	a.opcode = pkt->opcode;
	a.syndrome = roce_aeth_syndrome(pkt);
	a.qpn = pkt->dqpn;
	a.psn = pkt->psn;
	*(roce_aeth_type(a.syndrome) == ROCE_AETH_NAK ? &a.naks : &a.acks) += 1;
}

static struct rc_mk made(uint8_t opcode, roce_psn psn)
{
	return (struct rc_mk){.opcode = opcode,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = 32,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
}

static void a_sends(uint8_t opcode, roce_psn psn)
{
	struct rc_mk m = made(opcode, psn);

	eng_host_sends(0, &m, 0);
}

static void b_acks(roce_psn psn, roce_msn msn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .msn = msn,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(10 * RWY_MS);
}

static const struct eng_counters *counters(void)
{
	return eng_counters(site[0].e);
}

static int set_up(void **state)
{
	int rc = eng_pair_set_up(state);

	memset(&a, 0, sizeof(a));
	site[0].heard = heard;
	return rc;
}

/* Host A's connection with one SEND acknowledged by host B. */
static int connected(void **state)
{
	int rc = set_up(state);

	a_sends(ROCE_RC_SEND_ONLY, 5);
	eng_pair_run(10 * RWY_MS);
	b_acks(5, 1);
	assert_int_equal(a.acks, 1);
	return rc;
}

static int connected_end(void **state);

/* The SENDs before it are delivered and acknowledged; then the host has its error at once. */
static void test_answered(void **state)
{
	a_sends(ROCE_RC_SEND_ONLY, 6);
	a_sends(ROCE_RC_SEND_ONLY, 7);
	a_sends(FLUSH, 8);
	a_sends(ROCE_RC_SEND_ONLY, 9);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(a.naks, 1);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, 8);
	assert_int_equal(a.qpn, QPN_A);
	assert_int_equal(counters()->drop_uncarried, 1);
	assert_non_null(strstr(site[0].warning, "host=10.1.0.3 to=10.2.0.3 qpn=80 opcode=0x1c"));
	assert_non_null(strstr(site[0].warning, "FLUSH is not carried: answered with NAK"));
	assert_non_null(strstr(eng_pair_flow(0).error, "do not carry"));
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[1].requests, 3); /* 5, 6, 7 */
	b_acks(7, 3);
	assert_int_equal(counters()->delivered, 3);
	a_sends(FLUSH, 8); /* the NAK was lost: the host repeats */
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(a.naks, 2);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, 8);
	assert_int_equal(site[0].warnings, 1);
}

static void test_held(void **state)
{
	a_sends(ROCE_RC_SEND_ONLY, 6);
	a_sends(ATOMIC_WRITE, 7);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(a.naks, 0); /* mode end: host B has not acknowledged 6 */
	b_acks(6, 2);
	assert_int_equal(a.naks, 1);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, 7);
}

/* Behind a gap the host hears of the gap first. */
static void test_gap(void **state)
{
	a_sends(FLUSH, 7);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(a.naks, 1);
	assert_int_equal(a.syndrome, 0x60);
	assert_int_equal(a.psn, 6);
	a_sends(ROCE_RC_SEND_ONLY, 6);
	a_sends(FLUSH, 7);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(a.naks, 2);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, 7);
}

/* A PSN that is acknowledged already: no ACK, which would complete it, and no new connection. */
static void test_old_psn(void **state)
{
	eng_pair_run(RWY_SEC);
	a_sends(FLUSH, 5);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(a.acks, 1);
	assert_int_equal(a.naks, 0);
	assert_int_equal(counters()->drop_stale_psn, 1);
	a_sends(ROCE_RC_SEND_ONLY, 6);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(a.acks, 2); /* the connection goes on */
}

/* Unanswered requests before it: the far host has not named the QPN for an answer yet. */
static void test_unpaired(void **state)
{
	a_sends(ROCE_RC_SEND_ONLY, 5);
	a_sends(FLUSH, 6);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(a.naks, 0);
	b_acks(5, 1);
	assert_int_equal(a.naks, 1);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, 6);
}

static void test_wrong_icrc(void **state)
{
	struct rc_mk m = made(FLUSH, 6);
	uint8_t b[RC_PKT_MAX];
	uint32_t len = rc_pkt_make(b, &m);

	b[len - 6] ^= 1;
	eng_host_sends_bytes(0, b, len);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(a.naks, 0);
	assert_int_equal(counters()->drop_icrc, 1);
	assert_int_equal(counters()->drop_uncarried, 0);
}

/* What cannot be answered: one counter for each kind. */
static void test_dropped(void **state)
{
	const struct eng_counters *c = counters();
	const struct {
		uint8_t opcode;
		const uint64_t *counter;
		const char *name;
	} kinds[] = {
	    {FLUSH, &c->drop_uncarried_unknown, "FLUSH"},
	    {ATOMIC_WRITE, &c->drop_uncarried_unknown, "ATOMIC WRITE"},
	    {0x1f, &c->drop_uncarried_unknown, "a reserved RC opcode"},
	    {0x3f, &c->drop_unknown_opcode, "a reserved opcode"},
	    {0x44, &c->drop_rd, "RD"},
	    {0x5f, &c->drop_rd, "RD"},
	    {0x7f, &c->drop_unknown_opcode, "a reserved opcode"},
	    {0x9f, &c->drop_unknown_opcode, "a reserved opcode"},
	    {XRC_SEND, &c->drop_xrc, "XRC"},
	    {0xbf, &c->drop_xrc, "XRC"},
	    {0xc0, &c->drop_vendor_opcode, "a manufacturer's transport"},
	    {0xff, &c->drop_vendor_opcode, "a manufacturer's transport"},
	};

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint64_t had = *kinds[i].counter;

		a_sends(kinds[i].opcode, 1);
		eng_pair_run(2 * RWY_SEC);
		assert_int_equal(*kinds[i].counter, had + 1);
		assert_int_equal(site[0].warnings, i + 1);
		assert_non_null(strstr(site[0].warning, kinds[i].name));
	}
	assert_int_equal(a.naks + a.acks, 0);
	assert_int_equal(site[1].requests, 0);
	assert_int_equal(c->conns_opened, 0); /* none has a place in the flow table */
}

static void test_log_is_bounded(void **state)
{
	for (unsigned i = 0; i < 1000; i++)
		a_sends(0xc1, i);
	assert_int_equal(site[0].warnings, 1);
	assert_int_equal(counters()->drop_vendor_opcode, 1000);
	eng_pair_run(2 * RWY_SEC);
	a_sends(0xc1, 0);
	assert_int_equal(site[0].warnings, 2);
	assert_non_null(strstr(site[0].warning, "more=999"));
}

static void test_log_ip6(void **state)
{
	struct tp t = {.opcode = 0xff, .is6 = true, .pad = -1, .dqpn = 0xffffff, .payload_len = 8};
	uint8_t b[TP_MAX];

	eng_host_sends_bytes(0, b, tp_make(b, &t));
	assert_int_equal(counters()->drop_vendor_opcode, 1);
	assert_non_null(strstr(site[0].warning,
	    "vni=0 host=fd00:0:0:1:0:0:0:1 to=fd00:0:0:2:0:0:0:2 qpn=16777215 opcode=0xff event="));
}

/* --- XRC by CM --- */

static void cm_sends(unsigned from, const uint8_t *mad)
{
	uint8_t b[TP_MAX];
	uint32_t len = cp_packet(b, mad, false, 256), crc;

	tp_be(b + 12, from ? 0x0a020003 : 0x0a010003, 4);
	tp_be(b + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(b);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_host_sends_bytes(from, b, len);
	eng_pair_run(10 * RWY_MS);
}

static int xrc_connected(void **state)
{
	struct cp_req q = {.tid = 7,
	    .comm = 0xa1,
	    .qpn = QPN_A,
	    .psn = 9,
	    .mtu = 3,
	    .transport = 3,
	    .ext_transport = 1,
	    .local_gid = {[10] = 0xff, 0xff, 10, 1, 0, 3},
	    .remote_gid = {[10] = 0xff, 0xff, 10, 2, 0, 3}};
	struct cp_rep p = {.tid = 7, .comm = 0xb1, .remote = 0xa1, .eecn = QPN_B, .psn = PSN_XRC};
	uint8_t mad[256];
	int rc = set_up(state);

	cp_make_req(mad, &q);
	cm_sends(0, mad);
	cp_make_rep(mad, &p);
	cm_sends(1, mad);
	return rc;
}

static void test_xrc(void **state)
{
	struct rc_mk ack = made(ROCE_XRC_ACK, PSN_XRC);

	a_sends(XRC_SEND, PSN_XRC);
	assert_int_equal(a.naks, 1);
	assert_int_equal(a.opcode, ROCE_XRC_ACK);
	assert_int_equal(a.syndrome, INV_REQ);
	assert_int_equal(a.psn, PSN_XRC);
	assert_int_equal(a.qpn, QPN_A);
	assert_int_equal(counters()->drop_xrc, 1);
	assert_non_null(strstr(site[0].warning, "XRC is not carried: answered with NAK"));
	a_sends(XRC_SEND, PSN_XRC + 1); /* the host sends on until it has the NAK */
	ack.payload_len = 0;
	eng_host_sends(0, &ack, 0);
	assert_int_equal(a.naks, 1);
	assert_int_equal(counters()->drop_xrc, 3);
	assert_int_equal(counters()->conns_opened, 0);
}

/* The two hosts exchanged: the target's QP never sends. */
static void test_xrc_backwards(void **state)
{
	struct rc_mk m = made(XRC_SEND, 9);

	m.dqpn = QPN_A;
	m.src[1] = 2;
	m.dst[1] = 1;
	eng_host_sends(1, &m, 0);
	assert_int_equal(eng_counters(site[1].e)->naks_sent, 0);
	assert_int_equal(eng_counters(site[1].e)->drop_xrc, 1);
}

static void mode_end(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_END;
}

static int connected_end(void **state)
{
	int rc;

	eng_pair_tune = mode_end;
	rc = connected(state);
	eng_pair_tune = NULL;
	return rc;
}

#define TEST(t, with) cmocka_unit_test_setup_teardown(t, with, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_answered, connected),
	    TEST(test_held, connected_end),
	    TEST(test_gap, connected),
	    TEST(test_old_psn, connected),
	    TEST(test_unpaired, set_up),
	    TEST(test_wrong_icrc, connected),
	    TEST(test_dropped, set_up),
	    TEST(test_log_is_bounded, set_up),
	    TEST(test_log_ip6, set_up),
	    TEST(test_xrc, xrc_connected),
	    TEST(test_xrc_backwards, xrc_connected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
