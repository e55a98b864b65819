/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifetime of a path: its initial state, a new session, other limits, and the rate and window
 * that congestion control gives it.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

/* Takes over the rate and window of congestion control, clamped. */
void wan_path_pace(struct wan_path *p)
{
	const struct wan_cfg *cfg = &p->t->cfg;
	struct cc_cfg limits = cfg->cc_cfg;
	struct cc_answer a;

	limits.mtu = p->mtu;
	p->t->c.cc_nonsense += cc_guard_ask(cfg->cc, p->cc, &limits, &a);
	wan_pace_set(&p->pace, a.rate_Bps);
	p->rate_Bps = a.rate_Bps;
	p->cwnd = a.window;
	p->cc_next = cc_guard_next(cfg->cc, p->cc, p->cc_ticked);
	wan_fec_refresh(&p->fec);
}

static void fec_init(struct wan_path *p)
{
	p->fec = (struct wan_fec_path){.fec = &p->t->fec,
	    .id = p->id,
	    .next_pn = &p->next_pn,
	    .inflight = &p->inflight,
	    .srtt = &p->srtt,
	    .min_rtt = &p->min_rtt,
	    .ns_fp = &p->pace.clock.ns_fp,
	    .seen = &p->seen,
	    .mtu = p->mtu};
	if (!wan_path_is_stream(p))
		p->t->fec.path[p->t->fec.paths++] = &p->fec;
}

int wan_path_init(struct wan_path *p, struct wan_tunnel *t, uint8_t id, rwy_time now)
{
	memset(p, 0, sizeof(*p));
	p->t = t;
	p->id = id;
	p->mtu = t->cfg.mtu[wan_path_is_stream(p) ? 0 : id];
	p->mask = t->cfg.tx_pkts_max - 1;
	fec_init(p);
	if (!wan_path_is_stream(p)) { /* the stream's map is allocated at its first use */
		p->sent = calloc(t->cfg.tx_pkts_max, sizeof(*p->sent));
		if (!p->sent)
			return RWY_ENOMEM;
	}
	p->ack_at = p->loss_timer = RWY_NEVER;
	p->last_rx = p->cc_ticked = now;
	wan_ack_restart(p);
	wan_ecn_restart(p);
	wan_congest_init(&p->congest, &t->cfg.congest, now);
	wan_measure_init(&p->measure, now);
	struct cc_cfg cc = t->cfg.cc_cfg;

	cc.mtu = p->mtu;
	t->cfg.cc->init(p->cc, &cc, now);
	wan_path_pace(p);
	return 0;
}

void wan_path_limits(struct wan_path *p)
{
	struct cc_cfg cc = p->t->cfg.cc_cfg;

	cc.mtu = p->mtu;
	if (p->t->cfg.cc->on_limits)
		p->t->cfg.cc->on_limits(p->cc, &cc);
	wan_path_pace(p);
}

void wan_path_cc_anew(struct wan_path *p, rwy_time now)
{
	struct cc_cfg cc = p->t->cfg.cc_cfg;

	cc.mtu = p->mtu;
	p->t->cfg.cc->init(p->cc, &cc, now);
	wan_path_pace(p);
}

void wan_path_fini(struct wan_path *p)
{
	wan_fec_tx_free(&p->fec);
	free(p->sent);
	p->sent = NULL;
}

void wan_path_restart(struct wan_path *p, rwy_time now)
{
	for (uint64_t pn = p->tail; pn < p->next_pn; pn++)
		p->sent[pn & p->mask].state = WAN_SENT_NONE;
	p->tail = p->next_pn;
	p->inflight = 0;
	p->inflight_n = 0;
	p->probes = p->pto_count = 0;
	p->loss_timer = p->ack_at = RWY_NEVER;
	wan_ack_restart(p);
	p->reverse_at = 0;
	p->ect0 = p->ect1 = p->ce = p->ce_seen = 0;
	p->reorder = (struct wan_reorder){.round_end = p->next_pn};
	wan_ecn_restart(p);
	p->last_rx = now;
	p->fec.reports = 0;
	wan_fec_tx_reset(&p->fec, now);
	wan_ranges_reset(&p->seen);
}
