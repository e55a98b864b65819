/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels that are added, changed and removed without effect on a connection in another tunnel.
 * Connections of a removed tunnel are forgotten, with all their memory.
 */
#include <stdio.h>

#include "engine/tunnel.h"
#include "tests/lib/eng_pair.h"
#include "engine/steer.h"
#include "roce/wire.h"

#define A_QPN 0x21
#define B_QPN 0x42
#define FIRST 5
#define RATE  1250000000

/* Hosts 10.1.0.3 and 10.2.0.3 are behind tunnel 0, which stays; 10.3.0.3 (at A) and 10.4.0.3 (at B)
 * behind tunnel 1. */
static const uint8_t NET[2][2] = {{1, 3}, {2, 4}};

/* Another pair of QPs than those of a failed connection. */
static uint32_t more;

static struct rc_mk from_a(unsigned tunnel, roce_psn psn)
{
	return (struct rc_mk){.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = B_QPN + tunnel + (tunnel ? more : 0),
	    .ack_req = true,
	    .payload_len = 1024,
	    .src = {10, NET[0][tunnel], 0, 3},
	    .dst = {10, NET[1][tunnel], 0, 3}};
}

static void a_sends(unsigned tunnel, roce_psn psn)
{
	struct rc_mk m = from_a(tunnel, psn);

	eng_host_sends(0, &m, 2);
}

static void b_answers(unsigned tunnel, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = A_QPN + tunnel + (tunnel ? more : 0),
	    .syndrome = 0x1f,
	    .msn = psn - FIRST + 1,
	    .src = {10, NET[1][tunnel], 0, 3},
	    .dst = {10, NET[0][tunnel], 0, 3}};

	eng_host_sends(1, &m, 2);
}

static struct eng_tunnel_new *make(unsigned at, unsigned tunnel, uint32_t index)
{
	struct eng_tunnel_cfg *c = calloc(1, sizeof(*c));
	struct eng_tunnel_new *n;

	assert_non_null(c);
	snprintf(c->name, sizeof(c->name), "t%u", tunnel);
	wan_cfg_default(&c->wan);
	c->wan.cc_cfg.rate_Bps = RATE;
	c->wan.epoch = 100 + index;
	c->wan.index = index;
	c->wan.tunnel_id = tunnel;
	assert_int_equal(eng_tunnel_make(&n, site[at].e, tunnel, c, eng_now), 0);
	free(c);
	return n;
}

static int prefixes(unsigned at, unsigned tunnels)
{
	struct eng_prefix p[2];

	for (unsigned i = 0; i < 2; i++) {
		uint8_t net[4] = {10, NET[!at][i], 0, 0};

		p[i] = (struct eng_prefix){.addr = rwy_ip_from4(net), .len = 120, .tunnel = (uint8_t)i};
	}
	return eng_prefixes_set(site[at].e, p, tunnels);
}

static void add(void)
{
	static uint32_t index = 1000;

	for (unsigned at = 0; at < 2; at++) {
		assert_int_equal(prefixes(at, 2), RWY_EINVAL);
		assert_int_equal(eng_tunnel_add(site[at].e, 1, make(at, 1, ++index)), 0);
		assert_true(eng_tunnel_there(site[at].e, 1));
		assert_int_equal(prefixes(at, 2), 0);
	}
	eng_pair_run(RWY_SEC);
}

static void send_one(unsigned tunnel, roce_psn psn)
{
	unsigned acks = site[0].of[0].acks;

	a_sends(tunnel, psn);
	eng_pair_run(20 * RWY_MS);
	b_answers(tunnel, psn);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[0].acks, acks + 1);
}

static void gone(unsigned at)
{
	struct eng_tunnel_old *old;
	unsigned i = 0;

	while (!eng_tunnel_remove(site[at].e, 1, &old, eng_now)) {
		assert_false(eng_tunnel_there(site[at].e, 1));
		eng_pair_run(10 * RWY_MS);
		assert_true(i++ < 1000);
	}
	assert_non_null(old);
	eng_tunnel_gone(old);
	assert_true(eng_tunnel_remove(site[at].e, 1, &old, eng_now));
	assert_null(old);
}

