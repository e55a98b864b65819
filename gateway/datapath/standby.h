/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker of one of a pair of gateways (docs/standby.md). Both have the same addresses, so while
 * this one does not serve, nothing may leave its LAN and WAN ports, of the engine or of the kernel,
 * and nothing that comes there may reach the kernel: it would answer. When it begins to serve, it
 * announces its addresses, so that switches send to it. Worker's thread only.
 *
 * Worker 0 leads, if there are several (engine/board.h): the ports of the others are open when its
 * ports are, and it alone announces addresses and tells neighbours. Engines say for themselves when
 * they do not serve.
 */
#ifndef GATEWAY_DATAPATH_STANDBY_H
#define GATEWAY_DATAPATH_STANDBY_H

#include "gateway/gw.h"

/* RWY_ENOMEM. Before its engine is made. Does nothing for a gateway that is not one of a pair. */
RWY_MUST_CHECK int gw_standby_new(struct gw_worker *w);
void gw_standby_free(struct gw_worker *w);

/* Once a turn, before packets are received, if w->standby. */
void gw_standby_turn(struct gw_worker *w);
/* eng_ops.tunnel_state: the tunnel of the pair, or another one. */
void gw_standby_link(struct gw_worker *w, unsigned tunnel, bool up);
/* eng_ops.serves */
void gw_standby_serves(void *ctx, bool serves, bool replaced, rwy_time now);

/* eng_ops.board_changed: wakes the other workers. */
void gw_standby_changed(void *ctx);

/* eng_ops.standby_note: worker 0's */
void gw_standby_note(void *ctx, enum eng_standby_kind kind, const uint8_t *bytes, uint32_t len, rwy_time now);

/* A neighbour that the active gateway knows. */
struct gw_neigh_told {
	struct rwy_ip addr;
	uint8_t mac[6];
};
/* Control thread: the next one that this gateway was told; false: none is left. */
bool gw_standby_told(struct gw_worker *w, struct gw_neigh_told *out);

/* While w->gated: the frame goes on to the engine, or to to_kernel(). False: drop. */
static inline bool gw_standby_receives(const struct gw_port *p)
{
	return p->pair || p->conf->role == CONF_ROLE_WAN;
}
/* While w->gated: a frame of this port may go to the kernel, or leave by it. */
static inline bool gw_standby_passes(const struct gw_worker *w, const struct gw_port *p)
{
	return p->pair || (w->gate == GW_PAIR_ASKS && p->conf->role == CONF_ROLE_WAN);
}

/* standby_say.c: announces all addresses of WAN ports, and of LAN ports, too. */
void gw_standby_announce(struct gw_worker *w, bool lan);
/*
 * standby_neigh.c: the active gateway says which neighbours it knows, a part of them each turn,
 * when they change and every 20 seconds. The standby's kernel learns them: so the first packets to
 * hosts after a takeover need not wait for ARP.
 */
struct gw_standby_neigh {
	uint64_t gen;  /* of the table that is said, or was said last */
	uint32_t next; /* index of the next entry to be said */
	rwy_time again;
#define GW_TOLD 256 /* a power of two */
	struct gw_neigh_told told[GW_TOLD];
	_Atomic uint32_t head, tail; /* worker; control thread */
};
/* All are said again, from now on. */
void gw_standby_neigh_begin(struct gw_standby_neigh *n);
void gw_standby_neigh_say(struct gw_worker *w, struct gw_standby_neigh *n);
void gw_standby_neigh_hear(
    struct gw_worker *w, struct gw_standby_neigh *n, const uint8_t *bytes, uint32_t len);

/* standby_say.c: asks for the addresses of some hosts that have connections, from *cursor on, which
 * is 0 again after the last. */
void gw_standby_find_hosts(struct gw_worker *w, uint32_t *cursor);

#endif
