/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responder half of RC (IBA 9.7): faces a local requester and answers it in the far host's name.
 *
 * It decides, it does not act: roce_resp_recv returns a verdict, roce_resp_flush says which ACK or NAK may go
 * now. The caller takes custody of accepted packets, sends what flush returns, and tells it how far
 * acknowledging is allowed (the ack mode's watermark). Rules it keeps: in PSN order only; one NAK (PSN
 * sequence error) per gap; no ACK passes an unanswered READ or ATOMIC, nor the watermark; ATOMICs are never
 * answered early; a duplicate never reaches the far host. One thread per object.
 */
#ifndef ROCE_RESP_H
#define ROCE_RESP_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/parse.h"
#include "roce/psn.h"
#include "rwy/buf.h"
#include "rwy/time.h"

/* X(enumerator, counter, sentence) */
#define ROCE_RESP_VERDICTS(X)                                                                                \
	X(ROCE_RESP_ACCEPT, "accept", "in order: take custody")                                              \
	X(ROCE_RESP_DUP, "duplicate_request", "SEND or WRITE seen before: acknowledged again, dropped")      \
	X(ROCE_RESP_DUP_READ, "duplicate_read", "READ seen before: replay responses from the cache")         \
	X(ROCE_RESP_DUP_ATOMIC, "duplicate_atomic", "ATOMIC seen before: answer from memory")                \
	X(ROCE_RESP_GAP, "out_of_sequence", "PSN ahead of the expected one: dropped; one NAK a gap")         \
	X(ROCE_RESP_PARK, "parked", "follows a READ whose response count is unknown until the path MTU is")  \
	X(ROCE_RESP_BAD_SEQ, "invalid_opcode_sequence",                                                      \
	    "opcode does not follow the one before (IBA 9.7.4.1.3): NAK invalid request")                    \
	X(ROCE_RESP_BAD_LEN, "invalid_length",                                                               \
	    "length does not fit path MTU, opcode or RETH (IBA 9.7.4.1.6): NAK invalid request")             \
	X(ROCE_RESP_TOO_MANY, "too_many_outstanding",                                                        \
	    "more READs and ATOMICs outstanding than can be kept: dropped")                                  \
	X(ROCE_RESP_STALE, "psn_outside_window",                                                             \
	    "PSN before everything this connection ever sent: not this connection's")                        \
	X(ROCE_RESP_FAILED, "after_error", "the connection has failed: answered with the error")

enum roce_resp_verdict {
#define X(e, n, s) e,
	ROCE_RESP_VERDICTS(X)
#undef X
	    ROCE_RESP_VERDICT_COUNT
};

struct roce_resp_act {
	enum roce_resp_verdict verdict;
	uint32_t psn_cnt; /* ACCEPT: PSNs consumed. DUP_READ: response packets asked for, from pkt->psn on. 0:
	                     not known yet */
	roce_msn msn;     /* ACCEPT: MSN after this packet (without roce_resp_go's base while not started) */
	uint32_t pmtu;    /* PARK: the path MTU this packet shows, for roce_resp_set_pmtu; 0: it shows none */
};

/* A READ or ATOMIC that was accepted and not yet answered completely. */
struct roce_resp_rd {
	roce_psn psn;
	uint32_t cnt;        /* response packets */
	uint32_t served;     /* of them, handed to the host */
	uint32_t restart;    /* the host asked again from this response on: it expects a FIRST there */
	roce_msn msn_before; /* MSN before this request */
	uint32_t dma_len;    /* READ: bytes asked */
	uint8_t atomic;
};

#define ROCE_RESP_RD_MAX 256

/* A gap in the host's PSNs (IBA 9.7.4.1.2). */
enum roce_resp_gap { ROCE_RESP_NO_GAP, ROCE_RESP_NAK_OWED, ROCE_RESP_NAK_SENT };

enum roce_resp_error {
	ROCE_RESP_NO_ERROR,
	ROCE_RESP_HELD,    /* the host's own: its NAK waits until everything before it is acknowledged */
	ROCE_RESP_REFUSED, /* the connection is over */
	ROCE_RESP_GONE,    /* the same; fail_psn is of a READ that the host asked for again */
};

#define ROCE_RESP_JOINED                                                                                     \
	0xffu /* roce_resp.msg: nothing accepted yet, so any position in a message is right */

struct roce_resp {
	roce_psn start;     /* first PSN of this life of the connection */
	roce_psn epsn;      /* next expected */
	uint64_t passed;    /* PSNs accepted in this life, also beyond 24 bits */
	roce_msn msn;       /* after everything accepted */
	roce_psn allow_psn; /* watermark: everything before this may be acknowledged ... */
	roce_msn allow_msn; /* ... with this MSN */
	roce_psn acked;     /* everything before this has been acknowledged to the host */
	roce_psn want_psn;  /* highest PSN accepted with AckReq */
	uint32_t pmtu;      /* path MTU, 256..4096; 0 until known */
	uint32_t pmtu_min;  /* while unknown: it is not smaller than this */
	uint8_t msg;        /* enum roce_op of the message being received, NONE between messages, or JOINED */
	uint8_t gap;        /* enum roce_resp_gap */
	uint8_t error;      /* enum roce_resp_error */
	uint32_t left; /* WRITE: bytes of the RETH's DMA length that have not come; UINT32_MAX: not known */
	roce_msn msn0; /* MSN at `start` */
	bool want_ack; /* an ACK is owed */
	bool dup_ack;  /* a duplicate asks for a re-ACK */
	roce_psn dup_psn; /* the latest such duplicate */
	bool started;     /* false: learning; nothing is acknowledged */
	bool pmtu_wait;   /* last accepted is a READ of unknown response count */
	uint8_t fail_syndrome;
	bool fail_sent; /* the host was told the error */
	bool fail_owed; /* it is to be told, also again */
	roce_psn fail_psn;
	rwy_time nak_time;
	roce_psn resp_end;    /* end of the last response served: no plain ACK may name the PSN before it */
	uint8_t serve_opcode; /* after ROCE_RESP_SERVE: the opcode the response must have towards the host */
	/* outstanding READ/ATOMIC, oldest first; grows by malloc up to ROCE_RESP_RD_MAX (not on the packet
	 * path's common case) */
	struct roce_resp_rd *rd;
	uint16_t rd_head, rd_n, rd_cap;
};

