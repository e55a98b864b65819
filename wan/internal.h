/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of wan/ share among themselves and nobody else includes (tests may). One struct a concept;
 * the functions stand under the file that has them.
 */
#ifndef WAN_INTERNAL_H
#define WAN_INTERNAL_H

#include <assert.h>
#include <stdalign.h>

#include "cc/guard.h"
#include "wan/wan.h"
#include "wan/fec/fec.h"
#include "wan/measure.h"
#include "wan/pkt.h"
#include "wan/sched.h"
#include "wan/ranges.h"

/* A flow id names a slot of the receiver's table and how often the slot was used: a late datagram of an ended
 * flow finds another use. */
#define WAN_SLOT_BITS 20
#define WAN_SLOTS_MAX (1u << WAN_SLOT_BITS)
#define WAN_SLOT(id)  ((id) & (WAN_SLOTS_MAX - 1))
#define WAN_USE(id)   ((id) >> WAN_SLOT_BITS)
#define WAN_USE_MASK  0xfffu

#define WAN_PIGGY_MAX                                                                                        \
	72 /* header bytes at most in front of a payload when control frames ride along: fits packet         \
	      headroom */
#define WAN_DGRAMS_MAX  512 /* best-effort packets waiting */
#define WAN_REASM_ROOM  192 /* headroom of reassembled buffers: what the LAN side may put in front */
#define WAN_DGRAM_PARTS 64  /* best-effort packets being reassembled */
#define WAN_DRR_QUANTUM 16384

/* Growing ring of fixed-size items, power of two. */
struct wan_tx_item {
	uint32_t flow, seq;
	uint8_t frag;
	bool moved; /* its path or carrier is another now; else it was declared lost */
	rwy_time due;
};
struct wan_itemq {
	struct wan_tx_item *v;
	uint32_t cap, head, n;
};

/* --- sent datagrams ------------------------------------------------------------------------- */
enum wan_sent_state {
	WAN_SENT_NONE,  /* never used, or of an earlier session */
	WAN_SENT_QUIET, /* acknowledgements only: not in flight, nobody waits for it */
	WAN_SENT_INFLIGHT,
	WAN_SENT_ACKED,
	WAN_SENT_LOST,
};
#define WAN_S_DATA    1u  /* carries (part of) a buffer: flow, seq, frag are set */
#define WAN_S_TWIN    2u  /* another datagram in flight carries the same: only the loss of both counts */
#define WAN_S_APP     4u  /* sent while there was nothing more to send */
#define WAN_S_ACK     8u  /* carries an ACK frame, the last of what was to be told */
#define WAN_S_OPEN    16u /* carries the open information */
#define WAN_S_ECT     64u /* went ECT(0) */
#define WAN_S_REBUILT 32u /* never arrived: the peer rebuilt it */
struct wan_sent {
	rwy_time sent, delivered_at, first_sent;
	uint64_t delivered;
	uint32_t flow, seq;
	uint32_t log;   /* control frames: entries [log, log + log_n) of the tunnel's log */
	uint32_t group; /* of forward error correction, 0 none */
	uint16_t bytes; /* on the wire */
	uint8_t log_n, state, flags, frag;
};
static_assert(sizeof(struct wan_sent) <= 64, "one cache line for a datagram in flight");

/* --- a path: packet numbers, loss recovery, pacing, congestion control ---------------------------- */
/* At 400 Gb/s a byte takes 0.02 ns: with 16 fraction bits the rate was 0.05 % off, and a queue grew. At the
 * smallest rate 9000 bytes still fit 64 bits. */
#define WAN_PACE_BITS 26
struct wan_pace {
	rwy_time at;    /* when the next datagram is due if sent at exactly the rate */
	uint32_t frac;  /* of a ns, WAN_PACE_BITS */
	uint64_t ns_fp; /* ns a byte, WAN_PACE_BITS fraction bits */
	rwy_dur burst;  /* how far `at` may lag behind now when nothing waited */
	bool backlog;   /* data waited for `at` when the last poll ended */
};

