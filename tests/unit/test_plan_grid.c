/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner's model held to measurements: over a grid of RTT x loss x burst, times what a policer
 * leaves to UDP, times the TCP algorithm, is the carrier that it picks within 5 % of the best of
 * native, TCP and QUIC, by measured goodput? The measurements are tests/unit/carrier_grid.csv, as
 * tests/bench/carrier_grid.py wrote it (docs/controller-planning.md says where and how). Those of
 * other links than CALIBRATED were made when the model was there already; they count apart.
 *
 * With an argument it reads another file of the kind, of whole gateways, and only prints
 * (tests/bench/run-carriers).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/decide.h"

#define T        (1000 * RWY_SEC)
#define ROWS_MAX 1024
#define FRAMING  0.965 /* the tunnel's headers within TCP and QUIC: measured was their own payload */
#define CAN_BPS  UINT64_C(10000000000)

#define CALIBRATED 200000000 /* bit/s of the links that the model's constants were set with a view to */

struct row {
	enum plan_carrier carrier;
	char algorithm[8];
	uint64_t link, share, rtt, loss, burst;
	double goodput;
};

struct sum {
	unsigned cells, good, best[PLAN_CARRIER_COUNT], picked[PLAN_CARRIER_COUNT];
};

static struct row rows[ROWS_MAX];
static unsigned n_rows;

static int load_file(const char *path, double framing)
{
	char line[256], carrier[16];
	FILE *f = fopen(path, "r");
	struct row *r;

	if (!f || !fgets(line, sizeof(line), f))
		return -1;
	while (fgets(line, sizeof(line), f) && n_rows < ROWS_MAX) {
		r = &rows[n_rows];
		if (sscanf(line, "%15[^,],%7[^,],%lu,%lu,%lu,%lu,%lu,%lf", carrier, r->algorithm, &r->link,
		        &r->share, &r->rtt, &r->loss, &r->burst, &r->goodput) != 8 ||
		    (r->carrier = plan_carrier_find(carrier)) == PLAN_ANY) {
			(void)fclose(f);
			return -1;
		}
		if (r->carrier != PLAN_NATIVE)
			r->goodput *= framing;
		n_rows++;
	}
	(void)fclose(f);
	return 0;
}

static int load(void **state)
{
	return load_file("tests/unit/carrier_grid.csv", FRAMING);
}

static bool same_path(const struct row *a, const struct row *b)
{
	return a->rtt == b->rtt && a->loss == b->loss && a->burst == b->burst && a->link == b->link;
}

/* The row of QUIC beside a native one; NULL: it was not measured. */
static const struct row *quic_of(const struct row *native)
{
	for (unsigned i = 0; i < n_rows; i++)
		if (rows[i].carrier == PLAN_QUIC && same_path(&rows[i], native) &&
		    rows[i].share == native->share)
			return &rows[i];
	return NULL;
}

/* The choice between UDP's carriers (their share of the link) and a TCP row. */
static enum plan_carrier pick(const struct row *const of[PLAN_CARRIER_COUNT], struct plan_decision *d)
{
	const struct row *native = of[PLAN_NATIVE];
	struct plan_caps c = {.tcp_window = 16u << 20};
	struct plan_question q = {.pinned = PLAN_ANY};
	struct plan_hyst h = {0};
	struct plan_policy p;
	unsigned k;

	c.tcp_algorithms = strcmp(of[PLAN_TCP]->algorithm, "bbr") == 0 ? PLAN_TCP_BBR : PLAN_TCP_CUBIC;
	for (k = 0; k < PLAN_CARRIER_COUNT; k++)
		c.bandwidth_bps[k] = of[k] ? CAN_BPS : 0;
	q.source = q.destination = c;
	plan_path_default(&q.path);
	for (k = 0; k < PLAN_CARRIER_COUNT; k++) {
		struct plan_leg *l = &q.path.by[k];

		l->bandwidth_bps.v = k == PLAN_TCP ? native->link : native->link / 1000000 * native->share;
		l->rtt_us.v = native->rtt;
		l->loss_ppm.v = native->loss;
		l->burst.v = native->burst;
	}
	plan_policy_default(&p);
	plan_decide(d, &q, &p, &h, T);
	return d->carrier;
}

