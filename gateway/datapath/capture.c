/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of ports, for captures. The decision about a received frame is what the counters say that
 * changed while it was handled; so no other code has to know of captures. Frames are received and
 * sent in bursts as without a capture; each is copied once, into the worker's ring.
 */
#include "gateway/datapath/capture_int.h"
#include "gateway/datapath/notes.h"

#include <rte_mbuf.h>
#include <string.h>

#include "gateway/datapath/pkt.h"
#include "gateway/port/neigh.h"
#include "tenant/tenant.h"

#define HEAD  1024 /* bytes of a frame in several buffers that are read for facts */
#define FACTS 256  /* bytes of a datagram in which its facts mostly are */
static_assert(GW_CAP_BURST >= GW_TX_BUF && GW_CAP_BURST >= GW_BURST, "a record for each frame");

/* --- whose packet it is ----------------------------------------------------------------------- */

static uint32_t tenant_of(const struct gw_worker *w, uint32_t vni)
{
	const struct tenant *t = vni ? tenant_by_vni(w->ts, vni) : NULL;

	return t ? t->index : 0;
}

static void sender_find(const struct gw_worker *w, struct gw_cap_facts *f)
{
	if (f->roce && !f->sqpn)
		f->sqpn = eng_sender_qpn(w->eng, tenant_of(w, f->vni), &f->src, &f->dst, f->dqpn);
}

static void lan_facts(const struct gw_worker *w, const struct gw_port *p, struct gw_cap_facts *f,
    const uint8_t *d, uint32_t len)
{
	const struct tenant *t;
	uint16_t type, vid;

	if (w->ts->n && gw_cap_l2(d, len, &type, &vid) && vid && vid != p->vlan &&
	    (t = tenant_by_vlan(w->ts, vid)) != NULL)
		f->vni = t->cfg.vni;
	gw_cap_facts_frame(f, d, len, w->ts->n != 0);
}

/* By the destination port, which is the same in both directions: a path's source port may be
 * another one. */
static bool path_carries(const struct gw_worker *w, const struct gw_tun_path *t, const struct gw_port *p,
    const struct gw_cap_udp *u, bool in)
{
	return t->port == p && u->dport == t->udp_port + w->idx &&
	       rwy_ip_eq(in ? &u->src : &u->dst, &t->remote) && rwy_ip_eq(in ? &u->dst : &u->src, &t->local);
}

/* The tunnel of a datagram to or from this worker's UDP port; -1: none. *off: of the datagram. */
static int tunnel_of(const struct gw_worker *w, const struct gw_port *p, const uint8_t *d, uint32_t len,
    uint32_t *off, bool in)
{
	const struct gw_peer_seen *seen;
	const struct rwy_ip *peer;
	struct gw_cap_udp u;

	*off = gw_cap_udp(d, len, &u);
	if (!*off)
		return -1;
	peer = in ? &u.src : &u.dst;
	seen = &w->peer_seen[(peer->b[15] ^ peer->b[14] << 3 ^ u.dport) % GW_PEERS_SEEN];
	if (seen->tunnel < w->tunnels && w->tun[seen->tunnel].conf &&
	    seen->path < w->tun[seen->tunnel].paths &&
	    path_carries(w, &w->tun[seen->tunnel].path[seen->path], p, &u, in))
		return seen->tunnel;
	for (unsigned i = 0; i < w->tunnels; i++)
		for (unsigned k = 0; w->tun[i].conf && k < w->tun[i].paths; k++)
			if (path_carries(w, &w->tun[i].path[k], p, &u, in))
				return (int)i;
	return -1;
}

/* --- received --------------------------------------------------------------------------------- */

/* A frame's bytes as the wire had them. */
struct view {
	const uint8_t *d;
	uint32_t len, wire_len; /* bytes at d; of the frame */
};

/* A frame in several buffers, or whose VLAN tag the port took off, is copied. */
static struct view frame_view(struct gw_cap_worker *cw, const struct rte_mbuf *m)
{
	const bool tag = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && m->pkt_len >= GW_ETH;
	const uint32_t room = GW_CAP_SNAP_MAX - GW_VLAN;
	const uint32_t len = m->pkt_len < room ? m->pkt_len : room;
	uint8_t *to = cw->frame + (tag ? GW_VLAN : 0);
	const uint8_t *from = rte_pktmbuf_read(m, 0, len, to);

