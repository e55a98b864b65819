/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a training step, as text or JSON. */
#include <math.h>

#include "engine/engine.h"
#include "tests/sim/dc/gw.h"
#include "tests/sim/dc/nic.h"
#include "tests/sim/dc/train.h"

struct out {
	FILE *f;
	bool json;
};

static void put(struct out *o, const char *name, double v, const char *what)
{
	if (o->json)
		fprintf(o->f, ", \"%s\": %.10g", name, v);
	else
		fprintf(o->f, "%-18s %14.6g  %s\n", name, v, what);
}

static double pauses(const struct dc *dc)
{
	double n = 0;

	for (unsigned i = 0; i < dc->hosts; i++)
		n += (double)dc->host[i].n.port[0].paused_for;
	return n / 1e9;
}

static void network(struct out *o, const struct train *t)
{
	const struct dc *dc = t->dc;
	double lost = 0, resent = 0, dropped = 0;

	for (unsigned i = 0; i < dc->sites; i++) {
		dropped += (double)dc->border[i].dropped;
		if (!dc->gw[0]) {
			for (unsigned k = dc->spines; k < dc->border[i].n.ports; k++)
				lost += (double)dc->border[i].n.port[k].lost;
			continue;
		}
		resent += (double)dc_gw_resent(dc->gw[i]);
		lost += (double)dc_gw_wan_lost(dc->gw[i]);
	}
	put(o, "wan_lost", lost, "packets lost on the WAN");
	put(o, "dropped", dropped, "packets dropped at the border switches");
	put(o, "gw_wan_resent", resent, "datagrams the gateways sent again");
	put(o, "host_resent", (double)dc->c.resent, "data packets hosts sent again");
	put(o, "host_timeouts", (double)dc->c.timeouts, "expiries of NIC timers");
	put(o, "naks", (double)dc->c.naks, "");
	put(o, "qp_errors", (double)dc->c.qp_errors, "queue pairs whose retries ran out");
	put(o, "paused_s", pauses(dc), "s that hosts' ports were paused by PFC, all together");
	put(o, "packets", (double)dc->c.delivered_pkts, "data packets delivered in order");
	put(o, "events", (double)t->fired, "during the step");
}

void train_show(FILE *f, const struct train *t, const char *words, double wall_s, bool json)
{
	struct out o = {f, json};
	const struct train_cfg *c = &t->cfg;
	const struct train_times *w = &t->wan;
	double step = (double)(t->end - t->dc->zero) + c->tail, least = 0, n = w->n ? w->n : 1,
	       spent[4] = {0};

	least = c->tail + (c->micro - 1) * fmax(c->slot, c->slot2);
	for (unsigned s = 0; s < (unsigned)c->stages; s++)
		least += c->slot2 > 0 && s >= (unsigned)c->split ? c->slot2 : c->slot;
	for (unsigned s = 0; s < (unsigned)c->stages; s++)
		for (unsigned k = 0; k < 4; k++)
			spent[k] += (double)t->pipe.stage[s].spent[k] / 1e9 / c->stages;
	if (json)
		fprintf(f, "{\"scenario\": \"%s\", \"hash\": \"%016llx\"", words,
		    (unsigned long long)t->dc->hash);
	put(&o, "done", t->pipe.done ? 1 : 0, "1: the step ended; 0: a queue pair failed, or limit");
	put(&o, "step_s", step / 1e9, "s, the step");
	put(&o, "free_s", least / 1e9, "s, the same with messages that cost nothing");
	put(&o, "compute_s", spent[PIPE_SPAN_FWD] + spent[PIPE_SPAN_BWD], "s, mean of the stages");
	put(&o, "send_s", spent[PIPE_SPAN_SEND], "s, stages held by a send, mean");
	put(&o, "wait_s", spent[PIPE_SPAN_WAIT], "s, stages without anything to do, mean");
	put(&o, "wan_n", w->n, "messages of a micro-batch between the sites, all GPUs");
	put(&o, "wan_ms", w->there_sum / n / 1e6, "ms from posting to the last byte at the last GPU, mean");
	put(&o, "wan_max_ms", w->there_max / 1e6, "");
	put(&o, "wan_sent_ms", w->complete_sum / n / 1e6,
	    "ms from posting to the last GPU's completion, mean");
	put(&o, "wan_sent_max_ms", w->complete_max / 1e6, "");
	put(&o, "cross_gbps", t->cross_gbps, "Gb/s of the others, both ways together");
	network(&o, t);
	put(&o, "wall_s", wall_s, "real time");
	put(&o, "violations", (double)t->dc->c.violations, t->dc->first_violation);
	if (json)
		fprintf(f, "}\n");
}