/* One connection all the time, while another tunnel is added, used, removed, and added again. */
static void test_others_go_on(void **state)
{
	roce_psn psn = FIRST, other = FIRST;
	struct wan_stats before, after;

	send_one(0, psn++);
	for (unsigned round = 0; round < 3; round++) {
		unsigned naks, told = site[0].requests;

		more = 2 * round;
		eng_tunnel_stats(site[0].e, 0, &before);
		add();
		send_one(0, psn++);
		send_one(1, other++);
		send_one(1, other++);
		/* Custody is not empty when the tunnel is removed. */
		a_sends(1, other++);
		a_sends(0, psn);
		eng_pair_run(20 * RWY_MS);
		assert_true(eng_custody_bytes(site[0].e) > 2000);
		gone(0);
		assert_in_range(eng_custody_bytes(site[0].e), 1, 2000); /* the other's is kept */
		/* Its host was acknowledged what is lost: it is told while idle, and at its next request. */
		eng_pair_run(20 * RWY_MS);
		assert_true(site[0].requests > told);
		naks = site[0].of[0].naks;
		a_sends(1, other);
		eng_pair_run(20 * RWY_MS);
		assert_true(site[0].of[0].naks > naks);
		gone(1);
		assert_int_equal(prefixes(0, 1), 0);
		assert_int_equal(prefixes(1, 1), 0);
		b_answers(0, psn++);
		eng_pair_run(20 * RWY_MS);
		send_one(0, psn++);
		assert_int_equal(eng_custody_bytes(site[0].e), 0);
		eng_tunnel_stats(site[0].e, 0, &after);
		assert_int_equal(after.peer_epoch, before.peer_epoch);
		assert_int_equal(after.c.lost, before.c.lost);
		assert_int_equal(after.c.peer_restarts, 0);
		other = FIRST;
	}
	more = 0;
	/* And the other direction, when the host does not answer what it is told. */
	assert_in_range(eng_counters(site[0].e)->conns_failed, 3, 6);
	assert_int_equal(eng_counters(site[1].e)->conns_failed, 0);
}

/* A tunnel without connections, during and after removal; its datagrams still in flight are
 * counted. */
static void test_nothing_behind(void **state)
{
	struct eng_tunnel_old *old;
	struct rwy_ip dst = rwy_ip_from4((uint8_t[4]){10, 4, 0, 3});
	uint64_t unrouted;

	add();
	assert_int_equal(eng_route_plain(site[0].e, &dst), 1);
	send_one(1, FIRST);
	assert_false(eng_tunnel_remove(site[0].e, 1, &old, eng_now));
	assert_int_equal(eng_route_plain(site[0].e, &dst), -1);
	assert_int_equal(eng_tunnel_add(site[0].e, 1, (struct eng_tunnel_new *)1), RWY_EINVAL);
	unrouted = eng_counters(site[0].e)->drop_no_route;
	for (unsigned i = 0; i < 2; i++) { /* a new connection */
		struct rc_mk m = from_a(1, FIRST);

		m.dqpn = 0x99;
		eng_host_sends(0, &m, 2);
	}
	assert_int_equal(eng_counters(site[0].e)->drop_no_route, unrouted + 2);
	gone(0);
	a_sends(1, FIRST + 1);
	assert_int_equal(eng_counters(site[0].e)->drop_no_route, unrouted + 3);
	eng_pair_run(2 * RWY_SEC); /* B asks whether the peer is there */
	assert_true(eng_counters(site[0].e)->drop_no_tunnel > 0);
	send_one(0, FIRST);
}

static uint64_t data_sent(unsigned tunnel)
{
	struct wan_stats s;

	eng_tunnel_stats(site[0].e, tunnel, &s);
	return s.c.tx_data;
}

static struct eng_steering *given[2]; /* assignments, by site */

