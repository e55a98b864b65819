/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway/control/tenants.h with workers that the test controls: updates of engines and their order
 * relative to publication; every possible refusal leaves everything unchanged; VNIs that move
 * between tenants; a removed tenant's index is not reused while any worker holds data of it.
 */
#include "engine/tenants.h"
#include "tests/lib/gw/fake.h"

#include <limits.h>

static struct gw_tenants_done done;
static struct conf_error err;

static int set_up(void **state)
{
	fake_new(3);
	return gw_tenants_new(&fake.app);
}

static int tear_down(void **state)
{
	fake_end();
	return 0;
}

static const struct tenant *named(const char *name)
{
	return tenant_by_name(gw_tenants_of(&fake.app), name);
}

static struct eng *eng_of(unsigned worker)
{
	return fake.app.worker[worker]->eng;
}

static void add(const char *name, uint32_t vni)
{
	struct conf_tenant t = fake_tenant(name, vni);

	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), 0);
}

/* Every engine has exactly the tenants of the set. */
static void engines_agree(void)
{
	const struct tenant_set *s = gw_tenants_of(&fake.app);

	for (unsigned w = 0; w < fake.app.workers; w++)
		for (uint32_t i = 1; i < 100; i++) {
			const struct tenant *t = tenant_by_index(s, i);
			struct eng_tenant *e = eng_tenant(eng_of(w), i);

			assert_int_equal(t != NULL, e != NULL);
			if (!t)
				continue;
			assert_int_equal(e->cfg.vni, t->cfg.vni);
			assert_int_equal(eng_tenant_by_vni(eng_of(w), t->cfg.vni), i);
			assert_int_equal(e->cfg.share.weight, t->cfg.weight);
			assert_int_equal(e->cfg.ack_mode, t->cfg.ack_mode);
		}
}

/* --- changes ------------------------------------------------------------------------------------------ */

static void test_first_set(void **state)
{
	struct conf_tenant t[2] = {fake_tenant("red", 1), fake_tenant("blue", 2)};

	gw_tenants_free(&fake.app);
	fake.conf.tenant = t;
	fake.conf.tenants = 2;
	assert_int_equal(gw_tenants_new(&fake.app), 0);
	assert_int_equal(gw_tenants_of(&fake.app)->n, 2);
	fake_workers(FAKE_TUNNELS, NULL, 0);
	engines_agree();
	assert_non_null(eng_tenant(eng_of(2), named("blue")->index));
}

static void test_shares(void **state)
{
	struct conf_tenant t = fake_tenant("red", 7);
	const struct eng_tenant_cfg *c;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	t.cfg.guarantee_Bps = 300000;
	t.cfg.limit_Bps = 900000;
	t.cfg.weight = 5;
	t.cfg.memory_ppm = 250000;
	t.cfg.ack_mode = TENANT_ACK_END;
	t.cfg.timers = (struct tenant_timers){RWY_MS, 2 * RWY_MS, 3, 4};
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), 0);
	assert_int_equal(done.added, 1);
	assert_int_equal(done.generation, 2);
	engines_agree();
	c = &eng_tenant(eng_of(1), 1)->cfg;
	assert_int_equal(c->timers.timeout_min, RWY_MS);
	assert_int_equal(c->timers.timeout_max, 2 * RWY_MS);
	assert_int_equal(c->timers.retry, 3);
	assert_int_equal(c->timers.rnr_retry, 4);
	assert_int_equal(c->share.guarantee_Bps, 100000);
	assert_int_equal(c->share.limit_Bps, 300000);
	assert_int_equal(c->reserve, FAKE_CUSTODY / 4);
	assert_int_equal(c->prefixes, 2); /* those behind tunnels */
	assert_int_equal(c->prefix[1].tunnel, 1);
	/* The least share of a worker. */
	t.cfg.guarantee_Bps = 1500;
	t.cfg.limit_Bps = 2000;
	t.cfg.memory_ppm = 0;
	assert_int_equal(gw_tenant_set(&fake.app, &t, &done, &err), 0);
	assert_int_equal(done.changed, 1);
	assert_int_equal(eng_tenant(eng_of(0), 1)->cfg.share.guarantee_Bps, WAN_RATE_MIN);
	assert_int_equal(eng_tenant(eng_of(0), 1)->cfg.share.limit_Bps, WAN_RATE_MIN);
	assert_int_equal(eng_tenant(eng_of(0), 1)->cfg.reserve, 0);
	/* The same again is no change. */
	assert_int_equal(gw_tenant_set(&fake.app, &t, &done, &err), 0);
	assert_int_equal(done.changed, 0);
	assert_int_equal(done.same, 1);
	assert_int_equal(done.generation, 3);
	assert_int_equal(gw_tenants_of(&fake.app)->generation, 3);
}

