/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of memory (engine/memory.h) against hostile hosts: they ignore ACKs, send to queue pairs that
 * nobody has, or answer READs faster than the WAN takes it. They hold what is theirs and no more, others do
 * not notice, and in the end nobody holds anything.
 */
#include "tests/lib/eng_pair.h"

#define COST     2048 /* of a buffer */
#define CONN     128  /* buffers of a connection above which its ACKs wait */
#define TOTAL    512  /* the same of all */
#define WINDOW   160  /* ENG_UNPAIRED_MAX */
#define CONN_MAX (CONN + WINDOW)
#define ALL_MAX  (TOTAL + WINDOW)
#define UNPAIRED (ALL_MAX / 4)
#define KEPT     128
#define PAYLOAD  1024

static roce_psn nak_psn; /* of the latest PSN sequence NAK to a host of site 0 */
static unsigned naks;

/* --- hosts ---------------------------------------------------------------------------------- */

static void hear_nak(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_ACK || roce_aeth_type(roce_aeth_syndrome(pkt)) != ROCE_AETH_NAK)
		return;
	assert_int_equal(roce_aeth_value(roce_aeth_syndrome(pkt)), ROCE_NAK_PSN_SEQ);
	nak_psn = pkt->psn;
	naks++;
}

static void tune(struct eng_cfg *c)
{
	c->buf_cost = COST;
	c->custody_conn = CONN * COST;
	c->custody_total = TOTAL * COST;
	c->read_cache_conn = KEPT * COST;
	c->read_cache_total = KEPT * COST;
	c->half_open_max = 1024;
	c->conns_max = 4096;
	c->tunnel[0].wan.fec = WAN_FEC_OFF;
}

/* A WAN of 1 MB/s. */
static void tune_slow(struct eng_cfg *c)
{
	tune(c);
	c->tunnel[0].wan.cc = cc_find("fixed");
	c->tunnel[0].wan.cc_cfg.rate_Bps = 1000000;
}

/* 256 buffers of credit, however small packets are. */
static void tune_credit(struct eng_cfg *c)
{
	tune(c);
	c->custody_conn = c->custody_total = 4096 * COST;
	c->e2e = false;
	c->tunnel[0].wan.rx_cost = COST;
	c->tunnel[0].wan.rx_bytes = 256 * COST;
}

/* So little that a far host acknowledges all of it at once. */
static void tune_small(struct eng_cfg *c)
{
	tune(c);
	c->custody_conn = 16 * COST;
	c->memory_conn = 32 * COST;
}

static int set_up_as(void **state, void (*how)(struct eng_cfg *c))
{
	eng_pair_tune = how;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	site[0].heard = hear_nak;
	naks = 0;
	return 0;
}

static int set_up(void **state)
{
	return set_up_as(state, tune);
}

static int set_up_slow(void **state)
{
	return set_up_as(state, tune_slow);
}

static int set_up_small(void **state)
{
	return set_up_as(state, tune_small);
}

static int set_up_credit(void **state)
{
	return set_up_as(state, tune_credit);
}

static uint16_t tenant; /* of the hosts */

static void send_small(uint8_t host, uint32_t qpn, uint32_t psn, uint32_t len)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn & ROCE_PSN_MASK,
	    .dqpn = qpn,
	    .ack_req = true,
	    .payload_len = len,
	    .src = {10, 1, 0, host},
	    .dst = {10, 2, 0, host}};

	eng_host_sends_as(0, tenant, &m, 0);
}

static void send_from(uint8_t host, uint32_t qpn, uint32_t psn)
{
	send_small(host, qpn, psn, PAYLOAD);
}

static void ack_by(uint8_t host, uint32_t qpn, uint32_t psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn & ROCE_PSN_MASK,
	    .dqpn = qpn + 0x1000,
	    .syndrome = 0x1f,
	    .msn = (psn + 1) & ROCE_PSN_MASK,
	    .src = {10, 2, 0, host},
	    .dst = {10, 1, 0, host}};

	eng_host_sends_as(1, tenant, &m, 0);
}

static void connect_pair(uint8_t host, uint32_t qpn)
{
	send_from(host, qpn, 0);
	eng_pair_run(20 * RWY_MS);
	ack_by(host, qpn, 0);
	eng_pair_run(20 * RWY_MS);
}

