/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that outlive the process (proxy/journal.h): what an edge noted, another one takes over, as
 * far as it is whole, makes sense, and the configuration still allows it. Other cases run with a
 * relay that starts again between any two messages: test_proxy_cm.c, test_proxy_world.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/edge.h"
#include "proxy/journal.h"
#include "tests/lib/rng.h"

#define LINKS 32
#define PORT  7000

static struct proxy_record journal[2 * LINKS], before[2 * LINKS];
static struct proxy_map_cfg cfg;
static struct proxy_policy policy;
static struct proxy_acl acl;
static struct proxy_entry entry;
static struct proxy_edge edge;
static rwy_time now;

static struct rwy_ip ip(uint8_t net, uint8_t h)
{
	return rwy_ip_from4((const uint8_t[]){10, 0, net, h});
}

static void begin(void)
{
	assert_int_equal(proxy_edge_init(&edge, &policy, &cfg), 0);
	assert_int_equal(proxy_edge_restore(&edge, now), 0);
}

/* The process dies; the next one has the journal alone. */
static void die_and_begin(void)
{
	proxy_edge_fini(&edge);
	now += RWY_SEC;
	begin();
}

static int set_up(void **state)
{
	memset(journal, 0, sizeof(journal));
	now = RWY_SEC;
	acl = (struct proxy_acl){{ip(1, 0), 120}, {ip(2, 0), 120}, 1, 65535};
	entry = (struct proxy_entry){
	    .name = "e", .listen = ip(1, 254), .port = PORT, .target = ip(2, 1), .target_port = PORT + 1};
	policy = (struct proxy_policy){
	    .addr = {ip(1, 254)}, .addrs = 1, .acl = &acl, .acls = 1, .entry = &entry, .entries = 1};
	proxy_map_cfg_default(&cfg);
	cfg.links_max = LINKS;
	cfg.half_open_max = cfg.source_max = LINKS;
	cfg.journal = journal;
	begin();
	return 0;
}

static int tear_down(void **state)
{
	proxy_edge_fini(&edge);
	return 0;
}

static struct proxy_link tmpl(uint32_t comm)
{
	return (struct proxy_link){.local = ip(1, 1),
	    .remote = ip(2, 1),
	    .relay = ip(1, 254),
	    .comm_a = comm,
	    .tid = 100 + comm,
	    .ca_guid = 200 + comm,
	    .id = 300 + comm,
	    .asked_port = PORT,
	    .port = PORT + 1,
	    .entry = 0,
	    .local_active = true};
}

static struct proxy_link *add(const struct proxy_link *t, uint32_t lqpn)
{
	struct proxy_link *l = NULL;

	assert_int_equal(proxy_map_add(edge.map, t, &l, now), PROXY_LINK_OK);
	proxy_map_local_qpn(edge.map, l, lqpn);
	proxy_map_note(edge.map, l);
	return l;
}

static void open_it(struct proxy_link *l, uint32_t rqpn)
{
	assert_int_equal(proxy_map_alias(edge.map, l), 0);
	l->rqpn = rqpn;
	l->comm_b = 1000 + l->comm_a;
	proxy_map_state(edge.map, l, PROXY_ESTABLISHED, now);
	proxy_map_note(edge.map, l);
}

static struct proxy_link *opened(uint32_t comm)
{
	const struct proxy_link t = tmpl(comm);
	struct proxy_link *l = add(&t, 16 + comm);

	open_it(l, 64 + comm);
	return l;
}

static struct proxy_link *find(uint32_t comm)
{
	const struct proxy_cm_key k = {ip(1, 1), ip(1, 254), comm, true};

	return proxy_map_cm_in(edge.map, &k);
}

static unsigned links(void)
{
	uint32_t cursor = 0;
	unsigned n = 0;

	while (proxy_map_next(edge.map, &cursor))
		n++;
	return n;
}

static void assert_restored(unsigned n, unsigned unfit, unsigned broken)
{
	assert_int_equal(edge.c.links_restored, n);
	assert_int_equal(edge.c.links_unfit, unfit);
	assert_int_equal(edge.c.links_broken, broken);
	assert_int_equal(links(), n);
}

