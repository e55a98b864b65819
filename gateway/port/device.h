/* SPDX-License-Identifier: Apache-2.0 */
/* Device strings of the configuration (`ports[].device`). Any thread. */
#ifndef GATEWAY_PORT_DEVICE_H
#define GATEWAY_PORT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"

#define GW_RING_MBUF 32 /* af_packet's buffers have gw_device_ring_frame() less this */

/* Whether the device is virtual, for EAL's --vdev; else it is a PCI address. */
bool gw_device_is_vdev(const char *device);
bool gw_device_is_af_packet(const char *device);
/* af_packet: returns the bytes of a ring's frame, as configured or as the MTU needs. */
uint32_t gw_device_ring_frame(const struct conf_port *p);
/* Writes the string for EAL, with the values that the driver needs (af_packet's ring). */
void gw_device_string(const struct conf_port *p, char *out, size_t size);
/* Why EAL did not find a device, as far as sysfs (`/sys`) shows it: DPDK is silent about an address
 * that no device has, and about a device that another driver has. */
void gw_device_why(const char *sysfs, const char *device, char *out, size_t size);

#endif
