/* SPDX-License-Identifier: Apache-2.0 */
/* Links: serialization, delay, pause, loss. A wire is a FIFO with one event, for its first
 * packet. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/dc.h"

#define FRAC 24

static void on_wire(struct ev *ev, rwy_time now)
{
	struct port *p = EV_OWNER(ev, struct port, wire_ev), *to = p->peer;
	struct dc_pkt *pkt;

	while (p->wire.head && p->wire.head->at <= now) {
		pkt = dc_pktq_pop(&p->wire);
		if (pkt->kind == DC_PFC) {
			bool pause = pkt->aux;

			dc_pkt_put(p->dc, pkt);
			if (to->paused && !pause)
				to->paused_for += now - to->paused_at;
			if (!to->paused && pause) {
				to->paused_at = now;
				to->pauses++;
			}
			to->paused = pause;
			if (!pause)
				dc_port_kick(to, now);
			continue;
		}
		to->node->ops->rx(to->node, to, pkt, now);
	}
	if (p->wire.head)
		ev_set(&p->dc->evq, &p->wire_ev, p->wire.head->at);
}

static void on_free(struct ev *ev, rwy_time now)
{
	dc_port_kick(EV_OWNER(ev, struct port, free_ev), now);
}

static void transmit(struct port *p, struct dc_pkt *pkt, rwy_time now)
{
	uint64_t t = pkt->wire * p->ns_byte + p->frac;
	rwy_time last = p->wire.tail ? p->wire.tail->at : 0;

	p->frac = t & ((1u << FRAC) - 1);
	p->free_at = now + (t >> FRAC);
	p->packets++;
	p->bytes += pkt->wire;
	if ((p->wan && dc_outage(p->dc)) || (p->loss > 0 && dc_unit(p->dc) <= p->loss)) {
		p->lost++;
		dc_pkt_put(p->dc, pkt);
		return;
	}
	pkt->at = p->free_at + p->delay;
	if (p->jitter)
		pkt->at = rwy_time_max(last, pkt->at + (rwy_dur)(dc_unit(p->dc) * (double)p->jitter));
	dc_pktq_push(&p->wire, pkt);
	if (p->wire.head == pkt)
		ev_set(&p->dc->evq, &p->wire_ev, pkt->at);
}

void dc_port_kick(struct port *p, rwy_time now)
{
	const struct node_ops *ops = p->node->ops;
	struct dc_pkt *pkt;

	if (now < p->free_at) {
		if (!p->free_ev.pos)
			ev_set(&p->dc->evq, &p->free_ev, p->free_at);
		return;
	}
	pkt = dc_pktq_pop(&p->q[0]);
	if (!pkt && !p->paused) {
		pkt = dc_pktq_pop(&p->q[1]);
		if (!pkt && ops->pull)
			pkt = ops->pull(p->node, p, now);
		else if (pkt && ops->sent)
			ops->sent(p->node, p, pkt, now);
	}
	if (!pkt)
		return;
	transmit(p, pkt, now);
	if (p->q[0].n || (!p->paused && (p->q[1].n || ops->pull)))
		ev_set(&p->dc->evq, &p->free_ev, p->free_at);
}

void dc_port_send(struct port *p, struct dc_pkt *pkt, rwy_time now)
{
	struct dc_pktq *q = &p->q[pkt->kind == DC_DATA];

	dc_pktq_push(q, pkt);
	if (q->bytes > p->peak && pkt->kind == DC_DATA)
		p->peak = q->bytes;
	dc_port_kick(p, now);
}

void dc_port_rate(struct port *p, double bits)
{
	p->ns_byte = (uint64_t)llround(8e9 / bits * (1u << FRAC));
}

void dc_link(struct port *a, struct port *b, double bits, rwy_dur delay)
{
	a->peer = b;
	b->peer = a;
	a->delay = b->delay = delay;
	dc_port_rate(a, bits);
	dc_port_rate(b, bits);
}

void dc_node_init(
    struct node *n, struct dc *dc, const struct node_ops *ops, unsigned site, unsigned id, unsigned ports)
{
	*n = (struct node){.dc = dc, .ops = ops, .site = site, .id = id, .ports = ports};
	n->port = calloc(ports, sizeof(*n->port));
	if (!n->port)
		abort();
	for (unsigned i = 0; i < ports; i++) {
		n->port[i].dc = dc;
		n->port[i].node = n;
		n->port[i].idx = i;
		n->port[i].wire_ev.fn = on_wire;
		n->port[i].free_ev.fn = on_free;
	}
}

void dc_node_fini(struct node *n)
{
	free(n->port);
	n->port = NULL;
}
