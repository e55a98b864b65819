/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path: packet numbers, the map of sent datagrams, round trips, reordering, pacing, congestion
 * control, and the datagrams received. Private to wan/ and its tests.
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
	WAN_SENT_NONE,  /* never used, or sent in an earlier session */
	WAN_SENT_QUIET, /* acknowledgements only: not in flight, no ACK is expected */
	WAN_SENT_INFLIGHT,
	WAN_SENT_ACKED,
	WAN_SENT_LOST,
};
#define WAN_S_DATA    1u   /* carries buffers or a fragment: flow, seq, frag, more are set */
#define WAN_S_COPIED  2u   /* a second copy is in flight: the data is lost when both are */
#define WAN_S_APP     4u   /* application-limited: nothing more was waiting */
#define WAN_S_ACK     8u   /* carries an ACK frame, the last one of a report */
#define WAN_S_PROBE   16u  /* asks whether the path answers; quiet: nobody misses it */
#define WAN_S_REBUILT 32u  /* it never arrived: the peer rebuilt it */
#define WAN_S_ECT     64u  /* sent with ECT(0) */
#define WAN_S_MOVED   128u /* its path fell silent, and its data went elsewhere */
#define WAN_S_WHOLE   256u /* the buffers that it carries are whole: no fragment */
struct wan_sent {
	rwy_time sent, delivered_at, first_sent;
	uint64_t delivered;
	uint32_t flow, seq;
	uint32_t log;   /* control frames: entries [log, log + log_n) of the tunnel's log */
	uint32_t group; /* FEC group; 0: none */
	uint16_t bytes; /* bytes on the wire */
	uint16_t flags;
	uint8_t log_n, state, frag;
	uint8_t more;    /* buffers of a run behind the first, seq */
	uint8_t losses;  /* how often what it carries was declared lost before, up to 255 */
	uint8_t bundled; /* packets of a bundle behind the first: struct wan_bundled */
	uint8_t queued;  /* of these and the first, so many are queued again: no memory for more */
};
static_assert(sizeof(struct wan_sent) <= 64, "one cache line for a datagram in flight");

/* The packets of a bundle behind the first, which is in struct wan_sent. */
struct wan_bundled {
	struct {
		uint32_t flow, seq;
	} v[WAN_BUNDLE_MAX - 1];
};
static_assert(sizeof(struct wan_bundled) == RWY_CACHE_LINE, "one cache line more for a bundle");

/* --- a path ----------------------------------------------------------------------------------- */
struct wan_pace {
	struct rwy_pace clock;
	rwy_dur burst;   /* how far the clock may lag behind `now` after an idle time */
	rwy_dur control; /* how far control datagrams may advance it between two others; */
	rwy_dur left;    /* what is left of that */
	bool backlog;    /* data waited for the clock when the last poll ended */
};

/* How a path reorders; see reorder.c. */
enum wan_order {
	WAN_ORDER_KEPT,     /* the path keeps the order: three later arrivals make a loss */
	WAN_ORDER_REORDERS, /* reordering seen recently: only time makes a loss */
	/* reorders much: RTTs average all datagrams; the first sample is due */
	WAN_ORDER_MUCH_ANEW,
	WAN_ORDER_MUCH, /* reorders much; the first sample was taken */
};
struct wan_reorder {
	enum wan_order order;
	uint8_t calm; /* consecutive rounds without reordering */
	uint8_t fine; /* consecutive rounds with hardly any spurious loss */
	/* Counts of this round: acknowledged; late; spuriously declared lost; acknowledged in the
	 * round before. */
	uint32_t n, late, spurious, n_before;
	uint64_t late_sum;
	/* the round ends when this packet number or a later one is acknowledged */
	uint64_t round_end;
	rwy_dur window;    /* learnt; added to the smoothed round trip */
	uint64_t sum, dev; /* sums for the next sample */
	uint32_t samples;
	rwy_time sampled_at;
};

/* number of recent ACKs whose lowest late packet number is remembered: some get lost */
#define WAN_ACK_LATE 4

