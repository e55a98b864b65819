/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of other threads into a worker's turn. */
#include <time.h>

#include "gateway/gw.h"

#define CALL_WAIT (500 * RWY_MS)
#define CALL_NAP  (20 * RWY_US)

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
