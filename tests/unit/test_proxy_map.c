/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links: allocation, limits, ageing, against a plain model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/edge_int.h"
#include "proxy/map.h"
#include "proxy/policy.h"
#include "tests/lib/rng.h"

static struct rwy_ip ip(uint8_t c, uint8_t d)
{
	return rwy_ip_from4((const uint8_t[]){10, 0, c, d});
}

static struct proxy_link tmpl(uint8_t host, uint32_t comm)
{
	return (struct proxy_link){.local = ip(1, host),
	    .remote = ip(2, 1),
	    .relay = ip(1, 254),
	    .comm_a = comm,
	    .entry = PROXY_NIL,
	    .local_active = true};
}

static struct proxy_map *map_new(const struct proxy_map_cfg *c)
{
	struct proxy_map *m = NULL;

	assert_int_equal(proxy_map_new(&m, c), 0);
	return m;
}

static struct proxy_map_cfg small(void)
{
	struct proxy_map_cfg c;

	proxy_map_cfg_default(&c);
	c.links_max = 32;
	c.half_open_max = 8;
	c.source_max = 20;
	c.qpn_first = 1000;
	c.qpn_last = 1010;
	return c;
}

static struct proxy_link *add(struct proxy_map *m, uint8_t host, uint32_t comm, rwy_time now)
{
	struct proxy_link t = tmpl(host, comm), *l = NULL;

	assert_int_equal(proxy_map_add(m, &t, &l, now), PROXY_LINK_OK);
	return l;
}

/* Another table's links of one queue pair come in any order: packets are the open one's. */
static void an_open_link_comes_first(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m = map_new(&c);
	struct proxy_link open = tmpl(1, 7), closed = tmpl(1, 6), *l;

	open.lqpn = closed.lqpn = 99;
	open.rqpn = closed.rqpn = 98;
	open.alias = 1000;
	closed.alias = 1001;
	open.state = PROXY_ESTABLISHED;
	closed.state = PROXY_CLOSED;
	l = proxy_map_take(m, NULL, &open, 1);
	assert_non_null(l);
	assert_non_null(proxy_map_take(m, NULL, &closed, 2));
	assert_ptr_equal(proxy_map_out(m, &open.remote, &open.local, 99), l);
	proxy_map_remove(m, l);
	l = proxy_map_out(m, &open.remote, &open.local, 99);
	assert_non_null(l);
	assert_int_equal(l->alias, 1001);
	proxy_map_free(m);
}

static void bad_configurations(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m;

	c.links_max = 0;
	assert_int_equal(proxy_map_new(&m, &c), RWY_EINVAL);
	c = small();
	c.qpn_first = 1;
	assert_int_equal(proxy_map_new(&m, &c), RWY_EINVAL);
	c = small();
	c.qpn_last = 0xffffff;
	assert_int_equal(proxy_map_new(&m, &c), RWY_EINVAL);
	c = small();
	c.qpn_first = c.qpn_last + 1;
	assert_int_equal(proxy_map_new(&m, &c), RWY_EINVAL);
	proxy_map_free(NULL);
}

static void aliases_are_unique_and_run_out(void **state)
{
	const struct proxy_map_cfg c = small();
	struct proxy_map *m = map_new(&c);
	struct proxy_link *l[12];
	const struct rwy_ip relay = ip(1, 254);

	for (unsigned i = 0; i < 12; i++) {
		l[i] = add(m, 1, 100 + i, 0);
		assert_int_equal(proxy_map_alias(m, l[i]), i < 11 ? 0 : RWY_ENOMEM);
		proxy_map_state(m, l[i], PROXY_ESTABLISHED, 0);
	}
	for (unsigned i = 0; i < 11; i++) {
		assert_in_range(l[i]->alias, c.qpn_first, c.qpn_last);
		assert_ptr_equal(proxy_map_in(m, &relay, l[i]->alias), l[i]);
	}
	/* A closed link's QPN waits; one that is gone is free. */
	proxy_map_state(m, l[3], PROXY_CLOSED, 0);
	assert_int_equal(proxy_map_alias(m, l[11]), RWY_ENOMEM);
	proxy_map_remove(m, l[3]);
	assert_int_equal(proxy_map_alias(m, l[11]), 0);
	proxy_map_free(m);
}