#define WAN_PATH_STREAM 15 /* path number of the reliable carrier in datagrams */

enum wan_path_state {
	WAN_PATH_OFF,      /* it is used for nothing (use.c) */
	WAN_PATH_UNPROVEN, /* no answer has come yet */
	WAN_PATH_SILENT,   /* no answer while another path worked: its data went there */
	WAN_PATH_TRIED,    /* it answers again, and carries a little (alive.c) */
	WAN_PATH_USABLE,   /* the peer answered */
};

/* The rate that an earlier process had on the path (resume.c). */
struct wan_resuming {
	struct wan_resume from; /* rate 0: none */
	bool waits;             /* the tunnel is up, and no round trip is known yet */
	bool active;            /* it counts, until then */
	rwy_time until;
	uint64_t sent_n, lost_n; /* counts of the path when it began */
	/* the mean rate here, in bytes a second, and where its next sample begins */
	uint64_t mean_Bps, sample;
	rwy_time sample_at;
};

struct wan_path {
	struct wan_tunnel *t;
	uint8_t id;
	bool ping; /* a PING is to be sent */
	enum wan_path_state state;
	enum wan_path_use use;
	bool spared; /* use.c: it takes no new data, because another one is to */
	/* Granted: advanced by what is sent, at the granted rate, whatever the lease is. The one
	 * that is furthest behind is next (paths.c). */
	struct rwy_pace part;
	uint32_t mtu;

	/* Several paths: see paths.c. */
	/* An answer is due since then, at the earliest; RWY_NEVER: none is. */
	rwy_time asked;
	rwy_time answered;          /* time of the last answer */
	rwy_time asked_last;        /* when the last datagram was sent that wants an answer */
	rwy_time silent_not_before; /* the process was late: answers may be unread */
	rwy_time state_at;          /* of the last change of `state` */
	rwy_time since;             /* it is used since then, for something */
	uint32_t trial;             /* TRIED: most datagrams in flight */
	uint8_t rests;              /* enum wan_couple_state: not 0: it takes no new data */
	uint32_t silences;          /* how often it fell silent */
	uint64_t sent_n, sent_bytes, rx_n, rx_bytes, lost_n, moved_n;
	uint64_t sent_noted; /* leased.c: sent_bytes when it looked last */

	/* Sent. */
	/* A ring that grows with what is in flight: all of it is walked, so it is kept short. */
	struct wan_sent *sent;
	struct wan_bundled *bundled; /* the same places; valid where sent.bundled is not 0 */
	uint64_t mask, mask_max;     /* their size - 1; the largest */
	uint64_t next_pn, tail;      /* tail: everything below it is acknowledged or lost */
	uint64_t largest_acked;
	uint64_t inflight; /* bytes */
	uint32_t inflight_n;
	struct wan_ranges acked;

	/* Delivery rate. */
	uint64_t delivered, app_limited;
	rwy_time delivered_at, first_sent;

	/* RTT and loss. */
	uint64_t cwnd, probe_pn;
	rwy_dur latest, srtt, rttvar, min_rtt;
	rwy_time min_rtt_at;
	uint32_t reverse_base; /* see reverse.c */
	rwy_time reverse_at;   /* 0: unknown */
	/* greatest lateness of an answer, in this window and in the one before */
	rwy_dur late[2];
	rwy_time late_at;
	struct wan_reorder reorder;
	rwy_time loss_timer, last_eliciting;
	rwy_time progress; /* last time that new data was acknowledged or a PTO fired */
	uint32_t pto_count, probes;
	rwy_time silent_at; /* the last probe timeout */
	/* no PTO before this: the process was late, answers may be unread */
	rwy_time pto_not_before;
	uint64_t loss_fp;            /* smoothed share of losses, 1/65536 ppm */
	uint32_t ect0_seen, ce_seen; /* by the peer, as it said last */
	uint32_t ect0_from, ce_from; /* the same when the path was judged anew */
	uint8_t ecn;                 /* enum wan_ecn */
	uint32_t ecn_acked;          /* acknowledged datagrams that were sent with ECT(0) */

