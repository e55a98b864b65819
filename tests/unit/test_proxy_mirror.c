/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of relays: the standby's table becomes that of the relay that serves, whatever changes,
 * comes late, or is lost with a process; and nobody takes a link for told that is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/journal.h"
#include "proxy/mirror_int.h"
#include "tests/lib/rng.h"

#define LINKS 2048
#define FEW   64
#define QUEUE 4096

struct msg {
	uint32_t len;
	uint8_t bytes[PROXY_MIRROR_LEN];
};

/* A relay and what is under way to it. */
struct relay {
	struct proxy_edge edge;
	struct proxy_mirror mirror;
	struct proxy_policy policy;
	struct msg queue[QUEUE];
	unsigned queued;
	unsigned room; /* messages that it may send now */
};

static struct relay *r[2];
static struct proxy_acl acl;
static rwy_time now;
static uint32_t round_no, links_max;

static struct rwy_ip ip(uint8_t net, uint8_t h)
{
	return rwy_ip_from4((const uint8_t[]){10, 0, net, h});
}

static bool send(void *ctx, const uint8_t *bytes, uint32_t len)
{
	struct relay *from = ctx, *to = from == r[0] ? r[1] : r[0];

	assert_true(len <= PROXY_MIRROR_LEN);
	if (!from->room || to->queued == QUEUE)
		return false;
	from->room--;
	to->queue[to->queued].len = len;
	memcpy(to->queue[to->queued++].bytes, bytes, len);
	return true;
}

static void begin(unsigned i)
{
	struct proxy_map_cfg cfg;

	proxy_map_cfg_default(&cfg);
	cfg.links_max = links_max;
	cfg.half_open_max = cfg.source_max = links_max;
	r[i]->policy = (struct proxy_policy){.addr = {ip(1, 254)}, .addrs = 1, .acl = &acl, .acls = 1};
	proxy_mirror_init(&r[i]->mirror, &r[i]->edge, &cfg);
	r[i]->mirror.send = send;
	r[i]->mirror.ctx = r[i];
	r[i]->room = UINT32_MAX;
	r[i]->queued = 0;
	assert_int_equal(proxy_edge_init(&r[i]->edge, &r[i]->policy, &cfg), 0);
}

static void die(unsigned i)
{
	proxy_edge_fini(&r[i]->edge);
	r[!i]->queued = 0; /* what is under way is of another epoch, or another round's */
	begin(i);
}

static int set_up_with(uint32_t n)
{
	links_max = n;
	now = RWY_SEC;
	round_no = 1;
	acl = (struct proxy_acl){{ip(1, 0), 120}, {ip(2, 0), 120}, 1, 65535};
	for (unsigned i = 0; i < 2; i++) {
		r[i] = calloc(1, sizeof(*r[i]));
		assert_non_null(r[i]);
		begin(i);
	}
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(LINKS);
}

/* The tables are often full. */
static int set_up_small(void **state)
{
	return set_up_with(FEW);
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		proxy_edge_fini(&r[i]->edge);
		free(r[i]);
	}
	return 0;
}

/* One turn of both: relay `active` serves. */
static void turn(unsigned active)
{
	for (unsigned i = 0; i < 2; i++)
		proxy_mirror_turn(&r[i]->mirror, i == active ? round_no : 0, now);
	for (unsigned i = 0; i < 2; i++) {
		const unsigned n = r[i]->queued;

		for (unsigned k = 0; k < n; k++)
			proxy_mirror_hear(
			    &r[i]->mirror, r[i]->queue[k].bytes, r[i]->queue[k].len, i == active, now);
		r[i]->queued = 0;
	}
	now += RWY_MS;
}

static void turns(unsigned active, unsigned n)
{
	while (n--)
		turn(active);
}

static struct proxy_link *find(unsigned i, uint32_t comm)
{
	const struct proxy_cm_key k = {ip(1, 1), ip(1, 254), comm, true};

	return proxy_map_cm_in(r[i]->edge.map, &k);
}

static struct proxy_link *asked(unsigned i, uint32_t comm)
{
	const struct proxy_link t = {.local = ip(1, 1),
	    .remote = ip(2, 1),
	    .relay = ip(1, 254),
	    .comm_a = comm,
	    .tid = 1000 + comm,
	    .id = comm,
	    .port = 7000,
	    .entry = PROXY_NIL,
	    .local_active = true};
	struct proxy_link *l = NULL;

