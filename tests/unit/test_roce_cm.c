/* SPDX-License-Identifier: Apache-2.0 */
/* roce/cm.h: messages built by hand, and the tracker under order, duplicates, replays, limits, reuse. */
#include "tests/lib/roce_cm_pkt.h"

#include "roce/cm.h"
#include "roce/wire.h"

#define T0 (1000 * RWY_SEC)

/* --- parsing ------------------------------------------------------------------------------------ */

static int parse_mad(const uint8_t *mad, struct roce_cm_msg *msg)
{
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t len = cp_packet(b, mad, false, 256);

	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	return roce_cm_parse(&p, msg);
}

static const struct cp_req req0 = {.tid = 0x1122334455667788,
    .comm = 0xa0a0a0a1,
    .qpn = 0x0000aa,
    .psn = 0x123456,
    .mtu = 3,
    .retry = 7,
    .rnr = 6,
    .timeout = 19,
    .resp_res = 128,
    .init_depth = 16,
    .local_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
    .remote_gid = {[10] = 0xff, 0xff, 10, 0, 0, 2}};
static const struct cp_rep rep0 = {.tid = 0x1122334455667788,
    .comm = 0xb0b0b0b2,
    .remote = 0xa0a0a0a1,
    .qpn = 0x0000bb,
    .psn = 0x654321,
    .rnr = 5,
    .resp_res = 8,
    .init_depth = 4};

static void test_parse_req(void **state)
{
	struct cp_req r = req0;
	struct roce_cm_msg m;
	uint8_t mad[256];

	cp_make_req(mad, &r);
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REQ);
	assert_int_equal(m.tid, 0x1122334455667788);
	assert_int_equal(m.local_comm_id, 0xa0a0a0a1);
	assert_int_equal(m.remote_comm_id, 0);
	assert_int_equal(m.service_id, 0x0000000001061b58);
	assert_int_equal(m.qpn, 0xaa);
	assert_int_equal(m.starting_psn, 0x123456);
	assert_int_equal(m.pkey, 0xffff);
	assert_int_equal(m.path_mtu, 1024);
	assert_int_equal(m.transport, ROCE_RC);
	assert_int_equal(m.retry_count, 7);
	assert_int_equal(m.rnr_retry, 6);
	assert_int_equal(m.local_ack_timeout, 19);
	assert_int_equal(m.responder_resources, 128);
	assert_int_equal(m.initiator_depth, 16);
	assert_int_equal(m.flow_label, 0x54321);
	assert_true(m.flow_control && m.srq);
	assert_memory_equal(m.local_gid.b, r.local_gid, 16);
	assert_memory_equal(m.remote_gid.b, r.remote_gid, 16);

	for (uint8_t code = 0; code < 16; code++) {
		r.mtu = code;
		cp_make_req(mad, &r);
		assert_int_equal(parse_mad(mad, &m), 0);
		assert_int_equal(m.path_mtu, code >= 1 && code <= 5 ? 128 << code : 0);
	}
	for (uint8_t t = 0; t < 4; t++) {
		static const uint8_t want[] = {ROCE_RC, ROCE_UC, ROCE_RD, ROCE_XRC};

		r.transport = t;
		r.ext_transport = t == 3;
		cp_make_req(mad, &r);
		assert_int_equal(parse_mad(mad, &m), 0);
		assert_int_equal(m.transport, want[t]);
	}
}

static void test_parse_others(void **state)
{
	struct roce_cm_msg m;
	uint8_t mad[256];

	cp_make_rep(mad, &rep0);
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REP);
	assert_int_equal(m.local_comm_id, 0xb0b0b0b2);
	assert_int_equal(m.remote_comm_id, 0xa0a0a0a1);
	assert_int_equal(m.qpn, 0xbb);
	assert_int_equal(m.starting_psn, 0x654321);
	assert_int_equal(m.rnr_retry, 5);
	assert_int_equal(m.responder_resources, 8);
	assert_int_equal(m.initiator_depth, 4);
	assert_int_equal(m.ack_delay, 15);
	assert_true(m.flow_control && m.srq);

	cp_make_ids(mad, 0x14, 7, 1, 2);
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_RTU);
	assert_int_equal(m.local_comm_id, 1);
	assert_int_equal(m.remote_comm_id, 2);
	assert_int_equal(m.qpn, 0);

	cp_make_rej(mad, 7, 3, 4, 1, 28);
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REJ);
	assert_int_equal(m.msg, 1);
	assert_int_equal(m.rej_reason, 28);

	cp_make_ids(mad, 0x11, 7, 3, 4);
	mad[32] = 0x40;
	mad[33] = 25 << 3;
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_MRA);
	assert_int_equal(m.msg, 1);
	assert_int_equal(m.service_timeout, 25);

	cp_make_dreq(mad, 7, 3, 4, 0xabcdef);
	assert_int_equal(parse_mad(mad, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_DREQ);
	assert_int_equal(m.qpn, 0xabcdef);
}

