/* SPDX-License-Identifier: Apache-2.0 */
/* Receives a datagram: header, checksum, duplicates, then each frame goes to its file. Malformed
 * bytes are counted and dropped. */
#include "wan/ahead.h"
#include "wan/hello.h"
#include "wan/tunnel.h"

/* A datagram that is being read. */
struct in {
	struct wan_tunnel *t;
	struct wan_path *p;
	const uint8_t *at, *end;
	struct rwy_buf *b; /* NULL once a frame took it over */
	bool eliciting, again;
	uint8_t flags; /* flags of the datagram */
};

/* In state UP a datagram changes nothing: no call. */
static void note_alive(struct wan_tunnel *t, rwy_time now)
{
	t->last_rx = now;
	if (t->hs.state != WAN_HS_UP)
		wan_hs_event(t, WAN_HSE_DATAGRAM, &(struct wan_hs_what){.now = now});
}

static bool frame_ack(struct in *i, uint8_t type, rwy_time now)
{
	struct wan_f_ack a;
	const uint8_t *next = wan_f_ack_get(i->at, i->end, type, &a);

	struct wan_path *p = next ? wan_path_of(i->t, a.path) : NULL;

	if (!p || !p->sent)
		return false;
	i->at = next;
	wan_loss_on_ack(p, &a, now);
	return true;
}

static bool frame_delivered(struct in *i, rwy_time now)
{
	if (i->end - i->at < 1)
		return false;
	unsigned n = *i->at++;

	if ((size_t)(i->end - i->at) < (size_t)n * WAN_DELIVERED_ENTRY)
		return false;
	for (; n; n--, i->at += WAN_DELIVERED_ENTRY) {
		if (n > WAN_AHEAD_DELIVERED)
			wan_fetch_delivered(
			    i->t, rwy_get32(i->at + (size_t)WAN_AHEAD_DELIVERED * WAN_DELIVERED_ENTRY));
		if (!wan_tx_on_delivered(i->t, rwy_get32(i->at), rwy_get32(i->at + 4), now))
			return false;
	}
	return true;
}

static bool frame_rate(struct in *i)
{
	if (i->end - i->at < 1)
		return false;
	unsigned n = *i->at++;

	if ((size_t)(i->end - i->at) < (size_t)n * WAN_RATE_ENTRY)
		return false;
	for (; n; n--, i->at += WAN_RATE_ENTRY)
		wan_tx_on_rate(i->t, rwy_get32(i->at), rwy_get64(i->at + 4), rwy_get64(i->at + 12));
	return true;
}

static bool frame_credit(struct in *i)
{
	struct wan_peer *peer = &i->t->peer;

	if (i->end - i->at < WAN_CREDIT_LEN - 1 || !rwy_get32(i->at))
		return false;
	peer->rx_window = rwy_get32(i->at);
	peer->rx_bytes = rwy_get64(i->at + 4);
	i->at += WAN_CREDIT_LEN - 1;
	wan_tx_wake_all(i->t);
	return true;
}

/* ABORT and RESET have a flow id. */
static bool frame_flow(struct in *i, uint8_t type, rwy_time now)
{
	static_assert(WAN_ABORT_LEN == WAN_RESET_LEN, "one length for both");
	if (i->end - i->at < WAN_ABORT_LEN - 1)
		return false;
	uint32_t id = rwy_get32(i->at);

	if (type == WAN_F_ABORT)
		i->again |= !wan_rx_on_abort(i->t, id, now);
	else
		wan_tx_on_reset(i->t, id, now);
	i->at += WAN_ABORT_LEN - 1;
	return true;
}

/* DATA, DGRAM, RUN or BUNDLE: the payload is the rest of the datagram. The buffer is handed on; its
 * headers become headroom. The packets of a RUN or BUNDLE get buffers of their own. */
static bool frame_data(struct in *i, rwy_time now)
{
	struct wan_f_data d;
	const uint8_t *payload = wan_f_data_get(i->at, i->end, &d);
	struct rwy_buf *b = i->b;

	if (!payload)
		return false;
	uint32_t skip = (uint32_t)(payload - b->data);

	i->at = i->end;
	if (d.run) {
		i->again |= (d.bundle ? wan_bundle_rx(i->t, &d, payload, now)
		                      : wan_run_rx(i->t, &d, payload, now)) == WAN_ACCEPT_RETRY;
		return true;
	}
	b->data += skip;
	b->len -= skip;
	b->headroom = (uint16_t)(b->headroom + skip);
	i->b = NULL;
	if (d.dgram)
		wan_dgram_rx(i->t, &d, b, now);
	else
		i->again |= wan_rx_data(i->t, &d, b, now) == WAN_ACCEPT_RETRY;
	return true;
}