static void assign(unsigned at, struct rwy_ip src, struct rwy_ip dst, uint32_t dqpn, uint8_t tunnel)
{
	const struct eng_steer_cfg c = {.src = src, .dst = dst, .dqpn = dqpn, .tunnel = tunnel};
	struct eng_steering *old = given[at];

	assert_int_equal(eng_steering_new(&given[at], &c, 1), 0);
	eng_steering_set(site[at].e, given[at]);
	eng_steering_free(old);
}

static void assign_none(unsigned at)
{
	eng_steering_set(site[at].e, NULL);
	eng_steering_free(given[at]);
	given[at] = NULL;
}

/* Both tunnels lead to the same hosts: the second carries assigned pairs until it is removed, the
 * first all others. */
static void test_assigned(void **state)
{
	const struct rwy_ip a = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}),
	                    b = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3});
	struct rc_mk m = from_a(0, FIRST);
	uint64_t zero, one;

	add();
	for (unsigned at = 0; at < 2; at++) {
		struct eng_prefix p[2] = {
		    {.addr = at ? a : b, .len = 128}, {.addr = at ? a : b, .len = 128, .tunnel = 1}};

		assert_int_equal(eng_prefixes_set(site[at].e, p, 2), 0);
	}
	zero = data_sent(0);
	one = data_sent(1);
	send_one(0, FIRST);
	assert_true(data_sent(0) > zero);
	assert_int_equal(data_sent(1), one);
	/* An existing connection stays; the next one goes as assigned, and is accepted there. */
	assign(0, a, b, 0, 1);
	assign(1, b, a, 0, 1);
	send_one(0, FIRST + 1);
	assert_int_equal(data_sent(1), one);
	m.dqpn = 0x77;
	eng_host_sends(0, &m, 2);
	eng_pair_run(20 * RWY_MS);
	assert_true(data_sent(1) > one);
	assert_int_equal(site[1].of_qpn[0x77], 1);
	/* By QP. */
	one = data_sent(1);
	assign(0, a, b, 0x79, 1);
	m.dqpn = 0x78;
	eng_host_sends(0, &m, 2);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(data_sent(1), one);
	m.dqpn = 0x79;
	eng_host_sends(0, &m, 2);
	eng_pair_run(20 * RWY_MS);
	assert_true(data_sent(1) > one);
	/* It is removed: its assignments are void. */
	gone(0);
	m.dqpn = 0x79;
	eng_host_sends(0, &m, 2);
	eng_pair_run(20 * RWY_MS);
	assert_true(eng_route_plain(site[0].e, &b) == 0);
	send_one(0, FIRST + 2);
	assert_int_equal(eng_counters(site[0].e)->drop_no_route, 0);
	assign_none(0);
	assign_none(1);
}

static uint64_t reserved_sent(unsigned reservation)
{
	struct wan_class_stats s;

	eng_reservation_stats(site[0].e, reservation, &s);
	return s.sent;
}

static void reserve(uint32_t dqpn, uint16_t reservation, uint64_t Bps)
{
	const struct rwy_ip a = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}),
	                    b = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3});
	const struct eng_steer_cfg c = {.src = a,
	    .dst = b,
	    .dqpn = dqpn,
	    .tunnel = ENG_STEER_ANY,
	    .reservation = reservation,
	    .share = {.guarantee_Bps = Bps, .limit_Bps = Bps, .weight = 1}};
	struct eng_steering *old = given[0];

	assert_int_equal(eng_steering_new(&given[0], &c, 1), 0);
	eng_steering_set(site[0].e, given[0]);
	eng_steering_free(old);
}

/* A reservation counts what its pair sends. A connection that exists gets it, changes it and loses
 * it. Another tenant's earlier number is not charged to that tenant. A share without weight is
 * refused. */
