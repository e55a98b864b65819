/* SPDX-License-Identifier: Apache-2.0 */
/* Inside tools/analyze: one requester, followed packet by packet. */
#ifndef TOOLS_ANALYZE_REQUESTER_H
#define TOOLS_ANALYZE_REQUESTER_H

#include "tools/analyze/analyze.h"

#define AN_SENT_MAX (1u << 18)

/* A request packet that is outstanding, at its PSN in a ring. */
struct an_sent {
	rwy_time first, last; /* first and last time it was seen; first 0: never seen */
	uint32_t len;         /* payload */
	uint16_t copies;      /* times seen */
	uint16_t lap;         /* its PSN / AN_SENT_MAX, the low bits */
};

/* A message that is outstanding. */
struct an_message {
	uint64_t begin, end; /* unwrapped: its first PSN; after its last, 0: not known */
	rwy_time first;
	uint8_t op;          /* enum roce_op */
	uint32_t read_bytes; /* READ: its length */
};

#define AN_NAKS 32u

/* Why the requester went back. */
enum an_cause { AN_BY_TIMER, AN_BY_NAK, AN_BY_RNR };

struct an_requester {
	size_t points_max;                  /* plot points at most */
	uint64_t points_seen, point_stride; /* one plain point of so many is kept */
	bool started;
	roce_psn origin;       /* PSN that is 0 unwrapped */
	uint64_t una, nxt;     /* unwrapped: oldest unacknowledged; after the highest seen */
	uint64_t read_open;    /* > nxt: a READ of unknown path MTU may end up to here */
	uint32_t read_longest; /* PSNs of a READ at most */
	bool pmtu_known;       /* an_flow.pmtu is the connection's, not only a bound */
	struct an_sent *sent;
	uint64_t sent_mask;
	struct an_message *message; /* ring */
	uint32_t message_mask, message_head, message_tail;
	uint32_t reads_out, atomics_out;
	uint64_t read_inside; /* PSNs of outstanding READs that have no packet */
	uint64_t bytes_out;
	/* Repeats. */
	bool back;         /* it is sending again */
	uint64_t back_at;  /* the next PSN of the repeat */
	uint64_t back_end; /* nxt when it began: the repeat is over when una gets here */
	rwy_time back_since;
	enum an_cause cause;
	bool by_timer;      /* it went back after its timer: needed or not? */
	uint64_t timer_psn; /* to this PSN, which it had sent first at that time: */
	rwy_time timer_first;
	rwy_dur maybe_rtt;       /* the round trip, if the repeat was needless; */
	rwy_time maybe_at;       /* its end */
	uint64_t timer_needless; /* repeats after the timer that were */
	rwy_time nak_at, rnr_at; /* not answered by a packet yet; 0: none */
	/*
	 * The last NAKs that no repeat has answered, the newest at nak_i - 1. At the responder's
	 * end several are on their way at once.
	 */
	struct {
		uint64_t psn;
		rwy_time at; /* 0: none, or answered */
	} nak[AN_NAKS];
	uint32_t nak_i;
	rwy_dur nak_answer; /* the shortest time from a NAK to a repeat; 0: none */
	/*
	 * Packets that were left out and come behind others: late_n of them from late_psn to before
	 * late_end, the first at late_at, late_gap after the packet before it. They are late when
	 * the series goes on behind them, the begin of a repeat when it goes on with known ones.
	 */
	/* late_lost: seen for the first time; late_row: the last ones, without a gap */
	uint32_t late_n, late_lost, late_row;
	uint64_t late_psn, late_end;
	rwy_time late_at, late_quiet; /* late_quiet: the last sign of life before */
	rwy_dur late_gap;
	/* The gap before the next packet. */
	rwy_time last_sent, last_progress, emptied, last_cnp;
	rwy_dur gap_mid;   /* running median of the gaps */
	rwy_dur pace_low;  /* a low quantile of them, in ps for each byte on the wire */
	uint32_t last_len; /* bytes on the wire of the last packet, about */
	bool progress;     /* an ACK or response since the last packet */
	bool read_done;    /* ... and it ended a READ or ATOMIC */
	bool was_full;     /* when it came as much was out as ever */
	rwy_dur rtt;       /* latest sample */
	/*
	 * How long the latest ACK was waited for; did it end a message; the shortest such wait of
	 * ACKs that ended none, and of those that did.
	 */
	rwy_dur wait;
	bool wait_end;
	rwy_dur wait_least[2];
	uint32_t may_begin;   /* messages that need a receive, by the credits of the latest ACK */
	bool granted;         /* it allows some, and before it none was left */
	uint64_t read_expect; /* next READ response, unwrapped */
	uint64_t read_seen;   /* after the last READ response seen, also behind a gap */
	uint32_t acked_len;   /* largest payload of a packet that was acknowledged */
};

