/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analysis of flows that no model host makes: READ responses that are lost, READs of many PSNs,
 * requests whose ACKs are not in the capture. Packets are made one by one and show their headers
 * only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "roce/opcode.h"
#include "rwy/endian.h"
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_pkt.h"
#include "tools/analyze/analyze.h"

#define ETH_LEN  14
#define CAPTURED 100
#define MTU      1024u
#define QPN_A    0x11
#define QPN_B    0x12

struct line {
	struct an *an;
	rwy_time now;
};

static struct line line_new(void)
{
	struct line l = {an_new(0), RWY_SEC};

	assert_non_null(l.an);
	return l;
}

static void put(struct line *l, const struct rc_mk *m)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {[12] = 8};
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, m);

	l->now += RWY_US;
	assert_int_equal(an_frame(l->an, l->now, frame, len < CAPTURED ? len : CAPTURED, len, false), 0);
}

static void ask(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len)
{
	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .dqpn = QPN_B,
	           .len = len,
	           .payload_len = opcode == ROCE_RC_READ_REQ ? 0 : len});
}

static void answer(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len)
{
	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .src = {10, 0, 0, 2},
	           .dst = {10, 0, 0, 1},
	           .dqpn = QPN_A,
	           .syndrome = 0x1f,
	           .payload_len = len});
}

/* Response i of a READ of n that begins at psn. */
static void respond(struct line *l, uint64_t psn, uint32_t i, uint32_t n)
{
	answer(l,
	    i == 0       ? ROCE_RC_READ_RESP_FIRST
	    : i == n - 1 ? ROCE_RC_READ_RESP_LAST
	                 : ROCE_RC_READ_RESP_MIDDLE,
	    psn + i, MTU);
}

/* The flow of the requests. */
static const struct an_flow *flow(const struct line *l)
{
	for (const struct an_flow *f = an_flows(l->an); f; f = f->next)
		if (f->key.dqpn == QPN_B)
			return f;
	return NULL;
}

/* --- READ responses -------------------------------------------------------------------------- */

static void test_one_lost_response_is_one(void **state)
{
	struct line l = line_new();

	ask(&l, ROCE_RC_READ_REQ, 7, 1024 * MTU);
	for (uint32_t i = 0; i < 1024; i++)
		if (i != 100)
			respond(&l, 7, i, 1024);
	assert_int_equal(flow(&l)->c.responses_lost, 1);
	/* The requester asks for the rest, of which two more are lost. */
	ask(&l, ROCE_RC_READ_REQ, 7 + 100, 924 * MTU);
	for (uint32_t i = 0; i < 924; i++)
		if (i != 5 && i != 50)
			respond(&l, 7 + 100, i, 924);
	assert_int_equal(flow(&l)->c.responses_lost, 3);
	assert_int_equal(flow(&l)->c.reads, 1);
	assert_int_equal(flow(&l)->c.resends_nak, 1);
	an_free(l.an);
}

/* The first response is lost: what lies before the READ has none. */
static void test_lost_first_response(void **state)
{
	struct line l = line_new();

	for (uint32_t i = 0; i < 50; i++)
		ask(&l, ROCE_RC_SEND_ONLY, i, MTU);
	answer(&l, ROCE_RC_ACK, 49, 0);
	ask(&l, ROCE_RC_READ_REQ, 50, 8 * MTU);
	for (uint32_t i = 1; i < 8; i++)
		respond(&l, 50, i, 8);
	assert_int_equal(flow(&l)->c.responses_lost, 1);
	an_free(l.an);
}

/* --- READs of many PSNs ---------------------------------------------------------------------- */

/* n READs of `psns` PSNs, `depth` of them outstanding, on a line that loses nothing. */
static void read_all(struct line *l, uint64_t n, uint64_t depth, uint32_t psns)
{
	for (uint64_t k = 0; k < depth; k++)
		ask(l, ROCE_RC_READ_REQ, k * psns, psns * MTU);
	for (uint64_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < psns; i++)
			respond(l, k * psns, i, psns);
		if (k + depth < n)
			ask(l, ROCE_RC_READ_REQ, (k + depth) * psns, psns * MTU);
	}
}