static void test_refusals(void **state)
{
	struct conf_tenant t = fake_tenant("red", 7), all[3];
	uint64_t published, running;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	add("red", 7);
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EEXIST);
	assert_int_equal(err.line, 7);
	assert_string_equal(err.file, "gw.yaml");
	t = fake_tenant("blue", 7);
	t.line = 0;
	assert_int_equal(gw_tenant_set(&fake.app, &t, &done, &err), RWY_ENOENT);
	assert_int_equal(err.line, 0);
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "blue: another tenant has this VNI: red"));
	assert_int_equal(gw_tenant_del(&fake.app, "blue", &done, &err), RWY_ENOENT);
	t = fake_tenant("blue", 0);
	t.cfg.vlan = 9;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "VNI"));
	t = fake_tenant("blue", 8);
	t.cfg.guarantee_Bps = FAKE_RATE + 1;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "site-b"));
	for (unsigned i = 0; i < 3; i++)
		all[i] = fake_tenant("abc\0\0bcd" + i, 20 + i);
	all[2].cfg.vni = 20;
	assert_int_equal(gw_tenants_replace(&fake.app, all, 3, &done, &err), RWY_EINVAL);
	assert_int_equal(err.line, 22);
	gw_tenants_generation(&fake.app, &published, &running);
	assert_int_equal(published, 2);
	assert_int_equal(running, 2);
	assert_int_equal(gw_tenants_of(&fake.app)->n, 1);
	engines_agree();
}

/* --- order --------------------------------------------------------------------------------------------- */

static unsigned calls, clears;

/* A tenant is published only after every engine has it. */
static void look_at_call(unsigned worker)
{
	const struct tenant_set *s = gw_tenants_of(&fake.app);

	calls++;
	for (unsigned w = 0; w < fake.app.workers; w++)
		for (uint32_t i = 1; i < s->top; i++)
			if (tenant_by_index(s, i))
				assert_non_null(eng_tenant(eng_of(w), i));
}

/* When hosts are forgotten, no worker admits the tenant any longer. */
static void look_at_clear(unsigned worker, uint32_t index)
{
	clears++;
	assert_null(tenant_by_index(gw_tenants_of(&fake.app), index));
	for (unsigned w = 0; w < fake.app.workers; w++)
		assert_int_equal(
		    atomic_load(&fake.app.worker[w]->ts_gen), gw_tenants_of(&fake.app)->generation);
}

static void test_order(void **state)
{
	struct conf_tenant t[2] = {fake_tenant("green", 3), fake_tenant("blue", 20)};

	fake_workers(FAKE_TUNNELS, NULL, 0);
	fake_on_call = look_at_call;
	fake_on_clear = look_at_clear;
	calls = clears = 0;
	add("red", 1);
	add("blue", 2);
	/* A change is one call to a worker, or several where it took longer than a slice. */
	assert_in_range(calls, 6, UINT_MAX);
	assert_int_equal(clears, 0);
	calls = 0;
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), 0);
	assert_int_equal(done.added, 1);
	assert_int_equal(done.changed, 1);
	assert_int_equal(done.removed, 1);
	assert_in_range(calls, 3 + 3, UINT_MAX); /* the new set, then the removed tenant */
	assert_int_equal(clears, 3);
	engines_agree();
}

/* --- VNIs that move --------------------------------------------------------------------------------------
 */

