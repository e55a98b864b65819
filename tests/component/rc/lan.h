/* SPDX-License-Identifier: Apache-2.0 */
/* A host's end of a LAN: raw frames on eth0 of a network namespace. */
#ifndef TESTS_COMPONENT_RC_LAN_H
#define TESTS_COMPONENT_RC_LAN_H

#include <stdint.h>
#include <sys/types.h>

struct lan {
	int fd;
	uint8_t head[14]; /* Ethernet header of frames to the gateway */
};

/* mac: of the gateway. It ends the process if that cannot be. */
void lan_open(struct lan *l, const char *netns, const char *mac);
/* Sends an IPv4 packet. A full queue is a loss, which hosts repair. */
void lan_send(const struct lan *l, const uint8_t *ip, uint32_t len);
/* Receives a packet that others sent; its bytes from the IP header on. 0: there is none. */
uint32_t lan_receive(const struct lan *l, uint8_t *ip, uint32_t size);

#endif