static void limits(void **state)
{
	const struct proxy_map_cfg c = small();
	struct proxy_map *m = map_new(&c);
	struct proxy_link t = tmpl(1, 1000), *l;
	struct proxy_map_now n;

	for (unsigned i = 0; i < 6; i++)
		add(m, 1, i + 1, 0);
	assert_int_equal(proxy_map_add(m, &t, &l, 0), PROXY_HALF_OPEN_FULL);
	for (unsigned i = 0; i < 20; i++) {
		struct proxy_cm_key k = {ip(1, 1), ip(1, 254), i + 1, true};

		l = proxy_map_cm_in(m, &k);
		proxy_map_state(m, l ? l : add(m, 1, i + 1, 0), PROXY_ESTABLISHED, 0);
	}
	assert_int_equal(proxy_map_add(m, &t, &l, 0), PROXY_SOURCE_FULL);
	for (unsigned i = 0; i < 12; i++)
		proxy_map_state(m, add(m, 2, i + 1, 0), PROXY_ESTABLISHED, 0);
	t = tmpl(3, 1);
	assert_int_equal(proxy_map_add(m, &t, &l, 0), PROXY_LINKS_FULL);
	/* A closed one makes room. */
	struct proxy_cm_key k = {ip(1, 2), ip(1, 254), 5, true};

	proxy_map_state(m, proxy_map_cm_in(m, &k), PROXY_CLOSED, 0);
	assert_int_equal(proxy_map_add(m, &t, &l, 0), PROXY_LINK_OK);
	assert_null(proxy_map_cm_in(m, &k));
	proxy_map_count(m, &n);
	assert_int_equal(n.half_open, 1);
	assert_int_equal(n.open, 31);
	assert_int_equal(n.closed, 0);
	proxy_map_free(m);
}

static unsigned half_open_all(struct proxy_map *m, struct proxy_link **of, uint32_t comm)
{
	struct proxy_link t = tmpl(1, comm);
	unsigned n = 0;

	while (proxy_map_add(m, &t, &of[n], 0) == PROXY_LINK_OK) {
		t.comm_a++;
		n++;
	}
	return n;
}

/* A host whose REQs nobody answers keeps nobody away: no other host, and no pair of its own. */
static void half_open_of_one_host(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_link *l[65], *other[8], *pair, t = tmpl(1, 0);
	struct proxy_map *m;
	unsigned got;

	c.links_max = 256;
	c.half_open_max = 64;
	c.source_max = 200;
	m = map_new(&c);
	got = half_open_all(m, l, 0);
	assert_in_range(got, c.half_open_max / 2, c.half_open_max - 8);
	for (unsigned i = 0; i < 8; i++)
		other[i] = add(m, 2, i + 1, 0);
	t.pair = true;
	assert_int_equal(proxy_map_add(m, &t, &pair, 0), PROXY_LINK_OK);
	proxy_map_state(m, pair, PROXY_ESTABLISHED, 0);

	/* Links that are open, over or gone are not half-open any more; repeated ones are. */
	for (unsigned i = 0; i < got; i++) {
		proxy_map_state(m, l[i], PROXY_REQ_SEEN, 1);
		if (i % 3 == 2)
			proxy_map_remove(m, l[i]);
		else
			proxy_map_state(m, l[i], i % 3 ? PROXY_CLOSED : PROXY_REP_SEEN, 1);
	}
	for (unsigned i = 0; i < 8; i++)
		proxy_map_remove(m, other[i]);
	assert_int_equal(half_open_all(m, l, 100), got);
	proxy_map_free(m);
}

static void count_gone(void *ctx, const struct proxy_link *l)
{
	(*(unsigned *)ctx)++;
}

static void ages(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m;
	struct proxy_link *busy, *idle;
	unsigned gone = 0;

	c.idle_ttl = 100 * RWY_SEC;
	m = map_new(&c);
	add(m, 1, 1, 0);
	busy = add(m, 1, 2, 0);
	idle = add(m, 1, 3, 0);
	proxy_map_state(m, busy, PROXY_ESTABLISHED, 0);
	proxy_map_state(m, idle, PROXY_ESTABLISHED, 0);
	proxy_map_expire(m, 100, count_gone, &gone, c.half_open_ttl - 1);
	assert_int_equal(gone, 0);
	proxy_map_expire(m, 100, count_gone, &gone, c.half_open_ttl);
	assert_int_equal(gone, 1);
	busy->touched = 90 * RWY_SEC;
	proxy_map_expire(m, 100, count_gone, &gone, 100 * RWY_SEC);
	assert_int_equal(gone, 2);
	assert_int_equal(busy->state, PROXY_ESTABLISHED);
	assert_int_equal(idle->state, PROXY_FREE);
	proxy_map_state(m, busy, PROXY_CLOSED, 101 * RWY_SEC);
	proxy_map_expire(m, 100, count_gone, &gone, 101 * RWY_SEC + c.closed_ttl);
	assert_int_equal(gone, 3);
	proxy_map_free(m);
}

