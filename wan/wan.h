/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native carrier: a reliable WAN segment between two gateways over UDP datagrams
 * (docs/wire-format.md).
 *
 * One struct wan_tunnel is this end of the sub-tunnel between the two workers of one number. It has
 * its own packet-number space, loss recovery and pacing; one thread uses it. It is sans-I/O:
 * datagrams come in by wan_recv and go out by wan_poll, time is an argument, and wan_next returns
 * when to call again.
 *
 * Flows: a *tx flow* carries buffers to the peer in order; the peer sees an *rx flow*. Order holds
 * within a flow and not between flows. Custody: a tx flow keeps each buffer until the peer's engine
 * reports it *delivered* (the far host acknowledged it), not merely received. A peer that restarts
 * gets everything undelivered again.
 */
#ifndef WAN_WAN_H
#define WAN_WAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aead/schedule.h"
#include "cc/cc.h"
#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/time.h"
#include "wan/congest.h"
#include "wan/stats.h"
#include "wan/stream.h"
#include "wan/wire/limits.h"

struct wan_fec_code;
struct wan_tunnel;
struct wan_txflow;
struct wan_rxflow;

enum wan_close_reason {
	WAN_CLOSE_BY_SENDER,  /* the other end called wan_tx_abort */
	WAN_CLOSE_PEER_RESET, /* the peer restarted (new epoch): the flow gets no more data */
	WAN_CLOSE_TUNNEL,     /* wan_free */
};

/* rx_open returns it when it has no memory. Only its address is used. */
extern const struct wan_rx_later {
	char unused;
} wan_rx_later;

/* Calls to the engine. `ctx` is wan_cfg.ctx; `user` is the pointer that the flow was opened with.
 * They are made from wan_recv, wan_poll or wan_tick, never from wan_tx_* or wan_rx_*; they may call
 * wan_tx_*, wan_rx_* and wan_dgram_send. */
struct wan_ops {
	/* The peer opened a flow. Returns the `user` pointer of the rx flow, or NULL to refuse it;
	 * the data of a refused flow is dropped and counted. &wan_rx_later: there is no memory, and
	 * the peer opens the flow again. */
	void *(*rx_open)(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now);
	/* Hands over the next buffer of the flow, in order, exactly once. Ownership moves to the
	 * callee; b->seq is its flow sequence. */
	void (*rx_data)(void *ctx, void *user, struct rwy_buf *b, rwy_time now);
	/* rx_data, or tx_acked and tx_delivered, come soon for this user, or not at all: what they
	 * touch may be prefetched, and nothing may be read, for the flow may have ended. user may
	 * be NULL. Only called where there are many flows. May be NULL. */
	void (*rx_ahead)(void *ctx, const void *user);
	void (*tx_ahead)(void *ctx, const void *user);
	/* The flow ended; *f is freed after the call. */
	void (*rx_close)(void *ctx, void *user, enum wan_close_reason reason, rwy_time now);
	/* The peer *received* everything of this flow up to and including b, which stays in
	 * custody. For ack mode `far`. */
	void (*tx_acked)(void *ctx, void *user, const struct rwy_buf *b, rwy_time now);
	/* The peer's engine delivered b. Called once per buffer, in order; wan frees b
	 * afterwards. */
	void (*tx_delivered)(void *ctx, void *user, const struct rwy_buf *b, rwy_time now);
	/* The peer restarted. Returns how many of the oldest buffers in custody the far host has
	 * executed, as its responses show. wan does not send these again, and calls tx_delivered
	 * for each. NULL: none. */
	uint32_t (*tx_executed)(void *ctx, void *user);
	/* The peer restarted and lost its state of this flow; wan retransmits everything
	 * undelivered. Writes fresh open information and returns its length. */
	size_t (*tx_reopen)(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now);
	/* The peer refused or lost the flow (it sent RESET). After the call wan frees the custody
	 * and the flow. */
	void (*tx_reset)(void *ctx, void *user, rwy_time now);
	/* The same when memory was short here: a buffer given to the flow was freed. NULL: tx_reset
	 * is called. */
	void (*tx_broken)(void *ctx, void *user, rwy_time now);
	/*
	 * The CRC-32 (rwy/crc32.h) of some bytes and then of all of b, a packet in custody: `crc`
	 * is that of the bytes. For one that ends with a CRC-32 of itself it follows from the
	 * headers, and wan does not read the payload once more. Asked for no fragment and no run.
	 * NULL: wan reads it.
	 */
	uint32_t (*tx_crc)(const struct rwy_buf *b, uint32_t crc);
	/* A best-effort datagram arrived. Ownership moves to the callee. */
	void (*rx_dgram)(void *ctx, struct rwy_buf *b, rwy_time now);
	/* Sustained congestion of a path began or ended (congest.h); the engine may move tunnels to
	 * another carrier. May be NULL. */
	void (*congested)(void *ctx, uint8_t path, const struct wan_congest_state *s, rwy_time now);
	/* The tunnel came up (handshake done; `restarted`: the peer has a new epoch, and rx_close
	 * was called for each flow of the old one) or the peer fell silent. */
	void (*state)(void *ctx, bool up, bool restarted, rwy_time now);
	/* The witness has confirmed the present claim (wan_claim_granted). Again after each change
	 * of the claim, each restart of the witness and each silence. May be NULL. */
	void (*claim)(void *ctx, rwy_time now);
	/*
	 * The witness refuses us: another gateway of our pair has the tunnel for good, or keeps it.
	 * If the tunnel was up, state(false) comes before. From now on the claim is
	 * WAN_CLAIM_SILENT. May be NULL. Not called for a tunnel with WAN_CLAIM_NONE.
	 */
	void (*replaced)(void *ctx, rwy_time now);
};

