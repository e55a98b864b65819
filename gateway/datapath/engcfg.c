/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the configuration into that of one worker's engine. The workers share bounds that the file
 * gives for the gateway. */
#include <string.h>

#include "gateway/datapath/engcfg.h"
#include "base/log.h"
#include "base/random.h"
#include "rwy/spread.h"
#include "wan/lease.h"

#define IP4_UDP             28
#define IP6_UDP             48
#define LONG_RTT            (100 * RWY_MS)
#define CONGEST_DELAY_MIN   (5 * RWY_MS)
#define HELD_MIN            64         /* buffers of a tunnel */
#define HOLD                3          /* BDPs held out of order while losses are repaired */
#define DATAGRAMS_MAX       (1u << 20) /* 64 MiB of records per tunnel and worker */
#define MIN_RATE            125000     /* bytes per second: 1 Mbit/s */
#define ACK_MODE_SAME(c, e) static_assert((int)(c) == (int)(e), "the two enums agree")
ACK_MODE_SAME(CONF_ACK_NEAR, ENG_ACK_NEAR);
ACK_MODE_SAME(CONF_ACK_FAR, ENG_ACK_FAR);
ACK_MODE_SAME(CONF_ACK_END, ENG_ACK_END);
ACK_MODE_SAME(CONF_ACK_CAUSAL, ENG_ACK_CAUSAL);
ACK_MODE_SAME(CONF_ACK_SITE, ENG_ACK_SITE);

/* Raises the bounds of sent and held packets, so that a path of this rate can be full over a long
 * distance. Memory limits them afterwards (gw_eng_cfg_memory); the defaults suffice for some 10
 * Gb/s. */
static void fit_rate(struct wan_cfg *w, uint64_t rate_Bps)
{
	uint64_t flight = rate_Bps / (RWY_SEC / LONG_RTT), datagrams = flight / w->mtu[0];

	while (w->tx_pkts_max < datagrams && w->tx_pkts_max < DATAGRAMS_MAX)
		w->tx_pkts_max *= 2;
	if (w->rx_window < HOLD * datagrams)
		w->rx_window =
		    HOLD * datagrams < DATAGRAMS_MAX ? (uint32_t)(HOLD * datagrams) : DATAGRAMS_MAX;
	if (w->rx_bytes < HOLD * flight)
		w->rx_bytes = HOLD * flight;
}

static_assert(1 + CONF_PATHS_MAX == WAN_PATHS_MAX, "a path for each entry, and the tunnel's own");
static_assert((int)CONF_USE_SPARE == (int)WAN_USE_SPARE && (int)CONF_USE_NEVER == (int)WAN_USE_NEVER &&
                  (int)CONF_USE_GRANTED == (int)WAN_USE_GRANTED,
    "the two enums agree");

/* Returns the sum of the rates of all paths. */
static uint64_t paths_fill(struct wan_cfg *w, const struct conf *c, const struct conf_tunnel *t)
{
	uint64_t sum = 0;

	w->paths = 1 + t->paths;
	if (t->paths)
		w->path_probe = t->path_probe;
	for (unsigned k = 0; k < w->paths; k++) {
		const struct conf_path p = conf_tunnel_path(t, k);

		w->mtu[k] = c->port[p.port_idx].mtu - (rwy_ip_is4(&p.local) ? IP4_UDP : IP6_UDP);
		/* 0: the tunnel's, also when that changes */
		w->path_rate_Bps[k] = k ? t->path[k - 1].rate_Bps : 0;
		w->use[k] = (enum wan_path_use)p.use;
		sum += p.rate_Bps;
	}
	return sum;
}

int gw_eng_tunnel_cfg(struct eng_tunnel_cfg *e, const struct conf *c, unsigned idx, unsigned worker)
{
	const struct conf_tunnel *t = &c->tunnel[idx];
	uint64_t rates;

	memcpy(e->name, t->name, sizeof(e->name));
	e->weight = t->weight;
	e->peer = *t->peer ? rwy_spread_id(t->peer) : 0;
	e->late = t->shared;
	wan_cfg_default(&e->wan);
	rates = paths_fill(&e->wan, c, t);
	e->wan.epoch = base_random64();
	e->wan.index = (uint32_t)base_random64();
	e->wan.tunnel_id = conf_tunnel_id(t, worker);
	e->wan.cc = cc_find(t->cc);
	if (!e->wan.cc) {
		gw_log(GW_LOG_ERROR, "config", "tunnel=%s unknown congestion_control `%s`", t->name, t->cc);
		return RWY_EINVAL;
	}
	e->wan.aead = t->security == CONF_SEC_KEYS ? aead_best() : NULL;
	e->wan.aead_alg = c->keys.alg;
	e->wan.rekey = c->keys.rekey;
	e->wan.ecn = t->ecn == CONF_ECN_AUTO;
	e->wan.fec = t->fec == CONF_FEC_OFF ? WAN_FEC_OFF : WAN_FEC_AUTO;
	e->wan.cc_cfg.rate_Bps = t->rate_Bps;
	e->wan.lease = c->workers > 1 ? WAN_LEASE_WHOLE / c->workers : 0;
	e->wan.congest = t->congest;
	e->wan.congest.delay_min = CONGEST_DELAY_MIN;
	if (t->standby)
		e->wan.keepalive = t->standby_beat;
	fit_rate(&e->wan, rates); /* one worker may have all of it (lease.h) */
	e->wan.cc_cfg.mtu = e->wan.mtu[0];
	if (!e->wan.cc_cfg.min_rate_Bps)
		e->wan.cc_cfg.min_rate_Bps = MIN_RATE;
	return 0;
}

