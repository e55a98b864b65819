/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of one worker: everything a gateway does with packets, without I/O. It joins the
 * core's parts: flow table, both sides of connections, pairing, WAN tunnels, custody. The DPDK
 * gateway, the simulators and the fuzzers run it.
 *
 * Thread: an engine belongs to one worker. Its functions run on that worker's thread, except those
 * that say "any thread". Engines share nothing: the gateway gives all packets of an address pair
 * and tenant to one worker.
 *
 * Times are rwy_time and rwy_dur, nanoseconds of the caller's clock; `now` never goes back. Sizes
 * are bytes, rates bytes a second. An int that is an error is one of rwy/err.h, 0 is success.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/journal.h"
#include "engine/states.h"
#include "roce/psn.h"
#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "wan/wan.h"

struct eng;

#define ENG_TUNNELS_MAX  64
#define ENG_PREFIXES_MAX 256
#define ENG_NAME_MAX     32

/*
 * A request is acknowledged when the near gateway, the far gateway or the far host has it; `causal`
 * is `near` with order between the connections of two hosts (docs/completion.md).
 */
enum eng_ack_mode { ENG_ACK_NEAR, ENG_ACK_FAR, ENG_ACK_END, ENG_ACK_CAUSAL };

/*
 * Right to begin an RC connection. OPEN: any host. CM: hosts whose CM messages went through the
 * gateway. CONTROLLER: pairs that steering names. Connections that exist go on.
 */
enum eng_admission { ENG_ADMIT_OPEN, ENG_ADMIT_CM, ENG_ADMIT_CONTROLLER };
/* Another mode for the requests of some local hosts to some hosts behind tunnels. */
#define ENG_MODES_MAX 16
struct eng_mode {
	struct rwy_ip from, to;
	uint8_t from_len, to_len; /* 0..128, as in eng_prefix */
	uint8_t mode;             /* enum eng_ack_mode */
};

/* Static text. */
const char *eng_ack_mode_name(enum eng_ack_mode m);

/* Destinations behind a tunnel. */
struct eng_prefix {
	struct rwy_ip addr;
	uint8_t len; /* 0..128; IPv4 prefixes are mapped: 96 + length */
	uint8_t tunnel;
};

struct eng_tunnel_cfg {
	char name[ENG_NAME_MAX];
	uint16_t weight;    /* its share of address pairs among tunnels with the same prefix */
	uint64_t peer;      /* rwy_spread_id of the gateway at its other end; 0: not known */
	struct wan_cfg wan; /* the engine sets ctx, ops, bufs and fec_code, the caller the rest */
};

/*
 * How long a local host may be silent. Where CM named a connection's counts and its timeout, these
 * decide when it is given up; docs/rc-semantics.md, "How long the far gateway waits".
 */
struct eng_timers {
	rwy_dur timeout_min, timeout_max; /* bounds of the time until it is asked again, not 0 */
	uint8_t retry;                    /* repeats without progress before it is given up */
	uint8_t rnr_retry;                /* 0..6; 7: without limit */
};

