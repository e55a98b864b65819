/* SPDX-License-Identifier: Apache-2.0 */
/* A host that sends to queue pairs that nobody has, or floods CM; see hostile.h. */
#include "tests/sim/dc/hostile.h"

#define WRITE_WIRE(len) ((len) + DC_OVERHEAD + 16)
#define CM_WIRE         (DC_OVERHEAD + 8 + 256)
#define QUEUE_MAX       (256u << 10) /* bytes in front of its port: a pause of its switch holds it up */
#define FEW             8u           /* half of the packets are for so few queue pairs */

static struct dc_pkt *make(struct hostile *h)
{
	struct dc *dc = h->dc;
	struct dc_pkt *p = dc_pkt_get(dc);
	uint64_t r = rng_next(&h->rng);

	p->kind = DC_DATA;
	p->ecn = DC_ECT;
	p->src = 0;
	p->dst = (uint16_t)(dc->per_site + r % dc->per_site);
	p->hash = (uint32_t)(r >> 32);
	p->psn = h->n & 0xffffff;
	h->n++;
	if (dc->s.hostile == HOSTILE_CM) {
		p->dqpn = 1;
		p->len = 256;
		p->wire = CM_WIRE;
		return p;
	}
	p->dqpn = DC_BOGUS_QPN + (uint32_t)(r >> 20) % (r >> 63 ? FEW : DC_BOGUS_QPN);
	p->first = p->last = p->ackreq = true;
	p->len = (uint16_t)dc->s.pmtu;
	p->aux = p->len;
	p->wire = WRITE_WIRE(p->len);
	return p;
}

static void on_send(struct ev *ev, rwy_time now)
{
	struct hostile *h = EV_OWNER(ev, struct hostile, ev);
	const struct scen *s = &h->dc->s;
	struct port *port = dc_host_port(h->dc, 0);
	struct dc_pkt *p;

	if (now >= h->dc->zero + (rwy_time)s->time)
		return;
	p = make(h);
	ev_set(&h->dc->evq, ev, now + 1 + (rwy_dur)(p->wire * 8e9 / s->hrate));
	if (port->q[1].bytes < QUEUE_MAX)
		dc_port_send(port, p, now);
	else
		dc_pkt_put(h->dc, p);
}

void dc_hostile_begin(struct hostile *h, struct dc *dc)
{
	*h = (struct hostile){.dc = dc, .ev = {.fn = on_send}, .rng = dc->rng_work ^ 0xbad};
	if (dc->s.hostile == HOSTILE_BOGUS || dc->s.hostile == HOSTILE_CM)
		ev_set(&dc->evq, &h->ev, dc->evq.now + 1);
}