/*
 * Links begin all the time, and all carry packets but the first ones. An idle link goes when its
 * time is over, though younger ones are in use.
 */
static void idle_among_busy(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m;
	struct proxy_link *l[20], *idle;
	unsigned gone = 0;

	c.idle_ttl = 100 * RWY_SEC;
	m = map_new(&c);
	for (unsigned s = 0; s < 20; s++) { /* one each 10 s */
		l[s] = add(m, 1, s + 1, s * 10 * RWY_SEC);
		proxy_map_state(m, l[s], PROXY_ESTABLISHED, s * 10 * RWY_SEC);
		for (unsigned i = 0; i <= s; i++)
			if (i != 5 || s < 12) /* the sixth is idle since 110 s */
				l[i]->touched = s * 10 * RWY_SEC;
		proxy_map_expire(m, 100, count_gone, &gone, s * 10 * RWY_SEC);
	}
	idle = l[5];
	assert_int_equal(gone, 0);
	for (unsigned i = 0; i < 20; i++)
		if (l[i] != idle)
			l[i]->touched = 210 * RWY_SEC;
	proxy_map_expire(m, 100, count_gone, &gone, 210 * RWY_SEC);
	assert_int_equal(gone, 1);
	assert_int_equal(idle->state, PROXY_FREE);
	proxy_map_free(m);
}

/* A DREQ that nobody answers: the link goes some time after the last one. Packets keep it. */
static void unanswered_dreq(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m = map_new(&c);
	struct proxy_link *used = add(m, 1, 1, 0), *left = add(m, 1, 2, 0), *open = add(m, 1, 3, 0);
	struct proxy_map_now n;
	unsigned gone = 0;

	proxy_map_state(m, open, PROXY_ESTABLISHED, 0);
	proxy_map_state(m, used, PROXY_DISCONNECTING, RWY_SEC);
	proxy_map_state(m, left, PROXY_DISCONNECTING, 2 * RWY_SEC);
	proxy_map_state(m, left, PROXY_DISCONNECTING, 3 * RWY_SEC); /* the host repeats it */
	used->touched = 4 * RWY_SEC;
	proxy_map_count(m, &n);
	assert_int_equal(n.open, 3);
	proxy_map_expire(m, 100, count_gone, &gone, 3 * RWY_SEC + c.ending_ttl - 1);
	assert_int_equal(gone, 0);
	proxy_map_expire(m, 100, count_gone, &gone, 3 * RWY_SEC + c.ending_ttl);
	assert_int_equal(gone, 1);
	assert_int_equal(left->state, PROXY_FREE);
	proxy_map_expire(m, 100, count_gone, &gone, 4 * RWY_SEC + c.ending_ttl);
	assert_int_equal(used->state, PROXY_FREE);
	assert_int_equal(open->state, PROXY_ESTABLISHED);
	proxy_map_free(m);
}

/* Late packets of a closed link keep neither it nor those that were closed after it. */
static void late_packets_of_a_closed_link(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_edge e = {.map = map_new(&c)};
	struct proxy_link *first = NULL;
	unsigned gone = 0, s = 0;

	for (; s < 8; s++) {
		struct proxy_link *l = add(e.map, 1, s + 1, s * RWY_SEC);

		first = first ? first : l;
		proxy_map_state(e.map, l, PROXY_CLOSED, s * RWY_SEC);
	}
	for (; s * RWY_SEC < 8 * RWY_SEC + c.closed_ttl; s++) {
		if (first->state == PROXY_CLOSED) {
			proxy_count_in(&e, first, 100, s * RWY_SEC);
			proxy_count_out(&e, first, 100, s * RWY_SEC);
		}
		proxy_map_expire(e.map, 100, count_gone, &gone, s * RWY_SEC);
	}
	assert_true(e.c.relay_in_packets > 50);
	assert_int_equal(gone, 8);
	proxy_map_free(e.map);
}

