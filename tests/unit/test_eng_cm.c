/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that CM sets up and ends, in two engines with a WAN between that can be cut: a DREQ does not
 * overtake what its host was acknowledged, and no timer frees that.
 */
#include "tests/lib/roce_cm_pkt.h"
#include "engine/eng.h"
#include "engine/pair.h"
#include "engine/requester.h"
#include "engine/table.h"
#include "tests/lib/eng_pair.h"

#include "roce/cm.h"

#define QPN_A  0x51
#define QPN_B  0x50
#define COMM_A 0xa1
#define COMM_B 0xb1
#define PSN_A  0x700 /* of host A's first request */
#define PSN_B  0x900

static struct {
	unsigned cm[2];     /* CM messages that reached the host of each site */
	uint16_t attr[2];   /* of the last */
	unsigned before_cm; /* requests that host B had when the last came */
} seen;

/* Host 10.1.0.`host`, or 10.2.0.`host`, to host 3 of the other site. */
static void host_sends_mad(unsigned from, unsigned host, const uint8_t *mad)
{
	uint8_t b[TP_MAX];
	uint32_t len = cp_packet(b, mad, false, 256), crc;

	tp_be(b + 12, (from ? 0x0a020000 : 0x0a010000) | host, 4);
	tp_be(b + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(b);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_host_sends_bytes(from, b, len);
}

static void cm_sends(unsigned from, const uint8_t *mad)
{
	host_sends_mad(from, 3, mad);
}

static void req(void)
{
	struct cp_req r = {
	    .tid = 7, .comm = COMM_A, .qpn = QPN_A, .psn = PSN_B, .mtu = 3, .retry = 7, .rnr = 7};
	uint8_t mad[256];

	cp_make_req(mad, &r);
	cm_sends(0, mad);
}

static void rep(void)
{
	struct cp_rep r = {.tid = 7, .comm = COMM_B, .remote = COMM_A, .qpn = QPN_B, .psn = PSN_A, .rnr = 7};
	uint8_t mad[256];

	cp_make_rep(mad, &r);
	cm_sends(1, mad);
}

static void dreq(void)
{
	uint8_t mad[256];

	cp_make_dreq(mad, 9, COMM_A, COMM_B, QPN_B);
	cm_sends(0, mad);
}

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	struct roce_cm_msg m;

	if (roce_is_gsi(pkt) && roce_cm_parse(pkt, &m) == 0) {
		seen.cm[s->idx]++;
		seen.attr[s->idx] = m.attr;
		seen.before_cm = site[1].of_qpn[QPN_B];
	}
}

/* REQs of the host 10.1.0.`host`, each for another queue pair. */
static void flood(unsigned host, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct cp_req r = {
		    .tid = 100 + i, .comm = 0x10000 * host + i, .qpn = 0x1000 + i, .psn = 1, .mtu = 3};
		uint8_t mad[256];

		cp_make_req(mad, &r);
		host_sends_mad(0, host, mad);
	}
}

static void request(roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
}

static void host_b_says(uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = syndrome,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
}

/* Host B acknowledges what it gets. */
static void run_with_host_b(rwy_dur time)
{
	for (rwy_time end = eng_now + time; eng_now < end;) {
		unsigned had = site[1].of_qpn[QPN_B];

		eng_pair_run(10 * RWY_MS);
		if (site[1].of_qpn[QPN_B] != had)
			host_b_says(0x1f, site[1].psn_of[QPN_B]);
	}
}

static int connected(void **state)
{
	assert_int_equal(eng_pair_set_up(state), 0);
	memset(&seen, 0, sizeof(seen));
	site[0].heard = site[1].heard = heard;
	req();
	eng_pair_run(10 * RWY_MS);
	rep();
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(eng_counters(site[0].e)->cm_connections, 1);
	assert_int_equal(eng_counters(site[1].e)->cm_connections, 1);
	return 0;
}

static void say_goodbye_in_an_outage(unsigned requests)
{
	eng_pair_cut(true);
	for (unsigned i = 0; i < requests; i++)
		request(PSN_A + i);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, PSN_A + requests - 1); /* all complete: host A may go */
	dreq();
	eng_pair_run(10 * RWY_SEC);
	assert_true(eng_custody_bytes(site[0].e) > 0);
	eng_pair_cut(false);
	run_with_host_b(20 * RWY_SEC);
}

