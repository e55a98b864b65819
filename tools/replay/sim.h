/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts of a capture between two gateways, in virtual time. Each connection of the schedule
 * gets two hosts (host.h) that send the packets of the capture as they are, and set it up with the
 * CM messages of the capture (cm.h); the gateways are the engines of the product; the WAN between
 * them is wanem's link. The same schedule, configuration and seed give the same run, bit for bit.
 *
 * One thread. It ends the process when there is no memory.
 */
#ifndef TOOLS_REPLAY_SIM_H
#define TOOLS_REPLAY_SIM_H

#include "engine/engine.h"
#include "tools/replay/host.h"
#include "tools/wanem/link.h"

#define RP_FAULTS_MAX 16

/* The WAN carries nothing for a time. Times are since the first message. */
struct rp_fault {
	rwy_time from, to;
	bool way[2]; /* [site]: away from that site */
};

struct rp_sim_cfg {
	uint64_t seed;
	struct wanem_cfg wan[2], lan; /* wan[site]: away from that site */
	struct rp_fault fault[RP_FAULTS_MAX];
	unsigned faults;
	enum eng_ack_mode ack_mode;
	const char *cc;
	uint64_t wan_Bps; /* that the tunnel may use */
	uint32_t wan_mtu; /* largest UDP payload */
	double speed;
	struct roce_reqr_cfg reqr; /* of the hosts */
	const struct rwy_ip *near; /* the host of site 0; NULL: chosen by the connections */
	/* The run ends when nothing was completed for so long. */
	rwy_dur stall;
	/* Called now and then with the virtual time since the first message; NULL: not. */
	void (*progress)(rwy_dur at, uint64_t done, uint64_t all);
};
void rp_sim_cfg_default(struct rp_sim_cfg *cfg);

/* A connection of the schedule. */
struct rp_sim_conn {
	const struct rp_conn *conn;
	uint8_t site[2];      /* of each side */
	struct rp_host *host; /* two; NULL: it is left out */
	bool same_qp;         /* another VNI's connection has the queue pair of one of its hosts */
};

struct rp_sim_result {
	bool up;       /* the tunnel came up */
	bool stalled;  /* the run ended before all messages were complete */
	rwy_dur took;  /* virtual time from the first message to the last completion */
	uint64_t hash; /* of the time, the place and the bytes of each packet */
	uint64_t packets;
	uint64_t unknown;   /* packets for queue pairs that no host has */
	uint32_t left_out;  /* connections: both hosts are at one site, or same_qps */
	uint32_t same_qps;  /* of them: another VNI has one of their addresses and queue pairs */
	uint32_t cm;        /* connections that CM sets up */
	uint64_t cm_differ; /* CM messages that came otherwise than they were sent */
	struct {
		uint64_t sent, lost;
	} wan[2];
};

struct rp_sim;
/* RWY_EINVAL: more hosts than ENG_PREFIXES_MAX at a site; no connection crosses the WAN. */
RWY_MUST_CHECK int rp_sim_new(struct rp_sim **out, const struct rp_schedule *s, const struct rp_sim_cfg *cfg);
void rp_sim_run(struct rp_sim *sim, struct rp_sim_result *r);
/* One for each connection of the schedule. */
const struct rp_sim_conn *rp_sim_conns(const struct rp_sim *sim);
struct eng *rp_sim_engine(const struct rp_sim *sim, unsigned site);
/* Returns how many buffers its engines leaked. NULL allowed. */
uint64_t rp_sim_free(struct rp_sim *sim);

#endif
