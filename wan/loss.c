/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss recovery of one path (RFC 9002): the map of sent datagrams, their acknowledgement or loss,
 * probe timeouts. It knows datagrams, not flows: flow_tx.c and ctl.c are told the outcome of each.
 * reorder.c has the time after which a datagram is lost, rtt.c the round trips.
 */
#include "rwy/prefetch.h"
#include "wan/ahead.h"
#include "wan/loss_share.h"
#include "wan/resume.h"
#include "wan/tunnel.h"

#define CONTROL_MOST    256u /* bytes: without data it is an acknowledgement or a question */
#define PERSISTENT_PTOS 3
#define DEAD_PTOS       2  /* PTOs after which a path's datagrams go to another live path */
#define MEASURE_MIN     32 /* fewest datagrams of a useful rate sample */
#define SPREAD_PART     1  /* a smoothed mean of RTTs moves by this part of their deviation */

static struct wan_sent *slot(const struct wan_path *p, uint64_t pn)
{
	return &p->sent[pn & p->mask];
}

/* Feeds the path's congestion measurement (congest.h). */
static void congest_note(
    struct wan_path *p, uint32_t acked, int32_t lost, uint32_t ce, rwy_dur rtt, rwy_time now)
{
	const struct wan_cfg *cfg = &p->t->cfg;

	if (wan_congest_note(&p->congest, acked, lost, ce, rtt, p->min_rtt, now) && cfg->ops->congested)
		cfg->ops->congested(cfg->ctx, p->id, &p->congest.st, now);
}

static bool give_up(struct wan_path *p, struct wan_sent *e, bool moved, struct wan_lost *l, rwy_time now)
{
	if ((e->flags & WAN_S_DATA) && !e->queued && !wan_tx_on_lost(p->t, e, moved))
		return false;
	if (e->bundled && !wan_bundle_on_lost(p, e, moved))
		return false;
	if (e->log_n)
		wan_ctl_on_lost(p->t, e, now);
	e->state = WAN_SENT_LOST;
	p->inflight -= e->bytes;
	p->inflight_n--;
	l->bytes += e->bytes;
	l->sent = rwy_time_max(l->sent, e->sent);
	l->n++;
	p->t->c.lost++;
	p->lost_n += !moved;
	if (moved && p->t->paths > 1)
		e->flags |= WAN_S_MOVED;
	/* The map has one slot per packet number between tail and next. */
	if (!(e->flags & WAN_S_MOVED))
		wan_measure_on_lost(&p->measure, p->tail + (((uint64_t)(e - p->sent) - p->tail) & p->mask));
	return true;
}

bool wan_loss_room(struct wan_path *p, rwy_time now)
{
	struct wan_lost l = {0};

	while (p->next_pn - p->tail > p->mask) {
		struct wan_sent *e = slot(p, p->tail);

		if (e->state == WAN_SENT_INFLIGHT && !give_up(p, e, false, &l, now))
			return false;
		p->tail++;
	}
	return true;
}

/* --- sending ---------------------------------------------------------------------------------- */
void wan_loss_on_sent(struct wan_path *p, const struct wan_sent *s, bool eliciting, rwy_time now)
{
	struct wan_sent *e = slot(p, p->next_pn);

	/* Data does not come without a place; for the rest the oldest datagram is forgotten. */
	(void)wan_loss_room(p, now);
	/* Copied before more is written: a wide read waits for narrow writes of the same line. */
	*e = *s;
	e->sent = now;
	e->state = eliciting ? WAN_SENT_INFLIGHT : WAN_SENT_QUIET;
	if (p->t->paths > 1 && (eliciting || s->flags & WAN_S_PROBE))
		wan_path_on_asked(p, now);
	if (wan_path_is_stream(p))
		wan_stream_on_sent(p, s->bytes, eliciting, now);
	else if (eliciting)
		wan_rate_on_sent(p, e, now);
	if (eliciting) {
		p->inflight += s->bytes;
		p->inflight_n++;
		p->last_eliciting = now;
	}
	if (eliciting && !wan_path_is_stream(p))
		p->t->cfg.cc->on_sent(p->cc, s->bytes, p->inflight, now);
	if (p->tail == p->next_pn && !eliciting)
		p->tail++;
	p->next_pn++;
	if (!wan_path_is_stream(p))
		wan_pace_sent(&p->pace, s->bytes, !(s->flags & WAN_S_DATA) && s->bytes < CONTROL_MOST);
}

