/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The per-worker engine: everything a gateway does with packets, without I/O. It ties the core together: flow
 * table, both sides of connections, connection learning, WAN tunnels, custody accounting. The DPDK
 * gateway, the simulator and the fuzzers run it.
 *
 * Thread: one engine belongs to one worker; no function here may be called from another thread. Nothing is
 * shared between engines: a flow's owner is eng_owner() of its address pair.
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

/* When a host's request is acknowledged (docs/rc-semantics.md). */
enum eng_ack_mode { ENG_ACK_NEAR, ENG_ACK_FAR, ENG_ACK_END };

struct eng_prefix {
	struct rwy_ip addr;
	uint8_t len; /* 0..128; IPv4 prefixes are mapped: 96 + length */
	uint8_t tunnel;
};

struct eng_tunnel_cfg {
	char name[ENG_NAME_MAX];
	uint16_t weight;    /* of the address pairs that several tunnels lead to equally well */
	uint64_t peer;      /* rwy_spread_id of the gateway at its other end; 0: not known */
	struct wan_cfg wan; /* ctx, ops, bufs are set by the engine; the rest by the caller */
};

struct eng_cfg {
	unsigned tunnels, prefixes;
	struct eng_tunnel_cfg tunnel[ENG_TUNNELS_MAX];
	struct eng_prefix prefix[ENG_PREFIXES_MAX]; /* destinations behind a tunnel; longest match wins */
	enum eng_ack_mode ack_mode;
	uint32_t conns_max;     /* flow table entries of this worker */
	uint32_t half_open_max; /* unpaired flows at most */
	rwy_dur idle_expiry; /* a flow without packets for this long, with nothing in custody, is forgotten */
	uint32_t host_window;     /* requests in flight to a local host per connection */
	uint8_t rnr_retry, retry; /* when the connection's own are not known */
	uint64_t custody_conn;    /* bytes in custody of one connection above which ACKs are held back */
	uint64_t custody_total;   /* the same for this worker */
	uint32_t
	    buf_cost; /* memory that a buffer takes, however small its packet: what custody counts at least */
	uint64_t np_min,
	    np_max; /* near source: bytes of a flow that wait for the WAN where CNPs begin, and are sure */
	uint32_t np_percent; /* their probability just below np_max, 1..100 */
	bool rp;          /* near destination: a local host's CNPs set the rate of what goes to it (DCQCN) */
	uint64_t lan_Bps; /* of local hosts' ports at most, bytes a second: where that begins; 0: not known */
	bool e2e;         /* end to end: what a host drains bounds what its flow may have under way */
	/* Served READ responses kept for replays, in what their buffers take: of a connection, and of all. */
	uint64_t read_cache_conn, read_cache_total;
	uint64_t seed;    /* randomness of this process: epochs, indices */
	uint64_t gateway; /* rwy_spread_id of this gateway; 0: not known */
	struct eng_journal_entry
	    *journal;          /* journal.h: memory that outlives the process, the caller's; NULL: none */
	uint32_t journal_n;    /* its entries; what an earlier process left there is taken up */
	rwy_dur probe_timeout; /* pairing: how long one unpaired flow may wait for its host's answer */
};
void eng_cfg_default(struct eng_cfg *cfg);

/* Where the gateway caches the LAN next hop of a flow; opaque to the engine, zeroed at creation of the flow.
 */
struct eng_nexthop {
	uint64_t cache[2];
};

/* One packet for a local host, from its IP header on. */
struct eng_lan_tx {
	uint32_t tenant;
	struct rwy_buf *buf;  /* the packet, or NULL: */
	const uint8_t *bytes; /*   a made packet, copied by the callee */
	uint32_t len;
	bool own; /* buf's ownership moves to the callee; else it stays in custody: take a reference */
	const struct rwy_ip *dst;
	struct eng_nexthop *nh; /* may be NULL */
};

/* A connection, for who reports it. */
struct eng_session {
	uint64_t id; /* of this engine: another one for each pairing */
	uint32_t vni;
	struct rwy_ip local, remote;
	uint32_t local_qpn, remote_qpn;
	uint16_t udp_port; /* source port of the local host's packets, 0: none was seen */
	uint8_t tunnel;
	uint64_t tx_bytes, rx_bytes; /* requests taken from the local host, and given to it */
};