static void test_vni_moves(void **state)
{
	struct conf_tenant t[3];

	fake_workers(FAKE_TUNNELS, NULL, 0);
	add("red", 1);
	add("blue", 2);
	/* Two tenants exchange theirs. */
	t[0] = fake_tenant("red", 2);
	t[1] = fake_tenant("blue", 1);
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), 0);
	engines_agree();
	assert_int_equal(named("red")->cfg.vni, 2);
	/* A tenant gets another name: its VNI is a new tenant's, while the old one's connections
	 * are forgotten. */
	fake_send(fake.app.worker[1], 1, 0x20, 5);
	t[0] = fake_tenant("rouge", 2);
	t[2] = fake_tenant("green", TENANT_VNI_MAX);
	assert_int_equal(gw_tenants_replace(&fake.app, t, 3, &done, &err), 0);
	assert_int_equal(done.removed, 1);
	assert_int_equal(done.added, 2);
	engines_agree();
	assert_int_not_equal(named("rouge")->index, 1);
	/* And a cycle. */
	t[0] = fake_tenant("rouge", 1);
	t[1] = fake_tenant("blue", TENANT_VNI_MAX);
	t[2] = fake_tenant("green", 2);
	assert_int_equal(gw_tenants_replace(&fake.app, t, 3, &done, &err), 0);
	assert_int_equal(done.changed, 3);
	engines_agree();
	assert_int_equal(gw_tenant_del(&fake.app, "blue", &done, &err), 0);
	add("blau", TENANT_VNI_MAX);
	engines_agree();
}

/* --- workers that fail ------------------------------------------------------------------------ */

/* The last worker's engine lacks a tunnel: it refuses the change that the others have accepted. */
static void test_engine_refuses(void **state)
{
	struct conf_tenant t[3];
	struct tenant_prefix p;

	fake_workers(1, NULL, 0);
	t[0] = fake_tenant("red", 1);
	p = t[0].cfg.prefix[1];
	t[0].cfg.prefix = &p;
	t[0].cfg.prefixes = 1;
	assert_int_equal(gw_tenant_add(&fake.app, &t[0], &done, &err), 0);
	engines_agree();
	t[0].cfg.vni = 2;
	t[1] = fake_tenant("blue", 1);
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), RWY_EINVAL);
	assert_non_null(strstr(err.msg, "worker 2"));
	assert_int_equal(gw_tenants_of(&fake.app)->generation, 2);
	engines_agree();
	/* Two tenants exchange their VNIs, and back. */
	t[1].cfg.vni = 2;
	t[1].cfg.prefix = &p;
	t[1].cfg.prefixes = 1;
	assert_int_equal(gw_tenant_add(&fake.app, &t[1], &done, &err), 0);
	t[1].cfg.vni = 1;
	t[2] = fake_tenant("green", 3);
	assert_int_equal(gw_tenants_replace(&fake.app, t, 3, &done, &err), RWY_EINVAL);
	assert_int_equal(gw_tenants_of(&fake.app)->generation, 3);
	engines_agree();
	t[1] = fake_tenant("blau", 1);
	/* Red is removed and its VNI reused, in the same refused change. */
	assert_int_equal(gw_tenants_replace(&fake.app, &t[1], 1, &done, &err), RWY_EINVAL);
	assert_int_equal(gw_tenants_of(&fake.app)->generation, 3);
	engines_agree();
}

static void test_worker_hangs(void **state)
{
	struct conf_tenant t[2];
	struct gw_worker *w;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	w = fake.app.worker[1];
	add("red", 1);
	add("blue", 2);
	t[0] = fake_tenant("red", 2);
	t[1] = fake_tenant("green", 1);
	w->hung = true;
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), RWY_EAGAIN);
	assert_non_null(strstr(err.msg, "worker 1"));
	w->hung = false;
	engines_agree();
	/* It returns with its earlier state; the next change corrects it. */
	assert_int_equal(
	    eng_tenant_set(w->eng, 1, &(struct eng_tenant_cfg){.vni = 70, .share.weight = 1}, gw_now()), 0);
	assert_int_equal(
	    eng_tenant_set(w->eng, 9, &(struct eng_tenant_cfg){.vni = 1, .share.weight = 1}, gw_now()), 0);
	add("yellow", 3);
	engines_agree();
	/* And the tick corrects it without a change: here with exchanged VNIs. */
	w->hung = true;
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), RWY_EAGAIN);
	w->hung = false;
	assert_int_equal(
	    eng_tenant_set(w->eng, 1, &(struct eng_tenant_cfg){.vni = 70, .share.weight = 1}, gw_now()), 0);
	assert_int_equal(
	    eng_tenant_set(w->eng, 2, &(struct eng_tenant_cfg){.vni = 1, .share.weight = 1}, gw_now()), 0);
	assert_int_equal(
	    eng_tenant_set(w->eng, 1, &(struct eng_tenant_cfg){.vni = 2, .share.weight = 1}, gw_now()), 0);
	gw_tenants_tick(&fake.app);
	engines_agree();
	assert_int_equal(gw_tenants_replace(&fake.app, t, 2, &done, &err), 0);
	engines_agree();
}

