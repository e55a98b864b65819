/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay between two others: what passes is the same but for its hop limit; the access list;
 * circles, of REQs that come back the same way, another way, or to the relay of their host.
 */
#include "proxy/edge.h"
#include "roce/cm.h"
#include "roce/icrc.h"
#include "tests/lib/proxy_cm.h"

#define PORT 7000

static struct proxy_edge edge;
static struct proxy_policy policy;
static struct proxy_acl acl;
static struct proxy_entry entry;
static struct rwy_ip a, b, relay;
static struct proxy_act act;
static rwy_time now;
static bool six;
static unsigned told;

static struct rwy_ip addr(uint8_t net, uint8_t h)
{
	struct rwy_ip ip = {.b = {0xfd, 0, 0, net}};

	ip.b[15] = h;
	return six ? ip : rwy_ip_from4((const uint8_t[]){10, net, 0, h});
}

static void news(void *ctx, enum proxy_news n, const struct proxy_link *l, unsigned why)
{
	told += n == PROXY_NEWS_ONWARD;
	if (n == PROXY_NEWS_ONWARD)
		assert_true(rwy_ip_eq(&l->remote, &a) && rwy_ip_eq(&l->local, &b) && l->port == PORT);
}

static int set_up_as(bool is6)
{
	struct proxy_map_cfg cfg;

	six = is6;
	now = 1000 * RWY_SEC;
	told = 0;
	a = addr(1, 3);
	b = addr(2, 3);
	relay = addr(1, 254);
	acl = (struct proxy_acl){{addr(1, 0), 120}, {b, 128}, PORT, PORT};
	entry = (struct proxy_entry){.listen = relay, .port = PORT, .target = b, .target_port = PORT};
	policy = (struct proxy_policy){
	    .addr = {relay}, .addrs = 1, .acl = &acl, .acls = 1, .entry = &entry, .entries = 1};
	proxy_map_cfg_default(&cfg);
	assert_int_equal(proxy_edge_init(&edge, &policy, &cfg), 0);
	edge.news = news;
	return 0;
}

static int set_up(void **state)
{
	return set_up_as(false);
}

static int set_up6(void **state)
{
	return set_up_as(true);
}

static int tear_down(void **state)
{
	proxy_edge_fini(&edge);
	return 0;
}

static void hop_limit_put(uint8_t *ip, uint8_t limit)
{
	ip[six ? 7 : 8] = limit;
	if (!six)
		tp_fix_csum(ip);
}

/* A packet of RC between two hosts. */
static uint32_t data(uint8_t *ip, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	struct tp t = {.opcode = 0x04, .is6 = six, .ttl = 64, .payload_len = 64, .pad = -1, .dqpn = 17};
	uint32_t len = tp_make(ip, &t);

	memcpy(ip + (six ? 8 : 12), src->b + (six ? 0 : 12), six ? 16 : 4);
	memcpy(ip + (six ? 24 : 16), dst->b + (six ? 0 : 12), six ? 16 : 4);
	px_seal(ip, len);
	return len;
}

static uint32_t req(uint8_t *ip, const struct rwy_ip *dst, uint16_t port, uint32_t n)
{
	const struct px_req r = {
	    .src = a, .dst = *dst, .comm = 5 + n, .qpn = 17 + n, .psn = 1, .tid = 7 + n, .port = port};

	return px_make_req(ip, &r);
}

static bool onward(uint8_t *ip, uint32_t len, bool back)
{
	proxy_edge_onward(&edge, ip, len, back, &act, now);
	return act.verdict == PROXY_PASS;
}

/* What goes to the asking host: a REJ from the target, as without a listener. */
static void rejected(void)
{
	struct roce_cm_msg m;
	struct roce_pkt p;

	assert_true(act.reply_len);
	assert_int_equal(roce_parse(act.reply, act.reply_len, &p), ROCE_PARSE_OK);
	assert_true(roce_icrc_ok(&p) && rwy_ip_eq(&p.src, &b) && rwy_ip_eq(&p.dst, &a));
	assert_int_equal(roce_cm_parse(&p, &m), 0);
	assert_int_equal(m.attr, ROCE_CM_REJ);
	assert_int_equal(m.rej_reason, 8);
	assert_int_equal(m.remote_comm_id, 5);
}

