/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM of two replays on a LAN, in virtual time: the messages of a capture set a connection up and
 * end it, with the names of this run, also if some are lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/build.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "roce/wire.h"
#include "tools/replay/live/live.h"

#define STEPS  5
#define QUEUE  64
#define ROOM   512
#define LAN    RWY_MS
#define BEGAN  (100 * RWY_SEC)
#define UNTIL  (BEGAN + 20 * RWY_SEC)
#define COMM_A 0xa1u
#define COMM_B 0xb2u

static const struct rwy_ip ip[2] = {{{[10] = 0xff, 0xff, 10, 1, 0, 2}}, {{[10] = 0xff, 0xff, 10, 2, 0, 2}}};
static const struct rwy_ip here[2] = {
    {{[10] = 0xff, 0xff, 10, 1, 0, 77}}, {{[10] = 0xff, 0xff, 10, 2, 0, 77}}};

struct sent {
	rwy_time at;
	unsigned to;
	uint32_t len;
	uint8_t bytes[ROOM];
	uint16_t attr;
};

struct world {
	struct rp_schedule s;
	uint8_t bytes[STEPS * ROOM];
	struct rp_conn conn;
	struct rp_cm cm[STEPS];
	struct rp_live l[2];
	struct rp_lan lan[2];
	struct rp_pair pair[2];
	struct rp_end end[2];
	struct rp_live_conn k[2];
	rwy_time next[2];
	struct sent sent[QUEUE];
	unsigned first, n;
	unsigned lose; /* a bit for each packet: it is lost */
	rwy_time now;
};

static struct world *world;

/* Stands for the raw socket. */
void rp_lan_send(struct rp_lan *lan, const uint8_t *bytes, uint32_t len)
{
	struct world *w = world;
	struct sent *p = &w->sent[w->n];
	struct roce_cm_msg m;
	struct roce_pkt pkt;

	assert_true(w->n < QUEUE && len <= ROOM);
	memcpy(p->bytes, bytes, len);
	assert_int_equal(roce_parse(p->bytes, len, &pkt), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&pkt));
	assert_int_equal(roce_cm_parse(&pkt, &m), 0);
	*p = (struct sent){.at = w->now + LAN, .to = lan == &w->lan[0], .len = len, .attr = m.attr};
	memcpy(p->bytes, bytes, len);
	if (w->lose >> w->n++ & 1)
		p->at = RWY_NEVER;
}

/* A message of the capture. */
static void captured(struct world *w, unsigned side, uint16_t attr, rwy_time at)
{
	const unsigned i = w->s.cms++;
	uint8_t like[ROOM] = {0}, *out = w->bytes + w->s.used;
	struct roce_addr to = {
	    .src = ip[side], .dst = ip[!side], .dqpn = 1, .sport = 0xc001, .pkey = 0xffff, .ttl = 64};
	struct roce_mad *mad = (struct roce_mad *)(like + sizeof(struct roce_deth));
	uint8_t *body = (uint8_t *)(mad + 1);
	struct roce_cm_req *req = (struct roce_cm_req *)body;
	struct roce_cm_rep *rep = (struct roce_cm_rep *)body;
	struct roce_pkt pkt = {.opcode = ROCE_UD_SEND_ONLY,
	    .info = roce_op(ROCE_UD_SEND_ONLY),
	    .payload_len = ROCE_MAD_LEN,
	    .bth = (uint8_t[12]){0},
	    .ext = like,
	    .icrc = like + sizeof(struct roce_deth) + ROCE_MAD_LEN};

	rwy_put32(like, 0x80010000);
	rwy_put24(like + 5, 1);
	*mad = (struct roce_mad){.base_version = 1, .mgmt_class = 7, .class_version = 2, .method = 3};
	rwy_put16(mad->attr_id, attr);
	rwy_put32(body, side ? COMM_B : COMM_A);
	if (attr != ROCE_CM_REQ)
		rwy_put32(body + 4, side ? COMM_A : COMM_B);
	if (attr == ROCE_CM_REQ) {
		rwy_put24(req->qpn, 0x11);
		rwy_put24(req->psn, 200);
		req->service_id[4] = 1; /* RDMA IP CM */
		memset(req->private_data, 0x40, sizeof(req->private_data));
	} else if (attr == ROCE_CM_REP) {
		rwy_put24(rep->qpn, 0x12);
		rwy_put24(rep->psn, 100);
	} else if (attr == ROCE_CM_DREQ) {
		rwy_put24(((struct roce_cm_dreq *)body)->remote_qpn, 0x12);
	}
	w->cm[i] = (struct rp_cm){
	    .pkt = {.off = w->s.used, .len = (uint16_t)roce_build_like(out, &to, &pkt, i)}, .at = at};
	w->cm[i].pkt.captured = w->cm[i].pkt.len;
	w->s.used += ROOM;
}