/* SIDR, LAP, and future attributes: carried, not refused. */
static void test_unknown_attributes(void **state)
{
	struct roce_cm_msg m;
	uint8_t mad[256];

	for (uint32_t attr = 0; attr < 0x10000; attr += attr < 0x40 ? 1 : 251) {
		cp_make_ids(mad, (uint16_t)attr, 9, 1, 2);
		assert_int_equal(parse_mad(mad, &m), 0);
		assert_int_equal(m.attr, attr);
	}
}

static void test_not_cm(void **state)
{
	static const struct {
		uint16_t at; /* from the BTH */
		uint8_t value;
	} other[] = {
	    {7, 2},         /* destination QP 2 */
	    {12, 0},        /* Q_Key */
	    {19, 2},        /* source QP 2 */
	    {20 + 0, 2},    /* base version */
	    {20 + 1, 0x03}, /* class: subnet administration */
	    {20 + 2, 1},    /* class version */
	    {20 + 3, 0x81}, /* method: GetResp */
	};
	uint8_t b[TP_MAX], mad[256];
	struct roce_cm_msg m;
	struct roce_pkt p;
	uint32_t len;

	cp_make_req(mad, &req0);
	for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		len = cp_packet(b, mad, i & 1, 256);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		p.bth[other[i].at] = other[i].value;
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(roce_cm_parse(&p, &m), RWY_ENOENT);
	}
	/* Every length but a MAD's. */
	for (uint32_t n = 0; n < 256; n++) {
		len = cp_packet(b, mad, false, n & ~3u);
		assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
		assert_int_equal(roce_cm_parse(&p, &m), RWY_EMALFORMED);
	}
	/* The right number of bytes, but some of them are pad. */
	len = cp_packet(b, mad, false, 256);
	b[28 + 1] |= 0x30;
	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	assert_int_equal(roce_cm_parse(&p, &m), RWY_EMALFORMED);
}

/* --- tracking ----------------------------------------------------------------------------------- */

static const struct rwy_ip ip_a = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct rwy_ip ip_b = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};

static struct roce_cm_tab *new_tab(uint32_t capacity, uint32_t half)
{
	struct roce_cm_cfg cfg;
	struct roce_cm_tab *t;

	roce_cm_cfg_default(&cfg);
	cfg.capacity = capacity;
	cfg.half_open_max = half;
	cfg.seed = 0x5eed;
	assert_int_equal(roce_cm_tab_new(&t, &cfg), 0);
	return t;
}

static enum roce_cm_event_kind feed(
    struct roce_cm_tab *t, const uint8_t *mad, bool from_a, struct roce_cm_event *ev, rwy_time now)
{
	struct roce_cm_msg m;

	assert_int_equal(parse_mad(mad, &m), 0);
	roce_cm_track(t, &m, from_a ? &ip_a : &ip_b, from_a ? &ip_b : &ip_a, ev, now);
	return ev->kind;
}

static enum roce_cm_event_kind feed_req(
    struct roce_cm_tab *t, const struct cp_req *r, struct roce_cm_event *ev, rwy_time now)
{
	uint8_t mad[256];

	cp_make_req(mad, r);
	return feed(t, mad, true, ev, now);
}

static enum roce_cm_event_kind feed_rep(
    struct roce_cm_tab *t, const struct cp_rep *r, struct roce_cm_event *ev, rwy_time now)
{
	uint8_t mad[256];

	cp_make_rep(mad, r);
	return feed(t, mad, false, ev, now);
}

static struct roce_cm_stats stats(const struct roce_cm_tab *t)
{
	struct roce_cm_stats s;