enum wan_fec_mode {
	WAN_FEC_AUTO, /* repair datagrams near the ends of messages, as loss demands */
	WAN_FEC_OFF,  /* none is sent, and the peer is asked to send none */
};

/* What a path is used for. */
enum wan_path_use {
	WAN_USE_ALWAYS, /* it carries its part */
	WAN_USE_SPARE,  /* it carries only while no path that is always used answers */
	WAN_USE_NEVER,  /* nothing is sent by it */
	/* as ALWAYS; the network promised its rate, so it never rests for another path */
	WAN_USE_GRANTED,
};
static inline bool wan_use_carries(enum wan_path_use u)
{
	return u == WAN_USE_ALWAYS || u == WAN_USE_GRANTED;
}

struct wan_cfg {
	void *ctx;
	const struct wan_ops *ops;
	struct rwy_bufs bufs;
	const struct cc_ops *cc;
	struct cc_cfg cc_cfg; /* rate_Bps: of all halves of the tunnel together */
	/* this half's lease of that and of path_rate_Bps, in 1/65536; 0: all (lease.h) */
	uint32_t lease;
	uint32_t mtu[WAN_PATHS_MAX]; /* largest UDP payload of each path, bytes, 576 .. 9000 */
	unsigned paths;              /* 1 .. WAN_PATHS_MAX */
	/* limit of each path, as cc_cfg.rate_Bps; 0: that one */
	uint64_t path_rate_Bps[WAN_PATHS_MAX];
	enum wan_path_use use[WAN_PATHS_MAX]; /* path 0: not WAN_USE_NEVER */
	/* With several paths: while data is under way, each is asked this often whether it answers,
	 * and carries nothing new after three such times without one. RWY_MS .. RWY_SEC. */
	rwy_dur path_probe;
	uint64_t epoch; /* random, new at each start of this process */
	/* random: the tunnel index the peer must write into what it sends us */
	uint32_t index;
	/* the same at both ends: configuration of the pair (hash of addresses, worker) */
	uint64_t tunnel_id;
	uint32_t tx_pkts_max; /* datagrams in flight tracked at most, power of two */
	/* buffers of one flow we hold undelivered at most: advertised as flow credit */
	uint32_t rx_window;
	/* bytes we hold undelivered at most, all flows: advertised as tunnel credit */
	uint64_t rx_bytes;
	/*
	 * Least bytes that a buffer counts of rx_bytes: what it takes, however small the packet.
	 * The peer counts in the same way. Does not change.
	 */
	uint32_t rx_cost;
	/* probe when silent for this long; the peer is down after 4 of them */
	rwy_dur keepalive;
	rwy_dur max_ack_delay; /* 0 .. 25 ms */
	/* send ECN-capable datagrams, unless the path is found unfit */
	bool ecn;
	struct wan_congest_cfg congest;
	enum wan_fec_mode fec;
	uint32_t fec_extra_max; /* largest cost of repairs, per mille of the data */
	/* Bytes of protected datagrams copied per path to rebuild others: at least 32 MiB, or some
	 * of the peer's repairs are useless. */
	uint64_t fec_rx_bytes;
	/* Place of the FEC code tables, shared by the tunnels of one thread. The owner frees them
	 * with free() after the last tunnel. NULL: each tunnel has its own. */
	struct wan_fec_code **fec_code;
	/* bytes of a datagram on the wire besides its UDP payload; pacing counts them */
	uint32_t wire_overhead;
	/* Seals native datagrams (wan_keys_offer); static. NULL: they go in the clear. */
	const struct aead_ops *aead;
	enum aead_alg aead_alg;
	/* a key seals datagrams for this long, about: RWY_SEC .. RWY_HOUR */
	rwy_dur rekey;
};
/* Fills the defaults. */
void wan_cfg_default(struct wan_cfg *cfg);

