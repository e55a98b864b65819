/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VLAN priority (802.1Q PCP) of hosts' frames: it crosses with each packet, and what a gateway
 * makes for a host has the priority of that host's own packets. Two engines, a perfect WAN.
 */
#include "tests/lib/roce_cm_pkt.h"
#include "tests/lib/eng_pair.h"

#include "engine/eng.h"
#include "roce/wire.h"
#include "rwy/ether.h"
#include "wan/tunnel.h"

#define A_QPN 0x21
#define B_QPN 0x42
#define FIRST 5
#define PCP_A (RWY_PCP_TAGGED + 3)
#define PCP_B (RWY_PCP_TAGGED + 6)

/* Of the last packet of each operation that reached a host: its PCP; 0xff: none came. */
static uint8_t pcp_of[2][16];
static uint16_t ack_sport; /* UDP source port of the last ACK */

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	pcp_of[s->idx][pkt->info->op] = s->pcp;
	if (pkt->info->op == ROCE_OP_ACK)
		ack_sport = pkt->sport;
}

static void forget(void)
{
	memset(pcp_of, 0xff, sizeof(pcp_of));
}

static int set_up(void **state)
{
	int rc = eng_pair_set_up(state);

	site[0].heard = site[1].heard = heard;
	forget();
	return rc;
}

static void sends(unsigned from, uint8_t pcp, struct rc_mk m, uint8_t tos)
{
	m.src[0] = m.dst[0] = 10;
	m.src[1] = (uint8_t)(1 + from);
	m.dst[1] = (uint8_t)(2 - from);
	m.src[3] = m.dst[3] = 3;
	eng_host_pcp = pcp;
	eng_host_sends(from, &m, tos);
	eng_pair_run(10 * RWY_MS);
}

static struct rc_mk request(uint8_t opcode, roce_psn psn, uint32_t payload)
{
	return (struct rc_mk){.opcode = opcode,
	    .psn = psn,
	    .dqpn = B_QPN,
	    .ack_req = true,
	    .len = 2048,
	    .payload_len = payload};
}

static struct rc_mk response(uint8_t opcode, roce_psn psn, uint32_t payload)
{
	return (struct rc_mk){
	    .opcode = opcode, .psn = psn, .dqpn = A_QPN, .syndrome = 0x1f, .msn = 1, .payload_len = payload};
}

/* A's SEND, B's ACK, and the gateway's ACK to A. */
static void connected(uint8_t pcp_a)
{
	sends(0, pcp_a, request(ROCE_RC_SEND_ONLY, FIRST, 64), 0);
	sends(1, PCP_B, response(ROCE_RC_ACK, FIRST, 0), 0);
}

static void test_request(void **state)
{
	connected(PCP_A);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_A);
	assert_int_equal(pcp_of[0][ROCE_OP_ACK], PCP_A);
	forget();
	sends(0, RWY_PCP_TAGGED, request(ROCE_RC_SEND_ONLY, FIRST + 1, 4096), 0); /* in fragments */
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], RWY_PCP_TAGGED);
	forget();
	eng_pair_run(2 * RWY_SEC); /* B is silent, so it comes again */
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], RWY_PCP_TAGGED);
}

static void test_untagged(void **state)
{
	connected(0);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], 0);
	assert_int_equal(pcp_of[0][ROCE_OP_ACK], 0);
}

/* READ responses have B's priority, also when they are replayed; a CNP to B, too. */
static void test_read(void **state)
{
	connected(PCP_A);
	sends(0, PCP_A, request(ROCE_RC_READ_REQ, FIRST + 1, 0), 0);
	assert_int_equal(pcp_of[1][ROCE_OP_READ_REQ], PCP_A);
	sends(1, PCP_B, response(ROCE_RC_READ_RESP_FIRST, FIRST + 1, 1024), 3);
	assert_int_equal(pcp_of[0][ROCE_OP_READ_RESP], PCP_B);
	assert_int_equal(pcp_of[1][ROCE_OP_CNP], PCP_B);
	sends(1, PCP_B, response(ROCE_RC_READ_RESP_LAST, FIRST + 2, 1024), 0);
	forget();
	sends(0, PCP_A, request(ROCE_RC_READ_REQ, FIRST + 1, 0), 0);
	assert_int_equal(pcp_of[0][ROCE_OP_READ_RESP], PCP_B);
}

