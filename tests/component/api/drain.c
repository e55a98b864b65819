/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real gateway/control/drain.c over made-up engines: each owes some bytes when it begins to settle, and
 * less with every look, unless they are stuck. A thread takes the control thread's part.
 */
#include "tests/component/api/drain.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/control/drain.h"
#include "gateway/port/kernel.h"

static struct {
	struct gw_app *app;
	uint64_t owed, left[GW_WORKERS_MAX];
	bool stuck, on[GW_WORKERS_MAX];
	pthread_t thread;
	_Atomic bool end;
} fake;

void eng_settle_begin(struct eng *e, rwy_time now)
{
	const unsigned w = fake_worker(e);

	if (!fake.on[w])
		fake.left[w] = fake.owed;
	fake.on[w] = true;
}

void eng_settle_cancel(struct eng *e, rwy_time now)
{
	fake.on[fake_worker(e)] = false;
}

void eng_settle_get(const struct eng *e, struct eng_settle_info *out)
{
	uint64_t *left = &fake.left[fake_worker(e)];

	*left -= fake.stuck ? 0 : *left < 1000 ? *left : *left / 4;
	*out = (struct eng_settle_info){
	    .state = *left ? ENG_SETTLING : ENG_SETTLED, .flows = *left ? 3 : 0, .bytes = *left};
}

/* No pair is made up here: gw_pair.py has real ones. */
bool eng_standby_hand_over(struct eng *e, rwy_time now)
{
	return false;
}

void gw_kernel_wake(struct gw_kernel *k)
{
}

static void *control_thread(void *arg)
{
	while (!atomic_load(&fake.end)) {
		if (gw_drain_tick(fake.app, gw_now())) {
			gw_api_stop(fake.app);
			return NULL;
		}
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return NULL;
}

int fake_drain_start(struct gw_app *app, uint64_t owed, bool stuck)
{
	fake.app = app;
	fake.owed = owed;
	fake.stuck = stuck;
	if (gw_drain_new(app))
		return -1;
	return pthread_create(&fake.thread, NULL, control_thread, NULL);
}

void fake_drain_stop(void)
{
	atomic_store(&fake.end, true);
	pthread_join(fake.thread, NULL);
	gw_drain_free(fake.app);
}