struct wan_key;

/*
 * One datagram to send. Without `key` the UDP payload is `hdr` followed by
 * buf->data[off .. off+len). With it wan_tx_write makes the payload, a sealed copy. wan keeps
 * ownership of the buffer: take a reference or copy it before the next call.
 */
struct wan_tx {
	struct rwy_buf *buf; /* NULL: header only */
	uint32_t off, len;
	uint16_t hdr_len;
	uint8_t path;
	bool own;       /* buf is a best-effort packet: its ownership moves to the caller */
	bool ect;       /* send with ECT(0) */
	bool congested; /* the path is congested for good; the sender may change the DSCP */
	bool stream;    /* send by the reliable carrier (stream.h), not as a UDP datagram */
	/* class of the flow that the data belongs to (wan_tx_class), or that class's parent; 0 if
	 * there is no data */
	uint32_t class_id;
	bool has_dscp; /* the class says one */
	uint8_t dscp;
	const struct wan_key *key;   /* valid until the next call; NULL: in the clear */
	const struct aead_ops *aead; /* with `key` */
	uint8_t nonce[AEAD_NONCE];   /* likewise */
	uint8_t hdr[WAN_HDR_MAX];
};
/* Length of the UDP payload, bytes. */
uint32_t wan_tx_size(const struct wan_tx *tx);
/* Writes the UDP payload, wan_tx_size bytes: a copy; with a key the encryption is the copy. */
void wan_tx_write(const struct wan_tx *tx, uint8_t *out);
/*
 * The same, faster, for a datagram with a key and a buffer: the header is joined to the payload,
 * and both are encrypted as one piece. It overwrites up to hdr_len bytes in front of the payload,
 * which must exist, and which nobody may read.
 */
void wan_tx_write_joined(const struct wan_tx *tx, uint8_t *out);

/* Makes a tunnel. RWY_EINVAL: cfg is out of range; RWY_ENOMEM. */
RWY_MUST_CHECK int wan_new(struct wan_tunnel **out, const struct wan_cfg *cfg, rwy_time now);
/* Frees the tunnel and its custody, and calls rx_close(WAN_CLOSE_TUNNEL) for each rx flow. NULL is
 * allowed. */
void wan_free(struct wan_tunnel *t);

/*
 * Processes the UDP payload of a datagram from the tunnel's peer. The caller has checked the source
 * address. Takes ownership of b. path: the number of the one that it came by, from 0; one that the
 * tunnel does not have counts as 0. ecn: the two ECN bits of its IP header (RFC 3168), 0..3.
 */
void wan_recv(struct wan_tunnel *t, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now);
/* Fills up to max records with datagrams that pacing and window allow now. Returns their number.
 * Call again while it returns max. */
unsigned wan_poll(struct wan_tunnel *t, struct wan_tx *out, unsigned max, rwy_time now);
/* Runs the timers: loss detection, PTO, keep-alive, delayed ACK. Call it at or after wan_next(); it
 * is cheap when nothing is due. */
void wan_tick(struct wan_tunnel *t, rwy_time now);
/* When wan_tick() or wan_poll() has something to do at the latest. A time that is past, also 0: at
 * once. RWY_NEVER: only after a datagram or another call. */
rwy_time wan_next(const struct wan_tunnel *t);
/*
 * Many tunnels, most of them idle: wan_note_quiet says that wan_poll has just returned nothing.
 * Then wan_quiet is true, and neither wan_tick nor wan_poll need be called, until wan_next() or
 * another call for this tunnel or one of its flows. Cheap.
 */
