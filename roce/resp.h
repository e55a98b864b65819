/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder (IBA 9.7): answers a local requester, "the host", in the far host's name.
 *
 * It decides and does not act: roce_resp_recv returns a verdict, roce_resp_flush the ACK or NAK
 * that may go now. The caller takes custody of accepted packets, sends what flush returns, and
 * allows ACKs up to a watermark, as its ack mode has it. Rules: requests are accepted in PSN order
 * only; a gap gets one NAK (PSN sequence error); no ACK passes the watermark, nor a READ or ATOMIC
 * without its response; ATOMICs are never answered early; a duplicate never reaches the far host.
 *
 * Thread: one for each object. No function blocks or takes a buffer; PSNs and MSNs have 24 bits.
 */
#ifndef ROCE_RESP_H
#define ROCE_RESP_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "roce/parse.h"
#include "roce/psn.h"
#include "roce/resp_states.h"
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
	X(ROCE_RESP_BAD_OP, "unsupported_opcode",                                                            \
	    "operation that is not carried (IBA 9.7.4.1.4): NAK invalid request")                            \
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
	/* ACCEPT: PSNs consumed. DUP_READ: responses requested from pkt->psn on. 0: not known. */
	uint32_t psn_cnt;
	roce_msn msn;  /* ACCEPT: MSN after this packet; before roce_resp_go without its base */
	uint32_t pmtu; /* PARK: path MTU that this packet shows, for roce_resp_set_pmtu; 0: none */
};

/* A READ or ATOMIC that was accepted and has not all its responses yet. */
struct roce_resp_rd {
	roce_psn psn;
	uint32_t cnt;    /* response packets */
	uint32_t served; /* responses sent to the host */
	/* Response that a repeated READ begins with: the host expects a FIRST there. */
	uint32_t restart;
	roce_msn msn_before; /* MSN before this request */
	uint32_t dma_len;    /* READ: bytes requested */
	uint8_t atomic;
};

#define ROCE_RESP_RD_MAX 256 /* READs and ATOMICs outstanding at most (IBA: 8 bits) */

/* roce_resp.msg: nothing was accepted yet, so any position in a message is valid. */
#define ROCE_RESP_JOINED 0xffu

/* roce_resp.msn0 before the far host answered. */
#define ROCE_RESP_MSN_UNKNOWN UINT32_MAX

struct roce_resp {
	/* --- what each request and its ACK touch: a cache line --- */
	/* counts the cells that are entered; NULL: they are not counted */
	struct roce_resp_seen *seen;
	uint64_t passed;    /* PSNs accepted in this incarnation, not modulo 2^24 */
	roce_psn start;     /* first PSN of this incarnation */
	roce_psn epsn;      /* next expected */
	roce_msn msn;       /* after everything accepted */
	roce_psn allow_psn; /* watermark: ACKs are allowed for everything before this */
	roce_msn allow_msn; /* MSN of such an ACK */
	roce_psn acked;     /* the host has ACKs for everything before this */
	/* the host asked for ACKs for everything before this; not before `acked` */
	roce_psn want_psn;
	uint32_t pmtu; /* path MTU, 256..4096; 0 until known */
	/* WRITE: bytes of the RETH's DMA length still to come; UINT32_MAX: not known */
	uint32_t left;
	roce_msn msn0;    /* MSN at `start`; UNKNOWN: no ACK may go, for it would name an MSN */
	uint32_t repeats; /* duplicates that wait for another ACK */
	uint16_t rd_n;    /* entries of the ring `rd` */
	uint8_t state;    /* enum roce_resp_state */
	/* The message being received: enum roce_op, NONE between messages, or JOINED. */
	uint8_t msg;
	/* --- the rest --- */
	/*
	 * READs and ATOMICs outstanding, oldest first: a ring that grows by malloc up to
	 * ROCE_RESP_RD_MAX, seldom on the packet path.
	 */
	struct roce_resp_rd *rd;
	uint16_t rd_head, rd_cap;
	uint32_t pmtu_min;    /* while pmtu is unknown: it is not smaller than this */
	uint8_t serve_opcode; /* after ROCE_RESP_SERVE: opcode of the response towards the host */
	uint8_t fail_syndrome;
	roce_psn dup_psn;  /* PSN of the latest of `repeats` */
	roce_psn fail_psn; /* from HELD on: requests from here on are refused */
	/* End of the last response sent: no plain ACK may name the PSN before it. */
	roce_psn resp_end;
	rwy_time nak_time; /* of the latest PSN sequence NAK */
};
#define ROCE_RESP_HOT 64 /* bytes: a request and its ACK touch the first ones only */
static_assert(offsetof(struct roce_resp, rd) == ROCE_RESP_HOT, "the rest is behind them");

