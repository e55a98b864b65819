/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native carrier: a reliable WAN segment between two gateways over UDP datagrams (docs/wire-format.md).
 *
 * One struct wan_tunnel is one worker's half of a tunnel: own packet-number space, own loss recovery, own
 * pacing; one thread uses it. It is sans-I/O: datagrams come in by wan_recv, go out by wan_poll, time is an
 * argument, wan_next says when to call again.
 *
 * Flows: a *tx flow* carries buffers to the peer in order; the peer sees an *rx flow*. Delivery is in order
 * per flow and only per flow. Custody: a tx flow keeps each buffer until the peer's engine says it is
 * *delivered* (the far host acknowledged it), not merely received; a peer that restarts gets everything
 * undelivered again.
 */
#ifndef WAN_WAN_H
#define WAN_WAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cc/cc.h"
#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/time.h"
#include "wan/congest.h"
#include "wan/fec/stats.h"
#include "wan/stream.h"
#include "wan/wire/limits.h"

struct wan_fec_code;
struct wan_tunnel;
struct wan_txflow;
struct wan_rxflow;

#define WAN_PATHS_MAX 8

enum wan_close_reason {
	WAN_CLOSE_BY_SENDER,  /* wan_tx_close at the other end, and everything before it was handed over and
	                         delivered  (wan_rx_delivered); or wan_tx_abort at the other end, at any time
	                       */
	WAN_CLOSE_PEER_RESET, /* the peer restarted (new epoch): nothing more will come on this flow */
	WAN_CLOSE_TUNNEL,     /* wan_free */
};

/* The engine's side. `ctx` is wan_cfg.ctx; `user` is what the flow was opened with. All are called from
 * inside wan_recv, wan_poll or wan_tick, never from a wan_tx_* or wan_rx_* call; they may call wan_tx_*,
 * wan_rx_* and wan_dgram_send. */
struct wan_ops {
	/* The peer opened a flow. Returns the `user` pointer of the rx flow, or NULL to refuse (its data is
	 * then dropped and counted). */
	void *(*rx_open)(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now);
	/* The next buffer of the flow, in order, exactly once. Ownership moves to the callee; b->seq is its
	 * flow sequence. */
	void (*rx_data)(void *ctx, void *user, struct rwy_buf *b, rwy_time now);
	/* The flow ended; *f is gone after the call. */
	void (*rx_close)(void *ctx, void *user, enum wan_close_reason reason, rwy_time now);
	/* The peer *received* everything of this flow up to and including b (b is still in custody). For ack
	 * mode `far`. */
	void (*tx_acked)(void *ctx, void *user, const struct rwy_buf *b, rwy_time now);
	/* The peer's engine delivered b. Called once per buffer in order; wan frees b afterwards. */
	void (*tx_delivered)(void *ctx, void *user, const struct rwy_buf *b, rwy_time now);
	/* The peer restarted: it has no state of this flow; wan sends everything undelivered again. Writes
	 * fresh open information. */
	size_t (*tx_reopen)(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time now);
	/* The peer refused or lost the flow (it answered FLOW_RESET): custody is freed by wan after the call;
	 * the flow is gone. */
	void (*tx_reset)(void *ctx, void *user, rwy_time now);
	/* A datagram (best effort). Ownership moves to the callee. */
	void (*rx_dgram)(void *ctx, struct rwy_buf *b, rwy_time now);
	/* A path has become congested for good, or is so no more (congest.h): the place to move what can
	 * be moved to another carrier. May be NULL. */
	void (*congested)(void *ctx, uint8_t path, const struct wan_congest_state *s, rwy_time now);
	/* The tunnel came up (handshake done; `restarted`: the peer has a new epoch) or went silent. */
	void (*state)(void *ctx, bool up, bool restarted, rwy_time now);
};

enum wan_fec_mode {
	WAN_FEC_AUTO, /* repair datagrams near the ends of messages, as loss demands */
	WAN_FEC_OFF,  /* none sent; the peer is told not to send any */
};

