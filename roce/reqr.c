/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC requester: the queue in custody, its positions, window and timers. reqr_send.c sends,
 * reqr_recv.c processes responses.
 */
#include "roce/reqr.h"

#include <string.h>

#include "roce/reqr_int.h"
#include "rwy/endian.h"

#define WINDOW_START 32u
#define WINDOW_MAX   4096u
/* the host may need twice its share of time for others' READs */
#define UNFAIR 2u
/* longest time allowed for READs that the host owes, since it answered anything */
#define BUSY_MAX (10 * RWY_SEC)
/* timeouts without back-off while the host answers other queue pairs */
#define ALIVE_TRIES 2u

void roce_reqr_cfg_default(struct roce_reqr_cfg *cfg)
{
	*cfg = (struct roce_reqr_cfg){
	    .window_max = 128, .rnr_retry = 7, .retry = 7, .rto_min = 50 * RWY_MS, .rto_max = RWY_SEC};
}

static bool pmtu_ok(uint32_t pmtu)
{
	return pmtu >= 256 && pmtu <= 4096 && !(pmtu & (pmtu - 1));
}

void roce_reqr_init(struct roce_reqr *r, const struct roce_reqr_cfg *cfg, roce_psn first, uint32_t pmtu)
{
	memset(r, 0, sizeof(*r));
	r->cfg = *cfg;
	if (r->cfg.window_max < 1)
		r->cfg.window_max = 1;
	if (r->cfg.window_max > WINDOW_MAX)
		r->cfg.window_max = WINDOW_MAX;
	r->una = r->nxt = r->high = r->tail = r->recover = first & ROCE_PSN_MASK;
	r->pmtu = pmtu_ok(pmtu) ? pmtu : 0;
	r->window = r->cfg.window_max < WINDOW_START ? r->cfg.window_max : WINDOW_START;
	r->deadline = RWY_NEVER;
	r->owed_max = UINT64_MAX;
	r->one_read = true;
}

void roce_reqr_fini(struct roce_reqr *r, const struct rwy_bufs *bufs)
{
	rwy_bufq_drain(bufs, &r->q);
	roce_reqr_settle(r, r->owed);
	r->next = NULL;
	r->inflight = 0;
	r->deadline = RWY_NEVER;
}

void roce_reqr_share(struct roce_reqr *r, struct roce_reqr_host *host)
{
	r->host = host;
}

void roce_reqr_settle(struct roce_reqr *r, uint64_t bytes)
{
	if (bytes > r->owed)
		bytes = r->owed;
	r->owed -= bytes;
	roce_reqr_host_settled(r->host, bytes);
}

/* Returns the BTH of a packet in custody; NULL: fewer than `need` bytes from it on. */
static const uint8_t *bth_of(const struct rwy_buf *b, uint32_t need, uint32_t *ip_len)
{
	uint32_t hlen;

	if (b->len < 40)
		return NULL;
	hlen = b->data[0] >> 4 == 4 ? (b->data[0] & 15u) * 4 : 40;
	*ip_len = b->data[0] >> 4 == 4 ? rwy_get16(b->data + 2) : 40u + rwy_get16(b->data + 4);
	if (*ip_len > b->len || hlen + 8 + need > *ip_len)
		return NULL;
	return b->data + hlen + 8;
}

uint32_t roce_reqr_read_len(const struct rwy_buf *b)
{
	uint32_t ip_len;
	const uint8_t *bth = bth_of(b, ROCE_BTH_LEN + 16 + ROCE_ICRC_LEN, &ip_len);

	return bth ? rwy_get32(bth + ROCE_BTH_LEN + 12) : 0;
}

/* A FIRST or MIDDLE carries exactly one path MTU (IBA 9.7.4.1.6). */
static uint32_t payload_len(const struct rwy_buf *b)
{
	uint32_t ext = roce_op(b->opcode)->ext_len, ip_len;
	const uint8_t *bth = bth_of(b, ROCE_BTH_LEN + ext + ROCE_ICRC_LEN, &ip_len);

	return bth ? ip_len - (uint32_t)(bth - b->data) - ROCE_BTH_LEN - ext - ROCE_ICRC_LEN : 0;
}