/* --- acknowledgement -------------------------------------------------------------------------- */
struct ack_ctx {
	struct wan_path *p;
	struct wan_rate_sample rs;
	rwy_time now;
	rwy_time newest_sent; /* sending time of the newest newly acknowledged; 0: none */
	uint64_t newest;
	uint64_t before; /* largest packet number acknowledged before this ACK, + 1 */
	uint32_t acked_n;
};

/* A datagram that was declared lost arrived. */
static void on_spurious(struct wan_path *p, const struct wan_sent *e, rwy_time now)
{
	p->t->c.spurious_retransmit++;
	congest_note(p, 0, -1, 0, 0, now);
	wan_loss_share_less(p);
	wan_reorder_on_spurious(p, now - e->sent);
	wan_fec_note_spurious(&p->fec);
}

/* Whether this datagram was declared lost, whatever happened later. */
static bool was_lost(const struct wan_path *p, uint64_t pn)
{
	const struct wan_sent *e = slot(p, pn);

	if (pn >= p->next_pn || p->next_pn - pn > p->mask)
		return false;
	return e->state == WAN_SENT_LOST || (e->flags & WAN_S_REBUILT);
}

static void fec_note_lost(struct wan_path *p, uint64_t pn, rwy_time now)
{
	unsigned beside = (unsigned)(pn && was_lost(p, pn - 1)) + was_lost(p, pn + 1);

	wan_fec_note_lost(&p->fec, pn, beside, now);
}

/* The peer rebuilt a datagram that the path lost, or that is only late on a path that reorders. */
static void on_rebuilt(struct wan_path *p, uint64_t pn, rwy_time now)
{
	if (wan_path_reorders(p))
		return;
	wan_loss_share_add(p, 0, 1);
	congest_note(p, 0, 1, 0, 0, now);
	fec_note_lost(p, pn, now);
}

void wan_loss_on_rebuilt(struct wan_path *p, uint64_t first, unsigned n, rwy_time now)
{
	for (uint64_t pn = first; pn < first + n && pn < p->next_pn; pn++) {
		struct wan_sent *e = slot(p, pn);

		if (p->next_pn - pn > p->mask || !e->group || (e->flags & WAN_S_REBUILT))
			continue;
		e->flags |= WAN_S_REBUILT;
		p->fec.stats.reported++;
		if (e->state != WAN_SENT_LOST) /* a lost one was counted before */
			on_rebuilt(p, pn, now);
	}
}

static void note_newest(struct ack_ctx *a, const struct wan_sent *e, uint64_t pn)
{
	if (a->newest_sent && pn <= a->newest)
		return;
	a->newest = pn;
	a->newest_sent = e->sent;
}

static void on_pn_acked(struct ack_ctx *a, struct wan_sent *e, uint64_t pn)
{
	struct wan_path *p = a->p;

	if (e->state == WAN_SENT_LOST && wan_path_is_stream(p)) {
		p->t->c.spurious_retransmit++;
	} else if (e->state == WAN_SENT_LOST) {
		if (!(e->flags & (WAN_S_REBUILT | WAN_S_MOVED)))
			on_spurious(p, e, a->now);
	} else {
		p->inflight -= e->bytes;
		p->inflight_n--;
		a->acked_n++;
	}
	/* Such an acknowledgement says nothing of the path: a datagram of a group may have been
	 * rebuilt, and one sent before a silence may have arrived in time while the ACKs were
	 * lost. */
	bool telling = !(e->flags & WAN_S_REBUILT) && e->sent >= p->silent_at && e->sent >= p->since;

	if (pn < a->before && telling && !e->group)
		wan_reorder_on_late(p, a->now - e->sent);
	if (wan_path_reorders_much(p) && telling)
		wan_reorder_note(p, a->now - e->sent, a->now);
	p->ecn_acked += !!(e->flags & WAN_S_ECT);
	if (wan_path_is_stream(p))
		a->rs.bytes += e->bytes;
	else if (e->sent >= p->since) /* else the path led elsewhere then */
		wan_rate_on_acked(p, &a->rs, e, a->now);
	e->state = WAN_SENT_ACKED;
	if (e->sent >= p->since)
		note_newest(a, e, pn);
	if (e->flags & WAN_S_ACK)
		wan_ack_on_acked(p, pn);
	if (e->log_n)
		wan_ctl_on_acked(p->t, e);
	if (e->flags & WAN_S_DATA)
		wan_tx_on_acked(p->t, e, a->now);
	if (e->bundled)
		wan_bundle_on_acked(p, e, a->now);
}