	if (!from)
		return (struct view){cw->frame, 0, m->pkt_len};
	if (!tag)
		return (struct view){from, len, m->pkt_len};
	if (from != to)
		memcpy(to, from, len);
	memmove(cw->frame, to, 12);
	rwy_put16(cw->frame + 12, RWY_ETHER_VLAN);
	rwy_put16(cw->frame + 14, m->vlan_tci);
	return (struct view){cw->frame, len + GW_VLAN, m->pkt_len + GW_VLAN};
}

static void counters_note(const struct gw_worker *w, struct gw_cap_sealed *s)
{
	s->handoff = w->c.handoff;
	s->kernel = w->c.to_kernel;
	s->forwarded = w->c.sibling_tx + w->c.tenant_local;
}

void gw_cap_burst_begin(struct gw_worker *w)
{
	struct gw_cap_worker *cw = gw_cap_part(w);

	gw_cap_watch_begin(w, cw);
	cw->rx_n = 0;
	cw->open = true;
}

/* Copies the frame into the ring, unless the filter cannot take it. */
static void frame_place(struct gw_cap_worker *cw, struct gw_cap_rx *x, const struct view *v)
{
	x->wanted = gw_cap_filter_may(&cw->cap->filter, &x->facts);
	x->wire_len = v->wire_len;
	x->rec = x->wanted ? gw_cap_place(cw, v->wire_len) : NULL;
	x->end = cw->ring.next;
	if (!x->rec)
		return;
	if (x->rec->len > v->len)
		x->rec->len = (uint16_t)v->len;
	memcpy(gw_cap_rec_bytes(x->rec), v->d, x->rec->len);
}

void gw_cap_rx_begin(
    struct gw_worker *w, struct gw_cap_sealed *s, const struct gw_port *p, const struct rte_mbuf *m)
{
	struct gw_cap_worker *cw = w->cap;
	struct gw_cap_rx *x = &cw->rx[cw->rx_n];
	const bool lan = p->conf->role == CONF_ROLE_LAN;
	const struct view v = frame_view(cw, m);

	*s = (struct gw_cap_sealed){.tunnel = -1};
	x->port = p->idx;
	x->facts = (struct gw_cap_facts){.stage = lan ? GW_CAP_LAN_IN : GW_CAP_WAN_IN};
	if (lan) {
		lan_facts(w, p, &x->facts, v.d, v.len);
		x->facts.unread = w->edge != NULL; /* it will have other addresses */
	} else {
		s->tunnel = tunnel_of(w, p, v.d, v.len, &s->udp, true);
	}
	if (s->tunnel >= 0 && m->nb_segs == 1 && gw_cap_wan_sealed(v.d + s->udp, v.len - s->udp)) {
		s->m = (struct rte_mbuf *)(uintptr_t)m;
		rte_mbuf_refcnt_update(s->m, 1);
		s->datagram = rte_pktmbuf_mtod_offset(m, const uint8_t *, s->udp - (v.wire_len - m->pkt_len));
		x->facts.unread = true;
	} else if (s->tunnel >= 0) {
		gw_cap_facts_wan(&x->facts, &cw->frags, v.d + s->udp, v.len - s->udp);
	}
	frame_place(cw, x, &v);
	counters_note(w, s);
	gw_cap_watch_tunnel(w, cw, s->tunnel);
}

void gw_cap_rx_waits(struct gw_worker *w)
{
	struct gw_cap_worker *cw = w->cap;
	struct gw_cap_rx *x = &cw->rx[cw->rx_n];
	const struct rwy_buf *b = w->lan[w->lan_n - 1];

	if (w->edge) { /* a relay gave the packet other addresses: what is told is about these */
		x->facts = (struct gw_cap_facts){.stage = x->facts.stage};
		gw_cap_facts_ip(&x->facts, b->data, b->len);
	}
	cw->waiting[w->lan_n - 1] = (uint8_t)cw->rx_n++;
}

