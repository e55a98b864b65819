/* SPDX-License-Identifier: Apache-2.0 */
/* roce/cm.h: the table of connections, under reuse of names, limits, age and random messages. */
#include "tests/lib/roce_cm_track.h"

/* The QPN of a is used again with another peer QPN; b's likewise; without any DREQ. */
static void test_reuse_supersedes(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;

	q.tid = p.tid = 2; /* a second connection, QPs 0xac and 0xbd */
	q.comm = p.remote = 0xa2;
	p.comm = 0xb2;
	q.qpn = 0xac;
	p.qpn = 0xbd;
	ct_feed_req(t, &q, &ev, CT_T0);
	assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 0);

	q.tid = p.tid = 3; /* a third: a's QP of the first, b's of the second */
	q.comm = p.remote = 0xa3;
	p.comm = 0xb3;
	q.qpn = 0xaa;
	p.qpn = 0xbd;
	q.psn = 77;
	ct_feed_req(t, &q, &ev, CT_T0);
	assert_non_null(roce_cm_find(t, &ct_a, 0xaa)); /* a REQ alone ends nothing */
	assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 2);
	assert_int_equal(ev.superseded[0].comm_a, ct_req.comm);
	assert_int_equal(ev.superseded[1].comm_a, 0xa2);
	assert_int_equal(ev.conn.b.psn, 77);
	assert_int_equal(ct_stats(t).established_now, 1);
	assert_null(roce_cm_find(t, &ct_b, 0xbb));
	assert_null(roce_cm_find(t, &ct_a, 0xac));

	/* A late DREQ of the first must not close the third. */
	uint8_t mad[256];

	cp_make_dreq(mad, 50, ct_req.comm, ct_rep.comm, ct_rep.qpn);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_NONE);
	assert_non_null(roce_cm_find(t, &ct_a, 0xaa));
	roce_cm_tab_free(t);
}

/* A host restarts and by chance uses the same communication ID and QPN again. */
static void test_same_comm_id_again(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;

	q.tid = p.tid = 42;
	q.psn = 1;
	p.comm++;
	p.psn = 2;
	assert_int_equal(ct_feed_req(t, &q, &ev, CT_T0), ROCE_CM_NONE);
	/* an old REP replayed */
	assert_int_equal(ct_feed_rep(t, &ct_rep, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].b.psn, ct_req.psn);
	assert_int_equal(ev.conn.b.psn, 1);
	assert_int_equal(ev.conn.a.psn, 2);
	assert_int_equal(roce_cm_find(t, &ct_a, 0xaa)->b.psn, 1);
	roce_cm_tab_free(t);
}

/* The same IDs with other QPNs: the old connection can no longer be named, so it is removed. Also
 * if b was the active side before. */
static void test_comm_id_names_one_connection(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;
	uint8_t mad[256];

	q.tid = p.tid = 42;
	q.qpn = 0xa9;
	p.qpn = 0xb9;
	assert_int_equal(ct_feed_req(t, &q, &ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].a.qpn, ct_req.qpn);

	q.tid = p.tid = 43; /* b connects to a, and the IDs are the same two */
	q.comm = p.remote = ct_rep.comm;
	p.comm = ct_req.comm;
	memcpy(q.local_gid, ct_req.remote_gid, 16);
	memcpy(q.remote_gid, ct_req.local_gid, 16);
	q.qpn = 0xb7;
	p.qpn = 0xa7;
	cp_make_req(mad, &q);
	assert_int_equal(ct_feed(t, mad, false, &ev, CT_T0), ROCE_CM_NONE);
	cp_make_rep(mad, &p);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_ESTABLISHED);
	assert_int_equal(ev.superseded_count, 1);
	assert_int_equal(ev.superseded[0].a.qpn, 0xa9);
	assert_true(rwy_ip_eq(&ev.conn.a.ip, &ct_b));

	cp_make_dreq(mad, 9, ct_req.comm, ct_rep.comm, 0xb7);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_CLOSED);
	assert_int_equal(ev.conn.a.qpn, 0xb7);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_NONE);
	roce_cm_tab_free(t);
}

/* The oldest half-open one goes; established ones stay. */
static void test_half_open_limit(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_connected(&ev);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;

	for (uint32_t i = 0; i < 100; i++) {
		q.tid = 1000 + i;
		q.comm = 1000 + i;
		q.qpn = 1000 + i;
		assert_int_equal(ct_feed_req(t, &q, &ev, CT_T0 + i), ROCE_CM_NONE);
		assert_true(ct_stats(t).half_open_now <= 8);
	}
	assert_int_equal(ct_stats(t).evicted_half_open, 92);
	assert_int_equal(ct_stats(t).evicted_established, 0);
	assert_non_null(roce_cm_find(t, &ct_a, 0xaa));
	for (uint32_t i = 0; i < 100; i++) {
		p.tid = 1000 + i;
		p.remote = 1000 + i;
		p.comm = 5000 + i;
		p.qpn = 5000 + i;
		if (i >= 92)
			assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0 + 200), ROCE_CM_ESTABLISHED);
	}
	assert_int_equal(ct_stats(t).established_now, 9);
	roce_cm_tab_free(t);
}

