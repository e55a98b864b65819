/* SPDX-License-Identifier: Apache-2.0 */
/* Tunnels of an engine: added at the start or later, changed, removed. Their flows are port.c. */
#include <stdlib.h>

#include "engine/mgmt.h"
#include "engine/peer.h"
#include "engine/port.h"
#include "engine/standby.h"
#include "engine/steer.h"
#include "engine/table.h"
#include "engine/tunnel.h"

struct eng_tunnel_new {
	struct wan_tunnel *wan;
	struct eng_tunnel_cfg cfg;
};

int eng_tunnel_make(struct eng_tunnel_new **out, struct eng *e, unsigned tunnel,
    const struct eng_tunnel_cfg *cfg, rwy_time now)
{
	struct eng_tunnel_new *n;
	int r;

	if (tunnel >= ENG_TUNNELS_MAX || !cfg->wan.epoch || !cfg->wan.index)
		return RWY_EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return RWY_ENOMEM;
	n->cfg = *cfg;
	if (e->cfg.lanes)
		n->cfg.wan.epoch = atomic_load(&e->cfg.lanes->tunnel[tunnel].epoch);
	n->cfg.wan.ctx = &e->tunnel[tunnel];
	n->cfg.wan.ops = eng_sb_is_pair(e, tunnel) ? &eng_standby_ops : &eng_wan_ops;
	n->cfg.wan.bufs = e->bufs;
	n->cfg.wan.fec_code = &e->fec_code;
	r = wan_new(&n->wan, &n->cfg.wan, now);
	if (r) {
		free(n);
		return r;
	}
	*out = n;
	return 0;
}

void eng_tunnel_unmake(struct eng_tunnel_new *n)
{
	if (!n)
		return;
	wan_free(n->wan);
	free(n);
}

int eng_tunnel_add(struct eng *e, unsigned tunnel, struct eng_tunnel_new *n)
{
	struct eng_tunnel *t;

	if (tunnel >= ENG_TUNNELS_MAX || e->tunnel[tunnel].wan)
		return RWY_EINVAL;
	t = &e->tunnel[tunnel];
	*t = (struct eng_tunnel){.wan = n->wan, .e = e, .idx = tunnel, .peer.at = RWY_NEVER};
	e->cfg.tunnel[tunnel] = n->cfg;
	if (e->cfg.tunnels <= tunnel)
		e->cfg.tunnels = tunnel + 1;
	free(n);
	if (e->cfg.lanes && e->cfg.worker)
		e->lanes_seen = atomic_load(&e->cfg.lanes->changes) - 1; /* looks next turn */
	eng_sb_tunnel_made(e, tunnel, e->now);
	return 0;
}

int eng_tunnels_init(struct eng *e, rwy_time now)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct wan_cfg *w = &e->cfg.tunnel[i].wan;
		struct eng_tunnel_new *n;
		int r;

		if (!w->cc) /* a free number */
			continue;
		if (!w->epoch)
			w->epoch = eng_random(e) | 1;
		if (!w->index)
			w->index = (uint32_t)eng_random(e) | 1;
		r = eng_tunnel_make(&n, e, i, &e->cfg.tunnel[i], now);
		if (r)
			return r;
		r = eng_tunnel_add(e, i, n);
		if (r) {
			eng_tunnel_unmake(n);
			return r;
		}
	}
	return 0;
}

/* The first fault; all other paths are set. */
static int paths_set(struct wan_tunnel *t, const struct eng_tunnel_tune *tune, rwy_time now)
{
	int rc = 0;

	for (unsigned i = 0; tune->paths && i < WAN_PATHS_MAX; i++) {
		const bool is = i < tune->paths;
		const int r = wan_retune_use(t, i, is ? tune->use[i] : WAN_USE_NEVER, tune->mtu[is ? i : 0],
		    is && tune->anew >> i & 1, now);

		rc = rc ? rc : r;
	}
	return rc;
}

static void rates_set(struct wan_tunnel *t, const struct eng_tunnel_tune *tune)
{
	for (unsigned i = 0; i < wan_paths(t); i++)
		wan_retune_path(t, i, tune->path_rate_Bps[i]);
}

int eng_tunnel_set(struct eng *e, unsigned tunnel, const struct eng_tunnel_tune *tune, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[tunnel];
	int rc;

	if (!eng_tunnel_there(e, tunnel))
		return 0;
	e->cfg.tunnel[tunnel].weight = tune->weight;
	wan_retune(t->wan, tune->rate_Bps, &tune->congest, now);
	rates_set(t->wan, tune); /* a path that leads elsewhere begins with it */
	rc = paths_set(t->wan, tune, now);
	rates_set(t->wan, tune); /* of new paths */
	wan_retune_probe(t->wan, tune->path_probe);
	wan_rx_credit(t->wan, tune->rx_window, tune->rx_bytes, now);
	return rc;
}