static void on_quiet_acked(struct ack_ctx *a, struct wan_sent *e, uint64_t pn)
{
	e->state = WAN_SENT_ACKED;
	if (e->flags & WAN_S_PROBE)
		note_newest(a, e, pn);
	if (e->flags & WAN_S_ACK)
		wan_ack_on_acked(a->p, pn);
}

static void on_range_acked(void *ctx, uint64_t lo, uint64_t hi)
{
	struct ack_ctx *a = ctx;
	struct wan_path *p = a->p;
	const bool many = p->t->tx_flows > WAN_MANY_FLOWS;
	const uint64_t ahead = many ? WAN_AHEAD_ENTRY_MANY : WAN_AHEAD_ENTRY;

	if (hi >= p->next_pn)
		hi = p->next_pn - 1;
	if (p->next_pn > p->mask + 1 && lo < p->next_pn - p->mask - 1)
		lo = p->next_pn - p->mask - 1; /* older datagrams are not in the map */
	for (uint64_t pn = lo; pn <= hi; pn++) {
		struct wan_sent *e = slot(p, pn);

		if (many && pn + WAN_AHEAD_FLOW <= hi)
			wan_fetch_sent(p->t, slot(p, pn + WAN_AHEAD_FLOW));
		if (many && pn + WAN_AHEAD_USER <= hi)
			wan_fetch_user(p->t, slot(p, pn + WAN_AHEAD_USER));
		if (pn + ahead <= hi)
			__builtin_prefetch(slot(p, pn + ahead));
		if (pn + WAN_AHEAD_BUFFER <= hi)
			wan_fetch_buffer(p, slot(p, pn + WAN_AHEAD_BUFFER));
		if (e->state == WAN_SENT_INFLIGHT || e->state == WAN_SENT_LOST)
			on_pn_acked(a, e, pn);
		else if (e->state == WAN_SENT_QUIET)
			on_quiet_acked(a, e, pn);
	}
}

/* --- loss detection --------------------------------------------------------------------------- */
/* Walks from the oldest datagram in flight. The first one that is neither late nor far enough
 * behind ends the walk, because later ones are not either. */
static struct wan_lost detect(struct wan_path *p, rwy_time now)
{
	rwy_dur limit = wan_reorder_limit(p);
	struct wan_lost l = {0};

	p->loss_timer = RWY_NEVER;
	while (p->tail < p->next_pn) {
		struct wan_sent *e = slot(p, p->tail);

		if (e->state == WAN_SENT_INFLIGHT) {
			if (!wan_path_acked(p) || p->tail >= p->largest_acked)
				break;
			uint64_t pn = p->tail;
			uint64_t behind = wan_reorder_behind(p, e->group);
			rwy_time sent = e->sent;

			/* A datagram of a group counts as sent with the group's last repair. When
			 * that was received, waiting longer helps only on a path that reorders. */
			if (e->group)
				wan_fec_outcome(&p->fec, e->group, &pn, &sent);
			if ((p->largest_acked < pn || p->largest_acked - pn < behind) && sent + limit > now) {
				p->loss_timer = sent + limit;
				break;
			}
			if (!give_up(p, e, false, &l, now)) {
				p->loss_timer = now + RWY_MS;
				break;
			}
			fec_note_lost(p, p->tail, now);
		}
		p->tail++;
	}
	return l;
}

