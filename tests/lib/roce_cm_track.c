/* SPDX-License-Identifier: Apache-2.0 */
/* Passes messages built by hand to a table of CM connections, each as a packet that is parsed. */
#include "tests/lib/roce_cm_track.h"

const struct rwy_ip ct_a = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
const struct rwy_ip ct_b = {{[10] = 0xff, 0xff, 10, 0, 0, 2}};

const struct cp_req ct_req = {.tid = 0x1122334455667788,
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
const struct cp_rep ct_rep = {.tid = 0x1122334455667788,
    .comm = 0xb0b0b0b2,
    .remote = 0xa0a0a0a1,
    .qpn = 0x0000bb,
    .psn = 0x654321,
    .rnr = 5,
    .resp_res = 8,
    .init_depth = 4};

int ct_parse(const uint8_t *mad, struct roce_cm_msg *msg)
{
	uint8_t b[TP_MAX];
	struct roce_pkt p;
	uint32_t len = cp_packet(b, mad, false, 256);

	assert_int_equal(roce_parse(b, len, &p), ROCE_PARSE_OK);
	return roce_cm_parse(&p, msg);
}

struct roce_cm_tab *ct_new(uint32_t capacity, uint32_t half)
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

enum roce_cm_event_kind ct_feed(
    struct roce_cm_tab *t, const uint8_t *mad, bool from_a, struct roce_cm_event *ev, rwy_time now)
{
	struct roce_cm_msg m;

	assert_int_equal(ct_parse(mad, &m), 0);
	roce_cm_track(t, &m, from_a ? &ct_a : &ct_b, from_a ? &ct_b : &ct_a, ev, now);
	return ev->kind;
}

enum roce_cm_event_kind ct_feed_req(
    struct roce_cm_tab *t, const struct cp_req *r, struct roce_cm_event *ev, rwy_time now)
{
	uint8_t mad[256];

	cp_make_req(mad, r);
	return ct_feed(t, mad, true, ev, now);
}

enum roce_cm_event_kind ct_feed_rep(
    struct roce_cm_tab *t, const struct cp_rep *r, struct roce_cm_event *ev, rwy_time now)
{
	uint8_t mad[256];

	cp_make_rep(mad, r);
	return ct_feed(t, mad, false, ev, now);
}

struct roce_cm_stats ct_stats(const struct roce_cm_tab *t)
{
	struct roce_cm_stats s;

	roce_cm_stats_get(t, &s);
	return s;
}

struct roce_cm_tab *ct_connected(struct roce_cm_event *ev)
{
	struct roce_cm_tab *t = ct_new(16, 8);

	assert_int_equal(ct_feed_req(t, &ct_req, ev, CT_T0), ROCE_CM_NONE);
	assert_int_equal(ct_feed_rep(t, &ct_rep, ev, CT_T0), ROCE_CM_ESTABLISHED);
	return t;
}
