/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/port/kernel.h"

#include <rte_ring.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/gw.h"
#include "gateway/port/mbuf.h"

void gw_kernel_wake(struct gw_kernel *k)
{
	if (atomic_exchange(&k->asleep, false) && write(k->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

int gw_kernel_new(struct gw_kernel **out)
{
	struct gw_kernel *k = calloc(1, sizeof(*k));

	*out = k;
	if (!k)
		return RWY_ENOMEM;
	k->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	k->frames = rte_ring_create("rwy_to_kernel", GW_KERNEL_LEN, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return k->frames ? 0 : RWY_ENOMEM;
}

void gw_kernel_free(struct gw_kernel *k)
{
	if (!k)
		return;
	gw_ring_free(k->frames);
	if (k->wake_fd >= 0)
		close(k->wake_fd);
	free(k);
}
