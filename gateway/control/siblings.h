/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other gateways of this site. Hosts, ECMP or VRRP choose the gateway that a packet gets to; which one
 * carries an address pair is said by the control center's assignments, or else by rwy/spread.h, the same at
 * both sites. A RoCE packet of the plain LAN that came to the wrong one is handed to the right one over the
 * LAN, as a router does it: nothing is terminated, kept or copied.
 *
 *   siblings.c     the list, from the file or the control center's document, given to workers
 *   sibling_rx.c   a worker's part: which gateway owns a packet, and sending it there
 *
 * Connections stay where they are: a queue pair that this gateway has state of is its own, and one that it
 * hands on goes on to the same sibling, whatever the list says later. A packet that a sibling handed on is
 * never handed on again. A sibling that is lost gets nothing.
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

/* One of them, as it is said. */
struct gw_sibling {
	char name[CONF_NAME]; /* "": a free place */
	struct rwy_ip addr;   /* on the LAN */
	uint32_t weight;      /* the file's */
	bool lost;
	unsigned tunnels; /* the document's; the file's sibling has the tunnels that we have */
	struct gw_sibling_tunnel tunnel[CONF_TUNNELS_MAX];
};

/* An address pair that is assigned. */
struct gw_sibling_pair {
	struct rwy_ip local, remote;
	int who;       /* place in gw_siblings_say.sib; -1: ours */
	uint32_t dqpn; /* packets to this QP of the remote host alone, before what is said of all; 0: all */
};

struct gw_siblings_say {
	const struct gw_sibling *sib;
	unsigned n; /* CONF_SIBLINGS_MAX at most */
	const struct gw_sibling_pair *pair;
	unsigned pairs;
};

struct gw_siblings;
/* Before any worker exists: those of app->conf. */
RWY_MUST_CHECK int gw_siblings_new(struct gw_app *app);
void gw_siblings_free(struct gw_app *app); /* after the workers have ended */
/* The first set of a worker that does not run yet. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_siblings_join(struct gw_app *app, struct gw_worker *w);
/* All of them anew, after the tunnels. Under gw_change_lock. RWY_ENOMEM: as they were. A worker that is late
 * is told by the tick. */
RWY_MUST_CHECK int gw_siblings_set(struct gw_app *app, const struct gw_siblings_say *say);
/* Those of a file, after a reload. Under gw_change_lock. */
RWY_MUST_CHECK int gw_siblings_own(struct gw_app *app, const struct conf *c);
/* Once a second, control thread: MAC addresses are asked for; a sibling of the file that does not answer for
 * some seconds is lost until it does; workers that were not reached. nl NULL: nobody is asked. */
void gw_siblings_tick(struct gw_app *app, struct gw_netlink *nl);

struct gw_sibling_info {
	char name[CONF_NAME];
	struct rwy_ip addr;
	uint32_t weight; /* by the file; 0: by the document's tunnels */
	unsigned tunnels;
	bool lost, controller, mac_known;
	uint8_t mac[6];
	unsigned pairs;   /* assigned to it */
	uint64_t packets; /* handed to it */
};
/* Fills up to max entries; returns how many there are. Any thread but a worker's. */
unsigned gw_siblings_get(struct gw_app *app, struct gw_sibling_info *out, unsigned max);

#endif