static void check_reads(const struct line *l, uint64_t n, uint32_t depth, uint32_t psns)
{
	const struct an_flow *f = flow(l);

	assert_int_equal(f->c.reads, n);
	assert_int_equal(f->c.messages, n);
	assert_int_equal(f->c.bytes, n * psns * MTU);
	assert_int_equal(f->c.responses_lost, 0);
	assert_int_equal(f->c.responses_repeated, 0);
	assert_int_equal(f->c.resent_packets, 0);
	assert_int_equal(f->c.not_captured, 0);
	assert_int_equal(an_totals(l->an)->unpaired, 0);
	assert_int_equal(f->most_reads, depth);
	assert_int_equal(f->most_bytes, (uint64_t)depth * psns * MTU);
}

/* More PSNs are outstanding than packets are kept. */
static void test_many_psns_outstanding(void **state)
{
	struct line l = line_new();

	read_all(&l, 12, 8, 40960);
	check_reads(&l, 12, 8, 40960);
	an_free(l.an);
}

/* The path MTU is not known before the first response. */
static void test_long_reads_of_unknown_mtu(void **state)
{
	struct line l = line_new();

	read_all(&l, 4, 4, 102400);
	check_reads(&l, 4, 4, 102400);
	an_free(l.an);
}

/* Short SENDs say little of the path MTU: a READ behind them takes fewer PSNs than by their size. */
static void test_reads_behind_short_sends(void **state)
{
	struct line l = line_new();
	const struct an_flow *f;
	uint64_t psn = 0;

	for (uint32_t k = 0; k < 3; k++) {
		ask(&l, ROCE_RC_SEND_ONLY, psn, 16);
		ask(&l, ROCE_RC_READ_REQ, psn + 1, 64 * MTU);
		ask(&l, ROCE_RC_READ_REQ, psn + 65, 64 * MTU);
		ask(&l, ROCE_RC_SEND_ONLY, psn + 129, 16);
		answer(&l, ROCE_RC_ACK, psn, 0);
		for (uint32_t i = 0; i < 64; i++)
			respond(&l, psn + 1, i, 64);
		for (uint32_t i = 0; i < 64; i++)
			respond(&l, psn + 65, i, 64);
		answer(&l, ROCE_RC_ACK, psn + 129, 0);
		psn += 130;
	}
	f = flow(&l);
	assert_int_equal(f->c.packets, 3 * 4);
	assert_int_equal(f->c.messages, 3 * 4);
	assert_int_equal(f->c.reordered + f->c.resent_packets + f->c.lost_before + f->c.not_captured, 0);
	assert_int_equal(f->c.responses_lost + f->c.responses_repeated, 0);
	assert_int_equal(f->most_messages, 4);
	assert_int_equal(f->pmtu, MTU);
	an_free(l.an);
}

/* READs of 4 M PSNs, of which the capture has the ACK of what follows only. */
static void test_long_reads_without_responses(void **state)
{
	enum { N = 300, PSNS = 1 << 22 };
	struct line l = line_new();
	const struct an_flow *f;
	uint64_t psn = 2;

	ask(&l, ROCE_RC_SEND_FIRST, 0, 256);
	ask(&l, ROCE_RC_SEND_LAST, 1, 4);
	for (uint32_t k = 0; k < N; k++) {
		ask(&l, ROCE_RC_READ_REQ, psn, 256u * PSNS);
		ask(&l, ROCE_RC_SEND_ONLY, psn + PSNS, 4);
		answer(&l, ROCE_RC_ACK, psn + PSNS, 0);
		psn += PSNS + 1;
	}
	f = flow(&l);
	assert_int_equal(f->c.messages, 2 * N + 1);
	assert_int_equal(f->c.packets, 2 * N + 2);
	assert_int_equal(f->rtt.n, N);
	assert_int_equal(f->most_reads, 1);
	assert_int_equal(f->most_bytes, 256u * PSNS + 264);
	assert_int_equal(f->c.not_captured + f->c.resent_packets + f->c.reordered, 0);
	an_free(l.an);
}

