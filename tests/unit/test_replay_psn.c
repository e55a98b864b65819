/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a connection whose PSNs wrap: packets are made one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "roce/opcode.h"
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_pkt.h"
#include "tools/replay/schedule.h"

#define ETH_LEN 14
#define MTU     1024u
#define QPN_A   0x11
#define QPN_B   0x12

struct line {
	struct rp_schedule *s;
	rwy_time now;
};

static struct line line_new(void)
{
	struct line l = {rp_schedule_new(), RWY_SEC};

	assert_non_null(l.s);
	return l;
}

static void put(struct line *l, const struct rc_mk *m)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {[12] = 8};
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, m);

	l->now += RWY_US;
	assert_int_equal(an_frame(l->s->an, l->now, frame, len, len, false), 0);
}

static void ask(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len)
{
	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .dqpn = QPN_B,
	           .len = len,
	           .payload_len = opcode == ROCE_RC_READ_REQ ? 0 : len});
}

static void ask_qpn(struct line *l, uint32_t qpn, uint32_t psn)
{
	put(l, &(struct rc_mk){.opcode = ROCE_RC_READ_REQ, .psn = psn, .dqpn = qpn, .len = 8});
}

/* The payload begins with `mark`. */
static void answer(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len, uint8_t mark)
{
	uint8_t payload[MTU] = {mark};

	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .src = {10, 0, 0, 2},
	           .dst = {10, 0, 0, 1},
	           .dqpn = QPN_A,
	           .syndrome = 0x1f,
	           .payload = payload,
	           .payload_len = len});
}

/*
 * Rounds of a SEND, a short READ and one of 256 MiB, of which the capture has the first and the last
 * response only: more than twice all PSNs.
 */
static void test_psns_wrap_twice(void **state)
{
	enum { ROUNDS = 130, LONG = 1 << 18, FIRST = 0xfffff0 };
	struct line l = line_new();
	const struct rp_side *a;
	uint64_t psn = FIRST;

	for (uint32_t k = 0; k < ROUNDS; k++) {
		ask(&l, ROCE_RC_SEND_ONLY, psn, MTU);
		ask(&l, ROCE_RC_READ_REQ, psn + 1, 8);
		ask(&l, ROCE_RC_READ_REQ, psn + 2, LONG * MTU);
		answer(&l, ROCE_RC_READ_RESP_ONLY, psn + 1, 8, (uint8_t)k);
		answer(&l, ROCE_RC_READ_RESP_FIRST, psn + 2, MTU, 0xff);
		answer(&l, ROCE_RC_READ_RESP_LAST, psn + 1 + LONG, MTU, 0xff);
		psn += 2 + LONG;
	}
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, 1);
	a = &l.s->conn[0].side[0];
	assert_int_equal(a->first, FIRST);
	assert_int_equal(a->lost.reused + a->lost.missing, 0);
	/* Answers that were not captured have a bound; messages without room for them are left out. */
	assert_int_equal(a->msgs + a->lost.partial, 3 * ROUNDS);
	assert_true(a->msgs > 2 * ROUNDS);
	for (uint32_t i = 0, k = 0; i < a->msgs; i++) {
		const struct rp_msg *m = &a->msg[i];
		struct roce_pkt pkt;

		if (m->op != ROCE_OP_READ_REQ || m->len != 8)
			continue;
		assert_true(m->served != RWY_NEVER);
		rp_packet_get(l.s, &a->answer[m->answer], &pkt);
		assert_int_equal(pkt.payload[0], k++ & 0xff);
	}
	assert_true(a->lost.unanswered < ROUNDS);
	rp_schedule_free(l.s);
}

/* Repeats are found behind a wrap, also of long READs of which several are outstanding. */
static void test_repeats_behind_a_wrap(void **state)
{
	enum { ROUNDS = 40, LONG = 1 << 18 };
	struct line l = line_new();
	const struct rp_side *a;
	uint64_t psn = 5;

	for (uint32_t k = 0; k < ROUNDS; k++) {
		for (uint64_t again = 0; again < 2; again++)
			for (uint32_t i = 0; i < 8; i++)
				ask(&l, ROCE_RC_SEND_ONLY, psn + i, MTU);
		answer(&l, ROCE_RC_ACK, psn + 7, 0, 0);
		for (uint64_t again = 0; again < 2; again++)
			for (uint32_t i = 0; i < 8; i++)
				ask(&l, ROCE_RC_READ_REQ, psn + 8 + i * LONG, LONG * MTU);
		answer(&l, ROCE_RC_READ_RESP_LAST, psn + 7 + 8 * LONG, MTU, 0);
		psn += 8 + 8 * LONG;
	}
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, 1);
	a = &l.s->conn[0].side[0];
	assert_int_equal(a->lost.reused + a->lost.missing, 0);
	assert_int_equal(a->msgs + a->lost.partial, 16 * ROUNDS);
	assert_true(a->msgs >= 8 * ROUNDS);
	rp_schedule_free(l.s);
}

