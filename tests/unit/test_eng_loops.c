/* SPDX-License-Identifier: Apache-2.0 */
/* The congestion loops of the local segments: marks and CNPs, in two engines with a perfect WAN between. */
#include "tests/lib/eng_pair.h"
#include "roce/wire.h"

#define A_QPN 0x21
#define B_QPN 0x42
#define ECT0  2
#define CE    3
#define FIRST 5

/* Host A sends one packet in the middle of a message. */
static void a_sends(roce_psn psn, uint8_t ecn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = B_QPN,
	    .ack_req = true,
	    .payload_len = 1024,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, ecn);
}

static void b_acks(roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = A_QPN,
	    .syndrome = 0x1f,
	    .msn = psn - FIRST + 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, ECT0);
}

static void b_asks_for_less(void)
{
	struct rc_mk m = {.opcode = ROCE_OPCODE_CNP,
	    .dqpn = A_QPN,
	    .payload_len = ROCE_CNP_PAD_LEN,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, ECT0);
}

static void connected(void)
{
	a_sends(FIRST, ECT0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].requests, 1);
	b_acks(FIRST);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].acks, 1);
}

/* A mark of the sender's LAN is answered with a CNP and does not reach the receiver. */
static void test_mark(void **state)
{
	connected();
	a_sends(FIRST + 1, ECT0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].cnps, 0);
	a_sends(FIRST + 2, CE);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].cnps, 1);
	assert_int_equal(site[0].qpn, A_QPN);
	assert_int_equal(site[1].requests, 3);
	assert_int_equal(site[1].ecn, ECT0);
	assert_true(site[1].ip_sum_ok);
	assert_int_equal(eng_counters(site[0].e)->np_ecn_marked, 1);
	assert_int_equal(eng_counters(site[1].e)->rp_cnp_handled, 0);
}

/* At most one CNP in 50 us, however many packets are marked. */
static void test_cnp_interval(void **state)
{
	connected();
	for (unsigned i = 1; i <= 20; i++)
		a_sends(FIRST + i, CE);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].cnps, 1);
	assert_int_equal(eng_counters(site[0].e)->np_ecn_marked, 20);
}

/* Acknowledges everything at once for `time`, and counts arrivals. */
static unsigned flow_for(rwy_dur time, roce_psn *next)
{
	unsigned from = site[1].requests;

	for (rwy_time end = eng_now + time; eng_now < end;) {
		for (unsigned i = 0; i < 30; i++)
			a_sends((*next)++, ECT0);
		eng_pair_run(RWY_MS);
		if (site[1].requests > 1)
			b_acks(site[1].psn);
	}
	return site[1].requests - from;
}

/* The receiver's CNPs slow its flow down; when they end it has its old rate. None crosses the
 * WAN. */
static void test_reaction(void **state)
{
	roce_psn next = FIRST + 1;
	unsigned before, during, after;
	struct eng_flow_info info;
	uint32_t cursor = 0;

	connected();
	before = flow_for(20 * RWY_MS, &next);
	assert_true(before > 500);
	for (unsigned i = 0; i < 40; i++) {
		b_asks_for_less();
		flow_for(RWY_MS, &next);
	}
	during = 0;
	for (unsigned i = 0; i < 20; i++) {
		b_asks_for_less();
		during += flow_for(RWY_MS, &next);
	}
	assert_true(during < before / 2);
	while (!eng_flows(site[1].e, &cursor, &info, 1) && cursor)
		;
	assert_true(info.requester_rate_Bps > 0);
	flow_for(3 * RWY_SEC, &next);
	after = flow_for(20 * RWY_MS, &next);
	assert_true(after >= before - before / 10);
	assert_int_equal(eng_counters(site[1].e)->rp_cnp_handled, 60);
	assert_int_equal(eng_counters(site[0].e)->rp_cnp_handled, 0);
}