struct eng_cfg {
	unsigned tunnels, prefixes;
	struct eng_tunnel_cfg tunnel[ENG_TUNNELS_MAX];
	struct eng_prefix prefix[ENG_PREFIXES_MAX]; /* of the plain LAN; the longest match wins */
	enum eng_ack_mode ack_mode;                 /* of the plain LAN */
	enum eng_admission admission;               /* likewise */
	struct eng_mode mode[ENG_MODES_MAX];        /* and exceptions; the first that matches */
	unsigned modes;
	uint32_t conns_max;       /* flow table entries (sides) of this worker */
	uint32_t half_open_max;   /* unpaired flows at most */
	rwy_dur idle_expiry;      /* silence after which a flow without custody is forgotten */
	uint32_t host_window;     /* requests in flight to a local host, each connection */
	struct eng_timers timers; /* of the plain LAN */
	/* Bytes in custody above which ACKs are withheld: of one connection, of this worker. */
	uint64_t custody_conn, custody_total;
	rwy_dur causal_beat; /* mode `causal`: from one ACK of busy connections to the next */
	uint32_t buf_cost;   /* least bytes that a packet counts: what a buffer takes */
	/*
	 * Bytes of buffers held at most (memory.h), of one direction of a connection, of this
	 * worker: requests in custody or parked, READ responses on their way back. 0: a quarter
	 * more than custody_conn and custody_total, and at least a host's window.
	 */
	uint64_t memory_conn, memory_total;
	uint64_t unpaired_total; /* of them for unpaired flows; 0: a quarter */
	/*
	 * Near source: bytes of a flow that wait for the WAN. CNPs begin at np_min with a
	 * probability that rises to np_percent (1..100) at np_max; above np_max each packet gets
	 * one. np_max 0: off.
	 */
	uint64_t np_min, np_max;
	uint32_t np_percent;
	/* Near destination: CNPs of a local host set the rate towards it (DCQCN). */
	bool rp;
	/* fastest port of a local host, the first value of its rate; 0: not known */
	uint64_t lan_Bps;
	bool e2e; /* end to end: a host's rate limits the data in flight of its flow */
	/*
	 * Bytes of buffers of READ responses kept for replays: of one connection, of this worker.
	 */
	uint64_t read_cache_conn, read_cache_total;
	/* for random numbers: epochs, indices, incarnations; for the flow table */
	uint64_t seed;
	uint64_t gateway; /* rwy_spread_id of this gateway; 0: not known */
	/*
	 * Memory that outlives the process (journal.h). The caller's, for as long as the engine
	 * lives; entries of an earlier process in it are taken up. NULL: none.
	 */
	struct eng_journal_entry *journal;
	uint32_t journal_n;    /* its entries */
	rwy_dur probe_timeout; /* pairing: an unpaired flow's host has this long to answer */
};
/* The defaults. Tunnels, prefixes, seed, gateway and journal are 0. */
void eng_cfg_default(struct eng_cfg *cfg);

/* A flow's cached next hop and priority towards the LAN; zero in a new flow. */
struct eng_nexthop {
	uint64_t cache[2]; /* the gateway's cache of the next hop; opaque to the engine */
	uint8_t pcp;       /* of packets that the engine makes; as in struct rwy_buf */
};