/* The far host acknowledges what it is sent until nothing of this queue pair is in custody. */
static void drain(uint8_t host, uint32_t qpn)
{
	for (unsigned i = 0; i < 200; i++) {
		ack_by(host, qpn, site[1].psn_of[qpn & 255]);
		eng_pair_run(5 * RWY_MS);
	}
}

static struct eng_memory memory_of(unsigned at)
{
	struct eng_memory m;

	eng_memory(site[at].e, &m);
	return m;
}

/* All that the engine has is charged, and it is nothing but kept answers. */
static void assert_nothing_held(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct eng_memory m = memory_of(i);

		assert_int_equal(m.held, 0);
		assert_int_equal(m.kind[ENG_MEM_RECEIVED].bytes, 0);
		assert_int_equal(m.kind[ENG_MEM_ANSWERS].bufs, site[i].bufs);
		assert_int_equal(m.waiting, 0);
	}
}

/* --- requests ------------------------------------------------------------------------------- */

/* 20,000 packets, whatever is acknowledged. Each PSN is then delivered once, in order. */
static void test_ignores_acks(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);
	uint32_t n = 20000, i;

	connect_pair(3, 0x50);
	for (i = 1; i < n; i++) {
		send_from(3, 0x50, i);
		if (i % 64 == 0)
			eng_pair_run(RWY_MS);
		assert_true(memory_of(0).held <= CONN_MAX * COST);
	}
	assert_true(site[0].bufs_most <= CONN_MAX);
	assert_true(c->drop_memory_conn > 0);
	assert_int_equal(naks, 0); /* not before there is room */
	assert_int_equal(memory_of(0).waiting, 1);
	drain(3, 0x50);
	assert_int_equal(naks, 1);
	assert_int_equal(nak_psn, c->accepted);
	assert_int_equal(site[1].psn_of[0x50], nak_psn - 1);
	assert_nothing_held();
	/* It goes back, and everything comes through. */
	for (i = nak_psn; i < nak_psn + 100; i++)
		send_from(3, 0x50, i);
	eng_pair_run(5 * RWY_MS);
	drain(3, 0x50);
	assert_int_equal(site[1].psn_of[0x50], i - 1);
	assert_int_equal(c->conns_failed, 0);
	assert_nothing_held();
}

/*
 * A host's timer runs out while the NAK is on the LAN: it repeats what the NAK acknowledges. It is
 * the same connection, and goes on where the NAK said.
 */
static void test_nak_in_flight(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);

	connect_pair(3, 0x50);
	for (uint32_t i = 1; i < 100; i++)
		send_from(3, 0x50, i);
	assert_true(c->drop_memory_conn > 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].psn_of[0x50], c->accepted - 1);
	ack_by(3, 0x50, c->accepted - 1);
	for (unsigned i = 0; i < 20 && !naks; i++)
		eng_pair_run(RWY_MS);
	assert_int_equal(naks, 1);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	for (uint32_t i = nak_psn - 3; i < nak_psn; i++)
		send_from(3, 0x50, i);
	assert_int_equal(c->drop_ack_in_flight, 3);
	eng_pair_run(5 * RWY_MS);
	for (uint32_t i = nak_psn; i < nak_psn + 20; i++)
		send_from(3, 0x50, i);
	eng_pair_run(5 * RWY_MS);
	drain(3, 0x50);
	assert_int_equal(site[1].psn_of[0x50], nak_psn + 19);
	assert_int_equal(naks, 1);
	assert_nothing_held();
}