struct wan_cfg {
	void *ctx;
	const struct wan_ops *ops;
	struct rwy_bufs bufs;
	const struct cc_ops *cc;
	struct cc_cfg cc_cfg;
	uint32_t mtu[WAN_PATHS_MAX]; /* largest UDP payload of each path, bytes, 576 .. 9000 */
	unsigned paths;              /* 1 .. WAN_PATHS_MAX */
	uint64_t epoch;              /* random, new at each start of this process */
	uint32_t index;              /* random: the tunnel index the peer must write into what it sends us */
	uint64_t tunnel_id; /* the same at both ends: configuration of the pair (hash of addresses, worker) */
	uint32_t tx_pkts_max; /* datagrams in flight tracked at most, power of two */
	uint32_t rx_window;   /* buffers of one flow we hold undelivered at most: advertised as flow credit */
	uint64_t rx_bytes;    /* bytes we hold undelivered at most, all flows: advertised as tunnel credit */
	rwy_dur keepalive;    /* probe when silent for this long; the peer is down after 4 of them */
	rwy_dur max_ack_delay; /* 0 .. 25 ms */
	bool ecn;              /* datagrams are ECN-capable, unless the path turns out not to be */
	struct wan_congest_cfg congest;
	enum wan_fec_mode fec;
	uint32_t fec_extra_max; /* per mille of the data that repairs may cost at most */
	uint64_t fec_rx_bytes; /* copies of protected datagrams kept to rebuild others, each path: at least 32
	                          MiB, or the peer's repairs will not all be of use */
	/* Where the tables of forward error correction are kept, for the tunnels of one thread; freed with
	 * free() after the last of them. NULL: each tunnel keeps its own. */
	struct wan_fec_code **fec_code;
	uint32_t wire_overhead; /* bytes a datagram costs on the wire besides its UDP payload: pacing counts
	                           them */
};
void wan_cfg_default(struct wan_cfg *cfg);

/* One datagram to send. `hdr` and then buf->data[off .. off+len) form the UDP payload. The buffer stays owned
 * by wan: take a reference or copy before the next call. */
struct wan_tx {
	struct rwy_buf *buf; /* NULL: header only */
	uint32_t off, len;
	uint16_t hdr_len;
	uint8_t path;
	bool own;       /* buf was a one-shot (dgram): ownership moves to the caller with this record */
	bool ect;       /* send it ECN-capable, ECT(0) */
	bool congested; /* its path is, for good: for whoever marks packets then in another way */
	bool stream;    /* it goes by the reliable carrier (stream.h), not as a datagram of its own */
	uint32_t
	    class_id; /* of the flow whose data it carries (wan_tx_class); 0 as well for what is nobody's */
	uint8_t hdr[WAN_HDR_MAX];
};

RWY_MUST_CHECK int wan_new(struct wan_tunnel **out, const struct wan_cfg *cfg, rwy_time now);
void wan_free(
    struct wan_tunnel *t); /* NULL allowed; frees custody; rx_close(WAN_CLOSE_TUNNEL) for each rx flow */

/* A datagram's UDP payload came from the tunnel's peer address (the caller checked the address). Takes
 * ownership of b. */
void wan_recv(struct wan_tunnel *t, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now);
/* Fills up to max records with datagrams that may go now (pacing, window). Returns how many. Call again while
 * it returns max. */
unsigned wan_poll(struct wan_tunnel *t, struct wan_tx *out, unsigned max, rwy_time now);
/* Timers: loss detection, PTO, keep-alive, delayed ACK. Call at or after wan_next(); cheap when nothing is
 * due. */
void wan_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_next(const struct wan_tunnel *t);

/* Sending. */
RWY_MUST_CHECK int wan_tx_open(
    struct wan_tunnel *t, struct wan_txflow **out, const uint8_t *info, size_t len, void *user, rwy_time now);

/*
 * Classes share a tunnel's capacity (sched.h): a guarantee first, the rest by weight, never more than the
 * limit. Rates are bytes a second on the wire of this worker's half of the tunnel, 0: none, or at least
 * WAN_RATE_MIN. Class 0 is there from the start, weight 1; flows are in it unless wan_tx_class says
 * otherwise. A change takes effect at once.
 */