/* A packet for a local host, from its IP header on. Either buf or bytes has it. */
struct eng_lan_tx {
	uint32_t tenant;
	struct rwy_buf *buf;  /* NULL: bytes */
	const uint8_t *bytes; /* a packet that the engine made; valid during the call */
	uint32_t len;         /* bytes */
	/* buf moves to the callee; else it stays in custody, and the callee takes a reference. */
	bool own;
	uint8_t pcp; /* for a VLAN tag, as in struct rwy_buf; 0: not known */
	const struct rwy_ip *dst;
	struct eng_nexthop *nh; /* may be NULL */
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

/* Calls of the engine, all on its worker's thread, from inside one of its functions. */
struct eng_ops {
	void (*lan_tx)(void *ctx, const struct eng_lan_tx *tx);
	/*
	 * A UDP datagram for a path of the tunnel, or its carrier; struct wan_tx has the ownership.
	 */
	void (*wan_tx)(void *ctx, unsigned tunnel, const struct wan_tx *tx);
	/*
	 * A log line without newline, level 0 (error) .. 4 (debug); not for each packet. May be
	 * NULL.
	 */
	void (*log)(void *ctx, int level, const char *msg);
	/*
	 * A path stays congested (s has the sign, the begin and the measured values), or is no
	 * longer so: time to move the tunnel to another carrier, or back. May be NULL.
	 */
	void (*path_congested)(void *ctx, unsigned tunnel, uint8_t path, const struct wan_congest_state *s);
	/* A tunnel came up or went silent. May be NULL. */
	void (*tunnel_state)(void *ctx, unsigned tunnel, bool up, rwy_time now);
	/* Both QPNs of a connection are known (open), or it has ended. Once each. May be NULL. */
	void (*session)(void *ctx, bool open, const struct eng_session *s);
};

/*
 * A new engine in *out. cfg is copied; ops, ctx and the functions of bufs must outlive the engine.
 * Connections of the journal are taken up. RWY_ENOMEM, RWY_EINVAL: *out is not set.
 */
RWY_MUST_CHECK int eng_new(struct eng **out, const struct eng_cfg *cfg, const struct eng_ops *ops, void *ctx,
    struct rwy_bufs bufs, rwy_time now);
/*
 * Frees everything that it holds, buffers too. Journal entries stay, unless it is ENG_SETTLED. NULL
 * allowed.
 */
void eng_free(struct eng *e);

/*
 * IP packets of local hosts (data at the IP header) for hosts behind a tunnel, and the tenant of
 * each. Takes all n buffers. Parsed, checked, and handled at once; ACKs go out with eng_poll().
 */
void eng_tenant_rx(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now);
/* A UDP payload from the tunnel's peer on `path`; ecn: bits of its IP header, 0..3. Takes b. */
void eng_wan_rx(struct eng *e, unsigned tunnel, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now);
/*
 * The reliable carrier of a tunnel (TCP); wan/stream.h has the meaning of each function. Its
 * datagrams leave by eng_ops.wan_tx with wan_tx.stream set and come in by eng_stream_rx, which
 * takes b. eng_stream_use: RWY_ENOMEM, RWY_ENOENT (no such tunnel): nothing changed.
 */
void eng_stream_rx(struct eng *e, unsigned tunnel, struct rwy_buf *b, rwy_time now);
RWY_MUST_CHECK int eng_stream_use(struct eng *e, unsigned tunnel, bool on, rwy_time now);
void eng_stream_room(struct eng *e, unsigned tunnel, uint32_t datagrams, uint64_t bytes);
void eng_stream_lost(struct eng *e, unsigned tunnel, rwy_time now);
uint64_t eng_stream_inflight(const struct eng *e, unsigned tunnel);
/* Recent rate, bytes per second; 0: not known. */
uint64_t eng_stream_rate(const struct eng *e, unsigned tunnel);
/*
 * One turn: timers, owed ACKs, requests for local hosts, datagrams. Call after each burst and at
 * eng_next(). Returns the amount of work, 0 when idle.
 */
unsigned eng_poll(struct eng *e, rwy_time now);
/* When eng_poll() has something to do at the latest; RWY_NEVER: only after a packet. */
rwy_time eng_next(const struct eng *e);

/*
 * Tenants. Each has an address space of its own: keys, pairs, routes. Tenant 0 is the plain LAN,
 * there from the start as eng_cfg says. Others are added, changed and removed while traffic runs.
 * Here a tenant is an index, between gateways its VNI.
 */
#define ENG_TENANTS_MAX 65536
struct eng_tenant_cfg {
	uint32_t vni; /* 1 .. 2^24 - 1; tenant 0: 0 */
	enum eng_ack_mode ack_mode;
	enum eng_admission admission;
	/* For connections that begin later; timeout_max 0: all as the plain LAN's. */
	struct eng_timers timers;
	const struct eng_mode *mode; /* exceptions, up to ENG_MODES_MAX; copied */
	unsigned modes;
	/* Flow table entries, unpaired flows; 0: only eng_cfg's bound. */
	uint32_t flows_max, half_open_max;
	uint64_t custody; /* bytes held above which its ACKs are withheld */
	/* Bytes held at most; 0: a quarter more, and at least a host's window more. */
	uint64_t memory;
	/*
	 * Bytes of eng_cfg.custody_total that are reserved for it. Above them it uses the part that
	 * is not reserved, like tenants without a reservation. The sum of all should not exceed the
	 * total.
	 */
	uint64_t reserve;
	/* Share of every tunnel in this worker. weight 0: it shares class 0 with other such
	 * tenants. */
	struct wan_class_cfg share;
	const struct eng_prefix *prefix; /* destinations behind tunnels; copied */
	unsigned prefixes;
};
/* X(enumerator, name, sentence): what buffers are held for (memory.h). */
#define ENG_MEM_KINDS(X)                                                                                     \
	X(ENG_MEM_CUSTODY, "custody", "requests that the far host has not acknowledged")                     \
	X(ENG_MEM_UNPAIRED, "unpaired", "the same of flows that no far host has answered yet")               \
	X(ENG_MEM_PARKED, "parked", "requests until the path MTU is known; DREQs that wait")                 \
	X(ENG_MEM_RESPONSES, "responses", "responses of local hosts on their way over the WAN")              \
	X(ENG_MEM_ANSWERS, "answers", "READ responses kept in case their host lost them")                    \
	X(ENG_MEM_RECEIVED, "received", "requests from the WAN that a local host has not acknowledged")
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
/*
 * Adds tenant `idx` (1 .. ENG_TENANTS_MAX - 1) or changes it; its connections go on. An added
 * tenant's journal entries are taken up. RWY_EINVAL: index, VNI (0, too large, another tenant's),
 * share, or a tunnel that does not exist. RWY_EAGAIN: it is being removed. RWY_ENOMEM. Then nothing
 * has changed.
 */
RWY_MUST_CHECK int eng_tenant_set(
    struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now);
/*
 * The tenant accepts no new flow, and the sweep removes its connections in steps. True: it is
 * removed; false: call again later.
 */
bool eng_tenant_remove(struct eng *e, uint32_t idx);
/* False: no such tenant. */
bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out);

