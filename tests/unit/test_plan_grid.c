/* SPDX-License-Identifier: Apache-2.0
 * The planner's model held to measurements: over a grid of RTT x loss x burst, times what a policer leaves to
 * UDP, times the TCP algorithm, is the carrier that it picks within 5 % of the best one's measured goodput?
 * The measurements are tests/unit/carrier_grid.csv, as tests/bench/carrier_grid.py wrote it
 * (docs/controller-planning.md says where and how).
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
#define FRAMING  0.965 /* the tunnel's headers within TCP: measured was TCP's own payload */
#define CAN_BPS  UINT64_C(10000000000)

struct row {
	bool tcp;
	char algorithm[8];
	uint64_t link, share, rtt, loss, burst;
	double goodput;
};

static struct row rows[ROWS_MAX];
static unsigned n_rows;

static int load(void **state)
{
	char line[256], carrier[16];
	FILE *f = fopen("tests/unit/carrier_grid.csv", "r");
	struct row *r;

	if (!f || !fgets(line, sizeof(line), f))
		return -1;
	while (fgets(line, sizeof(line), f) && n_rows < ROWS_MAX) {
		r = &rows[n_rows];
		if (sscanf(line, "%15[^,],%7[^,],%lu,%lu,%lu,%lu,%lu,%lf", carrier, r->algorithm, &r->link,
		        &r->share, &r->rtt, &r->loss, &r->burst, &r->goodput) != 8) {
			(void)fclose(f);
			return -1;
		}
		r->tcp = strcmp(carrier, "tcp") == 0;
		if (r->tcp)
			r->goodput *= FRAMING;
		n_rows++;
	}
	(void)fclose(f);
	return 0;
}

static bool same_path(const struct row *a, const struct row *b)
{
	return a->rtt == b->rtt && a->loss == b->loss && a->burst == b->burst && a->link == b->link;
}

/* The choice between a native row (its share of the link) and a TCP row. */
static enum plan_carrier pick(const struct row *native, const struct row *tcp, struct plan_decision *d)
{
	struct plan_caps c = {.bandwidth_bps = {CAN_BPS, CAN_BPS, 0}, .tcp_window = 16u << 20};
	struct plan_question q = {.pinned = PLAN_ANY};
	struct plan_hyst h = {0};
	struct plan_policy p;
	unsigned k;

	c.tcp_algorithms = strcmp(tcp->algorithm, "bbr") == 0 ? PLAN_TCP_BBR : PLAN_TCP_CUBIC;
	q.source = q.destination = c;
	plan_path_default(&q.path);
	for (k = 0; k < PLAN_CARRIER_COUNT; k++) {
		struct plan_leg *l = &q.path.by[k];

		l->bandwidth_bps.v = k == PLAN_NATIVE ? native->link / 1000000 * native->share : tcp->link;
		l->rtt_us.v = native->rtt;
		l->loss_ppm.v = native->loss;
		l->burst.v = native->burst;
	}
	plan_policy_default(&p);
	plan_decide(d, &q, &p, &h, T);
	return d->carrier;
}

static void test_picks(void **state)
{
	unsigned i, k, cells = 0, good = 0, tcp_best = 0, picked_tcp = 0;
	struct plan_decision d;
	double best, mine;

	for (i = 0; i < n_rows; i++) {
		for (k = 0; k < n_rows; k++) {
			if (rows[i].tcp || !rows[k].tcp || !same_path(&rows[i], &rows[k]))
				continue;
			best = rows[i].goodput > rows[k].goodput ? rows[i].goodput : rows[k].goodput;
			mine = pick(&rows[i], &rows[k], &d) == PLAN_TCP ? rows[k].goodput : rows[i].goodput;
			cells++;
			tcp_best += rows[k].goodput > rows[i].goodput;
			picked_tcp += d.carrier == PLAN_TCP;
			good += mine >= 0.95 * best;
			if (mine < 0.95 * best)
				print_message("  %s, share %.1f, rtt %lu us, loss %lu ppm, burst %lu: picked "
				              "%s with %.1f of "
				              "%.1f Mbit/s; predicted native %.1f, tcp %.1f\n",
				    rows[k].algorithm, (double)rows[i].share / 1e6, rows[i].rtt, rows[i].loss,
				    rows[i].burst, plan_carrier_name(d.carrier), mine / 1e6, best / 1e6,
				    (double)d.alt[PLAN_NATIVE].goodput_bps / 1e6,
				    (double)d.alt[PLAN_TCP].goodput_bps / 1e6);
		}
	}
	print_message("  %u of %u cells within 5 %%; tcp measured best in %u, picked in %u\n", good, cells,
	    tcp_best, picked_tcp);
	assert_true(cells >= 200);
	assert_true(good * 100 >= cells * 95);
	/* A grid in which one carrier always wins would prove nothing. */
	assert_true(tcp_best > cells / 10 && cells - tcp_best > cells / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_picks),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
