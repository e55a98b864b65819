/* SPDX-License-Identifier: Apache-2.0 */
/* Device strings for EAL: the kind of device, and the values that its driver needs. */
#include <rte_common.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The kernel's driver of the device in a folder of sysfs; "": none. */
static void kernel_driver(const char *folder, char *out, size_t size)
{
	char path[300], to[256];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/driver", folder);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = 0;
	snprintf(out, size, "%.63s", strrchr(to, '/') ? strrchr(to, '/') + 1 : to);
}

void gw_device_why(const char *sysfs, const char *device, char *out, size_t size)
{
	static const char bind[] = "bind it to vfio-pci (VFIO_DEVICES in /etc/default/roceway-gateway)";
	unsigned domain = 0, bus, slot, function;
	char address[32], folder[256], driver[64];

	if (sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
		domain = 0;
		if (sscanf(device, "%x:%x.%x", &bus, &slot, &function) != 3) {
			snprintf(out, size, "the reason is above");
			return;
		}
	}
	snprintf(address, sizeof(address), "%04x:%02x:%02x.%x", domain, bus, slot, function);
	snprintf(folder, sizeof(folder), "%s/bus/pci/devices/%s", sysfs, address);
	kernel_driver(folder, driver, sizeof(driver));
	if (access(folder, F_OK) != 0)
		snprintf(out, size, "this machine has no PCI device %s", address);
	else if (!strncmp(driver, "mlx", 3) || !strcmp(driver, "vfio-pci") || strstr(driver, "uio"))
		snprintf(out, size, "the reason is above; if there is none, DPDK has no driver for it");
	else if (!*driver)
		snprintf(out, size, "no kernel driver has it: %s", bind);
	else
		snprintf(out, size, "kernel driver %s has it: %s", driver, bind);
}