static void test_no_room(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(4, 4);
	struct cp_req q = ct_req;
	struct cp_rep p = ct_rep;

	for (uint32_t i = 1; i <= 10; i++) {
		q.tid = p.tid = q.comm = p.remote = q.qpn = i;
		p.comm = p.qpn = 100 + i;
		ct_feed_req(t, &q, &ev, CT_T0 + i);
		assert_int_equal(ct_feed_rep(t, &p, &ev, CT_T0 + i), ROCE_CM_ESTABLISHED);
	}
	assert_int_equal(ct_stats(t).established_now, 4);
	assert_int_equal(ct_stats(t).evicted_established, 6);
	assert_null(roce_cm_find(t, &ct_a, 6));
	assert_non_null(roce_cm_find(t, &ct_a, 7));
	roce_cm_tab_free(t);
}

static void test_expiry(void **state)
{
	struct roce_cm_event ev;
	struct roce_cm_tab *t = ct_new(16, 8);
	uint8_t mad[256];

	ct_feed_req(t, &ct_req, &ev, CT_T0);
	ct_feed_req(t, &ct_req, &ev, CT_T0 + 60 * RWY_SEC); /* a retry keeps it */
	roce_cm_expire(t, CT_T0 + 130 * RWY_SEC - 1);
	assert_int_equal(ct_stats(t).half_open_now, 1);
	roce_cm_expire(t, CT_T0 + 130 * RWY_SEC);
	assert_int_equal(ct_stats(t).half_open_now, 0);
	assert_int_equal(ct_stats(t).expired, 1);
	roce_cm_tab_free(t);

	t = ct_connected(&ev);
	roce_cm_expire(t, CT_T0 + 1000000 * RWY_SEC); /* established ones do not age by default */
	assert_int_equal(ct_stats(t).expired, 0);
	assert_non_null(roce_cm_find(t, &ct_a, 0xaa));
	cp_make_dreq(mad, 9, ct_req.comm, ct_rep.comm, ct_rep.qpn);
	assert_int_equal(ct_feed(t, mad, true, &ev, CT_T0), ROCE_CM_CLOSED);
	roce_cm_expire(t, CT_T0 + 60 * RWY_SEC - 1);
	assert_int_equal(ct_stats(t).closed_now, 1);
	roce_cm_expire(t, CT_T0 + 60 * RWY_SEC);
	assert_int_equal(ct_stats(t).closed_now, 0);
	assert_int_equal(ct_stats(t).expired, 0);
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

/* Random messages over few names: the counts add up, each connection opens before it closes, a QP
 * has one connection at most. */
static void test_random_walk(void **state)
{
	struct roce_cm_tab *t = ct_new(12, 6);
	uint32_t s = 31337;
	int64_t live = 0;
	rwy_time now = CT_T0;

	for (unsigned n = 0; n < 200000; n++) {
		struct roce_cm_msg m = {.attr = (uint16_t)(0x10 + tp_rand(&s) % 7)};
		bool from_a = m.attr == ROCE_CM_REQ || (m.attr != ROCE_CM_REP && (tp_rand(&s) & 1));
		uint32_t a = 1 + tp_rand(&s) % 6, b = 100 + tp_rand(&s) % 3, k = tp_rand(&s) % 2;
		struct roce_cm_stats before = ct_stats(t), after;
		struct roce_cm_event ev;

		m.tid = a + 10 * k;
		m.local_comm_id = from_a ? a : b;
		m.remote_comm_id = m.attr == ROCE_CM_REQ ? 0 : from_a ? b : a;
		m.qpn = m.attr == ROCE_CM_DREQ ? (from_a ? b : a) : m.local_comm_id;
		m.starting_psn = k;
		now += tp_rand(&s) % (RWY_SEC / 4);
		roce_cm_track(t, &m, from_a ? &ct_a : &ct_b, from_a ? &ct_b : &ct_a, &ev, now);
		after = ct_stats(t);
		assert_true(after.half_open_now <= 6);
		assert_true(after.half_open_now + after.established_now + after.closed_now <= 12);
		live += ev.kind == ROCE_CM_ESTABLISHED;
		live -= ev.kind == ROCE_CM_CLOSED;
		live -= ev.superseded_count;
		live -= (int64_t)(after.evicted_established - before.evicted_established);
		assert_int_equal(live, after.established_now);
		if (ev.kind == ROCE_CM_ESTABLISHED) {
			assert_ptr_equal(
			    roce_cm_find(t, &ct_a, ev.conn.a.qpn), roce_cm_find(t, &ct_b, ev.conn.b.qpn));
			assert_non_null(roce_cm_find(t, &ct_a, ev.conn.a.qpn));
		} else if (ev.kind == ROCE_CM_CLOSED) {
			assert_null(roce_cm_find(t, &ct_a, ev.conn.a.qpn));
			assert_null(roce_cm_find(t, &ct_b, ev.conn.b.qpn));
		}
	}
	assert_true(ct_stats(t).established > 1000 && ct_stats(t).closed > 1000);
	roce_cm_tab_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reuse_supersedes),
	    cmocka_unit_test(test_same_comm_id_again),
	    cmocka_unit_test(test_comm_id_names_one_connection),
	    cmocka_unit_test(test_half_open_limit),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_expiry),
	    cmocka_unit_test(test_bad_cfg),
	    cmocka_unit_test(test_random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
