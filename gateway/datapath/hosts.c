/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of tenants' hosts in one worker: the host table (tenant/vtep.h), ARP and ND
 * (tenant/arp.h). A host is learned from its packets. The destination of a packet is asked for when
 * it is unknown, at a bounded rate: on its VLAN on every LAN port, or at each of its tenant's VTEPs
 * (head-end replication).
 *
 * A host's answer arrives at any worker. It is copied to all others, which learn from it as well,
 * so that the one that asked gets it.
 */
#include <string.h>

#include "gateway/datapath/overlay.h"
#include "gateway/datapath/rx.h"
#include "gateway/datapath/tx.h"

#define CLEAR_BUDGET 256 /* entries of the host table per call */
#define SPREAD_ROOM  (GW_SMALL_ROOM - RTE_PKTMBUF_HEADROOM)

/* --- learning -------------------------------------------------------------------------------- */

/* Returns the configured place of a host; NULL: it is learned. The places are sorted by address. */
static const struct tenant_host *host_configured(const struct tenant *t, const struct rwy_ip *host)
{
	unsigned lo = 0, hi = t->cfg.hosts;

	while (lo < hi) {
		unsigned mid = (lo + hi) >> 1;
		int c = memcmp(&t->cfg.host[mid].addr, host, sizeof(*host));

		if (!c)
			return &t->cfg.host[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* On a VLAN the port is not configured and may be any. */
static bool host_is_configured(const struct tenant_host *h, const struct gw_from *f, const uint8_t mac[6])
{
	static const struct rwy_ip none;
	const struct rwy_ip *at = f->side == TENANT_LAN ? &none : &f->at;

	return rwy_ip_eq(&h->vtep, at) && !memcmp(h->mac, mac, 6);
}

static bool host_learn(
    struct gw_worker *w, const struct gw_from *f, const struct rwy_ip *host, const uint8_t mac[6])
{
	const struct tenant_host *h = host_configured(f->t, host);

	if (h && !host_is_configured(h, f, mac)) {
		w->ov->c.host.forged++;
		return false;
	}
	switch (vtep_learn(w->ov->hosts, f->t->index, host, &f->at, mac, w->now)) {
	case VTEP_KNOWN:
	case VTEP_NEW:
	case VTEP_MOVED:
	case VTEP_FULL: /* the host may send; it is asked for when a packet for it comes */
		return true;
	case VTEP_HELD:
		return false;
	}
	rwy_unreachable();
}

bool gw_host_learn(
    struct gw_worker *w, const struct gw_from *f, const struct rwy_ip *host, const uint8_t mac[6])
{
	if (host_learn(w, f, host, mac))
		return true;
	w->c.drop_host_forged++;
	w->tenants[f->t->index].forged_host++;
	return false;
}

/* Copies a frame from which this worker learned to all other workers. */
static void host_spread(
    struct gw_worker *w, const struct gw_from *f, const struct rwy_ip *host, struct rte_mbuf *m)
{
	if (w->app->workers == 1 || m->data_len > SPREAD_ROOM ||
	    !arp_rate_ask(w->ov->spread, f->t->index, host, w->now))
		return;
	for (unsigned i = 0; i < w->app->workers; i++) {
		struct rte_mbuf *c = i == w->idx ? NULL : rte_pktmbuf_copy(m, w->pools->small, 0, UINT32_MAX);

		if (i == w->idx)
			continue;
		if (!c) {
			w->c.drop_no_mbuf++;
			continue;
		}
		if (gw_rx_hand_over(w, c, i))
			w->c.host_spread++;
	}
}

/* --- ARP and ND ------------------------------------------------------------------------------ */

static void arp_answer(struct gw_worker *w, const struct gw_from *f, const uint8_t *eth, uint32_t len)
{
	w->c.tx_arp_answers++;
	if (f->side == TENANT_VTEP)
		gw_tx_vxlan_frame(w, f->t, &f->local, &f->at, eth, len);
	else
		gw_tx_vlan_frame(w, f->port, f->t->cfg.vlan, eth, len);
}

/* Resolves the target of an answered request on the tenant's other side, so that the packet that
 * follows finds it. */
static void target_resolve(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *target)
{
	enum tenant_side side = tenant_find(t, target).side;
	struct vtep_host at;

	if (side != TENANT_TUNNEL)
		(void)gw_host_find(w, t, side, target, &at);
}

bool gw_host_arp(struct gw_worker *w, const struct gw_from *f, struct rte_mbuf *m, uint32_t eth, uint32_t net,
    uint32_t end, bool owned)
{
	const uint8_t *mac = f->side == TENANT_VTEP ? f->t->cfg.gw_mac : f->port->mac;
	uint8_t out[ARP_FRAME_MAX];
	struct arp_msg msg = {0};
	uint32_t out_len = 0;
	enum arp_what what = arp_rx(f->t, (enum tenant_side)f->side, mac,
	    rte_pktmbuf_mtod_offset(m, const uint8_t *, eth), net - eth, end - eth, &msg, out, &out_len);

	if (what == ARP_OTHER)
		return false;
	if (owned) { /* a copy: another worker received, counted and answered it */
		if (msg.learn)
			host_learn(w, f, &msg.sender, msg.mac);
	} else if (!msg.learn || gw_host_learn(w, f, &msg.sender, msg.mac)) {
		w->ov->c.arp[what]++;
		if (msg.learn)
			host_spread(w, f, &msg.sender, m);
		if (out_len)
			arp_answer(w, f, out, out_len);
		if (what == ARP_ANSWER_PROXY)
			target_resolve(w, f->t, &msg.target);
	}
	rte_pktmbuf_free(m);
	return true;
}

/* --- requests -------------------------------------------------------------------------------- */

static void ask_vlan(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *host)
{
	uint8_t out[ARP_FRAME_MAX];

	for (unsigned i = 0; i < w->app->ports; i++) {
		struct gw_port *p = w->app->port[i];
		uint32_t n = p->conf->role == CONF_ROLE_LAN ? arp_ask(t, p->mac, host, t->cfg.vlan, out) : 0;

		if (!n)
			continue;
		w->c.tx_arp_asks++;
		gw_tx_vlan_frame(w, p, t->cfg.vlan, out, n);
	}
}

static void ask_vteps(struct gw_worker *w, const struct tenant *t, const struct rwy_ip *host)
{
	uint8_t out[ARP_FRAME_MAX];
	uint32_t n = arp_ask(t, t->cfg.gw_mac, host, 0, out);

	for (unsigned i = 0; n && i < t->cfg.vteps; i++) {
		w->c.tx_arp_asks++;
		gw_tx_vxlan_frame(w, t, NULL, &t->cfg.vtep[i], out, n);
	}
}

/* Returns the only LAN port; -1: there are several. */
static int only_lan(const struct gw_app *app)
{
	int found = -1;

	for (unsigned i = 0; i < app->ports; i++) {
		if (app->port[i]->conf->role != CONF_ROLE_LAN)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

bool gw_host_find(struct gw_worker *w, const struct tenant *t, enum tenant_side side,
    const struct rwy_ip *host, struct vtep_host *out)
{
	const struct vtep_host *at = vtep_find(w->ov->hosts, t->index, host, w->now);
	const struct tenant_host *h = host_configured(t, host);
	int port = h && side == TENANT_LAN ? only_lan(w->app) : -1;

	/* An entry is void if it was learned before its prefix moved to the other side, or before
	 * the host was configured. */
	if (at && (at->vtep.b[0] == 0xff) == (side == TENANT_LAN) && (!h || !memcmp(h->mac, at->mac, 6)) &&
	    (!h || side == TENANT_LAN || rwy_ip_eq(&h->vtep, &at->vtep))) {
		*out = *at;
		return true;
	}
	if (h && (side == TENANT_VTEP || port >= 0)) {
		out->vtep = side == TENANT_VTEP ? h->vtep : gw_host_on_port((unsigned)port);
		memcpy(out->mac, h->mac, 6);
		return true;
	}
	if (arp_rate_ask(w->ov->asks, t->index, host, w->now)) {
		if (side == TENANT_LAN)
			ask_vlan(w, t, host);
		else
			ask_vteps(w, t, host);
	}
	return false;
}

/* --- removal ---------------------------------------------------------------------------------- */

bool gw_hosts_clear(struct gw_worker *w, uint32_t index)
{
	return vtep_clear(w->ov->hosts, index, CLEAR_BUDGET);
}