/* Reordering of a path: reorder.c. */
struct wan_reorder {
	bool seen;    /* of late: only time makes a loss */
	bool much;    /* round trips are those of all datagrams */
	bool fresh;   /* the next sample begins anew */
	uint8_t calm; /* rounds in a row without reordering */
	uint8_t fine; /* rounds in a row with hardly anything given up too early */
	/* of this round: acknowledged; of them late, given up before */
	uint32_t n, late, spurious, n_before;
	uint64_t late_sum;
	uint64_t round_end; /* it ends with the acknowledgement of this one or a later one */
	rwy_dur window;     /* learnt; on top of the smoothed round trip */
	uint64_t sum, dev;  /* of the next sample */
	uint32_t samples;
	rwy_time sampled_at;
};

#define WAN_ACK_LATE 4 /* ACKs that tell of one that came late: some are lost */

struct wan_path {
	struct wan_tunnel *t;
	uint8_t id;
	bool stream; /* the reliable carrier: numbers, acknowledgements and round trips of its own, and
	                nothing else */
	bool usable; /* acknowledged something, and not silent since */
	bool any_acked, has_rtt, ping, has_seen;
	uint32_t mtu;

	/* sent */
	struct wan_sent *sent;
	uint64_t mask, next_pn, tail; /* tail: everything below is acknowledged or lost */
	uint64_t largest_acked;
	uint64_t inflight; /* bytes */
	uint32_t inflight_n;
	struct wan_ranges acked;

	/* delivery rate */
	uint64_t delivered, app_limited;
	rwy_time delivered_at, first_sent;

	/* RTT and loss */
	uint64_t cwnd, probe_pn;
	rwy_dur latest, srtt, rttvar, min_rtt;
	rwy_time min_rtt_at;
	bool back_known; /* of the way back, see way.c: */
	uint32_t back_base;
	rwy_time back_at;
	rwy_dur late[2]; /* answers came so much later than usual, in this window and the one before */
	rwy_time late_at;
	struct wan_reorder reorder;
	rwy_time loss_timer, last_eliciting;
	rwy_time progress; /* something new was acknowledged, or a PTO said that nothing was */
	uint32_t pto_count, probes;
	rwy_time silent_at;      /* the last probe timeout */
	rwy_time pto_not_before; /* we came late ourselves: answers may wait to be read */
	uint64_t loss_fp;        /* smoothed share lost, 1/65536 of a ppm */
	uint32_t ce_seen;
	uint8_t ecn;        /* enum wan_ecn */
	uint32_t ecn_acked; /* datagrams that went ECT(0) and were acknowledged */

	struct wan_congest congest;
	struct wan_measure measure;

	/* forward error correction */
	struct wan_fec_est fec_est;
	struct wan_fec_tx *fec; /* NULL until first used */
	struct wan_fec_keep *fec_keep;
	struct wan_fec_told fec_told[WAN_FEC_REBUILT];
	unsigned fec_told_n;
	double fec_credit; /* bytes that repairs may still cost */
	/* What follows from rate, RTT and loss, as of the last ACK: a datagram only reads it. [1]: small
	 * messages */
	double fec_share[2], fec_most[2]; /* credit earned a byte; at most */
	uint64_t fec_flight;              /* bytes sent in a round trip and a little */
	struct wan_fec_stats fec_stats;

	struct wan_pace pace;
	uint64_t rate_Bps;           /* what congestion control answered last, bounded */
	rwy_time cc_next, cc_ticked; /* its timer: when it wants to be called, when it was called last */

	/* received */
	struct wan_ranges seen;
	rwy_time largest_at, ack_at; /* ack_at: when an ACK must go, RWY_NEVER: nothing to acknowledge */
	rwy_time last_ack, last_rx, last_ping;
	uint32_t unacked;         /* eliciting datagrams since the last ACK; */
	uint32_t unacked_late;    /* of them overtaken */
	uint32_t ack_after;       /* so many make the next ACK due */
	uint32_t acks_unelicited; /* ACKs sent without anything that the peer acknowledges */
	uint64_t ack_floor;       /* ranges below were reported, and the peer told us so */
	uint64_t ack_mark;        /* our datagram whose acknowledgement lets the floor rise, + 1; 0: none */
	uint64_t ack_low;         /* the lowest number that came since it went */
	uint64_t ack_below;       /* ranges below are still to be told in this ACK, 0: none */
	uint64_t ack_late[WAN_ACK_LATE]; /* the lowest that was overtaken, of the last ACKs each */
	uint8_t ack_round, ack_frames;   /* the present one's place; frames that it has */
	uint8_t ack_reorders;            /* ACKs from now on that are of a path that reorders much */
	uint32_t ect0, ect1, ce;