/*
 * Tunnels are added, changed and removed while traffic runs; other tunnels go on undisturbed. Those
 * of eng_cfg are there from the start. A tunnel is a number below ENG_TUNNELS_MAX; a free one may
 * be used.
 */
struct eng_tunnel_new; /* a tunnel that no engine has yet */
/*
 * Any thread: allocates a tunnel, so that the worker need not. cfg->wan must have an epoch and an
 * index. The caller frees *out with eng_tunnel_unmake or adds it. RWY_EINVAL, RWY_ENOMEM.
 */
RWY_MUST_CHECK int eng_tunnel_make(struct eng_tunnel_new **out, struct eng *e, unsigned tunnel,
    const struct eng_tunnel_cfg *cfg, rwy_time now);
/* Any thread: frees one that eng_tunnel_add did not take. NULL allowed. */
void eng_tunnel_unmake(struct eng_tunnel_new *n);
/*
 * Takes n. No destination is behind the tunnel before eng_prefixes_set or eng_tenant_set names it;
 * a tenant's share of it is set with the next eng_tenant_set. RWY_EINVAL: the number is in use; n
 * stays the caller's.
 */
RWY_MUST_CHECK int eng_tunnel_add(struct eng *e, unsigned tunnel, struct eng_tunnel_new *n);
struct eng_tunnel_tune {
	uint64_t rate_Bps;  /* this worker's part */
	uint32_t rx_window; /* this and the next two as in wan_cfg */
	uint64_t rx_bytes;
	struct wan_congest_cfg congest;
	uint16_t weight;
	uint64_t path_rate_Bps[WAN_PATHS_MAX]; /* this worker's parts, as in wan_cfg */
	rwy_dur path_probe;
};
/* Sets another rate, credit, weight and other thresholds. Does nothing for a free number. */
void eng_tunnel_set(struct eng *e, unsigned tunnel, const struct eng_tunnel_tune *tune, rwy_time now);
/* Keys of a tunnel: wan_keys_offer, wan_keys_use, wan_keys_end. RWY_ENOENT: a free number, for
 * which the other two do nothing. */
RWY_MUST_CHECK int eng_tunnel_keys_offer(
    struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now);
void eng_tunnel_keys_use(struct eng *e, unsigned tunnel, rwy_time now);
void eng_tunnel_keys_end(struct eng *e, unsigned tunnel, rwy_time now);
struct eng_tunnel_old; /* a tunnel that is in no engine */
/*
 * The tunnel accepts no new connection; the sweep removes its connections in steps, and releases
 * their custody. True: it is removed, and the caller owns *out, for eng_tunnel_gone(); *out is NULL
 * if the number was free. False: call again later.
 */
bool eng_tunnel_remove(struct eng *e, unsigned tunnel, struct eng_tunnel_old **out, rwy_time now);
/* Any thread: frees it. NULL allowed. */
void eng_tunnel_gone(struct eng_tunnel_old *t);
/* The tunnel exists and is not being removed. */
bool eng_tunnel_there(const struct eng *e, unsigned tunnel);
/*
 * Replaces all prefixes of tenant 0; copied. Connections stay in their tunnel. RWY_EINVAL: too
 * many, a length above 128, or a tunnel that does not exist.
 */