void wan_note_quiet(struct wan_tunnel *t);
bool wan_quiet(const struct wan_tunnel *t, rwy_time now);

/* Sending. wan_tx_open opens a flow; info is copied, user is passed to callbacks. RWY_EINVAL: the
 * information is too long; RWY_ENOMEM. */
RWY_MUST_CHECK int wan_tx_open(
    struct wan_tunnel *t, struct wan_txflow **out, const uint8_t *info, size_t len, void *user, rwy_time now);

/*
 * Classes share a tunnel's capacity (sched.h): guarantees first, the rest by weight, never above a
 * limit. Rates are bytes a second on the wire of this worker's sub-tunnel; 0: none; otherwise at
 * least WAN_RATE_MIN. Class 0 always exists with weight 1; flows belong to it unless wan_tx_class
 * says otherwise. A change takes effect at once.
 *
 * A class may be part of another one, its parent: what it sends also counts as sent by the parent,
 * against the parent's guarantee and limit. A parent has no parent.
 */
#define WAN_CLASSES_MAX 131072
#define WAN_WEIGHT_MAX  1000
#define WAN_RATE_MIN    1000
#define WAN_PRIORITIES  8
#define WAN_DSCP_MAX    63
struct wan_class_cfg {
	uint64_t guarantee_Bps, limit_Bps;
	uint32_t weight; /* 1 .. WAN_WEIGHT_MAX */
	/* below WAN_PRIORITIES; among classes below their guarantee, the highest is served first */
	uint8_t priority;
	uint32_t parent; /* 0: none; one that was never set counts as none */
	/* for the IP headers of its datagrams; else the caller's rules decide */
	bool has_dscp;
	uint8_t dscp; /* up to WAN_DSCP_MAX */
};
struct wan_class_stats {
	struct wan_class_cfg cfg;
	uint64_t sent, sent_guaranteed; /* bytes: all, and those that the guarantee paid for */
	/* waiting: data waits; limited: only a limit stops it, its own or its parent's */
	bool waiting, limited;
};
/* Weight, priority, rates and DSCP are in range, and the limit is not below the guarantee. */
bool wan_class_ok(const struct wan_class_cfg *cfg);
/* RWY_EINVAL: bad id or parent, or !wan_class_ok; RWY_ENOMEM: nothing changed. */
RWY_MUST_CHECK int wan_class_set(struct wan_tunnel *t, unsigned id, const struct wan_class_cfg *cfg);
/* Copies what a class has sent, and what stops it; all 0: it was never set. */
void wan_class_stats(const struct wan_tunnel *t, unsigned id, struct wan_class_stats *out);
/* Puts f into a class. A class that was never set counts as class 0. */
void wan_tx_class(struct wan_txflow *f, unsigned id);
/*
 * Marks f as bulk: its buffers may have to wait at the far end for another flow. So f leaves an
 * eighth of the tunnel's credit to flows that are not bulk, and these go on when no more is left.
 */
void wan_tx_bulk(struct wan_txflow *f);
#define WAN_TX_LINES 3 /* cache lines of a flow */
/*
 * A flow has been quiet for a while: gives memory back that it does not need now. wan_tx_rest:
 * nothing if anything is in custody; wan_rx_rest: nothing if it holds bytes that were not handed
 * over. The flow goes on as before, and takes memory again when it needs it.
 */
void wan_tx_rest(struct wan_txflow *f);
void wan_rx_rest(struct wan_rxflow *f);
/* Takes ownership of b until it is delivered. Never fails and never drops: the caller bounds the
 * custody by wan_tx_queued. Works while the tunnel is down. */
void wan_tx_send(struct wan_txflow *f, struct rwy_buf *b, rwy_time now);
/*
 * There is memory for one buffer more: the next wan_tx_send of the flow needs none. False: there is
 * not, and a buffer that is sent all the same ends the flow by tx_broken.
 */