/* The frame's last bytes are gone: lengths and checksums of IP and UDP. */
static void shorten(uint8_t *frame, uint32_t udp_off, uint16_t by)
{
	uint16_t type, vid;
	uint8_t *ip = frame + gw_cap_l2(frame, udp_off, &type, &vid), *udp = frame + udp_off;

	rwy_put16(udp + 4, (uint16_t)(rwy_get16(udp + 4) - by));
	rwy_put16(udp + 6, 0);
	if (type == RWY_ETHER_IP4)
		rwy_ip4_set16(ip, 2, (uint16_t)(rwy_get16(ip + 2) - by));
	else
		rwy_put16(ip + 4, (uint16_t)(rwy_get16(ip + 4) - by));
}

/* Puts the opened datagram in the place of the sealed one. Its header says "in the clear" now. */
static void unseal(struct gw_cap_worker *cw, struct gw_cap_rx *x, const struct gw_cap_sealed *s)
{
	const uint32_t size = x->wire_len - s->udp;
	uint8_t *frame;

	x->facts.unread = false;
	if (size <= AEAD_TAG || s->datagram[3])
		return; /* it could not be opened */
	gw_cap_facts_wan(&x->facts, &cw->frags, s->datagram, size - AEAD_TAG);
	x->wire_len -= AEAD_TAG;
	if (!x->rec)
		return;
	if (x->rec->len > x->wire_len)
		x->rec->len = (uint16_t)x->wire_len;
	if (x->rec->len < s->udp)
		return;
	frame = gw_cap_rec_bytes(x->rec);
	memcpy(frame + s->udp, s->datagram, x->rec->len - s->udp);
	shorten(frame, s->udp - UDP_LEN, AEAD_TAG);
}

static bool takes(const struct gw_worker *w, const struct gw_cap_worker *cw, struct gw_cap_facts *f)
{
	const struct gw_cap_filter *filter = &cw->cap->filter;

	if (filter->asks_qpn)
		sender_find(w, f);
	return gw_cap_filter_takes(filter, f);
}

/* All is known of the frame. */
static void frame_decided(struct gw_worker *w, struct gw_cap_worker *cw, struct gw_cap_rx *x)
{
	x->facts.unread = false;
	if (!x->wanted || !takes(w, cw, &x->facts)) {
		if (x->rec)
			x->rec->skip = true;
		return;
	}
	sender_find(w, &x->facts);
	(void)gw_cap_keep(cw, x->rec, x->end, &x->facts, x->port, w->now, x->wire_len);
}

void gw_cap_rx_end(struct gw_worker *w, struct gw_cap_sealed *s)
{
	struct gw_cap_worker *cw = w->cap;
	struct gw_cap_rx *x = &cw->rx[cw->rx_n];
	enum gw_cap_says says;

	if (s->m) {
		unseal(cw, x, s);
		rte_pktmbuf_free(s->m);
	}
	says = gw_cap_watch_read(w, cw, s->tunnel, &x->facts.reason);
	if (says == GW_CAP_SAYS_DROP)
		x->facts.decision = GW_CAP_DROP;
	else if (w->c.handoff != s->handoff)
		x->wanted = false; /* the worker that it was handed to tells of it */
	else if (w->c.to_kernel != s->kernel)
		x->facts.decision = GW_CAP_KERNEL;
	else if (w->c.sibling_tx + w->c.tenant_local != s->forwarded)
		x->facts.decision = GW_CAP_FORWARD;
	else
		x->facts.decision = GW_CAP_TAKE;
	frame_decided(w, cw, x);
}

/* The engine had the packet. */
static void on_seen(void *worker, unsigned packet)
{
	struct gw_worker *w = worker;
	struct gw_cap_worker *cw = w->cap;
	struct gw_cap_rx *x = &cw->rx[cw->waiting[packet]];

	x->facts.decision =
	    gw_cap_watch_read(w, cw, -1, &x->facts.reason) == GW_CAP_SAYS_DROP ? GW_CAP_DROP : GW_CAP_TAKE;
	frame_decided(w, cw, x);
}

void gw_cap_burst_end(struct gw_worker *w)
{
	if (w->notes && gw_notes_take(w))
		gw_cap_watch_begin(w, w->cap); /* what they counted is no frame's */
	if (w->lan_n)
		eng_tenant_rx_seen(w->eng, w->lan, w->lan_tenant, w->lan_n, w->now, on_seen, w);
	w->lan_n = 0;
	w->cap->open = false;
	gw_cap_publish(w->cap);
}

