/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is there: HELLO both ways, until each side has seen its own fresh nonce come back. What a HELLO says
 * about its sender (epoch, index, credit) is believed only with that proof, so an old or forged one never
 * resets a live tunnel; it costs an answer at most.
 *
 *   A: HELLO want, nonce a                    ->
 *                                             <-  B: HELLO want, nonce b, echo a     A believes B
 *   A: HELLO nonce a', echo b                 ->                                     B believes A
 *
 * A sends data at once, which B drops as a stranger's as long as the last HELLO is missing. So A repeats it,
 * closely at first, until something comes that only a believer sends. And B, when strange data comes while it
 * knows nobody, asks at once: there is somebody who knows B.
 *
 * A new epoch, believed, is a restart of the peer. The index a gateway gives depends on the peer's epoch, so
 * that datagrams of two lives of a gateway cannot be taken for each other.
 *
 * Without keys this keeps out accidents and blind forgery, not somebody who reads the path: that is what
 * `security` is for.
 */
#include <string.h>

#include "wan/tunnel.h"

#define INTERVAL_MIN    (100 * RWY_MS)
#define INTERVAL_MAX    RWY_SEC
#define CHALLENGE_TRIES 5
#define REPEAT_FIRST    (2 * RWY_MS)
#define REPEATS         9       /* a second in all */
#define INDEX_MIX       0xffffu /* the upper half stays as configured: a front end may steer by it */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static void nonce_fresh(struct wan_tunnel *t, rwy_time now)
{
	struct wan_hs *h = &t->hs;

	h->nonce = mix(mix(t->cfg.epoch + ++h->counter) ^ mix(now ^ (uint64_t)t->cfg.index << 32));
	if (!h->nonce)
		h->nonce = 1;
	h->sent_n = 0;
}

static uint32_t index_for(const struct wan_tunnel *t, uint64_t peer_epoch)
{
	return t->cfg.index ^ (uint32_t)(mix(peer_epoch) & INDEX_MIX);
}

void wan_hs_init(struct wan_tunnel *t, rwy_time now)
{
	t->hs.interval = INTERVAL_MIN;
	t->hs.next = now;
	nonce_fresh(t, now);
}

void wan_hs_probe(struct wan_tunnel *t, rwy_time now)
{
	t->hs.interval = INTERVAL_MIN;
	t->hs.next = now;
}

void wan_hs_stranger(struct wan_tunnel *t, rwy_time now)
{
	if (!t->session && rwy_since(t->hs.sent_at, now) >= INTERVAL_MIN)
		wan_hs_probe(t, now);
}

/* --- out ---------------------------------------------------------------------------------------- */
static bool satisfied(const struct wan_tunnel *t)
{
	return t->session && t->up && !t->hs.tries && !t->hs.repeats;
}

static void schedule(struct wan_tunnel *t, rwy_time now)
{
	struct wan_hs *h = &t->hs;

	if (satisfied(t)) {
		h->next = RWY_NEVER;
		return;
	}
	h->next = now + h->interval;
	h->interval = rwy_time_min(h->interval * 2, INTERVAL_MAX);
}

bool wan_hs_put(struct wan_tunnel *t, struct wan_tx *tx, rwy_time now)
{
	struct wan_hs *h = &t->hs;
	bool timer = now >= h->next;

	if (timer && satisfied(t)) {
		h->next = RWY_NEVER;
		timer = false;
	}
	if (!timer && !h->reply)
		return false;
	bool known = t->session && t->peer.epoch == h->peer_epoch;
	bool ask = !known || (timer && !h->repeats);
	struct wan_f_hello f = {
	    .flags = (uint8_t)((ask ? WAN_HELLO_WANT : 0) | (t->cfg.fec == WAN_FEC_AUTO ? WAN_HELLO_FEC : 0)),
	    .mtu = (uint16_t)t->mtu_own,
	    .index = index_for(t, h->peer_epoch),
	    .tunnel_id = t->cfg.tunnel_id,
	    .epoch = t->cfg.epoch,
	    .nonce = h->nonce,
	    .echo = h->peer_nonce,
	    .echo_epoch = h->peer_epoch,
	    .rx_window = t->cfg.rx_window,
	    .ack_delay_us = (uint32_t)(t->cfg.max_ack_delay / RWY_US),
	    .rx_bytes = t->cfg.rx_bytes,
	};
	struct wan_pkt p = {.version = WAN_VERSION, .type = WAN_PKT_HELLO, .path = t->hs_path};

	wan_pkt_put(tx->hdr, &p);
	tx->hdr_len = (uint16_t)(wan_f_hello_put(tx->hdr + WAN_PKT_HDR, &f) - tx->hdr);
	wan_pkt_seal(tx->hdr, tx->hdr_len, NULL, 0);
	tx->buf = NULL;
	tx->off = tx->len = 0;
	tx->own = tx->ect = tx->congested = false;
	tx->stream = t->st.on && t->st.room;
	if (tx->stream)
		t->st.room--;
	tx->class_id = 0;
	tx->path = t->hs_path;
	h->reply = false;
	h->sent_at = now;
	h->sent_n++;
	if (timer) {
		if (h->tries)
			h->tries--;
		if (h->repeats)
			h->repeats--;
		t->hs_path = (uint8_t)(t->hs_path + 1u < t->paths ? t->hs_path + 1u : 0);
		schedule(t, now);
	}
	t->c.tx_datagrams++;
	t->c.tx_bytes += tx->hdr_len;
	return true;
}