	assert_int_equal(proxy_map_add(r[i]->edge.map, &t, &l, now), PROXY_LINK_OK);
	proxy_map_local_qpn(r[i]->edge.map, l, 16 + comm);
	proxy_map_note(r[i]->edge.map, l);
	return l;
}

static void opened(unsigned i, struct proxy_link *l)
{
	assert_int_equal(proxy_map_alias(r[i]->edge.map, l), 0);
	l->rqpn = 5000 + l->comm_a;
	l->comm_b = 9;
	proxy_map_state(r[i]->edge.map, l, PROXY_REP_SEEN, now);
	proxy_map_note(r[i]->edge.map, l);
}

static void state(unsigned i, struct proxy_link *l, enum proxy_state s)
{
	proxy_map_state(r[i]->edge.map, l, s, now);
	proxy_map_note(r[i]->edge.map, l);
}

static unsigned links(unsigned i)
{
	uint32_t cursor = 0;
	unsigned n = 0;

	while (proxy_map_next(r[i]->edge.map, &cursor))
		n++;
	return n;
}

/* Both tables have the same links, by every index. */
static void assert_same(void)
{
	struct proxy_map_now a, b;
	struct proxy_link *l;
	uint32_t cursor = 0;

	assert_int_equal(links(0), links(1));
	proxy_map_count(r[0]->edge.map, &a);
	proxy_map_count(r[1]->edge.map, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	while ((l = proxy_map_next(r[0]->edge.map, &cursor))) {
		struct proxy_link *x = find(1, l->comm_a);
		struct proxy_record was, is;

		assert_non_null(x);
		proxy_record_of(&was, l);
		proxy_record_of(&is, x);
		assert_memory_equal(&was, &is, sizeof(is));
		if (l->alias)
			assert_ptr_equal(proxy_map_in(r[1]->edge.map, &l->relay, l->alias), x);
		if (l->lqpn)
			assert_int_equal(
			    proxy_map_out(r[1]->edge.map, &l->remote, &l->local, l->lqpn)->id, l->id);
	}
}

static void told_before_a_host_is(void **state_)
{
	struct proxy_link *l = asked(0, 1);

	assert_false(proxy_mirror_whole(&r[0]->mirror, round_no));
	assert_false(proxy_mirror_has(&r[0]->mirror, l));
	turns(0, 3);
	assert_true(proxy_mirror_whole(&r[0]->mirror, round_no));
	assert_true(proxy_mirror_has(&r[0]->mirror, l));
	opened(0, l);
	assert_false(proxy_mirror_has(&r[0]->mirror, l));
	proxy_mirror_turn(&r[0]->mirror, round_no, now); /* under way is not there */
	assert_false(proxy_mirror_has(&r[0]->mirror, l));
	turns(0, 2);
	assert_true(proxy_mirror_has(&r[0]->mirror, l));
	assert_int_equal(find(1, 1)->alias, l->alias);
	assert_same();
	assert_false(proxy_mirror_whole(&r[0]->mirror, round_no + 1));
}

static void a_standby_that_comes_late(void **state_)
{
	for (uint32_t i = 1; i <= LINKS; i++)
		opened(0, asked(0, i));
	assert_int_equal(links(1), 0);
	for (unsigned n = 0; !proxy_mirror_whole(&r[0]->mirror, round_no); n++) {
		assert_true(n < 100);
		turn(0);
	}
	assert_same();
	die(1);
	round_no++;
	for (uint32_t i = 1; i <= 100; i++)
		proxy_map_remove(r[0]->edge.map, find(0, i));
	turn(0);
	assert_false(proxy_mirror_whole(&r[0]->mirror, round_no));
	turns(0, 60);
	assert_true(proxy_mirror_whole(&r[0]->mirror, round_no));
	assert_same();
}

/* It keeps what it has while another round goes on, and forgets what is not told in it. */
static void a_round_removes_what_is_gone(void **state_)
{
	for (uint32_t i = 1; i <= 10; i++)
		opened(0, asked(0, i));
	turns(0, 5);
	round_no = 0; /* no standby, for the one that serves */
	turn(0);
	proxy_map_remove(r[0]->edge.map, find(0, 3));
	round_no = 2;
	turn(0);
	assert_non_null(find(1, 3));
	turns(0, 5);
	assert_null(find(1, 3));
	assert_same();
}

static void takes_over_and_back(void **state_)
{
	for (uint32_t i = 1; i <= 20; i++)
		opened(0, asked(0, i));
	turns(0, 5);
	die(0);
	round_no = 1; /* of the other process */
	opened(1, asked(1, 50));
	state(1, find(1, 4), PROXY_DISCONNECTING);
	turns(1, 8);
	assert_true(proxy_mirror_whole(&r[1]->mirror, round_no));
	assert_int_equal(links(0), 21);
	assert_same();
	die(1);
	turns(0, 8);
	assert_same();
}

/*
 * A relay serves for long, says many messages, and then is the standby of the other one, whose
 * process is new. What that one does not tell goes.
 */
static void a_standby_that_served(void **state_)
{
	for (uint32_t n = 0; n < 10; n++) {
		for (uint32_t i = 0; i < 20; i++)
			opened(0, asked(0, 100 * n + i));
		turns(0, 20);
	}
	die(1);
	round_no++;
	opened(1, asked(1, 5000));
	turns(1, 50);
	assert_same();
	assert_int_equal(links(0), 1);
}

/* While nothing can be sent nothing counts as told; then all is. */
static void nothing_can_be_sent(void **state_)
{
	struct proxy_link *l;

	turns(0, 3);
	r[0]->room = 0;
	for (uint32_t i = 1; i <= PROXY_MIRROR_GONE + 2 * PROXY_MIRROR_RING; i++)
		opened(0, asked(0, i));
	for (uint32_t i = 1; i <= PROXY_MIRROR_GONE + 1; i++)
		proxy_map_remove(r[0]->edge.map, find(0, i));
	turns(0, 5);
	l = find(0, PROXY_MIRROR_GONE + 2);
	assert_false(proxy_mirror_has(&r[0]->mirror, l));
	r[0]->room = UINT32_MAX;
	turns(0, 30);
	assert_true(proxy_mirror_has(&r[0]->mirror, l));
	assert_same();
}

/* A message is lost, with the flow that it was in: no later one is taken, until all is told again. */
static void a_message_is_lost(void **state_)
{
	struct proxy_link *l;

	turns(0, 3);
	l = asked(0, 1);
	proxy_mirror_turn(&r[0]->mirror, round_no, now);
	r[1]->queued = 0;
	opened(0, asked(0, 2));
	turns(0, 5);
	assert_int_equal(links(1), 0);
	assert_true(r[1]->edge.c.drop_told_gap > 0);
	assert_false(proxy_mirror_has(&r[0]->mirror, l) || proxy_mirror_has(&r[0]->mirror, find(0, 2)));
	now += RWY_SEC;
	turns(0, 6);
	assert_true(proxy_mirror_has(&r[0]->mirror, l) && proxy_mirror_has(&r[0]->mirror, find(0, 2)));
	assert_same();
}

/* The queue pair's newest link stays the first that is found. */
static void an_older_link_changes_last(void **state_)
{
	struct proxy_link *old = asked(0, 1), *young = asked(0, 2);

	opened(0, old);
	opened(0, young);
	proxy_map_local_qpn(r[0]->edge.map, young, old->lqpn);
	proxy_map_note(r[0]->edge.map, young);
	turns(0, 4);
	state(0, old, PROXY_CLOSED);
	turns(0, 3);
	assert_int_equal(proxy_map_out(r[1]->edge.map, &old->remote, &old->local, old->lqpn)->id, 2);
	assert_int_equal(find(1, 1)->state, PROXY_CLOSED);
}

static void what_the_standby_does_not_allow(void **state_)
{
	static struct proxy_acl other;

	other = (struct proxy_acl){{ip(1, 0), 120}, {ip(3, 0), 120}, 1, 65535};
	r[1]->policy.acl = &other;
	opened(0, asked(0, 1));
	turns(0, 4);
	assert_int_equal(links(1), 0);
	assert_int_equal(r[1]->edge.c.links_unfit, 1);
	assert_true(proxy_mirror_whole(&r[0]->mirror, round_no)); /* nobody waits for that */
}

/* Any bytes: counted, and nothing else happens. One that serves takes no links. */
static void malformed(void **state_)
{
	uint8_t good[PROXY_MIRROR_LEN], bad[PROXY_MIRROR_LEN];
	uint64_t rng = 3;

	turns(0, 3);
	proxy_mirror_write(good, PROXY_MIRROR_LINK, 3, asked(0, 1));
	for (uint32_t len = 0; len < sizeof(good); len++)
		proxy_mirror_hear(&r[1]->mirror, good, len, false, now);
	assert_int_equal(r[1]->edge.c.drop_told_malformed, sizeof(good));
	proxy_mirror_hear(&r[1]->mirror, good, sizeof(good), true, now);
	assert_int_equal(links(1), 0);
	for (unsigned i = 0; i < 20000; i++) {
		memcpy(bad, good, sizeof(bad));
		for (unsigned k = 1 + (unsigned)(rng_next(&rng) % 3); k--;)
			bad[rng_next(&rng) % sizeof(bad)] = (uint8_t)rng_next(&rng);
		proxy_mirror_number(bad, r[1]->mirror.heard + 1);
		proxy_mirror_hear(&r[1]->mirror, bad, i % 7 ? sizeof(bad) : 16, false, now);
		if (i % 64 == 0)
			proxy_mirror_turn(&r[1]->mirror, 0, now);
		r[0]->queued = 0;
	}
	assert_true(links(1) <= links_max);
}

/* Everything in turn, with deaths and losses: what counts as told is there, and all is in the end. */
static void whatever_happens(void **state_)
{
	uint64_t rng = 9;
	uint32_t next = 1;

	for (unsigned step = 0; step < 20000; step++) {
		const unsigned what = (unsigned)(rng_next(&rng) % 100);
		const uint32_t comm = 1 + (uint32_t)(rng_next(&rng) % next);
		struct proxy_link *l = find(0, comm);
		uint32_t cursor = 0;

		if (what < 30 && links(0) < links_max) {
			asked(0, next++);
		} else if (what < 50 && l && l->state == PROXY_REQ_SEEN) {
			opened(0, l);
		} else if (what < 60 && l && l->state == PROXY_REP_SEEN) {
			state(0, l, PROXY_ESTABLISHED);
		} else if (what < 75 && l) {
			state(0, l, PROXY_CLOSED);
		} else if (what < 80 && l) {
			proxy_map_remove(r[0]->edge.map, l);
		} else if (what == 80) {
			proxy_mirror_turn(&r[0]->mirror, round_no, now);
			r[1]->queued = 0;
		} else if (what == 81) {
			r[0]->room = (unsigned)(rng_next(&rng) % 5);
		} else if (what == 82) {
			r[0]->room = UINT32_MAX;
		} else if (what == 83 && step % 4 == 0) {
			die(1);
			round_no++;
		} else if (what == 84) {
			now += RWY_SEC;
		} else {
			turn(0);
		}
		while (step % 16 == 0 && (l = proxy_map_next(r[0]->edge.map, &cursor)))
			if (proxy_mirror_has(&r[0]->mirror, l) && r[0]->mirror.round == round_no) {
				struct proxy_link *x = find(1, l->comm_a);

				assert_true(
				    x && x->alias == l->alias && x->state == l->state && x->rqpn == l->rqpn);
			}
	}
	r[0]->room = UINT32_MAX;
	turns(0, 50);
	now += 2 * RWY_SEC;
	turns(0, 50);
	assert_same();
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(told_before_a_host_is),
	    CASE(a_standby_that_comes_late),
	    CASE(a_round_removes_what_is_gone),
	    CASE(takes_over_and_back),
	    CASE(a_standby_that_served),
	    CASE(nothing_can_be_sent),
	    CASE(a_message_is_lost),
	    CASE(an_older_link_changes_last),
	    CASE(what_the_standby_does_not_allow),
	    CASE(malformed),
	    CASE(whatever_happens),
	    cmocka_unit_test_setup_teardown(whatever_happens, set_up_small, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
