/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many repairs a group of blocks needs for given losses: probabilities only.
 *
 * Losses of one block: bursts hit it as a Poisson process; each burst hits it once and, when the
 * burst is longer than the group is deep, again (geometric). Together this is a Polya-Aeppli
 * distribution; without bursts it is Poisson.
 */
#include "wan/fec/fec.h"

#define TERMS (WAN_FEC_M_MAX + WAN_FEC_SHARED_MAX + 1)

static double power(double x, unsigned n)
{
	double r = 1;

	for (; n; n >>= 1, x *= x)
		if (n & 1)
			r *= x;
	return r;
}

static double exp_minus(double x)
{
	double y = x / 65536;

	return power(1 - y + y * y / 2, 65536);
}

/* Probabilities that 0, 1, .. of n datagrams are lost, when the block has every depth-th
 * datagram. */
static void losses(double *p, unsigned terms, unsigned n, unsigned depth, const struct wan_fec_law *law)
{
	double s = law->burst > 1 ? power(1 - 1 / law->burst, depth) : 0;
	double rate = n * law->loss * (1 - s);

	p[0] = exp_minus(rate);
	for (unsigned i = 1; i < terms; i++) {
		p[i] = (rate * (1 - s) + 2 * s * (i - 1)) * p[i - 1];
		if (i > 1)
			p[i] -= s * s * (i - 2) * p[i - 2];
		p[i] /= i;
		if (p[i] < 0)
			p[i] = 0;
	}
}

/* Adds two counts; only 0 .. SHARED_MAX matter. */
static void sum(double *to, const double *a, const double *b)
{
	double r[WAN_FEC_SHARED_MAX + 1] = {0};

	for (unsigned i = 0; i <= WAN_FEC_SHARED_MAX; i++)
		for (unsigned j = 0; i + j <= WAN_FEC_SHARED_MAX; j++)
			r[i + j] += a[i] * b[j];
	for (unsigned i = 0; i <= WAN_FEC_SHARED_MAX; i++)
		to[i] = r[i];
}

/* Probability out[i] that all blocks together lose i datagrams more than their own m repairs
 * rebuild. */
static void overflow(double *out, unsigned k, unsigned m, unsigned depth, const struct wan_fec_law *law)
{
	double p[TERMS], one[WAN_FEC_SHARED_MAX + 1] = {0};

	losses(p, m + WAN_FEC_SHARED_MAX + 1, k + m, depth, law);
	for (unsigned i = 0; i <= m; i++)
		one[0] += p[i];
	for (unsigned i = 1; i <= WAN_FEC_SHARED_MAX; i++)
		one[i] = p[m + i];
	for (unsigned i = 0; i <= WAN_FEC_SHARED_MAX; i++)
		out[i] = i == 0;
	for (unsigned n = depth; n; n >>= 1, sum(one, one, one))
		if (n & 1)
			sum(out, out, one);
}

static double beyond(const double *over, unsigned g, double loss)
{
	/* a shared repair is lost, or does not help (see solve.c) */
	double bad = g * loss + 1.0 / 256;
	double good = over[0];

	if (!g)
		return good < 1 ? 1 - good : 0;
	bad = bad < 1 ? bad : 1;
	for (unsigned i = 1; i + 1 < g; i++)
		good += over[i];
	if (g > 1)
		good += over[g - 1] * (1 - bad * bad);
	good += over[g] * (1 - bad);
	return good < 1 ? 1 - good : 0;
}

static void take_if_better(struct wan_fec_plan *plan, unsigned m, unsigned g, double fail)
{
	bool good = fail <= plan->eps, had = plan->m && plan->fail <= plan->eps;
	unsigned cost = m * plan->depth + g, before = plan->m * plan->depth + plan->g;

	if (had ? good && cost < before : good || !plan->m || fail < plan->fail) {
		plan->m = m;
		plan->g = g;
		plan->fail = fail;
	}
}

/* With bursts all blocks lose datagrams together, which the sum above ignores. Simulation shows: a
 * few shared repairs save one or two repairs per block, where a block has many. */
static void trade(struct wan_fec_plan *plan)
{
	if (plan->depth < 8 || plan->m < 4 || plan->m + WAN_FEC_SHARED_MAX > WAN_FEC_M_MAX)
		return;
	plan->g = plan->m < 8 ? 2 : WAN_FEC_SHARED_MAX;
	plan->m -= plan->m < 8 ? 1 : 2;
}

void wan_fec_choose(unsigned k, const struct wan_fec_law *law, unsigned most, struct wan_fec_plan *plan)
{
	bool bursts = law->burst > 1;
	double over[WAN_FEC_SHARED_MAX + 1];
	double idle[WAN_FEC_M_MAX];

	losses(idle, 1, k * plan->depth, 1, law);
	plan->m = plan->g = 0;
	if (1 - idle[0] <= plan->eps)
		return; /* no shared repairs */
	for (unsigned m = 1; m <= WAN_FEC_M_MAX && m * plan->depth <= most; m++) {
		if (plan->m && plan->fail <= plan->eps && m * plan->depth >= plan->m * plan->depth + plan->g)
			break;
		overflow(over, k, m, plan->depth, law);
		for (unsigned g = 0; g <= (bursts || plan->depth < 2 ? 0 : WAN_FEC_SHARED_MAX); g++) {
			double fail = beyond(over, g, law->loss);

			if (m + g > WAN_FEC_M_MAX || m * plan->depth + g > most)
				break;
			take_if_better(plan, m, g, fail);
			if (fail <= plan->eps)
				break;
		}
	}
	if (bursts && plan->m && plan->fail <= plan->eps)
		trade(plan);
}
