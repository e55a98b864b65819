/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of ports, for captures. The decision about a received frame is what the counters say that
 * changed while it was handled; so no other code has to know of captures.
 */
#include "gateway/datapath/capture.h"

#include <rte_mbuf.h>
#include <string.h>

#include "gateway/datapath/edge.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/pkt.h"
#include "gateway/port/neigh.h"
#include "tenant/tenant.h"

#define HEAD 1024 /* bytes of a frame in several buffers that are read for facts */
static_assert(GW_CAP_BURST >= GW_TX_BUF, "a record for each frame of a queue");

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
	struct gw_cap_udp u;

	*off = gw_cap_udp(d, len, &u);
	if (!*off)
		return -1;
	for (unsigned i = 0; i < w->tunnels; i++)
		for (unsigned k = 0; w->tun[i].conf && k < w->tun[i].paths; k++)
			if (path_carries(w, &w->tun[i].path[k], p, &u, in))
				return (int)i;
	return -1;
}

/* --- counters --------------------------------------------------------------------------------- */

static void watch_group(struct gw_cap_worker *cw, const void *counters, unsigned first, size_t n)
{
	for (unsigned i = 0; i < n; i++) {
		const enum gw_cap_says says = gw_cap_reason_says(first + i);

		if (says != GW_CAP_SAYS_NOTHING)
			cw->watch[cw->watches++] =
			    (struct gw_cap_watch){.counter = counters ? (const uint64_t *)counters + i : NULL,
			        .reason = (uint16_t)(first + i),
			        .says = (uint8_t)says};
	}
}

/* Once a capture and worker. The tunnel's counters come last: which tunnel's they are changes. */
static void watches_make(struct gw_worker *w, struct gw_cap_worker *cw)
{
	cw->c = &w->c;
	watch_group(cw, &w->c, GW_CAP_OF_GATEWAY, sizeof(w->c) / 8);
	watch_group(cw, &w->ov->c, GW_CAP_OF_OVERLAY, sizeof(w->ov->c) / 8);
	watch_group(cw, eng_counters(w->eng), GW_CAP_OF_ENGINE, sizeof(struct eng_counters) / 8);
	if (w->edge)
		watch_group(cw, &w->edge->core.c, GW_CAP_OF_RELAY, sizeof(struct proxy_counters) / 8);
	cw->lasting = cw->watches;
	watch_group(cw, NULL, GW_CAP_OF_TUNNEL, sizeof(struct wan_counters) / 8);
}

/* The capture's part of this worker, ready for use. */
static struct gw_cap_worker *part_of(struct gw_worker *w)
{
	if (!w->cap->watches)
		watches_make(w, w->cap);
	return w->cap;
}

static void watch_begin(struct gw_worker *w, struct gw_cap_worker *cw, int tunnel)
{
	const struct wan_counters *c = tunnel < 0 ? NULL : eng_tunnel_counters(w->eng, (unsigned)tunnel);

	cw->watching = c ? cw->watches : cw->lasting;
	for (unsigned i = cw->lasting; i < cw->watching; i++)
		cw->watch[i].counter =
		    (const uint64_t *)(const void *)c + (cw->watch[i].reason - GW_CAP_OF_TUNNEL);
	for (unsigned i = 0; i < cw->watching; i++)
		cw->watch[i].before = *cw->watch[i].counter;
}

/* The drop that was counted meanwhile; else what else was. Returns what its kind is. */
static enum gw_cap_says watch_end(const struct gw_cap_worker *cw, uint16_t *reason)
{
	enum gw_cap_says says = GW_CAP_SAYS_NOTHING;

	*reason = 0;
	for (unsigned i = 0; i < cw->watching; i++) {
		const struct gw_cap_watch *v = &cw->watch[i];

		if (*v->counter == v->before || (says && v->says != GW_CAP_SAYS_DROP))
			continue;
		*reason = v->reason;
		says = (enum gw_cap_says)v->says;
		if (says == GW_CAP_SAYS_DROP)
			break;
	}
	return says;
}

/* --- received --------------------------------------------------------------------------------- */

