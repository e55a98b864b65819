/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the sites, runs them and frees them; memory pools. */
#include "tests/sim/dc/dc.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/dc/nic.h"
#include "tests/sim/dc/gw.h"

#define PKT_CHUNK 1024

/* --- memory ----------------------------------------------------------------------------------------- */

/* Blocks form a list through their first pointer. */
void *dc_alloc(struct dc *dc, size_t size)
{
	size_t all = (size + 64 + 63) & ~(size_t)63;
	uint8_t *p = aligned_alloc(64, all);

	if (!p)
		abort();
	memset(p, 0, all);
	memcpy(p, &dc->chunks, sizeof(dc->chunks));
	dc->chunks = p;
	return p + 64;
}

struct dc_pkt *dc_pkt_get(struct dc *dc)
{
	struct dc_pkt *p = dc->pkt_free;

	if (!p) {
		p = dc_alloc(dc, PKT_CHUNK * sizeof(*p));
		for (unsigned i = 0; i < PKT_CHUNK; i++, p++) {
			p->next = dc->pkt_free;
			dc->pkt_free = p;
		}
		p = dc->pkt_free;
	}
	dc->pkt_free = p->next;
	memset(p, 0, sizeof(*p));
	if (++dc->pkts_live > dc->pkts_peak)
		dc->pkts_peak = dc->pkts_live;
	return p;
}

void dc_pkt_put(struct dc *dc, struct dc_pkt *p)
{
	p->next = dc->pkt_free;
	dc->pkt_free = p;
	dc->pkts_live--;
}

void dc_violation(struct dc *dc, const char *what, uint64_t a, uint64_t b)
{
	if (!dc->c.violations++)
		snprintf(dc->first_violation, sizeof(dc->first_violation), "%s (%llu, %llu)", what,
		    (unsigned long long)a, (unsigned long long)b);
}

/* --- building ---------------------------------------------------------------------------------------- */

static void site_init(struct dc *dc, unsigned site)
{
	const struct scen *s = &dc->s;
	rwy_dur d = (rwy_dur)s->delay;
	struct sw *border = &dc->border[site];

	dc->leaf[site] = dc_alloc(dc, dc->leaves * sizeof(struct sw));
	dc->spine[site] = dc_alloc(dc, dc->spines * sizeof(struct sw));
	for (unsigned i = 0; i < dc->leaves; i++)
		dc_sw_init(
		    &dc->leaf[site][i], dc, SW_LEAF, site, i, dc->per_leaf + dc->spines, (uint64_t)s->buf);
	for (unsigned i = 0; i < dc->spines; i++)
		dc_sw_init(&dc->spine[site][i], dc, SW_SPINE, site, i, dc->leaves + 1, (uint64_t)s->buf);
	dc_sw_init(border, dc, SW_BORDER, site, 0, dc->spines + (s->mode == MODE_NATIVE ? dc->sites - 1 : 1),
	    (uint64_t)(s->mode == MODE_NATIVE ? s->bbuf : s->buf));
	for (unsigned i = 0; i < dc->per_site; i++)
		dc_link(dc_host_port(dc, site * dc->per_site + i),
		    &dc->leaf[site][i / dc->per_leaf].n.port[i % dc->per_leaf], s->rate, d);
	for (unsigned k = 0; k < dc->spines; k++) {
		struct sw *sp = &dc->spine[site][k];

		for (unsigned i = 0; i < dc->leaves; i++)
			dc_link(&dc->leaf[site][i].n.port[dc->per_leaf + k], &sp->n.port[i], s->frate, d);
		dc_link(&sp->n.port[dc->leaves], &border->n.port[k], s->frate, d);
	}
}

static void ready(struct dc *dc, unsigned site)
{
	for (unsigned i = 0; i < dc->leaves; i++)
		dc_sw_ready(&dc->leaf[site][i]);
	for (unsigned i = 0; i < dc->spines; i++)
		dc_sw_ready(&dc->spine[site][i]);
	dc_sw_ready(&dc->border[site]);
}

