/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One side of a connection of the capture, played again by a host with real RC state: the requester
 * and responder of roce/ decide what is sent, sent again and answered; the schedule says what its
 * program posts, when, and what its memory holds.
 *
 * A message is posted when the gap that it had in the capture has passed since the one before it,
 * and since what it waited for there: messages of the peer, answers of its own READs and ATOMICs.
 * Gaps are divided by the speed. READs and ATOMICs of the peer are answered with what the capture
 * shows; what the peer sends and answers is compared with the capture.
 *
 * Sans-I/O: packets in and out are IP packets, time is an argument. One thread.
 */
#ifndef TOOLS_REPLAY_HOST_H
#define TOOLS_REPLAY_HOST_H

#include "roce/build.h"
#include "roce/reqr.h"
#include "roce/resp.h"
#include "tools/analyze/hist.h"
#include "tools/replay/schedule.h"

#define RP_READS_KEPT 256 /* READs and ATOMICs of the peer that are answered again */
#define RP_ANSWERS    512 /* series of answers under way at most */

/* X(field, sentence): what differs from the capture. */
#define RP_DIFFERENCES(X)                                                                                    \
	X(operation, "packets of another operation, or position in a message, than captured")                \
	X(header, "packets with another virtual address, R_Key, length, immediate or ATOMIC operand")        \
	X(length, "packets with a payload of another length")                                                \
	X(payload, "packets with another payload")                                                           \
	X(answer, "answers of READs and ATOMICs with other data than captured")                              \
	X(more, "messages of the peer that the capture does not have")                                       \
	X(fewer, "messages of the peer that did not come")

struct rp_differences {
#define X(f, s) uint64_t f;
	RP_DIFFERENCES(X)
#undef X
};

struct rp_host_cfg {
	const struct rp_schedule *schedule;
	const struct rp_conn *conn;
	unsigned side;
	double speed; /* gaps are divided by it; 0: there are none */
	/* Packets are sent as they were captured; else with the addresses and the QPN of `to`. */
	bool as_captured;
	struct roce_addr to;       /* of packets to the peer; its QPN, too */
	roce_psn sq_psn, rq_psn;   /* first PSN sent, first PSN of the peer */
	struct roce_reqr_cfg reqr; /* its window, timers and retries */
	/* A message of the peer that does not come is waited for so long. */
	rwy_dur patience;
	void (*send)(void *ctx, const uint8_t *ip, uint32_t len);
	void *ctx;
};
/* Everything but schedule, conn, side, send and ctx, for a host in virtual time. */
void rp_host_cfg_default(struct rp_host_cfg *cfg);

struct rp_answer {
	roce_psn psn;
	roce_msn msn;        /* after the request */
	uint32_t n, i, skip; /* responses of the series, sent ones, those before it in the READ */
	uint32_t len;        /* bytes of the series */
	uint32_t msg;        /* of the peer's schedule; UINT32_MAX: unknown there, zeros */
	bool atomic, again;
};

struct rp_kept {
	roce_psn psn;
	roce_msn msn;
	uint32_t n, len, msg;
	bool atomic, used;
};

struct rp_stats {
	uint64_t posted, completed, bytes; /* own messages; payload of completed ones */
	uint64_t received, received_bytes; /* messages of the peer; their payload */
	uint64_t duplicates, out_of_order; /* request packets of the peer */
	uint64_t dropped;                  /* answers that found no room */
	struct rp_differences differs;
	struct an_hist completion; /* first packet of a message to its ACK or last response */
	struct an_hist late;       /* time from when a message is due to its first packet */
	rwy_time first, last;      /* own messages: the first is sent; the last is complete */
	rwy_time sent;             /* the first packet of the last one sent */
};

struct rp_host {
	struct rp_host_cfg cfg;
	const struct rp_side *mine, *peer;
	struct roce_reqr reqr;
	struct roce_resp resp;
	struct rwy_bufs bufs;
	rwy_time start;
	/* posting: the next packet to give to the requester */
	uint32_t msg, pkt;
	rwy_time due, last_due; /* RWY_NEVER: it waits for something */
	rwy_time wait_since;    /* for the peer; RWY_NEVER: it does not */
	uint32_t rd_out;        /* READs and ATOMICs that the requester has */
	uint32_t rd_done;       /* own ones that were answered */
	uint32_t forgone;       /* messages of the peer that are not waited for any longer */
	/* by own message, own message, peer's message, own READ or ATOMIC */
	rwy_time *sent_at, *due_at, *rx_at, *rd_at;
	/* the peer's messages */
	uint32_t rx_msg, rx_pkt;
	bool rx_stray; /* a message that the capture does not have */
	struct rp_kept kept[RP_READS_KEPT];
	uint32_t kept_i;
	struct rp_answer answer[RP_ANSWERS];
	uint32_t answer_i, answers;
	struct rp_stats stats;
	bool failed;
	enum roce_reqr_end end; /* failed: the reason */
	uint8_t fail_syndrome;
	bool refused;      /* it refused a request of the peer */
	char differs[160]; /* the first difference, or "" */
};

/*
 * Begins at `start`, or, if that is RWY_NEVER, when h->start is set; schedule and conn must outlive
 * it. RWY_ENOMEM: nothing is allocated.
 */
RWY_MUST_CHECK int rp_host_init(struct rp_host *h, const struct rp_host_cfg *cfg, rwy_time start);
void rp_host_fini(struct rp_host *h);

/* A packet for this queue pair that parses and has a good ICRC. */
void rp_host_recv(struct rp_host *h, const struct roce_pkt *pkt, rwy_time now);
/* Timers; posts what is due; sends up to `burst` packets. True: there is more to send now. */
bool rp_host_poll(struct rp_host *h, unsigned burst, rwy_time now);
/* The next time for rp_host_poll(), if it returned false; RWY_NEVER: only after a packet. */
rwy_time rp_host_next(const struct rp_host *h);

/* It has nothing left to send or to wait for: its messages are complete, or it failed. */
bool rp_host_sent_all(const struct rp_host *h);
/* The peer's messages are here. */
bool rp_host_got_all(const struct rp_host *h);
/* Counts what did not come; at the end, once. */
void rp_host_end(struct rp_host *h);
/* The sum of what differs. */
uint64_t rp_host_differences(const struct rp_host *h);

#endif