/* Copies the frame, with the VLAN tag that the port took off. */
static void frame_copy(struct gw_cap_worker *cw, const struct rte_mbuf *m)
{
	const bool tag = m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && m->pkt_len >= GW_ETH;
	const uint32_t room = GW_CAP_SNAP_MAX - GW_VLAN;
	const uint32_t len = m->pkt_len < room ? m->pkt_len : room;
	uint8_t *to = cw->frame + (tag ? GW_VLAN : 0);
	const uint8_t *from = rte_pktmbuf_read(m, 0, len, to);

	if (from && from != to)
		memcpy(to, from, len);
	cw->frame_len = from ? len : 0;
	cw->frame_wire = m->pkt_len;
	if (!tag)
		return;
	memmove(cw->frame, to, 12);
	rwy_put16(cw->frame + 12, RWY_ETHER_VLAN);
	rwy_put16(cw->frame + 14, m->vlan_tci);
	cw->frame_len += GW_VLAN;
	cw->frame_wire += GW_VLAN;
}

static void counters_note(const struct gw_worker *w, struct gw_cap_rx *x)
{
	x->handoff = w->c.handoff;
	x->kernel = w->c.to_kernel;
	x->forwarded = w->c.sibling_tx + w->c.tenant_local;
}

void gw_cap_rx_begin(struct gw_worker *w, struct gw_cap_rx *x, const struct gw_port *p, struct rte_mbuf *m)
{
	struct gw_cap_worker *cw = part_of(w);
	const bool lan = p->conf->role == CONF_ROLE_LAN;
	int tunnel = -1;

	*x = (struct gw_cap_rx){.port = p->idx, .facts.stage = lan ? GW_CAP_LAN_IN : GW_CAP_WAN_IN};
	frame_copy(cw, m);
	if (lan)
		lan_facts(w, p, &x->facts, cw->frame, cw->frame_len);
	else
		tunnel = tunnel_of(w, p, cw->frame, cw->frame_len, &x->udp, true);
	if (tunnel < 0)
		x->udp = 0;
	if (x->udp && m->nb_segs == 1 && gw_cap_wan_sealed(cw->frame + x->udp, cw->frame_len - x->udp)) {
		const uint32_t moved = cw->frame_wire - m->pkt_len;

		rte_mbuf_refcnt_update(m, 1);
		x->sealed = m;
		x->datagram = rte_pktmbuf_mtod_offset(m, const uint8_t *, x->udp - moved);
	}
	counters_note(w, x);
	watch_begin(w, cw, tunnel);
}

void gw_cap_rx_relayed(struct gw_cap_rx *x, const struct rwy_buf *b)
{
	x->facts = (struct gw_cap_facts){.stage = x->facts.stage};
	gw_cap_facts_ip(&x->facts, b->data, b->len);
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
static void unsealed_copy(struct gw_cap_worker *cw, const struct gw_cap_rx *x)
{
	const uint32_t len = cw->frame_len - x->udp;

	if (len <= AEAD_TAG || x->datagram[3])
		return; /* it could not be opened */
	memcpy(cw->frame + x->udp, x->datagram, len - AEAD_TAG);
	cw->frame_len -= AEAD_TAG;
	cw->frame_wire -= AEAD_TAG;
	shorten(cw->frame, x->udp - UDP_LEN, AEAD_TAG);
}

static void decide(const struct gw_worker *w, const struct gw_cap_worker *cw, struct gw_cap_rx *x)
{
	const enum gw_cap_says says = watch_end(cw, &x->facts.reason);

	if (says == GW_CAP_SAYS_DROP)
		x->facts.decision = GW_CAP_DROP;
	else if (w->c.to_kernel != x->kernel)
		x->facts.decision = GW_CAP_KERNEL;
	else if (w->c.sibling_tx + w->c.tenant_local != x->forwarded)
		x->facts.decision = GW_CAP_FORWARD;
	else
		x->facts.decision = GW_CAP_TAKE;
}

void gw_cap_rx_end(struct gw_worker *w, struct gw_cap_rx *x)
{
	struct gw_cap_worker *cw = w->cap;
	struct iovec part = {.iov_base = cw->frame};

	if (x->sealed) {
		unsealed_copy(cw, x);
		rte_pktmbuf_free(x->sealed);
	}
	if (x->udp)
		gw_cap_facts_wan(&x->facts, &cw->frags, cw->frame + x->udp, cw->frame_len - x->udp);
	decide(w, cw, x);
	/* The worker that it was handed to tells of it. */
	if (w->c.handoff != x->handoff && x->facts.decision != GW_CAP_DROP)
		return;
	sender_find(w, &x->facts);
	part.iov_len = cw->frame_len;
	gw_cap_put(cw, &x->facts, x->port, w->now, &part, 1);
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
	sender_find(w, f);
	if (lan && cw->relayed)
		f->id = cw->relayed;
	return true;
}

static struct gw_cap_rec *tx_record(struct gw_worker *w, struct gw_cap_worker *cw, const struct gw_port *p,
    const struct rte_mbuf *m, const struct gw_cap_facts *f)
{
	struct gw_cap_rec *r = gw_cap_rec_new(cw, f, p->idx, w->now, m->pkt_len);
	uint8_t *to;
	const void *from;

	if (!r)
		return NULL;
	to = gw_cap_rec_bytes(r);
	from = rte_pktmbuf_read(m, 0, r->len, to);
	if (from && from != to)
		memcpy(to, from, r->len);
	return r;
}

void gw_cap_tx_begin(struct gw_worker *w, const struct gw_txq *q)
{
	struct gw_cap_worker *cw = part_of(w);

	for (unsigned i = 0; i < q->n; i++) {
		struct gw_cap_facts f;

		cw->sending[i] = NULL;
		if (tx_facts(w, cw, q->port, q->pkt[i], &f) && gw_cap_filter_takes(&cw->cap->filter, &f))
			cw->sending[i] = tx_record(w, cw, q->port, q->pkt[i], &f);
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
			if (gw_cap_filter_takes(&cw->cap->filter, &f))
				(void)tx_record(w, cw, q->port, q->pkt[i], &f);
		}
	}
	gw_cap_ring_publish(&cw->ring);
}

