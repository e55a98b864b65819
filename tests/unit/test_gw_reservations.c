/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of reservations: kept while documents name a pair, and not used again at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/control/reservations.h"

#define MANY 70000u

static struct gw_app app;

/* No worker: nobody is asked what it sent. */
rwy_time gw_now(void)
{
	return 0;
}

int gw_call(struct gw_app *a, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	fail_msg("worker %u was called", worker);
	return RWY_EAGAIN;
}

void eng_reservation_stats(const struct eng *e, unsigned reservation, struct wan_class_stats *out)
{
	*out = (struct wan_class_stats){0};
}

static int set_up(void **state)
{
	app = (struct gw_app){0};
	return gw_reservations_new(&app);
}

static int tear_down(void **state)
{
	gw_reservations_free(&app);
	return 0;
}

/* The reservation of the i-th pair. */
static struct gw_reservation of(unsigned i, uint64_t rate_bps)
{
	return (struct gw_reservation){.src = rwy_ip_from4((uint8_t[4]){10, 1, 0, 1}),
	    .dst = rwy_ip_from4((uint8_t[4]){10, (uint8_t)(2 + (i >> 16)), (uint8_t)(i >> 8), (uint8_t)i}),
	    .rate_bps = rate_bps};
}

static uint16_t number(const struct gw_reservation *v, unsigned n, unsigned i)
{
	const struct gw_reservation key = of(i, 0), *r = gw_reservation_find(v, n, &key);

	return r ? r->number : 0;
}

static void test_numbers(void **state)
{
	struct gw_reservation v[3] = {of(3, 10), of(1, 20), of(2, 30)};
	uint16_t had[4];

	assert_int_equal(gw_reservations_set(&app, v, 3), 3);
	for (unsigned i = 1; i <= 3; i++) {
		had[i] = number(v, 3, i);
		assert_true(had[i]);
	}
	assert_true(had[1] != had[2] && had[2] != had[3] && had[1] != had[3]);
	/* The second goes, a fourth comes: no number changes, none is used again at once. */
	v[0] = of(4, 10);
	v[1] = of(3, 99);
	v[2] = of(1, 20);
	assert_int_equal(gw_reservations_set(&app, v, 3), 3);
	assert_int_equal(number(v, 3, 1), had[1]);
	assert_int_equal(number(v, 3, 3), had[3]);
	assert_int_equal(number(v, 3, 2), 0);
	assert_int_not_equal(number(v, 3, 4), had[2]);
	/* With the next document it is. */
	v[0] = of(5, 10);
	v[1] = of(1, 20);
	assert_int_equal(gw_reservations_set(&app, v, 2), 2);
	assert_int_equal(number(v, 2, 5), had[2]);
	assert_int_equal(gw_reservations_set(&app, v, 0), 0);
}

/* The rates of two jobs for one pair add up. Another QP or VNI is another reservation. */
static void test_one_pair(void **state)
{
	struct gw_reservation v[5] = {of(1, 10), of(1, 5), of(1, 7), of(1, 8), of(2, 1)};
	struct gw_reservation_info *all;
	unsigned n;

	v[1].priority = 4;
	v[2].vni = 9;
	v[3].dst_qpn = 77;
	assert_int_equal(gw_reservations_set(&app, v, 5), 4);
	n = gw_reservations_get(&app, &all);
	assert_int_equal(n, 4);
	for (unsigned i = 0; i < n; i++) {
		const struct gw_reservation *r = &all[i].r;

		assert_true(r->number);
		assert_int_equal(all[i].sent, 0);
		if (r->rate_bps == 15)
			assert_int_equal(r->priority, 4);
		else
			assert_true(r->rate_bps == 7 || r->rate_bps == 8 || r->rate_bps == 1);
	}
	free(all);
}

/* Of two jobs for one pair the one with the higher priority says the DSCP, if it names one. */
static void test_dscp(void **state)
{
	struct gw_reservation v[6] = {of(1, 10), of(1, 5), of(1, 7), of(2, 1), of(2, 1), of(3, 1)};

	v[0] = (struct gw_reservation){
	    .src = v[0].src, .dst = v[0].dst, .rate_bps = 10, .priority = 2, .has_dscp = true, .dscp = 10};
	v[1].has_dscp = true;
	v[1].dscp = 46;
	v[2].priority = 5;
	v[3].has_dscp = v[4].has_dscp = true;
	v[3].dscp = 26;
	assert_int_equal(gw_reservations_set(&app, v, 6), 3);
	assert_true(v[0].has_dscp);
	assert_int_equal(v[0].dscp, 10);
	assert_int_equal(v[0].priority, 5);
	assert_int_equal(v[0].rate_bps, 22);
	assert_true(v[1].has_dscp);
	assert_int_equal(v[1].dscp, 26);
	assert_false(v[2].has_dscp);
	assert_int_equal(gw_reservations_set(&app, v, 0), 0);
}

/* More than there are numbers: the others have none, and the next set is as good as ever. */
static void test_many(void **state)
{
	struct gw_reservation *v = malloc(MANY * sizeof(*v));
	unsigned without = 0;

	assert_non_null(v);
	for (unsigned i = 0; i < MANY; i++)
		v[i] = of(i, 10);
	assert_int_equal(gw_reservations_set(&app, v, MANY), MANY);
	for (unsigned i = 0; i < MANY; i++)
		without += !v[i].number;
	assert_int_equal(without, MANY - ENG_RESERVATIONS_MAX);
	v[0] = of(1, 10);
	assert_int_equal(gw_reservations_set(&app, v, 1), 1);
	assert_true(v[0].number);
	free(v);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {T(test_numbers), T(test_one_pair), T(test_dscp), T(test_many)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