/* B's second response is lost on its LAN: the gateway asks for the rest in A's class. */
static void test_partial_read(void **state)
{
	connected(PCP_A);
	sends(0, PCP_A, request(ROCE_RC_READ_REQ, FIRST + 1, 0), 0);
	sends(1, PCP_B, response(ROCE_RC_READ_RESP_FIRST, FIRST + 1, 1024), 0);
	forget();
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(site[1].psn, FIRST + 2);
	assert_int_equal(pcp_of[1][ROCE_OP_READ_REQ], PCP_A);
}

/* Datagrams: UD, whole and in fragments. */
static void test_dgram(void **state)
{
	struct rc_mk m = {.opcode = ROCE_UD_SEND_ONLY, .dqpn = 7, .payload_len = 64};

	sends(0, PCP_A, m, 0);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_A);
	forget();
	m.payload_len = 4096;
	sends(0, PCP_B, m, 0);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_B);
}

static void cm_sends(unsigned from, uint8_t pcp, const uint8_t *mad)
{
	uint8_t b[TP_MAX];
	uint32_t len = cp_packet(b, mad, false, 256), crc;

	tp_be(b + 12, from ? 0x0a020003 : 0x0a010003, 4);
	tp_be(b + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(b);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_host_pcp = pcp;
	eng_host_sends_bytes(from, b, len);
	eng_pair_run(10 * RWY_MS);
}

/* CM messages carry theirs, and a connection that CM announced learns from its first request. */
static void test_cm(void **state)
{
	struct cp_req q = {.tid = 7,
	    .comm = 0xa1,
	    .qpn = A_QPN,
	    .psn = 9,
	    .mtu = 3,
	    .local_gid = {[10] = 0xff, 0xff, 10, 1, 0, 3},
	    .remote_gid = {[10] = 0xff, 0xff, 10, 2, 0, 3}};
	struct cp_rep p = {.tid = 7, .comm = 0xb1, .remote = 0xa1, .qpn = B_QPN, .psn = FIRST};
	uint8_t mad[256];

	cp_make_req(mad, &q);
	cm_sends(0, PCP_B, mad);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_B);
	cp_make_rep(mad, &p);
	cm_sends(1, PCP_B, mad);
	sends(0, PCP_A, request(ROCE_RC_SEND_ONLY, FIRST, 64), 0);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_A);
	assert_int_equal(pcp_of[0][ROCE_OP_ACK], PCP_A);
	assert_int_equal(ack_sport, 0xc000); /* as the host's own */
}

/* The QPN is used again by a connection of another class. */
static void test_used_again(void **state)
{
	connected(PCP_A);
	eng_pair_run(2 * RWY_SEC);
	forget();
	sends(0, PCP_B, request(ROCE_RC_SEND_ONLY, 0x7000, 64), 0);
	sends(1, PCP_B, response(ROCE_RC_ACK, 0x7000, 0), 0);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], PCP_B);
	assert_int_equal(pcp_of[0][ROCE_OP_ACK], PCP_B);
}

/* A peer that does not know of priorities would take the number for another kind of packet. */
static void test_old_peer(void **state)
{
	assert_true(site[0].e->tunnel[0].wan->peer.pcp);
	site[0].e->tunnel[0].wan->peer.pcp = false;
	connected(PCP_A);
	assert_int_equal(pcp_of[1][ROCE_OP_SEND], 0);
	assert_int_equal(pcp_of[0][ROCE_OP_ACK], PCP_A);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_request), TEST(test_untagged), TEST(test_read),
	    TEST(test_partial_read), TEST(test_dgram), TEST(test_cm), TEST(test_used_again),
	    TEST(test_old_peer)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