static uint64_t parked(void)
{
	struct eng_tenant_stats st;

	assert_true(eng_tenant_stats(site[0].e, 0, &st));
	return st.kind[ENG_MEM_PARKED];
}

/* Everything that was acknowledged reaches host B, and the DREQ after it. */
static void test_dreq_waits(void **state)
{
	say_goodbye_in_an_outage(20);
	assert_true(site[1].of_qpn[QPN_B] >= 20);
	assert_int_equal(site[1].psn_of[QPN_B], PSN_A + 19);
	assert_int_equal(seen.attr[1], ROCE_CM_DREQ);
	assert_int_equal(seen.before_cm, site[1].of_qpn[QPN_B]);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
	assert_int_equal(eng_flow_count(site[0].e), 0);
	assert_int_equal(eng_flow_count(site[1].e), 0);
}

/* Both come in one turn of the gateway, at whose end the request is acknowledged. */
static void test_dreq_in_a_burst(void **state)
{
	request(PSN_A);
	dreq();
	eng_pair_run(10 * RWY_MS);
	assert_true(site[0].of[0].ack_psn == PSN_A && eng_counters(site[0].e)->cm_held == 1);
}

/* Host A's CM repeats the DREQ while it waits: host B gets one. */
static void test_dreq_repeated(void **state)
{
	unsigned had = seen.cm[1];

	eng_pair_cut(true);
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(parked(), 0);
	for (unsigned i = 0; i < 3; i++) {
		dreq();
		eng_pair_run(4 * RWY_SEC);
	}
	assert_true(parked() > 0); /* its host and tenant are charged for the one that waits */
	eng_pair_cut(false);
	run_with_host_b(5 * RWY_SEC);
	assert_int_equal(seen.cm[1], had + 1);
	assert_int_equal(seen.attr[1], ROCE_CM_DREQ);
	assert_int_equal(eng_counters(site[0].e)->drop_cm_repeated, 2);
	assert_int_equal(parked(), 0);
	dreq(); /* its answer was lost */
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(seen.cm[1], had + 2);
}

/* Nothing waits for host B: neither does the DREQ. */
static void test_dreq_goes(void **state)
{
	request(PSN_A);
	run_with_host_b(50 * RWY_MS);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	dreq();
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(seen.attr[1], ROCE_CM_DREQ);
	eng_pair_run(10 * RWY_SEC);
	assert_int_equal(eng_flow_count(site[0].e), 0);
	assert_int_equal(eng_flow_count(site[1].e), 0);
}

/* Host B is never ready to receive: it hears that A goes, or both would wait for ever. */
static void test_dreq_not_ready(void **state)
{
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	dreq();
	for (unsigned i = 0; i < 150 && seen.attr[1] != ROCE_CM_DREQ; i++) {
		host_b_says(roce_aeth_make(ROCE_AETH_RNR, 31), PSN_A);
		eng_pair_run(100 * RWY_MS);
	}
	assert_int_equal(seen.attr[1], ROCE_CM_DREQ);
	/* Its queue pair is gone: the loss is logged, and nothing stays. */
	eng_pair_run(20 * RWY_SEC);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 1);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(eng_flow_count(site[0].e), 0);
}

/* The connection fails while the DREQ waits: it goes, and the loss is logged. */
static void test_dreq_after_failure(void **state)
{
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	dreq();
	eng_pair_run(5 * RWY_MS);
	assert_int_not_equal(seen.attr[1], ROCE_CM_DREQ);
	host_b_says(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_ACCESS), PSN_A);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(seen.attr[1], ROCE_CM_DREQ);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 1);
}

/* The gateway ends, or the tunnel goes, while a DREQ waits: no buffer is lost. */
static void test_dreq_at_the_end(void **state)
{
	eng_pair_cut(true);
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	dreq();
	eng_pair_run(10 * RWY_MS);
}

/*
 * Host B's program ends and comes back on the same QPN, for another queue pair of host A, while it is owed
 * requests: the old queue pair of A is idle, and is told.
 */
