/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation's inside: sim.c runs it, sim_site.c has the gateways, sim_link.c the links,
 * sim_place.c says which host
 * is where. */
#ifndef TOOLS_REPLAY_SIM_INT_H
#define TOOLS_REPLAY_SIM_INT_H

#include "rwy/due.h"
#include "tools/replay/cm.h"
#include "tools/replay/sim.h"

#define RP_HEADROOM 320
/* In front of a WAN datagram on the line: Ethernet, IP and UDP. */
#define RP_WAN_HEAD 42

/* Places where packets arrive; the site is added. */
enum rp_where { RP_TO_HOST = 0, RP_TO_GATEWAY = 2, RP_TO_PEER = 4, RP_PLACES = 6 };

struct rp_site {
	struct rp_sim *sim;
	struct eng *e;
	unsigned idx;
	uint64_t bufs; /* buffers that the engine holds */
	rwy_time next;
	bool up;
	struct wanem_link wan, up_link, down_link; /* away from it; hosts to it; it to hosts */
};

/* The host of a site with a queue pair. */
struct rp_port {
	const struct rp_side *side;
	struct rp_host *host;
	struct rp_site *at;
	rwy_time next;
};

/* The set-up of a connection, and how far it is. */
struct rp_sim_cm {
	struct rp_setup setup;
	uint32_t next;    /* step that is sent next */
	uint32_t arrived; /* steps that reached the other host */
	rwy_time moved;   /* when the step before `next` was there; RWY_NEVER: it is not */
};

struct rp_sim {
	struct rp_sim_cfg cfg;
	const struct rp_schedule *s;
	struct rp_site site[2];
	struct rp_sim_conn *conn;
	struct rp_port *port;
	uint32_t ports;
	struct due_heap due;
	uint64_t order, hash, packets, unknown;
	rwy_time now, start;
	/* The gateways' process is new until then, and pairs no flow of hosts that it does not know
	 * (engine/pair.c). Hosts begin later: a capture shows gateways that have run for long. */
	rwy_time quiet_until;
	struct rwy_ip *addr[2]; /* of the sites' hosts */
	uint32_t addrs[2], left_out, same_qps;
	struct rp_sim_cm *cm; /* of each connection */
	uint32_t cms;         /* connections with a set-up */
	uint64_t cm_differ;   /* messages that came otherwise than they were sent */
};

/* sim_place.c: fills conn[], addr, left_out, same_qps; RWY_EINVAL. */
RWY_MUST_CHECK int rp_sim_place(struct rp_sim *sim);

/* sim_site.c */
void rp_site_start(struct rp_site *s, const struct rwy_ip *behind, uint32_t n);
void rp_site_stop(struct rp_site *s);
/* A packet for the gateway, from its LAN or from the WAN. Takes b. */
void rp_site_recv(struct rp_site *s, bool lan, struct rwy_buf *b);
void rp_site_poll(struct rp_site *s);

/* sim_link.c. rp_sim_send() puts a packet on a link, of `extra` bytes more than it has here; it
 * arrives at `where`. Takes b. */
struct rwy_buf *rp_buf_new(uint32_t len);
void rp_sim_send(struct rp_sim *sim, struct wanem_link *l, uint32_t where, uint32_t extra, struct rwy_buf *b);

/* sim_cm.c */
RWY_MUST_CHECK int rp_sim_cm_new(struct rp_sim *sim); /* after the hosts; RWY_ENOMEM */
void rp_sim_cm_free(struct rp_sim *sim);
/* Time of the capture at which the run begins: of the first message, CM or other. */
rwy_time rp_sim_base(const struct rp_sim *sim);
rwy_time rp_sim_cm_next(const struct rp_sim *sim);
void rp_sim_cm_poll(struct rp_sim *sim);
/* A packet to queue pair 1 of a host. */
void rp_sim_cm_recv(struct rp_sim *sim, const struct roce_pkt *pkt);
bool rp_sim_cm_over(const struct rp_sim *sim);

#endif