/* A PSN before epsn as a number that does not come again in this life: PSNs do, after 2^24. */
static inline uint64_t roce_resp_serial(const struct roce_resp *r, roce_psn psn)
{
	return r->passed - ((r->epsn - psn) & ROCE_PSN_MASK);
}

/* Starts at the first PSN seen or told by CM. pmtu 0: unknown. Not `started`: roce_resp_flush stays silent
 * until roce_resp_go. */
void roce_resp_init(struct roce_resp *r, roce_psn first, uint32_t pmtu);
/* After init: what is before the first PSN was received and acknowledged by somebody before us, whose last
 * ACK may be lost: it is a duplicate, as far back as a host can have outstanding. */
void roce_resp_resume(struct roce_resp *r);
void roce_resp_fini(struct roce_resp *r);
/* The connection is paired: acknowledging may begin. `msn_base` is added to all MSNs (a gateway that joined
 * in mid-connection). */
void roce_resp_go(struct roce_resp *r, roce_msn msn_base);
/* The far host expects another PSN than the one first seen here (packets before ours were lost on the LAN):
 * forget what was accepted, expect `epsn`, owe a NAK. Only before anything was acknowledged. */
void roce_resp_rewind(struct roce_resp *r, roce_psn epsn);

/* A request packet with a good ICRC. */
void roce_resp_recv(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now);
/* The path MTU became known: the count of a waiting READ is set; parked packets may be given to
 * roce_resp_recv again. Returns the new psn_cnt of the waiting READ, 0 when none waited. */
uint32_t roce_resp_set_pmtu(struct roce_resp *r, uint32_t pmtu);
/* The waiting READ turned out to have `cnt` responses (the host answered READ RESPONSE ONLY): as set_pmtu,
 * the MTU stays unknown. */
void roce_resp_set_count(struct roce_resp *r, uint32_t cnt);
/* Everything before `psn` may be acknowledged, with this MSN (near: at accept; far, end: as the reports
 * come). Never moves back. */
void roce_resp_allow(struct roce_resp *r, roce_psn psn, roce_msn msn);

/*
 * A response (READ RESPONSE x, ATOMIC ACK) came from the far host for the host behind us. Call
 * roce_resp_set_pmtu with a READ RESPONSE FIRST's payload length before this while pmtu_wait is set; a READ
 * RESPONSE ONLY settles the count here. When pmtu_wait has fallen, parked packets may be given to
 * roce_resp_recv again.
 *
 * The far gateway may have asked for the rest of a READ anew, so a FIRST can arrive where the host expects a
 * MIDDLE, and an ONLY instead of a LAST: after SERVE, serve_opcode is what the host must see (FIRST and
 * MIDDLE differ by the AETH).
 */
enum roce_resp_answer {
	ROCE_RESP_SERVE,      /* the next one: send it to the host, keep it for replays */
	ROCE_RESP_SERVED,     /* was served before: drop */
	ROCE_RESP_UNEXPECTED, /* belongs to nothing outstanding, or leaves a gap: drop, count */
};
enum roce_resp_answer roce_resp_response(struct roce_resp *r, roce_psn psn, uint8_t opcode, rwy_time now);

/* The opcode of response `i` of the `n` that one READ request asks for (IBA 9.4.4): also for replays, counted
 * from the PSN asked. */
static inline uint8_t roce_resp_read_opcode(uint32_t i, uint32_t n)
{
	if (i == 0)
		return n == 1 ? ROCE_RC_READ_RESP_ONLY : ROCE_RC_READ_RESP_FIRST;
	return i + 1 == n ? ROCE_RC_READ_RESP_LAST : ROCE_RC_READ_RESP_MIDDLE;
}

/*
 * The far host refused PSN `psn` with this AETH syndrome (a fatal NAK), or the connection cannot go on
 * (syndrome REM_OP). If psn was not acknowledged yet the host gets that NAK at that PSN, which acknowledges
 * what is before (IBA 9.7.5.1.2); else a remote operational error at the next PSN it has outstanding or sends
 * next. An unanswered READ or ATOMIC before psn gets the NAK in its place: it will not be answered any more,
 * and a NAK must not pass it. Only the first failure counts.
 */
void roce_resp_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome);

/* The host asks again for the answer to `psn` (a READ or ATOMIC that was served), and it is no longer kept:
 * the connection is over, with a remote operational error at exactly this PSN, for the host will not listen
 * to one further on (IBA 9.7.6.1, implied NAK). */
void roce_resp_lost(struct roce_resp *r, roce_psn psn);

/* What to send to the host now, if anything: call after a burst, after allow, after serving. At most one. */
struct roce_resp_out {
	roce_psn psn;
	roce_msn msn;
	uint8_t syndrome;
};
bool roce_resp_flush(struct roce_resp *r, struct roce_resp_out *out, rwy_time now);

#endif