static void test_superseded(void **state)
{
	struct cp_req q = {
	    .tid = 17, .comm = COMM_A + 1, .qpn = QPN_A + 1, .psn = PSN_B, .mtu = 3, .retry = 7, .rnr = 7};
	struct cp_rep p = {
	    .tid = 17, .comm = COMM_B + 1, .remote = COMM_A + 1, .qpn = QPN_B, .psn = PSN_A, .rnr = 7};
	uint8_t mad[256];

	eng_pair_cut(true);
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, PSN_A);
	cp_make_req(mad, &q);
	cm_sends(0, mad);
	cp_make_rep(mad, &p);
	eng_pair_cut(false);
	cm_sends(1, mad);
	eng_pair_cut(true);
	eng_pair_run(10 * RWY_MS);
	eng_pair_cut(false);
	assert_int_equal(site[0].of_qpn[QPN_A], 0);
	eng_pair_run(5 * RWY_SEC);
	assert_int_equal(eng_counters(site[0].e)->cm_connections, 2);
	assert_true(site[0].of_qpn[QPN_A] > 0);
	assert_int_equal(site[0].psn_of[QPN_A], PSN_B);
	assert_int_equal(site[0].of_qpn[QPN_A + 1], 0);
}

/* A REQ in a packet of host A that speaks for another host is carried, and not believed. */
static void test_foreign(void **state)
{
	struct cp_req q = {.tid = 27,
	    .comm = COMM_A + 2,
	    .qpn = QPN_A,
	    .psn = 1,
	    .mtu = 3,
	    .retry = 7,
	    .rnr = 7,
	    .local_gid = {[10] = 0xff, 0xff, 10, 1, 0, 99}};
	struct cp_rep p = {
	    .tid = 27, .comm = COMM_B + 2, .remote = COMM_A + 2, .qpn = QPN_B, .psn = 2, .rnr = 7};
	unsigned had = seen.cm[1];
	uint8_t mad[256];

	eng_pair_cut(true);
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	eng_pair_cut(false);
	cp_make_req(mad, &q);
	cm_sends(0, mad);
	eng_pair_run(2 * RWY_SEC);
	cp_make_rep(mad, &p);
	cm_sends(1, mad);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(seen.cm[1], had + 1);
	assert_int_equal(eng_counters(site[0].e)->cm_foreign, 1);
	assert_int_equal(eng_counters(site[1].e)->cm_foreign, 1);
	assert_int_equal(eng_counters(site[0].e)->cm_connections, 1);
	assert_true(eng_custody_bytes(site[0].e) > 0); /* nobody made the gateway give it up */
}

static void ip_sends(uint32_t src, uint8_t protocol)
{
	uint8_t b[40] = {0x45, 0, 0, sizeof(b), [8] = 64, [9] = protocol};

	tp_be(b + 12, src, 4);
	tp_be(b + 16, 0x0a020003, 4);
	tp_fix_csum(b);
	eng_host_sends_bytes(0, b, sizeof(b));
	eng_pair_run(10 * RWY_MS);
}

/*
 * A host of site 0 takes the address of one of site 1: nothing of it reaches site 1. ICMP errors come from
 * routers that are behind no tunnel.
 */
