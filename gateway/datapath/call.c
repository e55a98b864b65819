/* SPDX-License-Identifier: Apache-2.0 */
/* What other threads get from workers: the clock they share, calls into a worker's turn, its counters and
 * figures. */
#include <rte_cycles.h>
#include <string.h>
#include <time.h>

#include "gateway/gw.h"
#include "gateway/setup.h"

#define CALL_WAIT (500 * RWY_MS)
#define CALL_NAP  (20 * RWY_US)

/* --- clock ---------------------------------------------------------------------------------- */

/* TSC to ns by a 32.32 fixed-point factor: no system call, no division. */
static uint64_t clock_mult;
static uint64_t clock_base;

void gw_clock_init(void)
{
	clock_mult = (uint64_t)(((unsigned __int128)1000000000u << 32) / rte_get_tsc_hz());
	clock_base = rte_rdtsc();
}

rwy_time gw_now(void)
{
	/* One second on: zero is left for "never happened". */
	return (rwy_time)(((unsigned __int128)(rte_rdtsc() - clock_base) * clock_mult) >> 32) + RWY_SEC;
}

/* --- calls from other threads --------------------------------------------------------------- */

enum call_state { CALL_NONE, CALL_WAITING, CALL_RUNNING, CALL_DONE };

bool gw_call_pending(const struct gw_worker *w)
{
	return atomic_load(&w->call_state) == CALL_WAITING;
}

void gw_call_serve(struct gw_worker *w)
{
	int waiting = CALL_WAITING;

	if (atomic_load_explicit(&w->call_state, memory_order_relaxed) != CALL_WAITING ||
	    !atomic_compare_exchange_strong(&w->call_state, &waiting, CALL_RUNNING))
		return;
	w->call_fn(w->eng, w->call_arg);
	atomic_store_explicit(&w->call_state, CALL_DONE, memory_order_release);
}

int gw_call(struct gw_app *app, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	struct gw_worker *w = worker < app->workers ? app->worker[worker] : NULL;
	rwy_time end = gw_now() + CALL_WAIT;
	int rc = 0;

	if (!w)
		return RWY_EINVAL;
	pthread_mutex_lock(&w->call_lock); /* one caller at a time */
	w->call_fn = fn;
	w->call_arg = arg;
	atomic_store(&w->call_state, CALL_WAITING);
	gw_worker_wake(w);
	while (atomic_load_explicit(&w->call_state, memory_order_acquire) != CALL_DONE) {
		int waiting = CALL_WAITING;

		if (gw_now() > end && atomic_compare_exchange_strong(&w->call_state, &waiting, CALL_NONE)) {
			rc = RWY_EAGAIN;
			break;
		}
		nanosleep(&(struct timespec){.tv_nsec = CALL_NAP}, NULL);
	}
	atomic_store(&w->call_state, CALL_NONE);
	pthread_mutex_unlock(&w->call_lock);
	return rc;
}

/* --- figures -------------------------------------------------------------------------------- */

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