struct eng_ops {
	void (*lan_tx)(void *ctx, const struct eng_lan_tx *tx);
	/* One UDP datagram for the tunnel's path; see struct wan_tx for ownership. */
	void (*wan_tx)(void *ctx, unsigned tunnel, const struct wan_tx *tx);
	/* An event worth a log line; `fmt` has no newline. Level: 0 error .. 4 debug. Never called per
	 * packet. */
	void (*log)(void *ctx, int level, const char *msg);
	/* A path is congested for good (s->by says what for, since when, with what measured), or is so no
	 * more: what else is to be done than marking packets in another way, such as moving the tunnel to
	 * another carrier. May be NULL. From inside eng_wan_rx or eng_poll. */
	void (*path_congested)(void *ctx, unsigned tunnel, uint8_t path, const struct wan_congest_state *s);
	/* A tunnel came up, or went silent. May be NULL. */
	void (*tunnel_state)(void *ctx, unsigned tunnel, bool up, rwy_time now);
	/* A connection is known with both its QPNs, or has ended. Once each, never per packet. May be
	 * NULL. */
	void (*session)(void *ctx, bool open, const struct eng_session *s);
};

RWY_MUST_CHECK int eng_new(struct eng **out, const struct eng_cfg *cfg, const struct eng_ops *ops, void *ctx,
    struct rwy_bufs bufs, rwy_time now);
void eng_free(struct eng *e);

/* IP packets from local hosts (data at the IP header), destined to a prefix behind a tunnel; whose tenant's
 * each is. Takes ownership of all n (<= 64). */
void eng_tenant_rx(struct eng *e, struct rwy_buf **bufs, const uint16_t *tenants, unsigned n, rwy_time now);
void eng_lan_rx(struct eng *e, struct rwy_buf **bufs, unsigned n, rwy_time now); /* all of tenant 0 */
/* One UDP payload that came from tunnel's peer on `path`. Takes ownership. */
void eng_wan_rx(struct eng *e, unsigned tunnel, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now);
/*
 * A tunnel's reliable carrier, as wan/stream.h has it. Datagrams for it come out of eng_ops.wan_tx with
 * wan_tx.stream set; those that came by it go in by eng_stream_rx, which takes ownership. RWY_ENOMEM,
 * RWY_ENOENT (no such tunnel): nothing changed.
 */
void eng_stream_rx(struct eng *e, unsigned tunnel, struct rwy_buf *b, rwy_time now);
RWY_MUST_CHECK int eng_stream_use(struct eng *e, unsigned tunnel, bool on, rwy_time now);
void eng_stream_room(struct eng *e, unsigned tunnel, uint32_t datagrams, uint64_t bytes);
void eng_stream_lost(struct eng *e, unsigned tunnel, rwy_time now);
uint64_t eng_stream_inflight(const struct eng *e, unsigned tunnel);
uint64_t eng_stream_rate(const struct eng *e, unsigned tunnel); /* bytes a second, of late; 0: not known */
/* Timers, owed ACKs, and what the WAN may send now. Call after each burst and at eng_next(). Returns
 * packets+datagrams emitted. */
unsigned eng_poll(struct eng *e, rwy_time now);
rwy_time eng_next(const struct eng *e);

/*
 * Tenants. Addresses and QPNs of two of them have nothing to do with each other. Tenant 0 is the plain LAN:
 * it is there from the start, as eng_cfg says. Others come, change and go while traffic runs; between
 * gateways a tenant is its VNI.
 */