RWY_MUST_CHECK int eng_prefixes_set(struct eng *e, const struct eng_prefix *prefix, unsigned n);
/* The tunnel that a host of tenant 0 is behind; -1: none. */
int eng_route_plain(const struct eng *e, const struct rwy_ip *dst);
/* Length of the longest of those prefixes that has the host, 0..128; -1: it is behind no tunnel. */
int eng_route_plain_len(const struct eng *e, const struct rwy_ip *host);

/*
 * Steering: tunnels assigned to flows; prefixes decide for the others. An assignment is for packets
 * of local host src to dst, with dqpn only for those to that QP. Connections stay in their tunnel.
 * Each one also admits its pair (ENG_ADMIT_CONTROLLER); ENG_STEER_ANY does only that.
 */
#define ENG_STEER_ANY ENG_TUNNELS_MAX
struct eng_steering;
struct eng_steer_cfg {
	struct rwy_ip src, dst;
	uint32_t vni, dqpn; /* dqpn 0: any */
	uint8_t tunnel;
};
/* Any thread: a set of n assignments, copied; of two for one flow the last counts. RWY_ENOMEM. */
RWY_MUST_CHECK int eng_steering_new(struct eng_steering **out, const struct eng_steer_cfg *v, unsigned n);
/* Any thread. NULL allowed. */
void eng_steering_free(struct eng_steering *w);
/*
 * Decides by w from now on (NULL: no assignments), which stays the caller's and is only read:
 * several engines may share it. It must last until the engine gets another one.
 */
void eng_steering_set(struct eng *e, const struct eng_steering *w);

/*
 * Several gateways at both sites. An address pair belongs to one pair of gateways: the winner of
 * weighted rendezvous hashing (rwy/spread.h) among all pairs with a tunnel, by the tunnels'
 * weights. Where peers are known this decides between an engine's own tunnels, too, so that both
 * sites choose the same. Plain LAN only.
 */
struct eng_candidate {          /* a tunnel of another gateway of this site */
	uint64_t gateway, peer; /* rwy_spread_id */
	uint64_t weight;
};
/*
 * Returns the index in cand of the tunnel that carries the pair of a local and a remote host; -1:
 * this gateway carries it, or no tunnel leads there. own: factor of the weights of this gateway's
 * tunnels. Computes one hash for each pair of gateways.
 */
int eng_candidate_find(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t own, const struct eng_candidate *cand, unsigned n);
/* This engine has the flow of the local host's requests to QP dqpn of the remote host. */
bool eng_has(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);
/* The same, or an unpaired flow from the remote host waits for the local host's first response. */
bool eng_holds(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);

/* Any thread: a hash of an address pair, equal for both directions. The owner is hash % workers. */
uint32_t eng_owner_hash(const struct rwy_ip *a, const struct rwy_ip *b);

/*
 * Settling (`roceway drain`): before a gateway stops, the far hosts get all that its own hosts have
 * ACKs for, and these get the answers of their READs and ATOMICs. What a host has no ACK for, it
 * sends again to the next process.
 */
enum eng_settle_state {
	ENG_SERVING,
	ENG_SETTLING, /* requests are acknowledged when the far host has them, in every ack mode */
	ENG_CLOSING,  /* no new request is accepted; waits for the last answers */
	ENG_SETTLED,  /* the same, and nothing is owed: the engine may be freed at any time */
};
struct eng_settle_info {
	enum eng_settle_state state;
	uint32_t flows; /* that owe something, as of the last pass over all */
	uint64_t bytes; /* that they owe, an estimate */
};
/* Nothing if it settles already. eng_poll() goes on with it. */
void eng_settle_begin(struct eng *e, rwy_time now);
/* Serves again. Nothing if it does not settle. */
void eng_settle_cancel(struct eng *e, rwy_time now);
void eng_settle_get(const struct eng *e, struct eng_settle_info *out);

