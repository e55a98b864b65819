/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that add, change, remove, reload and list tenants at the same time, while workers run and
 * read the set. All data that a worker finds in the set of its turn must be complete and in its
 * engine. Built with a sanitizer (`make asan`, `make tsan`) it also finds data freed or written too
 * early.
 */
#include "engine/eng.h"
#include "tests/lib/gw/fake.h"

#define CHANGERS 3
#define EACH     12 /* names per changing thread */
#define VNI_BASE 100
#define RUN      (2 * RWY_SEC)
#define RUNS_MAX 30

static _Atomic uint64_t looked, changes, refused, wrong;
static _Atomic bool stop;

static uint32_t rnd(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*s >> 33);
}

/* --- workers ------------------------------------------------------------------------------------------ */

static void turn(struct gw_worker *w)
{
	static _Thread_local uint64_t s = 1;
	uint64_t *count;

	for (unsigned i = 0; i < 64; i++) {
		uint32_t vni = VNI_BASE + rnd(&s) % (CHANGERS * EACH);
		const struct tenant *t = tenant_by_vni(w->ts, vni);
		struct rwy_ip far = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3});

		if (!t)
			continue;
		atomic_fetch_add_explicit(&looked, 1, memory_order_relaxed);
		if (t->cfg.vni != vni || tenant_find(t, &far).side != TENANT_TUNNEL ||
		    tenant_by_name(w->ts, t->cfg.name) != t || t->changed > w->ts->generation ||
		    !eng_tenant(w->eng, t->index))
			atomic_fetch_add(&wrong, 1);
		count = &w->tenants[t->index].rx_packets;
		__atomic_store_n(count, *count + 1, __ATOMIC_RELAXED); /* one writer */
		if (rnd(&s) % 64 == 0)
			fake_send(w, (uint16_t)t->index, 0x20 + rnd(&s) % 8, 5);
	}
}

/* --- changes ---------------------------------------------------------------------------------- */

static void counted(int rc)
{
	if (!rc)
		atomic_fetch_add(&changes, 1);
	else if (rc == RWY_EEXIST || rc == RWY_ENOENT || rc == RWY_EINVAL)
		atomic_fetch_add(&refused, 1);
	else
		atomic_fetch_add(&wrong, 1); /* every worker runs */
}

static struct conf_tenant some(unsigned who, uint64_t *s)
{
	char name[TENANT_NAME_MAX];
	struct conf_tenant t;
	uint32_t i = rnd(s) % EACH;

	snprintf(name, sizeof(name), "t%u-%u", who, i);
	/* Sometimes a VNI that another tenant may have. */
	t = fake_tenant(name, VNI_BASE + who * EACH + (rnd(s) % 4 ? i : rnd(s) % EACH));
	t.cfg.weight = 1 + rnd(s) % 10;
	t.cfg.memory_ppm = rnd(s) % 20000;
	return t;
}

static void *changer(void *arg)
{
	unsigned who = (unsigned)(uintptr_t)arg;
	uint64_t s = who + 10;
	struct gw_tenants_done done;
	struct conf_error err;

	while (!atomic_load(&stop)) {
		struct conf_tenant t = some(who, &s);

		switch (rnd(&s) % 3) {
		case 0:
			counted(gw_tenant_add(&fake.app, &t, &done, &err));
			break;
		case 1:
			counted(gw_tenant_set(&fake.app, &t, &done, &err));
			break;
		case 2:
			counted(gw_tenant_del(&fake.app, t.cfg.name, &done, &err));
			break;
		}
	}
	return NULL;
}

static void *reloader(void *arg)
{
	uint64_t s = 99;
	struct gw_tenants_done done;
	struct conf_error err;

	while (!atomic_load(&stop)) {
		struct conf_tenant t[CHANGERS * EACH];
		unsigned n = 0, turned = rnd(&s);
		char name[TENANT_NAME_MAX];

		/* All VNIs rotate among the existing names. */
		for (unsigned i = 0; i < CHANGERS * EACH; i++) {
			if (rnd(&s) % 4 == 0)
				continue;
			snprintf(name, sizeof(name), "t%u-%u", i / EACH, i % EACH);
			t[n++] = fake_tenant(name, VNI_BASE + (i + turned) % (CHANGERS * EACH));
		}
		counted(gw_tenants_replace(&fake.app, t, n, &done, &err));
		nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	}
	return NULL;
}

static void *looker(void *arg)
{
	struct gw_tenant_info in[10];
	struct conf_tenant t;

	while (!atomic_load(&stop)) {
		uint64_t published, running;
		unsigned n = gw_tenants_get(&fake.app, "t1", in, 10);

		for (unsigned i = 1; i < n; i++)
			if (strcmp(in[i - 1].name, in[i].name) >= 0)
				atomic_fetch_add(&wrong, 1);
		if (n && gw_tenant_get(&fake.app, in[0].name, &t) == 0)
			conf_tenant_fini(&t);
		gw_tenants_generation(&fake.app, &published, &running);
		if (running > published)
			atomic_fetch_add(&wrong, 1);
		gw_tenants_tick(&fake.app);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return NULL;
}

/* --- the test ------------------------------------------------------------------------------------------- */

/* At the end every engine has exactly the tenants of the set. */
static void at_rest(void)
{
	const struct tenant_set *s = gw_tenants_of(&fake.app);

	for (unsigned w = 0; w < fake.app.workers; w++)
		for (uint32_t i = 1; i < 1000; i++) {
			const struct tenant *t = tenant_by_index(s, i);
			const struct eng_tenant *e = eng_tenant(fake.app.worker[w]->eng, i);

			assert_int_equal(t != NULL, e != NULL);
			if (t)
				assert_int_equal(e->cfg.vni, t->cfg.vni);
		}
}

static void test_all_at_once(void **state)
{
	pthread_t th[CHANGERS + 2];

	fake_new(2);
	assert_int_equal(gw_tenants_new(&fake.app), 0);
	fake_workers(FAKE_TUNNELS, NULL, 0);
	fake_run(turn);
	for (unsigned i = 0; i < CHANGERS; i++)
		assert_int_equal(pthread_create(&th[i], NULL, changer, (void *)(uintptr_t)i), 0);
	assert_int_equal(pthread_create(&th[CHANGERS], NULL, reloader, NULL), 0);
	assert_int_equal(pthread_create(&th[CHANGERS + 1], NULL, looker, NULL), 0);
	/* Longer where other programs take the CPUs. */
	for (unsigned i = 0; i < RUNS_MAX && (!i || changes <= 20 || looked <= 1000); i++)
		nanosleep(&(struct timespec){.tv_sec = RUN / RWY_SEC}, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < CHANGERS + 2; i++)
		pthread_join(th[i], NULL);
	atomic_store(&fake.stop, true);
	for (unsigned i = 0; i < fake.app.workers; i++)
		pthread_join(fake.app.worker[i]->thread, NULL);
	fake.running = false;
	print_message("%lu changes, %lu refused, %lu looks\n", (unsigned long)changes, (unsigned long)refused,
	    (unsigned long)looked);
	assert_int_equal(wrong, 0);
	assert_true(changes > 20 && looked > 1000);
	at_rest();
	fake_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