#define WAN_CLASSES_MAX 65536
#define WAN_WEIGHT_MAX  1000
#define WAN_RATE_MIN    1000
#define WAN_PRIORITIES  8
struct wan_class_cfg {
	uint64_t guarantee_Bps, limit_Bps;
	uint32_t weight; /* 1 .. WAN_WEIGHT_MAX */
	uint8_t
	    priority; /* below WAN_PRIORITIES: of several that are due their guarantee the highest first */
};
struct wan_class_stats {
	struct wan_class_cfg cfg;
	uint64_t sent, sent_guaranteed; /* bytes: all, and those the guarantee paid for */
	bool waiting, limited;          /* something waits; and would go but for the limit */
};
/* RWY_EINVAL: id, weight, or a limit below the guarantee; RWY_ENOMEM: nothing changed. */
RWY_MUST_CHECK int wan_class_set(struct wan_tunnel *t, unsigned id, const struct wan_class_cfg *cfg);
void wan_class_stats(const struct wan_tunnel *t, unsigned id, struct wan_class_stats *out);
/* A class that was never set is class 0. */
void wan_tx_class(struct wan_txflow *f, unsigned id);
/* Takes ownership until delivered. Never fails and never drops: the caller bounds it by wan_tx_queued. Works
 * while the tunnel is down. */
void wan_tx_send(struct wan_txflow *f, struct rwy_buf *b, rwy_time now);
/* Ends the flow after what was sent; it is freed when all is delivered. `user` gets no callbacks any more
 * from this call on. */
void wan_tx_close(struct wan_txflow *f, rwy_time now);
/* Ends the flow at once; custody is freed, the peer is told (rx_close BY_SENDER). No callbacks any more. */
void wan_tx_abort(struct wan_txflow *f, rwy_time now);
uint32_t wan_tx_queued(const struct wan_txflow *f); /* buffers in custody */
/* Buffers of the flow that were never sent; whether the peer's credit is what keeps them. */
uint32_t wan_tx_unsent(const struct wan_txflow *f);
bool wan_tx_blocked(const struct wan_txflow *f);
uint64_t wan_tx_bytes(const struct wan_txflow *f); /* bytes in custody */
/* The values of the peer's last wan_rx_window: bytes sent and not delivered at most, 0: no bound; and what
 * the far host takes, bytes a second, 0: not known. */
uint64_t wan_tx_window(const struct wan_txflow *f, uint64_t *drain_Bps);
/* Best effort, unordered; takes ownership. Oldest are dropped (counted) when more than a bound wait. */
void wan_dgram_send(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now);

/* Receiving. All buffers up to and including flow sequence `seq` are delivered: the peer may free them,
 * credit opens. */
void wan_rx_delivered(struct wan_rxflow *f, uint64_t seq, rwy_time now);
/*
 * End to end (design: RATE): at most `bytes` of this flow may be sent and not delivered, 0: no bound but
 * credit. One buffer may always be. A smaller value takes effect by waiting. `drain_Bps` is what the host
 * takes, bytes a second, for people at the other end; 0: not known. Told at once, and again when lost.
 */
void wan_rx_window(struct wan_rxflow *f, uint64_t bytes, uint64_t drain_Bps);
/* Refuse the rest of this flow: the peer gets tx_reset; *f is gone. */
void wan_rx_reset(struct wan_rxflow *f, rwy_time now);

/* Changes what is advertised: buffers of one flow, bytes of all flows. Less takes effect as the peer hears of
 * it. */
void wan_rx_credit(struct wan_tunnel *t, uint32_t rx_window, uint64_t rx_bytes, rwy_time now);

/* Another rate (cc_cfg.rate_Bps) and other thresholds of what is congested, while traffic runs. Datagrams
 * under way, sequence numbers and custody stay as they are. */
void wan_retune(struct wan_tunnel *t, uint64_t rate_Bps, const struct wan_congest_cfg *congest, rwy_time now);

/* The smallest round trip of any path, ns; 0 before the first sample. Cheap. */
rwy_dur wan_min_rtt(const struct wan_tunnel *t);