	roce_cm_stats_get(t, &s);
	return s;
}

/* A connected table: req0 and rep0. */
static struct roce_cm_tab *connected(struct roce_cm_event *ev)
{
	struct roce_cm_tab *t = new_tab(16, 8);

	assert_int_equal(feed_req(t, &req0, ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, ev, T0), ROCE_CM_ESTABLISHED);
	return t;
}

static void test_established(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	const struct roce_cm_conn *c = &ev.conn;

	assert_true(rwy_ip_eq(&c->a.ip, &ip_a));
	assert_true(rwy_ip_eq(&c->b.ip, &ip_b));
	assert_int_equal(c->a.qpn, 0xaa);
	assert_int_equal(c->b.qpn, 0xbb);
	/* IBA 12.7.31: each side starts at the PSN that the other asked for. So does Soft-RoCE on the wire.
	 */
	assert_int_equal(c->a.psn, rep0.psn);
	assert_int_equal(c->b.psn, req0.psn);
	/* IBA 12.7.38: and retries RNR NAKs as often as the other asked for. */
	assert_int_equal(c->a.rnr_retry, rep0.rnr);
	assert_int_equal(c->b.rnr_retry, req0.rnr);
	assert_int_equal(c->a.responder_resources, 128);
	assert_int_equal(c->a.initiator_depth, 16);
	assert_int_equal(c->b.responder_resources, 8);
	assert_int_equal(c->b.initiator_depth, 4);
	assert_int_equal(c->path_mtu, 1024);
	assert_int_equal(c->retry_count, 7);
	assert_int_equal(c->ack_timeout, 19);
	assert_int_equal(c->b.ack_timeout, 19);
	assert_int_equal(c->a.ack_timeout, 20);
	assert_int_equal(c->transport, ROCE_RC);
	assert_int_equal(c->comm_a, req0.comm);
	assert_int_equal(c->comm_b, rep0.comm);
	assert_int_equal(ev.superseded_count, 0);
	assert_non_null(roce_cm_find(t, &ip_a, 0xaa));
	assert_non_null(roce_cm_find(t, &ip_b, 0xbb));
	assert_null(roce_cm_find(t, &ip_b, 0xaa));
	assert_int_equal(stats(t).established_now, 1);
	assert_int_equal(stats(t).half_open_now, 0);
	roce_cm_tab_free(t);
	roce_cm_tab_free(NULL);
}

/* The REP's ACK delay is 15. A host without a timer waits for ever. */
static void test_timeouts(void **state)
{
	static const struct {
		uint8_t req, a;
	} c[] = {{0, 0}, {1, 16}, {14, 16}, {15, 16}, {16, 17}, {30, 31}, {31, 31}};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct roce_cm_tab *t = new_tab(16, 8);
		struct cp_req r = req0;
		struct roce_cm_event ev;

		r.timeout = c[i].req;
		feed_req(t, &r, &ev, T0);
		assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_ESTABLISHED);
		assert_int_equal(ev.conn.b.ack_timeout, c[i].req);
		assert_int_equal(ev.conn.a.ack_timeout, c[i].a);
		roce_cm_tab_free(t);
	}
}

static void test_close(void **state)
{
	/* The sender of each. */
	static const struct {
		uint16_t attr;
		bool from_a;
	} c[] = {{0x15, true}, {0x15, false}, {0x16, true}, {0x16, false}, {0x12, true}, {0x12, false}};

	for (unsigned i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct roce_cm_event ev;
		struct roce_cm_tab *t = connected(&ev);
		uint32_t local = c[i].from_a ? req0.comm : rep0.comm,
		         remote = c[i].from_a ? rep0.comm : req0.comm;
		uint8_t mad[256];

		cp_make_ids(mad, c[i].attr, 99, local, remote);
		if (c[i].attr == 0x15)
			cp_make_dreq(mad, 99, local, remote, c[i].from_a ? rep0.qpn : req0.qpn);
		assert_int_equal(feed(t, mad, c[i].from_a, &ev, T0 + 1), ROCE_CM_CLOSED);
		assert_int_equal(ev.conn.a.qpn, 0xaa);
		assert_int_equal(ev.conn.b.qpn, 0xbb);
		assert_true(rwy_ip_eq(&ev.conn.a.ip, &ip_a));
		assert_true(rwy_ip_eq(&ev.conn.b.ip, &ip_b));
		assert_null(roce_cm_find(t, &ip_a, 0xaa));
		/* The same again, and its answer: reported once. */
		assert_int_equal(feed(t, mad, c[i].from_a, &ev, T0 + 2), ROCE_CM_NONE);
		cp_make_ids(mad, 0x16, 99, remote, local);
		assert_int_equal(feed(t, mad, !c[i].from_a, &ev, T0 + 3), ROCE_CM_NONE);
		/* A replay of the whole set-up does not revive it. */
		assert_int_equal(feed_req(t, &req0, &ev, T0 + 4), ROCE_CM_NONE);
		assert_int_equal(feed_rep(t, &rep0, &ev, T0 + 5), ROCE_CM_NONE);
		assert_int_equal(stats(t).closed, 1);
		assert_int_equal(stats(t).established_now, 0);
		roce_cm_tab_free(t);
	}
}