	struct wan_congest congest;
	struct wan_measure measure;

	struct wan_fec_path fec;
	struct wan_pace pace;
	uint64_t rate_Bps; /* last answer of congestion control, clamped */
	struct wan_resuming resume;
	rwy_time cc_next, cc_ticked; /* timer of congestion control: next call, last call */

	/* Received. */
	struct wan_ranges seen;
	/* ack_at: time of the next ACK; RWY_NEVER: nothing to acknowledge */
	rwy_time largest_at, ack_at;
	rwy_time last_ack, last_rx, last_ping;
	uint32_t unacked;         /* ack-eliciting datagrams since the last ACK */
	uint32_t unacked_late;    /* those datagrams that came out of order */
	uint32_t ack_after;       /* number of unacked datagrams that makes an ACK due */
	uint32_t acks_unelicited; /* ACKs sent in a row without an ack-eliciting frame */
	uint64_t ack_floor;       /* ranges below were reported, and the peer confirmed that */
	/* 1 + packet number of the datagram whose ACK raises the floor; 0: none */
	uint64_t ack_mark;
	uint64_t ack_low;   /* lowest packet number received since that datagram was sent */
	uint64_t ack_below; /* ranges below still belong to this ACK; 0: none */
	/* lowest packet number that came out of order before each of the last ACKs */
	uint64_t ack_late[WAN_ACK_LATE];
	/* index of the present ACK in ack_late; frames it has so far */
	uint8_t ack_round, ack_frames;
	uint8_t ack_reorders; /* ACKs left that are sent as for a path that reorders much */
	uint32_t ect0, ect1, ce;

	alignas(16) uint8_t cc[CC_STATE_SIZE];
};