static void every_field_and_index(void **state)
{
	struct proxy_link t = tmpl(1), was, *l;

	t.once = true;
	l = add(&t, 17);
	open_it(l, 18);
	was = *l;
	die_and_begin();
	assert_restored(1, 0, 0);
	l = proxy_map_in(edge.map, &was.relay, was.alias);
	assert_non_null(l);
	assert_ptr_equal(proxy_map_out(edge.map, &was.remote, &was.local, 17), l);
	assert_ptr_equal(find(1), l);
	assert_ptr_equal(
	    proxy_map_cm_out(edge.map, &(struct proxy_cm_key){was.remote, was.local, 1, true}), l);
	assert_int_equal(l->state, PROXY_ESTABLISHED);
	assert_int_equal(l->lqpn, 17);
	assert_int_equal(l->rqpn, 18);
	assert_int_equal(l->comm_b, 1001);
	assert_int_equal(l->tid, 101);
	assert_int_equal(l->ca_guid, 201);
	assert_int_equal(l->id, 301);
	assert_int_equal(l->asked_port, PORT);
	assert_int_equal(l->port, PORT + 1);
	assert_int_equal(l->entry, 0);
	assert_true(l->once && l->local_active && !l->pair);
	assert_int_equal(proxy_map_of_entry(edge.map, 0), 1);
}

/* Lists by state: counted, aged and removed as in the process before. */
static void states_and_times(void **state)
{
	struct proxy_link t = tmpl(1);
	struct proxy_map_now n;

	add(&t, 17);
	opened(2);
	proxy_map_state(edge.map, opened(3), PROXY_DISCONNECTING, now);
	proxy_map_note(edge.map, find(3));
	proxy_map_state(edge.map, opened(4), PROXY_CLOSED, now);
	proxy_map_note(edge.map, find(4));
	t = (struct proxy_link){.local = ip(1, 2),
	    .remote = ip(2, 2),
	    .relay = ip(1, 254),
	    .entry = PROXY_NIL,
	    .local_active = true,
	    .pair = true};
	open_it(add(&t, 5), 6);
	die_and_begin();
	assert_restored(5, 0, 0);
	proxy_map_count(edge.map, &n);
	assert_int_equal(n.half_open, 1);
	assert_int_equal(n.open, 3);
	assert_int_equal(n.closed, 1);
	assert_true(proxy_map_out(edge.map, &t.remote, &t.local, 5)->pair);
	now += 36 * RWY_SEC; /* less than half-open and closed links have, more than ending ones */
	proxy_edge_tick(&edge, now);
	assert_int_equal(links(), 4);
	assert_null(find(3));
	now += 35 * RWY_SEC;
	proxy_edge_tick(&edge, now);
	assert_int_equal(links(), 2);
	die_and_begin(); /* those are not in the journal any more */
	assert_restored(2, 0, 0);
}

static void removed_is_gone(void **state)
{
	for (uint32_t i = 1; i <= 8; i++)
		opened(i);
	for (uint32_t i = 1; i <= 8; i += 2)
		proxy_map_remove(edge.map, find(i));
	die_and_begin();
	assert_restored(4, 0, 0);
	for (uint32_t i = 1; i <= 8; i++)
		assert_int_equal(find(i) != NULL, i % 2 == 0);
	for (uint32_t i = 1; i <= 8; i += 2) /* their places are used again */
		opened(i);
	die_and_begin();
	assert_restored(8, 0, 0);
	for (uint32_t i = 1; i <= 8; i++)
		assert_int_equal(find(i)->lqpn, 16 + i);
}

/* A queue pair's newest link is found, also when an older one was changed last. */
static void newest_of_a_queue_pair(void **state)
{
	struct proxy_link t = tmpl(1), *old = add(&t, 17), *young;

	open_it(old, 18);
	t.comm_a = 2;
	young = add(&t, 17);
	open_it(young, 19);
	proxy_map_state(edge.map, old, PROXY_CLOSED, now);
	proxy_map_note(edge.map, old);
	assert_int_equal(proxy_map_out(edge.map, &t.remote, &t.local, 17)->rqpn, 19);
	die_and_begin();
	assert_int_equal(proxy_map_out(edge.map, &t.remote, &t.local, 17)->rqpn, 19);
}