void eng_tunnel_lease_set(struct eng *e, unsigned tunnel, uint32_t lease)
{
	if (eng_tunnel_there(e, tunnel))
		wan_retune_lease(e->tunnel[tunnel].wan, lease);
}

uint32_t eng_tunnel_lease_wanted(struct eng *e, unsigned tunnel, rwy_dur span)
{
	return eng_tunnel_there(e, tunnel) ? wan_lease_wanted(e->tunnel[tunnel].wan, span) : 0;
}

int eng_tunnel_keys_offer(struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now)
{
	return eng_tunnel_there(e, tunnel) ? wan_keys_offer(e->tunnel[tunnel].wan, secrets, now) : RWY_ENOENT;
}

int eng_tunnel_keys_reserve(struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now)
{
	return eng_tunnel_there(e, tunnel) ? wan_keys_reserve(e->tunnel[tunnel].wan, secrets, now)
	                                   : RWY_ENOENT;
}

void eng_tunnel_keys_kept(struct eng *e, unsigned tunnel)
{
	if (eng_tunnel_there(e, tunnel))
		wan_keys_kept(e->tunnel[tunnel].wan);
}

int eng_tunnel_keys_keep(struct eng *e, unsigned tunnel, const struct wan_secrets *secrets, rwy_time now)
{
	return eng_tunnel_there(e, tunnel) ? wan_keys_keep(e->tunnel[tunnel].wan, secrets, now) : RWY_ENOENT;
}

void eng_tunnel_keys_use(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (eng_tunnel_there(e, tunnel))
		wan_keys_use(e->tunnel[tunnel].wan, now);
}

void eng_tunnel_keys_end(struct eng *e, unsigned tunnel, rwy_time now)
{
	if (eng_tunnel_there(e, tunnel))
		wan_keys_end(e->tunnel[tunnel].wan, now);
}

/* Ends the flows of no connection, the last ones of a tunnel. */
static void end_own_flows(struct eng_tunnel *t, rwy_time now)
{
	if (t->mgmt)
		wan_tx_abort(t->mgmt, now);
	if (t->mgmt_rx)
		wan_rx_reset(t->mgmt_rx, now);
	eng_mgmt_ended(t);
	t->mgmt_rx = NULL;
	eng_peer_end(t, now);
}

bool eng_tunnel_remove(struct eng *e, unsigned tunnel, struct eng_tunnel_old **out, rwy_time now)
{
	struct eng_tunnel *t = &e->tunnel[tunnel];

	*out = NULL;
	if (tunnel >= e->cfg.tunnels || !t->wan)
		return true;
	if (!t->removing) {
		t->removing = true;
		t->remove_at = now;
		end_own_flows(t, now);
	}
	if (!eng_sb_tunnel_leaves(e, tunnel, now) || t->sides)
		return false;
	*out = (struct eng_tunnel_old *)(void *)t->wan;
	t->wan = NULL;
	t->removing = t->leaves = false;
	e->sb.taking &= ~((uint64_t)1 << tunnel);
	t->min_rtt = t->least_rtt = 0;
	while (e->cfg.tunnels && !e->tunnel[e->cfg.tunnels - 1].wan)
		e->cfg.tunnels--;
	return true;
}

bool eng_tunnel_asked(const struct eng *e, unsigned tunnel)
{
	return e->sb.pinned == tunnel + 1 && e->tunnel[tunnel].removing;
}

void eng_tunnel_gone(struct eng_tunnel_old *t)
{
	wan_free((struct wan_tunnel *)(void *)t);
}

int eng_prefixes_set(struct eng *e, const struct eng_prefix *prefix, unsigned n)
{
	if (n > ENG_PREFIXES_MAX)
		return RWY_EINVAL;
	for (unsigned i = 0; i < n; i++)
		if (!eng_tunnel_there(e, prefix[i].tunnel) || prefix[i].len > 128)
			return RWY_EINVAL;
	memcpy(e->cfg.prefix, prefix, n * sizeof(*prefix));
	e->cfg.prefixes = n;
	e->tenant[0]->cfg.prefix = e->cfg.prefix;
	e->tenant[0]->cfg.prefixes = n;
	return 0;
}
