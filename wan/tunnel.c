/* SPDX-License-Identifier: Apache-2.0 */
/* Creation, timers and end of a tunnel. Sending is in send.c, receiving in recv.c. */
#include <stdlib.h>
#include <string.h>

#include "wan/hello.h"
#include "wan/paths.h"
#include "wan/tunnel.h"

#define DOWN_AFTER 4 /* keep-alive intervals of silence */
#define REKEY_MIN  RWY_MS

void wan_cfg_default(struct wan_cfg *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->cc = &cc_auto;
	cfg->cc_cfg = (struct cc_cfg){.initial_rtt = 100 * RWY_MS, .mtu = 1472};
	for (unsigned i = 0; i < WAN_PATHS_MAX; i++)
		cfg->mtu[i] = 1472;
	cfg->paths = 1;
	cfg->path_probe = 5 * RWY_MS;
	cfg->tx_pkts_max = 1u << 17;
	cfg->rx_window = 1u << 17;
	cfg->rx_bytes = (uint64_t)256 << 20;
	cfg->keepalive = RWY_SEC;
	cfg->max_ack_delay = 5 * RWY_MS;
	cfg->ecn = true;
	wan_congest_cfg_default(&cfg->congest);
	cfg->fec = WAN_FEC_AUTO;
	cfg->fec_extra_max = 300;
	cfg->fec_rx_bytes = (uint64_t)32 << 20;
	cfg->wire_overhead = 42; /* Ethernet 14, IPv4 20, UDP 8 */
	cfg->rekey = 60 * RWY_SEC;
}

static bool cfg_ok(const struct wan_cfg *c)
{
	if (!c->ops || !c->ops->rx_open || !c->ops->rx_data || !c->ops->rx_close || !c->bufs.ops || !c->cc ||
	    !c->epoch)
		return false;
	if (c->paths < 1 || c->paths > WAN_PATHS_MAX)
		return false;
	if (c->use[0] == WAN_USE_NEVER)
		return false;
	for (unsigned i = 0; i < c->paths; i++)
		if (c->mtu[i] < 576 || c->mtu[i] > 9000)
			return false;
	if (c->path_probe < RWY_MS || c->path_probe > RWY_SEC)
		return false;
	if (c->tx_pkts_max < 256 || (c->tx_pkts_max & (c->tx_pkts_max - 1)))
		return false;
	if (c->aead && c->rekey < REKEY_MIN)
		return false;
	if (c->fec_extra_max > 1000 || c->fec_rx_bytes > (uint64_t)1 << 30)
		return false;
	return c->rx_window && c->rx_window <= 1u << 30 && c->keepalive && c->max_ack_delay <= 25 * RWY_MS;
}

static void fec_init(struct wan_tunnel *t)
{
	const struct wan_cfg *c = &t->cfg;

	t->fec = (struct wan_fec){.ops = &wan_recv_fec_ops,
	    .ctx = t,
	    .bufs = &c->bufs,
	    .on = c->fec == WAN_FEC_AUTO,
	    .extra_max = c->fec_extra_max / 1000.0,
	    .rx_bytes = c->fec_rx_bytes,
	    .code = c->fec_code ? c->fec_code : &t->fec.own};
}

static int paths_new(struct wan_tunnel *t, rwy_time now)
{
	/* Paths may be added later. What is not used of this is never touched. */
	t->path = aligned_alloc(alignof(struct wan_path), (WAN_PATHS_MAX + 1) * sizeof(*t->path));
	if (!t->path)
		return RWY_ENOMEM;
	if (wan_path_init(wan_stream_path(t), t, WAN_PATH_STREAM, now) < 0)
		return RWY_ENOMEM;
	t->share = WAN_FEC_ALL;
	wan_couple_init(&t->couple, t->cfg.paths);
	t->first = t->path;
	t->mtu_own = t->cfg.mtu[0];
	for (unsigned i = 0; i < t->cfg.paths; i++) {
		if (wan_path_init(&t->path[i], t, (uint8_t)i, now) < 0)
			return RWY_ENOMEM;
		t->paths++;
		if (t->cfg.mtu[i] < t->mtu_own)
			t->mtu_own = t->cfg.mtu[i];
	}
	if (t->cfg.aead)
		t->mtu_own -= AEAD_TAG;
	t->mtu_min = t->fec.mtu = t->mtu_own;
	wan_rest_spare(t, now);
	return 0;
}