void gw_cap_tx_relayed(struct gw_worker *w, const struct eng_lan_tx *tx)
{
	struct gw_cap_facts f = {0};

	if (tx)
		gw_cap_facts_ip(&f, tx->buf ? tx->buf->data : tx->bytes, tx->buf ? tx->buf->len : tx->len);
	w->cap->relayed = f.id;
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
	struct gw_cap_worker *cw = part_of(w);
	const uint32_t body = tx->buf ? tx->len : 0;
	const uint8_t *data = tx->buf ? tx->buf->data + tx->off : NULL;
	uint8_t h[CLEAR_HEAD + WAN_HDR_MAX + HEAD];
	uint32_t n = head_make(h, t, nh, tx->hdr_len + body, tos, false), wan = n;
	const uint32_t some = body < HEAD ? body : HEAD;
	struct gw_cap_facts f = {.stage = GW_CAP_WAN_OUT, .decision = GW_CAP_SEND};

	if (tx->stream)
		f.reason = GW_CAP_OF_TUNNEL + offsetof(struct wan_counters, stream_sent) / 8;
	memcpy(h + n, tx->hdr, tx->hdr_len);
	h[wan + 1] &= (uint8_t)~1u; /* the key's phase, and the key set: it is in the clear here */
	h[wan + 3] = 0;
	n += tx->hdr_len;
	if (some)
		memcpy(h + n, data, some);
	gw_cap_facts_wan(&f, &cw->frags, h + wan, tx->hdr_len + some);
	sender_find(w, &f);
	gw_cap_put(cw, &f, t->port->idx, w->now, (struct iovec[]){{h, n}, {(void *)(uintptr_t)data, body}},
	    body ? 2 : 1);
}

void gw_cap_stream_begin(struct gw_worker *w, struct gw_cap_rx *x, unsigned tunnel, const struct rte_mbuf *m)
{
	struct gw_cap_worker *cw = part_of(w);
	const struct gw_tun_path *t = &w->tun[tunnel].path[0];
	const uint32_t len = m->data_len;

	*x = (struct gw_cap_rx){.port = t->port->idx, .facts.stage = GW_CAP_WAN_IN};
	x->udp = head_make(cw->frame, t, NULL, len, 0, true);
	cw->frame_len = cw->frame_wire = x->udp + len;
	if (cw->frame_len > GW_CAP_SNAP_MAX)
		cw->frame_len = GW_CAP_SNAP_MAX;
	memcpy(cw->frame + x->udp, rte_pktmbuf_mtod(m, const uint8_t *), cw->frame_len - x->udp);
	counters_note(w, x);
	watch_begin(w, cw, (int)tunnel);
}