static void native_link(struct dc *dc, unsigned a, unsigned b)
{
	const struct scen *s = &dc->s;
	struct port *out[2] = {&dc->border[a].n.port[dc->spines + dc_peer_no(a, b)],
	    &dc->border[b].n.port[dc->spines + dc_peer_no(b, a)]};

	dc_link(out[0], out[1], s->wan, (rwy_dur)(dc_rtt(dc, a, b) / 2));
	for (unsigned i = 0; i < 2; i++) {
		out[i]->loss = s->loss;
		out[i]->wan = true;
		out[i]->jitter = (rwy_dur)s->jitter;
	}
}

static void between(struct dc *dc)
{
	const struct scen *s = &dc->s;

	if (s->mode == MODE_NATIVE) {
		for (unsigned i = 0; i < dc->sites; i++)
			for (unsigned k = i + 1; k < dc->sites; k++)
				native_link(dc, i, k);
		dc_rules_init(dc);
		return;
	}
	for (unsigned i = 0; i < dc->sites; i++) {
		dc_gw_init(dc, i);
		dc_link(
		    dc_gw_port(dc->gw[i]), &dc->border[i].n.port[dc->spines], s->gwrate, (rwy_dur)s->delay);
	}
}

struct dc *dc_new(const struct scen *s)
{
	struct dc *dc = calloc(1, sizeof(*dc));

	if (!dc)
		abort();
	dc->given = *s;
	dc->s = scen_resolved(s);
	s = &dc->s;
	dc->evq.now = dc->zero = RWY_SEC; /* not 0, which means "not set" in places */
	dc->rng_net = (uint64_t)s->seed * 2 + 1;
	dc->rng_work = (uint64_t)s->seed * 2;
	dc->sites = s->sites;
	dc->leaves = (unsigned)s->leaves;
	dc->per_leaf = (unsigned)s->hosts;
	dc->spines = (unsigned)s->spines;
	dc->per_site = dc->leaves * dc->per_leaf;
	dc->hosts = dc->sites * dc->per_site;
	dc->hash = 0xcbf29ce484222325u;
	dc_hosts_init(dc);
	for (unsigned i = 0; i < dc->sites; i++)
		site_init(dc, i);
	between(dc);
	for (unsigned i = 0; i < dc->sites; i++)
		ready(dc, i);
	return dc;
}

/* --- running ------------------------------------------------------------------------------------------ */

void dc_run(struct dc *dc, rwy_time until, bool (*stop)(void *ctx), void *ctx)
{
	while (ev_step(&dc->evq, until))
		if (stop && stop(ctx))
			return;
}

static bool node_quiet(const struct node *n)
{
	for (unsigned i = 0; i < n->ports; i++)
		if (n->port[i].q[0].n || n->port[i].q[1].n || n->port[i].wire.n)
			return false;
	return true;
}

bool dc_quiet(const struct dc *dc)
{
	if (dc->pkts_live)
		return false; /* each packet has a record */
	for (unsigned i = 0; i < dc->sites; i++)
		if (!node_quiet(&dc->border[i].n) || (dc->gw[i] && !dc_gw_quiet(dc->gw[i])))
			return false;
	return true;
}

bool dc_gws_up(const struct dc *dc)
{
	for (unsigned i = 0; i < dc->sites; i++)
		if (!dc_gw_up(dc->gw[i]))
			return false;
	return true;
}

static void site_fini(struct dc *dc, unsigned site)
{
	for (unsigned i = 0; i < dc->leaves; i++)
		dc_node_fini(&dc->leaf[site][i].n);
	for (unsigned i = 0; i < dc->spines; i++)
		dc_node_fini(&dc->spine[site][i].n);
	dc_node_fini(&dc->border[site].n);
}

void dc_free(struct dc *dc, struct dc_counts *c)
{
	for (unsigned i = 0; i < dc->sites; i++) {
		if (dc->gw[i])
			dc_gw_fini(dc, i);
		site_fini(dc, i);
	}
	dc_rules_fini(dc);
	for (uint32_t i = 0; i < dc->qp_n; i++)
		sr_free(dc->qps[i]);
	dc_hosts_fini(dc);
	if (c)
		*c = dc->c;
	dc_ip_fini(dc);
	evq_fini(&dc->evq);
	free(dc->qps);
	while (dc->chunks) {
		void *next;

		memcpy(&next, dc->chunks, sizeof(next));
		free(dc->chunks);
		dc->chunks = next;
	}
	free(dc);
}