bool wan_tx_reserve(struct wan_txflow *f);
/*
 * Order between flows of a tunnel. A buffer given with wan_tx_send_after is handed over at the
 * other end only after the buffers that `after` names are delivered (wan_rx_delivered), or their
 * flow has ended. RWY_NO_FLOW: it waits for nothing. Give only what wan_tx_pending is true for, and
 * only where wan_tx_orders is (true while the peer is not known): else nobody waits. A later buffer
 * of a flow waits as long as an earlier one.
 *
 * wan_tx_mark: names the first `count` buffers of a flow. wan_order_put: appends the list v[n], n 1
 * to WAN_ORDER_MAX, to an order flow and sets *order to the name of this list and all before it.
 * *order begins as RWY_NO_FLOW. It costs a message in a flow of its own, of this class. False: no
 * memory, or WAN_ORDER_BUFS_MAX of these messages are in custody; nothing changed. wan_order_bufs:
 * how many are. wan_order_end: ends that order flow, and frees its lists in custody; nobody waits
 * by them any longer. RWY_NO_FLOW, or one that has ended: nothing happens.
 */
#define WAN_ORDER_MAX      32 /* a list fits a small buffer */
#define WAN_ORDER_BUFS_MAX 2048
void wan_tx_send_after(struct wan_txflow *f, struct rwy_buf *b, const struct rwy_after *after, rwy_time now);
bool wan_tx_orders(const struct wan_tunnel *t);
bool wan_tx_pending(const struct wan_tunnel *t, const struct rwy_after *a);
struct rwy_after wan_tx_mark(struct wan_txflow *f, uint64_t count);
RWY_MUST_CHECK bool wan_order_put(struct wan_tunnel *t, struct rwy_after *order, unsigned class_id,
    const struct rwy_after *v, unsigned n, rwy_time now);
uint32_t wan_order_bufs(const struct wan_tunnel *t);
void wan_order_end(struct wan_tunnel *t, uint32_t flow, rwy_time now);
/* Ends the flow at once: custody is freed, the peer gets rx_close BY_SENDER. No callbacks
 * follow. */
void wan_tx_abort(struct wan_txflow *f, rwy_time now);
uint32_t wan_tx_queued(const struct wan_txflow *f); /* buffers in custody */
/* The i-th of them, 0 is the oldest; it stays in custody. NULL: there are not so many. */
const struct rwy_buf *wan_tx_peek(const struct wan_txflow *f, uint32_t i);
/* Sequence of the oldest buffer in custody, or of the next one; the buffer with a sequence, which
 * stays wan's; NULL: it is not in custody. */
uint64_t wan_tx_base(const struct wan_txflow *f);
const struct rwy_buf *wan_tx_at(const struct wan_txflow *f, uint64_t seq);
/* Number of the flow's buffers that were never sent; and whether the peer's credit stops them. */
uint32_t wan_tx_unsent(const struct wan_txflow *f);
bool wan_tx_blocked(const struct wan_txflow *f);
/* Data of its class waits, and only a limit stops it: the class's own, or its parent's. */
bool wan_tx_limited(const struct wan_txflow *f);
uint64_t wan_tx_bytes(const struct wan_txflow *f); /* bytes in custody */
/* Values of the peer's last wan_rx_window: the bound on bytes sent and not delivered (0: none); and
 * the far host's rate in bytes a second (0: unknown). */
uint64_t wan_tx_window(const struct wan_txflow *f, uint64_t *drain_Bps);
/* Sends a best-effort, unordered packet; takes ownership. When too many wait, the oldest are
 * dropped and counted. */
void wan_dgram_send(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now);

/* Receiving. wan_rx_delivered reports that all buffers up to and including flow sequence `seq` are
 * delivered: the peer frees them, and credit opens. */
void wan_rx_delivered(struct wan_rxflow *f, uint64_t seq, rwy_time now);
/*
 * End-to-end control (RATE frame, docs/wire-format.md): at most `bytes` of this flow may be sent
 * and not delivered; 0: only credit bounds it. One buffer is always allowed. A smaller value takes
 * effect as deliveries catch up. `drain_Bps` is the rate that the host takes, in bytes a second,
 * shown at the other end; 0: unknown. The peer is told at once; a lost report is repeated.
 */
void wan_rx_window(struct wan_rxflow *f, uint64_t bytes, uint64_t drain_Bps);
/* Refuses the rest of this flow: the peer gets tx_reset; *f is freed. */
void wan_rx_reset(struct wan_rxflow *f, rwy_time now);

/* Changes the advertised credit: buffers of one flow, bytes of all flows. A reduction takes effect
 * when the peer learns of it. */
void wan_rx_credit(struct wan_tunnel *t, uint32_t rx_window, uint64_t rx_bytes, rwy_time now);

/* Changes the rate (cc_cfg.rate_Bps) and the congestion thresholds while traffic runs. Datagrams in
 * flight, sequence numbers and custody stay as they are. */