/* The far host answered: ACKs may go. */
static inline bool roce_resp_started(const struct roce_resp *r)
{
	return r->msn0 != ROCE_RESP_MSN_UNKNOWN;
}

/* An error of the host or of the far host: the connection does not go on. */
static inline bool roce_resp_broken(const struct roce_resp *r)
{
	return r->state >= ROCE_RS_HELD;
}

/* The host got the error NAK. */
static inline bool roce_resp_error_sent(const struct roce_resp *r)
{
	return r->state >= ROCE_RS_ERROR_SENT;
}

/* The connection is over, and the host learns it from the error NAK of its next request. */
static inline bool roce_resp_error_unsaid(const struct roce_resp *r)
{
	return r->state == ROCE_RS_FAILED;
}

/* Requests are parked: the caller gives them to roce_resp_recv when this ends. */
static inline bool roce_resp_parks(const struct roce_resp *r)
{
	return r->state == ROCE_RS_UNCOUNTED;
}

/* The expected request was dropped for lack of memory: the caller says when there is room. */
static inline bool roce_resp_lacks_room(const struct roce_resp *r)
{
	return r->state == ROCE_RS_NO_ROOM;
}

/* The caller knows that duplicates met their ACK on the way: they get no other. */
static inline void roce_resp_forget_repeats(struct roce_resp *r)
{
	r->repeats = 0;
}

/* A number for a PSN before epsn that is unique in this incarnation: PSNs repeat after 2^24. */
static inline uint64_t roce_resp_serial(const struct roce_resp *r, roce_psn psn)
{
	return r->passed - ((r->epsn - psn) & ROCE_PSN_MASK);
}

/*
 * Begins at the first PSN seen or named by CM. pmtu: bytes, 0: not known. No ACK goes before
 * roce_resp_go. roce_resp_fini frees what it allocates later. No cell is counted; set `seen` for
 * that.
 */
void roce_resp_init(struct roce_resp *r, roce_psn first, uint32_t pmtu);
/*
 * After init: an earlier process acknowledged the PSNs before the first, and its last ACK may be
 * lost. They count as duplicates, as far back as a host can have requests outstanding.
 */
void roce_resp_resume(struct roce_resp *r);
/*
 * After the requests of an earlier gateway were accepted again: the host has had all responses of
 * READs and ATOMICs before psn.
 */
void roce_resp_served(struct roce_resp *r, roce_psn psn);
/*
 * An earlier gateway may have acknowledged what was accepted here, or not: the host is owed ACKs,
 * whether it asked for them or not.
 */
void roce_resp_ack_again(struct roce_resp *r);
/*
 * The host may have sent more that nobody has: it is owed a PSN sequence NAK at the expected PSN,
 * which acknowledges all before. A host that has sent nothing more drops it (ghost, IBA 9.7.6.1),
 * with what it acknowledges: first it must have its ACKs (roce_resp_ack_again).
 */
void roce_resp_ask_again(struct roce_resp *r);
/* The request that is answered with this PSN has not come, as far as that can be told. */
static inline bool roce_resp_lacks(const struct roce_resp *r, roce_psn psn)
{
	return r->state != ROCE_RS_UNCOUNTED && !roce_psn_before(psn, r->epsn);
}
/* Frees the ring: at the end, or when nothing is in it. */
void roce_resp_fini(struct roce_resp *r);
/* Requests accepted that the host has no ACK for; a READ counts once. */
uint32_t roce_resp_unacked(const struct roce_resp *r);
/* The far host answered: ACKs may begin. msn_base, its MSN before the first PSN, is added. */
void roce_resp_go(struct roce_resp *r, roce_msn msn_base);
/*
 * The far host expects an earlier PSN than the first seen here, for packets before it were lost on
 * the LAN: forgets what was accepted, expects `epsn` and owes a NAK. Only before any ACK.
 */
void roce_resp_rewind(struct roce_resp *r, roce_psn epsn);

/*
 * A request packet with a good ICRC: the verdict is in *act. Its info may be roce_op_uncarried;
 * then the verdict is never ACCEPT.
 */
