/* SPDX-License-Identifier: Apache-2.0 */
/* A run as a time series (CSV) with one row per sample, for tests/sim/plot and for work on control
 * loops. */
#include <string.h>

#include "engine/engine.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/nic.h"
#include "tests/sim/dc/work.h"

#define FLOWS_MAX 64

static unsigned shown(const struct work *w)
{
	return w->flows < FLOWS_MAX ? w->flows : FLOWS_MAX;
}

void trace_head(struct work *w)
{
	fprintf(w->trace, "ms,far_held_mb,far_gw_port_mb,near_custody_mb,near_wan_mb,near_wan_gbps,slow_port_"
	                  "kb,border_mb,drops,resent");
	for (unsigned i = 0; i < shown(w); i++)
		fprintf(w->trace, ",tx%u,rx%u,far%u", i, i, i);
	for (unsigned i = 1; i <= (unsigned)w->dc->s.tenants; i++)
		fprintf(w->trace, ",wire%u,got%u,custody%u", i, i, i);
	fprintf(w->trace, "\n");
}

/* A tenant's columns: Gb/s on the WAN and delivered to its hosts, MB in the near gateway's
 * custody. */
static void tenant_cells(struct work *w, unsigned i, double got, double dt)
{
	uint64_t wire = dc_gw_sent(w->dc->gw[0], i);
	struct eng_tenant_stats st = {0};

	eng_tenant_stats(dc_gw_engine(w->dc->gw[0]), i, &st);
	fprintf(w->trace, ",%.4f,%.4f,%.4f", (double)(wire - w->sample_wire[i]) * 8 / dt, got * 8 / dt,
	    (double)st.custody / 1e6);
	w->sample_wire[i] = wire;
}

static uint64_t drops(const struct dc *dc)
{
	uint64_t n = 0;

	for (unsigned site = 0; site < 2; site++) {
		n += dc->border[site].dropped;
		for (unsigned i = 0; i < dc->leaves; i++)
			n += dc->leaf[site][i].dropped;
		for (unsigned i = 0; i < dc->spines; i++)
			n += dc->spine[site][i].dropped;
	}
	return n;
}

/* The rates to which near-destination congestion control limits the flows, Gb/s; 0: no limit. */
static void requester_rates(const struct work *w, double *rate)
{
	struct eng_flow_info info[64];
	uint32_t cursor = 0;
	unsigned n;

	memset(rate, 0, FLOWS_MAX * sizeof(*rate));
	if (!w->dc->gw[0])
		return;
	do {
		n = eng_flows(dc_gw_engine(w->dc->gw[1]), &cursor, info, 64);
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = 0; info[i].requester_rate_Bps && k < shown(w); k++)
				if (info[i].local_qpn == dc_qpn(w->flow[k].qp->id, true))
					rate[k] = (double)info[i].requester_rate_Bps * 8e-9;
	} while (cursor);
}

void trace_row(struct work *w, rwy_time now)
{
	struct dc *dc = w->dc;
	unsigned host = w->flows ? w->flow[0].dst : dc->per_site;
	double dt = (double)(now - w->sampled), held = 0, custody = 0, port = 0, rate = 0, queued = 0;
	double bound[FLOWS_MAX], got[DC_TENANTS_MAX + 1] = {0};
	struct wan_stats st;

	requester_rates(w, bound);
	if (dc->gw[0]) {
		held = (double)dc_gw_held(dc->gw[1]) / 1e6;
		custody = (double)eng_custody_bytes(dc_gw_engine(dc->gw[0])) / 1e6;
		port = (double)dc_gw_port(dc->gw[1])->q[1].bytes / 1e6;
		eng_tunnel_stats(dc_gw_engine(dc->gw[0]), 0, &st);
		rate = (double)st.rate_Bps * 8e-9;
		queued = (double)(st.tx_queued_bytes -
		                  (st.inflight < st.tx_queued_bytes ? st.inflight : st.tx_queued_bytes)) /
		         1e6;
	}
	fprintf(w->trace, "%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%.1f,%.4f,%llu,%llu", (double)(now - dc->zero) / 1e6,
	    held, port, custody, queued, rate, (double)dc_host_port(dc, host)->peer->q[1].bytes / 1e3,
	    (double)dc->border[0].n.port[dc->spines].q[1].bytes / 1e6, (unsigned long long)drops(dc),
	    (unsigned long long)dc->c.resent);
	for (unsigned i = 0; i < w->flows; i++)
		got[w->flow[i].tenant] += (double)(w->flow[i].qp->rx_bytes - w->flow[i].sample_rx);
	for (unsigned i = 0; i < w->flows; i++) {
		struct flow *f = &w->flow[i];

		if (i < shown(w))
			fprintf(w->trace, ",%.3f,%.3f,%.3f",
			    (double)(f->qp->tx_bytes - f->sample_tx) * 8 / dt,
			    (double)(f->qp->rx_bytes - f->sample_rx) * 8 / dt, bound[i]);
		f->sample_rx = f->qp->rx_bytes;
		f->sample_tx = f->qp->tx_bytes;
	}
	for (unsigned i = 1; i <= (unsigned)dc->s.tenants; i++)
		tenant_cells(w, i, got[i], dt);
	fprintf(w->trace, "\n");
}
