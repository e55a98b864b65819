/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of relays: links go to the other one (proxy/mirror.h), and packets that tell a host
 * of a link wait until it has that link, while the pair's state asks for it. Worker's thread only.
 */
#ifndef GATEWAY_DATAPATH_EDGE_PAIR_H
#define GATEWAY_DATAPATH_EDGE_PAIR_H

#include "gateway/gw.h"
#include "proxy/mirror.h"

#define GW_EDGE_WAITS 256

/* A packet, rewritten already, that waits for its link. */
struct gw_edge_wait {
	struct rwy_buf *b;
	uint32_t link; /* place in the table */
	uint64_t id;   /* of the link: the place may have another one then */
	bool lan;      /* it goes to a local host, else into the engine */
};

struct gw_edge_pair {
	struct proxy_mirror mirror;
	unsigned waits;
	struct gw_edge_wait wait[GW_EDGE_WAITS];
};

/* NULL: no memory. cfg is for the table of the edge, which is made with it. */
struct gw_edge_pair *gw_edge_pair_new(struct gw_worker *w, struct proxy_edge *e, struct proxy_map_cfg *cfg);
void gw_edge_pair_free(struct gw_worker *w, struct gw_edge_pair *p); /* p: NULL is allowed */

/*
 * Whether the packet of n bytes may not go on now: it waits, or there is no room for that. l: the
 * link that it tells a host of; NULL: none.
 */
bool gw_edge_pair_waits(
    struct gw_worker *w, const struct proxy_link *l, const uint8_t *ip, uint32_t n, bool lan);
/* eng_ops: standby_note of links; standby_whole; serves. */
void gw_edge_pair_note(struct gw_worker *w, const uint8_t *bytes, uint32_t len);
bool gw_edge_pair_whole(void *ctx, uint32_t round);
void gw_edge_pair_serves(struct gw_worker *w, bool serves, rwy_time now);

/* --- edge_wait.c --- */
/*
 * Once a turn, while the engine runs none of its functions, if there is a pair. Returns how much
 * there was to do.
 */
unsigned gw_edge_pair_turn(struct gw_worker *w);
/* A packet of the relay's own, or one that has waited, to a local host. */
void gw_edge_to_lan(struct gw_worker *w, const uint8_t *ip, uint32_t len, const struct rwy_ip *host);

#endif