/* --- ACK frames ------------------------------------------------------------------------------- */
static void tell_cc(struct wan_path *p, const struct ack_ctx *a, const struct wan_lost *lost, rwy_dur rtt,
    rwy_dur reverse, uint32_t ce, rwy_time now)
{
	struct cc_ack c = {
	    .acked_bytes = a->rs.bytes,
	    .lost_bytes = lost->bytes,
	    .lost_sent = lost->sent,
	    .delivered = p->delivered,
	    .inflight = p->inflight,
	    .rate_Bps = wan_rate_of(p, &a->rs),
	    .rtt = rtt,
	    .reverse = reverse,
	    .spread = wan_path_reorders_much(p) ? p->rttvar / SPREAD_PART : 0,
	    .min_rtt = p->min_rtt,
	    .prior_delivered = a->rs.delivered,
	    .app_limited = a->rs.app_limited,
	    .ce_count = ce,
	};

	p->t->cfg.cc->on_ack(p->cc, &c, now);
	/* A rate sample of few datagrams says nothing of the path's capacity. */
	if (rtt)
		wan_measure_on_ack(&p->measure,
		    p->delivered - a->rs.delivered >= (uint64_t)MEASURE_MIN * p->mtu ? c.rate_Bps : 0,
		    c.app_limited, now);
	wan_resume_check(p, now);
	wan_path_pace(p);
	if (p->t->paths > 1)
		wan_rest_on_ack(p, &c, now);
}

/* An ACK of the reliable carrier tells arrivals and their time, no losses and no rate. */
static void on_stream_ack(struct wan_path *p, const struct ack_ctx *a, bool sample)
{
	if (sample)
		wan_rtt_sample(p, a->now - a->newest_sent, 0, a->now);
	while (p->tail < p->next_pn && slot(p, p->tail)->state != WAN_SENT_INFLIGHT)
		p->tail++;
	wan_stream_on_acked(p->t, a->rs.bytes, a->now);
	if (p->t->detour.after)
		wan_detour_on_answer(p->t, a->newest_sent, a->now);
}

/* Takes the RTT of the newest datagram, or the mean if the path reorders much; 0: none. */
static rwy_dur take_sample(
    struct wan_path *p, const struct ack_ctx *a, const struct wan_f_ack *f, rwy_dur *reverse, rwy_time now)
{
	rwy_dur delay = rwy_time_min(f->delay_us * RWY_US, p->t->peer.ack_delay);

	*reverse = 0;
	if (wan_path_reorders_much(p))
		return wan_reorder_sample(p, now);
	if (!a->newest_sent || a->newest != f->r[0].hi || a->newest < a->before)
		return 0;
	wan_rtt_sample(p, now - a->newest_sent, delay, now);
	*reverse = wan_reverse_delay(p, a->newest_sent, f->at_us, now);
	return p->latest;
}

static uint32_t take_ecn(struct wan_path *p, const struct wan_f_ack *f, rwy_time now)
{
	uint32_t ce;

	wan_ecn_on_ack(p, f);
	if (f->has_ecn && (int32_t)(f->ect0 - p->ect0_seen) > 0)
		p->ect0_seen = f->ect0;
	/* The counts are of the whole session, modulo 2^32. */
	if (!f->has_ecn || (int32_t)(f->ce - p->ce_seen) <= 0)
		return 0;
	ce = f->ce - p->ce_seen;
	p->ce_seen = f->ce;
	p->fec.est.ce_until = now + 4 * wan_rtt_base(p);
	return ce;
}

/* New data was acknowledged: updates the path. */
static void on_progress(
    struct wan_path *p, const struct ack_ctx *a, const struct wan_f_ack *f, uint32_t ce, rwy_time now)
{
	rwy_dur rtt, reverse;

	p->pto_count = 0;
	p->pto_not_before = 0;
	p->probes = 0;
	p->progress = now;
	if (p->app_limited && p->delivered > p->app_limited)
		p->app_limited = 0;
	wan_reorder_on_ack(p, a->acked_n, now);
	rtt = take_sample(p, a, f, &reverse, now);
	struct wan_lost lost = detect(p, now);

	wan_path_on_answer(p, a->newest_sent, a->acked_n, lost.n, now);
	wan_loss_share_add(p, a->acked_n, lost.n);
	congest_note(p, a->acked_n, (int32_t)lost.n, ce, rtt, now);
	wan_fec_note_acked(&p->fec, a->acked_n);
	if (!a->rs.any && !lost.n)
		return; /* only probes */
	tell_cc(p, a, &lost, rtt, reverse, ce, now);
}