#define ENG_TENANTS_MAX 65536
struct eng_tenant_cfg {
	uint32_t vni; /* 1 .. 2^24 - 1; tenant 0: 0 */
	enum eng_ack_mode ack_mode;
	uint32_t flows_max,
	    half_open_max; /* its flow table entries and unpaired flows at most; 0: as for all */
	uint64_t
	    custody; /* bytes in custody above which its ACKs are held back, all connections of this worker */
	uint64_t reserve; /* of eng_cfg.custody_total, its own: above them it takes from what nobody reserved,
	                     as those do who have none. The sum of all should not be above the total */
	struct wan_class_cfg
	    share; /* of every tunnel, by this worker; weight 0: what is common to all without */
	const struct eng_prefix *prefix; /* destinations behind tunnels; copied */
	unsigned prefixes;
};
struct eng_tenant_stats {
	uint64_t accepted, accepted_bytes; /* requests taken into custody */
	uint64_t delivered;                /* requests the far host acknowledged */
	uint64_t custody;                  /* bytes, now */
	uint32_t flows;                    /* sides, now */
};
/* Adds tenant `idx` or changes it; connections go on. Its journal is taken up when it is added. RWY_EINVAL:
 * number, VNI (0, too large, another tenant's), a tunnel that does not exist; RWY_EAGAIN: it is being
 * removed; RWY_ENOMEM. Then nothing has changed. */
RWY_MUST_CHECK int eng_tenant_set(
    struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now);
/* It takes nothing new and its connections are forgotten, some at a time. True: it is gone; else ask again
 * later. */
bool eng_tenant_remove(struct eng *e, uint32_t idx);
bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out); /* false: not there */

/*
 * Tunnels come, change and go while traffic runs; what others carry does not notice. Those of eng_cfg are
 * there from the start. A number that is free, or one that was gone, may be given.
 */
struct eng_tunnel_new; /* a tunnel that no engine has yet */
/* Any thread: memory is taken here, so that the worker need not. RWY_EINVAL, RWY_ENOMEM. */
RWY_MUST_CHECK int eng_tunnel_make(struct eng_tunnel_new **out, struct eng *e, unsigned tunnel,
    const struct eng_tunnel_cfg *cfg, rwy_time now);
void eng_tunnel_unmake(struct eng_tunnel_new *n); /* one that eng_tunnel_add did not take; NULL allowed */
/* Takes *n. RWY_EINVAL: the number is in use; then n is still the caller's. No destination is behind it until
 * eng_prefixes_set or eng_tenant_set says so. Its shares for tenants are set with the next eng_tenant_set of
 * each. */
RWY_MUST_CHECK int eng_tunnel_add(struct eng *e, unsigned tunnel, struct eng_tunnel_new *n);
struct eng_tunnel_tune {
	uint64_t rate_Bps;  /* this worker's share */
	uint32_t rx_window; /* as in wan_cfg */
	uint64_t rx_bytes;
	struct wan_congest_cfg congest;
	uint16_t weight;
};
/* Another rate, credit and other thresholds. Nothing for a number that is free. */
void eng_tunnel_set(struct eng *e, unsigned tunnel, const struct eng_tunnel_tune *tune, rwy_time now);
/* It takes no new connection, and those that it has are forgotten, some at a time: their custody is given up.
 * True: it is gone, and *out (NULL: it was before) is the caller's, for eng_tunnel_gone; else ask again
 * later.
 */
struct eng_tunnel_old;
bool eng_tunnel_remove(struct eng *e, unsigned tunnel, struct eng_tunnel_old **out, rwy_time now);
void eng_tunnel_gone(struct eng_tunnel_old *t);              /* any thread; NULL allowed */
bool eng_tunnel_there(const struct eng *e, unsigned tunnel); /* and is not being removed */
/* Destinations of tenant 0 behind tunnels, all anew; copied. Connections that are there stay in their tunnel.
 * RWY_EINVAL: too many, or a tunnel that is not there. */
RWY_MUST_CHECK int eng_prefixes_set(struct eng *e, const struct eng_prefix *prefix, unsigned n);
/* The tunnel that a host of tenant 0 is behind, or -1. The worker's thread. */
int eng_route_plain(const struct eng *e, const struct rwy_ip *dst);

/*
 * Flows that have a tunnel of their own, before the prefixes: from local host src to dst behind the tunnel
 * (and, with dqpn, to that QP of it alone). Connections that are there stay in their tunnel.
 */
