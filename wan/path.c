/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifetime of a path: its initial state, a new session, other limits, and the rate and window
 * that congestion control gives it.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/lease.h"
#include "wan/resume.h"
#include "wan/tunnel.h"

#define MAP_FIRST 4096u /* entries of a new map of sent datagrams */

uint64_t wan_path_whole_Bps(const struct wan_path *p)
{
	const struct wan_cfg *cfg = &p->t->cfg;

	return !wan_path_is_stream(p) && cfg->path_rate_Bps[p->id] ? cfg->path_rate_Bps[p->id]
	                                                           : cfg->cc_cfg.rate_Bps;
}

/* This half's lease of a rate: never less than the least rate, which keep-alives need. */
static uint64_t leased(const struct wan_cfg *cfg, uint64_t rate_Bps)
{
	const uint64_t least = cfg->cc_cfg.min_rate_Bps;

	if (!cfg->lease || cfg->lease >= WAN_LEASE_WHOLE || rate_Bps <= least)
		return rate_Bps;
	/* Rates are at most 1 Tb/s: below 2^37 bytes a second. */
	rate_Bps = rate_Bps * cfg->lease / WAN_LEASE_WHOLE;
	return rate_Bps > least ? rate_Bps : least;
}

struct cc_cfg wan_path_cc_cfg(const struct wan_path *p)
{
	struct cc_cfg cc = p->t->cfg.cc_cfg;

	cc.mtu = p->mtu;
	cc.rate_Bps = leased(&p->t->cfg, wan_path_whole_Bps(p));
	return cc;
}

/* Takes over the rate and window of congestion control, clamped. */
void wan_path_pace(struct wan_path *p)
{
	const struct wan_cfg *cfg = &p->t->cfg;
	struct cc_cfg limits = wan_path_cc_cfg(p);
	struct cc_answer a;

	p->t->c.cc_nonsense += cc_guard_ask(cfg->cc, p->cc, &limits, &a);
	wan_resume_raise(p, &limits, &a);
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

static void map_free(struct wan_path *p)
{
	free(p->sent);
	free(p->bundled);
	p->sent = NULL;
	p->bundled = NULL;
}

int wan_path_map_new(struct wan_path *p)
{
	p->sent = calloc(p->mask + 1, sizeof(*p->sent));
	p->bundled = calloc(p->mask + 1, sizeof(*p->bundled));
	if (p->sent && p->bundled)
		return 0;
	map_free(p);
	return RWY_ENOMEM;
}

void wan_path_map_grow(struct wan_path *p)
{
	uint64_t mask = 2 * p->mask + 1, have = p->mask + 1, n = 2 * (p->next_pn - p->tail);
	struct wan_sent *v = calloc(mask + 1, sizeof(*v));
	struct wan_bundled *b = calloc(mask + 1, sizeof(*b));

	if (!v || !b) {
		free(v);
		free(b);
		p->mask_max = p->mask; /* it is full earlier, and sending waits then */
		return;
	}
	/* Lost datagrams may still arrive: as many as are in flight are remembered. */
	n = n < have ? n : have;
	for (uint64_t pn = p->next_pn > n ? p->next_pn - n : 0; pn < p->next_pn; pn++)
		v[pn & mask] = p->sent[pn & p->mask];
	for (uint64_t pn = p->next_pn > n ? p->next_pn - n : 0; pn < p->next_pn; pn++)
		if (v[pn & mask].bundled)
			b[pn & mask] = p->bundled[pn & p->mask];
	map_free(p);
	p->sent = v;
	p->bundled = b;
	p->mask = mask;
}

int wan_path_init(struct wan_path *p, struct wan_tunnel *t, uint8_t id, rwy_time now)
{
	memset(p, 0, sizeof(*p));
	p->t = t;
	p->id = id;
	p->mtu = t->cfg.mtu[wan_path_is_stream(p) ? 0 : id];
	p->use = wan_path_is_stream(p) ? WAN_USE_ALWAYS : t->cfg.use[id];
	p->state = p->use == WAN_USE_NEVER ? WAN_PATH_OFF : WAN_PATH_UNPROVEN;
	p->since = now;
	p->mask = (t->cfg.tx_pkts_max < MAP_FIRST ? t->cfg.tx_pkts_max : MAP_FIRST) - 1;
	p->mask_max = t->cfg.tx_pkts_max - 1;
	fec_init(p);
	/* the map of the stream, and of a path that is used later, is allocated at its first use */
	if (!wan_path_is_stream(p) && p->state != WAN_PATH_OFF && wan_path_map_new(p) < 0)
		return RWY_ENOMEM;
	p->ack_at = p->loss_timer = p->asked = RWY_NEVER;
	p->last_rx = p->cc_ticked = p->state_at = now;
	wan_ack_restart(p);
	wan_ecn_restart(p);
	wan_congest_init(&p->congest, &t->cfg.congest, now);
	wan_measure_init(&p->measure, now);
	struct cc_cfg cc = wan_path_cc_cfg(p);

	rwy_pace_set(&p->part, wan_path_whole_Bps(p));
	t->cfg.cc->init(p->cc, &cc, now);
	wan_path_pace(p);
	return 0;
}

void wan_path_limits(struct wan_path *p)
{
	struct cc_cfg cc = wan_path_cc_cfg(p);

	rwy_pace_set(&p->part, wan_path_whole_Bps(p));
	if (p->t->cfg.cc->on_limits)
		p->t->cfg.cc->on_limits(p->cc, &cc);
	wan_path_pace(p);
}

void wan_path_cc_anew(struct wan_path *p, rwy_time now)
{
	struct cc_cfg cc = wan_path_cc_cfg(p);

	p->t->cfg.cc->init(p->cc, &cc, now);
	wan_path_pace(p);
}

void wan_path_fini(struct wan_path *p)
{
	wan_fec_tx_free(&p->fec);
	map_free(p);
}

void wan_path_restart(struct wan_path *p, rwy_time now)
{
	/* Also what was lost before the tail: no late ACK is for the session that begins. */
	for (uint64_t i = 0; p->sent && i <= p->mask; i++)
		p->sent[i].state = WAN_SENT_NONE;
	p->tail = p->next_pn;
	p->inflight = 0;
	p->inflight_n = 0;
	p->probes = p->pto_count = 0;
	p->loss_timer = p->ack_at = p->asked = RWY_NEVER;
	wan_ack_restart(p);
	p->reverse_at = 0;
	p->ect0 = p->ect1 = p->ce = p->ect0_seen = p->ce_seen = 0;
	p->reorder = (struct wan_reorder){.round_end = p->next_pn};
	wan_ecn_restart(p);
	p->last_rx = now;
	if (!wan_path_is_stream(p))
		wan_rest_gone(p, now);
	p->fec.reports = p->fec.told_n = 0;
	wan_fec_tx_reset(&p->fec, now);
	wan_ranges_reset(&p->seen);
}