	alignas(16) uint8_t cc[CC_STATE_SIZE];
};

/* --- flows ------------------------------------------------------------------------------------ */
struct wan_txflow {
	struct wan_tunnel *t;
	void *user; /* NULL callbacks when muted */
	uint32_t id;
	bool open_acked; /* the peer knows the flow */
	bool active;     /* on the list of flows with something to send */
	bool closing;    /* ends after what was sent; muted */
	bool aborted;    /* custody is freed; waits for the peer to acknowledge ABORT; muted */
	bool dead;       /* on the grave list, out of the table */
	bool broken;     /* no memory for its ring: ends by tx_reset at the next tick */
	bool ctl_dirty, close_sent, close_acked;
	uint8_t info_len;
	uint8_t next_frag; /* of the buffer next_send */
	int32_t deficit;
	struct wan_class *class;
	uint32_t mask; /* ring size - 1 */
	struct rwy_buf **ring;
	uint64_t base;      /* first in custody */
	uint64_t acked;     /* everything below is at the peer gateway */
	uint64_t next_send; /* first never sent */
	uint64_t end;       /* sequence of the next buffer from above */
	uint64_t bytes;
	uint64_t out;    /* of them sent in this session, the first parts of a buffer count for all of it */
	uint64_t window; /* the peer's bound on `out`, 0: none */
	uint64_t drain_Bps;          /* what its host takes, as the peer says; 0: not known */
	uint64_t run;                /* bytes sent since the flow began to have something to send */
	uint32_t peak;               /* most buffers waiting meanwhile, forgetting slowly */
	struct wan_txflow *next;     /* active list */
	struct wan_txflow *ctl_next; /* control list */
	struct wan_txflow *grave_next;
	uint8_t info[WAN_OPEN_MAX];
};

/* A buffer in custody: rwy_buf.w0 fragments acknowledged, w1 fragments whose first twin is lost, w2 as
 * follows. */
#define WAN_W2(fsize, n) ((uint64_t)(fsize) | (uint64_t)(n) << 16)
#define WAN_W2_FSIZE(w2) ((uint32_t)((w2)&0xffff))       /* payload of each fragment but the last */
#define WAN_W2_FRAGS(w2) ((uint32_t)((w2) >> 16 & 0xff)) /* 0: not cut yet */

struct wan_rxflow {
	struct wan_tunnel *t;
	void *user;
	uint32_t id;
	bool dirty; /* on the delivered list */
	bool ended; /* the engine does not know it any more; waits until the peer knows the last count */
	bool dead;  /* on the grave list */
	bool has_final, closing; /* closing: on the list of flows whose rx_close is due */
	uint32_t mask;
	uintptr_t *ring;    /* [delivered, next): bytes; above: buffer or buffer | 1 while in parts; 0 none */
	uint64_t next;      /* first not handed over */
	uint64_t delivered; /* first not delivered */
	uint64_t told, confirmed; /* the count last sent, the count the peer has acknowledged */
	uint64_t final;
	uint64_t bytes;             /* held: received, not delivered */
	uint64_t window, drain_Bps; /* as wan_rx_window set them */
	uint64_t window_told;       /* what the peer was told last */
	bool rate_dirty;            /* on the list of flows with RATE to tell */
	struct wan_rxflow *rate_next;
	struct wan_rxflow *dirty_next;
	struct wan_rxflow *close_next, *grave_next;
};

/* The receiver's table, by slot. */
enum wan_slot_state { WAN_SLOT_NEW, WAN_SLOT_LIVE, WAN_SLOT_ENDED };
struct wan_rxslot {
	struct wan_rxflow *f;
	uint16_t use;
	uint8_t state;
	bool refused;   /* tell the peer RESET when data comes */
	bool reset_due; /* in the queue of RESETs */
};
struct wan_txslot {
	struct wan_txflow *f;
	uint16_t use;
	uint32_t next_free;
};

