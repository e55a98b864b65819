/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames from the workers to the kernel, and the wake-up of the control thread, which writes them
 * to the ports' taps. The control thread announces that it is about to sleep; only then does a
 * worker write the eventfd.
 */
#ifndef GATEWAY_PORT_KERNEL_H
#define GATEWAY_PORT_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "rwy/err.h"

struct rte_ring;

struct gw_kernel {
	struct rte_ring *frames; /* workers put, the control thread takes */
	int wake_fd;
	_Atomic bool asleep; /* the control thread waits for wake_fd */
};

RWY_MUST_CHECK int gw_kernel_new(struct gw_kernel **out);
void gw_kernel_free(struct gw_kernel *k); /* also frees the queued frames */
/* Wakes the control thread. Any thread; cheap when it is awake. */
void gw_kernel_wake(struct gw_kernel *k);

#endif