static void nothing_else_changes(void **state)
{
	uint8_t ip[TP_MAX], was[TP_MAX];
	const struct rwy_ip *ends[2][2] = {{&a, &b}, {&b, &a}};

	for (unsigned i = 0; i < 2; i++) {
		uint32_t len = data(ip, ends[i][0], ends[i][1]), at = six ? 7 : 8;
		struct roce_pkt p;

		memcpy(was, ip, len);
		assert_true(onward(ip, len, false));
		assert_int_equal(ip[at], 63);
		assert_int_equal(roce_parse(ip, len, &p), ROCE_PARSE_OK); /* with the header's checksum */
		assert_true(roce_icrc_ok(&p));
		hop_limit_put(ip, 64);
		assert_memory_equal(ip, was, len);
	}
	assert_int_equal(edge.c.onward_packets, 2);
}

static void what_does_not_pass(void **state)
{
	const struct rwy_ip stranger = addr(3, 3);
	uint8_t ip[TP_MAX], mad[256];
	uint32_t len = data(ip, &stranger, &b);

	assert_false(onward(ip, len, false));
	len = data(ip, &a, &stranger);
	assert_false(onward(ip, len, false));
	assert_int_equal(edge.c.drop_onward_acl, 2);
	len = data(ip, &a, &b);
	assert_false(onward(ip, len, true));
	assert_int_equal(edge.c.drop_onward_loop, 1);
	for (uint8_t limit = 0; limit < 2; limit++) {
		len = data(ip, &a, &b);
		hop_limit_put(ip, limit);
		assert_false(onward(ip, len, false));
	}
	assert_int_equal(edge.c.drop_onward_hops, 2);
	len = data(ip, &a, &b);
	for (uint32_t n = 0; n < len; n++)
		assert_false(onward(ip, n, false));
	assert_int_equal(edge.c.drop_onward_malformed, len);
	cp_make_ids(mad, 0x0019, 7, 5, 9); /* LAP */
	len = px_packet(ip, mad, &a, &b);
	assert_false(onward(ip, len, false));
	assert_int_equal(edge.c.drop_relay_cm_malformed, 1);
	mad[1] = 4; /* another class */
	len = px_packet(ip, mad, &a, &b);
	assert_false(onward(ip, len, false));
	assert_int_equal(edge.c.drop_relay_not_cm, 1);
	assert_int_equal(edge.c.onward_packets, 0);
}

static void reqs_by_their_port(void **state)
{
	uint8_t ip[TP_MAX];

	assert_true(onward(ip, req(ip, &b, PORT, 0), false));
	assert_true(onward(ip, req(ip, &b, PORT, 0), false)); /* sent again */
	assert_int_equal(told, 1);
	assert_false(onward(ip, req(ip, &b, PORT + 1, 0), false));
	rejected();
	assert_int_equal(edge.c.refused_acl, 1);
	assert_int_equal(edge.c.onward_packets, 2);
}

static void circles(void **state)
{
	uint8_t ip[TP_MAX];
	uint32_t len = req(ip, &b, PORT, 0);

	assert_false(onward(ip, len, true)); /* straight back */
	rejected();
	assert_true(onward(ip, req(ip, &b, PORT, 0), false));
	len = req(ip, &b, PORT, 0);
	hop_limit_put(ip, 62); /* round by two others */
	assert_false(onward(ip, len, false));
	rejected();
	len = req(ip, &b, PORT, 0);
	hop_limit_put(ip, 62);
	proxy_edge_foreign(&edge, ip, len, &act, now); /* the same, by a tunnel that is not its source's */
	assert_int_equal(act.verdict, PROXY_DROP);
	rejected();
	assert_int_equal(edge.c.refused_relay_loop, 3);
	/* after a minute and more the numbers are another connection's */
	now += PROXY_HOPS_TTL;
	len = req(ip, &b, PORT, 0);
	hop_limit_put(ip, 62);
	assert_true(onward(ip, len, false));
	assert_int_equal(told, 2);
}