/* Control frames in flight, so that their loss can be repaired. */
enum wan_log_kind {
	WAN_LOG_DELIVERED,
	WAN_LOG_CLOSE,
	WAN_LOG_ABORT,
	WAN_LOG_RESET,
	WAN_LOG_CREDIT,
	WAN_LOG_RATE
};
struct wan_log {
	uint32_t id;
	uint32_t count; /* DELIVERED: low bits of what was told */
	uint8_t kind;
};

struct wan_hs {
	uint64_t nonce;                  /* ours, until somebody echoes it */
	uint64_t counter;                /* of nonces made */
	uint64_t peer_nonce, peer_epoch; /* of the newest HELLO that wants an answer */
	bool reply;
	uint8_t tries;   /* left, while we challenge an unknown epoch */
	uint8_t repeats; /* left of the answer to a peer that may not believe us yet */
	rwy_time next;   /* RWY_NEVER: nothing to do */
	rwy_dur interval;
	rwy_time sent_at;
	uint32_t sent_n; /* HELLOs with this nonce */
};

struct wan_peer {
	uint64_t epoch;
	uint32_t index, rx_window;
	uint64_t rx_bytes;
	rwy_dur ack_delay;
	uint32_t mtu;
	bool fec; /* it takes REPAIR */
};

/* Sending by the reliable carrier: stream.c. */
struct wan_stream_tx {
	bool on;
	bool again;     /* no memory to take back what was lost: at the next tick */
	uint32_t room;  /* datagrams that may still be handed over, */
	uint64_t bytes; /* and bytes */
	rwy_time since; /* of `on` */
	rwy_time check_at;
	uint64_t rate_Bps, acked; /* measured; bytes acknowledged since */
	rwy_time rate_from;
};

/* A best-effort packet in parts. */
struct wan_part {
	struct rwy_buf *b;
	uint32_t id;
};

struct wan_tunnel {
	struct wan_cfg cfg;
	bool session; /* the peer is known */
	bool up;
	rwy_time since; /* it came up, went down, or is there */
	bool broken;    /* some tx flow is */
	bool dgram_turn;
	bool credit_dirty;
	uint32_t index; /* what the present peer writes into its datagrams */
	struct wan_peer peer;
	struct wan_hs hs;
	rwy_time last_rx;
	struct wan_path *path; /* [paths]: the reliable carrier */
	unsigned paths;
	uint32_t mtu_own, mtu_min; /* smallest of our paths; of both sides */
	uint8_t hs_path;

	/* sending */
	struct wan_txslot *tx;
	uint32_t tx_cap, tx_free, tx_flows;
	struct wan_sched sched;                 /* flows with something to send */
	struct wan_txflow *ctl_head, *ctl_tail; /* flows with CLOSE or ABORT to tell */
	struct wan_txflow *tx_grave;
	struct wan_itemq again, twins; /* lost; second copies */
	uint64_t tx_bytes, tx_out;     /* in custody; of it sent in this session */
	struct rwy_bufq dgrams;
	uint32_t dgram_off, dgram_id; /* of the head, when it goes in parts */
	uint8_t dgram_frag;

	/* receiving */
	struct wan_rxslot *rx;
	uint32_t rx_cap, rx_flows;
	uint64_t rx_held;
	uint64_t bytes_limit; /* the most credit ever advertised: what the peer may use */
	uint32_t window_limit;
	struct wan_rxflow *dirty_head, *dirty_tail;
	uint32_t dirty_n;
	rwy_time dirty_at;            /* when DELIVERED must go */
	struct wan_rxflow *rate_head; /* flows with RATE to tell */
	struct wan_rxflow *close_head;
	struct wan_rxflow *rx_grave;
	uint32_t resets[256];
	uint32_t resets_n;
	struct wan_part part[WAN_DGRAM_PARTS];

	struct wan_stream_tx st;
	struct wan_log *log;
	uint32_t log_mask, log_at;
	struct wan_fec_code *fec_code; /* everybody's; NULL until first used */
	struct wan_fec_rx *fec_rx;
	bool rescan; /* a lost datagram's log entries were overwritten: tell every flow's count again */

	struct wan_counters c;
};

/* What one datagram under construction holds. */
struct wan_out {
	struct wan_tx *tx;
	struct wan_path *p;
	uint8_t *at;       /* where the next frame goes in tx->hdr */
	uint32_t limit;    /* header bytes at most */
	struct wan_sent s; /* becomes the sent-map entry */
	bool eliciting, has_ack;
	bool fec; /* to be protected */
};