/* A long READ whose request was not captured leaves a gap, as another connection would. */
static void test_long_read_missing(void **state)
{
	enum { LONG = 102400, OTHER = 3000000 };
	struct line l = line_new();
	const struct rp_side *a;

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t psn = k * OTHER;

		ask(&l, ROCE_RC_SEND_ONLY, psn, MTU);
		answer(&l, ROCE_RC_ACK, psn, 0, 0);
		answer(&l, ROCE_RC_READ_RESP_MIDDLE, psn + LONG / 2, MTU, 0);
		ask(&l, ROCE_RC_SEND_ONLY, psn + 1 + LONG, MTU);
		answer(&l, ROCE_RC_ACK, psn + 1 + LONG, 0, 0);
	}
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, 1);
	a = &l.s->conn[0].side[0];
	assert_int_equal(a->msgs, 2);
	assert_int_equal(a->lost.missing, LONG);
	assert_int_equal(a->lost.reused, 2);
	rp_schedule_free(l.s);
}

/* No packet is as long as the path MTU: a READ takes as many PSNs as it has responses. */
static void test_short_messages_only(void **state)
{
	enum { ROUNDS = 10 };
	struct line l = line_new();
	const struct rp_side *a;

	for (uint32_t k = 0; k < ROUNDS; k++) {
		ask(&l, ROCE_RC_SEND_ONLY, 2 * k, 16);
		ask(&l, ROCE_RC_READ_REQ, 2 * k + 1, 400);
		answer(&l, ROCE_RC_READ_RESP_ONLY, 2 * k + 1, 400, 0);
	}
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, 1);
	a = &l.s->conn[0].side[0];
	assert_int_equal(a->msgs, 2 * ROUNDS);
	assert_int_equal(a->lost.partial + a->lost.missing + a->lost.unanswered, 0);
	rp_schedule_free(l.s);
}

/* Messages of A from `psn` on, and one of B, each acknowledged. */
static void talk(struct line *l, uint32_t psn, uint32_t psn_b, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		ask(l, ROCE_RC_SEND_ONLY, psn + k, 64);
		answer(l, ROCE_RC_ACK, psn + k, 0, 0);
	}
	put(l, &(struct rc_mk){.opcode = ROCE_RC_SEND_ONLY,
	           .psn = psn_b,
	           .src = {10, 0, 0, 2},
	           .dst = {10, 0, 0, 1},
	           .dqpn = QPN_A,
	           .payload_len = 32});
	put(l, &(struct rc_mk){.opcode = ROCE_RC_ACK, .psn = psn_b, .dqpn = QPN_B, .syndrome = 0x1f});
}

static void check_first(struct line *l, uint32_t psn, uint32_t psn_b, uint64_t reused)
{
	const struct rp_side *a, *b;

	assert_int_equal(rp_schedule_end(l->s), 0);
	assert_int_equal(l->s->conns, 1);
	a = &l->s->conn[0].side[0];
	b = &l->s->conn[0].side[1];
	assert_int_equal(a->first, psn);
	assert_int_equal(b->first, psn_b);
	assert_int_equal(a->msgs, 20);
	assert_int_equal(b->msgs, 1);
	assert_int_equal(a->lost.missing + a->lost.partial + b->lost.missing + b->lost.partial, 0);
	assert_int_equal(a->lost.reused, reused);
	assert_int_equal(b->lost.reused, 1);
	for (uint32_t i = 0; i < a->msgs; i++) {
		struct roce_pkt pkt;

		rp_packet_get(l->s, &a->pkt[i], &pkt);
		assert_int_equal(pkt.psn, psn + i);
	}
	rp_schedule_free(l->s);
}

/* The queue pairs are used again, A's with lower PSNs, B's with any. */
static void test_reused_lower(void **state)
{
	static const uint32_t first[][2] = {{0x400000, 9}, {0x400000, 0x300000}, {0xa00000, 0x9f0000}};

	for (unsigned i = 0; i < 3; i++) {
		struct line l = line_new();

		talk(&l, first[i][0], first[i][1], 20);
		talk(&l, first[i][0] - 0x180000, 11, 30);
		check_first(&l, first[i][0], first[i][1], 30);
	}
}

/*
 * The number of host A's queue pair is used again, with the same PSNs, for another one of host B.
 * What the first READs were answered is not given to the second ones.
 */