static void test_close_needs_the_right_names(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	uint8_t mad[256];

	cp_make_dreq(mad, 9, req0.comm, rep0.comm, 0xcc); /* wrong QPN */
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_NONE);
	cp_make_dreq(mad, 9, req0.comm, rep0.comm + 1, rep0.qpn); /* wrong ID of b */
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_NONE);
	cp_make_dreq(mad, 9, req0.comm, rep0.comm, rep0.qpn); /* wrong direction */
	assert_int_equal(feed(t, mad, false, &ev, T0), ROCE_CM_NONE);
	cp_make_rej(mad, req0.tid, 0, req0.comm, 0, 8); /* a late rejection of the REQ */
	assert_int_equal(feed(t, mad, false, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).mismatch, 3);
	assert_int_equal(stats(t).unknown, 1);
	assert_int_equal(stats(t).established_now, 1);
	/* a gave up before the REP arrived there: it cannot name b */
	cp_make_rej(mad, req0.tid, req0.comm, 0, 0, 4);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_CLOSED);
	roce_cm_tab_free(t);
}

static void test_duplicates(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);
	uint8_t mad[256];

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(feed_req(t, &req0, &ev, T0 + i), ROCE_CM_NONE);
	assert_int_equal(stats(t).half_open_now, 1);
	cp_make_ids(mad, 0x11, req0.tid, 0, req0.comm); /* MRA */
	assert_int_equal(feed(t, mad, false, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_ESTABLISHED);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
		assert_int_equal(feed_req(t, &req0, &ev, T0), ROCE_CM_NONE);
		cp_make_ids(mad, 0x14, req0.tid, req0.comm, rep0.comm); /* RTU */
		assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_NONE);
	}
	/* Another REP under the same transaction contradicts the first. */
	struct cp_rep other = rep0;

	other.comm++;
	assert_int_equal(feed_rep(t, &other, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).mismatch, 1);
	assert_int_equal(stats(t).established, 1);
	roce_cm_tab_free(t);
}

static void test_rep_before_req(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);

	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).half_open_now, 1);
	assert_int_equal(feed_req(t, &req0, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.a.psn, rep0.psn);
	assert_int_equal(ev.conn.b.psn, req0.psn);
	assert_int_equal(ev.conn.b.qpn, 0xbb);
	assert_true(rwy_ip_eq(&ev.conn.b.ip, &ip_b));
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
	roce_cm_tab_free(t);
}

static void test_rejected(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);
	uint8_t mad[256];

	feed_req(t, &req0, &ev, T0);
	cp_make_rej(mad, req0.tid, 0, req0.comm, 0, 28);
	/* no connection was established */
	assert_int_equal(feed(t, mad, false, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).rejected, 1);
	assert_int_equal(feed_req(t, &req0, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).established, 0);
	/* Another attempt under the same communication ID is a new connection. */
	struct cp_req again = req0;
	struct cp_rep answer = rep0;

	again.tid++;
	again.psn = 5;
	answer.tid++;
	assert_int_equal(feed_req(t, &again, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &answer, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.b.psn, 5);
	roce_cm_tab_free(t);
}