/* --- a queue pair number that is used again -------------------------------------------------- */

static void sends(struct line *l, uint64_t psn, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		ask(l, ROCE_RC_SEND_ONLY, psn + i, 16);
		answer(l, ROCE_RC_ACK, psn + i, 0);
	}
}

/* The PSNs of the next connection are behind or ahead of those before. */
static void test_another_connection(void **state)
{
	static const uint32_t first[] = {5000000, 1000000, 700000, 0xff0000, 0x7f0000, 100};
	struct line l = line_new();
	const struct an_flow *f;
	uint32_t n = sizeof(first) / sizeof(first[0]);

	for (uint32_t i = 0; i < n; i++) {
		sends(&l, first[i], 100);
		f = flow(&l);
		assert_int_equal(f->c.packets, (i + 1) * 100);
		assert_int_equal(f->c.messages, (i + 1) * 100);
	}
	assert_int_equal(f->c.resent_packets + f->c.reordered + f->c.lost_before + f->c.resends, 0);
	an_free(l.an);
}

/*
 * A packet from far behind may be of the same connection: a gateway's question, 2^16 PSNs before
 * all that it knows (engine/recover.c), and a long READ once more from its begin.
 */
static void test_far_behind_is_no_other(void **state)
{
	enum { LONG = 300000 };
	struct line l = line_new();
	const struct an_flow *f;
	uint64_t psn = 70000;

	sends(&l, psn, 100);
	ask(&l, ROCE_RC_WRITE_ONLY, psn + 90 - (1 << 16), 0);
	sends(&l, psn + 100, 100);
	psn += 200;
	ask(&l, ROCE_RC_READ_REQ, psn, LONG * MTU);
	for (uint32_t i = 0; i < LONG; i++)
		respond(&l, psn, i, LONG);
	ask(&l, ROCE_RC_READ_REQ, psn, LONG * MTU);
	for (uint32_t i = 0; i < LONG; i++)
		respond(&l, psn, i, LONG);
	sends(&l, psn + LONG, 100);
	f = flow(&l);
	assert_int_equal(f->c.packets, 301);
	assert_int_equal(f->c.messages, 301);
	assert_int_equal(f->c.responses_repeated, LONG);
	assert_int_equal(f->c.resent_packets, 1);
	an_free(l.an);
}

/* --- packets that are in the capture twice ---------------------------------------------------- */

static void test_each_packet_twice(void **state)
{
	enum { N = 50, EACH = 4, READ = 8 };
	struct line l = line_new();
	const struct an_flow *f;
	uint32_t psn = 0;

	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t k = 0; k < 2 * EACH; k++)
			ask(&l, ROCE_RC_WRITE_ONLY, psn + k / 2, MTU);
		l.now += RWY_MS;
		for (uint32_t k = 0; k < 2; k++)
			answer(&l, ROCE_RC_ACK, psn + EACH - 1, 0);
		for (uint32_t k = 0; k < 3; k++)
			ask(&l, ROCE_RC_READ_REQ, psn + EACH, READ * MTU);
		for (uint32_t k = 0; k < 2 * READ; k++)
			respond(&l, psn + EACH, k / 2, READ);
		psn += EACH + READ;
	}
	f = flow(&l);
	assert_int_equal(an_totals(l.an)->copies, N * (EACH + 1 + 2 + READ));
	assert_int_equal(f->c.packets, N * (EACH + 1));
	assert_int_equal(f->c.messages, N * (EACH + 1));
	assert_int_equal(f->c.acks, N);
	assert_int_equal(f->c.resent_packets + f->c.responses_repeated + f->c.unasked, 0);
	an_free(l.an);
}

