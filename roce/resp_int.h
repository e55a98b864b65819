/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the files of the RC responder. */
#ifndef ROCE_RESP_INT_H
#define ROCE_RESP_INT_H

#include "roce/resp.h"

/*
 * Most PSNs from `start` to epsn: less than half the PSN space, as for a requester (IBA 9.7.2).
 */
#define ROCE_RESP_SPAN 0x7fffffu

/* Returns outstanding READ or ATOMIC i, 0 the oldest. rd_cap is a power of two. */
static inline struct roce_resp_rd *roce_resp_rd_at(const struct roce_resp *r, uint16_t i)
{
	return &r->rd[(r->rd_head + i) & (r->rd_cap - 1)];
}

/* Removes the oldest, which has all its responses. */
static inline void roce_resp_rd_pop(struct roce_resp *r)
{
	r->rd_head = (uint16_t)((r->rd_head + 1) & (r->rd_cap - 1));
	r->rd_n--;
}

/* A path MTU of IBA: 256, 512, 1024, 2048 or 4096 bytes. */
static inline bool roce_resp_pmtu_ok(uint32_t pmtu)
{
	return pmtu >= 256 && pmtu <= 4096 && !(pmtu & (pmtu - 1));
}

/* A packet had a payload of `n` bytes: the path MTU is at least that. */
void roce_resp_pmtu_least(struct roce_resp *r, uint32_t n);

/* Returns the number of PSNs from the oldest unfinished one to epsn. */
static inline uint32_t roce_resp_outstanding(const struct roce_resp *r)
{
	roce_psn oldest = r->acked;

	if (r->rd_n && roce_psn_before(roce_resp_rd_at(r, 0)->psn, oldest))
		oldest = roce_resp_rd_at(r, 0)->psn;
	return (r->epsn - oldest) & ROCE_PSN_MASK;
}

/* Moves epsn on by `cnt` PSNs and keeps [start, epsn) within half the PSN space. */
static inline void roce_resp_advance(struct roce_resp *r, uint32_t cnt)
{
	uint32_t span = ((r->epsn - r->start) & ROCE_PSN_MASK) + cnt;

	r->epsn = roce_psn_add(r->epsn, cnt);
	r->passed += cnt;
	if (span > ROCE_RESP_SPAN)
		r->start = roce_psn_add(r->epsn, ROCE_PSN_MASK + 1 - ROCE_RESP_SPAN);
}

/* MSN at `start`, without its base before the far host answered. */
static inline roce_msn roce_resp_first_msn(const struct roce_resp *r)
{
	return roce_resp_started(r) ? r->msn0 : 0;
}

/* The host gets an ACK for everything before `psn`. */
static inline void roce_resp_acked(struct roce_resp *r, roce_psn psn)
{
	r->acked = psn;
	if (roce_psn_before(r->want_psn, psn))
		r->want_psn = psn;
}

/* The only way to change the state; asserts that the change is in resp_states.h. */
void roce_resp_enter(struct roce_resp *r, enum roce_resp_state to);

/*
 * d, the last READ, has its count, or 1 for an ONLY: epsn moves, or the count is an error of the
 * host. Ends the state UNCOUNTED.
 */
void roce_resp_read_counted(struct roce_resp *r, struct roce_resp_rd *d);

/* Notes an error of the host at `psn`: NAK invalid request (IBA 9.7.4.1.3, 9.7.4.1.6). */
void roce_resp_host_error(struct roce_resp *r, roce_psn psn);

/* Returns the PSN before which ACKs may cover everything, with *msn: the watermark, or the oldest
 * READ or ATOMIC. */
roce_psn roce_resp_point(const struct roce_resp *r, roce_msn *msn);

/* --- the words of the table ------------------------------------------------------------------- */

/* Sets the verdict on a request, and the rest of *act, which is zero before. */
typedef void roce_resp_on_request(
    struct roce_resp *r, const struct roce_pkt *pkt, struct roce_resp_act *act, rwy_time now);
/* The next response to d, the oldest READ or ATOMIC. */
typedef enum roce_resp_answer roce_resp_on_response(
    struct roce_resp *r, struct roce_resp_rd *d, uint8_t opcode);
/* Returns what roce_resp_set_pmtu does. */
typedef uint32_t roce_resp_on_pmtu(struct roce_resp *r);
typedef void roce_resp_on_fail(struct roce_resp *r, roce_psn psn, uint8_t syndrome);
typedef void roce_resp_on_psn(struct roce_resp *r, roce_psn psn);
typedef void roce_resp_on_room(struct roce_resp *r);
/* As roce_resp_flush. */
typedef bool roce_resp_on_flush(struct roce_resp *r, struct roce_resp_out *out, rwy_time now);

/* resp_recv.c */
/* the expected one: accepted, or an error of the host */
roce_resp_on_request roce_resp_do_accept;
roce_resp_on_request roce_resp_do_repeat;        /* a duplicate */
roce_resp_on_request roce_resp_do_repeat_failed; /* the same, or it is refused */
roce_resp_on_request roce_resp_do_repeat_error;  /* the same; the host gets the error NAK again */
roce_resp_on_request roce_resp_do_park;
roce_resp_on_request roce_resp_do_gap;          /* a PSN sequence NAK is owed */
roce_resp_on_request roce_resp_do_gap_again;    /* another one, when the last was long ago */
roce_resp_on_request roce_resp_do_gap_no_room;  /* no NAK is owed yet */
roce_resp_on_request roce_resp_do_refuse;       /* the error NAK is owed */
roce_resp_on_request roce_resp_do_refuse_from;  /* the same, for requests from fail_psn on */
roce_resp_on_request roce_resp_do_refuse_error; /* the same, at the PSN that the host expects it */

/* resp_ack.c */
roce_resp_on_response roce_resp_do_serve;
roce_resp_on_response roce_resp_do_serve_uncounted; /* the same; an ONLY settles its READ's count */
roce_resp_on_response roce_resp_do_unserved;        /* none goes to the host any more */
roce_resp_on_flush roce_resp_do_ack;
roce_resp_on_flush roce_resp_do_nak;     /* the PSN sequence NAK when it may go, else an ACK */
roce_resp_on_flush roce_resp_do_held;    /* the error NAK when it may go, else an ACK */
roce_resp_on_flush roce_resp_do_error;   /* the error NAK */
roce_resp_on_flush roce_resp_do_silence; /* nothing */

/* resp_state.c */
roce_resp_on_pmtu roce_resp_do_none;
roce_resp_on_pmtu roce_resp_do_count; /* the last READ gets its count */
roce_resp_on_room roce_resp_do_no_room;
roce_resp_on_room roce_resp_do_room; /* a PSN sequence NAK is owed */
roce_resp_on_room roce_resp_do_same; /* nothing changes */
roce_resp_on_fail roce_resp_do_fail;
roce_resp_on_fail roce_resp_do_ignore; /* only the first failure counts */
roce_resp_on_psn roce_resp_do_lose;    /* the error NAK goes to this PSN */
roce_resp_on_psn roce_resp_do_rewind;
roce_resp_on_psn roce_resp_do_rewind_failed; /* the same, and the next request gets the error */

#endif