/* A REQ of a host here, whatever its hop limit was, comes back. */
static void circle_to_the_first(void **state)
{
	uint8_t ip[TP_MAX];
	uint32_t len = req(ip, &relay, PORT, 0);

	hop_limit_put(ip, 1);
	proxy_edge_in(&edge, ip, len, &act, now);
	assert_int_equal(act.verdict, PROXY_PASS);
	hop_limit_put(ip, 255);
	proxy_edge_foreign(&edge, ip, len, &act, now);
	rejected();
	assert_int_equal(edge.c.refused_relay_loop, 1);
}

/* Who speaks for others is told nothing. */
static void foreign_is_silent(void **state)
{
	uint8_t ip[TP_MAX], mad[256];
	uint32_t len = req(ip, &b, PORT, 0);

	proxy_edge_foreign(&edge, ip, len, &act, now); /* never seen here */
	assert_int_equal(act.reply_len, 0);
	assert_true(onward(ip, len, false));
	len = req(ip, &b, PORT, 0);
	proxy_edge_foreign(&edge, ip, len, &act, now); /* not lower: no circle */
	assert_int_equal(act.reply_len, 0);
	cp_make_ids(mad, ROCE_CM_RTU, 7, 5, 9);
	len = px_packet(ip, mad, &a, &b);
	proxy_edge_foreign(&edge, ip, len, &act, now);
	assert_int_equal(act.reply_len, 0);
	len = data(ip, &a, &b);
	proxy_edge_foreign(&edge, ip, len, &act, now);
	assert_int_equal(act.reply_len, 0);
	for (uint32_t n = 0; n < len; n++) {
		proxy_edge_foreign(&edge, ip, n, &act, now);
		assert_int_equal(act.verdict, PROXY_DROP);
	}
	assert_int_equal(edge.c.refused_relay_loop, 0);
}

/* The table is bounded: the oldest of a set gives way, and nothing is refused for it. */
static void hops_are_bounded(void **state)
{
	static struct proxy_hops h;
	const uint64_t set = 5, step = PROXY_HOPS_SETS;

	for (unsigned i = 0; i < PROXY_HOPS_WAYS; i++)
		assert_int_equal(proxy_hops_pass(&h, set + i * step, 64, now + i), PROXY_HOP_NEW);
	assert_int_equal(proxy_hops_pass(&h, set, 64, now + 10), PROXY_HOP_AGAIN); /* now the newest */
	assert_int_equal(proxy_hops_pass(&h, set + 9 * step, 64, now + 11), PROXY_HOP_NEW);
	assert_false(proxy_hops_know(&h, set + step, 1, now + 12)); /* the oldest */
	for (unsigned i = 2; i < PROXY_HOPS_WAYS; i++)
		assert_true(proxy_hops_know(&h, set + i * step, 63, now + 12));
	assert_true(proxy_hops_know(&h, set, 63, now + 12));
	assert_false(proxy_hops_know(&h, set, 64, now + 12));
	assert_int_equal(proxy_hops_pass(&h, set, 65, now + 12), PROXY_HOP_AGAIN);
	assert_int_equal(proxy_hops_pass(&h, set, 64, now + 12), PROXY_HOP_CIRCLE);
	assert_int_equal(proxy_hops_pass(&h, 0, 64, now), PROXY_HOP_NEW); /* no number is special */
	assert_int_equal(proxy_hops_pass(&h, 0, 63, now), PROXY_HOP_CIRCLE);
}

#define BOTH(f)                                                                                              \
	cmocka_unit_test_setup_teardown(f, set_up, tear_down),                                               \
	    cmocka_unit_test_setup_teardown(f, set_up6, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    BOTH(nothing_else_changes),
	    BOTH(what_does_not_pass),
	    BOTH(reqs_by_their_port),
	    BOTH(circles),
	    BOTH(circle_to_the_first),
	    BOTH(foreign_is_silent),
	    cmocka_unit_test(hops_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