/* The QPN of a is used again with another peer QPN; b's likewise; without any DREQ. */
static void test_reuse_supersedes(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	struct cp_req q = req0;
	struct cp_rep p = rep0;

	q.tid = p.tid = 2; /* a second connection, QPs 0xac and 0xbd */
	q.comm = p.remote = 0xa2;
	p.comm = 0xb2;
	q.qpn = 0xac;
	p.qpn = 0xbd;
	feed_req(t, &q, &ev, T0);
	assert_int_equal(feed_rep(t, &p, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 0);

	q.tid = p.tid = 3; /* a third: a's QP of the first, b's of the second */
	q.comm = p.remote = 0xa3;
	p.comm = 0xb3;
	q.qpn = 0xaa;
	p.qpn = 0xbd;
	q.psn = 77;
	feed_req(t, &q, &ev, T0);
	assert_non_null(roce_cm_find(t, &ip_a, 0xaa)); /* a REQ alone ends nothing */
	assert_int_equal(feed_rep(t, &p, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 2);
	assert_int_equal(ev.superseded[0].comm_a, req0.comm);
	assert_int_equal(ev.superseded[1].comm_a, 0xa2);
	assert_int_equal(ev.conn.b.psn, 77);
	assert_int_equal(stats(t).established_now, 1);
	assert_null(roce_cm_find(t, &ip_b, 0xbb));
	assert_null(roce_cm_find(t, &ip_a, 0xac));

	/* A late DREQ of the first must not close the third. */
	uint8_t mad[256];

	cp_make_dreq(mad, 50, req0.comm, rep0.comm, rep0.qpn);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_NONE);
	assert_non_null(roce_cm_find(t, &ip_a, 0xaa));
	roce_cm_tab_free(t);
}

/* A host restarts and by chance uses the same communication ID and QPN again. */
static void test_same_comm_id_again(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	struct cp_req q = req0;
	struct cp_rep p = rep0;

	q.tid = p.tid = 42;
	q.psn = 1;
	p.comm++;
	p.psn = 2;
	assert_int_equal(feed_req(t, &q, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE); /* an old REP replayed */
	assert_int_equal(feed_rep(t, &p, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].b.psn, req0.psn);
	assert_int_equal(ev.conn.b.psn, 1);
	assert_int_equal(ev.conn.a.psn, 2);
	assert_int_equal(roce_cm_find(t, &ip_a, 0xaa)->b.psn, 1);
	roce_cm_tab_free(t);
}

/* The same IDs with other QPNs: the old connection can no longer be named, so it is removed. Also
 * if b was the active side before. */
static void test_comm_id_names_one_connection(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	struct cp_req q = req0;
	struct cp_rep p = rep0;
	uint8_t mad[256];

	q.tid = p.tid = 42;
	q.qpn = 0xa9;
	p.qpn = 0xb9;
	assert_int_equal(feed_req(t, &q, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &p, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].a.qpn, req0.qpn);

	q.tid = p.tid = 43; /* b connects to a, and the IDs are the same two */
	q.comm = p.remote = rep0.comm;
	p.comm = req0.comm;
	memcpy(q.local_gid, req0.remote_gid, 16);
	memcpy(q.remote_gid, req0.local_gid, 16);
	q.qpn = 0xb7;
	p.qpn = 0xa7;
	cp_make_req(mad, &q);
	assert_int_equal(feed(t, mad, false, &ev, T0), ROCE_CM_NONE);
	cp_make_rep(mad, &p);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].a.qpn, 0xa9);
	assert_true(rwy_ip_eq(&ev.conn.a.ip, &ip_b));

	cp_make_dreq(mad, 9, req0.comm, rep0.comm, 0xb7);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_CLOSED);
	assert_int_equal(ev.conn.a.qpn, 0xb7);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_NONE);
	roce_cm_tab_free(t);
}