void roce_reqr_set_count(struct roce_reqr *r, struct rwy_buf *b, uint32_t cnt)
{
	b->psn_cnt = cnt;
	r->tail = roce_reqr_end(b);
	if (r->copies && roce_psn_after(r->repeat_end, b->psn)) /* a repeat has as many responses */
		r->repeat_end = r->tail;
	if (r->next == b)
		return;
	r->nxt = r->tail;
	r->high = r->tail; /* it was sent, and nothing can be queued behind it */
}

void roce_reqr_learn_pmtu(struct roce_reqr *r, uint32_t pmtu)
{
	if (r->pmtu || !pmtu_ok(pmtu))
		return;
	r->pmtu = pmtu;
	if (r->q.tail && !r->q.tail->psn_cnt)
		roce_reqr_set_count(r, r->q.tail, roce_read_packets(roce_reqr_read_len(r->q.tail), pmtu));
}

/* The PSN of a request behind a READ of unknown count gives that count, if it fits a path MTU. */
static bool count_fits(const struct rwy_buf *read, uint32_t cnt)
{
	uint32_t len = roce_reqr_read_len(read);

	for (uint32_t pmtu = 256; pmtu <= 4096; pmtu *= 2)
		if (roce_read_packets(len, pmtu) == cnt)
			return true;
	return false;
}

enum roce_reqr_push roce_reqr_push(struct roce_reqr *r, struct rwy_buf *b)
{
	const struct roce_opinfo *info = roce_op(b->opcode);
	struct rwy_buf *last = r->q.tail;

	if (roce_psn_before(b->psn, r->tail))
		return ROCE_REQR_OLD;
	if (!r->pmtu && (info->pos == ROCE_POS_FIRST || info->pos == ROCE_POS_MIDDLE))
		roce_reqr_learn_pmtu(r, payload_len(b));
	if (!r->pmtu && last && !last->psn_cnt) {
		uint32_t cnt = (b->psn - last->psn) & ROCE_PSN_MASK;

		if (!count_fits(last, cnt))
			return ROCE_REQR_HOLE;
		roce_reqr_set_count(r, last, cnt);
	}
	if (b->psn != r->tail)
		return ROCE_REQR_HOLE;
	if (info->op != ROCE_OP_READ_REQ)
		b->psn_cnt = 1;
	else if (!b->psn_cnt && r->pmtu)
		b->psn_cnt = roce_read_packets(roce_reqr_read_len(b), r->pmtu);
	rwy_bufq_push(&r->q, b);
	r->tail = roce_reqr_end(b);
	if (!r->next) {
		r->next = b;
		r->nxt = b->psn;
	}
	return ROCE_REQR_PUSHED;
}

void roce_reqr_pop(struct roce_reqr *r, struct roce_reqr_act *act)
{
	struct rwy_buf *b = r->q.head, *after = b->next;

	rwy_bufq_pop(&r->q);
	if (r->next == b) { /* acknowledged late, after a go-back */
		r->next = after;
		r->nxt = roce_reqr_end(b);
		r->asking = false;
	} else {
		r->inflight--;
	}
	r->una = roce_reqr_end(b);
	rwy_bufq_push(&act->done, b);
	act->progress = true;
	if (r->window < r->cfg.window_max && ++r->credit >= r->window) {
		r->credit = 0;
		r->window++;
	}
}

void roce_reqr_go_back(struct roce_reqr *r)
{
	roce_reqr_settle(r, r->owed);
	r->next = r->q.head;
	r->nxt = r->una;
	r->inflight = 0;
	r->since_ackreq = 0;
	r->sample_at = 0; /* Karn: a retransmission gives no RTT sample */
	r->deadline = RWY_NEVER;
	r->asking = false;
}

void roce_reqr_cut(struct roce_reqr *r)
{
	if (r->recovering)
		return;
	r->recovering = true;
	r->recover = r->high;
	r->window = r->window > 1 ? r->window >> 1 : 1;
	r->credit = 0;
}

