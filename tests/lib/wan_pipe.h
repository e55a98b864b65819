/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of a reliable carrier in virtual time: several connections, each in order and
 * without loss, each with its own rate and stalls (as a TCP connection has them while it repairs a
 * loss). Datagrams are put on them in runs. It has limited room, and counts what exceeds it.
 */
#ifndef TESTS_LIB_WAN_PIPE_H
#define TESTS_LIB_WAN_PIPE_H

#include "tests/lib/wan_link.h"

#define WAN_PIPE_CONNS 8

struct wan_pipe_cfg {
	unsigned conns, run;  /* consecutive datagrams on one connection */
	rwy_dur delay, stall; /* stall: duration */
	uint32_t stall_ppm;   /* probability per datagram that a stall begins */
	uint64_t rate_Bps;    /* of each connection */
	uint64_t room;        /* bytes that wait to leave, over all connections */
	uint32_t room_n;      /* and datagrams */
};

struct wan_pipe {
	struct wan_pipe_cfg cfg;
	uint64_t rng;
	struct wan_link_pkt **q[WAN_PIPE_CONNS];
	uint32_t head[WAN_PIPE_CONNS], n[WAN_PIPE_CONNS], cap[WAN_PIPE_CONNS];
	rwy_time busy[WAN_PIPE_CONNS]; /* the connection's queue is empty from then on */
	unsigned at, left;
	uint64_t sent, delivered, overrun, dropped;
	bool dead; /* it takes everything and delivers nothing more of it, and nobody knows */
};

void wan_pipe_init(struct wan_pipe *p, const struct wan_pipe_cfg *cfg, uint64_t seed);
void wan_pipe_fini(struct wan_pipe *p);
uint64_t wan_pipe_room(const struct wan_pipe *p, uint32_t *datagrams, rwy_time now);
void wan_pipe_send(
    struct wan_pipe *p, const void *hdr, size_t hdr_len, const void *payload, size_t len, rwy_time now);
/* The caller frees it with free(). */
struct wan_link_pkt *wan_pipe_recv(struct wan_pipe *p, rwy_time now);
rwy_time wan_pipe_next(const struct wan_pipe *p, rwy_time now);
void wan_pipe_break(struct wan_pipe *p); /* its content is lost */

#endif