/* A host whose queue pairs hold all that they can, and whose far host is dead, beside another. */
static void test_greedy_host(void **state)
{
	const uint32_t n = 2000;
	unsigned acks;

	for (uint32_t q = 0; q < 8; q++)
		connect_pair(3, 0x50 + q);
	connect_pair(4, 0x70);
	for (uint32_t i = 1; i < 600; i++) {
		for (uint32_t q = 0; q < 8; q++)
			send_from(3, 0x50 + q, i);
		eng_pair_run(RWY_MS / 4);
	}
	assert_true(memory_of(0).held <= ALL_MAX * COST);
	assert_true(memory_of(0).held > ALL_MAX / 2 * COST);
	assert_true(eng_counters(site[0].e)->drop_memory_share > 0);
	/* The other sends 16 at a time: each is taken, acknowledged at once, and delivered. */
	acks = site[0].acks;
	naks = 0;
	for (uint32_t i = 1; i <= n; i++) {
		send_from(4, 0x70, i);
		if (i % 16)
			continue;
		eng_pair_run(RWY_MS);
		assert_true(site[0].acks > acks);
		acks = site[0].acks;
		eng_pair_run(4 * RWY_MS);
		ack_by(4, 0x70, i);
		eng_pair_run(4 * RWY_MS);
	}
	assert_int_equal(site[1].psn_of[0x70], n);
	assert_int_equal(naks, 0);
}

static void set_tenants(uint64_t reserve)
{
	for (unsigned t = 1; t <= 2; t++)
		for (unsigned at = 0; at < 2; at++) {
			uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
			struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
			struct eng_tenant_cfg c = {.vni = 100 + t,
			    .custody = UINT64_MAX,
			    .reserve = t == 1 ? reserve : 0,
			    .prefix = &p,
			    .prefixes = 1};

			assert_int_equal(eng_tenant_set(site[at].e, t, &c, eng_now), 0);
		}
}

static uint64_t held_by(uint32_t t)
{
	struct eng_tenant_stats st;

	assert_true(eng_tenant_stats(site[0].e, t, &st));
	return st.held;
}

/* Tenant 2 takes all it can, with many hosts, before tenant 1 sends anything. */
static void test_reservation(void **state)
{
	const uint64_t reserve = 100;

	set_tenants(reserve * COST);
	tenant = 1;
	connect_pair(60, 0xf0);
	connect_pair(61, 0xf1);
	tenant = 2;
	for (uint8_t h = 3; h < 40; h++)
		connect_pair(h, 0x50 + h);
	for (uint32_t i = 1; i < 300; i++) {
		for (uint8_t h = 3; h < 40; h++)
			send_from(h, 0x50 + h, i);
		eng_pair_run(RWY_MS / 4);
		assert_true(held_by(2) <= (ALL_MAX - reserve) * COST);
	}
	assert_true(held_by(2) > (ALL_MAX - reserve) * COST * 4 / 5);
	assert_int_equal(held_by(1), 0);
	tenant = 1;
	for (uint32_t i = 1; i <= reserve / 2; i++) {
		send_from(60, 0xf0, i);
		send_from(61, 0xf1, i);
	}
	assert_int_equal(held_by(1), reserve * COST);
	tenant = 0;
}

/* --- queue pairs that nobody has -------------------------------------------------------------- */

static void flood(unsigned from, unsigned to)
{
	for (uint32_t i = from; i < to; i++) {
		for (uint32_t q = 0; q < 120; q++)
			send_from(3, 0x100 + q, i);
		eng_pair_run(RWY_MS);
	}
}

static void test_bogus(void **state)
{
	unsigned acks;

	flood(0, 300);
	assert_true(site[0].bufs_most <= UNPAIRED);
	assert_true(site[1].bufs_most <= UNPAIRED);
	assert_true(memory_of(0).kind[ENG_MEM_UNPAIRED].bytes <= UNPAIRED * COST);
	assert_true(eng_counters(site[0].e)->drop_unpaired_full > 0);
	/* Another pair of hosts gets its connection, without CM, meanwhile. */
	acks = site[0].acks;
	send_from(4, 0x50, 0);
	flood(300, 320);
	ack_by(4, 0x50, 0);
	flood(320, 340);
	assert_int_equal(site[0].acks, acks + 1);
	/* The greedy host gives up. */
	eng_pair_run(15 * RWY_SEC);
	assert_nothing_held();
	assert_int_equal(site[0].bufs, 0);
	assert_int_equal(site[1].bufs, 0);
}

/* --- READ responses --------------------------------------------------------------------------- */

static struct {
	roce_psn psn;
	uint32_t n; /* responses that the host has still to send */
	unsigned asked;
} reading;

/* The host of site 1 forgets what it was sending and begins with what it is asked for. */
static void hear_read(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_READ_REQ)
		return;
	reading.psn = pkt->psn;
	reading.n = roce_reth_len(pkt) / PAYLOAD;
	reading.asked++;
}

