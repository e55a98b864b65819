/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requester half of RC (IBA 9.7.5): faces a local responder and gives it the far host's requests, in PSN
 * order, as often as it takes.
 *
 * It owns the requests it was given (custody) until the host acknowledged them: handles ACK, coalesced ACK,
 * PSN sequence NAK, RNR NAK, implied NAK, lost responses (partial READ), timeouts. It decides: what to send
 * leaves through roce_reqr_send as records, what happened through struct roce_reqr_act. Requests keep the PSN
 * they came with. One thread per object.
 */
#ifndef ROCE_REQR_H
#define ROCE_REQR_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/parse.h"
#include "roce/psn.h"
#include "roce/reqr_host.h"
#include "rwy/buf.h"
#include "rwy/time.h"

struct roce_reqr_cfg {
	uint32_t window_max; /* request packets in flight to the host, 1 .. 4096 */
	uint8_t rnr_retry;   /* 0..6, 7 = without limit (IBA 9.7.5.2.8) */
	uint8_t
	    retry; /* timeouts in a row that are answered by sending again; the next one gives up; 1..255 */
	rwy_dur rto_min; /* floor of the response timeout, without what the host has to answer before */
	rwy_dur rto_max;
};
void roce_reqr_cfg_default(struct roce_reqr_cfg *cfg); /* 128, 7, 7, 50 ms, 1 s */

struct roce_reqr {
	struct roce_reqr_cfg cfg;
	struct rwy_bufq q;    /* unacknowledged and unsent, PSN order */
	struct rwy_buf *next; /* first of q not (or no longer) in flight; NULL: all sent */
	uint32_t inflight;    /* packets of q before next */
	roce_psn una;         /* oldest unacknowledged PSN; inside a READ: the next response expected */
	roce_psn nxt;         /* PSN of `next`: all before are in flight */
	roce_psn high;        /* end of what was ever sent */
	roce_psn tail;        /* PSN that the next push must have */
	uint32_t pmtu;        /* 0 until known; learned from payloads and responses */
	uint32_t window;      /* adaptive, <= cfg.window_max: halves on loss, grows by ACKs */
	uint32_t credit;      /* fraction of window growth, packets acked */
	roce_psn recover;     /* window was cut: not again before una passes this */
	bool recovering;
	uint32_t since_ackreq; /* packets sent since the last with AckReq */
	uint8_t rnr_count, retry_count;
	bool failed;
	bool resumed;  /* after a gateway restart: the host may have seen more than we sent; ACKs ahead are
	                  honest */
	bool nak_seen; /* one go-back per gap: ignore further NAKs of the same PSN until progress */
	rwy_time rnr_until; /* 0: not waiting */
	rwy_time deadline;  /* the response timeout is looked at; RWY_NEVER when nothing is in flight */
	rwy_time waits;     /* it runs since then */
	struct roce_reqr_host *host; /* shared with other requesters of it; NULL: none. roce_reqr_share */
	uint64_t owed;               /* bytes it owes us: READs in flight */
	uint64_t before;             /* bytes it owed all when the timer began */
	rwy_time sample_at;          /* RTT sample under way: sent time, 0 none */
	roce_psn sample_psn;
	rwy_dur srtt, rttvar;
	roce_msn host_msn; /* from the last AETH */
	bool probe;        /* unpaired: only the first packet may be in flight, AckReq set */
	uint64_t sent, resent, rnr_naks, seq_naks, timeouts, implied_naks; /* counters, monotonic */
};

void roce_reqr_init(struct roce_reqr *r, const struct roce_reqr_cfg *cfg, roce_psn first, uint32_t pmtu);
void roce_reqr_fini(struct roce_reqr *r, const struct rwy_bufs *bufs);
/* Before anything is sent. The record outlives roce_reqr_fini. */
void roce_reqr_share(struct roce_reqr *r, struct roce_reqr_host *host);

/* A request from the WAN: b->psn, psn_cnt (0: READ of unknown count), opcode, msn set; b->data is the packet
 * from the IP header. */
enum roce_reqr_push {
	ROCE_REQR_PUSHED, /* ownership taken */
	ROCE_REQR_OLD,    /* PSN before tail: we have it; the caller keeps and frees b */
	ROCE_REQR_HOLE, /* PSN after tail: data was lost in a gateway crash; the caller keeps b and must fail
	                   the connection */
};
enum roce_reqr_push roce_reqr_push(struct roce_reqr *r, struct rwy_buf *b);

/* What to put on the LAN now. */
struct roce_reqr_tx {
	struct rwy_buf *b; /* stays owned by the requester: reference it or copy it */
	bool ack_req;      /* BTH AckReq must be set in what goes out */
	bool again;        /* not the first transmission */
	uint32_t skip; /* READ: that many response packets are here already: ask only for the rest (partial
	                  READ); 0 = as is */
};
unsigned roce_reqr_send(struct roce_reqr *r, struct roce_reqr_tx *out, unsigned max, rwy_time now);

/* How a connection ended. */
enum roce_reqr_end {
	ROCE_REQR_REFUSED,   /* the host answered with a fatal NAK */
	ROCE_REQR_SILENT,    /* retry count exceeded */
	ROCE_REQR_NOT_READY, /* RNR retry count exceeded */
};
/* For the log: "remote access error", "retry count exceeded", ... */
const char *roce_reqr_end_name(enum roce_reqr_end end, uint8_t syndrome);

/* A response packet of the host with a good ICRC (ACK, NAK, RNR NAK, READ RESPONSE x, ATOMIC ACK), or time
 * passing. */
struct roce_reqr_act {
	struct rwy_bufq done; /* acknowledged requests, PSN order: ownership moves to the caller */
	bool forward;         /* this response goes to the far host: the next of the oldest READ/ATOMIC */
	bool progress;
	bool failed;           /* the connection is over: */
	uint8_t fail_syndrome; /*   AETH syndrome to give the far host */
	roce_psn fail_psn;     /*   the request that failed */
	enum roce_reqr_end end;
	const char
	    *drop; /* counter name when the packet was ignored: "ghost_ack", "old_response", ... else NULL */
};
void roce_reqr_recv(struct roce_reqr *r, const struct roce_pkt *pkt, struct roce_reqr_act *act, rwy_time now);
void roce_reqr_tick(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now);
rwy_time roce_reqr_next(const struct roce_reqr *r); /* RWY_NEVER: nothing to do for time's sake */

/* Answers to the oldest request from this PSN on went down with who asked: they are asked for again. */
void roce_reqr_reread(struct roce_reqr *r, roce_psn from);

/* The pairing is known: leave probe mode. */
void roce_reqr_go(struct roce_reqr *r);

#endif
