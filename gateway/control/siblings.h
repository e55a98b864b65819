/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other gateways of this site. Hosts, ECMP or VRRP choose the gateway that a packet reaches; the
 * control center's assignments choose the one that carries an address pair, or else rwy/spread.h,
 * with the same result at both sites. A RoCE packet of the plain LAN that reached the wrong gateway
 * is handed to the right one over the LAN, as a router does it: it is not terminated, kept or
 * copied.
 *
 *   siblings.c     the list, from the file or the control center's document, published to workers
 *   sibling_rx.c   a worker's part: which gateway owns a packet, and sending it there
 *
 * Connections stay where they are: a queue pair with state in this gateway stays here, and one that
 * is handed to a sibling stays with it, whatever the list says later. A packet that a sibling
 * handed on is never handed on again. A lost sibling gets nothing.
 */
#ifndef GATEWAY_CONTROL_SIBLINGS_H
#define GATEWAY_CONTROL_SIBLINGS_H

#include "gateway/app.h"
#include "gateway/control/tunnels.h"

struct gw_netlink;

struct gw_sibling_tunnel {
	char peer[CONF_NAME];
	uint32_t weight;
};

/* One sibling as configured. */
struct gw_sibling {
	char name[CONF_NAME]; /* "": a free entry */
	struct rwy_ip addr;   /* address on the LAN */
	uint32_t weight;      /* weight in the file */
	bool lost;
	/* number in the document; a sibling of the file has the same tunnels as this gateway */
	unsigned tunnels;
	struct gw_sibling_tunnel tunnel[CONF_TUNNELS_MAX];
};

/* An assigned address pair. */
struct gw_sibling_pair {
	struct rwy_ip local, remote;
	int who; /* index in gw_siblings_say.sib; -1: this gateway */
	/* only packets to this QP of the remote host, which has precedence; 0: all packets */
	uint32_t dqpn;
};

struct gw_siblings_say {
	const struct gw_sibling *sib;
	unsigned n; /* number of siblings, at most CONF_SIBLINGS_MAX */
	const struct gw_sibling_pair *pair;
	unsigned pairs;
};

struct gw_siblings;
/*
 * Makes the siblings of app->conf. Call it before any worker exists. RWY_ENOMEM; RWY_EINVAL: the
 * file gateway.site_key cannot be used (logged). After an error call gw_siblings_free.
 */
RWY_MUST_CHECK int gw_siblings_new(struct gw_app *app);
void gw_siblings_free(struct gw_app *app); /* after the workers have ended */
/*
 * All of them anew, after the tunnels. Under gw_change_lock. Waits until every worker has them, but
 * for one that hangs. RWY_ENOMEM: as they were.
 */
RWY_MUST_CHECK int gw_siblings_set(struct gw_app *app, const struct gw_siblings_say *say);
/*
 * Replaces the siblings of the file after a reload. Under gw_change_lock. Does nothing if c has
 * none and the present ones are the control center's. RWY_ENOMEM: as they were.
 */
RWY_MUST_CHECK int gw_siblings_own(struct gw_app *app, const struct conf *c);
/*
 * Once a second, control thread: MAC addresses are asked for; a sibling of the file that does not
 * answer for some seconds is lost until it does. nl NULL: nobody is asked.
 */
void gw_siblings_tick(struct gw_app *app, struct gw_netlink *nl);

struct gw_sibling_info {
	char name[CONF_NAME];
	struct rwy_ip addr;
	uint32_t weight; /* weight in the file; 0: the document's tunnels have weights */
	unsigned tunnels;
	bool lost, controller, mac_known;
	uint8_t mac[6];
	unsigned pairs;   /* number assigned to it */
	uint64_t packets; /* packets handed to it */
};
/* Fills up to max entries. Returns the number that exist. Any thread except a worker's. */
unsigned gw_siblings_get(struct gw_app *app, struct gw_sibling_info *out, unsigned max);

#endif