/* A worker that does not run the set: nothing is freed or reused until it does. */
static void test_worker_late(void **state)
{
	uint64_t published, running;
	const struct tenant *red;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	add("red", 1);
	red = named("red");
	fake.app.worker[2]->late = true;
	assert_int_equal(gw_tenant_del(&fake.app, "red", &done, &err), 0);
	gw_tenants_generation(&fake.app, &published, &running);
	assert_int_equal(published, 3);
	assert_int_equal(running, 2);
	gw_tenants_tick(&fake.app);
	assert_string_equal(red->cfg.name, "red"); /* ASan knows */
	add("blue", 1);
	assert_int_not_equal(named("blue")->index, 1);
	fake.app.worker[2]->late = false;
	gw_tenants_tick(&fake.app);
	add("green", 3);
	assert_int_equal(named("green")->index, 1);
	engines_agree();
}

/* --- removal ----------------------------------------------------------------------------------------------
 */

static void test_removal(void **state)
{
	struct gw_tenant_count *c;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	add("red", 1);
	c = &fake.app.worker[1]->tenants[1];
	c->rx_packets = 5;
	fake_send(fake.app.worker[1], 1, 0x20, 5);
	assert_int_equal(eng_tenant(eng_of(1), 1)->sides, 1);
	fake.app.worker[0]->hosts = 2;
	assert_int_equal(gw_tenant_del(&fake.app, "red", &done, &err), 0);
	assert_int_equal(done.removed, 1);
	engines_agree();
	/* Its connections are removed, and then one worker still has hosts. */
	gw_tenants_tick(&fake.app);
	add("a", 2);
	assert_int_equal(named("a")->index, 2);
	for (rwy_time now = gw_now(); eng_flow_count(eng_of(1)); now += 100 * RWY_MS)
		eng_poll(eng_of(1), now);
	gw_tenants_tick(&fake.app);
	assert_int_equal(c->rx_packets, 5);
	add("b", 3);
	assert_int_equal(named("b")->index, 1);
	assert_int_equal(c->rx_packets, 0);
	engines_agree();
}

/* --- status ----------------------------------------------------------------------------------- */

static void test_info(void **state)
{
	struct gw_tenant_info in[5];
	struct conf_tenant t;

	fake_workers(FAKE_TUNNELS, NULL, 0);
	add("red", 1);
	add("blue", 2);
	add("green", 3);
	fake_send(fake.app.worker[0], 2, 0x20, 5);
	fake_send(fake.app.worker[2], 2, 0x21, 5);
	fake.app.worker[0]->tenants[2].rx_bytes = 10;
	fake.app.worker[1]->tenants[2].rx_bytes = 20;
	fake.app.worker[2]->tenants[2].drop[TENANT_DENIED] = 3;
	assert_int_equal(gw_tenants_get(&fake.app, "", in, 5), 3);
	assert_string_equal(in[0].name, "blue");
	assert_string_equal(in[2].name, "red");
	assert_int_equal(in[0].eng.flows, 2);
	assert_int_equal(in[0].eng.accepted, 2);
	assert_int_equal(in[0].rx_bytes, 30);
	assert_int_equal(in[0].drop[TENANT_DENIED], 3);
	assert_int_equal(in[0].generation, 3);
	assert_int_equal(in[1].eng.flows, 0);
	assert_int_equal(gw_tenants_get(&fake.app, "blue", in, 1), 1);
	assert_string_equal(in[0].name, "green");
	assert_int_equal(gw_tenants_get(&fake.app, "red", in, 5), 0);
	assert_int_equal(gw_tenant_get(&fake.app, "blue", &t), 0);
	assert_int_equal(t.cfg.prefixes, 3);
	conf_tenant_fini(&t);
	assert_int_equal(gw_tenant_get(&fake.app, "bleu", &t), RWY_ENOENT);
}