/* --- sent ------------------------------------------------------------------------------------- */

/* Facts of a frame for the port. False: a sealed datagram. */
static bool tx_facts(struct gw_worker *w, struct gw_cap_worker *cw, const struct gw_port *p,
    const struct rte_mbuf *m, struct gw_cap_facts *f)
{
	const bool lan = p->conf->role == CONF_ROLE_LAN;
	uint8_t buf[HEAD];
	const uint32_t len = m->nb_segs == 1 || m->pkt_len < HEAD ? m->pkt_len : HEAD;
	const uint8_t *d = rte_pktmbuf_read(m, 0, len, buf);
	uint32_t off;

	*f = (struct gw_cap_facts){.stage = lan ? GW_CAP_LAN_OUT : GW_CAP_WAN_OUT, .decision = GW_CAP_SEND};
	if (!d)
		return true;
	if (lan) {
		lan_facts(w, p, f, d, len);
	} else if (tunnel_of(w, p, d, len, &off, false) >= 0) {
		if (gw_cap_wan_sealed(d + off, len - off))
			return false;
		gw_cap_facts_wan(f, &cw->frags, d + off, len - off);
	}
	if (lan && cw->relayed)
		f->id = cw->relayed;
	return true;
}

static struct gw_cap_rec *tx_record(struct gw_worker *w, struct gw_cap_worker *cw, const struct gw_port *p,
    const struct rte_mbuf *m, struct gw_cap_facts *f)
{
	struct gw_cap_rec *r;
	uint8_t *to;
	const void *from;

	if (!takes(w, cw, f))
		return NULL;
	sender_find(w, f);
	r = gw_cap_place(cw, m->pkt_len);
	if (!gw_cap_keep(cw, r, cw->ring.next, f, p->idx, w->now, m->pkt_len))
		return NULL;
	to = gw_cap_rec_bytes(r);
	from = rte_pktmbuf_read(m, 0, r->len, to);
	if (from && from != to)
		memcpy(to, from, r->len);
	return r;
}

void gw_cap_tx_begin(struct gw_worker *w, const struct gw_txq *q)
{
	struct gw_cap_worker *cw = gw_cap_part(w);

	for (unsigned i = 0; i < q->n; i++) {
		struct gw_cap_facts f;

		cw->sending[i] =
		    tx_facts(w, cw, q->port, q->pkt[i], &f) ? tx_record(w, cw, q->port, q->pkt[i], &f) : NULL;
	}
}

void gw_cap_tx_end(struct gw_worker *w, const struct gw_txq *q, unsigned sent, uint16_t drop)
{
	struct gw_cap_worker *cw = w->cap;

	for (unsigned i = sent; i < q->n; i++) {
		struct gw_cap_facts f;

		if (cw->sending[i]) {
			cw->sending[i]->facts.decision = GW_CAP_DROP;
			cw->sending[i]->facts.reason = drop;
		} else if (tx_facts(w, cw, q->port, q->pkt[i], &f)) {
			f.decision = GW_CAP_DROP;
			f.reason = drop;
			(void)tx_record(w, cw, q->port, q->pkt[i], &f);
		}
	}
	gw_cap_publish(cw);
}

void gw_cap_tx_relayed(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	struct gw_cap_facts f = {0};

	if (tx)
		gw_cap_facts_ip(&f, tx->buf ? tx->buf->data : tx->bytes, tx->buf ? tx->buf->len : tx->len);
	w->cap->relayed = gw_cap_id(&f);
}

/* --- datagrams in the clear that no port has -------------------------------------------------- */

#define CLEAR_HEAD (GW_L2_MAX + IP6_LEN + UDP_LEN)