static void aliases_stay_unique(void **state)
{
	uint32_t alias[LINKS];

	for (uint32_t i = 0; i < LINKS / 2; i++)
		alias[i] = opened(i + 1)->alias;
	die_and_begin();
	for (uint32_t i = LINKS / 2; i < LINKS; i++)
		alias[i] = opened(i + 1)->alias;
	for (uint32_t i = 0; i < LINKS; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_int_not_equal(alias[i], alias[k]);
}

static void relay_address_is_gone(void **state)
{
	opened(1);
	policy.addr[0] = ip(1, 253);
	die_and_begin();
	assert_restored(0, 1, 0);
	policy.addr[0] = ip(1, 254);
	die_and_begin(); /* not in the journal any more */
	assert_restored(0, 0, 0);
}

static void not_allowed_any_more(void **state)
{
	struct proxy_link t = tmpl(2);

	opened(1);
	t.port = 9000;
	add(&t, 18);
	t = (struct proxy_link){.local = ip(1, 2),
	    .remote = ip(2, 2),
	    .relay = ip(1, 254),
	    .entry = PROXY_NIL,
	    .local_active = true,
	    .pair = true};
	open_it(add(&t, 5), 6);
	acl.port_lo = 8000; /* one port of the two; and no pairs */
	die_and_begin();
	assert_restored(1, 2, 0);
	assert_null(find(1));
	assert_non_null(find(2));
	/* The entry of the listen map is not asked: the link goes on, as after `roceway map`. */
	acl.port_lo = 1;
	opened(3);
	entry.target = ip(2, 99);
	die_and_begin();
	assert_restored(2, 0, 0);
	assert_int_equal(find(3)->entry, PROXY_NIL);
	assert_int_equal(proxy_map_of_entry(edge.map, 0), 0);
}

/* A record is torn at any byte: the one before it counts, and the change has not been told. */
static void torn(void **state)
{
	struct proxy_link *l = opened(1);
	const unsigned place = (unsigned)(l - edge.view.links) * 2;
	struct proxy_record after;
	bool whole = false;
	unsigned to;

	memcpy(before, journal, sizeof(journal));
	proxy_map_state(edge.map, l, PROXY_DISCONNECTING, now);
	proxy_map_note(edge.map, l);
	to = (unsigned)proxy_record_latest(&journal[place]);
	after = journal[place + to];
	assert_memory_equal(&journal[place + !to], &before[place + !to], sizeof(after));
	for (unsigned cut = 0; cut <= sizeof(after); cut++) {
		memcpy(journal, before, sizeof(journal));
		memcpy(&journal[place + to], &after, cut);
		whole = !memcmp(&journal[place + to], &after, sizeof(after)); /* it ends with zeros */
		die_and_begin();
		assert_restored(1, 0, 0);
		assert_int_equal(find(1)->state, whole ? PROXY_DISCONNECTING : PROXY_ESTABLISHED);
	}
	assert_true(whole);
}

/* Any byte of the only record is another one: there is no link, and one broken record. */
static void damaged(void **state)
{
	struct proxy_link t = tmpl(1);
	const unsigned place = (unsigned)(add(&t, 17) - edge.view.links) * 2;

	memcpy(before, journal, sizeof(journal));
	for (unsigned i = 0; i < sizeof(*journal); i++) {
		memcpy(journal, before, sizeof(journal));
		((uint8_t *)&journal[place])[i] ^= 0x40;
		die_and_begin();
		assert_restored(0, 0, 1);
	}
}

/* Whole records whose fields make no sense, or contradict each other. */
static void senseless(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
	    {offsetof(struct proxy_record, state), PROXY_FREE},
	    {offsetof(struct proxy_record, state), PROXY_STATE_COUNT},
	    {offsetof(struct proxy_record, pair), 2},
	    {offsetof(struct proxy_record, once), 255},
	    {offsetof(struct proxy_record, local_active), 7},
	    {offsetof(struct proxy_record, relay), 0xfd},  /* another family */
	    {offsetof(struct proxy_record, alias) + 3, 1}, /* more than 24 bits */
	    {offsetof(struct proxy_record, lqpn) + 3, 1},
	    {offsetof(struct proxy_record, rqpn) + 3, 1},
	};
	const unsigned place = (unsigned)(opened(1) - edge.view.links) * 2;
	const unsigned k = (unsigned)proxy_record_latest(&journal[place]);

	memcpy(before, journal, sizeof(journal));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct proxy_record *r = &journal[place + k];

		memcpy(journal, before, sizeof(journal));
		((uint8_t *)r)[wrong[i].at] = wrong[i].value;
		proxy_record_seal(r, r->seq, r->born);
		die_and_begin();
		assert_restored(0, 0, 1);
	}
	/* The same link twice. */
	memcpy(journal, before, sizeof(journal));
	memcpy(&journal[place ? 0 : 2], &before[place], 2 * sizeof(*journal));
	die_and_begin();
	assert_restored(1, 0, 1);
}