int wan_new(struct wan_tunnel **out, const struct wan_cfg *cfg, rwy_time now)
{
	struct wan_tunnel *t;
	uint32_t log = cfg->tx_pkts_max * 2;

	if (!cfg_ok(cfg))
		return RWY_EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return RWY_ENOMEM;
	t->cfg = *cfg;
	if (cfg->aead)
		t->cfg.wire_overhead += AEAD_TAG;
	fec_init(t);
	wan_sched_init(&t->sched);
	t->log = calloc(log, sizeof(*t->log));
	t->log_mask = log - 1;
	t->bytes_limit = cfg->rx_bytes;
	t->window_limit = cfg->rx_window;
	t->last_rx = t->since = now;
	if (!t->log || paths_new(t, now) < 0 || (cfg->aead && wan_keys_new(t) < 0)) {
		wan_free(t);
		return RWY_ENOMEM;
	}
	t->tx_slab.size = rwy_slab_size(sizeof(struct wan_txflow));
	t->rx_slab.size = rwy_slab_size(sizeof(struct wan_rxflow));
	t->ring_slab.size = rwy_slab_size(WAN_RING_SMALL * sizeof(void *));
	wan_hs_init(t, now);
	*out = t;
	return 0;
}

void wan_free(struct wan_tunnel *t)
{
	if (!t)
		return;
	wan_rx_end_all(t, WAN_CLOSE_TUNNEL, t->last_rx);
	for (struct wan_rxflow *f = t->rx_retired; f; f = f->retired_next)
		f->dirty = f->rate_dirty = false;
	wan_rx_reap(t);
	rwy_slab_fini(&t->rx_slab);
	free(t->rx);
	wan_tx_free_all(t);
	wan_sched_fini(&t->sched);
	wan_dgram_fini(t);
	wan_fec_fini(&t->fec);
	for (unsigned i = 0; t->path && i <= t->paths; i++)
		wan_path_fini(wan_path_nth(t, i));
	wan_keys_free(t);
	free(t->path);
	free(t->log);
	free(t);
}

/* Maps grow between turns: a datagram finds its place without an allocation. */
static void maps_grow(struct wan_tunnel *t)
{
	for (unsigned i = 0; i <= t->paths; i++)
		if (wan_path_map_short(wan_path_nth(t, i)))
			wan_path_map_grow(wan_path_nth(t, i));
}

static bool maps_short(const struct wan_tunnel *t)
{
	bool any = false;

	for (unsigned i = 0; i <= t->paths; i++)
		any |= wan_path_map_short(wan_path_nth(t, i));
	return any;
}

static rwy_time keepalive_at(const struct wan_tunnel *t, const struct wan_path *p)
{
	return rwy_time_max(p->last_rx, p->last_ping) + t->cfg.keepalive;
}

static void keep_alive(const struct wan_tunnel *t, struct wan_path *p, rwy_time now)
{
	if (p->state == WAN_PATH_OFF || now < keepalive_at(t, p))
		return;
	p->ping = true;
	p->last_ping = now;
}

static rwy_time down_at(const struct wan_tunnel *t)
{
	if (!wan_hs_up(t))
		return RWY_NEVER;
	return t->claim.own == WAN_CLAIM_SILENT ? 0 : t->last_rx + DOWN_AFTER * t->cfg.keepalive;
}

/* The session's timers run. */
static bool runs(const struct wan_tunnel *t)
{
	return wan_hs_session(t) && wan_claim_speaks(t);
}

/* Nothing can be sealed any more. */
static void keys_ended(struct wan_tunnel *t, rwy_time now)
{
	if (!t->st.on && wan_hs_up(t))
		wan_hs_event(t, WAN_HSE_SILENCE, &(struct wan_hs_what){.now = now});
}

static void keys_tick(struct wan_tunnel *t, rwy_time now)
{
	bool had = wan_keys_ready(t);

	wan_keys_tick(t, now);
	if (had && !wan_keys_ready(t))
		keys_ended(t, now);
}

