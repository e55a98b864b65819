/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of a link; see share.h. */
#include <math.h>
#include <string.h>

#include "tests/sim/wan/share.h"

struct sum {
	double all, half, least, squares;
	unsigned n;
};

static struct sum sum_of(const struct share *h, unsigned from, unsigned to)
{
	struct sum u = {.least = HUGE_VAL};

	for (unsigned i = from; i < to; i++) {
		const struct share_flow *f = &h->flow[i];

		u.all += f->bps;
		u.half += f->half_bps;
		u.squares += f->half_bps * f->half_bps;
		u.least = fmin(u.least, f->half_bps);
		u.n++;
	}
	if (!u.n)
		u.least = 0;
	return u;
}

static double over(double x, double y)
{
	return y > 0 ? x / y : 0;
}

struct share_figures share_figures(const struct scen *s, const struct share *h)
{
	struct sum ours = sum_of(h, 0, h->ours), cross = sum_of(h, h->ours, h->n), all = sum_of(h, 0, h->n);
	struct share_figures g = {.fair = over(s->rate, h->n)};

	g.ours = over(ours.all, ours.n * g.fair);
	g.ours_half = over(ours.half, ours.n * g.fair);
	g.ours_least = over(ours.least, g.fair);
	g.cross = over(cross.all, cross.n * g.fair);
	g.cross_half = over(cross.half, cross.n * g.fair);
	g.cross_least = over(cross.least, g.fair);
	g.jain = over(all.half * all.half, h->n * all.squares);
	g.ours_jain = over(ours.half * ours.half, ours.n * ours.squares);
	g.total = over(all.half, s->rate);
	return g;
}

static void class_line(FILE *f, const struct scen *s, const struct share *h, unsigned from, unsigned to)
{
	struct sum u = sum_of(h, from, to);
	double fair = s->rate / h->n;

	fprintf(f, "  %-11s %u: mean %.3f Gb/s, %.3f of fair; second half %.3f of fair, least %.3f\n",
	    h->flow[from].class, u.n, u.all / u.n / 1e9, u.all / u.n / fair, u.half / u.n / fair,
	    u.least / fair);
}

void share_table(FILE *f, const struct scen *s, const struct share *h)
{
	struct share_figures g = share_figures(s, h);

	if (!h->n)
		return;
	fprintf(f, "shared        by %u, fair %.4f Gb/s each; second half: Jain %.4f, %.4f of the link\n",
	    h->n, g.fair / 1e9, g.jain, g.total);
	for (unsigned i = 0, k; i < h->n; i = k) {
		for (k = i + 1; k < h->n && strcmp(h->flow[k].class, h->flow[i].class) == 0;)
			k++;
		class_line(f, s, h, i, k);
	}
	fprintf(f, "queue         mean %.3f ms, most %.3f ms; %.0f dropped, %.0f marked\n",
	    h->queue_mean / 1e6, h->queue_max / 1e6, h->drops, h->marks);
}

void share_json(FILE *f, const struct share *h)
{
	fprintf(f, ", \"flows\": [");
	for (unsigned i = 0; i < h->n; i++)
		fprintf(f, "%s{\"class\": \"%s\", \"bps\": %.6g, \"half_bps\": %.6g}", i ? ", " : "",
		    h->flow[i].class, h->flow[i].bps, h->flow[i].half_bps);
	fprintf(f, "]");
}