int gw_eng_prefixes(struct eng_prefix *prefix, unsigned *n, const struct conf *c, unsigned tunnel)
{
	const struct conf_tunnel *t = &c->tunnel[tunnel];

	for (unsigned k = 0; k < t->prefixes; k++) {
		if (*n == ENG_PREFIXES_MAX) {
			gw_log(
			    GW_LOG_ERROR, "config", "more than %u prefixes in all tunnels", ENG_PREFIXES_MAX);
			return RWY_EINVAL;
		}
		prefix[(*n)++] = (struct eng_prefix){
		    .addr = t->prefix[k].addr, .len = t->prefix[k].len, .tunnel = (uint8_t)tunnel};
	}
	return 0;
}

int gw_eng_cfg(struct eng_cfg *out, const struct conf *c, unsigned worker)
{
	const int pair = conf_standby(c);

	eng_cfg_default(out);
	out->onward = c->relay.addrs != 0;
	if (pair >= 0)
		out->standby = (struct eng_standby_cfg){
		    .on = true, .tunnel = (uint8_t)pair, .wait = c->tunnel[pair].standby_wait};
	out->tunnels = c->tunnels;
	for (unsigned i = 0; i < c->tunnels; i++) {
		int rc = gw_eng_tunnel_cfg(&out->tunnel[i], c, i, worker);

		if (!rc)
			rc = gw_eng_prefixes(out->prefix, &out->prefixes, c, i);
		if (rc)
			return rc;
	}
	out->ack_mode = (enum eng_ack_mode)c->ack_mode;
	out->admission = (enum eng_admission)c->admission;
	out->modes = c->modes;
	for (unsigned i = 0; i < c->modes; i++)
		out->mode[i] = (struct eng_mode){.from = c->mode[i].from.addr,
		    .from_len = c->mode[i].from.len,
		    .to = c->mode[i].to.addr,
		    .to_len = c->mode[i].to.len,
		    .mode = (uint8_t)c->mode[i].mode};
	out->conns_max = c->conns_max / c->workers + 1;
	out->half_open_max = c->half_open_max / c->workers + 1;
	out->idle_expiry = c->idle_expiry;
	out->host_window = c->host_window;
	out->timers = (struct eng_timers){.timeout_min = c->ack_timeout_min,
	    .timeout_max = c->ack_timeout_max,
	    .retry = c->retry,
	    .rnr_retry = c->rnr_retry};
	out->custody_conn = c->custody_conn;
	out->custody_total = c->custody_total / c->workers;
	out->read_cache_conn = c->read_cache_conn;
	out->np_min = c->np_min;
	out->np_max = c->np_max;
	out->np_percent = c->np_percent;
	out->rp = c->near_destination == CONF_RP_DCQCN;
	out->e2e = c->end_to_end == CONF_E2E_WINDOW;
	out->seed = base_random64();
	out->gateway = rwy_spread_id(c->name);
	return 0;
}

void gw_eng_tunnel_memory(
    struct wan_cfg *w, unsigned tunnels, unsigned workers, uint32_t buffers, uint32_t cost)
{
	uint64_t held = buffers / workers / 4 / tunnels;

	if (held < HELD_MIN)
		held = HELD_MIN;
	/* A buffer counts what it takes, so the same packets need so much more credit. */
	w->rx_cost = cost;
	if (cost > w->mtu[0])
		w->rx_bytes = w->rx_bytes / w->mtu[0] * cost;
	if (w->rx_window > held)
		w->rx_window = (uint32_t)held;
	if (w->rx_bytes > held * cost)
		w->rx_bytes = held * cost;
}

void gw_eng_cfg_memory(struct eng_cfg *out, unsigned workers, uint32_t buffers, uint32_t cost)
{
	uint64_t share = buffers / workers, most = share / 2 * cost;

	/*
	 * Shares of a worker's buffers: half for requests and READ responses on their way, a
	 * quarter for packets from the WAN, an eighth for kept answers, the rest for ports' queues.
	 * ACKs wait before the half is full: hosts have packets under way that find room then.
	 */
	out->buf_cost = cost;
	if (out->custody_total > most - most / 5)
		out->custody_total = most - most / 5;
	if (out->custody_conn > out->custody_total)
		out->custody_conn = out->custody_total;
	out->memory_total = out->custody_total + out->custody_total / 4;
	out->memory_conn = out->custody_conn + out->custody_conn / 4;
	out->read_cache_total = share / 8 * cost;
	if (out->read_cache_conn > out->read_cache_total)
		out->read_cache_conn = out->read_cache_total;
	for (unsigned i = 0; i < out->tunnels; i++)
		gw_eng_tunnel_memory(&out->tunnel[i].wan, out->tunnels, workers, buffers, cost);
}
