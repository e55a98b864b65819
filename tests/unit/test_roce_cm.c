/* SPDX-License-Identifier: Apache-2.0 */
/* roce/cm.h: the tracker follows one connection from set-up to close, under order, duplicates and
 * replays. test_roce_cm_parse.c has the messages, test_roce_cm_table.c many connections. */
#include "tests/lib/roce_cm_track.h"

static void test_established(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	const struct roce_cm_conn *c = &ev.conn;

	assert_true(rwy_ip_eq(&c->a.ip, &ct_a));
	assert_true(rwy_ip_eq(&c->b.ip, &ct_b));
	assert_int_equal(c->a.qpn, 0xaa);
	assert_int_equal(c->b.qpn, 0xbb);
	/* IBA 12.7.31: each side starts at the PSN that the other asked for. So does Soft-RoCE on
	 * the wire. */
	assert_int_equal(c->a.psn, ct_rep.psn);
	assert_int_equal(c->b.psn, ct_req.psn);
	/* IBA 12.7.38: and retries RNR NAKs as often as the other asked for. */
	assert_int_equal(c->a.rnr_retry, ct_rep.rnr);
	assert_int_equal(c->b.rnr_retry, ct_req.rnr);
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
	assert_int_equal(c->comm_a, ct_req.comm);
	assert_int_equal(c->comm_b, ct_rep.comm);
	assert_int_equal(ev.superseded_count, 0);
	assert_non_null(roce_cm_find(t, &ct_a, 0xaa));
	assert_non_null(roce_cm_find(t, &ct_b, 0xbb));
	assert_null(roce_cm_find(t, &ct_b, 0xaa));
	assert_int_equal(ct_stats(t).established_now, 1);
	assert_int_equal(ct_stats(t).half_open_now, 0);
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
		struct roce_cm_tab *t = ct_new(16, 8);
		struct cp_req r = ct_req;
		struct roce_cm_event ev;

		r.timeout = c[i].req;
		ct_feed_req(t, &r, &ev, CT_T0);
		assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_ESTABLISHED);
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
		struct roce_cm_tab *t = ct_connected(&ev);
		uint32_t local = c[i].from_a ? ct_req.comm : ct_rep.comm,
		         remote = c[i].from_a ? ct_rep.comm : ct_req.comm;
		uint8_t mad[256];

		cp_make_ids(mad, c[i].attr, 99, local, remote);
		if (c[i].attr == 0x15)
			cp_make_dreq(mad, 99, local, remote, c[i].from_a ? ct_rep.qpn : ct_req.qpn);
		assert_int_equal(ct_feed(t, mad, c[i].from_a, &ev, CT_T0 + 1), ROCE_CM_CLOSED);
		assert_int_equal(ev.conn.a.qpn, 0xaa);
		assert_int_equal(ev.conn.b.qpn, 0xbb);
		assert_true(rwy_ip_eq(&ev.conn.a.ip, &ct_a));
		assert_true(rwy_ip_eq(&ev.conn.b.ip, &ct_b));
		assert_null(roce_cm_find(t, &ct_a, 0xaa));
		/* The same again, and its answer: reported once. */
		assert_int_equal(ct_feed(t, mad, c[i].from_a, &ev, CT_T0 + 2), ROCE_CM_NONE);
		cp_make_ids(mad, 0x16, 99, remote, local);
		assert_int_equal(ct_feed(t, mad, !c[i].from_a, &ev, CT_T0 + 3), ROCE_CM_NONE);
		/* A replay of the whole set-up does not revive it. */
		assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0 + 4), ROCE_CM_NONE);
		assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0 + 5), ROCE_CM_NONE);
		assert_int_equal(ct_stats(t).closed, 1);
		assert_int_equal(ct_stats(t).established_now, 0);
		roce_cm_tab_free(t);
	}
}

static void test_close_needs_the_right_names(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	uint8_t mad[256];

	cp_make_dreq(mad, 9, ct_req.comm, ct_rep.comm, 0xcc); /* wrong QPN */
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_NONE);
	cp_make_dreq(mad, 9, ct_req.comm, ct_rep.comm + 1, ct_rep.qpn); /* wrong ID of b */
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_NONE);
	cp_make_dreq(mad, 9, ct_req.comm, ct_rep.comm, ct_rep.qpn); /* wrong direction */
	assert_int_equal(ct_feed(t, mad, false, &ev, CT_T0), ROCE_CM_NONE);
	cp_make_rej(mad, ct_req.tid, 0, ct_req.comm, 0, 8); /* a late rejection of the REQ */
	assert_int_equal(ct_feed(t, mad, false, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).mismatch, 3);
	assert_int_equal(ct_stats(t).unknown, 1);
	assert_int_equal(ct_stats(t).established_now, 1);
	/* a gave up before the REP arrived there: it cannot name b */
	cp_make_rej(mad, ct_req.tid, ct_req.comm, 0, 0, 4);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_CLOSED);
	roce_cm_tab_free(t);
}

