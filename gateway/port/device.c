/* SPDX-License-Identifier: Apache-2.0 */
/* Device strings for EAL: the kind of device, and the values that its driver needs. */
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gw.h"
#include "gateway/port/device.h"

/* af_packet: bytes of a ring's frame before the packet, rounded up (TPACKET_V2) */
#define RING_HEAD   80
#define RING_STEP   1024
#define RING_MIN    2048
#define RING_BYTES  (8u << 20) /* size of the ring of one direction of one queue */
#define RING_FRAMES 2048
#define RING_BLOCK  65536

bool gw_device_is_af_packet(const char *device)
{
	return !strncmp(device, "net_af_packet", 13) || !strncmp(device, "eth_af_packet", 13);
}

/* Returns the number behind "key=" in a device string, or 0. */
static uint32_t device_number(const char *device, const char *key)
{
	size_t n = strlen(key);

	for (const char *s = strchr(device, ','); s; s = strchr(s + 1, ','))
		if (!strncmp(s + 1, key, n) && s[1 + n] == '=')
			return (uint32_t)strtoul(s + 2 + n, NULL, 0);
	return 0;
}

uint32_t gw_device_ring_frame(const struct conf_port *p)
{
	uint32_t given = device_number(p->device, "framesz");
	uint32_t need = RTE_ALIGN(p->mtu + GW_FRAME_EXTRA + RING_HEAD, RING_STEP);

	return given ? given : RTE_MAX(need, (uint32_t)RING_MIN);
}

void gw_device_string(const struct conf_port *p, char *out, size_t size)
{
	uint32_t frame = gw_device_ring_frame(p), block, count;
	size_t n = (size_t)snprintf(out, size, "%s", p->device);

	if (!gw_device_is_af_packet(p->device))
		return;
	/* A block holds complete frames, and is a multiple of the page size. */
	block = device_number(p->device, "blocksz");
	if (!block) {
		block = RING_BLOCK % frame ? 4 * frame : RING_BLOCK;
		n += (size_t)snprintf(out + n, size - n, ",blocksz=%u", block);
	}
	if (!device_number(p->device, "framesz"))
		n += (size_t)snprintf(out + n, size - n, ",framesz=%u", frame);
	if (!device_number(p->device, "framecnt")) {
		count = RTE_MIN(RING_BYTES / frame, (uint32_t)RING_FRAMES);
		count -= count % RTE_MAX(block / frame, 1u);
		snprintf(out + n, size - n, ",framecnt=%u", count);
	}
}

bool gw_device_is_vdev(const char *device)
{
	return !strncmp(device, "net_", 4) || !strncmp(device, "eth_", 4);
}