static void test_reused_at_one_side(void **state)
{
	enum { FIRST = 0x21, SECOND, READS = 50 };
	struct line l = line_new();
	const struct rp_side *a;

	for (uint32_t qpn = FIRST; qpn <= SECOND; qpn++)
		for (uint32_t i = 0; i < READS; i++) {
			ask_qpn(&l, qpn, i);
			answer(&l, ROCE_RC_READ_RESP_ONLY, i, 8, (uint8_t)qpn);
		}
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, 1);
	a = &l.s->conn[0].side[1];
	assert_int_equal(l.s->conn[0].side[0].qpn, SECOND);
	assert_int_equal(a->msgs, READS);
	assert_int_equal(a->lost.unanswered, 0);
	for (uint32_t i = 0; i < a->msgs; i++) {
		struct roce_pkt pkt;

		rp_packet_get(l.s, &a->answer[a->msg[i].answer], &pkt);
		assert_int_equal(pkt.payload[0], SECOND);
	}
	rp_schedule_free(l.s);
}

static void cm(struct line *l, const uint8_t *mad, bool back)
{
	uint8_t frame[ETH_LEN + TP_MAX] = {[12] = 8}, *ip = frame + ETH_LEN;
	uint32_t len = cp_packet(ip, mad, false, 256), crc;

	tp_be(ip + 12, back ? 0x0a000002 : 0x0a000001, 4);
	tp_be(ip + 16, back ? 0x0a000001 : 0x0a000002, 4);
	tp_fix_csum(ip);
	crc = tp_icrc(ip, len);
	for (unsigned i = 0; i < 4; i++)
		ip[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	l->now += RWY_US;
	assert_int_equal(an_frame(l->s->an, l->now, frame, ETH_LEN + len, ETH_LEN + len, false), 0);
}

static void connect(struct line *l, uint32_t id, uint32_t psn_a, uint32_t psn_b)
{
	const struct cp_req req = {
	    .tid = id, .init_depth = 16, .comm = id, .qpn = QPN_A, .psn = psn_b, .mtu = 3, .timeout = 14};
	const struct cp_rep rep = {.tid = id, .comm = id + 1, .remote = id, .qpn = QPN_B, .psn = psn_a};
	uint8_t mad[256];

	cp_make_req(mad, &req);
	cm(l, mad, false);
	cp_make_rep(mad, &rep);
	cm(l, mad, true);
}

/* CM says that another connection begins, whatever its PSNs are: below, among, after the others. */
static void test_reused_by_cm(void **state)
{
	static const uint32_t second[] = {500, 1000 - 30, 1000 - 10, 1000, 1010, 1020, 5000};

	for (unsigned i = 0; i < sizeof(second) / sizeof(second[0]); i++) {
		struct line l = line_new();
		const struct an_flow *f;

		connect(&l, 0x70, 1000, 7);
		talk(&l, 1000, 7, 20);
		connect(&l, 0x80, second[i], 8);
		talk(&l, second[i], 8, 30);
		f = an_flows(l.s->an);
		while (f->key.dqpn != QPN_B)
			f = f->next;
		assert_int_equal(f->c.packets, 50);
		assert_int_equal(f->c.resent_packets + f->c.resends + f->c.reordered, 0);
		assert_int_equal(f->c.messages, 50);
		check_first(&l, 1000, 7, 30);
	}
}

/* Each answer finds its own request among many connections between two hosts, without CM. */
static void test_many(void **state)
{
	enum { MANY = 20000, APART = 800 };
	struct line l = line_new();

	for (unsigned round = 0; round < 2; round++)
		for (uint32_t k = 0; k < MANY; k++)
			put(&l, &(struct rc_mk){.opcode = ROCE_RC_SEND_ONLY,
			            .psn = k * APART + round,
			            .dqpn = 100 + k,
			            .payload_len = 4});
	for (uint32_t k = MANY; k-- > 0;)
		put(&l, &(struct rc_mk){.opcode = ROCE_RC_ACK,
		            .psn = k * APART + 1,
		            .src = {10, 0, 0, 2},
		            .dst = {10, 0, 0, 1},
		            .dqpn = 100000 + k,
		            .syndrome = 0x1f});
	assert_int_equal(an_totals(l.s->an)->unpaired, 0);
	assert_int_equal(rp_schedule_end(l.s), 0);
	assert_int_equal(l.s->conns, MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		const struct rp_conn *c = &l.s->conn[i];

		assert_int_equal(c->side[0].msgs, 2);
		assert_int_equal(c->side[0].qpn, 100000 + c->side[1].qpn - 100);
	}
	rp_schedule_free(l.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reused_lower),
	    cmocka_unit_test(test_reused_at_one_side),
	    cmocka_unit_test(test_reused_by_cm),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_psns_wrap_twice),
	    cmocka_unit_test(test_repeats_behind_a_wrap),
	    cmocka_unit_test(test_long_read_missing),
	    cmocka_unit_test(test_short_messages_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
