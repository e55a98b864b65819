/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that answer late (F_LATE): their processor has other work again and again, as that of a
 * guest on a busy machine. What comes meanwhile waits in the receive ring; then the host answers all
 * of it at once, the gateway's repeats as well. No connection may be lost by that, and no answer
 * taken for another queue pair's.
 */
#include <string.h>

#include "tests/sim/explore.h"

#define LATE_MAX  2500 /* ms that a host answers nothing at most */
#define WELL_MIN  300  /* ms between that, in which it answers all that waited */
#define WELL_MAX  1800
#define BEGIN_MAX 4000 /* ms in which queue pairs begin */
#define SHORT     50   /* ms; most pauses are shorter, as of a scheduler */

void sim_draw_late(struct run *r)
{
	bool one_pair;

	r->late_rng.s = r->cfg.seed ^ 0x6c617465;
	for (unsigned i = 0; i < 2; i++)
		for (unsigned k = 0; k < SIM_HOSTS; k++)
			r->late[i][k].often = sim_below(&r->late_rng, 3);
	/* Queue pairs of the same two hosts are the ones that can be taken for each other. */
	one_pair = !r->cfg.tenants && sim_chance(&r->late_rng, .7);
	for (unsigned i = 0; i < r->qps && one_pair; i++)
		r->qp[i][0].host = r->qp[i][1].host = 0;
}

/* Queue pairs begin one after the other, so that some are learned while others are repeated. */
void sim_late_begin(struct run *r)
{
	r->begin_at = sim_now(r->w);
	for (unsigned i = 0; i < r->qps; i++)
		r->begin[i] = r->begin_at + RWY_MS * sim_below(&r->late_rng, BEGIN_MAX);
}

void sim_late_tick(struct run *r, rwy_time now)
{
	if (now < r->begin_at)
		return;
	r->begin_at = RWY_NEVER;
	for (unsigned i = 0; i < r->qps; i++) {
		if (r->begin[i] <= now) {
			r->begin[i] = RWY_NEVER;
			sim_post_qp(r, r->qp[i]);
		}
		r->begin_at = rwy_time_min(r->begin_at, r->begin[i]);
	}
}

rwy_time sim_late_until(struct run *r, unsigned site, unsigned host)
{
	struct sim_late *l = &r->late[site][host];
	rwy_time now = sim_now(r->w);

	if (!l->often)
		return 0;
	while (now >= l->end) {
		uint32_t most = sim_chance(&r->late_rng, .5) ? SHORT : LATE_MAX;

		l->begin = rwy_time_max(l->end, now) +
		           RWY_MS * (WELL_MIN + sim_below(&r->late_rng, (WELL_MAX - WELL_MIN) / l->often));
		l->end = l->begin + RWY_MS * (1 + sim_below(&r->late_rng, most));
	}
	return now >= l->begin ? l->end : 0;
}

rwy_time sim_host_ready(void *ctx, unsigned site, const uint8_t *ip, uint32_t len)
{
	struct run *r = ctx;

	for (unsigned k = 0; k < SIM_HOSTS && (r->faults & F_LATE) && !r->silent; k++) {
		struct rwy_ip host = sim_host_ip(site, k);

		if (len >= 20 && ip[0] >> 4 == 4 && !memcmp(host.b + 12, ip + 16, 4))
			return sim_late_until(r, site, k);
	}
	return 0;
}
