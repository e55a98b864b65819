/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a tunnel. The first usable path gives the RTT; rates and windows are sums over the
 * paths. */
#include <string.h>

#include "wan/lease.h"
#include "wan/tunnel.h"

static void fec_counters(struct wan_counters *c, const struct wan_fec_counters *f)
{
	c->repair_sent = f->sent;
	c->repair_bytes = f->sent_bytes;
	c->repair_received = f->received;
	c->repair_unused = f->unused;
	c->rebuilt = f->rebuilt;
	c->drop_bad_repair = f->bad;
	c->drop_no_buffer += f->no_buffer;
}

const struct wan_counters *wan_counters(const struct wan_tunnel *t)
{
	return &t->c;
}

/* The rate that all paths which carry together were seen to have; 0: that of one is not known. */
static uint64_t measured(const struct wan_tunnel *t, const struct wan_path *first)
{
	uint64_t sum = 0, one;

	if (t->paths == 1 || t->st.on)
		return wan_measure_rate(&first->measure);
	for (unsigned i = 0; i < t->paths; i++) {
		const struct wan_path *p = &t->path[i];

		if (!wan_path_usable(p) || p->spared || p->rests)
			continue;
		one = wan_measure_rate(&p->measure);
		if (!one)
			return 0;
		sum += one;
	}
	return sum;
}

void wan_get_stats(const struct wan_tunnel *t, struct wan_stats *out)
{
	const struct wan_path *first = &t->path[0];

	memset(out, 0, sizeof(*out));
	out->c = t->c;
	fec_counters(&out->c, &t->fec.c);
	out->up = wan_hs_up(t);
	out->since = t->since;
	out->lease = t->cfg.lease ? t->cfg.lease : WAN_LEASE_WHOLE;
	out->tx_queued_bytes = t->tx_bytes;
	out->rx_held_bytes = t->rx_held;
	out->rx_waiting = t->rx_waiting;
	out->fec_bufs = wan_fec_bufs(&t->fec);
	out->dgram_bufs = wan_dgram_bufs(t);
	out->order_bufs = t->order_bufs;
	out->tx_flows = t->tx_flows;
	out->rx_flows = t->rx_flows;
	out->peer_epoch = wan_hs_session(t) ? t->peer.epoch : 0;
	for (unsigned i = t->paths; i-- > 0;) {
		const struct wan_path *p = &t->path[i];

		if (wan_path_usable(p) && !p->spared)
			first = p;
		if ((!wan_path_usable(p) || p->spared) && t->paths > 1)
			continue;
		out->rate_Bps += p->rate_Bps;
		out->cwnd += p->cwnd;
		out->inflight += p->inflight;
	}
	out->stream = t->st.on;
	out->detour_after = t->detour.after;
	out->detour_proven = t->detour.proven && t->detour.after && !t->st.on;
	out->detour_waiting = t->detour.q.n;
	if (t->st.on) {
		first = wan_stream_path(t);
		out->rate_Bps = t->st.rate_Bps;
		out->inflight = first->inflight;
		out->cwnd = first->inflight + t->st.bytes;
	}
	for (unsigned i = 0; i < t->paths; i++)
		out->fec[i] = t->path[i].fec.stats;
	out->srtt = first->srtt;
	out->min_rtt = first->min_rtt;
	out->rttvar = first->rttvar;
	out->loss_ppm = wan_loss_ppm(first);
	out->burst16 = wan_measure_burst16(&first->measure);
	out->path_Bps = measured(t, first);
	out->measured_at = first->measure.at;
	out->ecn = wan_ecn_name(first);
	out->ce = first->ce_seen;
	out->congest = first->congest.st;
	cc_guard_print(t->cfg.cc, first->cc, out->cc, sizeof(out->cc));
}

unsigned wan_paths(const struct wan_tunnel *t)
{
	return t->paths;
}

static const char *state_name(enum wan_path_state s)
{
	switch (s) {
	case WAN_PATH_OFF:
		return "off";
	case WAN_PATH_UNPROVEN:
		return "unproven";
	case WAN_PATH_SILENT:
		return "silent";
	case WAN_PATH_TRIED:
		return "tried";
	case WAN_PATH_USABLE:
		return "usable";
	}
	rwy_unreachable();
}

/* Why a path that could carry does not. */
static const char *state_of(const struct wan_path *p)
{
	if (wan_path_usable(p) && p->spared)
		return "spare";
	if (wan_path_usable(p) && p->rests == WAN_COUPLE_RESTS)
		return "resting";
	if (wan_path_usable(p) && p->rests == WAN_COUPLE_HELD)
		return "held";
	return state_name(p->state);
}

void wan_get_path_stats(const struct wan_tunnel *t, unsigned path, struct wan_path_stats *out)
{
	const struct wan_path *p = &t->path[path];

	*out = (struct wan_path_stats){.state = state_of(p),
	    .since = p->state_at,
	    .srtt = p->srtt,
	    .min_rtt = p->min_rtt,
	    .rate_Bps = p->rate_Bps,
	    .cwnd = p->cwnd,
	    .inflight = p->inflight,
	    .loss_ppm = wan_loss_ppm(p),
	    .silences = p->silences,
	    .tx_datagrams = p->sent_n,
	    .tx_bytes = p->sent_bytes,
	    .rx_datagrams = p->rx_n,
	    .rx_bytes = p->rx_bytes,
	    .lost = p->lost_n,
	    .moved = p->moved_n};
}

rwy_dur wan_min_rtt(const struct wan_tunnel *t)
{
	rwy_dur min = RWY_NEVER;

	if (t->st.on && wan_path_has_rtt(wan_stream_path(t)))
		return wan_stream_path(t)->min_rtt;
	for (unsigned i = 0; i < t->paths; i++)
		if (wan_path_has_rtt(&t->path[i]) && t->path[i].min_rtt < min)
			min = t->path[i].min_rtt;
	return min == RWY_NEVER ? 0 : min;
}
