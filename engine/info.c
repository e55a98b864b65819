/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, flows and tunnels as people ask for them. */
#include <stdio.h>

#include "engine/eng.h"
#include "engine/steer.h"
#include "engine/requester.h"

const struct eng_counters *eng_counters(const struct eng *e)
{
	return &e->c;
}

uint32_t eng_flow_count(const struct eng *e)
{
	return e->halves - e->paired; /* a pair is one connection */
}

uint64_t eng_custody_bytes(const struct eng *e)
{
	return e->custody;
}

uint64_t eng_custody_max(const struct eng *e)
{
	return e->cfg.custody_total;
}

void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out)
{
	if (e->tun[tunnel].wan)
		wan_get_stats(e->tun[tunnel].wan, out);
	else
		*out = (struct wan_stats){.ecn = "off"};
}

static const char *state_name(const struct eng_half *h, bool idle)
{
	if (h->close_at != RWY_NEVER)
		return "closing";
	if (eng_failed(h))
		return "failed";
	if (eng_unpaired(h))
		return "learning";
	return idle ? "idle" : "paired";
}

static const char *learned_name(const struct eng_half *h)
{
	switch ((enum eng_learned)h->learned) {
	case ENG_BY_NOBODY:
		return "";
	case ENG_BY_CM:
		return "cm";
	case ENG_BY_PROBE:
		return "passive";
	case ENG_BY_PEER:
		return "peer";
	}
	rwy_unreachable();
}

#define NEAR_SOURCE (2 * RWY_MS) /* a host feels a CNP so long */

/* What would have to be larger for the local host to send faster. */
static const char *limit(const struct eng_near *n)
{
	uint64_t drain;

	if (n->held)
		return "memory";
	if (!n->req || !wan_tx_queued(n->req))
		return "";
	if (!wan_tx_unsent(n->req)) /* all it gave is on its way: it gives no more, or may not */
		return n->h.e->now < n->cnp_at + NEAR_SOURCE ? "near-source" : "window";
	if (!wan_tx_blocked(n->req))
		return "path";
	return wan_tx_window(n->req, &drain) ? "host" : "far";
}

static void add_near(struct eng_flow_info *o, const struct eng_near *n)
{
	o->tx_packets = n->packets;
	o->tx_bytes = n->bytes;
	o->custody_bytes = n->custody;
	o->limit = limit(n);
	if (n->req)
		o->remote_window = wan_tx_window(n->req, &o->remote_drain_Bps);
	if (n->h.state == ENG_R_NEW)
		return;
	o->near_psn = n->resp.epsn;
	o->near_acked = n->resp.acked;
	o->pmtu = n->resp.pmtu;
}

static void add_far(struct eng_flow_info *o, const struct eng_far *f)
{
	o->rx_packets = f->packets;
	o->rx_bytes = f->bytes;
	if (!eng_far_active(f))
		return;
	o->far_una = f->reqr.una;
	o->far_nxt = f->reqr.nxt;
	o->far_queue = f->reqr.q.n;
	o->far_rate_Bps = eng_rp_rate(f);
	o->far_rtt = f->reqr.srtt;
	o->host_resent = f->reqr.resent;
	o->rnr_naks = f->reqr.rnr_naks;
	if (!o->pmtu)
		o->pmtu = f->reqr.pmtu;
}

static void fill(struct eng_flow_info *o, const struct eng_half *h)
{
	const struct eng_near *n = h->is_far ? NULL : (const struct eng_near *)h;
	const struct eng_far *f = h->is_far ? (const struct eng_far *)h : n->far;

	memset(o, 0, sizeof(*o));
	o->limit = "";
	o->tenant = h->key.tenant;
	o->local = h->is_far ? h->key.dst : h->key.src;
	o->remote = h->is_far ? h->key.src : h->key.dst;
	o->local_qpn = h->is_far ? h->key.qpn : n->lqpn;
	o->remote_qpn = h->is_far ? f->rqpn : h->key.qpn;
	if (h->tunnel != ENG_NO_TUNNEL)
		snprintf(o->tunnel, sizeof(o->tunnel), "%s", h->e->cfg.tunnel[h->tunnel].name);
	o->learned = learned_name(h);
	o->error = h->error;
	/* Packets of the other site count, also while the local host does not answer it. */
	o->last = f && f->h.last > h->last ? f->h.last : h->last;
	o->state = state_name(h, rwy_since(o->last, h->e->now) > ENG_IDLE);
	if (n)
		add_near(o, n);
	if (f)
		add_far(o, f);
	if (f && eng_failed(&f->h) && !eng_failed(h)) {
		o->state = "failed";
		o->error = f->h.error;
	}
}

#define FLOWS_SLOTS 4096 /* table slots looked at in one call, so that no call is long */

unsigned eng_flows(const struct eng *e, uint32_t *cursor, struct eng_flow_info *out, unsigned max)
{
	uint32_t end = *cursor + FLOWS_SLOTS;
	unsigned n = 0;

	/* The cursor is a table slot. A slot is told whole or, when it would not fit behind others, in the
	 * next call. */
	for (; *cursor < end && *cursor <= e->table_mask; (*cursor)++) {
		const struct eng_half *h = e->table[*cursor];
		unsigned here = 0;

		for (const struct eng_half *c = h; c; c = c->chain)
			here++;
		if (n + here > max && n)
			return n;
		for (; h && n < max; h = h->chain)
			/* A paired far half is told with its near half. */
			if (!h->is_far || !((const struct eng_far *)h)->near)
				fill(&out[n++], h);
	}
	if (*cursor > e->table_mask)
		*cursor = 0;
	return n;
}