struct eng_ways;
struct eng_way_cfg {
	struct rwy_ip src, dst;
	uint32_t vni, dqpn; /* dqpn 0: any */
	uint8_t tunnel;
};
/* Any thread. */
RWY_MUST_CHECK int eng_ways_new(struct eng_ways **out, const struct eng_way_cfg *v, unsigned n);
void eng_ways_free(struct eng_ways *w); /* NULL allowed */
/* The worker's thread. Takes w (NULL: none); returns what was there, for the caller to free. */
struct eng_ways *eng_ways_set(struct eng *e, struct eng_ways *w);

/*
 * Pairs of gateways. Between two sites with several gateways each, an address pair has one pair of gateways:
 * the one that wins in rwy/spread.h among all that have a tunnel, by the tunnel's weight. Where peers are
 * known this decides between an engine's own tunnels as well, so that both sites come to the same.
 * Plain LAN only. The worker's thread.
 */
struct eng_rival {              /* a tunnel of another gateway of this site */
	uint64_t gateway, peer; /* rwy_spread_id */
	uint64_t weight;
};
/* The rival that the pair of a local host and a remote one belongs to; -1: it is this gateway's, or no tunnel
 * leads there. own: our tunnels' weights are times this. Costs one step for each pair of gateways. */
int eng_rival_find(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t own,
    const struct eng_rival *r, unsigned n);
/* The flow of what the host sends to QP dqpn of the remote one is here. */
bool eng_has(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);
/* Something is here of what the host sends to QP dqpn of the remote one: its flow, or one towards the host
 * that waits for the host to name its peer. */
bool eng_holds(const struct eng *e, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn);

/* The tunnel that `dst` is behind, or -1. Pure function of the configuration: any thread. */
int eng_route(const struct eng_cfg *cfg, const struct rwy_ip *dst);
/* A hash of an address pair, equal for both directions: owner = hash % workers. Any thread. */
uint32_t eng_owner_hash(const struct rwy_ip *a, const struct rwy_ip *b);

/* X(field, sentence): monotonic counts. Words follow the kernel's hw_counters where one fits. */
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
	X(read_cache_full, "READ responses not kept for their host: those of others take all the memory")    \
	X(out_of_sequence, "request ahead of the expected PSN")                                              \
	X(drop_resuming,                                                                                     \
	    "requests before the far gateway said where a connection of an earlier process stands")          \
	X(parked, "requests held until the path MTU is known")                                               \
	X(host_resent, "packets sent again to a local host")                                                 \
	X(packet_seq_err, "PSN sequence NAKs received from local hosts")                                     \
	X(rnr_nak_received, "RNR NAKs received from local hosts")                                            \
	X(local_ack_timeout_err, "a local host did not answer in time")                                      \
	X(implied_nak_seq_err, "a response was lost on the LAN (implied NAK)")                               \
	X(conns_lost, "connections ended because acknowledged requests were lost in a gateway restart")      \
	X(conns_failed, "connections ended with an error")                                                   \
	X(conns_opened, "flows entered in the flow table")                                                   \
	X(conns_paired, "connections whose two directions were paired")                                      \
	X(conns_expired, "flows removed for idleness")                                                       \
	X(cm_messages, "CM messages carried")                                                                \
	X(cm_connections, "connections learned from CM")                                                     \
	X(dgrams, "UD, UC and other IP packets carried best effort")                                         \
	X(ack_blocked, "ACKs held back for lack of custody memory")                                          \
	X(ack_single, "held ACKs given one at a time to hosts whose timer ran out")                          \
	X(drop_not_ip, "not an IP packet")                                                                   \
	X(drop_unknown_tenant, "a packet or flow of a tenant that is not here")                              \
	X(drop_no_route, "no tunnel leads to the destination")                                               \
	X(drop_no_tunnel, "a datagram of a tunnel that has been removed")                                    \
	X(drop_truncated, "shorter than its headers say")                                                    \
	X(drop_bad_ip, "bad IP header")                                                                      \
	X(drop_ip_fragment, "an IP fragment of a RoCE packet")                                               \
	X(drop_bad_udp_length, "UDP length does not fit the IP length")                                      \
	X(drop_bad_bth, "bad BTH")                                                                           \
	X(drop_unknown_opcode, "BTH opcode reserved or not carried")                                         \
	X(drop_bad_length, "payload does not fit the opcode")                                                \
	X(drop_icrc, "ICRC wrong")                                                                           \
	X(drop_unknown_qpn, "response for a connection that is not known")                                   \
	X(drop_ack_in_flight, "sent again while the ACK for it was on the way, or right after that")         \
	X(drop_stale_psn, "PSN outside the connection's window")                                             \
	X(drop_bad_sequence, "opcode out of sequence or wrong length: answered with NAK")                    \
	X(drop_read_on_its_way, "READs asked again of which answers not kept may still reach the host")      \
	X(drop_too_many_outstanding, "too many READs or ATOMICs outstanding")                                \
	X(drop_after_error, "request on a failed connection: answered with NAK")                             \
	X(drop_flow_table_full, "flow table is full")                                                        \
	X(drop_half_open, "too many unpaired flows")                                                         \
	X(drop_unpaired_full, "too many packets of an unpaired flow")                                        \
	X(drop_ghost_ack, "ACK for a PSN that is not outstanding")                                           \
	X(drop_old_response, "response seen before or unexpected")                                           \
	X(drop_bad_cm, "malformed CM message")                                                               \
	X(drop_no_buffer, "no packet buffer")                                                                \
	X(drop_ttl, "TTL exceeded")                                                                          \
	X(drop_tunnel_msg, "malformed message inside a tunnel")                                              \
	X(drop_wan_icrc, "ICRC wrong after the WAN: never delivered")
