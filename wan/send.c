/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends datagrams: first the handshake, then what must go at once (acknowledgements, control,
 * probes), then what takes the detour by the reliable carrier, then data as pacing and window
 * allow: lost buffers, second copies, best effort, new data.
 */
#include "wan/hello.h"
#include "wan/paths.h"
#include "wan/tunnel.h"

static void begin(struct wan_out *o, struct wan_tx *tx, struct wan_path *p)
{
	o->tx = tx;
	o->p = p;
	o->at = tx->hdr + WAN_PKT_HDR;
	o->limit = WAN_HDR_MAX;
	o->eliciting = o->has_ack = o->fec = false;
	o->s = (struct wan_sent){0};
	tx->buf = NULL;
	tx->key = NULL;
	tx->off = tx->len = 0;
	tx->own = tx->ect = false;
	tx->stream = wan_path_is_stream(p);
	tx->path = p->id;
	tx->congested = p->congest.st.by != WAN_CONGEST_NONE;
	tx->class_id = 0;
	tx->has_dscp = false;
}

static bool mark(struct wan_out *o)
{
	if (o->p->ecn == WAN_ECN_OFF || wan_path_is_stream(o->p))
		return false;
	o->s.flags |= WAN_S_ECT;
	return true;
}

/* A message ended: the groups of the other paths do not wait for more of it. */
static void end_groups(struct wan_tunnel *t, const struct wan_path *p)
{
	for (unsigned i = 0; i < t->paths; i++)
		if (&t->path[i] != p)
			wan_fec_ended(&t->path[i].fec);
}

static void add_to_group(struct wan_out *o, rwy_time now)
{
	const struct wan_tx *tx = o->tx;

	o->s.group = wan_fec_add(&o->p->fec,
	    &(struct wan_fec_symbol){.hdr = tx->hdr,
	        .hdr_len = tx->hdr_len,
	        .payload = tx->buf ? tx->buf->data + tx->off : NULL,
	        .len = tx->len,
	        .ends = !tx->buf || wan_fec_message_ends(tx->buf)},
	    now);
}

/* From so many bytes on reading a packet's headers is less work than reading its payload. */
#define CRC_DERIVE_MIN 512u
/*
 * A packet that changed in memory has no derived checksum that fits, and is lost each time. After
 * so many losses its bytes are read: it arrives, the far host drops it for its own check, and the
 * connection ends with an error instead of waiting for ever.
 */
#define CRC_DERIVE_LOSSES 8u

/* Writes the datagram's checksum. */
static void checksum(const struct wan_tunnel *t, const struct wan_out *o)
{
	struct wan_tx *tx = o->tx;
	const struct rwy_buf *b = tx->buf;

	if (o->s.flags & WAN_S_DATA && b && !tx->own && !tx->stream && !tx->off && tx->len == b->len &&
	    tx->len >= CRC_DERIVE_MIN && o->s.losses < CRC_DERIVE_LOSSES && b->kind == RWY_BUF_PACKET &&
	    t->cfg.ops->tx_crc)
		wan_pkt_seal_over(tx->hdr, tx->hdr_len, b, t->cfg.ops->tx_crc);
	else
		wan_pkt_seal(tx->hdr, tx->hdr_len, b ? b->data + tx->off : NULL, tx->len);
}

static void finish(struct wan_tunnel *t, struct wan_out *o, rwy_time now)
{
	struct wan_tx *tx = o->tx;
	struct wan_pkt h = {.version = WAN_VERSION,
	    .type = WAN_PKT_FRAMES,
	    .path = o->p->id,
	    .index = t->peer.index,
	    .pn = o->p->next_pn};
	bool sealed;

	tx->hdr_len = (uint16_t)(o->at - tx->hdr);
	tx->ect = mark(o);
	o->s.bytes = (uint16_t)(tx->hdr_len + tx->len + t->cfg.wire_overhead);
	o->fec = o->fec && wan_fec_takes(&o->p->fec, tx->hdr_len + tx->len, now);
	if (o->fec)
		h.flags = WAN_PKT_FEC;
	wan_pkt_put(tx->hdr, &h);
	sealed = t->keys && !tx->stream;
	/* A tag makes the checksum needless, but for what the peer may rebuild: it has no tag. */
	if (!sealed || o->fec)
		checksum(t, o);
	if (o->fec)
		add_to_group(o, now);
	if (t->paths > 1 && o->s.flags & WAN_S_DATA && wan_fec_message_ends(tx->buf))
		end_groups(t, o->p);
	if (sealed)
		wan_keys_mark(t, tx, h.path, h.pn);
	t->c.tx_datagrams++;
	t->c.tx_bytes += wan_tx_size(tx);
	o->p->sent_n++;
	o->p->sent_bytes += wan_tx_size(tx);
	if (o->p->use == WAN_USE_GRANTED)
		wan_paths_part(o->p, o->s.bytes);
	wan_loss_on_sent(o->p, &o->s, o->eliciting, now);
}