/* Packets that hosts themselves send twice at once are no copies: behind an RNR NAK, and ACKs of repeats. */
static void test_quick_repeats(void **state)
{
	struct line l = line_new();
	const struct an_flow *f;

	sends(&l, 0, 10);
	for (uint32_t i = 0; i < 3; i++) {
		ask(&l, ROCE_RC_SEND_ONLY, 10, 16);
		put(&l, &(struct rc_mk){.opcode = ROCE_RC_ACK,
		            .psn = 10,
		            .src = {10, 0, 0, 2},
		            .dst = {10, 0, 0, 1},
		            .dqpn = QPN_A,
		            .syndrome = 0x21});
	}
	sends(&l, 10, 1);
	for (uint32_t i = 5; i < 10; i++)
		ask(&l, ROCE_RC_SEND_ONLY, i, 16);
	for (uint32_t i = 5; i < 10; i++)
		answer(&l, ROCE_RC_ACK, 10, 0);
	f = flow(&l);
	assert_int_equal(f->c.naks_rnr, 3);
	assert_int_equal(f->c.resent_packets, 3 + 5);
	assert_int_equal(f->c.acks, 11 + 5);
	assert_int_equal(an_totals(l.an)->copies, 0);
	an_free(l.an);
}

/* --- no answers ------------------------------------------------------------------------------ */

/* Outstanding packets have a bound, also behind a READ and beyond what PSNs can tell apart. */
static void test_no_answer_is_captured(void **state)
{
	enum { LEN = 4, MOST = 1 << 18, PSNS = 1 << 21 };
	struct line l = line_new();
	const struct an_flow *f;
	uint64_t psn = 0;

	for (uint32_t i = 0; i < 3 * MOST / 2; i++)
		ask(&l, ROCE_RC_SEND_ONLY, psn++, LEN);
	for (uint32_t i = 0; i < 20; i++, psn += PSNS)
		ask(&l, ROCE_RC_READ_REQ, psn, 256 * (PSNS - 1));
	for (uint32_t i = 0; i < 3 * MOST / 2; i++)
		ask(&l, ROCE_RC_SEND_ONLY, psn++, LEN);
	f = flow(&l);
	assert_int_equal(f->c.packets, 3 * MOST + 20);
	assert_int_equal(f->c.sends, 3 * MOST);
	assert_int_equal(f->c.reads, 20);
	assert_int_equal(f->c.resent_packets, 0);
	assert_in_range(f->most_messages, MOST, MOST + 1);
	assert_in_range(f->most_bytes, MOST * LEN, (uint64_t)6 * 256 * PSNS);
	an_free(l.an);
}

/* Each VNI has connections of its own: many of them fit into memory. */
static void test_many_vnis_with_cm(void **state)
{
	enum { VNIS = 200, INNER = ETH_LEN + 28 + 8, MOST_KB = 1 << 20 };
	uint8_t frame[INNER + ETH_LEN + 1024] = {[12] = 8}, mad[256], *ip = frame + ETH_LEN;
	struct cp_req req = {.tid = 1, .comm = 2, .qpn = 3, .mtu = 3};
	struct line l = line_new();
	struct rusage before, after;
	uint32_t len;

	cp_make_req(mad, &req);
	len = INNER + ETH_LEN + cp_packet(frame + INNER + ETH_LEN, mad, false, sizeof(mad));
	ip[0] = 0x45;
	ip[9] = 17;
	rwy_put16(ip + 22, 4789);
	frame[INNER + 12] = 8;
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	for (uint32_t vni = 1; vni <= VNIS; vni++) {
		rwy_put24(ip + 28 + 4, vni);
		assert_int_equal(an_frame(l.an, l.now, frame, len, len, false), 0);
	}
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	assert_int_equal(an_totals(l.an)->other, VNIS);
	assert_in_range(after.ru_maxrss - before.ru_maxrss, VNIS, MOST_KB);
	an_free(l.an);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_lost_response_is_one),
	    cmocka_unit_test(test_lost_first_response),
	    cmocka_unit_test(test_many_psns_outstanding),
	    cmocka_unit_test(test_long_reads_of_unknown_mtu),
	    cmocka_unit_test(test_reads_behind_short_sends),
	    cmocka_unit_test(test_long_reads_without_responses),
	    cmocka_unit_test(test_another_connection),
	    cmocka_unit_test(test_far_behind_is_no_other),
	    cmocka_unit_test(test_each_packet_twice),
	    cmocka_unit_test(test_quick_repeats),
	    cmocka_unit_test(test_no_answer_is_captured),
	    cmocka_unit_test(test_many_vnis_with_cm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
