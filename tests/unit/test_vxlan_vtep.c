/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/vtep.h: learning, ageing, moves, configured entries; one tenant cannot take another's
 * room; long random changes compared with a plain array. */
#include "tests/lib/roce_pkt.h"

#include "tenant/vtep.h"

static struct rwy_ip host(uint32_t n)
{
	const uint8_t v4[4] = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

	return rwy_ip_from4(v4);
}

static struct vtep_tab *tab_new(uint32_t entries, uint32_t per_tenant)
{
	struct vtep_cfg cfg = {entries, per_tenant, 16, 300 * RWY_SEC, 100 * RWY_MS};
	struct vtep_tab *t = NULL;

	assert_int_equal(vtep_new(&t, &cfg), 0);
	return t;
}

static enum vtep_learn learn(
    struct vtep_tab *t, uint32_t tenant, uint32_t h, uint32_t vtep, uint8_t mac, rwy_time now)
{
	struct rwy_ip a = host(h), v = host(vtep);
	const uint8_t m[6] = {2, 0, 0, 0, 0, mac};

	return vtep_learn(t, tenant, &a, &v, m, now);
}

static int at(struct vtep_tab *t, uint32_t tenant, uint32_t h, rwy_time now)
{
	struct rwy_ip a = host(h);
	const struct vtep_host *w = vtep_find(t, tenant, &a, now);

	return w ? w->mac[5] << 8 | w->vtep.b[15] : -1;
}

static void test_learn_and_age(void **state)
{
	struct vtep_tab *t = tab_new(100, 10);
	rwy_time now = 5 * RWY_SEC;

	assert_int_equal(at(t, 1, 7, now), -1);
	assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_NEW);
	assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_KNOWN);
	assert_int_equal(at(t, 1, 7, now), 9 << 8 | 200);
	assert_int_equal(at(t, 2, 7, now), -1); /* another tenant's address space */
	now += 300 * RWY_SEC;
	assert_int_equal(at(t, 1, 7, now), 9 << 8 | 200);
	assert_int_equal(at(t, 1, 7, now + 1), -1); /* also without a sweep */
	assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_KNOWN);
	now += 300 * RWY_SEC;
	assert_int_equal(at(t, 1, 7, now), 9 << 8 | 200);
	now += 1;
	assert_int_equal(vtep_total(t), 1);
	assert_int_equal(vtep_age(t, 1000, now), 1);
	assert_int_equal(vtep_total(t), 0);
	assert_int_equal(vtep_counters(t)->aged, 1);
	/* Aged, and learned elsewhere: new, not moved. */
	assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_NEW);
	assert_int_equal(learn(t, 1, 7, 201, 9, now + 301 * RWY_SEC), VTEP_NEW);
	assert_int_equal(vtep_counters(t)->moved, 0);
	vtep_free(t);
	vtep_free(NULL);
}

/* A busy host's entry does not age, however rarely the list is sorted. */
static void test_stays_while_used(void **state)
{
	struct vtep_tab *t = tab_new(100, 10);

	assert_int_equal(learn(t, 1, 7, 200, 9, 0), VTEP_NEW);
	for (rwy_time now = 0; now < 2000 * RWY_SEC; now += RWY_SEC / 3) {
		assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_KNOWN);
		/* The granularity of "seen" is at most a 64th of the age. */
		assert_int_equal(at(t, 1, 7, now + 295 * RWY_SEC), 9 << 8 | 200);
	}
	vtep_free(t);
}

static void test_moves(void **state)
{
	struct vtep_tab *t = tab_new(100, 10);
	rwy_time now = RWY_SEC;

	assert_int_equal(learn(t, 1, 7, 200, 9, now), VTEP_NEW);
	assert_int_equal(learn(t, 1, 7, 201, 9, now + 1), VTEP_MOVED);
	assert_int_equal(at(t, 1, 7, now), 9 << 8 | 201);
	/* Two hosts with one address do not cause flapping: the second move waits. */
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(learn(t, 1, 7, 200, 9, now + 2 + i), VTEP_HELD);
	assert_int_equal(learn(t, 1, 7, 201, 9, now + 50 * RWY_MS), VTEP_KNOWN);
	assert_int_equal(learn(t, 1, 7, 200, 9, now + 1 + 100 * RWY_MS), VTEP_MOVED);
	/* another MAC address */
	assert_int_equal(learn(t, 1, 7, 200, 8, now + 1 + 300 * RWY_MS), VTEP_MOVED);
	assert_int_equal(vtep_counters(t)->moved, 3);
	assert_int_equal(vtep_counters(t)->held, 1000);
	assert_int_equal(vtep_counters(t)->learned, 1);
	vtep_free(t);
}

