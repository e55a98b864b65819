/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host on a LAN beside the kernel: IP packets of one family through an AF_PACKET socket, with an
 * address that the kernel has or has not. In the second case it answers who looks for it (neigh.h).
 * One thread.
 */
#ifndef TOOLS_REPLAY_LIVE_RAW_H
#define TOOLS_REPLAY_LIVE_RAW_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"
#include "rwy/time.h"

struct rp_error {
	char text[200]; /* one line */
};
/* Fills *err. Returns -1. */
int rp_fail(struct rp_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct rp_raw_stats {
	uint64_t sent, received; /* IP packets; received ones are for this host */
	uint64_t not_sent;       /* the kernel had no room */
};

struct rp_lan {
	int fd, sink; /* sink: holds the UDP port of an address of the kernel; -1: none */
	char name[IF_NAMESIZE];
	uint8_t mac[6], next_hop[6];
	struct rwy_ip ip, peer;
	uint32_t mtu;
	bool kernels; /* the kernel has the address */
	struct rp_raw_stats stats;
};

/*
 * Opens `interface` as the host `own` (NULL: the interface's first address) for packets to `peer`,
 * of the same family. via: the router to it; NULL: as the kernel's routes have it. Finds the next
 * hop's MAC address. 0, or -1 and *err: no such interface, no right to a raw socket, UDP port 4791
 * in use (by Soft-RoCE), no answer of the next hop.
 */
int rp_lan_open(struct rp_lan *l, const char *interface, const struct rwy_ip *own, const struct rwy_ip *peer,
    const struct rwy_ip *via, struct rp_error *err);
void rp_lan_close(struct rp_lan *l);
/* An IP packet to the peer. What does not fit the socket is lost. */
void rp_lan_send(struct rp_lan *l, const uint8_t *ip, uint32_t len);
/*
 * The next packet to this host into buf[size]: its length, and *ip is in buf; 0: none is here.
 * Answers who looks for this host on the way.
 */
uint32_t rp_lan_recv(struct rp_lan *l, uint8_t *buf, uint32_t size, uint8_t **ip);

/* Addresses of laboratories: private, link-local, shared, benchmarks, documentation. */
bool rp_is_lab(const struct rwy_ip *ip);

/* route.c: the router on the way to `peer` by the kernel's table, or `peer` itself. */
struct rwy_ip rp_route(const char *interface, const struct rwy_ip *peer);

#endif