/* itemq.c */
/* false: no memory */
bool wan_itemq_push(struct wan_itemq *q, const struct wan_tx_item *i);
bool wan_itemq_pop(struct wan_itemq *q, struct wan_tx_item *i);

/* path.c */
void wan_path_limits(struct wan_path *p); /* cfg.cc_cfg.rate_Bps is another */
int wan_path_init(struct wan_path *p, struct wan_tunnel *t, uint8_t id, rwy_time now);
void wan_path_fini(struct wan_path *p);
void wan_path_restart(struct wan_path *p,
    rwy_time now); /* a new session: nothing is in flight, the peer's numbers start again */
void wan_path_cc_anew(struct wan_path *p, rwy_time now); /* congestion control forgets what it learnt */
/* Takes what congestion control answers now, bounded. */
void wan_path_pace(struct wan_path *p);

/* rtt.c */
#define WAN_GRANULARITY RWY_MS /* of timers: a process wakes so late now and then */
/* Smoothed, or what is supposed before there is a sample. */
rwy_dur wan_rtt_base(const struct wan_path *p);
void wan_rtt_sample(struct wan_path *p, rwy_dur rtt, rwy_dur ack_delay, rwy_time now);
/* The mean of some datagrams and their mean distance from the smoothed one. anew: nothing older counts. */
void wan_rtt_mean(struct wan_path *p, rwy_dur rtt, rwy_dur dev, bool anew, rwy_time now);
/* How much later than usual an answer has come of late, bounded. */
rwy_dur wan_rtt_late(const struct wan_path *p);
rwy_dur wan_pto(const struct wan_path *p);

/* reorder.c */
/* A datagram is lost when one that was sent so many later is there. `repaired`: so are its repairs. */
uint64_t wan_reorder_behind(const struct wan_path *p, bool repaired);
/* It is lost so long after it was sent, if a later one is there. */
rwy_dur wan_reorder_limit(const struct wan_path *p);
/* Acknowledged after one that was sent later, so long after it was sent. */
void wan_reorder_on_late(struct wan_path *p, rwy_dur took);
/* Given up, acknowledged so long after it was sent. */
void wan_reorder_on_spurious(struct wan_path *p, rwy_dur took);
/* After all that an ACK newly acknowledges. */
void wan_reorder_on_ack(struct wan_path *p, uint32_t acked, rwy_time now);
/* While `much`: of each datagram acknowledged; then, with each ACK, the sample of them. 0: not yet. */
void wan_reorder_note(struct wan_path *p, rwy_dur took, rwy_time now);
rwy_dur wan_reorder_sample(struct wan_path *p, rwy_time now);

/* loss.c */
void wan_loss_on_sent(
    struct wan_path *p, struct wan_sent *s, bool eliciting, rwy_time now); /* takes the next packet number */
void wan_loss_on_ack(struct wan_path *p, const struct wan_f_ack *a, rwy_time now);
void wan_loss_tick(struct wan_path *p, rwy_time now);
void wan_loss_on_rebuilt(struct wan_path *p, uint64_t pn, rwy_time now);
/* What was sent before `sent_before` and is not acknowledged goes again. False: no memory, ask again. */
bool wan_loss_take_back(struct wan_path *p, rwy_time sent_before, rwy_time now);
rwy_time wan_loss_next(const struct wan_path *p);
/* After the RTT sample of a datagram sent at `sent` that the peer's clock saw at `arrived_us`: how much
 * longer the way back took than when the RTT was smallest. 0: no more, or not known yet. */
rwy_dur wan_way_back(struct wan_path *p, rwy_time sent, uint32_t arrived_us, rwy_time now);
#define WAN_SENT_RESERVE 64 /* places of the map kept for acknowledgements and probes */
static inline bool wan_sent_room(const struct wan_path *p)
{
	return p->next_pn - p->tail + WAN_SENT_RESERVE <= p->mask;
}
uint32_t wan_loss_ppm(const struct wan_path *p);

