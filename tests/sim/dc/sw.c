/* SPDX-License-Identifier: Apache-2.0 */
/* Switches: routing, buffer, marking, pausing; see net.h. */
#include "tests/sim/dc/dc.h"

#define PFC_WIRE 84 /* 64 bytes, preamble, gap */
#define MTU_WIRE 4200

/* Upwards by the flow's hash, downwards by the destination. */
static struct port *route(const struct sw *s, const struct dc_pkt *p)
{
	const struct dc *dc = s->n.dc;
	bool here = dc_site(dc, p->dst) == s->n.site;
	unsigned local = p->dst % dc->per_site, leaf = local / dc->per_leaf;

	switch (s->kind) {
	case SW_LEAF:
		if (here && leaf == s->n.id)
			return &s->n.port[local % dc->per_leaf];
		return &s->n.port[dc->per_leaf + p->hash % dc->spines];
	case SW_SPINE:
		return &s->n.port[here ? leaf : dc->leaves];
	case SW_BORDER:
		if (here)
			return &s->n.port[p->hash % dc->spines];
		return &s->n.port[dc->spines + (s->n.ports > dc->spines + 1
		                                       ? dc_peer_no(s->n.site, dc_site(dc, p->dst))
		                                       : 0)];
	}
	return NULL;
}

static void pfc(struct port *in, bool pause, rwy_time now)
{
	struct dc_pkt *p = dc_pkt_get(in->dc);

	p->kind = DC_PFC;
	p->wire = PFC_WIRE;
	p->aux = pause;
	in->xoff = pause;
	dc_port_send(in, p, now);
}

static uint64_t unused(const struct sw *s)
{
	uint64_t shared = s->buf - s->headroom;

	return s->used < shared ? shared - s->used : 0;
}

/* Marks by RED on the egress queue that the packet joins. */
void dc_sw_mark(struct port *out, struct dc_pkt *p)
{
	uint64_t q = out->q[1].bytes;

	if (!out->kmax || q <= out->kmin || p->ecn == DC_CE)
		return;
	if (q < out->kmax &&
	    dc_unit(out->dc) * (double)(out->kmax - out->kmin) > (double)(q - out->kmin) * out->dc->s.pmax)
		return;
	p->ecn = DC_CE;
	out->marked++;
}

void dc_sw_enqueue(struct sw *s, struct dc_pkt *p, rwy_time now)
{
	struct dc *dc = s->n.dc;
	struct port *out = route(s, p);

	if (p->kind == DC_DATA && !(s->ruled && out->idx == dc->spines))
		dc_sw_mark(out, p); /* for packets to the WAN the rule has done the marking */
	dc_port_send(out, p, now);
}

static bool has_room(const struct sw *s, const struct port *out, const struct dc_pkt *p)
{
	const struct scen *c = &s->n.dc->s;

	if (s->used + p->wire > s->buf)
		return false;
	return c->pfc == SCEN_ON || (double)(out->q[1].bytes + p->wire) <= c->alpha * (double)unused(s);
}

static void on_rx(struct node *n, struct port *in, struct dc_pkt *p, rwy_time now)
{
	struct sw *s = (struct sw *)n;
	struct dc *dc = n->dc;
	struct port *out = route(s, p);

	if (p->kind == DC_DATA) {
		if (!has_room(s, out, p)) {
			out->dropped++;
			s->dropped++;
			dc_pkt_put(dc, p);
			return;
		}
		s->used += p->wire;
		if (s->used > s->peak)
			s->peak = s->used;
		p->in = (uint16_t)in->idx;
		in->held += p->wire;
		if (in->held > in->held_peak)
			in->held_peak = in->held;
		if (in->pfc && !in->xoff && (double)in->held > dc->s.pfc_alpha * (double)unused(s))
			pfc(in, true, now);
	}
	if (!s->ruled || dc->border_rule(dc, s, in, out, p, now))
		dc_sw_enqueue(s, p, now);
}

static void on_sent(struct node *n, struct port *out, struct dc_pkt *p, rwy_time now)
{
	struct sw *s = (struct sw *)n;
	struct port *in = &n->port[p->in];

	s->used -= p->wire;
	in->held -= p->wire;
	if (in->xoff &&
	    (!in->held || (double)(in->held + 2 * MTU_WIRE) < n->dc->s.pfc_alpha * (double)unused(s)))
		pfc(in, false, now);
}

static const struct node_ops sw_ops = {.rx = on_rx, .sent = on_sent};

void dc_sw_init(
    struct sw *s, struct dc *dc, enum sw_kind kind, unsigned site, unsigned id, unsigned ports, uint64_t buf)
{
	dc_node_init(&s->n, dc, &sw_ops, site, id, ports);
	s->kind = kind;
	s->buf = buf;
}

void dc_sw_ready(struct sw *s)
{
	const struct scen *c = &s->n.dc->s;

	s->ruled = s->kind == SW_BORDER && s->n.dc->border_rule;
	for (unsigned i = 0; i < s->n.ports; i++) {
		struct port *p = &s->n.port[i];
		double bits = 8e9 * (1 << 24) / (double)p->ns_byte;
		bool wan = s->kind == SW_BORDER && i >= s->n.dc->spines && c->mode == MODE_NATIVE;

		if (c->ecn == SCEN_ON) {
			p->kmin = (uint64_t)(wan ? c->wkmin : c->kmin * bits / 100e9);
			p->kmax = (uint64_t)(wan ? c->wkmax : c->kmax * bits / 100e9) + 1;
		}
		/* No pause crosses the WAN. */
		p->pfc = c->pfc == SCEN_ON && !wan;
		if (p->pfc) /* room for packets that were sent before the pause arrives */
			s->headroom += (uint64_t)(2 * (double)p->delay * bits / 8e9) + 3 * MTU_WIRE;
	}
	if (s->headroom > s->buf / 2)
		s->headroom = s->buf / 2;
}
