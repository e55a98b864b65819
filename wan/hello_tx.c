/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HELLOs that are sent: when one is due, what it says, and by which path and carrier it goes.
 * handshake.c says why.
 */
#include "wan/hello.h"
#include "wan/tunnel.h"

/* By the reliable carrier, in the clear, or sealed. */
static bool may_send(const struct wan_tunnel *t)
{
	return (t->st.on && t->st.room) || !t->keys || wan_keys_ready(t);
}

/*
 * Sends f by the reliable carrier if that is in use; natively if it must, and can, go so. tries: it
 * is sealed with the key set that was offered last.
 */
static void put(struct wan_tunnel *t, struct wan_tx *tx, const struct wan_f_hello *f, uint8_t path,
    bool native, bool tries)
{
	struct wan_pkt p = {.version = WAN_VERSION, .type = WAN_PKT_HELLO, .path = path};
	bool stream = t->st.on && t->st.room && !(native && (!t->keys || wan_keys_ready(t)));
	bool sealed = t->keys && !stream;

	if (sealed)
		p.pn = t->keys->hellos++;
	wan_pkt_put(tx->hdr, &p);
	tx->hdr_len = (uint16_t)(wan_f_hello_put(tx->hdr + WAN_PKT_HDR, f) - tx->hdr);
	tx->buf = NULL;
	tx->key = NULL;
	tx->off = tx->len = 0;
	tx->own = tx->ect = tx->congested = false;
	tx->stream = stream;
	if (stream)
		t->st.room--;
	if (sealed)
		wan_keys_mark_hello(t, tx, f->echo_epoch, tries, p.pn);
	else
		wan_pkt_seal(tx->hdr, tx->hdr_len, NULL, 0);
	tx->class_id = 0;
	tx->has_dscp = false;
	tx->path = path;
	t->c.tx_datagrams++;
	t->c.tx_bytes += wan_tx_size(tx);
}

static bool put_gone(struct wan_tunnel *t, struct wan_tx *tx)
{
	struct wan_claims *c = &t->claim;
	struct wan_f_hello f = {.flags = (uint8_t)(WAN_HELLO_GONE | (c->refuse_over ? WAN_HELLO_HELD : 0)),
	    .tunnel_id = t->cfg.tunnel_id,
	    .epoch = t->cfg.epoch,
	    .echo = c->refuse_nonce,
	    .echo_epoch = c->refuse_epoch};

	c->refuse = false;
	put(t, tx, &f, c->refuse_path, c->refuse_native, false);
	return true;
}

/* The echo is for the peer that we believe. */
static bool echoes_peer(const struct wan_tunnel *t)
{
	return wan_hs_session(t) && t->peer.epoch == t->hs.peer_epoch;
}

/* The HELLO to answer has a claim that counts only with an answer to ours: to bring us up, or since
 * by its number it may be an old one. */
static bool doubts(const struct wan_tunnel *t)
{
	return t->claim.reply_n && (!wan_hs_up(t) || t->claim.reply_n != t->peer.claim_n);
}

static bool asks(const struct wan_tunnel *t, bool timer, rwy_time now)
{
	return !echoes_peer(t) || (timer && !t->hs.repeats) || wan_claim_asks(t, now) || doubts(t);
}

static struct wan_f_hello hello(const struct wan_tunnel *t, bool timer, rwy_time now)
{
	const struct wan_hs *h = &t->hs;

	return (struct wan_f_hello){
	    .flags = (uint8_t)((asks(t, timer, now) ? WAN_HELLO_WANT : 0) |
	                       (t->cfg.fec == WAN_FEC_AUTO ? WAN_HELLO_FEC : 0) | WAN_HELLO_PCP |
	                       WAN_HELLO_ORDER | wan_claim_flags(t, echoes_peer(t))),
	    .claim = wan_claim_byte(t),
	    .mtu = (uint16_t)t->mtu_own,
	    .index = wan_hs_index(t, h->peer_epoch),
	    .tunnel_id = t->cfg.tunnel_id,
	    .epoch = t->cfg.epoch,
	    .nonce = h->nonce,
	    .echo = h->peer_nonce,
	    .echo_epoch = h->peer_epoch,
	    .rx_window = t->cfg.rx_window,
	    .ack_delay_us = (uint32_t)(t->cfg.max_ack_delay / RWY_US),
	    .rx_bytes = t->cfg.rx_bytes,
	    .rx_cost = t->cfg.rx_cost,
	    .more = WAN_HELLO_RUN | WAN_HELLO_BUNDLE,
	};
}

/* HELLOs go by the paths in turn. Path 0 is never off. */
static uint8_t next_path(const struct wan_tunnel *t)
{
	unsigned i = t->hs_path;

	do
		i = i + 1 < t->paths ? i + 1 : 0;
	while (i && t->path[i].state == WAN_PATH_OFF);
	return (uint8_t)i;
}

bool wan_hs_put(struct wan_tunnel *t, struct wan_tx *tx, rwy_time now)
{
	struct wan_hs *h = &t->hs;

	if (now >= h->next && h->state == WAN_HS_UP)
		h->next = RWY_NEVER;
	if (!may_send(t))
		return false;
	if (t->claim.refuse)
		return put_gone(t, tx);
	bool timer = now >= h->next && wan_claim_speaks(t);
	bool claim = now >= t->claim.next;
	bool tries = !h->reply && wan_keys_tries(t, now);

	if (!timer && !claim && !h->reply && !tries)
		return false;
	if (!h->reply && t->claim.reply_n && !h->tries && wan_hs_up(t) && !echoes_peer(t))
		wan_witness_forget_asker(t);
	struct wan_f_hello f = hello(t, timer, now);

	if (tries) {
		f.flags |= WAN_HELLO_WANT;
		wan_keys_tried(t, now);
	}
	if (f.echo == h->spare)
		wan_claim_spare(t, 0, now);
	put(t, tx, &f, t->hs_path, tries || (h->reply && t->claim.native), tries);
	h->reply = false;
	h->sent_at = now;
	if (!h->sent_n++)
		h->first_at = now;
	if (timer || claim)
		t->hs_path = next_path(t);
	if (wan_claim_asks(t, now))
		wan_claim_sent(t, now);
	if (timer)
		wan_hs_event(t, WAN_HSE_TIMER, &(struct wan_hs_what){.now = now});
	return true;
}

rwy_time wan_hs_next(const struct wan_tunnel *t)
{
	if (!may_send(t) || t->claim.own == WAN_CLAIM_SILENT)
		return RWY_NEVER;
	if (t->hs.reply || t->claim.refuse)
		return 0;
	if (!wan_claim_speaks(t))
		return RWY_NEVER;
	return rwy_time_min(rwy_time_min(t->hs.next, t->claim.next), t->keys ? t->keys->try_at : RWY_NEVER);
}