static void test_spoofed(void **state)
{
	const struct eng_counters *c = eng_counters(site[1].e);
	uint64_t had = c->lan_tx_packets;
	uint8_t b[TP_MAX], mad[256];
	struct cp_req q = {.tid = 37, .comm = 5, .qpn = 6, .psn = 1, .mtu = 3};
	uint32_t len, crc;

	ip_sends(0x0a010003, 6);
	assert_int_equal(c->lan_tx_packets, had + 1);
	ip_sends(0x0a020009, 6);
	assert_int_equal(c->drop_foreign_source, 1);
	ip_sends(0xc0a80001, 1);
	assert_int_equal(c->lan_tx_packets, had + 2);
	cp_make_req(mad, &q);
	len = cp_packet(b, mad, false, 256);
	tp_be(b + 12, 0x0a020009, 4);
	tp_be(b + 16, 0x0a020003, 4);
	tp_fix_csum(b);
	crc = tp_icrc(b, len);
	for (unsigned i = 0; i < 4; i++)
		b[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_host_sends_bytes(0, b, len);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(c->drop_foreign_source, 2);
	assert_int_equal(c->lan_tx_packets, had + 2);
	/* A relay is shown the message, and nothing goes out: it may have gone in a circle. */
	assert_int_equal(site[1].foreign, 0);
	site[1].e->cfg.onward = true;
	eng_host_sends_bytes(0, b, len);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(c->drop_foreign_source, 3);
	assert_int_equal(c->lan_tx_packets, had + 2);
	assert_int_equal(site[1].foreign, 1);
	ip_sends(0x0a020009, 6); /* CM alone */
	assert_int_equal(c->drop_foreign_source, 4);
	assert_int_equal(site[1].foreign, 1);
}

/*
 * Hosts flood while the WAN is down: the first has half of the queue, the second half of the rest.
 * There is room for what other hosts send. Nothing of it is left when all has been delivered.
 */
static void test_flood(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);
	unsigned had = seen.cm[1];

	eng_pair_cut(true);
	flood(9, 6000);
	assert_int_equal(c->drop_cm_share, 6000 - 2048);
	flood(10, 6000);
	assert_int_equal(c->drop_cm_share, 12000 - 2048 - 1024);
	flood(11, 500);
	assert_int_equal(c->drop_cm_share, 12000 - 2048 - 1024);
	eng_pair_cut(false);
	eng_pair_run(20 * RWY_SEC);
	assert_int_equal(seen.cm[1], had + 2048 + 1024 + 500);
	eng_pair_cut(true);
	flood(9, 2049);
	assert_int_equal(c->drop_cm_share, 12000 - 2048 - 1024 + 1);
	eng_pair_cut(false);
	eng_pair_run(20 * RWY_SEC);
}

/*
 * Gateway B restarts before the RTU has come, and both hosts' CM repeat their messages. Gateway A has
 * opened the flow again: it is the same connection, and nothing of it is lost. Not paired: gateway B
 * had no memory for that when gateway A named its host.
 */
static void repeats_after_a_restart(bool paired)
{
	const struct eng_key k = {.src = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}),
	    .dst = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3}),
	    .qpn = QPN_B};
	struct eng_requester *rq;

	eng_pair_cut(true);
	request(PSN_A);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, PSN_A);
	eng_pair_restart(1);
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[1].psn_of[QPN_B], PSN_A);
	rq = (struct eng_requester *)eng_find(site[1].e, &k, true);
	assert_true(rq && rq->peer_named);
	if (!paired) {
		eng_pair_undo(rq);
		rq->peer_named = false;
	}
	req();
	eng_pair_run(10 * RWY_MS);
	rep();
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(eng_counters(site[1].e)->cm_connections, 1);
	run_with_host_b(RWY_SEC);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

static void test_repeated_after_a_restart(void **state)
{
	repeats_after_a_restart(true);
}

static void test_repeated_without_a_pair(void **state)
{
	repeats_after_a_restart(false);
}

/*
 * After the DREQ both hosts use their QPNs again, without CM. The end of the old connection, some
 * seconds later, is not the end of the new one.
 */
static void test_used_again_after_dreq(void **state)
{
	const roce_psn psn = 0x500000;

	request(PSN_A);
	run_with_host_b(RWY_SEC);
	dreq();
	eng_pair_run(RWY_SEC);
	for (unsigned i = 0; i < 80; i++) {
		request(psn + i);
		run_with_host_b(100 * RWY_MS);
		assert_int_equal(site[1].psn_of[QPN_B], psn + i);
		assert_int_equal(site[0].of[0].ack_psn, psn + i);
	}
	assert_int_equal(eng_counters(site[1].e)->drop_unknown_qpn, 0);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, connected, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_dreq_waits), TEST(test_dreq_in_a_burst),
	    TEST(test_dreq_repeated), TEST(test_dreq_goes), TEST(test_dreq_not_ready),
	    TEST(test_dreq_after_failure), TEST(test_dreq_at_the_end), TEST(test_superseded),
	    TEST(test_foreign), TEST(test_flood), TEST(test_spoofed), TEST(test_repeated_after_a_restart),
	    TEST(test_repeated_without_a_pair), TEST(test_used_again_after_dreq)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