/* Whether a datagram was ever acknowledged, was ever received, and whether an RTT was measured. */
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
/* The reliable carrier's pseudo-path has packet numbers, acknowledgements and round trips only. */
static inline bool wan_path_is_stream(const struct wan_path *p)
{
	return p->id == WAN_PATH_STREAM;
}
static inline bool wan_path_usable(const struct wan_path *p)
{
	return p->state >= WAN_PATH_TRIED;
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
/* Its limit of rate, for all halves of the tunnel together; 0: none. */
uint64_t wan_path_whole_Bps(const struct wan_path *p);
/* The configuration of its congestion control: with this half's part of the rate. */
struct cc_cfg wan_path_cc_cfg(const struct wan_path *p);
/* Applies a new cfg.cc_cfg.rate_Bps, or cfg.path_rate_Bps. */
void wan_path_limits(struct wan_path *p);
/* Makes the map of sent datagrams; RWY_ENOMEM. */
int wan_path_map_new(struct wan_path *p);
/* A fourth of the map is in flight: the rest remembers what was lost, and the map may double. */
static inline bool wan_path_map_short(const struct wan_path *p)
{
	return p->next_pn - p->tail > p->mask >> 2 && p->mask < p->mask_max;
}
/* Doubles the map. Without memory it stays as it is. */
void wan_path_map_grow(struct wan_path *p);
int wan_path_init(struct wan_path *p, struct wan_tunnel *t, uint8_t id, rwy_time now);
void wan_path_fini(struct wan_path *p);
/* Begins a new session: nothing is in flight, the peer's packet numbers start again. */
void wan_path_restart(struct wan_path *p, rwy_time now);
/* Restarts congestion control: it forgets what it learnt. */
void wan_path_cc_anew(struct wan_path *p, rwy_time now);
/* Takes over the rate and window of congestion control, clamped. */
void wan_path_pace(struct wan_path *p);

/* rtt.c */
#define WAN_GRANULARITY RWY_MS /* timer granularity: a process sometimes wakes this late */
void wan_rtt_sample(struct wan_path *p, rwy_dur rtt, rwy_dur ack_delay, rwy_time now);
/* Adds a mean RTT and its mean deviation from the smoothed one. anew: older samples do not
 * count. */
void wan_rtt_mean(struct wan_path *p, rwy_dur rtt, rwy_dur dev, bool anew, rwy_time now);
#define WAN_RTT_LATE_MAX (10 * RWY_MS)
/* The recent lateness of answers, bounded. */
static inline rwy_dur wan_rtt_late(const struct wan_path *p)
{
	return rwy_time_min(rwy_time_max(p->late[0], p->late[1]), p->srtt / 4 + WAN_RTT_LATE_MAX);
}

/* reorder.c */
/* A datagram is lost when a datagram sent this many numbers later was received. `repaired`: it
 * belongs to an FEC group whose repairs were received. */
uint64_t wan_reorder_behind(const struct wan_path *p, bool repaired);
/* A datagram is lost this long after it was sent, if a later one was received. */
rwy_dur wan_reorder_limit(const struct wan_path *p);
/* A datagram was acknowledged after a later one, `took` after it was sent. */
void wan_reorder_on_late(struct wan_path *p, rwy_dur took);
/* A datagram declared lost was acknowledged, `took` after it was sent. */
void wan_reorder_on_spurious(struct wan_path *p, rwy_dur took);
/* Called after an ACK was processed. acked: datagrams that it newly acknowledged. */
void wan_reorder_on_ack(struct wan_path *p, uint32_t acked, rwy_time now);
/* On a path that reorders much: note is called for each datagram acknowledged, sample for each ACK.
 * sample returns their mean RTT; 0: not enough datagrams yet. */
void wan_reorder_note(struct wan_path *p, rwy_dur took, rwy_time now);
rwy_dur wan_reorder_sample(struct wan_path *p, rwy_time now);

/* pto.c */
/* The probe timeout, with back-off; and without. */
rwy_dur wan_pto(const struct wan_path *p);
rwy_dur wan_pto_first(const struct wan_path *p);
/* RWY_NEVER: nothing is in flight. */
rwy_time wan_pto_at(const struct wan_path *p);
/* Returns true when the timer is due but the process itself was late: the timer waits once more. */
bool wan_pto_excused(struct wan_path *p, rwy_time now);

/* loss.c */
/*
 * The map has a place for a datagram that is sent now. Gives up the oldest datagrams in flight if
 * it is full, also for acknowledgements and probes; false: memory is short for what they carried,
 * so nothing may be sent.
 */
bool wan_loss_room(struct wan_path *p, rwy_time now);
/* Assigns the next packet number. The map has a place. */
void wan_loss_on_sent(struct wan_path *p, const struct wan_sent *s, bool eliciting, rwy_time now);
/* An ACK frame: acknowledges, detects losses, and asks congestion control. */
void wan_loss_on_ack(struct wan_path *p, const struct wan_f_ack *a, rwy_time now);
/* Loss timer and PTO, when wan_loss_next() is due. */
void wan_loss_tick(struct wan_path *p, rwy_time now);
/* The peer reports that it rebuilt `n` datagrams, beginning with packet number `first`. */
void wan_loss_on_rebuilt(struct wan_path *p, uint64_t first, unsigned n, rwy_time now);
/* Datagrams given up together. */
struct wan_lost {
	uint64_t bytes;
	rwy_time sent; /* sending time of the newest; 0: none */
	uint32_t n;
};
/* Queues unacknowledged datagrams sent before `sent_before` for retransmission elsewhere. Returns
 * false when memory is short: call again. */
bool wan_loss_take_back(struct wan_path *p, rwy_time sent_before, struct wan_lost *l, rwy_time now);
/* The path carries nothing new, and what it had goes elsewhere. */
void wan_loss_abandon(struct wan_path *p, rwy_time now);
rwy_time wan_loss_next(const struct wan_path *p);
/* Called after the RTT sample of a datagram that was sent at `sent` and arrived at `arrived_us` of
 * the peer's clock. Returns how much longer the reverse direction took than when the RTT was
 * smallest; 0: not longer, or unknown. */
rwy_dur wan_reverse_delay(struct wan_path *p, rwy_time sent, uint32_t arrived_us, rwy_time now);
#define WAN_SENT_RESERVE 64 /* entries of the map kept for acknowledgements and probes */
static inline bool wan_sent_room(const struct wan_path *p)
{
	return p->next_pn - p->tail + WAN_SENT_RESERVE <= p->mask;
}
/* Smoothed share of lost datagrams, parts per million. */
static inline uint32_t wan_loss_ppm(const struct wan_path *p)
{
	return (uint32_t)(p->loss_fp >> 16);
}

/* ecn.c */
enum wan_ecn { WAN_ECN_OFF, WAN_ECN_TRYING, WAN_ECN_ON };
/* Test whether the path carries ECN marks: begin, an ACK with counts, no answer; "off", ... */
void wan_ecn_restart(struct wan_path *p);
void wan_ecn_on_ack(struct wan_path *p, const struct wan_f_ack *a);
void wan_ecn_on_pto(struct wan_path *p);
const char *wan_ecn_name(const struct wan_path *p);

/* rate.c: delivery-rate samples */
/* A delivery-rate sample. delivered: of the newest datagram acknowledged, when it was sent; bytes:
 * newly acknowledged; lost: newly lost. */
struct wan_rate_sample {
	uint64_t delivered, bytes, lost;
	rwy_time sent, first_sent, delivered_at;
	bool app_limited, any;
};
/* As in draft-cheng-iccrg-delivery-rate-estimation. wan_rate_of(): bytes per second, 0: none. */
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
/* A datagram was sent. control: it did not wait for the clock. */
static inline void wan_pace_sent(struct wan_pace *c, uint32_t bytes, bool control)
{
	if (!control) {
		c->left = c->control;
	} else {
		rwy_dur time = rwy_pace_time(&c->clock, bytes);

		if (time > c->left)
			return;
		c->left -= time;
	}
	rwy_pace_sent(&c->clock, bytes);
}
static inline bool wan_pace_ok(const struct wan_pace *c, rwy_time now)
{
	return c->clock.at <= now;
}
/* Called before datagrams are sent: drops credit that is too old. Returns true when the process was
 * too late to keep up the rate although data waited. */
bool wan_pace_catch_up(struct wan_pace *c, rwy_time now);

/* alive.c: whether a path answers */
void wan_path_enter(struct wan_path *p, enum wan_path_state to, rwy_time now);
/* It is usable, and tried gently, with so many datagrams in flight at first. */
#define WAN_TRY_FIRST 4u
void wan_path_try(struct wan_path *p, rwy_time now);
/* When it has been asked for so long that it counts as silent; RWY_NEVER: no answer is due. */
rwy_time wan_path_silent_at(const struct wan_path *p);
/* Another path works. */
bool wan_path_another(const struct wan_path *p, rwy_time now);
/* A datagram that wants an answer was sent; one that was sent at `sent` was answered. acked, lost:
 * how many datagrams the answer acknowledged, and how many it made count as lost. */
static inline void wan_path_on_asked(struct wan_path *p, rwy_time now)
{
	p->asked_last = now;
	if (p->asked == RWY_NEVER)
		p->asked = now;
}
void wan_path_on_answer(struct wan_path *p, rwy_time sent, uint32_t acked, uint32_t lost, rwy_time now);

/* ack.c */
/* Forgets what was received. */
void wan_ack_restart(struct wan_path *p);
void wan_ack_on_received(struct wan_path *p, uint64_t pn, bool eliciting, rwy_time now);
/* True if an ACK must be sent now. */
bool wan_ack_due(const struct wan_path *p, rwy_time now);
/* Returns false when there is no room or nothing to acknowledge. */
bool wan_ack_put(struct wan_path *p, struct wan_out *o, rwy_time now);
/* The peer has our ACK in datagram pn: ranges below it may be dropped. */
void wan_ack_on_acked(struct wan_path *p, uint64_t pn);

#endif