static void test_reservation(void **state)
{
	struct eng_steer_cfg bad = {.tunnel = ENG_STEER_ANY, .reservation = 1};
	struct wan_class_stats s;
	uint64_t sent;

	send_one(0, FIRST);
	reserve(0, 7, 1000000);
	eng_pair_run(2 * RWY_SEC); /* the sweep comes to it */
	assert_int_equal(reserved_sent(7), 0);
	send_one(0, FIRST + 1);
	assert_true((sent = reserved_sent(7)) >= 1024);
	eng_reservation_stats(site[0].e, 7, &s);
	assert_int_equal(s.cfg.limit_Bps, 1000000);
	/* Another rate, at once; then another number. */
	reserve(0, 7, 2000000);
	eng_reservation_stats(site[0].e, 7, &s);
	assert_int_equal(s.cfg.limit_Bps, 2000000);
	reserve(B_QPN, 8, 500000);
	eng_pair_run(2 * RWY_SEC);
	send_one(0, FIRST + 2);
	assert_int_equal(reserved_sent(7), sent);
	assert_true((sent = reserved_sent(8)) >= 1024);
	/* Another QP of the pair has none. */
	reserve(B_QPN + 1, 9, 500000);
	eng_pair_run(2 * RWY_SEC);
	send_one(0, FIRST + 3);
	assert_int_equal(reserved_sent(8), sent);
	assert_int_equal(reserved_sent(9), 0);
	/* Number 8 as it was another tenant's: the plain LAN's flow takes it over. */
	assert_int_equal(wan_class_set(site[0].e->tunnel[0].wan, ENG_TENANTS_MAX + 8,
	                     &(struct wan_class_cfg){.weight = 1, .parent = 5}),
	    0);
	reserve(B_QPN, 8, 500000);
	eng_pair_run(2 * RWY_SEC);
	wan_class_stats(site[0].e->tunnel[0].wan, ENG_TENANTS_MAX + 8, &s);
	assert_int_equal(s.cfg.parent, 0);
	assign_none(0);
	assert_int_equal(eng_steering_new(&given[0], &bad, 1), RWY_EINVAL);
	given[0] = NULL;
	assert_int_equal(eng_counters(site[0].e)->reservation_no_memory, 0);
}

/* Address pairs are shared by weight, equally in both directions, and keep their tunnel when a
 * weight changes. */
static void test_weights(void **state)
{
	struct eng_tunnel_tune t = {.rate_Bps = RATE, .rx_window = 1024, .rx_bytes = 1 << 20, .weight = 3};
	const struct rwy_ip b = rwy_ip_from4((uint8_t[4]){10, 2, 0, 0});
	struct eng_prefix p[2] = {{.addr = b, .len = 120}, {.addr = b, .len = 120, .tunnel = 1}};
	unsigned one = 0, moved = 0;
	int was[4000];

	wan_congest_cfg_default(&t.congest);
	add();
	assert_int_equal(eng_prefixes_set(site[0].e, p, 2), 0);
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(eng_tunnel_set(site[0].e, 0, &t, eng_now), 0);
		t.weight = round ? 3 : 1;
		assert_int_equal(eng_tunnel_set(site[0].e, 1, &t, eng_now), 0);
		one = 0;
		for (unsigned i = 0; i < 4000; i++) {
			const struct rwy_ip l =
			    rwy_ip_from4((uint8_t[4]){10, 1, (uint8_t)(i / 200), (uint8_t)(i % 200 + 1)});
			const struct rwy_ip r = rwy_ip_from4((uint8_t[4]){10, 2, 0, (uint8_t)(i % 250 + 1)});
			const int way = eng_steer(site[0].e, 0, &l, &r, 0);

			one += way == 1;
			moved += round && way != was[i];
			/* its weight grew: it lost none */
			assert_true(!round || was[i] == 0 || way == 1);
			was[i] = way;
		}
		assert_in_range(one, (round ? 2000 : 1000) - 120, (round ? 2000 : 1000) + 120);
		t.weight = 3;
	}
	assert_in_range(moved, 800, 1200);
	t.weight = 0; /* unused while there is another */
	assert_int_equal(eng_tunnel_set(site[0].e, 0, &t, eng_now), 0);
	for (unsigned i = 1; i < 250; i++) {
		const struct rwy_ip l = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}),
		                    r = rwy_ip_from4((uint8_t[4]){10, 2, 0, (uint8_t)i});

		assert_int_equal(eng_steer(site[0].e, 0, &l, &r, 0), 1);
	}
}