/* Returns the path that replaces p for datagrams that are due. A carrier that is there for detours
 * carries its own questions and answers. The peer may still send by a path that is used no more. */
static struct wan_path *via(const struct wan_tunnel *t, struct wan_path *p)
{
	if (t->st.on)
		return wan_stream_path(t);
	if (p->state == WAN_PATH_OFF)
		return t->first;
	return wan_path_is_stream(p) && !wan_detour_open(t) ? t->first : p;
}

static bool may_send(const struct wan_tunnel *t)
{
	return !t->st.on || t->st.room;
}

/* --- urgent datagrams ------------------------------------------------------------------------- */
/* The first of a timeout's two probes takes another path: p may be dead. */
static struct wan_path *probe_by(const struct wan_tunnel *t, struct wan_path *p, rwy_time now)
{
	struct wan_path *beside =
	    t->paths > 1 && !t->st.on && p->probes > 1 ? wan_paths_beside(p, now) : NULL;

	return beside ? beside : via(t, p);
}

static bool send_probe(struct wan_tunnel *t, struct wan_path *p, struct wan_tx *tx, rwy_time now)
{
	bool quiet = t->paths > 1 && !p->probes && !t->st.on; /* other paths carry what is urgent */
	struct wan_path *by;
	struct wan_out o;

	if ((!p->probes && !p->ping) || !may_send(t))
		return false;
	by = probe_by(t, p, now);
	if (!wan_loss_room(by, now) || !wan_loss_room(via(t, p), now))
		return false;
	begin(&o, tx, by);
	if (!p->probes || wan_path_is_stream(o.p) || !wan_data_probe(t, p, &o, now)) {
		o.p = via(t, p);
		tx->path = o.p->id;
		*o.at++ = WAN_F_PING;
		o.eliciting = !quiet;
		o.s.flags |= quiet ? WAN_S_PROBE : 0;
	}
	if (p->probes)
		p->probes--;
	p->ping = false;
	finish(t, &o, now);
	return true;
}

/* An unproven carrier carries no answers: they may not arrive. */
static struct wan_path *answer_by(const struct wan_tunnel *t, struct wan_path *p)
{
	return wan_path_is_stream(p) && !t->st.on && !t->detour.proven ? t->first : via(t, p);
}

static bool send_control(struct wan_tunnel *t, struct wan_path *p, struct wan_tx *tx, rwy_time now)
{
	struct wan_out o;
	struct wan_path *by = answer_by(t, p);
	bool usable = t->st.on || (by == t->first && wan_path_usable(by));
	bool ctl = usable && wan_ctl_next(t) <= now;

	if ((!ctl && !wan_ack_due(p, now)) || !may_send(t) || !wan_loss_room(by, now))
		return false;
	begin(&o, tx, by);
	wan_ack_put(p, &o, now);
	if (usable)
		wan_ctl_put(t, &o);
	if (o.at == tx->hdr + WAN_PKT_HDR)
		return false;
	finish(t, &o, now);
	return true;
}

/* --- data ------------------------------------------------------------------------------------- */
/* Returns the path that may send now. *first: what must arrive soon may go there. */
static struct wan_path *pick(struct wan_tunnel *t, bool *first, rwy_time now)
{
	struct wan_path *p = t->path;
	struct wan_choice c;

	*first = true;
	if (t->st.on)
		return wan_stream_open(t) ? wan_stream_path(t) : NULL;
	if (t->paths == 1)
		return wan_path_open(p) && wan_pace_ok(&p->pace, now) ? p : NULL;
	c = wan_paths_choose(t, now);
	p = wan_paths_pick(t, &c, now);
	*first = c.granted || p == c.best;
	t->last = p ? p : t->last;
	if (p && !wan_fec_idle(&p->fec))
		t->share = wan_paths_share(t, &c, p, now);
	return p;
}

