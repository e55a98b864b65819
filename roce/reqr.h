/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC requester (IBA 9.7.5): gives the remote host's requests to a local responder, "the host", in
 * PSN order, and sends them again until they are acknowledged.
 *
 * It owns a request (custody) from roce_reqr_push until the host acknowledged it. It handles ACK,
 * coalesced ACK, PSN sequence NAK, RNR NAK, implied NAK, lost READ responses and timeouts. It
 * decides and does not act: roce_reqr_send returns what to send, struct roce_reqr_act what a
 * response or a timer means. Requests keep their PSNs.
 *
 * Thread: one for each object. Sizes are bytes, times nanoseconds.
 */
#ifndef ROCE_REQR_H
#define ROCE_REQR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/parse.h"
#include "roce/psn.h"
#include "roce/reqr_host.h"
#include "rwy/buf.h"
#include "rwy/time.h"

struct roce_reqr_cfg {
	uint32_t window_max; /* request packets in flight to the host, 1 .. 4096 */
	uint8_t rnr_retry;   /* 0..6, 7 = without limit (IBA 9.7.5.2.8) */
	/* Consecutive timeouts after which it resends, 0..255; the next one may give up. */
	uint8_t retry;
	/* Bounds of the response timeout, without the time for READs before it. */
	rwy_dur rto_min;
	rwy_dur rto_max;
	/*
	 * It does not give up before the host was silent for this long, but goes on resending: the
	 * peer of the host would have waited, too. 0: the count alone decides; RWY_NEVER: it never
	 * gives up.
	 */
	rwy_dur patience;
};
/* The defaults: window 128, RNR retry 7, retry 7, patience 0, timeout 50 ms to 1 s. */
void roce_reqr_cfg_default(struct roce_reqr_cfg *cfg);

/*
 * Whether the host gives end-to-end credits (IBA 9.7.7.2), by its last positive AETH. RNR NAKs of
 * one that does end no connection. Before it has said so, one packet goes at a time if the RNR
 * retry count has a limit: a sender that waits for credits would not have sent more either.
 */
enum roce_reqr_credits { ROCE_CREDITS_UNKNOWN, ROCE_CREDITS_NONE, ROCE_CREDITS_GIVEN };

struct roce_reqr {
	struct rwy_bufq q;    /* unacknowledged requests, sent or not, in PSN order */
	struct rwy_buf *next; /* first request of q that is not in flight; NULL: all are */
	uint32_t inflight;    /* packets of q before next */
	/* Oldest unacknowledged PSN; inside a READ the next response expected. */
	roce_psn una;
	roce_psn nxt;         /* PSN of `next`: all requests before it are in flight */
	roce_psn high;        /* end of what was ever sent */
	roce_psn tail;        /* PSN that the next push must have */
	uint32_t pmtu;        /* path MTU, from payloads and responses; 0: unknown */
	uint16_t window;      /* packets, <= cfg.window_max; halved at a loss, grown by ACKs */
	uint16_t credit;      /* packets acknowledged towards the next growth by one */
	roce_msn host_msn;    /* MSN of the last AETH */
	bool recovering;      /* see `recover` */
	uint8_t since_ackreq; /* packets sent since the last one with AckReq */
	bool asking;          /* the last packet goes again, only to ask for an ACK */
	uint8_t rnr_count, retry_count;
	bool failed;
	/* After a restart the host may have more than was sent here: ACKs ahead are valid. */
	bool resumed;
	/* The requester went back for this gap: NAKs of the same PSN are ignored until there is
	 * progress. */
	bool nak_seen;
	uint8_t copies;  /* repeats whose answers may still come */
	uint8_t credits; /* enum roce_reqr_credits */
	bool probe;      /* unpaired: only the first packet may be in flight, with AckReq */
	bool held_back;  /* roce_reqr_hold: nothing is sent */
	bool read_waits; /* a READ is not sent because of owed_max */
	bool one_read;   /* see owed_max */
	roce_psn sample_psn;
	roce_psn repeat_end; /* end of what had been sent at `repeated_at` */
	/* Sending time of the packet that is being timed for an RTT sample; 0: none. */
	rwy_time sample_at;
	rwy_dur srtt, rttvar;
	rwy_time rnr_until; /* 0: not waiting */
	/* Next check of the response timer; RWY_NEVER: nothing is in flight. */
	rwy_time deadline;
	rwy_time waits;     /* time when the response timer began */
	rwy_time silent_at; /* the same, for the first timeout in a row */
	/* bytes that the host owed all its requesters when the timer began */
	uint64_t before;
	struct roce_reqr_host *host; /* shared by the requesters of a host; NULL: none */
	rwy_time sent_at;            /* when the last packet was sent; 0: none was */
	/* Counters, modulo 2^32. */
	uint32_t resent, rnr_naks, seq_naks, implied_naks, timeouts;
	roce_psn recover; /* after a cut the window is not cut again before una reaches this */
	struct roce_reqr_cfg cfg;
	rwy_time repeated_at; /* the last repeat after a timeout; 0: none */
	uint64_t owed;        /* bytes of READ responses that the host owes this requester */
	/*
	 * Set by the caller before roce_reqr_send: no READ goes that would make `owed` more than
	 * this; with one_read, one may go alone, however large.
	 */
	uint64_t owed_max;
};
static_assert(sizeof(struct roce_reqr) == 256, "four cache lines; nearly all of it is for each request");

/* Whether psn was sent and is not acknowledged: it is in [una, high). */
static inline bool roce_reqr_in_flight(const struct roce_reqr *r, roce_psn psn)
{
	return ((psn - r->una) & ROCE_PSN_MASK) < ((r->high - r->una) & ROCE_PSN_MASK);
}