/* Another queue pair of the same two hosts: A's 0x23 to B's 0x44. */
static void other(bool from_a, roce_psn psn)
{
	struct rc_mk ask = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = 0x44,
	    .ack_req = true,
	    .payload_len = 1024,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	struct rc_mk ack = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = 0x23,
	    .syndrome = 0x1f,
	    .msn = psn + 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(!from_a, from_a ? &ask : &ack, ECT0);
}

/* CNPs of the host on one queue pair slow all its flows down, which take turns. */
static void test_shared(void **state)
{
	roce_psn mine = FIRST, others = 0;
	unsigned before[2];
	double share;

	connected();
	other(true, others++);
	eng_pair_run(400 * RWY_MS);
	other(false, 0);
	eng_pair_run(20 * RWY_MS);
	mine++;
	for (unsigned i = 0; i < 200; i++) {
		if (i == 100)
			memcpy(before, (unsigned[2]){site[1].of_qpn[B_QPN], site[1].of_qpn[0x44]},
			    sizeof(before));
		b_asks_for_less();
		for (unsigned k = 0; k < 20; k++) {
			a_sends(mine++, ECT0);
			other(true, others++);
		}
		eng_pair_run(RWY_MS);
		if (site[1].of_qpn[B_QPN])
			b_acks(site[1].psn_of[B_QPN]);
		if (site[1].of_qpn[0x44])
			other(false, site[1].psn_of[0x44]);
	}
	before[0] = site[1].of_qpn[B_QPN] - before[0];
	before[1] = site[1].of_qpn[0x44] - before[1];
	assert_true(before[0] + before[1] < 100 * 30); /* of 100 * 40 that were sent */
	share = (double)before[0] / (before[0] + before[1]);
	assert_true(share > 0.45 && share < 0.55);
}

/* CNPs for unknown queue pairs are counted and have no effect. */
static void test_stray_cnp(void **state)
{
	b_asks_for_less();
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(eng_counters(site[1].e)->rp_cnp_handled, 1);
	assert_int_equal(eng_flow_count(site[1].e), 0);
}

/* The flow of host A to this QPN. */
static struct eng_flow_info flow_of(uint32_t qpn)
{
	struct eng_flow_info f[8];
	uint32_t cursor = 0;
	unsigned n = 0;

	do
		n += eng_flows(site[0].e, &cursor, f + n, 8 - n);
	while (cursor && n < 8);
	while (n--)
		if (f[n].remote_qpn == qpn)
			return f[n];
	fail();
	return f[0];
}

/* A tenant short of memory sends CNPs before any of its hosts has to wait; one with enough does
 * not, with the same queue. */
