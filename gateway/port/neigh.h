/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Next hops: which port and MAC address a destination has. The kernel does ARP and ND; the control
 * thread reads its answers (netlink.c), builds a table (struct gw_nt) and publishes it
 * (gateway/publish.h). Workers only read. A flow remembers its next hop with the table's
 * generation: one compare per packet.
 */
#ifndef GATEWAY_PORT_NEIGH_H
#define GATEWAY_PORT_NEIGH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/app.h"
#include "gateway/publish.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define GW_NEIGH_MAX  8192 /* most next hops known at once; power of two */
#define GW_ROUTES_MAX 1024
#define GW_L2_MAX     18

/* A resolved next hop. */
struct gw_nh {
	struct rwy_ip addr;
	uint16_t port; /* index */
	uint16_t id;   /* stable while the kernel knows the neighbor; index of gw_worker.nh_used */
	/* Ethernet header with the VLAN tag, if any; the EtherType (last two bytes) is left open */
	uint8_t l2[GW_L2_MAX];
	uint8_t l2_len;
};

/* A kernel route that leads to one of our ports. */
struct gw_route {
	struct rwy_ip dst; /* IPv4 mapped */
	uint8_t len;       /* 0..128; IPv4: 96 + n */
	bool has_via;
	uint16_t port;
	uint32_t metric;
	struct rwy_ip via;
};

struct gw_nt {
	uint64_t gen; /* 1.. */
	unsigned nhs, routes;
	uint32_t mask; /* number of slots - 1 */
	struct gw_nh *nh;
	struct gw_route *route; /* longest prefix first, then lowest metric */
	uint16_t *slot;         /* index into nh + 1, by hash of (port, address); 0: empty */
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

/* The kernel's view of one neighbor. Control thread, under `lock`. */
struct gw_nb {
	struct rwy_ip addr;
	uint16_t port;
	uint8_t mac[6];
	uint8_t state; /* enum gw_nh_state */
	bool has_mac;
	bool live;     /* present in the kernel's table at the last reading */
	uint32_t seen; /* gw_neigh.round of the last reading that had it */
	bool used;     /* used recently */
	bool valid;    /* the entry is in use, though the kernel may have forgotten the neighbor */
};

struct gw_neigh {
	uint64_t gen;         /* of the last table */
	uint32_t round;       /* looks at the kernel's table so far */
	pthread_mutex_t lock; /* nb[]: control thread writes, API threads read */
	/* open addressing by gw_neigh_hash; the index is the next hop's id */
	struct gw_nb nb[GW_NEIGH_MAX];
};

/* The present table, never NULL. Workers, for a turn; the control thread. */
static inline const struct gw_nt *gw_nt_of(const struct gw_app *app)
{
	return gw_published_get(app->publisher, GW_NEXT_HOPS);
}

/* A worker's look-up. */
enum gw_nh_miss { GW_NH_NO_ROUTE = 1, GW_NH_UNRESOLVED = 2 };

/* Returns the next hop for dst, on a port of role LAN or, if `wan_port` >= 0, on exactly that port.
 * NULL: *miss has the reason, and for GW_NH_UNRESOLVED *ask_addr and *ask_port what to resolve. */
const struct gw_nh *gw_nt_find(const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *dst,
    int wan_port, enum gw_nh_miss *miss, struct rwy_ip *ask_addr, uint16_t *ask_port);

/* Length of the longest route to a host by a port of role LAN, 0..128; -1: there is none. */
int gw_nt_lan_route(const struct gw_nt *t, const struct gw_app *app, const struct rwy_ip *host);

/* The functions below run on the control thread. */
/* Makes app->neigh and publishes an empty table, before the workers run. RWY_ENOMEM: call
 * gw_neigh_free all the same. */
RWY_MUST_CHECK int gw_neigh_new(struct gw_app *app);
void gw_neigh_free(struct gw_app *app); /* after the workers have ended */
/*
 * Takes the list of routes and the present nb[] into a new table and publishes it, if anything
 * changed for the workers. RWY_ENOMEM.
 */
int gw_neigh_publish(struct gw_app *app, const struct gw_route *routes, unsigned n);
/* Returns the entry of a neighbor; makes it if there is none; NULL: the table is full. Under
 * `lock`. */
struct gw_nb *gw_neigh_entry(struct gw_neigh *g, uint16_t port, const struct rwy_ip *addr);

/* The hash of the tables: gw_nt.slot[] and gw_neigh.nb[]. */
uint32_t gw_neigh_hash(uint16_t port, const struct rwy_ip *a);

#endif
