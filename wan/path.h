/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path: its packet numbers, the map of sent datagrams, round trips, reordering, pacing, congestion control,
 * and what it received. Shared by the files of wan/; nobody else includes it (tests may).
 */
#ifndef WAN_PATH_H
#define WAN_PATH_H

#include <assert.h>
#include <stdalign.h>

#include "cc/guard.h"
#include "rwy/pace.h"
#include "wan/fec/fec.h"
#include "wan/measure.h"
#include "wan/wire/pkt.h"
#include "wan/wire/ranges.h"
#include "wan/wan.h"

struct wan_out;

/* --- sent datagrams ------------------------------------------------------------------------- */
enum wan_sent_state {
	WAN_SENT_NONE,  /* never used, or of an earlier session */
	WAN_SENT_QUIET, /* acknowledgements only: not in flight, nobody waits for it */
	WAN_SENT_INFLIGHT,
	WAN_SENT_ACKED,
	WAN_SENT_LOST,
};
#define WAN_S_DATA    1u  /* carries (part of) a buffer: flow, seq, frag are set */
#define WAN_S_COPIED  2u  /* another datagram in flight carries the same: only the loss of both counts */
#define WAN_S_APP     4u  /* sent while there was nothing more to send */
#define WAN_S_ACK     8u  /* carries an ACK frame, the last of one report */
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
struct wan_pace {
	struct rwy_pace clock;
	rwy_dur burst; /* how far the clock may lag behind now when nothing waited */
	bool backlog;  /* data waited for the clock when the last poll ended */
};

/* Reordering of a path: reorder.c. */
enum wan_order {
	WAN_ORDER_KEPT,      /* three later ones make a loss */
	WAN_ORDER_REORDERS,  /* of late: only time makes a loss */
	WAN_ORDER_MUCH_ANEW, /* much: round trips are those of all datagrams; the first sample begins anew */
	WAN_ORDER_MUCH,
};
struct wan_reorder {
	enum wan_order order;
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

#define WAN_PATH_STREAM 15 /* number of the reliable carrier in datagrams */

enum wan_path_state {
	WAN_PATH_UNPROVEN, /* nothing came back yet */
	WAN_PATH_USABLE,   /* the peer answered */
	WAN_PATH_SILENT,   /* probe timeouts, while another path worked: what it carried went there */
};

struct wan_path {
	struct wan_tunnel *t;
	uint8_t id;
	bool ping; /* a PING shall go */
	enum wan_path_state state;
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
	uint32_t reverse_base; /* see reverse.c */
	rwy_time reverse_at;   /* 0: not known */
	rwy_dur late[2];       /* answers came so much later than usual, in this window and the one before */
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

	struct wan_fec_path fec;
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
	uint64_t ack_below;       /* ranges below still belong to this ACK, 0: none */
	uint64_t ack_late[WAN_ACK_LATE]; /* the lowest that was overtaken, of the last ACKs each */
	uint8_t ack_round, ack_frames;   /* the present one's place; frames that it has */
	uint8_t ack_reorders;            /* ACKs from now on that are of a path that reorders much */
	uint32_t ect0, ect1, ce;

	alignas(16) uint8_t cc[CC_STATE_SIZE];
};

/* Some datagram was acknowledged; some was received; a round trip was measured. */
static inline bool wan_path_acked(const struct wan_path *p)
{
	return wan_ranges_count(&p->acked);
}
static inline bool wan_path_received(const struct wan_path *p)
{
	return wan_ranges_count(&p->seen);
}
static inline bool wan_path_has_rtt(const struct wan_path *p)
{
	return p->srtt;
}
/* The reliable carrier: numbers, acknowledgements and round trips of its own, and nothing else. */
static inline bool wan_path_is_stream(const struct wan_path *p)
{
	return p->id == WAN_PATH_STREAM;
}
static inline bool wan_path_usable(const struct wan_path *p)
{
	return p->state == WAN_PATH_USABLE;
}
static inline bool wan_path_reorders(const struct wan_path *p)
{
	return p->reorder.order != WAN_ORDER_KEPT;
}
static inline bool wan_path_reorders_much(const struct wan_path *p)
{
	return p->reorder.order >= WAN_ORDER_MUCH_ANEW;
}

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
void wan_rtt_sample(struct wan_path *p, rwy_dur rtt, rwy_dur ack_delay, rwy_time now);
/* The mean of some datagrams and their mean distance from the smoothed one. anew: nothing older counts. */
void wan_rtt_mean(struct wan_path *p, rwy_dur rtt, rwy_dur dev, bool anew, rwy_time now);
#define WAN_RTT_LATE_MAX (10 * RWY_MS)
/* How much later than usual an answer has come of late, bounded. */
static inline rwy_dur wan_rtt_late(const struct wan_path *p)
{
	return rwy_time_min(rwy_time_max(p->late[0], p->late[1]), p->srtt / 4 + WAN_RTT_LATE_MAX);
}

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

/* pto.c */
rwy_dur wan_pto(const struct wan_path *p);     /* with back-off */
rwy_time wan_pto_at(const struct wan_path *p); /* RWY_NEVER: nothing is in flight */
/* The timer is due but we come late ourselves: it waits once more. */
bool wan_pto_excused(struct wan_path *p, rwy_time now);

/* loss.c */
void wan_loss_on_sent(
    struct wan_path *p, struct wan_sent *s, bool eliciting, rwy_time now); /* takes the next packet number */
void wan_loss_on_ack(struct wan_path *p, const struct wan_f_ack *a, rwy_time now);
void wan_loss_tick(struct wan_path *p, rwy_time now);
/* The peer says that it rebuilt `n` datagrams from `first` on. */
void wan_loss_on_rebuilt(struct wan_path *p, uint64_t first, unsigned n, rwy_time now);
/* Datagrams sent before `sent_before` and not acknowledged go again. False: no memory, call again. */
bool wan_loss_take_back(struct wan_path *p, rwy_time sent_before, rwy_time now);
rwy_time wan_loss_next(const struct wan_path *p);
/* After the RTT sample of a datagram sent at `sent` that the peer's clock saw at `arrived_us`: how much
 * longer the way back took than when the RTT was smallest. 0: no more, or not known yet. */
rwy_dur wan_reverse_delay(struct wan_path *p, rwy_time sent, uint32_t arrived_us, rwy_time now);
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
	return c->clock.at <= now;
}
/* Before datagrams go: takes away credit that is too old. True: we are too late to keep up the rate, though
 * there was data. */
bool wan_pace_catch_up(struct wan_pace *c, rwy_time now);

/* ack.c */
void wan_ack_restart(struct wan_path *p); /* nothing was received yet */
void wan_ack_on_received(struct wan_path *p, uint64_t pn, bool eliciting, rwy_time now);
bool wan_ack_due(const struct wan_path *p, rwy_time now);
bool wan_ack_put(struct wan_path *p, struct wan_out *o, rwy_time now); /* false: no room or nothing to say */
void wan_ack_on_acked(struct wan_path *p, uint64_t pn);

#endif