/* Writes Ethernet, IP and UDP of a path's datagram of `size` bytes. Returns their length. */
static uint32_t head_make(
    uint8_t *h, const struct gw_tun_path *t, const struct gw_nh *nh, uint32_t size, uint8_t tos, bool in)
{
	const bool v4 = t->ip_len == IP4_LEN;
	const uint32_t l2 = nh ? nh->l2_len : GW_ETH, a = v4 ? 12 : 8, n = v4 ? 4 : 16;
	uint8_t *ip = h + l2, *udp = ip + t->ip_len;

	memset(h, 0, l2);
	if (nh)
		memcpy(h, nh->l2, l2);
	rwy_put16(ip - 2, v4 ? RWY_ETHER_IP4 : RWY_ETHER_IP6);
	memcpy(ip, t->hdr, t->ip_len + UDP_LEN);
	if (in) {
		memcpy(ip + a, t->hdr + a + n, n);
		memcpy(ip + a + n, t->hdr + a, n);
	}
	rwy_put16(udp + 4, (uint16_t)(UDP_LEN + size));
	if (v4) {
		ip[1] = tos;
		rwy_put16(ip + 2, (uint16_t)(IP4_LEN + UDP_LEN + size));
		rwy_put16(ip + 10, (uint16_t)~rwy_csum_fold(rwy_csum(ip, IP4_LEN)));
	} else {
		rwy_put16(ip, (uint16_t)(0x6000 | tos << 4));
		rwy_put16(ip + 4, (uint16_t)(UDP_LEN + size));
	}
	return l2 + t->ip_len + UDP_LEN;
}

void gw_cap_wan_out(struct gw_worker *w, const struct gw_tun_path *t, const struct gw_nh *nh,
    const struct wan_tx *tx, uint8_t tos)
{
	struct gw_cap_worker *cw = gw_cap_part(w);
	const uint32_t body = tx->buf ? tx->len : 0;
	const uint8_t *data = tx->buf ? tx->buf->data + tx->off : NULL;
	uint8_t h[CLEAR_HEAD + WAN_HDR_MAX + HEAD];
	uint32_t n = head_make(h, t, nh, tx->hdr_len + body, tos, false), wan = n;
	uint32_t some = body < FACTS ? body : FACTS;
	struct gw_cap_facts f = {.stage = GW_CAP_WAN_OUT, .decision = GW_CAP_SEND};

	if (tx->stream)
		f.reason = GW_CAP_OF_TUNNEL + offsetof(struct wan_counters, stream_sent) / 8;
	memcpy(h + n, tx->hdr, tx->hdr_len);
	h[wan + 1] &= (uint8_t)~1u; /* the key's phase, and the key set: it is in the clear here */
	h[wan + 3] = 0;
	n += tx->hdr_len;
	if (some)
		memcpy(h + n, data, some);
	if (!gw_cap_facts_wan(&f, &cw->frags, h + wan, tx->hdr_len + some) && body > some) {
		/* fragments and runs have lengths that must be there */
		some = body < HEAD ? body : HEAD;
		memcpy(h + n, data, some);
		gw_cap_facts_wan(&f, &cw->frags, h + wan, tx->hdr_len + some);
	}
	if (!takes(w, cw, &f))
		return;
	sender_find(w, &f);
	gw_cap_put(cw, &f, t->port->idx, w->now, (struct iovec[]){{h, n}, {(void *)(uintptr_t)data, body}},
	    body ? 2 : 1);
}

void gw_cap_stream_begin(
    struct gw_worker *w, struct gw_cap_sealed *s, unsigned tunnel, const struct rte_mbuf *m)
{
	struct gw_cap_worker *cw = w->cap;
	const struct gw_tun_path *t = &w->tun[tunnel].path[0];
	struct gw_cap_rx *x = &cw->rx[cw->rx_n];
	const uint32_t head = head_make(cw->frame, t, NULL, m->data_len, 0, true);
	const uint32_t room = GW_CAP_SNAP_MAX - head, len = m->data_len < room ? m->data_len : room;

	*s = (struct gw_cap_sealed){.tunnel = (int)tunnel};
	x->port = t->port->idx;
	x->facts = (struct gw_cap_facts){.stage = GW_CAP_WAN_IN};
	memcpy(cw->frame + head, rte_pktmbuf_mtod(m, const uint8_t *), len);
	gw_cap_facts_wan(&x->facts, &cw->frags, cw->frame + head, len);
	frame_place(cw, x, &(struct view){cw->frame, head + len, head + m->data_len});
	counters_note(w, s);
	gw_cap_watch_tunnel(w, cw, s->tunnel);
}
