/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and statistics of workers for other threads. */
#include <string.h>

#include "gateway/gw.h"

void gw_counters_get(const struct gw_app *app, unsigned worker, struct gw_counters *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < app->workers; i++) {
		const struct gw_worker *w = app->worker[i];

		if (!w || (worker < app->workers && worker != i))
			continue;
#define X(f, s) out->f += *(const volatile uint64_t *)&w->c.f;
		GW_COUNTERS(X)
#undef X
	}
}

void gw_worker_stats_get(const struct gw_app *app, unsigned worker, struct gw_worker_stats *out)
{
	const struct gw_worker *w = worker < app->workers ? app->worker[worker] : NULL;

	memset(out, 0, sizeof(*out));
	if (!w)
		return;
	*out = w->st;
	out->heartbeat = atomic_load(&w->heartbeat);
	out->lcore = (int)w->lcore;
}