/* Many sources come and go: each is counted right, and found. */
static void random_against_model(void **state)
{
	struct proxy_map_cfg c = small();
	struct proxy_map *m;
	struct {
		struct proxy_link *l;
		uint8_t host;
		uint32_t lqpn;
	} model[200] = {0};
	uint64_t rng = 5;

	c.links_max = 128;
	c.half_open_max = 128;
	c.source_max = 3;
	c.qpn_last = 5000;
	m = map_new(&c);
	for (unsigned n = 0; n < 50000; n++) {
		unsigned i = rng_below(&rng, 120), of_host = 0;
		uint8_t host = (uint8_t)rng_below(&rng, 250);

		if (model[i].l) {
			struct proxy_cm_key k = {ip(1, model[i].host), ip(1, 254), i + 1, true};
			struct proxy_cm_key o = {ip(2, 1), ip(1, model[i].host), i + 1, true};
			const struct rwy_ip r = ip(2, 1), h = ip(1, model[i].host), p = ip(1, 254);

			assert_ptr_equal(proxy_map_cm_in(m, &k), model[i].l);
			assert_ptr_equal(proxy_map_cm_out(m, &o), model[i].l);
			assert_ptr_equal(proxy_map_in(m, &p, model[i].l->alias), model[i].l);
			assert_ptr_equal(proxy_map_out(m, &r, &h, model[i].lqpn), model[i].l);
			proxy_map_remove(m, model[i].l);
			model[i].l = NULL;
			continue;
		}
		for (unsigned k = 0; k < 120; k++)
			of_host += model[k].l && model[k].host == host;
		struct proxy_link t = tmpl(host, i + 1);
		enum proxy_no_link why = proxy_map_add(m, &t, &model[i].l, n);

		assert_int_equal(why, of_host < 3 ? PROXY_LINK_OK : PROXY_SOURCE_FULL);
		if (why != PROXY_LINK_OK) {
			model[i].l = NULL;
			continue;
		}
		model[i].host = host;
		model[i].lqpn = 1 + rng_below(&rng, 20) * 1000 + i;
		proxy_map_local_qpn(m, model[i].l, 7);
		proxy_map_local_qpn(m, model[i].l, model[i].lqpn);
		assert_int_equal(proxy_map_alias(m, model[i].l), 0);
	}
	proxy_map_free(m);
}

/* Wrong events are refused, and every state has a way to its end. */
static void states(void **state)
{
	enum proxy_state s;

	assert_false(proxy_state_next(PROXY_REQ_SEEN, PROXY_EV_RTU, &s));
	assert_false(proxy_state_next(PROXY_REQ_SEEN, PROXY_EV_DREQ, &s));
	assert_false(proxy_state_next(PROXY_ESTABLISHED, PROXY_EV_DREP, &s));
	for (enum proxy_event ev = 0; ev < PROXY_EVENT_COUNT; ev++)
		assert_int_equal(
		    proxy_state_next(PROXY_FREE, ev, &s), ev == PROXY_EV_REQ || ev == PROXY_EV_TIMEOUT);
	for (enum proxy_state f = PROXY_REQ_SEEN; f < PROXY_STATE_COUNT; f++) {
		assert_true(proxy_state_next(f, PROXY_EV_TIMEOUT, &s) && s == PROXY_FREE);
		assert_true(proxy_state_next(f, PROXY_EV_REJ, &s) && s == PROXY_CLOSED);
		assert_string_not_equal(proxy_state_name(f), "?");
	}
}

static void policy(void **state)
{
	const struct proxy_acl acl = {{ip(1, 0), 120}, {ip(2, 7), 128}, .port_lo = 100, .port_hi = 200};
	const struct proxy_entry e[2] = {
	    {.listen = ip(1, 254), .port = 5}, {.listen = ip(1, 253), .port = 5}};
	const struct proxy_policy none = {0}, p = {.acl = &acl, .acls = 1, .entry = e, .entries = 2};
	const struct rwy_ip a = ip(1, 9), b = ip(2, 7), c = ip(2, 8), r = ip(1, 253);

	assert_false(proxy_allows(&none, &a, &b, 150));
	assert_true(proxy_allows(&p, &a, &b, 100));
	assert_true(proxy_allows(&p, &a, &b, 200));
	assert_false(proxy_allows(&p, &a, &b, 201));
	assert_false(proxy_allows(&p, &a, &b, 99));
	assert_false(proxy_allows(&p, &a, &c, 150));
	assert_false(proxy_allows(&p, &c, &b, 150));
	assert_int_equal(proxy_entry_find(&p, &r, 5), 1);
	assert_int_equal(proxy_entry_find(&p, &r, 6), -1);
	assert_int_equal(proxy_entry_find(&p, &a, 5), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bad_configurations),
	    cmocka_unit_test(an_open_link_comes_first),
	    cmocka_unit_test(aliases_are_unique_and_run_out),
	    cmocka_unit_test(limits),
	    cmocka_unit_test(half_open_of_one_host),
	    cmocka_unit_test(ages),
	    cmocka_unit_test(idle_among_busy),
	    cmocka_unit_test(unanswered_dreq),
	    cmocka_unit_test(late_packets_of_a_closed_link),
	    cmocka_unit_test(random_against_model),
	    cmocka_unit_test(states),
	    cmocka_unit_test(policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