void roce_resp_recv(struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now);
/* The packet with this PSN is the next one that is accepted; then roce_resp_no_room is allowed. */
static inline bool roce_resp_expects(const struct roce_resp *r, roce_psn psn)
{
	return psn == r->epsn && r->state < ROCE_RS_HELD && r->state != ROCE_RS_UNCOUNTED;
}
/*
 * Instead of roce_resp_recv: the caller has no memory for the next packet and drops it. Requests
 * that the host sends after it are a gap that gets no NAK before roce_resp_room.
 */
void roce_resp_no_room(struct roce_resp *r);
/*
 * There is room again: a PSN sequence NAK asks for the request that was dropped, unless the host
 * has sent it again since.
 */
void roce_resp_room(struct roce_resp *r);
/*
 * The path MTU is known (bytes): the waiting READ gets its count, and parked packets may be given
 * to roce_resp_recv again. Returns that READ's psn_cnt; 0: none waited, or pmtu is invalid.
 */
uint32_t roce_resp_set_pmtu(struct roce_resp *r, uint32_t pmtu);
/*
 * The host sent a request with PSN `next` after the waiting READ, which so has one response: two
 * would have shown the path MTU. False: no READ waits, or `next` does not follow it.
 */
bool roce_resp_set_single(struct roce_resp *r, roce_psn next);
/*
 * Everything before `psn` may be acknowledged, with this MSN: in ack mode near at acceptance, in
 * modes far and end as reports come. The watermark never moves back.
 */
void roce_resp_allow(struct roce_resp *r, roce_psn psn, roce_msn msn);

/*
 * A response of the far host (READ RESPONSE FIRST, MIDDLE, LAST or ONLY; ATOMIC ACK). While
 * roce_resp_parks() the caller first gives the payload length of a FIRST or MIDDLE to
 * roce_resp_set_pmtu; an ONLY settles the count here. Then parked packets may be given to
 * roce_resp_recv again.
 *
 * The far gateway may have requested the rest of a READ anew. Then a FIRST comes where the host
 * expects a MIDDLE, and an ONLY instead of a LAST: after SERVE, serve_opcode is the one that the
 * host must get. FIRST has an AETH, MIDDLE has none.
 */
enum roce_resp_answer {
	ROCE_RESP_SERVE,      /* the next one: the caller sends it and keeps it for replays */
	ROCE_RESP_SERVED,     /* it was sent before: the caller drops it */
	ROCE_RESP_UNEXPECTED, /* nothing waits for it, or it leaves a gap: the caller drops it */
};
enum roce_resp_answer roce_resp_response(struct roce_resp *r, roce_psn psn, uint8_t opcode);

/* The opcode of response `i` of the `n` of a READ request (IBA 9.4.4), also in replays. */
static inline uint8_t roce_resp_read_opcode(uint32_t i, uint32_t n)
{
	if (i == 0)
		return n == 1 ? ROCE_RC_READ_RESP_ONLY : ROCE_RC_READ_RESP_FIRST;
	return i + 1 == n ? ROCE_RC_READ_RESP_LAST : ROCE_RC_READ_RESP_MIDDLE;
}

/*
 * The far host refused `psn` with this AETH syndrome (a fatal NAK), or the connection cannot go on
 * (syndrome REM_OP). Without an ACK for psn the host gets that NAK at psn, which acknowledges
 * everything before it (IBA 9.7.5.1.2). With an ACK it gets a remote operational error at its
 * oldest outstanding or next PSN. A READ or ATOMIC before psn without its response gets the NAK
 * instead, for none may pass it. Only the first failure counts.
 */
void roce_resp_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome);

/*
 * After roce_resp_fail: the host repeats the READ or ATOMIC `psn`, whose response is no longer
 * kept, or resends from `psn` on. The connection ends with a remote operational error at exactly
 * this PSN. A NAK further on would be an implied NAK to the host (IBA 9.7.6.1).
 */
void roce_resp_lost(struct roce_resp *r, roce_psn psn);

/* An ACK or NAK for the host: the fields of its BTH and AETH. */
struct roce_resp_out {
	roce_psn psn;
	roce_msn msn;
	uint8_t syndrome;
};
/* True: *out may go now. Call after a burst, after allow, after serving, until it returns false. */
bool roce_resp_flush(struct roce_resp *r, struct roce_resp_out *out, rwy_time now);

#endif