static void put_repair(struct wan_out *o, rwy_time now)
{
	struct wan_f_repair r;
	struct wan_tx *tx = o->tx;

	tx->buf = wan_fec_next_repair(&o->p->fec, &r);
	o->at = wan_f_repair_put(o->at, &r);
	tx->off = 0;
	tx->len = tx->buf->len;
	tx->own = true;
	o->eliciting = true;
	wan_fec_repair_sent(&o->p->fec, (uint32_t)(o->at - tx->hdr) + tx->len, now);
}

static bool fill(struct wan_tunnel *t, struct wan_out *o, bool first, rwy_time now)
{
	if (first && t->again.n && wan_data_again(t, o, now))
		return true;
	if (!wan_path_is_stream(o->p) && wan_fec_pending(&o->p->fec)) {
		put_repair(o, now);
		return true;
	}
	if (first && t->copies.n && wan_data_copy(t, o, now))
		return true;
	/* Best effort goes before data, but in at most every other datagram. */
	if (first && t->dgrams.n) {
		t->dgram_turn = !t->dgram_turn;
		if ((t->dgram_turn || !wan_sched_any(&t->sched)) && wan_dgram_put(t, o, now))
			return true;
	}
	if (wan_data_new(t, o, now))
		return true;
	return first && t->dgrams.n && wan_dgram_put(t, o, now);
}

/* A process that slept too long sent less than the path allows, as if it had had no data: the rate
 * samples are marked so. */
static void catch_up(struct wan_tunnel *t, rwy_time now)
{
	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		if (wan_pace_catch_up(&p->pace, now))
			wan_rate_app_limited(p);
		p->pace.backlog = false;
		wan_fec_age(&p->fec, now);
	}
}

/* Nothing is left to send: the open FEC groups close. True: repairs wait now. */
static bool dry(struct wan_tunnel *t, rwy_time now)
{
	bool any = false;

	for (unsigned i = 0; i < t->paths && !t->st.on; i++)
		any |= wan_fec_dry(&t->path[i].fec, now);
	return any;
}

/* Data waits for the paths, or for room in the caller's array (`full`). One of several paths may
 * not be wanted for it. */
static void note_backlog(struct wan_tunnel *t, bool full, rwy_time now)
{
	bool data = !t->st.on && wan_data_waiting(t);

	for (unsigned i = 0; i < t->paths; i++) {
		struct wan_path *p = &t->path[i];
		bool open = data && wan_path_open(p);
		bool idle = open && t->paths > 1 && !full && wan_pace_ok(&p->pace, now);

		p->pace.backlog = open && !idle;
		if (idle)
			wan_rate_app_limited(p);
	}
}

static void note_app_limited(struct wan_tunnel *t)
{
	for (unsigned i = 0; i < t->paths; i++)
		if (wan_path_open(&t->path[i]))
			wan_rate_app_limited(&t->path[i]);
}

/* Adds to the n datagrams that are in `out`. */
static unsigned send_data(struct wan_tunnel *t, struct wan_tx *out, unsigned n, unsigned max, rwy_time now)
{
	while (n < max) {
		bool first;
		struct wan_path *p = pick(t, &first, now);
		struct wan_out o;

		if (!p) {
			note_backlog(t, false, now);
			break;
		}
		begin(&o, &out[n], p);
		if (!fill(t, &o, first, now)) {
			if (dry(t, now))
				continue;
			note_app_limited(t);
			t->first_only = !first;
			break;
		}
		finish(t, &o, now);
		n++;
	}
	if (n == max)
		note_backlog(t, true, now);
	return n;
}

/* Adds what takes the detour, beside pacing and window of the paths. */
static unsigned send_detour(struct wan_tunnel *t, struct wan_tx *out, unsigned n, unsigned max, rwy_time now)
{
	while (n < max && t->detour.q.n && wan_stream_open(t)) {
		struct wan_out o;

		begin(&o, &out[n], wan_stream_path(t));
		if (!wan_data_detour(t, &o, now))
			break;
		finish(t, &o, now);
		n++;
	}
	if (t->detour.q.n && !wan_stream_open(t))
		wan_detour_leave(t, now);
	return n;
}

