/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations that come, change and go while all runs (F_RATES): of pairs of hosts and of queue
 * pairs, of the plain LAN and of tenants, with priorities, more than the path has or less. They only
 * make hosts wait. What must hold of them is in rates.h.
 */
#include "tests/sim/explore.h"
#include "tests/sim/rates.h"

#define EACH_MAX 600            /* ms between changes */
#define UNTIL    (20 * RWY_SEC) /* from then on they stay */
#define RATE_MIN 2000000        /* bytes a second: hosts wait for some seconds at most */
#define RATE_MAX 20000000
#define SLOW_MIN 200000 /* of a slow one, every eighth: it catches up with more time than others */
#define PAIRS    (SIM_HOSTS * SIM_HOSTS * (SIM_TENANTS + 1))

static uint32_t below(struct run *r, uint32_t n)
{
	return sim_below(&r->rate_rng, n);
}

struct set {
	struct eng_steer_cfg v[2][2 * SIM_RATES]; /* by site, both directions as a gateway has them */
	unsigned n;
};

/* dqpn: of the host at the same site, or 0 for both. */
static void add(struct set *s, const unsigned host[2], unsigned tenant, const uint32_t qpn[2],
    unsigned number, const struct wan_class_cfg *share)
{
	for (unsigned j = 0; j < 2; j++)
		for (unsigned turned = 0; turned < 2; turned++)
			s->v[j][s->n + turned] =
			    (struct eng_steer_cfg){.src = sim_host_ip(turned ? !j : j, host[turned ? !j : j]),
			        .dst = sim_host_ip(turned ? j : !j, host[turned ? j : !j]),
			        .vni = tenant ? 100 + tenant : 0,
			        .dqpn = qpn[turned ? j : !j],
			        .reservation = (uint16_t)number,
			        .share = *share};
	s->n += 2;
}

static struct wan_class_cfg draw_share(struct run *r)
{
	const uint64_t rate =
	    below(r, 8) ? RATE_MIN + below(r, RATE_MAX - RATE_MIN) : SLOW_MIN + below(r, RATE_MIN - SLOW_MIN);

	return (struct wan_class_cfg){
	    .guarantee_Bps = rate, .limit_Bps = rate, .weight = 1, .priority = (uint8_t)below(r, 3)};
}

static void draw_set(struct run *r, struct set *s)
{
	const unsigned often = 1 + below(r, 4); /* of four pairs */

	for (unsigned i = 0; i < PAIRS; i++) {
		const unsigned tenant = i / (SIM_HOSTS * SIM_HOSTS);
		const unsigned host[2] = {i % SIM_HOSTS, i / SIM_HOSTS % SIM_HOSTS};
		const struct wan_class_cfg share = draw_share(r);

		if (below(r, 4) < often && (!tenant || r->cfg.tenants))
			add(s, host, tenant, (const uint32_t[2]){0, 0}, 1 + i, &share);
	}
	for (unsigned i = 0; i < r->qps && 1 + PAIRS + i < SIM_RATES; i++) {
		const struct side *q = r->qp[i];
		const struct wan_class_cfg share = draw_share(r);

		if (!below(r, 5))
			add(s, (const unsigned[2]){q[0].host, q[1].host}, q->tenant,
			    (const uint32_t[2]){q[0].qpn, q[1].qpn}, 1 + PAIRS + i, &share);
	}
}

static void change(struct run *r)
{
	struct set s = {.n = 0};

	if (below(r, 6)) /* else all are withdrawn */
		draw_set(r, &s);
	for (unsigned j = 0; j < 2; j++)
		sim_steer(r->w, j, s.v[j], s.n);
}

void sim_rates_begin(struct run *r)
{
	r->rate_rng.s = r->cfg.seed ^ 0x7261746573;
	change(r);
	r->rate_at = sim_now(r->w) + RWY_MS * below(r, EACH_MAX);
}

void sim_rates_tick(struct run *r, rwy_time now)
{
	if (now < r->rate_at)
		return;
	r->rate_at = now > r->round_at + UNTIL ? RWY_NEVER : now + RWY_MS * (1 + below(r, EACH_MAX));
	change(r);
}