/*
 * A host that answers other queue pairs is not overrun, so a lost packet is sent again without
 * delay. But this queue pair may be gone, so more than a few timeouts back off.
 */
static unsigned back_off(const struct roce_reqr *r)
{
	bool alive = r->host && r->host->heard > r->waits;

	if (!alive)
		return r->retry_count;
	return r->retry_count > ALIVE_TRIES ? r->retry_count - ALIVE_TRIES : 0;
}

static rwy_dur rto(const struct roce_reqr *r, unsigned doubled)
{
	rwy_dur t = r->srtt + 4 * r->rttvar;

	if (t < r->cfg.rto_min)
		t = r->cfg.rto_min;
	while (doubled-- && t < r->cfg.rto_max)
		t *= 2;
	return t < r->cfg.rto_max ? t : r->cfg.rto_max;
}

/*
 * The time that the host may be busy with READs before it answers: those owed when the timer began,
 * or those owed now if more. An ACK waits at most for its turn in the host's send queue. A host
 * that says nothing to any queue pair does not answer others first.
 */
static rwy_dur busy(const struct roce_reqr *r)
{
	rwy_dur t = UNFAIR * roce_reqr_host_busy(r->host, r->before), most = r->cfg.rto_max / 4;

	t += r->host ? r->host->others : 0;
	if (r->owed)
		most = BUSY_MAX + (r->host && r->host->heard > r->waits ? r->host->heard - r->waits : 0);
	return t < most ? t : most;
}

/* Time of the next check of the timer: with a shared host the back-off is known only then. */
static rwy_time look_at(const struct roce_reqr *r, rwy_time now)
{
	return now + rto(r, r->host ? 0 : r->retry_count);
}

static void wait_anew(struct roce_reqr *r, rwy_time now)
{
	r->waits = now;
	if (!r->retry_count)
		r->silent_at = now;
	r->before = r->host ? r->host->owed : 0;
	r->deadline = look_at(r, now);
}

/*
 * The timer was set to the shortest time. When it is due, the bytes that the host owes decide, and
 * how late it answers. Both may change, so there may be another check.
 */
static bool timed_out(struct roce_reqr *r, rwy_time now)
{
	rwy_time at;

	if (r->deadline == RWY_NEVER || now < r->deadline)
		return false;
	at = r->waits + rwy_time_max(rto(r, back_off(r)), roce_reqr_host_wait(r->host, now)) + busy(r);
	if (now >= at)
		return true;
	r->deadline = rwy_time_min(at, look_at(r, now));
	return false;
}

/* Smoothed round-trip time (RFC 6298, 2.3). */
static void rtt_sample(struct roce_reqr *r, rwy_dur rtt)
{
	rwy_dur d;

	if (!r->srtt) {
		r->srtt = rtt ? rtt : 1;
		r->rttvar = rtt / 2;
		return;
	}
	d = rtt > r->srtt ? rtt - r->srtt : r->srtt - rtt;
	r->rttvar = r->rttvar - r->rttvar / 4 + d / 4;
	r->srtt = r->srtt - r->srtt / 8 + rtt / 8;
}

void roce_reqr_progress(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now)
{
	act->progress = true;
	r->retry_count = 0;
	r->rnr_count = 0;
	r->nak_seen = false;
	if (r->next && r->next == r->q.head)
		r->nxt = r->una;
	if (r->sample_at && roce_psn_after(r->una, r->sample_psn)) {
		rtt_sample(r, rwy_since(r->sample_at, now));
		r->sample_at = 0;
	}
	if (r->recovering && !roce_psn_before(r->una, r->recover))
		r->recovering = false;
	/* Hosts answer in order: no answer to a repeat comes after one to what was sent later. */
	if (r->copies && roce_psn_after(r->una, r->repeat_end))
		r->copies = 0;
	if (r->inflight)
		wait_anew(r, now);
	else
		r->deadline = RWY_NEVER;
}

void roce_reqr_sent(struct roce_reqr *r, rwy_time now)
{
	if (r->deadline == RWY_NEVER)
		wait_anew(r, now);
}

void roce_reqr_still_answers(struct roce_reqr *r, rwy_time now)
{
	if (r->deadline != RWY_NEVER)
		wait_anew(r, now);
}