void wan_retune(struct wan_tunnel *t, uint64_t rate_Bps, const struct wan_congest_cfg *congest, rwy_time now);
/* Changes cfg.path_rate_Bps of one path and cfg.path_probe in the same way. A value out of range is
 * ignored. */
void wan_retune_path(struct wan_tunnel *t, unsigned path, uint64_t rate_Bps);
/* Changes cfg.lease in the same way: 1 .. 65536, another value is ignored, and so is an increase by
 * less than a 64th. */
void wan_retune_lease(struct wan_tunnel *t, uint32_t lease);
/* The lease that this half would use, 0 .. 65536: by what it sent in `span`, the time since the
 * last call, and by what is in flight. */
uint32_t wan_lease_wanted(struct wan_tunnel *t, rwy_dur span);
void wan_retune_probe(struct wan_tunnel *t, rwy_dur path_probe);
/*
 * Changes what a path is used for, cfg.use. It may be a path above those that there are; the paths
 * between are used for nothing. `mtu` is its largest UDP payload, at least that of the tunnel's
 * other paths at the start. `anew`: it leads elsewhere, so what was measured is forgotten. What was
 * under way on a path that is used no more, or leads elsewhere, goes again by the others at once.
 * Flows notice none of it. The peer need not change at the same moment: to it, a path whose other
 * end has gone is silent. Returns RWY_EINVAL: no such path, path 0 used for nothing, or the MTU is
 * smaller; RWY_ENOMEM. Then nothing changed.
 */
RWY_MUST_CHECK int wan_retune_use(
    struct wan_tunnel *t, unsigned path, enum wan_path_use use, uint32_t mtu, bool anew, rwy_time now);

/*
 * Keys of a tunnel with cfg.aead (keys.h). Without a key set in use nothing is sent natively, and
 * what is received is dropped: the tunnel is down, unless the reliable carrier, which has its own
 * protection, carries it.
 *
 * wan_keys_offer: a handshake with the peer gave these secrets, one for each direction, each known
 * to nobody else. The peer may use them from now on. RWY_EINVAL: the tunnel has no cfg.aead;
 * RWY_ENOMEM; RWY_EEXIST: do the handshake again (a set in use has such an id, or it is 0).
 * wan_keys_use: the peer has what was offered last: what is sent is sealed with it. An authentic
 * datagram of the peer says the same. What was used before still opens datagrams for some time.
 * wan_keys_reserve: the peer's active gateway made these secrets for its standby (wan_claim). The
 * set opens datagrams, and seals none until the standby claims the tunnel. wan_keys_kept: the
 * standby has the last one; else the next wan_keys_reserve wipes it. wan_keys_keep: the standby
 * itself takes them, to claim with later. wan_keys_reserve and wan_keys_keep return as
 * wan_keys_offer. Such a set ends 30 s after its first datagram came; until then the standby
 * exchanges keys of its own.
 * wan_keys_end: nobody is at the other end any more (a revoked certificate): wipes all keys.
 */
struct wan_secrets {
	struct aead_secret tx, rx;
};
RWY_MUST_CHECK int wan_keys_offer(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now);
void wan_keys_use(struct wan_tunnel *t, rwy_time now);
RWY_MUST_CHECK int wan_keys_reserve(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now);
void wan_keys_kept(struct wan_tunnel *t);
RWY_MUST_CHECK int wan_keys_keep(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now);
void wan_keys_end(struct wan_tunnel *t, rwy_time now);

/*
 * What a path carried, for the standby of a pair: its own tunnel begins with that rate for some
 * round trips. wan_resume_of: false: nothing is known; call it every 100 ms or less often, `path`
 * is below wan_paths(). wan_resume_set: before the tunnel has come up, and with a round trip of
 * at most 10 s; else nothing happens.
 */
struct wan_resume {
	uint64_t rate_Bps; /* bytes a second on the wire */
	rwy_dur rtt;       /* the smallest */
};
bool wan_resume_of(struct wan_tunnel *t, unsigned path, struct wan_resume *out, rwy_time now);
void wan_resume_set(struct wan_tunnel *t, unsigned path, const struct wan_resume *from);

/* The smallest round trip of any path, ns; 0 before the first sample. Cheap. */
rwy_dur wan_min_rtt(const struct wan_tunnel *t);

#endif