unsigned wan_poll(struct wan_tunnel *t, struct wan_tx *out, unsigned max, rwy_time now)
{
	unsigned n = 0;

	if (t->woken)
		wan_rx_go_on(t, now);
	if (t->room_left && t->room_made) {
		t->room_left = t->room_made = false;
		wan_tx_wake_all(t);
	}
	if (t->claim.own == WAN_CLAIM_SILENT)
		return 0;
	while (n < max && wan_hs_put(t, &out[n], now))
		n++;
	if (!wan_hs_session(t) || !wan_may_speak(t))
		return n;
	t->polled = now;
	if (t->paths > 1) {
		t->first_only = false;
		wan_paths_first(t, now);
	}
	for (unsigned i = 0; i <= t->paths; i++) {
		struct wan_path *p = wan_path_nth(t, i);

		while (n < max && send_control(t, p, &out[n], now))
			n++;
		while (n < max && send_probe(t, p, &out[n], now))
			n++;
	}
	catch_up(t, now);
	if (t->detour.q.n)
		n = send_detour(t, out, n, max, now);
	return send_data(t, out, n, max, now);
}

/* On the reliable carrier everything due waits for room, and the carrier reports new room
 * itself. */
static rwy_time stream_next(const struct wan_tunnel *t)
{
	rwy_time next = wan_ctl_next(t);

	if (!t->st.room)
		return RWY_NEVER;
	for (unsigned i = 0; i <= t->paths; i++) {
		const struct wan_path *p = wan_path_nth(t, i);

		next = rwy_time_min(next, p->ack_at);
		if (p->probes || p->ping)
			next = 0;
	}
	if (!wan_stream_open(t))
		return next;
	if (wan_data_waiting(t))
		return 0;
	if (t->copies.n)
		next = rwy_time_min(next, t->copies.v[t->copies.head].due);
	return rwy_time_min(next, wan_sched_next(&t->sched));
}

/* With several paths: true if something that waits may go by p. */
static bool wanted(const struct wan_tunnel *t, const struct wan_choice *c, const struct wan_path *p)
{
	return p == c->best || wan_fec_pending(&p->fec) ||
	       (!t->first_only && wan_paths_takes(c, p, t->polled));
}

/* When the first open FEC group closes if nothing is left to send, and a path may send. */
static rwy_time dry_next(const struct wan_tunnel *t)
{
	rwy_time next = RWY_NEVER;

	for (unsigned i = 0; i < t->paths; i++)
		next = rwy_time_min(next, wan_fec_dry_next(&t->path[i].fec));
	return next;
}

rwy_time wan_send_next(const struct wan_tunnel *t)
{
	rwy_time next = t->woken || (t->room_left && t->room_made) ? 0 : wan_hs_next(t);

	if (!wan_hs_session(t) || !wan_may_speak(t))
		return next;
	if (t->detour.q.n)
		next = rwy_time_min(next, t->detour.not_before);
	if (t->st.on)
		return rwy_time_min(next, stream_next(t));
	if (t->detour.after && wan_stream_path(t)->ping)
		next = rwy_time_min(next, t->detour.not_before);
	bool data = wan_data_waiting(t);
	/* What a path that may send is asked for, if nothing waits now. */
	const rwy_time more = rwy_time_min(data ? RWY_NEVER : dry_next(t), wan_sched_next(&t->sched));
	struct wan_choice c = {0};

	if (t->paths > 1)
		c = wan_paths_choose(t, t->polled);
	next = rwy_time_min(next, wan_stream_path(t)->ack_at);
	for (unsigned i = 0; i < t->paths; i++) {
		const struct wan_path *p = &t->path[i];

		next = rwy_time_min(next, p->ack_at);
		if (p->probes || p->ping)
			next = 0;
		if (wan_path_usable(p))
			next = rwy_time_min(next, wan_ctl_next(t));
		next = rwy_time_min(next, wan_fec_next(&p->fec));
		if (!wan_path_open(p))
			continue;
		if (t->paths > 1 && !wanted(t, &c, p))
			continue;
		if (data || wan_fec_pending(&p->fec))
			next = rwy_time_min(next, p->pace.clock.at);
		else if (more != RWY_NEVER)
			next = rwy_time_min(next, rwy_time_max(p->pace.clock.at, more));
		if (t->copies.n)
			next = rwy_time_min(
			    next, rwy_time_max(p->pace.clock.at, t->copies.v[t->copies.head].due));
	}
	return next;
}