/* Tenants' shares are set when they are sent again; a tenant's prefix behind a free number is
 * refused. */
static void test_tenants(void **state)
{
	struct eng_prefix p = {.addr = rwy_ip_from4((uint8_t[4]){10, 4, 0, 0}), .len = 120, .tunnel = 1};
	struct eng_tenant_cfg c = {.vni = 7,
	    .custody = UINT64_MAX,
	    .prefix = &p,
	    .prefixes = 1,
	    .share = {.weight = 3, .guarantee_Bps = 100000}};
	struct wan_class_stats s;

	assert_int_equal(eng_tenant_set(site[0].e, 1, &c, eng_now), RWY_EINVAL);
	add();
	assert_int_equal(eng_tenant_set(site[0].e, 1, &c, eng_now), 0);
	wan_class_stats(site[0].e->tunnel[1].wan, 1, &s);
	assert_int_equal(s.cfg.weight, 3);
	wan_class_stats(site[0].e->tunnel[0].wan, 1, &s);
	assert_int_equal(s.cfg.weight, 3);
}

/* Another rate: datagrams follow it, sequence numbers continue. */
static void test_rate(void **state)
{
	struct eng_tunnel_tune t = {.rate_Bps = 250000, .rx_window = 1024, .rx_bytes = 1 << 20};
	struct wan_stats s;

	wan_congest_cfg_default(&t.congest);
	send_one(0, FIRST);
	assert_int_equal(eng_tunnel_set(site[0].e, 0, &t, eng_now), 0);
	send_one(0, FIRST + 1);
	eng_tunnel_stats(site[0].e, 0, &s);
	assert_in_range(s.rate_Bps, 1, 250000);
	t.rate_Bps = RATE;
	assert_int_equal(eng_tunnel_set(site[0].e, 0, &t, eng_now), 0);
	for (unsigned i = 2; i < 60; i++)
		send_one(0, FIRST + i);
	eng_tunnel_stats(site[0].e, 0, &s);
	assert_true(s.rate_Bps > 250000);
	assert_int_equal(s.c.lost, 0);
	assert_int_equal(s.c.peer_restarts, 0);
	assert_int_equal(eng_tunnel_set(site[0].e, 9, &t, eng_now), 0); /* nothing */
}

/* Both gateways report each connection once when it opens and once when it ends; and on request. */
static void test_sessions(void **state)
{
	struct eng_session s[4];
	uint32_t cursor = 0;
	unsigned n = 0;

	add();
	assert_int_equal(site[0].opened, 0);
	send_one(0, FIRST);
	send_one(0, FIRST + 1);
	assert_int_equal(site[0].opened, 1);
	assert_int_equal(site[1].opened, 1);
	assert_int_equal(site[0].session.remote_qpn, B_QPN);
	assert_int_equal(site[0].session.local_qpn, A_QPN);
	assert_int_equal(site[1].session.local_qpn, B_QPN);
	assert_int_equal(site[0].session.tunnel, 0);
	send_one(1, FIRST);
	assert_int_equal(site[0].opened, 2);
	assert_int_equal(site[0].session.tunnel, 1);
	do
		n += eng_sessions(site[0].e, &cursor, s + n, 4 - n);
	while (cursor);
	assert_int_equal(n, 2);
	assert_int_not_equal(s[0].id, s[1].id);
	assert_true(s[0].tx_bytes + s[1].tx_bytes >= 3 * 1024);
	assert_int_equal(site[0].closed, 0);
	gone(0);
	assert_int_equal(site[0].closed, 1);
	assert_int_equal(site[0].session.tunnel, 1);
	assert_int_equal(site[0].session.tx_bytes >= 1024, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, eng_pair_set_up, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_others_go_on),
	    T(test_nothing_behind),
	    T(test_tenants),
	    T(test_rate),
	    T(test_sessions),
	    T(test_assigned),
	    T(test_reservation),
	    T(test_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