void roce_reqr_give_up(
    struct roce_reqr *r, struct roce_reqr_act *act, uint8_t syndrome, roce_psn psn, enum roce_reqr_end end)
{
	roce_reqr_settle(r, r->owed);
	r->failed = true;
	r->deadline = RWY_NEVER;
	r->rnr_until = 0;
	act->failed = true;
	act->fail_syndrome = syndrome;
	act->fail_psn = psn;
	act->end = end;
}

/*
 * An error must not come earlier than without this requester: the host's peer would have waited for
 * at least so many timeouts, and for so long.
 */
static bool out_of_patience(const struct roce_reqr *r, rwy_time now)
{
	return r->retry_count >= r->cfg.retry && rwy_since(r->silent_at, now) >= r->cfg.patience;
}

static void note_repeat(struct roce_reqr *r, rwy_time now)
{
	r->repeated_at = now;
	r->repeat_end = r->high;
	if (r->copies < UINT8_MAX)
		r->copies++;
}

/* When the last packet, sent without AckReq, goes again to ask for an ACK; or RWY_NEVER. */
static rwy_time ask_at(const struct roce_reqr *r)
{
	return r->since_ackreq && !r->next && r->inflight ? r->sent_at + ROCE_REQR_REST_WAIT : RWY_NEVER;
}

/*
 * The rest of a message has not come for long: its last packet here may go again, with AckReq, so
 * that what the host has of it does not stay in memory.
 */
static void ask_late(struct roce_reqr *r, rwy_time now)
{
	if (now < ask_at(r))
		return;
	r->next = r->q.tail;
	r->nxt = r->next->psn;
	r->inflight--;
	r->asking = true;
	note_repeat(r, now);
}

void roce_reqr_tick(struct roce_reqr *r, struct roce_reqr_act *act, rwy_time now)
{
	*act = (struct roce_reqr_act){0};
	if (r->failed)
		return;
	if (r->rnr_until && now >= r->rnr_until)
		r->rnr_until = 0;
	ask_late(r, now);
	if (!timed_out(r, now))
		return;
	r->timeouts++; /* IBA 9.7.6.1.3: lost acknowledge */
	if (out_of_patience(r, now)) {
		roce_reqr_give_up(
		    r, act, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP), r->una, ROCE_REQR_SILENT);
		return;
	}
	if (r->retry_count < UINT8_MAX)
		r->retry_count++;
	r->nak_seen = false;
	roce_reqr_cut(r);
	roce_reqr_go_back(r);
	note_repeat(r, now);
}

rwy_time roce_reqr_next(const struct roce_reqr *r)
{
	if (r->failed)
		return RWY_NEVER;
	return rwy_time_min(r->rnr_until ? r->rnr_until : RWY_NEVER, rwy_time_min(ask_at(r), r->deadline));
}

void roce_reqr_reread(struct roce_reqr *r, roce_psn from)
{
	if (!r->q.head || !roce_psn_before(from, r->una) || roce_psn_before(from, r->q.head->psn))
		return;
	r->una = from;
	roce_reqr_go_back(r);
}

void roce_reqr_hold(struct roce_reqr *r, const struct roce_pkt *pkt, rwy_time now)
{
	roce_reqr_host_heard(r->host, now);
	roce_reqr_host_read(r->host, pkt->payload_len, now);
	r->held_back = true;
	r->deadline = RWY_NEVER;
	r->nak_seen = true; /* later responses and ACKs do not make it ask at once (implied NAK) */
}

void roce_reqr_ask_again(struct roce_reqr *r)
{
	r->held_back = false;
	roce_reqr_go_back(r);
}

void roce_reqr_pause(struct roce_reqr *r)
{
	roce_reqr_go_back(r);
}

void roce_reqr_resume(struct roce_reqr *r, rwy_time now)
{
	if (r->high != r->una)
		note_repeat(r, now);
}

rwy_dur roce_reqr_busy(const struct roce_reqr *r)
{
	return busy(r);
}

void roce_reqr_go(struct roce_reqr *r)
{
	r->probe = false;
}