static void test_duplicates(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);
	uint8_t mad[256];

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0 + i), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).half_open_now, 1);
	cp_make_ids(mad, 0x11, ct_req.tid, 0, ct_req.comm); /* MRA */
	assert_int_equal(ct_feed(t, mad, false, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
		assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_NONE);
		cp_make_ids(mad, 0x14, ct_req.tid, ct_req.comm, ct_rep.comm); /* RTU */
		assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_NONE);
	}
	/* Another REP under the same transaction contradicts the first. */
	struct cp_rep other = ct_rep;

	other.comm++;
	assert_int_equal(ct_feed_rep(t, &other, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).mismatch, 1);
	assert_int_equal(ct_stats(t).established, 1);
	roce_cm_tab_free(t);
}

static void test_rep_before_req(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);

	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).half_open_now, 1);
	assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.a.psn, ct_rep.psn);
	assert_int_equal(ev.conn.b.psn, ct_req.psn);
	assert_int_equal(ev.conn.b.qpn, 0xbb);
	assert_true(rwy_ip_eq(&ev.conn.b.ip, &ct_b));
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	roce_cm_tab_free(t);
}

/* There was no memory for the connection: the message that is dropped reports it when it comes again. */
static void test_not_taken(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);

	assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_NONE);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_ESTABLISHED);
		roce_cm_not_taken(t, &ev.conn, ROCE_CM_REP, CT_T0);
		assert_null(roce_cm_find(t, &ct_a, ct_req.qpn));
		assert_int_equal(ct_stats(t).half_open_now, 1);
		assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_NONE);
	}
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ct_stats(t).established, 1);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	roce_cm_tab_free(t);

	t = ct_new(16, 8); /* the REP came first */
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	roce_cm_not_taken(t, &ev.conn, ROCE_CM_REQ, CT_T0);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ct_stats(t).established, 1);
	roce_cm_tab_free(t);
}

static void test_rejected(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);
	uint8_t mad[256];

	ct_feed_req(t, &ct_req, &ev, CT_T0);
	cp_make_rej(mad, ct_req.tid, 0, ct_req.comm, 0, 28);
	/* no connection was established */
	assert_int_equal(ct_feed(t, mad, false, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).rejected, 1);
	assert_int_equal(ct_feed_req(t, &ct_req, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).established, 0);
	/* Another attempt under the same communication ID is a new connection. */
	struct cp_req again = ct_req;
	struct cp_rep answer = ct_rep;

	again.tid++;
	again.psn = 5;
	answer.tid++;
	assert_int_equal(ct_feed_req(t, &again, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &answer, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.b.psn, 5);
	roce_cm_tab_free(t);
}

static void test_gids(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);
	struct cp_req q = ct_req;

	q.local_gid[15] = 99; /* it speaks for another host */
	assert_int_equal(ct_feed_req(t, &q, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	q = ct_req;
	q.remote_gid[15] = 99;
	assert_int_equal(ct_feed_req(t, &q, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_stats(t).foreign, 2);
	assert_int_equal(ct_stats(t).established_now, 0);
	roce_cm_tab_free(t);

	t = ct_new(16, 8);
	memset(q.local_gid, 0, 16);
	memset(q.remote_gid, 0, 16);
	ct_feed_req(t, &q, &ev, CT_T0);
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_true(rwy_ip_eq(&ev.conn.a.ip, &ct_a));
	assert_int_equal(ct_stats(t).foreign, 0);
	roce_cm_tab_free(t);
}

static void test_xrc_target(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;

	q.transport = 3;
	q.ext_transport = 1;
	p.eecn = 0xeec;
	ct_feed_req(t, &q, &ev, CT_T0);
	assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.conn.transport, ROCE_XRC);
	assert_int_equal(ev.conn.b.qpn, 0xeec);
	roce_cm_tab_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_established),
	    cmocka_unit_test(test_timeouts),
	    cmocka_unit_test(test_close),
	    cmocka_unit_test(test_close_needs_the_right_names),
	    cmocka_unit_test(test_duplicates),
	    cmocka_unit_test(test_rep_before_req),
	    cmocka_unit_test(test_not_taken),
	    cmocka_unit_test(test_rejected),
	    cmocka_unit_test(test_gids),
	    cmocka_unit_test(test_xrc_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
