/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine's report to operators: its connections, its tunnels, and who holds its memory. Nothing
 * here changes the engine. Thread: the engine's worker, except where it says "another thread".
 */
#ifndef ENGINE_REPORT_H
#define ENGINE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/counters.h"
#include "engine/states.h"
#include "roce/psn.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "wan/wan.h"

struct eng;

#define ENG_NAME_MAX 32

/* They live as long as the engine. Another thread may read field by field. */
const struct eng_counters *eng_counters(const struct eng *e);
/* How often each cell of the state tables was entered; wraps. For tests. */
const struct eng_states_seen *eng_states_seen(const struct eng *e);

/* X(enumerator, name, sentence): what buffers are held for (memory.h). */
#define ENG_MEM_KINDS(X)                                                                                     \
	X(ENG_MEM_CUSTODY, "custody", "requests that the far host has not acknowledged")                     \
	X(ENG_MEM_UNPAIRED, "unpaired", "the same of flows that no far host has answered yet")               \
	X(ENG_MEM_PARKED, "parked", "requests until the path MTU is known; DREQs that wait")                 \
	X(ENG_MEM_RESPONSES, "responses", "responses of local hosts on their way over the WAN")              \
	X(ENG_MEM_ANSWERS, "answers", "READ responses kept in case their host lost them")                    \
	X(ENG_MEM_RECEIVED, "received", "requests from the WAN that a local host has not acknowledged")      \
	X(ENG_MEM_COPIES, "copies",                                                                          \
	    "copies on their way to the standby gateway; responses that wait for it")                        \
	X(ENG_MEM_STORED, "stored", "requests that a standby gateway stores for the active one")
enum eng_mem_kind {
#define X(e, n, s) e,
	ENG_MEM_KINDS(X)
#undef X
	    ENG_MEM_N
};
#define ENG_MEM_BOUNDED ENG_MEM_ANSWERS /* kinds before this one share eng_cfg.memory_total */

struct eng_tenant_stats {
	uint64_t accepted, accepted_bytes; /* requests taken into custody */
	uint64_t delivered;                /* requests that the far host acknowledged */
	uint64_t custody;                  /* bytes, now */
	uint32_t flows;                    /* sides, now */
	/* Memory (docs/memory.md): bytes held, most ever, at most; hosts with connections. */
	uint64_t held, most, max, reserve;
	uint32_t hosts;
	uint64_t kind[ENG_MEM_N]; /* bytes of each kind */
};

/* A paired connection, as the gateway reports it to the control center. */
struct eng_session {
	uint64_t id; /* unique in this engine; another one for each pairing */
	uint32_t vni;
	struct rwy_ip local, remote;
	uint32_t local_qpn, remote_qpn;
	uint16_t udp_port; /* source port of the local host's packets; 0: none was seen */
	uint8_t tunnel;
	uint64_t tx_bytes, rx_bytes; /* requests of the local host; requests that it acknowledged */
};

/* A connection, or its only side, for operators. Fields of the side that is missing are 0. */
struct eng_flow_info {
	uint32_t tenant, vni;
	struct rwy_ip local, remote;
	uint32_t local_qpn, remote_qpn; /* 0: not known yet */
	char tunnel[ENG_NAME_MAX];
	const char *state;   /* "learning", "paired", "idle", "failed", "closing" */
	const char *learned; /* "cm", "passive", "peer", "" */
	const char *error;   /* why it failed, or "" */
	uint32_t pmtu;
	roce_psn responder_psn, responder_acked; /* next expected PSN; acknowledged before this */
	roce_psn requester_una, requester_nxt;   /* oldest unacknowledged PSN; next to send */
	uint64_t tx_packets, tx_bytes;           /* requests of the local host taken into custody */
	uint64_t rx_packets, rx_bytes;           /* requests that the local host acknowledged */
	uint64_t custody_bytes;
	uint64_t held[ENG_MEM_N]; /* bytes of buffers of each kind that it holds */
	/* of those that are bounded, of its direction with more, ever */
	uint64_t held_most;
	uint32_t requester_queue;    /* requests that wait for the local host */
	uint64_t requester_rate_Bps; /* bound that the local host's CNPs set; 0: none */
	rwy_dur requester_rtt;       /* smoothed response time of the local host; 0: not measured */
	/* How long the local host may be silent: counts, bounds of the timeout. */
	uint8_t requester_retry, requester_rnr_retry;
	rwy_dur requester_timeout_min, requester_timeout_max;
	/* It is not given up before; 0: the count alone decides; RWY_NEVER: never given up. */
	rwy_dur requester_patience;
	const char *ack_mode; /* of the local host's requests */
	/*
	 * How long the local host waits for an ACK before its queue pair fails; 0: not known.
	 * Shorter than the mode needs: impatient.
	 */
	rwy_dur patience;
	bool impatient;
	/*
	 * The bound of what the local host sends: "path"; "share" (the limit of its tenant or its
	 * reservation); "far" (credit of the far gateway); "host"
	 * (the far host); "memory"; "near-source" (our CNPs); "window" (its own); "drain" (the
	 * engine settles); "" (idle).
	 */
	const char *limit;
	/* End to end: most bytes in flight, and the far host's rate; 0: not limited. */
	uint64_t remote_window, remote_drain_Bps;
	/*
	 * Counts of this incarnation: packets sent to the local host again, its RNR NAKs and
	 * sequence NAKs, the times that it did not answer.
	 */
	uint64_t host_resent, rnr_naks, seq_naks, host_timeouts;
	/* ACKs of the local host waited (limits "memory" and "read"): for how long, how often. */
	rwy_dur withheld;
	uint32_t withheld_times;
	uint64_t naks_sent; /* to the local host */
	rwy_time last;      /* last packet, in either direction */
};
#define ENG_IDLE (5 * RWY_SEC) /* paired and without a packet for longer: "idle" */
/*
 * Fills up to max entries from *cursor on (start with 0) and moves the cursor; it is 0 again after
 * the last. Returns how many, 0 in the middle as well: a call looks at a bounded part of the table.
 * The order is arbitrary and stable.
 */
unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max);
/* The same for the connections that eng_ops.session reported. */
unsigned eng_sessions(const struct eng *e, uint32_t *cursor, struct eng_session *out, unsigned max);
/* Connections; the two sides of a paired one count once. */
uint32_t eng_flow_count(const struct eng *e);
/* The QPN that a packet from src to `dqpn` of dst comes from, whichever of them is local; 0: not
 * known. */
uint32_t eng_sender_qpn(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t dqpn);
/* Zero for a free number. */
void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out);
/* Statistics of one of its paths. False: it has no such path. */
bool eng_path_stats(const struct eng *e, unsigned tunnel, unsigned path, struct wan_path_stats *out);
/* Its counters, until the tunnel is removed; NULL for a free number. */
const struct wan_counters *eng_tunnel_counters(const struct eng *e, unsigned tunnel);
/* Bytes in custody now, and the configured maximum. */
uint64_t eng_custody_bytes(const struct eng *e);
uint64_t eng_custody_max(const struct eng *e); /* eng_cfg.custody_total */

/* Buffer memory of a worker by kind (docs/memory.md). */
struct eng_memory {
	struct {
		uint64_t bytes, max; /* max 0: shares that of all */
		uint32_t bufs;
	} kind[ENG_MEM_N];
	uint64_t held, most, max; /* of the kinds that share a bound: now, most ever, at most */
	uint64_t soft;            /* ACKs wait above this */
	uint64_t reserved;        /* of max for tenants */
	uint64_t buf_cost;
	uint32_t hosts;   /* local hosts with connections */
	uint32_t waiting; /* directions of connections that were refused, and wait for room */
	/*
	 * Buffers of tunnels: CM messages, what waits for earlier ones, repairs, best effort, lists
	 * of ack mode `causal`.
	 */
	uint32_t cm, reassembly, fec, dgrams, order;
};
/* Copies the present numbers, in bytes and buffers. Thread: the worker's. */
void eng_memory(const struct eng *e, struct eng_memory *out);
struct eng_memory_host {
	uint32_t tenant;
	struct rwy_ip addr;
	uint64_t held, most, kind[ENG_MEM_N];
	uint32_t sides, half_open; /* of its connections; of them unpaired */
};
/* Local hosts that hold something; the cursor is that of eng_flows. */
unsigned eng_memory_hosts(const struct eng *e, uint32_t *cursor, struct eng_memory_host *out, unsigned max);
/* One of a pair of gateways (standby.h). */
struct eng_standby_info {
	const char *state, *other;  /* names; other: "" while it is silent */
	rwy_time since;             /* the latest change of `state` */
	bool serves, site;          /* site: mode `site` is in effect: ACKs wait for the standby */
	bool asks;                  /* it does not serve, and asks a witness for a tunnel */
	uint64_t term;              /* in which it serves; else that of the other one, if known */
	char witness[ENG_NAME_MAX]; /* name of the tunnel to it; "": no tunnel leads to one */
	/* Events by which it came to serve, and lost its standby; "": it did not. When. */
	const char *took_by, *lost_by;
	rwy_time took_at, lost_at;
	uint32_t flows; /* connections with copies, or stored */
	uint64_t bytes; /* of copies under way, or stored */
};
/* False: it is not one of a pair. */
bool eng_standby_info(const struct eng *e, struct eng_standby_info *out);
/* Buffers of READ responses kept for replays, and their bytes. */
uint32_t eng_kept_buffers(const struct eng *e);
uint64_t eng_kept_bytes(const struct eng *e);

#endif
