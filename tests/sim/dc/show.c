/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a run; see show.h. One list serves all formats. */
#include "tests/sim/dc/show.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/nic.h"

struct out {
	FILE *f;
	enum show_form form;
	bool head; /* for CSV: print names first, then values */
	unsigned n;
};

static void put(struct out *o, const char *name, double v, const char *what)
{
	const char *sep = o->n++ ? (o->form == SHOW_JSON ? ", " : ",") : "";

	switch (o->form) {
	case SHOW_TEXT:
		fprintf(o->f, "%-22s %14.6g  %s\n", name, v, what);
		break;
	case SHOW_JSON:
		fprintf(o->f, "%s\"%s\": %.10g", sep, name, v);
		break;
	case SHOW_CSV:
	case SHOW_CSV_HEAD:
		if (o->head)
			fprintf(o->f, "%s%s", sep, name);
		else
			fprintf(o->f, "%s%.10g", sep, v);
		break;
	case SHOW_HASH:
		break;
	}
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void fct(struct out *o, struct fct *f, const char *which)
{
	char name[40];
	double n = f->n ? f->n : 1, p50 = 0, p99 = 0;

	if (f->n) {
		qsort(f->us, f->n, sizeof(*f->us), by_value);
		p50 = f->us[f->n / 2];
		p99 = f->us[(uint64_t)f->n * 99 / 100];
	}
	snprintf(name, sizeof(name), "%s_n", which);
	put(o, name, f->n, "messages measured");
	snprintf(name, sizeof(name), "%s_mean_us", which);
	put(o, name, f->sum / n, "us from posting to the last byte in order at the receiver");
	snprintf(name, sizeof(name), "%s_p50_us", which);
	put(o, name, p50, "");
	snprintf(name, sizeof(name), "%s_p99_us", which);
	put(o, name, p99, "");
	snprintf(name, sizeof(name), "%s_small_us", which);
	put(o, name, f->small_n ? f->small_sum / f->small_n : 0, "mean of those below 100 kB");
	snprintf(name, sizeof(name), "%s_large_us", which);
	put(o, name, f->large_n ? f->large_sum / f->large_n : 0, "mean of those from 1 MB");
}

static void flow_times(struct out *o, struct fct *f, const char *which)
{
	char name[40];

	if (f->n)
		qsort(f->us, f->n, sizeof(*f->us), by_value);
	snprintf(name, sizeof(name), "%s_p50_us", which);
	put(o, name, f->n ? f->us[f->n / 2] : 0, "messages of the flows, from posting");
	snprintf(name, sizeof(name), "%s_p99_us", which);
	put(o, name, f->n ? f->us[(uint64_t)f->n * 99 / 100] : 0, "");
}

struct sums {
	double goodput, jain, least, most, fct_us, last_us, done, tx_resent, cnps;
};

static struct sums flows(const struct work *w)
{
	const struct scen *s = &w->dc->s;
	struct sums r = {.least = 1e18};
	double squares = 0;

	for (unsigned i = 0; i < w->flows; i++) {
		const struct flow *f = &w->flow[i];
		double from = s->skip > s->start ? s->skip : s->start,
		       bits = (double)(f->sample_rx - f->skip_rx) * 8 / (s->time - from);

		r.goodput += bits;
		squares += bits * bits;
		r.least = bits < r.least ? bits : r.least;
		r.most = bits > r.most ? bits : r.most;
		r.tx_resent += (double)f->qp->tx_resent;
		r.cnps += (double)f->qp->tx_cnps;
		if (f->done) {
			r.done++;
			r.fct_us += (double)(f->done - f->began) / 1e3;
			if ((double)(f->done - w->dc->zero) - s->start > r.last_us * 1e3)
				r.last_us = ((double)(f->done - w->dc->zero) - s->start) / 1e3;
		}
	}
	if (!w->flows)
		r.least = 0;
	r.jain = squares > 0 ? r.goodput * r.goodput / (w->flows * squares) : 0;
	r.fct_us = r.done > 0 ? r.fct_us / r.done : 0;
	return r;
}

struct net {
	double dropped, marked, pauses, paused_us, leaf_peak, spine_peak, border_peak;
};

static void add_sw(struct net *n, const struct sw *s, double *peak)
{
	n->dropped += (double)s->dropped;
	*peak = (double)s->peak > *peak ? (double)s->peak : *peak;
	for (unsigned i = 0; i < s->n.ports; i++) {
		n->marked += (double)s->n.port[i].marked;
		n->pauses += (double)s->n.port[i].pauses;
		n->paused_us += (double)s->n.port[i].paused_for / 1e3;
	}
}

static struct net network(const struct dc *dc)
{
	struct net n = {0};

	for (unsigned site = 0; site < 2; site++) {
		for (unsigned i = 0; i < dc->leaves; i++)
			add_sw(&n, &dc->leaf[site][i], &n.leaf_peak);
		for (unsigned i = 0; i < dc->spines; i++)
			add_sw(&n, &dc->spine[site][i], &n.spine_peak);
		add_sw(&n, &dc->border[site], &n.border_peak);
	}
	for (unsigned i = 0; i < dc->hosts; i++) {
		const struct port *p = &dc->host[i].n.port[0];

		n.pauses += (double)p->pauses;
		n.paused_us += (double)p->paused_for / 1e3;
	}
	return n;
}

static void gateways(struct out *o, const struct dc *dc)
{
	struct gw_peaks a = {0}, b = {0};
	double lost = 0, cnps = 0, held = 0, handled = 0, resent = 0, retrans = 0;

	for (unsigned i = 0; dc->gw[0] && i < 2; i++) {
		const struct eng_counters *c = eng_counters(dc_gw_engine(dc->gw[i]));

		cnps += (double)c->np_cnp_sent;
		handled += (double)c->rp_cnp_handled;
		held += (double)c->ack_blocked;
		resent += (double)c->host_resent;
		lost += (double)dc_gw_wan_lost(dc->gw[i]);
		retrans += (double)dc_gw_resent(dc->gw[i]);
	}
	if (dc->gw[0]) {
		a = *dc_gw_peaks(dc->gw[0]);
		b = *dc_gw_peaks(dc->gw[1]);
	} else {
		for (unsigned i = 0; i < 2; i++)
			lost += (double)dc->border[i].n.port[dc->spines].lost;
	}
	put(o, "wan_lost", lost, "packets lost on the WAN, or in front of it");
	put(o, "gw_cnps_sent", cnps, "CNPs the gateways sent to hosts");
	put(o, "gw_cnps_handled", handled, "CNPs of hosts the gateways took");
	put(o, "gw_holdbacks", held, "times ACKs were held back for lack of memory");
	put(o, "gw_host_resent", resent, "packets the gateways sent again to hosts");
	put(o, "gw_wan_resent", retrans, "datagrams the gateways sent again");
	put(o, "near_custody_peak", (double)a.custody, "bytes, gateway of site 0");
	put(o, "far_held_peak", (double)b.rx_held,
	    "bytes, gateway of site 1: from the WAN, not yet acknowledged by a host");
	put(o, "far_port_peak", (double)b.lan_queue, "bytes of these in front of its port");
	put(o, "near_wan_peak", (double)a.wan_queue, "bytes in front of the WAN link");
}

static void all(struct out *o, struct work *w, double wall)
{
	struct dc *dc = w->dc;
	const struct dc_counts *c = &dc->c;
	struct sums f = flows(w);
	struct net n = network(dc);
	double bdp = dc->s.wan / 8e9 * dc->s.rtt;

	put(o, "flows_gbps", f.goodput, "payload delivered in order, all flows between the sites");
	put(o, "flow_least_gbps", f.least, "");
	put(o, "flow_most_gbps", f.most, "");
	put(o, "jain", f.jain, "fairness among them");
	put(o, "flows_done", f.done, "with fsize: ended");
	put(o, "flows_fct_us", f.fct_us, "with fsize: mean time");
	put(o, "flows_last_us", f.last_us, "with fsize: from start until the last one ended");
	flow_times(o, &w->flow_fct[0], "flow_arrival");
	flow_times(o, &w->flow_fct[1], "flow_completion");
	fct(o, &w->fct[0], "intra");
	fct(o, &w->fct[1], "inter");
	put(o, "inter_lost", dc->ip.n - dc->ip.there, "with xop=ip: messages that were lost");
	put(o, "host_resent", (double)c->resent, "data packets hosts sent again");
	put(o, "host_resent_warm", (double)c->resent_warm, "the same while the connections were made");
	put(o, "host_timeouts", (double)c->timeouts, "expiries of NIC timers");
	put(o, "naks", (double)c->naks, "NAKs hosts received");
	put(o, "qp_errors", (double)c->qp_errors, "queue pairs whose retries ran out");
	put(o, "cnps", (double)c->cnps, "CNPs hosts sent");
	put(o, "ce", (double)c->ce, "marked packets hosts received");
	put(o, "marked", n.marked, "packets marked by switches");
	put(o, "dropped", n.dropped, "packets dropped by switches");
	put(o, "pauses", n.pauses, "PFC pauses");
	put(o, "paused_us", n.paused_us, "time paused, all ports");
	put(o, "leaf_peak", n.leaf_peak, "bytes, fullest leaf");
	put(o, "spine_peak", n.spine_peak, "bytes, fullest spine");
	put(o, "border_peak", n.border_peak, "bytes, fullest border switch");
	gateways(o, dc);
	put(o, "bdp", bdp, "bytes, bandwidth-delay product of the WAN");
	put(o, "messages", (double)c->posted, "messages posted");
	put(o, "packets", (double)c->delivered_pkts, "data packets delivered in order");
	put(o, "events", (double)dc->evq.fired, "");
	put(o, "wall_s", wall, "real time");
	put(o, "violations", (double)c->violations, dc->first_violation);
}

static void line(struct out *o, struct work *w, double wall)
{
	o->n = 0;
	all(o, w, wall);
	fprintf(o->f, "\n");
}

void show(FILE *f, struct work *w, double wall, enum show_form form)
{
	struct out o = {.f = f, .form = form};
	char words[1024];

	switch (form) {
	case SHOW_HASH:
		fprintf(f, "%016llx\n", (unsigned long long)w->dc->hash);
		return;
	case SHOW_CSV_HEAD:
		o.head = true;
		line(&o, w, wall);
		o.head = false;
		line(&o, w, wall);
		return;
	case SHOW_CSV:
		line(&o, w, wall);
		return;
	case SHOW_TEXT:
		all(&o, w, wall);
		return;
	case SHOW_JSON:
		break;
	}
	double from = w->dc->s.skip > w->dc->s.start ? w->dc->s.skip : w->dc->s.start;

	scen_print(&w->dc->given, words, sizeof(words));
	fprintf(f, "{\"scenario\": \"%s\", \"hash\": \"%016llx\", \"flow_gbps\": [", words,
	    (unsigned long long)w->dc->hash);
	for (unsigned i = 0; i < w->flows; i++)
		fprintf(f, "%s%.4f", i ? ", " : "",
		    (double)(w->flow[i].sample_rx - w->flow[i].skip_rx) * 8 / (w->dc->s.time - from));
	fprintf(f, "], ");
	all(&o, w, wall);
	fprintf(f, "}\n");
}