void wan_loss_on_ack(struct wan_path *p, const struct wan_f_ack *f, rwy_time now)
{
	struct ack_ctx a = {.p = p, .now = now, .before = wan_path_acked(p) ? p->largest_acked + 1 : 0};
	uint32_t ce;

	if (f->r[0].hi >= p->next_pn) {
		p->t->c.drop_bad_frame++; /* it acknowledges a packet number that was never sent */
		return;
	}
	p->t->c.acks_received++;
	if (f->r[0].hi >= a.before)
		p->largest_acked = f->r[0].hi;
	for (unsigned i = f->n; i-- > 0;)
		wan_ranges_add_range(&p->acked, f->r[i].lo, f->r[i].hi, on_range_acked, &a);
	if (wan_path_is_stream(p)) {
		if (a.newest_sent)
			on_stream_ack(p, &a, a.newest == f->r[0].hi);
		return;
	}
	ce = take_ecn(p, f, now);
	if (a.newest_sent || a.acked_n)
		on_progress(p, &a, f, ce, now);
}

/* --- timers ----------------------------------------------------------------------------------- */
bool wan_loss_take_back(struct wan_path *p, rwy_time sent_before, struct wan_lost *l, rwy_time now)
{
	for (; p->tail < p->next_pn; p->tail++) {
		struct wan_sent *e = slot(p, p->tail);

		if (e->state == WAN_SENT_INFLIGHT && (e->sent >= sent_before || !give_up(p, e, true, l, now)))
			break;
	}
	return p->tail == p->next_pn || slot(p, p->tail)->sent >= sent_before;
}

void wan_loss_abandon(struct wan_path *p, rwy_time now)
{
	struct wan_lost l = {0};

	wan_path_enter(p, WAN_PATH_SILENT, now);
	wan_loss_take_back(p, RWY_NEVER, &l, now);
	p->t->cfg.cc->on_lost(p->cc, l.bytes, l.sent, p->inflight, now);
	wan_path_pace(p);
	if (p->t->paths == 1)
		return;
	p->t->cfg.cc->on_persistent(p->cc, now);
	wan_path_pace(p);
	p->silences++;
	p->moved_n += l.n;
	p->t->c.lost -= l.n;
	p->silent_at = now;
	p->asked = RWY_NEVER;
	p->probes = p->pto_count = 0;
	p->loss_timer = RWY_NEVER;
	wan_fec_tx_reset(&p->fec, now);
}

void wan_loss_tick(struct wan_path *p, rwy_time now)
{
	if (now >= p->loss_timer) {
		struct wan_lost l = detect(p, now);

		if (l.n) {
			wan_loss_share_add(p, 0, l.n);
			congest_note(p, 0, (int32_t)l.n, 0, 0, now);
			p->t->cfg.cc->on_lost(p->cc, l.bytes, l.sent, p->inflight, now);
			wan_resume_check(p, now);
			wan_path_pace(p);
		}
	}
	if (now >= wan_resume_until(p)) {
		wan_resume_check(p, now);
		wan_path_pace(p);
	}
	if (now >= p->cc_next) {
		p->cc_ticked = now;
		p->t->cfg.cc->on_tick(p->cc, now);
		wan_path_pace(p);
	}
	if (now < wan_pto_at(p) || wan_pto_excused(p, now))
		return;
	p->pto_not_before = 0;
	p->t->c.pto++;
	p->pto_count++;
	p->silent_at = now;
	p->probes = 2;
	p->probe_pn = p->tail;
	/* the next timeout counts from here, probe or not */
	p->last_eliciting = p->progress = now;
	wan_ecn_on_pto(p);
	if (p->pto_count == PERSISTENT_PTOS) {
		p->t->cfg.cc->on_persistent(p->cc, now);
		wan_path_pace(p);
	}
	if (p->t->st.on)
		p->probes = 0;
	if (p->t->st.on || (p->pto_count >= DEAD_PTOS && wan_path_another(p, now)))
		wan_loss_abandon(p, now);
}

rwy_time wan_loss_next(const struct wan_path *p)
{
	return rwy_time_min(
	    rwy_time_min(rwy_time_min(p->loss_timer, p->cc_next), wan_resume_until(p)), wan_pto_at(p));
}