/* Makes an empty queue from PSN `first` on; cfg is copied. pmtu: 0: unknown. */
void roce_reqr_init(struct roce_reqr *r, const struct roce_reqr_cfg *cfg, roce_psn first, uint32_t pmtu);
/* Returns the queued requests to bufs. */
void roce_reqr_fini(struct roce_reqr *r, const struct rwy_bufs *bufs);
/* Shares the host's record, which must outlive r. Call it before any packet. NULL is allowed. */
void roce_reqr_share(struct roce_reqr *r, struct roce_reqr_host *host);

/*
 * A request from the WAN. The caller sets b->psn, psn_cnt (0: a READ of unknown count), opcode and
 * msn; b->data is the packet from its IP header on.
 */
enum roce_reqr_push {
	ROCE_REQR_PUSHED, /* b is owned by the requester */
	ROCE_REQR_OLD,    /* PSN before tail: the request is here already; the caller keeps b */
	/* PSN after tail: requests were lost. The caller keeps b and must end the connection. */
	ROCE_REQR_HOLE,
};
enum roce_reqr_push roce_reqr_push(struct roce_reqr *r, struct rwy_buf *b);

/* A packet to send to the host. */
struct roce_reqr_tx {
	struct rwy_buf *b; /* owned by the requester: the caller references or copies it */
	bool ack_req;      /* BTH AckReq must be set in the packet sent */
	/* it may be cleared: a later packet of the same call asks for an ACK */
	bool ack_less;
	bool again; /* a retransmission, but not one that only asks for an ACK */
	bool asks;  /* it goes again only for that */
	/* READ: number of responses received already; the packet requests the rest */
	uint32_t skip;
};
/* Fills in up to max packets that may go now and counts them as sent. Returns their number. */
unsigned roce_reqr_send(struct roce_reqr *r, struct roce_reqr_tx *out, unsigned max, rwy_time now);

/* The reason for which a connection ended. */
enum roce_reqr_end {
	ROCE_REQR_REFUSED,   /* the host answered with a fatal NAK */
	ROCE_REQR_SILENT,    /* retry count exceeded */
	ROCE_REQR_NOT_READY, /* RNR retry count exceeded */
};

/* The outcome of a response or a timer, which the caller carries out. */
struct roce_reqr_act {
	struct rwy_bufq done; /* acknowledged requests in PSN order, now owned by the caller */
	/* The response belongs to the oldest READ or ATOMIC and goes to the remote host. */
	bool forward;
	bool progress;
	bool failed;            /* the connection is over; the next three fields are valid */
	uint8_t fail_syndrome;  /* AETH syndrome for the remote host */
	roce_psn fail_psn;      /* PSN of the request that failed */
	enum roce_reqr_end end; /* the reason */
	/* reason why the packet was ignored, as a counter's name; else NULL */
	const char *drop;
};
/* Processes a response of the host with a good ICRC: ACK, NAK, RNR NAK, READ RESPONSE or ATOMIC
 * ACK. */
void roce_reqr_recv(struct roce_reqr *r, const struct roce_pkt *pkt, struct roce_reqr_act *act, rwy_time now);
/*
 * The host has executed nothing but READs, and the PSN in its ACK is none that it expects:
 * Soft-RoCE acknowledges a duplicate with the last PSN that it executed, READs excepted, or with -1
 * if there is none.
 */
bool roce_reqr_names_nothing(const struct roce_reqr *r, const struct roce_pkt *pkt);
/* Runs the timers; call it at or after roce_reqr_next(). */
void roce_reqr_tick(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now);
/* Returns the latest time for roce_reqr_tick(); RWY_NEVER: no timer runs. */
rwy_time roce_reqr_next(const struct roce_reqr *r);

/*
 * Responses to the oldest request from this PSN on were lost beyond this gateway: it is sent again.
 */
void roce_reqr_reread(struct roce_reqr *r, roce_psn from);

/*
 * Instead of roce_reqr_recv: the caller has no memory for pkt, the next READ response, and drops
 * it. Nothing is sent and no timer runs before roce_reqr_ask_again. READ responses that come
 * meanwhile are dropped and told here, too.
 */
void roce_reqr_hold(struct roce_reqr *r, const struct roce_pkt *pkt, rwy_time now);
/* There is memory again: the rest of the READ is asked for, and what follows it. */
void roce_reqr_ask_again(struct roce_reqr *r);
/*
 * The host is not asked for a while: no timer runs and none of its silence counts. The next
 * roce_reqr_send, after roce_reqr_resume, begins with the oldest request. Timeouts so far count on.
 */
void roce_reqr_pause(struct roce_reqr *r);
void roce_reqr_resume(struct roce_reqr *r, rwy_time now);

/*
 * The time that the host may need for READs before it answers the oldest request, besides the
 * timeout: twice its time for those that it owed then, or owes now; at most until 10 s after it
 * last answered anything.
 */
rwy_dur roce_reqr_busy(const struct roce_reqr *r);

/* After a timeout the caller sent the host a duplicate of its own, too: it has one more answer. */
static inline void roce_reqr_asked_beside(struct roce_reqr *r)
{
	if (r->copies < UINT8_MAX)
		r->copies++;
}

/*
 * pkt, a response, can be the host's first one: an ACK or NAK, or the first packet of the answer
 * that the oldest request wants (IBA 9.7.5.1).
 */
bool roce_reqr_may_begin(const struct roce_reqr *r, const struct roce_pkt *pkt);
/* The host has answered: leaves probe mode. */
void roce_reqr_go(struct roce_reqr *r);

#endif