static void print_miss(const struct row *const of[], const struct plan_decision *d)
{
	const struct row *n = of[PLAN_NATIVE];

	print_message("  %lu Mbit/s, %s, share %.1f, rtt %lu us, loss %lu ppm, burst %lu: picked %s;",
	    n->link / 1000000, of[PLAN_TCP]->algorithm, (double)n->share / 1e6, n->rtt, n->loss, n->burst,
	    plan_carrier_name(d->carrier));
	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++)
		if (of[k])
			print_message(" %s %.1f (predicted %.1f)", plan_carrier_name((enum plan_carrier)k),
			    of[k]->goodput / 1e6, (double)d->alt[k].goodput_bps / 1e6);
	print_message(" Mbit/s\n");
}

static void cell(const struct row *native, const struct row *tcp, struct sum *s)
{
	const struct row *const of[PLAN_CARRIER_COUNT] = {native, tcp, quic_of(native)};
	enum plan_carrier best = PLAN_NATIVE, mine;
	struct plan_decision d;
	unsigned k;

	mine = pick(of, &d);
	for (k = 0; k < PLAN_CARRIER_COUNT; k++)
		if (of[k] && of[k]->goodput > of[best]->goodput)
			best = (enum plan_carrier)k;
	s->cells++;
	s->best[best]++;
	s->picked[mine]++;
	if (of[mine]->goodput >= 0.95 * of[best]->goodput)
		s->good++;
	else
		print_miss(of, &d);
}

/* All cells of the calibrated links, or of the others. */
static struct sum cells(bool calibrated)
{
	struct sum s = {0};

	for (unsigned i = 0; i < n_rows; i++)
		for (unsigned k = 0; k < n_rows; k++)
			if (rows[i].carrier == PLAN_NATIVE && rows[k].carrier == PLAN_TCP &&
			    same_path(&rows[i], &rows[k]) && (rows[i].link == CALIBRATED) == calibrated)
				cell(&rows[i], &rows[k], &s);
	return s;
}

static void print_sum(const char *what, const struct sum *s)
{
	print_message("  %s: %u of %u cells within 5 %%;", what, s->good, s->cells);
	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++)
		print_message(" %s best in %u, picked in %u%c", plan_carrier_name((enum plan_carrier)k),
		    s->best[k], s->picked[k], k + 1 < PLAN_CARRIER_COUNT ? ',' : '\n');
}

static void check(const struct sum *s, unsigned least)
{
	assert_true(s->cells >= least);
	assert_true(s->good * 100 >= s->cells * 95);
	/* A grid in which one carrier always wins would prove nothing. */
	assert_true(s->best[PLAN_TCP] > s->cells / 10 && s->cells - s->best[PLAN_TCP] > s->cells / 10);
}

static void test_calibrated(void **state)
{
	struct sum s = cells(true);

	print_sum("calibration", &s);
	check(&s, 270);
}

static void test_held_out(void **state)
{
	struct sum s = cells(false);

	print_sum("held out", &s);
	check(&s, 108);
}

/* Each path has been measured in all three. */
static void test_whole(void **state)
{
	for (unsigned i = 0; i < n_rows; i++)
		if (rows[i].carrier == PLAN_NATIVE)
			assert_non_null(quic_of(&rows[i]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_calibrated),
	    cmocka_unit_test(test_held_out),
	    cmocka_unit_test(test_whole),
	};

	if (argc > 1) {
		struct sum s;

		if (load_file(argv[1], 1) != 0)
			return 1;
		s = cells(false);
		print_sum("this run", &s);
		return 0;
	}
	return cmocka_run_group_tests(tests, load, NULL);
}
