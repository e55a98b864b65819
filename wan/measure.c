/* SPDX-License-Identifier: Apache-2.0 */
/* Consecutive losses and the recent best rate: see measure.h. */
#include "wan/measure.h"

#include <string.h>

#define RUNS_MIN 8    /* fewest runs for a meaningful mean */
#define RUNS_MAX 1024 /* then both counts are halved */

void wan_measure_init(struct wan_measure *l, rwy_time now)
{
	memset(l, 0, sizeof(*l));
	l->window_at = now;
}

void wan_measure_on_lost(struct wan_measure *l, uint64_t pn)
{
	l->lost++;
	if (!l->any_lost || pn != l->lost_pn + 1)
		l->runs++;
	l->any_lost = true;
	l->lost_pn = pn;
	if (l->runs >= RUNS_MAX) {
		l->runs /= 2;
		l->lost /= 2;
	}
}

static void turn(struct wan_measure *l, rwy_time now)
{
	if (now - l->window_at < WAN_MEASURE_WINDOW)
		return;
	l->best[1] = now - l->window_at < 2 * WAN_MEASURE_WINDOW ? l->best[0] : 0;
	l->best[0] = 0;
	l->window_at = now;
}

void wan_measure_on_ack(struct wan_measure *l, uint64_t rate_Bps, bool app_limited, rwy_time now)
{
	l->at = now;
	turn(l, now);
	/* A sender with little to send shows its own rate, which is only a lower bound of the
	 * path's. */
	if (rate_Bps > l->best[0] &&
	    (!app_limited || (wan_measure_rate(l) && rate_Bps > wan_measure_rate(l))))
		l->best[0] = rate_Bps;
}

uint32_t wan_measure_burst16(const struct wan_measure *l)
{
	return l->runs < RUNS_MIN ? 0 : 16 * l->lost / l->runs;
}

uint64_t wan_measure_rate(const struct wan_measure *l)
{
	return l->best[0] > l->best[1] ? l->best[0] : l->best[1];
}