static void test_gids(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);
	struct cp_req q = req0;

	q.local_gid[15] = 99; /* it speaks for another host */
	assert_int_equal(feed_req(t, &q, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_NONE);
	q = req0;
	q.remote_gid[15] = 99;
	assert_int_equal(feed_req(t, &q, &ev, T0), ROCE_CM_NONE);
	assert_int_equal(stats(t).foreign, 2);
	assert_int_equal(stats(t).established_now, 0);
	roce_cm_tab_free(t);

	t = new_tab(16, 8);
	memset(q.local_gid, 0, 16);
	memset(q.remote_gid, 0, 16);
	feed_req(t, &q, &ev, T0);
	assert_int_equal(feed_rep(t, &rep0, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_true(rwy_ip_eq(&ev.conn.a.ip, &ip_a));
	assert_int_equal(stats(t).foreign, 0);
	roce_cm_tab_free(t);
}

static void test_xrc_target(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);
	struct cp_req q = req0;
	struct cp_rep p = rep0;

	q.transport = 3;
	q.ext_transport = 1;
	p.eecn = 0xeec;
	feed_req(t, &q, &ev, T0);
	assert_int_equal(feed_rep(t, &p, &ev, T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.transport, ROCE_XRC);
	assert_int_equal(ev.conn.b.qpn, 0xeec);
	roce_cm_tab_free(t);
}

/* The oldest half-open one goes; established ones stay. */
static void test_half_open_limit(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = connected(&ev);
	struct cp_req q = req0;
	struct cp_rep p = rep0;

	for (uint32_t i = 0; i < 100; i++) {
		q.tid = 1000 + i;
		q.comm = 1000 + i;
		q.qpn = 1000 + i;
		assert_int_equal(feed_req(t, &q, &ev, T0 + i), ROCE_CM_NONE);
		assert_true(stats(t).half_open_now <= 8);
	}
	assert_int_equal(stats(t).evicted_half_open, 92);
	assert_int_equal(stats(t).evicted_established, 0);
	assert_non_null(roce_cm_find(t, &ip_a, 0xaa));
	for (uint32_t i = 0; i < 100; i++) {
		p.tid = 1000 + i;
		p.remote = 1000 + i;
		p.comm = 5000 + i;
		p.qpn = 5000 + i;
		if (i >= 92)
			assert_int_equal(feed_rep(t, &p, &ev, T0 + 200), ROCE_CM_ESTABLISHED);
	}
	assert_int_equal(stats(t).established_now, 9);
	roce_cm_tab_free(t);
}

static void test_no_room(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(4, 4);
	struct cp_req q = req0;
	struct cp_rep p = rep0;

	for (uint32_t i = 1; i <= 10; i++) {
		q.tid = p.tid = q.comm = p.remote = q.qpn = i;
		p.comm = p.qpn = 100 + i;
		feed_req(t, &q, &ev, T0 + i);
		assert_int_equal(feed_rep(t, &p, &ev, T0 + i), ROCE_CM_ESTABLISHED);
	}
	assert_int_equal(stats(t).established_now, 4);
	assert_int_equal(stats(t).evicted_established, 6);
	assert_null(roce_cm_find(t, &ip_a, 6));
	assert_non_null(roce_cm_find(t, &ip_a, 7));
	roce_cm_tab_free(t);
}

static void test_expiry(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = new_tab(16, 8);
	uint8_t mad[256];

	feed_req(t, &req0, &ev, T0);
	feed_req(t, &req0, &ev, T0 + 60 * RWY_SEC); /* a retry keeps it */
	roce_cm_expire(t, T0 + 130 * RWY_SEC - 1);
	assert_int_equal(stats(t).half_open_now, 1);
	roce_cm_expire(t, T0 + 130 * RWY_SEC);
	assert_int_equal(stats(t).half_open_now, 0);
	assert_int_equal(stats(t).expired, 1);
	roce_cm_tab_free(t);

	t = connected(&ev);
	roce_cm_expire(t, T0 + 1000000 * RWY_SEC); /* established ones do not age by default */
	assert_int_equal(stats(t).expired, 0);
	assert_non_null(roce_cm_find(t, &ip_a, 0xaa));
	cp_make_dreq(mad, 9, req0.comm, rep0.comm, rep0.qpn);
	assert_int_equal(feed(t, mad, true, &ev, T0), ROCE_CM_CLOSED);
	roce_cm_expire(t, T0 + 60 * RWY_SEC - 1);
	assert_int_equal(stats(t).closed_now, 1);
	roce_cm_expire(t, T0 + 60 * RWY_SEC);
	assert_int_equal(stats(t).closed_now, 0);
	assert_int_equal(stats(t).expired, 0);
	roce_cm_tab_free(t);
}

static void test_bad_cfg(void **state)
{
	struct roce_cm_cfg cfg;
	struct roce_cm_tab *t;

	roce_cm_cfg_default(&cfg);
	cfg.capacity = 0;
	assert_int_equal(roce_cm_tab_new(&t, &cfg), RWY_EINVAL);
	cfg.capacity = 4;
	cfg.half_open_max = 5;
	assert_int_equal(roce_cm_tab_new(&t, &cfg), RWY_EINVAL);
	cfg.half_open_max = 0;
	assert_int_equal(roce_cm_tab_new(&t, &cfg), RWY_EINVAL);
	cfg.capacity = cfg.half_open_max = 1;
	assert_int_equal(roce_cm_tab_new(&t, &cfg), 0);
	roce_cm_tab_free(t);
}

/* Random messages over few names: the counts add up, each connection opens before it closes, a QP has one
 * connection at most. */
static void test_random_walk(void **state)
{
	struct roce_cm_tab *t = new_tab(12, 6);
	uint32_t s = 31337;
	int64_t live = 0;
	rwy_time now = T0;

	for (unsigned n = 0; n < 200000; n++) {
		struct roce_cm_msg m = {.attr = (uint16_t)(0x10 + tp_rand(&s) % 7)};
		bool from_a = m.attr == ROCE_CM_REQ || (m.attr != ROCE_CM_REP && (tp_rand(&s) & 1));
		uint32_t a = 1 + tp_rand(&s) % 6, b = 100 + tp_rand(&s) % 3, k = tp_rand(&s) % 2;
		struct roce_cm_stats before = stats(t), after;
		struct roce_cm_event ev;

		m.tid = a + 10 * k;
		m.local_comm_id = from_a ? a : b;
		m.remote_comm_id = m.attr == ROCE_CM_REQ ? 0 : from_a ? b : a;
		m.qpn = m.attr == ROCE_CM_DREQ ? (from_a ? b : a) : m.local_comm_id;
		m.starting_psn = k;
		now += tp_rand(&s) % (RWY_SEC / 4);
		roce_cm_track(t, &m, from_a ? &ip_a : &ip_b, from_a ? &ip_b : &ip_a, &ev, now);
		after = stats(t);
		assert_true(after.half_open_now <= 6);
		assert_true(after.half_open_now + after.established_now + after.closed_now <= 12);
		live += ev.kind == ROCE_CM_ESTABLISHED;
		live -= ev.kind == ROCE_CM_CLOSED;
		live -= ev.superseded_count;
		live -= (int64_t)(after.evicted_established - before.evicted_established);
		assert_int_equal(live, after.established_now);
		if (ev.kind == ROCE_CM_ESTABLISHED) {
			assert_ptr_equal(
			    roce_cm_find(t, &ip_a, ev.conn.a.qpn), roce_cm_find(t, &ip_b, ev.conn.b.qpn));
			assert_non_null(roce_cm_find(t, &ip_a, ev.conn.a.qpn));
		} else if (ev.kind == ROCE_CM_CLOSED) {
			assert_null(roce_cm_find(t, &ip_a, ev.conn.a.qpn));
			assert_null(roce_cm_find(t, &ip_b, ev.conn.b.qpn));
		}
	}
	assert_true(stats(t).established > 1000 && stats(t).closed > 1000);
	roce_cm_tab_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse_req),
	    cmocka_unit_test(test_parse_others),
	    cmocka_unit_test(test_unknown_attributes),
	    cmocka_unit_test(test_not_cm),
	    cmocka_unit_test(test_established),
	    cmocka_unit_test(test_timeouts),
	    cmocka_unit_test(test_close),
	    cmocka_unit_test(test_close_needs_the_right_names),
	    cmocka_unit_test(test_duplicates),
	    cmocka_unit_test(test_rep_before_req),
	    cmocka_unit_test(test_rejected),
	    cmocka_unit_test(test_reuse_supersedes),
	    cmocka_unit_test(test_same_comm_id_again),
	    cmocka_unit_test(test_comm_id_names_one_connection),
	    cmocka_unit_test(test_gids),
	    cmocka_unit_test(test_xrc_target),
	    cmocka_unit_test(test_half_open_limit),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_expiry),
	    cmocka_unit_test(test_bad_cfg),
	    cmocka_unit_test(test_random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