static bool frame_rebuilt(struct in *i, rwy_time now)
{
	if (i->end - i->at < WAN_REBUILT_HEAD - 1 || i->at[0] >= i->t->paths)
		return false;
	struct wan_path *p = &i->t->path[i->at[0]];
	unsigned n = i->at[1];

	i->at += WAN_REBUILT_HEAD - 1;
	if ((size_t)(i->end - i->at) < (size_t)n * WAN_REBUILT_ENTRY)
		return false;
	for (; n; n--, i->at += WAN_REBUILT_ENTRY)
		wan_loss_on_rebuilt(p, rwy_get64(i->at), i->at[8] + 1u, now);
	return true;
}

static bool frame_repair(struct in *i, rwy_time now)
{
	struct wan_f_repair r;
	const uint8_t *symbol = wan_f_repair_get(i->at, i->end, &r);
	struct rwy_buf *b = i->b;

	if (!symbol)
		return false;
	uint32_t skip = (uint32_t)(symbol - b->data);

	b->data += skip;
	b->len -= skip;
	b->headroom = (uint16_t)(b->headroom + skip);
	i->at = i->end;
	i->b = NULL;
	wan_fec_on_repair(&i->t->fec, &r, i->flags, b, now);
	return true; /* the frame is well-formed, whatever it says */
}

static bool frame(struct in *i, rwy_time now)
{
	uint8_t type = *i->at;

	if (type == WAN_F_REPAIR || type == WAN_F_SHARED) {
		i->eliciting = true;
		return frame_repair(i, now);
	}
	if (type >= WAN_F_DATA) {
		i->eliciting = true;
		return (type <= (WAN_F_DGRAM | WAN_DATA_FRAG) || type == WAN_F_RUN || type == WAN_F_BUNDLE) &&
		       frame_data(i, now);
	}
	i->at++;
	if (type == WAN_F_ACK || type == WAN_F_ACK_ECN)
		return frame_ack(i, type, now);
	if (type == WAN_F_REBUILT)
		return frame_rebuilt(i, now);
	i->eliciting = true;
	if (type == WAN_F_PING)
		return true;
	if (type == WAN_F_DELIVERED)
		return frame_delivered(i, now);
	if (type == WAN_F_CREDIT)
		return frame_credit(i);
	if (type == WAN_F_RATE)
		return frame_rate(i);
	return (type == WAN_F_ABORT || type == WAN_F_RESET) && frame_flow(i, type, now);
}

static void count_ecn(struct wan_path *p, uint8_t ecn)
{
	p->ect1 += (ecn & 3) == 1;
	p->ect0 += (ecn & 3) == 2;
	p->ce += (ecn & 3) == 3;
}

/* Reads the frames of a datagram that passed the checks of header and checksum. Takes ownership of
 * b. */
static void frames(
    struct wan_tunnel *t, struct wan_path *p, uint64_t pn, struct rwy_buf *b, uint8_t ecn, rwy_time now)
{
	struct in i = {.t = t,
	    .p = p,
	    .at = b->data + WAN_PKT_HDR,
	    .end = b->data + b->len,
	    .b = b,
	    .flags = b->data[1]};
	bool good = true;

	t->c.rx_datagrams++;
	t->c.rx_bytes += b->len;
	p->rx_n++;
	p->rx_bytes += b->len;
	t->c.stream_received += wan_path_is_stream(p);
	p->last_rx = now;
	note_alive(t, now);
	count_ecn(p, ecn);
	while (good && i.at < i.end)
		good = frame(&i, now);
	if (!good)
		t->c.drop_bad_frame++;
	else if (!i.again)
		wan_ack_on_received(p, pn, i.eliciting, now);
	if (i.b)
		rwy_buf_free(&t->cfg.bufs, i.b);
}

/*
 * Checks the header. True: the frames may be read. *crc: the checksum field, which is cleared. What
 * is sealed is opened first: whatever else the header says is then the peer's.
 */
static bool accept(
    struct wan_tunnel *t, struct rwy_buf *b, struct wan_pkt *h, uint32_t *crc, bool stream, rwy_time now)
{
	bool sealed = t->keys && !stream;