/* Any bytes may be in the file: nothing crashes, and the table works. */
static void anything(void **state)
{
	uint64_t rng = 5;

	for (unsigned round = 0; round < 300; round++) {
		for (unsigned i = 0; i < 2 * LINKS; i++) {
			struct proxy_record *r = &journal[i];
			struct proxy_link t = tmpl((uint32_t)rng_next(&rng) % 8);

			t.lqpn = 16 + (uint32_t)rng_next(&rng) % 4;
			t.rqpn = (uint32_t)rng_next(&rng) % 4;
			t.alias = (uint32_t)rng_next(&rng) % 64;
			t.state = (uint8_t)(rng_next(&rng) % 8);
			t.pair = rng_next(&rng) % 4 == 0;
			proxy_record_of(r, &t);
			if (rng_next(&rng) % 4 == 0)
				((uint8_t *)r)[rng_next(&rng) % sizeof(*r)] = (uint8_t)rng_next(&rng);
			proxy_record_seal(r, (uint32_t)rng_next(&rng) % 3, rng_next(&rng));
			if (rng_next(&rng) % 8 == 0)
				((uint8_t *)r)[rng_next(&rng) % sizeof(*r)] ^= 1;
		}
		die_and_begin();
		assert_true(links() == edge.c.links_restored && links() > 0);
		assert_true(links() + edge.c.links_unfit + edge.c.links_broken <= LINKS);
		for (uint32_t i = 100; i < 100 + 2 * LINKS; i++) {
			struct proxy_link t = tmpl(i), *l;

			if (proxy_map_add(edge.map, &t, &l, now) != PROXY_LINK_OK)
				continue;
			proxy_map_local_qpn(edge.map, l, 17);
			open_it(l, 9);
		}
		now += 100 * RWY_SEC;
		for (unsigned i = 0; i < 4; i++)
			proxy_edge_tick(&edge, now);
		die_and_begin();
		assert_int_equal(edge.c.links_broken + edge.c.links_unfit, 0);
	}
}

/* A table of another size takes what it has room for. */
static void another_size(void **state)
{
	struct proxy_record fresh[2 * LINKS] = {0};
	uint32_t left;

	for (uint32_t i = 1; i <= 12; i++)
		opened(i);
	for (uint32_t i = 1; i <= 4; i++)
		proxy_map_remove(edge.map, find(i));
	left = proxy_journal_take(fresh, 6, journal, LINKS);
	assert_int_equal(left, 2);
	cfg.links_max = 6;
	cfg.journal = fresh;
	die_and_begin();
	assert_restored(6, 0, 0);
	assert_true(proxy_journal_any(fresh, 6));
	for (uint32_t i = 5; i <= 12; i++)
		if (find(i))
			proxy_map_remove(edge.map, find(i));
	assert_false(proxy_journal_any(fresh, 6));
	cfg.links_max = LINKS;
	cfg.journal = journal;
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(every_field_and_index),
	    CASE(states_and_times),
	    CASE(removed_is_gone),
	    CASE(newest_of_a_queue_pair),
	    CASE(aliases_stay_unique),
	    CASE(relay_address_is_gone),
	    CASE(not_allowed_any_more),
	    CASE(torn),
	    CASE(damaged),
	    CASE(senseless),
	    CASE(anything),
	    CASE(another_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