rwy_time wan_hs_next(const struct wan_tunnel *t)
{
	return t->hs.reply ? 0 : t->hs.next;
}

/* --- in ----------------------------------------------------------------------------------------- */
static void peer_set(struct wan_tunnel *t, const struct wan_f_hello *f)
{
	t->peer.epoch = f->epoch;
	t->peer.index = f->index;
	t->peer.rx_window = f->rx_window;
	t->peer.rx_bytes = f->rx_bytes;
	t->peer.ack_delay = f->ack_delay_us * RWY_US;
	t->peer.mtu = f->mtu;
	t->fec.peer = f->flags & WAN_HELLO_FEC;
	t->mtu_min = t->fec.mtu = f->mtu < t->mtu_own ? f->mtu : t->mtu_own;
	t->index = t->fec.index = index_for(t, f->epoch);
}

static void restarted(struct wan_tunnel *t, const struct wan_f_hello *f, rwy_time now)
{
	t->c.peer_restarts++;
	for (unsigned i = 0; i <= t->paths; i++)
		wan_path_restart(&t->path[i], now);
	peer_set(t, f);
	wan_fec_rx_reset(&t->fec);
	wan_rx_end_all(t, WAN_CLOSE_PEER_RESET, now);
	wan_tx_restart(t, now);
}

/* The HELLO echoes our nonce: it is from now, and what it says is true. */
static void believe(struct wan_tunnel *t, struct wan_path *p, const struct wan_f_hello *f, rwy_time now)
{
	bool first = !t->session, again = t->session && t->peer.epoch != f->epoch;

	if (t->hs.sent_n == 1 && !p->has_rtt)
		wan_rtt_sample(p, now - t->hs.sent_at, 0, now);
	nonce_fresh(t, now);
	t->hs.tries = 0;
	t->hs.repeats = f->flags & WAN_HELLO_WANT ? REPEATS : 0;
	t->hs.interval = REPEAT_FIRST;
	t->last_rx = p->last_rx = now;
	p->usable = true;
	t->session = true;
	if (again) {
		restarted(t, f, now);
	} else if (first) {
		peer_set(t, f);
		wan_tx_wake_all(t);
	}
	if (!t->up)
		t->since = now;
	if ((first || again || !t->up) && t->cfg.ops->state) {
		t->up = true;
		t->cfg.ops->state(t->cfg.ctx, true, again, now);
	}
	t->up = true;
	schedule(t, now);
}

void wan_hs_recv(struct wan_tunnel *t, struct wan_path *p, const uint8_t *body, size_t len, rwy_time now)
{
	struct wan_f_hello f;

	if (!wan_f_hello_get(body, len, &f)) {
		t->c.drop_bad_frame++;
		return;
	}
	if (f.tunnel_id != t->cfg.tunnel_id || f.epoch == t->cfg.epoch) {
		t->c.drop_unknown_tunnel++;
		return;
	}
	t->c.rx_datagrams++;
	t->c.rx_bytes += len + WAN_PKT_HDR;
	if (f.flags & WAN_HELLO_WANT) {
		bool unknown = !t->session || t->peer.epoch != f.epoch;

		t->hs.reply = true;
		t->hs.peer_nonce = f.nonce;
		t->hs.peer_epoch = f.epoch;
		t->hs_path = p->stream ? 0 : p->id;
		if (unknown && t->session && !t->hs.tries) {
			t->hs.tries = CHALLENGE_TRIES; /* ask again by ourselves, should the answer be lost */
			t->hs.interval = INTERVAL_MIN;
			t->hs.next = now + INTERVAL_MIN;
		}
	}
	if (f.echo && f.echo == t->hs.nonce && f.echo_epoch == t->cfg.epoch)
		believe(t, p, &f, now);
}