static void test_short_of_memory(void **state)
{
	uint8_t net[4] = {10, 2, 0, 0};
	struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .dqpn = B_QPN,
	    .ack_req = true,
	    .payload_len = 1024,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	const uint64_t custody[] = {64 << 20, 3 << 19};

	for (unsigned i = 0; i < 2; i++) {
		struct eng_tenant_cfg c = {.vni = 100,
		    .custody = 64 << 20,
		    .share = {.weight = 1, .limit_Bps = 1000000},
		    .prefix = &p,
		    .prefixes = 1};
		struct eng_tenant_stats st;

		for (unsigned at = 0; at < 2; at++) {
			net[1] = (uint8_t)(2 - at);
			p.addr = rwy_ip_from4(net);
			assert_int_equal(eng_tenant_set(site[at].e, 1, &c, eng_now), 0);
		}
		net[1] = 2;
		p.addr = rwy_ip_from4(net);
		c.custody = custody[i];
		assert_int_equal(eng_tenant_set(site[0].e, 1, &c, eng_now), 0);
		m.dqpn = B_QPN + i;
		m.psn = FIRST;
		eng_host_sends_as(0, 1, &m, ECT0);
		eng_pair_run(20 * RWY_MS);
		struct rc_mk ack = {.opcode = ROCE_RC_ACK,
		    .psn = FIRST,
		    .dqpn = A_QPN + i,
		    .syndrome = 0x1f,
		    .msn = 1,
		    .src = {10, 2, 0, 3},
		    .dst = {10, 1, 0, 3}};

		eng_host_sends_as(1, 1, &ack, ECT0);
		eng_pair_run(20 * RWY_MS);
		site[0].cnps = 0;
		for (unsigned k = 0; k < 1250; k++) {
			m.psn++;
			eng_host_sends_as(0, 1, &m, ECT0);
		}
		assert_int_equal(site[0].cnps > 0, i);
		assert_int_equal(eng_counters(site[0].e)->ack_blocked, 0);
		assert_true(eng_tenant_stats(site[0].e, 1, &st));
		assert_true(st.custody > 1250 * 1024);
		eng_pair_run(5 * RWY_MS);
		assert_string_equal(flow_of(B_QPN + i).limit, "share");
		/* until it is held; then its timer expires, and it sends needless copies */
		if (i) {
			for (unsigned k = 0; k < 500; k++) {
				m.psn++;
				eng_host_sends_as(0, 1, &m, ECT0);
			}
			assert_true(eng_counters(site[0].e)->ack_blocked > 0);
			eng_now += RWY_MS;
			site[0].cnps = 0;
			m.psn -= 100;
			eng_host_sends_as(0, 1, &m, ECT0);
			eng_host_sends_as(0, 1, &m, ECT0);
			assert_int_equal(site[0].cnps, 1);
		}
		while (!eng_tenant_remove(site[0].e, 1) || !eng_tenant_remove(site[1].e, 1))
			eng_pair_run(100 * RWY_MS);
	}
}

/* What the two hosts heard: A a READ response, B a CNP. */
static struct {
	uint8_t ecn;
	uint16_t pkey, sport;
	uint8_t tos;
} response, cnp;

static void note_read(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->info->op == ROCE_OP_READ_RESP)
		response.ecn = pkt->ecn;
	if (pkt->info->op == ROCE_OP_CNP) {
		cnp.pkey = pkt->pkey;
		cnp.sport = pkt->sport;
		cnp.tos = roce_pkt_tos(pkt);
	}
}

static void b_responds(uint8_t opcode, roce_psn psn, uint8_t tos)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = A_QPN,
	    .syndrome = 0x1f,
	    .msn = 2,
	    .payload_len = 1024,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, tos);
	eng_pair_run(5 * RWY_MS);
}

/* READ: host B sends the data, so it gets the CNP for a mark, also if it never sent a request. */
static void test_read_mark(void **state)
{
	struct rc_mk read = {.opcode = ROCE_RC_READ_REQ,
	    .psn = FIRST + 1,
	    .dqpn = B_QPN,
	    .len = 3072,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	connected();
	site[0].heard = site[1].heard = note_read;
	eng_host_sends(0, &read, ECT0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[1].requests, 2);
	b_responds(ROCE_RC_READ_RESP_FIRST, FIRST + 1, ECT0);
	assert_int_equal(site[1].cnps, 0);
	b_responds(ROCE_RC_READ_RESP_MIDDLE, FIRST + 2, 0x68 | CE);
	assert_int_equal(site[0].responses, 2);
	assert_int_equal(response.ecn, ECT0);
	assert_int_equal(site[1].cnps, 1);
	assert_int_equal(site[0].cnps, 0);
	assert_int_equal(site[1].qpn, B_QPN);
	assert_int_equal(cnp.pkey, 0xffff);
	assert_int_equal(cnp.sport, 0xc000);
	assert_int_equal(cnp.tos, 0x68);
	assert_int_equal(eng_counters(site[1].e)->np_ecn_marked, 1);
	assert_int_equal(eng_counters(site[1].e)->np_cnp_sent, 1);
	b_responds(ROCE_RC_READ_RESP_LAST, FIRST + 3, CE);
	assert_int_equal(site[0].responses, 3);
	assert_int_equal(site[1].cnps, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_mark, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_cnp_interval, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_reaction, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_shared, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_short_of_memory, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_read_mark, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_stray_cnp, eng_pair_set_up, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