/* ecn.c */
enum wan_ecn { WAN_ECN_OFF, WAN_ECN_TRYING, WAN_ECN_ON };
void wan_ecn_restart(struct wan_path *p);
void wan_ecn_on_ack(struct wan_path *p, const struct wan_f_ack *a);
void wan_ecn_on_pto(struct wan_path *p);
const char *wan_ecn_name(const struct wan_path *p);

/* rate.c: delivery-rate samples */
struct wan_rate_sample {
	uint64_t delivered, bytes,
	    lost; /* of the newest acked: delivered when sent; newly acked; newly lost */
	rwy_time sent, first_sent, delivered_at;
	bool app_limited, any;
};
void wan_rate_on_sent(struct wan_path *p, struct wan_sent *s, rwy_time now);
void wan_rate_on_acked(
    struct wan_path *p, struct wan_rate_sample *rs, const struct wan_sent *s, rwy_time now);
uint64_t wan_rate_of(const struct wan_path *p, const struct wan_rate_sample *rs);
static inline void wan_rate_app_limited(struct wan_path *p)
{
	p->app_limited = p->delivered + p->inflight ? p->delivered + p->inflight : 1;
}

/* pace.c */
void wan_pace_set(struct wan_pace *c, uint64_t rate_Bps);
static inline bool wan_pace_ok(const struct wan_pace *c, rwy_time now)
{
	return c->at <= now;
}
void wan_pace_on_sent(struct wan_pace *c, uint32_t bytes);
/* Before datagrams go: takes away credit that is too old. True: we are too late to keep up the rate, though
 * there was data. */
bool wan_pace_catch_up(struct wan_pace *c, rwy_time now);

/* ack.c */
void wan_ack_restart(struct wan_path *p); /* nothing was received yet */
void wan_ack_on_received(struct wan_path *p, uint64_t pn, bool eliciting, rwy_time now);
bool wan_ack_due(const struct wan_path *p, rwy_time now);
bool wan_ack_put(struct wan_path *p, struct wan_out *o, rwy_time now); /* false: no room or nothing to say */
void wan_ack_on_acked(struct wan_path *p, uint64_t pn);

/* ctl.c: DELIVERED, CLOSE, ABORT, RESET, CREDIT out, and their repair */
rwy_time wan_ctl_next(const struct wan_tunnel *t); /* when something must be told */
void wan_ctl_put(struct wan_tunnel *t, struct wan_out *o);
void wan_ctl_on_acked(struct wan_tunnel *t, const struct wan_sent *s);
void wan_ctl_on_lost(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now);
void wan_ctl_rescan(struct wan_tunnel *t, rwy_time now);
void wan_ctl_rx_dirty(struct wan_rxflow *f, rwy_time now);
void wan_ctl_tx_dirty(struct wan_txflow *f);
void wan_ctl_rate_dirty(struct wan_rxflow *f);
void wan_ctl_reset(struct wan_tunnel *t, uint32_t id);

/* flow_tx.c */
struct wan_txflow *wan_tx_find(const struct wan_tunnel *t, uint32_t id);
bool wan_tx_sendable(const struct wan_txflow *f);
bool wan_tx_ends(const struct rwy_buf *b); /* is it the last packet of a message? */
void wan_tx_activate(struct wan_txflow *f);
void wan_tx_on_acked(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now);
/* False: no memory, ask again. moved: given up for its path or carrier, not for itself. */
bool wan_tx_on_lost(struct wan_tunnel *t, const struct wan_sent *s, bool moved);
void wan_tx_on_rate(struct wan_tunnel *t, uint32_t id, uint64_t window, uint64_t drain_Bps);
bool wan_tx_on_delivered(struct wan_tunnel *t, uint32_t id, uint32_t count, rwy_time now);
void wan_tx_on_reset(struct wan_tunnel *t, uint32_t id, rwy_time now);
void wan_tx_on_ctl_acked(struct wan_txflow *f, bool abort);
void wan_tx_broken(struct wan_tunnel *t, rwy_time now);
void wan_tx_wake_all(struct wan_tunnel *t);
void wan_tx_restart(struct wan_tunnel *t, rwy_time now);
void wan_tx_reap(struct wan_tunnel *t);
void wan_tx_free_all(struct wan_tunnel *t);

/* flow_rx.c */
enum wan_accept { WAN_ACCEPT, WAN_ACCEPT_RETRY /* do not acknowledge: the peer shall send it again */ };
enum wan_accept wan_rx_data(
    struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now); /* takes b */
