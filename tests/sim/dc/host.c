/* SPDX-License-Identifier: Apache-2.0 */
/* A host: finds the queue pair of a packet, and models a NIC that receives less than the line
 * carries. */
#include <math.h>
#include <stdlib.h>

#include "tests/sim/dc/nic.h"

#define RX_XOFF  (256u << 10) /* bytes at which a slow NIC pauses its switch */
#define RX_XON   (128u << 10)
#define PFC_WIRE 84

static void take(struct host *h, struct dc_pkt *p, rwy_time now)
{
	struct dc *dc = h->n.dc;
	uint32_t id = dc_qp_id(p->dqpn);
	struct qp *qp = id < dc->qp_n ? dc->qps[id] : NULL;

	if (p->dqpn == DC_IP_QPN) {
		dc_ip_rx(dc, p, now);
		dc_pkt_put(dc, p);
		return;
	}

	if (!qp || (qp->inter ? (p->dqpn & 1 ? qp->dst : qp->src) != h->n.id : qp->gen != p->gen)) {
		if (qp && qp->inter)
			dc_violation(dc, "a packet for another host", p->dqpn, h->n.id);
		dc_pkt_put(dc, p); /* belongs to an earlier connection */
		return;
	}
	if (qp->deaf && p->kind != DC_DATA) {
		dc_pkt_put(dc, p);
		return;
	}
	switch ((enum dc_kind)p->kind) {
	case DC_DATA:
		qp_data(qp, p, now);
		break;
	case DC_ACK:
	case DC_NAK:
		if (qp->sr)
			sr_acked(qp, p, now);
		else
			qp_acked(qp, p->psn, p->aux, p->kind == DC_NAK, now);
		break;
	case DC_CNP:
		qp_cnp(qp, now);
		break;
	case DC_PFC:
		break;
	}
	dc_pkt_put(dc, p);
}

static void pause(struct host *h, bool on, rwy_time now)
{
	struct dc_pkt *p = dc_pkt_get(h->n.dc);

	p->kind = DC_PFC;
	p->wire = PFC_WIRE;
	p->aux = on;
	h->rx_xoff = on;
	dc_port_send(&h->n.port[0], p, now);
}

static rwy_dur rx_time(const struct host *h, const struct dc_pkt *p)
{
	return (p->wire * h->rx_ns_byte) >> 24;
}

static void on_drain(struct ev *ev, rwy_time now)
{
	struct host *h = EV_OWNER(ev, struct host, rx_ev);
	struct dc_pkt *p = dc_pktq_pop(&h->rxq);

	take(h, p, now);
	if (h->rx_xoff && h->rxq.bytes < RX_XON)
		pause(h, false, now);
	if (h->rxq.head)
		ev_set(&h->n.dc->evq, &h->rx_ev, now + rx_time(h, h->rxq.head));
}

static void on_rx(struct node *n, struct port *in, struct dc_pkt *p, rwy_time now)
{
	struct host *h = (struct host *)n;

	if (p->kind != DC_DATA || (!h->rx_ns_byte && !h->rxq.head)) {
		take(h, p, now);
		return;
	}
	dc_pktq_push(&h->rxq, p);
	if (!h->rx_ev.pos)
		ev_set(&n->dc->evq, &h->rx_ev, now + rx_time(h, p));
	if (!h->rx_xoff && h->rxq.bytes > RX_XOFF)
		pause(h, true, now);
}

static struct dc_pkt *on_pull(struct node *n, struct port *p, rwy_time now)
{
	return qp_pull((struct host *)n, now);
}

static const struct node_ops host_ops = {.rx = on_rx, .pull = on_pull};

void dc_host_slow(struct dc *dc, unsigned host, double bits)
{
	dc->host[host].rx_ns_byte = bits > 0 ? (uint64_t)llround(8e9 / bits * (1 << 24)) : 0;
}

void dc_hosts_init(struct dc *dc)
{
	dc->host = calloc(dc->hosts, sizeof(*dc->host));
	if (!dc->host)
		abort();
	for (unsigned i = 0; i < dc->hosts; i++) {
		dc_node_init(&dc->host[i].n, dc, &host_ops, dc_site(dc, i), i, 1);
		dc->host[i].rx_ev.fn = on_drain;
	}
}

void dc_hosts_fini(struct dc *dc)
{
	for (unsigned i = 0; dc->host && i < dc->hosts; i++)
		dc_node_fini(&dc->host[i].n);
	free(dc->host);
}

struct port *dc_host_port(struct dc *dc, unsigned host)
{
	return &dc->host[host].n.port[0];
}