/* X(field, sentence): monotonic counts. Names follow the kernel's hw_counters where one fits. */
#define ENG_COUNTERS(X)                                                                                      \
	X(lan_rx_packets, "packets from local hosts")                                                        \
	X(lan_rx_bytes, "bytes from local hosts, from the IP header on")                                     \
	X(lan_tx_packets, "packets to local hosts")                                                          \
	X(lan_tx_bytes, "bytes to local hosts")                                                              \
	X(roce_rx, "RoCEv2 packets from local hosts")                                                        \
	X(acks_sent, "ACKs made for local hosts")                                                            \
	X(naks_sent, "NAKs made for local hosts")                                                            \
	X(np_ecn_marked, "packets of local hosts that a switch had marked (ECN CE)")                         \
	X(np_cnp_sent, "CNPs sent to local hosts: slow down")                                                \
	X(rp_cnp_handled, "CNPs received from local hosts")                                                  \
	X(accepted, "requests taken into custody")                                                           \
	X(delivered, "requests the far host acknowledged")                                                   \
	X(duplicate_request, "requests seen before")                                                         \
	X(duplicate_read, "READs or ATOMICs answered from memory")                                           \
	X(read_cache_full, "READ responses not kept for their host: those of others fill the memory")        \
	X(out_of_sequence, "request ahead of the expected PSN")                                              \
	X(drop_resuming,                                                                                     \
	    "requests that came before the far gateway reported the state of a restored connection")         \
	X(drop_draining, "requests that came while the gateway was about to stop: hosts send them again")    \
	X(parked, "requests held until the path MTU is known")                                               \
	X(host_resent, "packets sent again to a local host")                                                 \
	X(packet_seq_err, "PSN sequence NAKs received from local hosts")                                     \
	X(rnr_nak_received, "RNR NAKs received from local hosts")                                            \
	X(local_ack_timeout_err, "a local host did not answer in time")                                      \
	X(implied_nak_seq_err, "a response was lost on the LAN (implied NAK)")                               \
	X(conns_lost, "connections ended at both hosts because acknowledged requests are lost")              \
	X(conns_failed, "connections ended with an error")                                                   \
	X(conns_opened, "flows entered in the flow table")                                                   \
	X(conns_paired, "connections whose two directions were paired")                                      \
	X(conns_expired, "flows removed for idleness")                                                       \
	X(cm_messages, "CM messages carried")                                                                \
	X(cm_connections, "connections learned from CM")                                                     \
	X(dgrams, "UD, UC and other IP packets carried best effort")                                         \
	X(ack_blocked, "ACKs held back for lack of custody memory")                                          \
	X(ack_for_read, "ACKs held back so that READs and ATOMICs behind are answered in time")              \
	X(ack_single, "held ACKs sent one at a time to hosts whose timer expired")                           \
	X(causal_lists, "messages that tell the far gateway the order of several queue pairs")               \
	X(drop_not_ip, "not an IP packet")                                                                   \
	X(drop_unknown_tenant, "a packet or flow of a tenant that this gateway does not have")               \
	X(drop_no_route, "no tunnel leads to the destination")                                               \
	X(drop_no_tunnel, "a datagram of a tunnel that has been removed")                                    \
	X(drop_truncated, "shorter than its headers say")                                                    \
	X(drop_bad_ip, "bad IP header")                                                                      \
	X(drop_ip_fragment, "an IP fragment of a RoCE packet")                                               \
	X(drop_bad_udp_length, "UDP length does not fit the IP length")                                      \
	X(drop_bad_bth, "bad BTH")                                                                           \
	X(drop_unknown_opcode, "BTH opcode reserved")                                                        \
	X(drop_uncarried, "RC requests of operations not carried (FLUSH, ATOMIC WRITE): answered with NAK")  \
	X(drop_uncarried_unknown, "the same on unknown connections: cannot be answered")                     \
	X(drop_xrc, "XRC packets: not carried; answered with NAK if CM announced the connection")            \
	X(drop_rd, "RD packets: not carried, cannot be answered")                                            \
	X(drop_vendor_opcode, "BTH opcodes of a manufacturer's own transport: cannot be answered")           \
	X(drop_bad_length, "payload does not fit the opcode")                                                \
	X(drop_icrc, "ICRC wrong")                                                                           \
	X(drop_unknown_qpn, "response for a connection that is not known")                                   \
	X(drop_ack_in_flight, "resent while the ACK for it was on the way, or right after it")               \
	X(drop_reused, "requests still in custody when their hosts began a new connection on the QPN")       \
	X(drop_stale_psn, "PSN outside the connection's window")                                             \
	X(drop_bad_sequence, "opcode out of sequence or wrong length: answered with NAK")                    \
	X(drop_read_on_its_way, "repeated READs whose responses may still reach the host")                   \
	X(drop_too_many_outstanding, "too many READs or ATOMICs outstanding")                                \
	X(drop_after_error, "request on a failed connection: answered with NAK")                             \
	X(drop_flow_table_full, "flow table is full")                                                        \
	X(drop_not_admitted,                                                                                 \
	    "request or flow of a connection that CM did not open, or no controller allowed")                \
	X(drop_half_open, "too many unpaired flows")                                                         \
	X(half_open_replaced, "unpaired flows forgotten for a newer one of their host: nobody answered")     \
	X(drop_unpaired_full, "too many packets of an unpaired flow, or of all of a host")                   \
	X(drop_memory_conn, "requests above their connection's bound of memory: asked for again later")      \
	X(drop_memory_share, "requests above the share of memory of their host or tenant: the same")         \
	X(drop_memory_read, "READ responses for which there was no memory: asked for again later")           \
	X(drop_ghost_ack, "ACK for a PSN that is not outstanding")                                           \
	X(drop_old_response, "response seen before or unexpected")                                           \
	X(cm_foreign, "CM requests that name other hosts than their packets: carried, not believed")         \
	X(cm_held, "DREQs that waited until the far host had what their host was acknowledged")              \
	X(drop_cm_repeated, "DREQ sent again while the first one waits")                                     \
	X(drop_cm_share, "CM messages above the share of their host or tenant: CM repeats them")             \
	X(drop_bad_cm, "malformed CM message")                                                               \
	X(drop_no_buffer, "no packet buffer")                                                                \
	X(drop_ttl, "TTL exceeded")                                                                          \
	X(drop_foreign_source, "packets out of a tunnel whose source is not behind it")                      \
	X(drop_tunnel_msg, "malformed message inside a tunnel")                                              \
	X(drop_wan_icrc, "responses damaged between the ICRC checks of both gateways: answered with NAK")