/* CM has set up another connection on this flow's queue pair numbers. RWY_ENOMEM. */
int an_requester_again(struct an_flow *f);
/* A request packet of this flow. payload: bytes. RWY_ENOMEM. */
int an_request(struct an_flow *f, const struct roce_pkt *pkt, rwy_time now);
/* A response to this flow's requests: ACK, NAK, READ response, ATOMIC ACK. */
void an_response(struct an_flow *f, const struct roce_pkt *pkt, rwy_time now);
void an_cnp(struct an_flow *f, rwy_time now);
/* Could a response with this PSN answer a request of f that is outstanding? */
bool an_answers(const struct an_flow *f, roce_psn psn);
/*
 * The lowest PSN, unwrapped, of a packet of the same connection; below 0: before the first one that
 * was seen. A requester goes back to what it has outstanding, which may be READs that were answered
 * at this place; and a gateway asks from 2^16 PSNs before.
 */
int64_t an_lowest(const struct an_flow *f);
/* The same as an_answers() of a request that is outstanding or was, down to an_lowest(). */
bool an_asked(const struct an_flow *f, roce_psn psn);
/*
 * Nothing of f is acknowledged, and this PSN is so far before its first one: the capture may have
 * begun behind that request, or lost it.
 */
bool an_asked_before(const struct an_flow *f, roce_psn psn);
void an_see_payload(struct an_flow *f, const struct roce_pkt *pkt);
void an_point_add(struct an_flow *f, uint64_t psn, enum an_mark mark, rwy_time now);

/* plot.c: bytes of payload at a moment. */
void an_bins_add(struct an_flow *f, uint32_t bytes, bool again, rwy_time now);

/* outstanding.c: packets and messages that are outstanding. */
struct an_requester *an_requester_new(size_t points);
void an_requester_free(struct an_requester *q);
/* Nothing is outstanding any more; una and nxt are 0. RWY_ENOMEM. */
int an_outstanding_clear(struct an_requester *q);
/*
 * Room for packets from una to before `end`. Where that is too much, acknowledgements were not
 * captured: una moves, and what is before it is forgotten. RWY_ENOMEM.
 */
int an_sent_room(struct an_requester *q, uint64_t end);
/* A packet of an_sent_room() is seen for the first time. */
void an_sent_put(struct an_requester *q, uint64_t psn, uint32_t len, rwy_time now);
/*
 * After an outstanding PSN the next one that may have a packet: long READs are passed over. *i: a
 * message that is not behind the PSN, at first message_head; it goes along.
 */
uint64_t an_sent_next(const struct an_requester *q, uint64_t psn, uint32_t *i);
void an_sent_drop(struct an_requester *q, struct an_sent *s);
int an_message_push(struct an_requester *q, const struct an_message *m);
/* The message that the packet with this PSN belongs to, among those that are known; NULL: none. */
struct an_message *an_message_of(const struct an_requester *q, uint64_t psn);
struct an_message *an_message_newest(const struct an_requester *q); /* NULL: there is none */
/* The oldest message, if it ends before psn; else NULL. */
struct an_message *an_message_before(struct an_requester *q, uint64_t psn);
/* It is known where m ends, which it was not before. */
void an_message_end(struct an_requester *q, struct an_message *m, uint64_t end);
/* The oldest message is outstanding no more. */
void an_message_pop(struct an_requester *q);

/* What is known of an outstanding packet; NULL: it was not seen, or is inside a READ. */
static inline struct an_sent *an_sent_find(const struct an_requester *q, uint64_t psn)
{
	struct an_sent *s = &q->sent[psn & q->sent_mask];

	return psn >= q->una && s->first && s->lap == (uint16_t)(psn / AN_SENT_MAX) ? s : NULL;
}

/* After the highest PSN that a request seen so far may have taken. */
static inline uint64_t an_known_end(const struct an_requester *q)
{
	return q->read_open > q->nxt ? q->read_open : q->nxt;
}

/*
 * gap.c: why a requester that goes back to psn does so now. A requester answers a NAK at once; one
 * that took no notice of it (Soft-RoCE, of a second one) repeats when its timer fires.
 */
enum an_cause an_cause_of(const struct an_requester *q, uint64_t psn, rwy_time now);
/* gap.c: the NAK that a repeat from psn on answers is answered, and so are those before it. */
void an_nak_answered(struct an_requester *q, uint64_t psn, rwy_time now);
/* gap.c: the phase of the present repeat. */
enum an_phase an_repair(const struct an_requester *q);
/* requester.c: the capture ends. */
void an_requester_end(struct an_flow *f);
/*
 * gap.c: adds the gap that ends now to the phase that explains it. repeat: with a packet that was
 * sent before; goes_back: which begins a repeat; psn, info: of that packet.
 */
void an_gap(struct an_flow *f, bool repeat, bool goes_back, uint64_t psn, const struct roce_opinfo *info,
    rwy_time now);
/* verdict.c: the findings, from all that was counted. end: time of the capture's last packet. */
void an_verdict(struct an_flow *f, rwy_time end);

#endif