static struct world *world_new(unsigned lose)
{
	struct world *w = world = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->lose = lose;
	w->now = BEGAN;
	w->s = (struct rp_schedule){
	    .bytes = w->bytes, .conn = &w->conn, .conns = 1, .cm = w->cm, .first = RWY_SEC};
	for (unsigned i = 0; i < 2; i++)
		w->conn.side[i] = (struct rp_side){.ip = ip[i], .qpn = 0x11 + i};
	captured(w, 0, ROCE_CM_REQ, RWY_SEC - 30 * RWY_MS);
	captured(w, 1, ROCE_CM_REP, RWY_SEC - 20 * RWY_MS);
	captured(w, 0, ROCE_CM_RTU, RWY_SEC - 10 * RWY_MS);
	captured(w, 0, ROCE_CM_DREQ, 2 * RWY_SEC);
	captured(w, 1, ROCE_CM_DREP, 2 * RWY_SEC + RWY_MS);
	for (unsigned i = 0; i < 2; i++) {
		w->end[i] = (struct rp_end){0, 0x4000 + i, 7000 + i};
		w->lan[i].ip = here[i];
		w->k[i] = (struct rp_live_conn){.conn = &w->conn, .side = i};
		w->k[i].host = (struct rp_host){.start = RWY_NEVER, .mine = &w->conn.side[i]};
		w->pair[i] = (struct rp_pair){.ends = 1, .mine = &w->end[i], .theirs = &w->end[!i]};
		w->l[i] = (struct rp_live){
		    .cfg = {.schedule = &w->s, .as = ip[i], .with = ip[!i], .to = here[!i], .speed = 1},
		    .lan = &w->lan[i],
		    .pair = &w->pair[i],
		    .conn = &w->k[i],
		    .mine = &w->end[i],
		    .conns = 1,
		    .next = &w->next[i],
		    .began = BEGAN};
		assert_int_equal(rp_live_cm_new(&w->l[i]), 0);
		assert_int_equal(w->l[i].cms, 1);
	}
	return w;
}

static void world_free(struct world *w)
{
	for (unsigned i = 0; i < 2; i++)
		rp_live_cm_free(&w->l[i]);
	free(w);
}

static void run(struct world *w, bool closing)
{
	for (; w->now < UNTIL && !(rp_live_cm_over(&w->l[0]) && rp_live_cm_over(&w->l[1]));
	     w->now += RWY_MS) {
		for (unsigned i = 0; i < 2; i++)
			(void)rp_live_cm_poll(&w->l[i], closing, w->now);
		for (unsigned i = 0; i < w->n; i++) {
			struct roce_pkt pkt;

			if (w->sent[i].at > w->now)
				continue;
			w->sent[i].at = RWY_NEVER;
			assert_int_equal(roce_parse(w->sent[i].bytes, w->sent[i].len, &pkt), ROCE_PARSE_OK);
			rp_live_cm_recv(&w->l[w->sent[i].to], &pkt, w->now);
		}
	}
}

static void test_set_up_and_ended(void **state)
{
	static const uint16_t order[] = {ROCE_CM_REQ, ROCE_CM_REP, ROCE_CM_RTU};
	struct world *w = world_new(0);
	struct roce_cm_msg m;
	struct roce_pkt pkt;

	run(w, false);
	assert_int_equal(w->n, 3); /* no DREQ yet, nothing twice */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(w->sent[i].attr, order[i]);
	/* 30 ms from the REQ to the first message in the capture; 1 ms of it is the LAN, twice */
	assert_true(w->k[0].host.start >= BEGAN + 30 * RWY_MS && w->k[0].host.start < BEGAN + 36 * RWY_MS);
	assert_true(w->k[1].host.start >= w->k[0].host.start);
	assert_int_equal(roce_parse(w->sent[0].bytes, w->sent[0].len, &pkt), ROCE_PARSE_OK);
	assert_int_equal(roce_cm_parse(&pkt, &m), 0);
	assert_int_equal(m.qpn, 0x4000);
	assert_int_equal(m.starting_psn, 7001);
	assert_true(rwy_ip_eq(&m.local_gid, &here[0]) && rwy_ip_eq(&m.remote_gid, &here[1]));
	assert_int_not_equal(m.local_comm_id, COMM_A);
	w->now = BEGAN + 10 * RWY_SEC;
	run(w, true);
	assert_true(rp_live_cm_over(&w->l[0]) && rp_live_cm_over(&w->l[1]));
	assert_int_equal(w->n, 5);
	assert_int_equal(w->l[0].cm_differ + w->l[1].cm_differ, 0);
	world_free(w);
}

static void test_each_message_may_be_lost(void **state)
{
	for (unsigned lose = 1; lose < 1u << 7; lose++) {
		struct world *w = world_new(lose);

		run(w, true);
		assert_true(rp_live_cm_over(&w->l[0]) && rp_live_cm_over(&w->l[1]));
		assert_true(w->k[0].host.start != RWY_NEVER && w->k[1].host.start != RWY_NEVER);
		world_free(w);
	}
}

static void test_another_message_is_found(void **state)
{
	struct world *w = world_new(0);
	struct roce_pkt pkt;

	(void)rp_live_cm_poll(&w->l[0], false, w->now);
	assert_int_equal(w->n, 1);
	assert_int_equal(roce_parse(w->sent[0].bytes, w->sent[0].len, &pkt), ROCE_PARSE_OK);
	w->sent[0].bytes[pkt.payload - pkt.ip + 24 + 200] ^= 1; /* its private data */
	rp_live_cm_recv(&w->l[1], &pkt, w->now);
	assert_int_equal(w->l[1].cm_differ, 1);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_set_up_and_ended),
	    cmocka_unit_test(test_each_message_may_be_lost),
	    cmocka_unit_test(test_another_message_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