struct eng_counters {
#define X(f, s) uint64_t f;
	ENG_COUNTERS(X)
#undef X
};
/* They live as long as the engine. Another thread may read field by field. */
const struct eng_counters *eng_counters(const struct eng *e);
/* How often each cell of the state tables was entered; wraps. For tests. */
const struct eng_states_seen *eng_states_seen(const struct eng *e);

/* A connection, or its only side, for operators. Fields of the side that is missing are 0. */
struct eng_flow_info {
	uint32_t tenant;
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
	 * The bound of what the local host sends: "path"; "far" (credit of the far gateway); "host"
	 * (the far host); "memory"; "near-source" (our CNPs); "window" (its own); "drain" (the
	 * engine settles); "" (idle).
	 */
	const char *limit;
	/* End to end: most bytes in flight, and the far host's rate; 0: not limited. */
	uint64_t remote_window, remote_drain_Bps;
	uint64_t host_resent, rnr_naks;
	rwy_time last; /* last packet, in either direction */
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
void eng_memory(const struct eng *e, struct eng_memory *out);
struct eng_memory_host {
	uint32_t tenant;
	struct rwy_ip addr;
	uint64_t held, most, kind[ENG_MEM_N];
	uint32_t sides, half_open; /* of its connections; of them unpaired */
};
/* Local hosts that hold something; the cursor is that of eng_flows. */
unsigned eng_memory_hosts(const struct eng *e, uint32_t *cursor, struct eng_memory_host *out, unsigned max);
/* Buffers of READ responses kept for replays, and their bytes. */
uint32_t eng_kept_buffers(const struct eng *e);
uint64_t eng_kept_bytes(const struct eng *e);

#endif