/* A flood of invented sources in one tenant: its limit holds, its busy hosts stay, other tenants
 * lose nothing. */
static void test_flood(void **state)
{
	struct vtep_tab *t = tab_new(1000, 100);
	rwy_time now = 0;
	uint32_t lost = 0;

	for (uint32_t i = 0; i < 800; i++)
		assert_int_equal(learn(t, 1 + i / 80, 5000 + i, 200, 1, now), VTEP_NEW);
	for (uint32_t i = 0; i < 100000; i++) {
		now += 10 * RWY_MS;
		assert_int_equal(learn(t, 12, 100000 + i, 201, 2, now), VTEP_NEW);
		assert_true(vtep_total(t) <= 800 + 100);
	}
	for (uint32_t i = 0; i < 800; i++)
		lost += at(t, 1 + i / 80, 5000 + i, 0) < 0;
	assert_int_equal(lost, 0);
	assert_true(vtep_counters(t)->pushed_out >= 99900 - 100);
	/* All tenants at once: one without entries finds the table full, and gets that result. */
	t = (vtep_free(t), tab_new(200, 100));
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(learn(t, 1 + i / 100, i, 200, 1, 0), VTEP_NEW);
	assert_int_equal(learn(t, 3, 1, 200, 1, 0), VTEP_FULL);
	assert_int_equal(vtep_counters(t)->full, 1);
	assert_int_equal(learn(t, 1, 999, 200, 1, 0), VTEP_NEW); /* replaces one of its own */
	assert_int_equal(vtep_age(t, 1000, 301 * RWY_SEC), 200);
	assert_int_equal(learn(t, 3, 1, 200, 1, 301 * RWY_SEC), VTEP_NEW);
	vtep_free(t);
}

#define HOSTS 48
static void test_random(void **state)
{
	struct {
		bool there;
		uint8_t mac;
	} m[3][HOSTS] = {0};
	struct vtep_tab *t = tab_new(3 * HOSTS, HOSTS); /* room for all: nothing is replaced */
	uint32_t seed = 5;

	for (unsigned i = 0; i < 200000; i++) {
		uint32_t tn = tp_rand(&seed) % 3, h = tp_rand(&seed) % HOSTS;
		struct rwy_ip a = host(h);
		struct vtep_host w = {host(200), {2, 0, 0, 0, 0, (uint8_t)(tp_rand(&seed) % 3)}};
		rwy_time now = (rwy_time)i * RWY_SEC; /* every move is allowed, ages of 300 happen */

		switch (tp_rand(&seed) % 16) {
		case 0:
			if (i % 512 < 2) {
				while (!vtep_clear(t, tn, 7))
					;
				memset(m[tn], 0, sizeof(m[tn]));
			}
			vtep_age(t, 3, now);
			break;
		default:
			vtep_learn(t, tn, &a, &w.vtep, w.mac, now);
			m[tn][h].there = true;
			m[tn][h].mac = w.mac[5];
			assert_int_equal(at(t, tn, h, now), w.mac[5] << 8 | 200);
		}
		for (h = 0; h < HOSTS; h++) {
			int got = at(t, tn, h, now);

			if (got >= 0)
				assert_true(m[tn][h].there && got == (m[tn][h].mac << 8 | 200));
		}
	}
	vtep_free(t);
}

static void test_config(void **state)
{
	struct vtep_cfg good, c;
	struct vtep_tab *t;

	vtep_cfg_default(&good);
	assert_int_equal(vtep_new(&t, &good), 0);
	vtep_free(t);
#define BAD(change)                                                                                          \
	c = good;                                                                                            \
	change;                                                                                              \
	assert_int_equal(vtep_new(&t, &c), RWY_EINVAL)
	BAD(c.entries = 0);
	BAD(c.entries = (1 << 24) + 1);
	BAD(c.per_tenant = 0);
	BAD(c.per_tenant = c.entries + 1);
	BAD(c.tenants = 0);
	BAD(c.tenants = 65537);
#undef BAD
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_learn_and_age),
	    cmocka_unit_test(test_stays_while_used),
	    cmocka_unit_test(test_moves),
	    cmocka_unit_test(test_flood),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