	if (b->len <= WAN_PKT_HDR + (sealed ? AEAD_TAG : 0) || b->len > UINT16_MAX) {
		t->c.drop_short++;
		return false;
	}
	if (sealed && !wan_keys_open(t, b, now))
		return false;
	wan_pkt_get(b->data, h);
	if (h->version != WAN_VERSION || h->type > WAN_PKT_HELLO || (h->flags & ~WAN_PKT_FLAGS)) {
		t->c.drop_version++;
		return false;
	}
	if (h->type == WAN_PKT_FRAMES &&
	    (!wan_hs_session(t) || h->index != t->index || !wan_path_of(t, h->path) ||
	        wan_path_is_stream(wan_path_of(t, h->path)) != stream)) {
		t->c.drop_unknown_tunnel++;
		wan_hs_event(t, WAN_HSE_STRANGER, &(struct wan_hs_what){.now = now});
		wan_witness_on_stranger(t, h->index, h->path < t->paths ? h->path : 0, !stream, now);
		return false;
	}
	*crc = rwy_get32(b->data + 16);
	if (!sealed && !wan_pkt_open(b->data, b->len)) {
		t->c.drop_crc++;
		return false;
	}
	/* Numbers below the floor are forgotten and count as duplicates. The reliable carrier sends
	 * nothing twice, but one of its connections may be far behind the others. */
	if (h->type == WAN_PKT_FRAMES && !(stream && h->pn < wan_stream_path(t)->seen.floor) &&
	    wan_ranges_has(&wan_path_of(t, h->path)->seen, h->pn)) {
		t->c.drop_duplicate_pn++;
		return false;
	}
	if (h->pn >> 62) {
		t->c.drop_bad_frame++;
		return false;
	}
	return true;
}

static void rebuilt(void *ctx, uint8_t path, uint64_t pn, struct rwy_buf *b, rwy_time now)
{
	struct wan_tunnel *t = ctx;
	struct wan_path *p = &t->path[path];

	frames(t, p, pn, b, 0, now);
	if (wan_ranges_has(&p->seen, pn))
		p->ack_at = now; /* the peer waits for this ACK */
}

const struct wan_fec_ops wan_recv_fec_ops = {.rebuilt = rebuilt};

static void receive(struct wan_tunnel *t, struct wan_path *from, struct rwy_buf *b, uint8_t ecn, rwy_time now)
{
	const struct wan_rxflow *f;
	struct wan_pkt h;
	uint32_t crc;

	if (t->claim.own == WAN_CLAIM_SILENT) {
		t->c.drop_silent++;
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	wan_stir(t);
	f = wan_fetch_received(t, b);
	if (!accept(t, b, &h, &crc, wan_path_is_stream(from), now)) {
		rwy_buf_free(&t->cfg.bufs, b);
		return;
	}
	if (h.type == WAN_PKT_HELLO) {
		wan_hs_recv(t, from, b->data + WAN_PKT_HDR, b->len - WAN_PKT_HDR, now);
		rwy_buf_free(&t->cfg.bufs, b);
	} else if (!wan_claim_speaks(t)) {
		t->c.drop_silent++;
		note_alive(t, now);
		rwy_buf_free(&t->cfg.bufs, b);
	} else {
		struct wan_path *p = wan_path_of(t, h.path);

		if (f)
			wan_fetch_rx_user(t, f);
		if (h.flags & WAN_PKT_FEC && !wan_path_is_stream(p))
			wan_fec_keep(&p->fec, h.pn, crc, b->data + WAN_PKT_HDR, b->len - WAN_PKT_HDR);
		frames(t, p, h.pn, b, ecn, now);
		if (h.flags & WAN_PKT_FEC && !wan_path_is_stream(p) && wan_fec_waiting(&t->fec))
			wan_fec_on_data(&p->fec, h.pn, now);
	}
	if (t->woken)
		wan_rx_go_on(t, now);
	if (t->tx_retired)
		wan_tx_reap(t);
	if (t->rx_retired)
		wan_rx_reap(t);
}

void wan_recv(struct wan_tunnel *t, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now)
{
	receive(t, &t->path[path < t->paths ? path : 0], b, ecn, now);
}

void wan_recv_stream(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now)
{
	receive(t, wan_stream_path(t), b, 0, now);
}