struct eng_counters {
#define X(f, s) uint64_t f;
	ENG_COUNTERS(X)
#undef X
};
const struct eng_counters *eng_counters(const struct eng *e);
/* How often each cell of the state tables was entered; wraps. */
const struct eng_states_seen *eng_states_seen(const struct eng *e);

/* One connection side as people see it. */
struct eng_flow_info {
	uint32_t tenant;
	struct rwy_ip local, remote;    /* hosts */
	uint32_t local_qpn, remote_qpn; /* 0: not known yet */
	char tunnel[ENG_NAME_MAX];
	const char *state;   /* "learning", "paired", "idle", "failed", "closing" */
	const char *learned; /* "cm", "passive", "peer", "" */
	const char *error;   /* why it failed, or "" */
	uint32_t pmtu;
	roce_psn near_psn, near_acked; /* responder: next expected, acknowledged before */
	roce_psn far_una, far_nxt;     /* requester: oldest unacknowledged, next to send */
	uint64_t tx_packets, tx_bytes; /* requests from the local host taken into custody */
	uint64_t rx_packets, rx_bytes; /* requests delivered to the local host */
	uint64_t custody_bytes;
	uint32_t far_queue;    /* requests waiting for the local host */
	uint64_t far_rate_Bps; /* CNPs of the local host bound the flow to it to this; 0: not bounded */
	rwy_dur far_rtt;       /* to the local host */
	const char
	    *limit; /* what bounds what the local host sends: "path", "far" (credit), "host" (what the far
	               host takes), "memory", "near-source" (our CNPs), "window" (its own), "" idle */
	uint64_t remote_window, remote_drain_Bps; /* end to end: bytes on the way at most, and what the far
	                                             host takes; 0: not bounded */
	uint64_t host_resent, rnr_naks;
	rwy_time last; /* last packet, in either direction */
};
#define ENG_IDLE (5 * RWY_SEC) /* paired and without a packet for longer: "idle" */
/* Fills up to max entries from cursor (start with 0) and moves the cursor; it is 0 again at the end. Returns
 * how many, which may be 0 in the middle: one call looks at a bounded part of the table. Order is arbitrary
 * but stable. */
unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max);
/* The same of connections as eng_ops.session told them. */
unsigned eng_sessions(const struct eng *e, uint32_t *cursor, struct eng_session *out, unsigned max);
uint32_t eng_flow_count(const struct eng *e);
void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out);
uint64_t eng_custody_bytes(const struct eng *e);
uint64_t eng_custody_max(const struct eng *e); /* eng_cfg.custody_total */
/* Buffers of READ responses that were served and are kept for their hosts, and what they take. */
uint32_t eng_kept_buffers(const struct eng *e);
uint64_t eng_kept_bytes(const struct eng *e);

#endif
