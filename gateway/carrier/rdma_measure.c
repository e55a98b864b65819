/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of the path while a tunnel goes by RDMA: round trips by the NICs' acknowledgements,
 * losses by a counter of the device. It counts the NAKs for a sequence error, so what was gone back
 * for, of all that go by the device.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gateway/carrier/rdma.h"

/* Counters of such NAKs, by the drivers' names: mlx5, Soft-RoCE, bnxt_re. */
static const char *const counters[] = {"packet_seq_err", "rcvd_seq_err", "seq_err_naks_rcvd"};

static bool number_read(const char *path, uint64_t *out)
{
	char text[32];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	char *end;

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	*out = strtoull(text, &end, 10);
	return end != text;
}

bool gw_rdma_naks(const struct gw_conn *c, uint64_t *out)
{
	const struct rdma_cm_id *id = c->rdma->id;
	char path[sizeof(id->verbs->device->ibdev_path) + 64];

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		snprintf(path, sizeof(path), "%s/ports/%u/hw_counters/%s", id->verbs->device->ibdev_path,
		    id->port_num, counters[i]);
		if (number_read(path, out))
			return true;
	}
	return false;
}

const struct gw_rdma_flow *gw_rdma_flow_of(const struct gw_conn *c)
{
	return &c->rdma->flow;
}