static bool is_not(const void *ctx, const char *name)
{
	return strcmp(name, ctx) != 0;
}

/* Those that are wanted come behind what is there, as deep copies. */
static void test_append(void **state)
{
	struct conf *c = calloc(1, sizeof(*c));
	struct conf_tenant t;

	add("red", 1);
	add("blue", 2);
	assert_int_equal(gw_tenant_del(&fake.app, "red", &done, &err), 0);
	add("green", 3);
	add("white", 4);
	assert_non_null(c);
	for (unsigned turn = 1; turn <= 2; turn++) {
		assert_int_equal(gw_tenants_append(&fake.app, is_not, "green", c), 0);
		assert_int_equal(c->tenants, 2 * turn);
	}
	assert_int_equal(gw_tenant_del(&fake.app, "blue", &done, &err), 0);
	for (unsigned i = 0; i < 4; i++) {
		t = fake_tenant(i % 2 ? "white" : "blue", i % 2 ? 4 : 2);
		assert_string_equal(c->tenant[i].cfg.name, t.cfg.name);
		assert_int_equal(c->tenant[i].cfg.vni, t.cfg.vni);
		assert_int_equal(c->tenant[i].line, 0);
		assert_int_equal(c->tenant[i].cfg.prefixes, t.cfg.prefixes);
		assert_memory_equal(
		    c->tenant[i].cfg.prefix, t.cfg.prefix, t.cfg.prefixes * sizeof(*t.cfg.prefix));
	}
	conf_free(c);
}

/* --- restart of the process ------------------------------------------------------------------- */

/* Connections of tenants in the journal are restored before packets arrive. */
static void test_journal(void **state)
{
	struct conf_tenant t = fake_tenant("red", 77), other = fake_tenant("blue", 78);
	struct eng_journal_entry *j = calloc(3, sizeof(*j));

	assert_non_null(j);
	for (unsigned i = 0; i < 2; i++) {
		j[i].src = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3});
		j[i].dst = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3});
		j[i].qpn = 0x20;
		j[i].lqpn = 0x30;
		j[i].vni = 77 + i;
		j[i].acked = 100;
		j[i].used = 1;
	}
	gw_tenants_free(&fake.app);
	fake.conf.tenant = &t;
	fake.conf.tenants = 1;
	assert_int_equal(gw_tenants_new(&fake.app), 0);
	fake_workers(FAKE_TUNNELS, j, 3);
	assert_int_equal(eng_flow_count(eng_of(0)), 1);
	fake_send(fake.app.worker[0], 1, 0x20, 100);
	assert_int_equal(eng_counters(eng_of(0))->drop_resuming, 1);
	/* A tenant that is configured later gets its own. */
	assert_int_equal(gw_tenant_add(&fake.app, &other, &done, &err), 0);
	assert_int_equal(eng_flow_count(eng_of(0)), 2);
	/* Removed and added again: connections that are being forgotten are not restored again. */
	assert_int_equal(gw_tenant_del(&fake.app, "blue", &done, &err), 0);
	add("bleu", 78);
	assert_int_equal(eng_tenant(eng_of(0), named("bleu")->index)->sides, 0);
	engines_agree();
	fake_end();
	free(j);
	fake_new(1);
	assert_int_equal(gw_tenants_new(&fake.app), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	    T(test_first_set),
	    T(test_shares),
	    T(test_refusals),
	    T(test_order),
	    T(test_vni_moves),
	    T(test_engine_refuses),
	    T(test_worker_hangs),
	    T(test_worker_late),
	    T(test_removal),
	    T(test_info),
	    T(test_append),
	    T(test_journal),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
