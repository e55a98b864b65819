/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Next hops: which port and MAC address a destination has. The kernel does ARP and ND; the control thread
 * reads its answers (netlink.c), builds a table (struct gw_nt), publishes a pointer to it, and frees the old
 * one when every worker has moved on. Workers only read. A flow remembers its next hop with the table's
 * generation: one compare per packet.
 */
#ifndef GATEWAY_PORT_NEIGH_H
#define GATEWAY_PORT_NEIGH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/app.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define GW_NEIGH_MAX  8192 /* next hops known at once; power of two */
#define GW_ROUTES_MAX 1024
#define GW_L2_MAX     18

/* A resolved next hop. */
struct gw_nh {
	struct rwy_ip addr;
	uint16_t port;         /* index */
	uint16_t id;           /* stable while the kernel knows the neighbour; index of gw_worker.nh_used */
	uint8_t l2[GW_L2_MAX]; /* Ethernet header with the VLAN tag, if any; the last two bytes (EtherType)
	                          are left open */
	uint8_t l2_len;
};

/* A route of the kernel that leads to one of our ports. */
struct gw_route {
	struct rwy_ip dst; /* IPv4 mapped */
	uint8_t len;       /* 0..128; IPv4: 96 + n */
	bool has_via;
	uint16_t port;
	uint32_t metric;
	struct rwy_ip via;
};

struct gw_nt {
	uint64_t gen;       /* 1.. */
	struct gw_nt *next; /* retired list */
	unsigned nhs, routes;
	uint32_t mask; /* of slot[] */
	struct gw_nh *nh;
	struct gw_route *route; /* longest prefix first, then lowest metric */
	uint16_t *slot;         /* index into nh + 1 by hash of (port, address), 0 = empty */
};

enum gw_nh_state {
	GW_NH_INCOMPLETE,
	GW_NH_REACHABLE,
	GW_NH_STALE,
	GW_NH_DELAY,
	GW_NH_PROBE,
	GW_NH_FAILED,
	GW_NH_NOARP,
	GW_NH_PERMANENT
};

/* The kernel's view of one neighbour; control thread, under `lock`. */
struct gw_nb {
	struct rwy_ip addr;
	uint16_t port;
	uint8_t mac[6];
	uint8_t state; /* enum gw_nh_state */
	bool has_mac;
	bool live;     /* in the kernel's table at the last look */
	uint32_t seen; /* gw_neigh.round in which it was last there */
	bool used;     /* sent to lately */
	bool valid;    /* an entry, perhaps of a neighbour the kernel has forgotten since */
};

struct gw_neigh {
	_Atomic(struct gw_nt *) nt;
	struct gw_nt *retired;
	uint64_t gen;
	uint32_t round;       /* looks at the kernel's table so far */
	pthread_mutex_t lock; /* nb[]: control thread writes, API threads read */
	struct gw_nb
	    nb[GW_NEIGH_MAX]; /* open addressing by gw_neigh_hash; the index is the id of the next hop */
};

/* A worker's look-up. */
enum gw_nh_miss { GW_NH_NO_ROUTE = 1, GW_NH_UNRESOLVED = 2 };

/* The next hop for dst: on a port of role LAN, or on exactly port `wan_port` when that is >= 0. NULL: *miss
 * says why, and for GW_NH_UNRESOLVED *ask_addr and *ask_port what to resolve. */
const struct gw_nh *gw_nt_find(const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *dst,
    int wan_port, enum gw_nh_miss *miss, struct rwy_ip *ask_addr, uint16_t *ask_port);

/* Control thread. */
RWY_MUST_CHECK int gw_neigh_new(struct gw_app *app);
void gw_neigh_free(struct gw_app *app); /* after the workers have ended */
/* Takes the list of routes and the present nb[] into a new table and publishes it, if anything changed for
 * the workers. */
int gw_neigh_publish(struct gw_app *app, const struct gw_route *routes, unsigned n);
/* The entry of a neighbour, made if there is none; NULL when the table is full. Under `lock`. */
struct gw_nb *gw_neigh_entry(struct gw_neigh *g, uint16_t port, const struct rwy_ip *addr);
void gw_neigh_reap(struct gw_app *app); /* frees tables that no worker reads any more */

uint32_t gw_neigh_hash(uint16_t port, const struct rwy_ip *a);

#endif
