/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes a sleeping worker from any other thread. */
#include <unistd.h>

#include "gateway/gw.h"

void gw_worker_wake(struct gw_worker *w)
{
	if (w->wake_fd >= 0 && atomic_exchange(&w->asleep, false) && write(w->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}
