/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a worker that sleeps, by any other thread. */
#include <unistd.h>

#include "gateway/gw.h"

void gw_worker_wake(struct gw_worker *w)
{
	if (w->wake_fd >= 0 && atomic_exchange(&w->asleep, false) && write(w->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* its counter is full: it wakes anyhow */
}