struct wan_rxflow *wan_rx_find(const struct wan_tunnel *t, uint32_t id);
bool wan_rx_slots_grow(struct wan_tunnel *t, uint32_t slot);
void wan_rx_on_close(struct wan_tunnel *t, uint32_t id, uint64_t final, rwy_time now);
void wan_rx_on_abort(struct wan_tunnel *t, uint32_t id, rwy_time now);
void wan_rx_end(struct wan_rxflow *f);
void wan_rx_confirmed(struct wan_rxflow *f, uint32_t count);
void wan_rx_closings(struct wan_tunnel *t, rwy_time now); /* rx_close of flows that ended */
void wan_rx_end_all(struct wan_tunnel *t, enum wan_close_reason why, rwy_time now);
void wan_rx_reap(struct wan_tunnel *t);

/* reasm.c: fragments into one buffer, the carrier's one copy */
struct rwy_buf *wan_reasm_new(struct wan_tunnel *t, const struct wan_f_data *d);
/* Adds a fragment's bytes. False: it does not belong to this buffer or was there already. */
bool wan_reasm_add(struct rwy_buf *part, const struct wan_f_data *d, const uint8_t *bytes, size_t len);
bool wan_reasm_done(const struct rwy_buf *part);

/* dgram.c */
void wan_dgram_rx(struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now);
bool wan_dgram_put(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
void wan_dgram_fini(struct wan_tunnel *t);

/* stream.c */
#define WAN_PATH_STREAM    15 /* its number in datagrams */
#define WAN_STREAM_RESERVE 32 /* places for acknowledgements and control, that data leaves free */
static inline struct wan_path *wan_stream_path(const struct wan_tunnel *t)
{
	return &t->path[t->paths];
}
/* NULL: there is none */
static inline struct wan_path *wan_path_of(const struct wan_tunnel *t, uint8_t id)
{
	return id < t->paths ? &t->path[id] : id == WAN_PATH_STREAM ? wan_stream_path(t) : NULL;
}
static inline bool wan_stream_open(const struct wan_tunnel *t)
{
	return t->st.room > WAN_STREAM_RESERVE && t->st.bytes && wan_sent_room(wan_stream_path(t));
}
void wan_stream_on_sent(struct wan_path *p, uint32_t bytes, bool eliciting, rwy_time now);
void wan_stream_on_acked(struct wan_tunnel *t, uint64_t bytes, rwy_time now);
void wan_stream_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_stream_next(const struct wan_tunnel *t);

/* send.c */
rwy_time wan_send_next(const struct wan_tunnel *t);

/* data.c: what a DATA datagram carries next */
bool wan_data_again(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
bool wan_data_twin(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
bool wan_data_probe(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
bool wan_data_new(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
/* Puts frame d, and what control frames may ride along, and the payload into the datagram. */
void wan_data_attach(struct wan_tunnel *t, struct wan_out *o, const struct wan_f_data *d, struct rwy_buf *b,
    uint32_t off, uint32_t len, rwy_time now);
bool wan_data_waiting(const struct wan_tunnel *t);

/* recv.c */
/* A datagram that was rebuilt: its checksum is right, its number was not seen. Takes b. */
void wan_recv_rebuilt(struct wan_tunnel *t, struct wan_path *p, uint64_t pn, struct rwy_buf *b, rwy_time now);
void wan_alive(struct wan_tunnel *t, rwy_time now);

/* handshake.c */
void wan_hs_init(struct wan_tunnel *t, rwy_time now);
void wan_hs_recv(struct wan_tunnel *t, struct wan_path *p, const uint8_t *body, size_t len, rwy_time now);
bool wan_hs_put(struct wan_tunnel *t, struct wan_tx *tx, rwy_time now);
void wan_hs_probe(struct wan_tunnel *t, rwy_time now);    /* the peer is silent: ask who is there */
void wan_hs_stranger(struct wan_tunnel *t, rwy_time now); /* frames came that are not of our session */
rwy_time wan_hs_next(const struct wan_tunnel *t);

/* A 64-bit number from its low 32 bits: the one nearest to `near`. */
static inline uint64_t wan_expand(uint64_t near, uint32_t low)
{
	return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

#endif