static void ask_read(uint32_t psn, uint32_t n)
{
	struct rc_mk m = {.opcode = ROCE_RC_READ_REQ,
	    .psn = psn,
	    .dqpn = 0x50,
	    .len = n * PAYLOAD,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

static void answer_some(unsigned most, bool first)
{
	for (; most-- && reading.n; reading.n--, reading.psn++, first = false) {
		struct rc_mk m = {.opcode = reading.n == 1
		                                ? (first ? ROCE_RC_READ_RESP_ONLY : ROCE_RC_READ_RESP_LAST)
		                            : first ? ROCE_RC_READ_RESP_FIRST
		                                    : ROCE_RC_READ_RESP_MIDDLE,
		    .psn = reading.psn & ROCE_PSN_MASK,
		    .dqpn = 0x1050,
		    .syndrome = 0x1f,
		    .msn = 2,
		    .payload_len = PAYLOAD,
		    .src = {10, 2, 0, 3},
		    .dst = {10, 1, 0, 3}};

		eng_host_sends(1, &m, 0);
	}
}

/* One READ that is larger than the bound, by a host that sends 64 times as fast as the WAN. */
static void test_slow_wan(void **state)
{
	const uint32_t n = 2048;
	unsigned asked = 0;

	connect_pair(3, 0x50);
	reading.asked = 0;
	site[1].heard = hear_read;
	ask_read(1, n);
	for (unsigned i = 0; i < 20000 && site[0].responses < n; i++) {
		bool first = reading.asked != asked;

		asked = reading.asked;
		answer_some(64, first);
		eng_pair_run(RWY_MS);
		assert_true(site[1].bufs <= CONN_MAX + 2);
	}
	assert_int_equal(site[0].responses, n);
	assert_int_equal(site[0].response_psn, n);
	assert_true(eng_counters(site[1].e)->drop_memory_read > 0);
	assert_in_range(reading.asked, 2, 64); /* again when there is room, not for each response */
	assert_int_equal(eng_counters(site[1].e)->local_ack_timeout_err, 0);
	eng_pair_run(100 * RWY_MS);
	assert_nothing_held();
}

/* READs that each fit are asked for as there is room: nothing is dropped. */
static void test_reads_wait(void **state)
{
	const uint32_t n = 32, reads = 64;
	uint32_t sent = 0;
	unsigned asked = 0;

	connect_pair(3, 0x50);
	reading.asked = 0;
	site[1].heard = hear_read;
	for (unsigned i = 0; i < 20000 && site[0].responses < n * reads; i++) {
		for (; sent < reads && sent * n < site[0].responses + 16 * n; sent++)
			ask_read(1 + sent * n, n);
		/* The gateway asks for several: the host answers one after the other. */
		for (; asked < reading.asked; asked++) {
			reading.psn = 1 + asked * n;
			reading.n = n;
			answer_some(n, true);
		}
		eng_pair_run(RWY_MS);
		/* Responses, and the READs that wait. */
		assert_true(site[1].bufs <= CONN + 18);
	}
	assert_int_equal(site[0].responses, n * reads);
	assert_int_equal(reading.asked, reads);
	assert_int_equal(eng_counters(site[1].e)->drop_memory_read, 0);
}

/* --- what came over the WAN ------------------------------------------------------------------- */

/* Small packets for a host that is silent: credit counts buffers, not bytes. */
static void test_credit(void **state)
{
	for (uint32_t q = 0; q < 8; q++)
		connect_pair(3, 0x50 + q);
	for (uint32_t i = 1; i < 400; i++) {
		for (uint32_t q = 0; q < 8; q++)
			send_small(3, 0x50 + q, i, 16);
		eng_pair_run(RWY_MS);
	}
	assert_true(memory_of(0).held > 1000 * COST);
	assert_true(site[1].bufs_most <= 256);
	assert_int_equal(memory_of(1).kind[ENG_MEM_RECEIVED].bufs + memory_of(1).reassembly, site[1].bufs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_ignores_acks, set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_nak_in_flight, set_up_small, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_greedy_host, set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_reservation, set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_bogus, set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_slow_wan, set_up_slow, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_reads_wait, set_up_slow, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_credit, set_up_credit, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