void wan_tick(struct wan_tunnel *t, rwy_time now)
{
	maps_grow(t);
	if (t->woken)
		wan_rx_go_on(t, now);
	for (unsigned i = 0; runs(t) && i < t->paths; i++) {
		struct wan_path *p = &t->path[i];

		wan_loss_tick(p, now);
		if (!t->st.on)
			keep_alive(t, p, now);
	}
	if (t->st.on && runs(t))
		keep_alive(t, wan_stream_path(t), now);
	if (t->paths > 1 && runs(t))
		wan_paths_tick(t, now);
	wan_stream_tick(t, now);
	if (t->keys)
		keys_tick(t, now);
	if (now >= down_at(t))
		wan_hs_event(t, WAN_HSE_SILENCE, &(struct wan_hs_what){.now = now});
	if (t->rescan)
		wan_ctl_rescan(t, now);
	if (t->broken)
		wan_tx_broken(t, now);
	if (t->unnamed)
		wan_tx_name(t, now);
	wan_tx_reap(t);
	wan_rx_reap(t);
}

rwy_time wan_next(const struct wan_tunnel *t)
{
	rwy_time next = t->rescan || t->broken || t->unnamed || maps_short(t) ? 0 : wan_send_next(t);

	for (unsigned i = 0; runs(t) && i < t->paths; i++) {
		next = rwy_time_min(next, wan_loss_next(&t->path[i]));
		if (!t->st.on && t->path[i].state != WAN_PATH_OFF)
			next = rwy_time_min(next, keepalive_at(t, &t->path[i]));
	}
	if (t->st.on && runs(t))
		next = rwy_time_min(next, keepalive_at(t, wan_stream_path(t)));
	if (t->paths > 1 && runs(t))
		next = rwy_time_min(next, wan_paths_next(t));
	next = rwy_time_min(next, wan_stream_next(t));
	if (t->keys)
		next = rwy_time_min(next, wan_keys_next(t));
	return rwy_time_min(next, down_at(t));
}

bool wan_quiet(const struct wan_tunnel *t, rwy_time now)
{
	return !t->stirred && now < t->quiet_until;
}

void wan_note_quiet(struct wan_tunnel *t)
{
	t->quiet_until = wan_next(t);
	t->stirred = false;
}

void wan_keys_use(struct wan_tunnel *t, rwy_time now)
{
	wan_stir(t);
	if (wan_keys_take_offered(t, now))
		wan_hs_wake(t, now);
}

void wan_keys_end(struct wan_tunnel *t, rwy_time now)
{
	wan_stir(t);
	if (!t->keys)
		return;
	wan_keys_wipe(t);
	keys_ended(t, now);
}

void wan_claim(struct wan_tunnel *t, enum wan_claim c, rwy_time now)
{
	bool spoke = wan_claim_speaks(t);

	if (c == t->claim.own)
		return;
	wan_stir(t);
	if (wan_claim_set(t, c, now))
		wan_hs_nonce(t, now);
	if (wan_claim_speaks(t) && !spoke)
		wan_hs_wake(t, now);
}

void wan_rx_credit(struct wan_tunnel *t, uint32_t rx_window, uint64_t rx_bytes, rwy_time now)
{
	wan_stir(t);
	t->cfg.rx_window = rx_window ? rx_window : 1;
	t->cfg.rx_bytes = rx_bytes;
	if (t->window_limit < t->cfg.rx_window)
		t->window_limit = t->cfg.rx_window;
	if (t->bytes_limit < rx_bytes)
		t->bytes_limit = rx_bytes;
	t->credit_no++;
	t->credit_dirty = true;
}

void wan_retune(struct wan_tunnel *t, uint64_t rate_Bps, const struct wan_congest_cfg *congest, rwy_time now)
{
	bool rate = rate_Bps != t->cfg.cc_cfg.rate_Bps;

	wan_stir(t);
	t->cfg.cc_cfg.rate_Bps = rate_Bps;
	for (unsigned i = 0; i < t->paths; i++) {
		if (rate)
			wan_path_limits(&t->path[i]);
		wan_congest_retune(&t->path[i].congest, congest);
	}
	t->cfg.congest = *congest;
}

void wan_retune_path(struct wan_tunnel *t, unsigned path, uint64_t rate_Bps)
{
	wan_stir(t);
	if (path >= t->paths || rate_Bps == t->cfg.path_rate_Bps[path])
		return;
	t->cfg.path_rate_Bps[path] = rate_Bps;
	wan_path_limits(&t->path[path]);
}

void wan_retune_probe(struct wan_tunnel *t, rwy_dur path_probe)
{
	wan_stir(t);
	if (path_probe >= RWY_MS && path_probe <= RWY_SEC)
		t->cfg.path_probe = path_probe;
}