/* For people and tests: X(field, sentence). All monotonic counts. */
#define WAN_COUNTERS(X)                                                                                      \
	X(tx_datagrams, "datagrams sent")                                                                    \
	X(tx_bytes, "UDP payload bytes sent")                                                                \
	X(rx_datagrams, "datagrams accepted")                                                                \
	X(rx_bytes, "UDP payload bytes accepted")                                                            \
	X(tx_data, "inner packets handed to the wire for the first time")                                    \
	X(tx_retransmit, "datagrams that carried data again, for whatever of the four reasons below")        \
	X(retransmit_lost, "of them because the one before was declared lost")                               \
	X(retransmit_probe, "of them by a probe timeout: no answer came in time")                            \
	X(retransmit_copy, "of them second copies of what goes again, on a path that loses much")            \
	X(retransmit_moved, "of them because their path fell silent or their carrier changed")               \
	X(rx_data, "inner packets handed to the engine")                                                     \
	X(rx_duplicate, "data received twice and dropped")                                                   \
	X(spurious_retransmit, "datagrams declared lost and acknowledged later")                             \
	X(lost, "datagrams declared lost")                                                                   \
	X(pto, "probe timeouts")                                                                             \
	X(acks_sent, "ACK frames sent")                                                                      \
	X(acks_received, "ACK frames accepted")                                                              \
	X(repair_sent, "repair datagrams sent (forward error correction)")                                   \
	X(repair_bytes, "UDP payload bytes of repair datagrams sent")                                        \
	X(repair_received, "repair datagrams received")                                                      \
	X(repair_unused, "repair datagrams received that nothing needed, or not enough of a block")          \
	X(rebuilt, "datagrams that were lost and rebuilt from repairs")                                      \
	X(drop_bad_repair, "repair datagram inconsistent, or its block does not give what was sent")         \
	X(dgram_sent, "best-effort packets sent")                                                            \
	X(dgram_received, "best-effort packets received")                                                    \
	X(drop_short, "datagram shorter than its header")                                                    \
	X(drop_version, "unknown version or type")                                                           \
	X(drop_crc, "datagram checksum wrong")                                                               \
	X(drop_unknown_tunnel, "tunnel index is not ours (a stranger, or from before a restart)")            \
	X(drop_duplicate_pn, "packet number seen before")                                                    \
	X(drop_bad_frame, "frame malformed")                                                                 \
	X(drop_unknown_flow, "data for a flow that was refused or closed")                                   \
	X(drop_no_credit, "data beyond the advertised credit")                                               \
	X(drop_no_buffer, "no buffer to reassemble a fragment")                                              \
	X(drop_dgram_queue, "best-effort packet dropped: too many wait")                                     \
	X(stream_sent, "datagrams given to the reliable carrier")                                            \
	X(stream_received, "datagrams accepted from the reliable carrier")                                   \
	X(stream_lost, "datagrams that the reliable carrier took with it when it broke")                     \
	X(stream_breaks, "the reliable carrier broke, or was taken away, with datagrams on the way")         \
	X(peer_restarts, "the peer came back with a new epoch")                                              \
	X(went_down, "the peer went silent")                                                                 \
	X(cc_nonsense, "answers of the congestion control that were out of bounds, and bounded")
struct wan_counters {
#define X(f, s) uint64_t f;
	WAN_COUNTERS(X)
#undef X
};
struct wan_stats {
	struct wan_counters c;
	struct wan_fec_stats fec[WAN_PATHS_MAX];
	bool up;
	rwy_time since; /* it is up, or down; of one that never was up: since it is there */
	rwy_dur srtt, min_rtt, rttvar;
	uint64_t rate_Bps, cwnd, inflight; /* of the path controller */
	uint64_t tx_queued_bytes;          /* custody in all tx flows */
	uint64_t rx_held_bytes;            /* received, not delivered */
	uint32_t tx_flows, rx_flows;
	uint32_t burst16;                 /* of the same path: measure.h */
	uint64_t path_Bps;                /* what it has carried of late, 0: not known */
	rwy_time measured_at;             /* when a round trip was last measured, 0: never */
	uint32_t loss_ppm;                /* smoothed share of datagrams lost, parts per million */
	const char *ecn;                  /* "off", "trying", "on" */
	uint32_t ce;                      /* marks the peer has reported, of the same path */
	struct wan_congest_state congest; /* of the same path */
	bool stream;                      /* we send by the reliable carrier: RTT and rate are its */
	uint64_t peer_epoch;
	char cc[96]; /* the algorithm's own line */
};
void wan_get_stats(const struct wan_tunnel *t, struct wan_stats *out);

#endif
