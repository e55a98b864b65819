/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides which gateway of the site owns a RoCE packet of a local host, and sends a sibling's
 * packet on to it. The decision is made once for each QP that a host sends to; then a packet costs
 * one lookup. siblings.c has the list.
 */
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/rx.h"
#include "gateway/datapath/sibling.h"
#include "gateway/datapath/tx.h"

#define HERE   (-1)
#define QP_GSI 1 /* communication management: shared by many connections */

void gw_sibling_begin(struct gw_worker *w)
{
	const struct gw_sib_set *s = w->sib;
	struct gw_sib_worker *sw = w->sibw;

	for (unsigned i = 0; i < CONF_SIBLINGS_MAX; i++) {
		const uint64_t id = s && i < s->n ? s->sib[i].id : 0;

		if (id != sw->id[i]) /* a place that is another's counts anew */
			sw->sent[i] = 0;
		sw->id[i] = id;
	}
	w->sib_gen = s ? s->gen : 0;
}

/* --- owner ----------------------------------------------------------------------------------- */

static const struct gw_sib_pair *pair_find(
    const struct gw_sib_set *s, const struct rwy_ip *local, const struct rwy_ip *remote, uint32_t dqpn)
{
	if (!s->pair)
		return NULL;
	for (uint32_t i = gw_sib_hash(local, remote, dqpn) & s->mask; s->pair[i].used; i = (i + 1) & s->mask)
		if (gw_sib_is(&s->pair[i], local, remote, dqpn))
			return &s->pair[i];
	return NULL;
}

static bool pair_lives(const struct gw_sib_set *s, const struct gw_sib_pair *p)
{
	return p && (p->who < 0 || !s->sib[p->who].lost);
}

static int owner_decide(
    struct gw_worker *w, const struct gw_sib_set *s, const struct gw_pkt *k, uint32_t dqpn)
{
	const struct gw_sib_pair *p = dqpn ? pair_find(s, &k->src, &k->dst, dqpn) : NULL;
	int r;

	/* The owner of a named QP is certain; other QPs of its hosts may wait here to be paired. */
	if (pair_lives(s, p) && !eng_has(w->eng, &k->src, &k->dst, dqpn))
		return p->who;
	if (eng_holds(w->eng, &k->src, &k->dst, dqpn))
		return HERE;
	p = pair_find(s, &k->src, &k->dst, 0);
	if (pair_lives(s, p))
		return p->who;
	r = eng_candidate_find(w->eng, &k->src, &k->dst, s->own, s->candidate, s->candidates);
	return r < 0 ? HERE : s->candidate_of[r];
}

/* --- flow cache ------------------------------------------------------------------------------ */

/* The list has changed since the decision; connections keep their gateway. */
static bool flow_stays(struct gw_worker *w, const struct gw_sib_set *s, const struct gw_sib_flow *f)
{
	if (f->dqpn == QP_GSI)
		return false;
	if (f->who < 0)
		return eng_holds(w->eng, &f->src, &f->dst, f->dqpn);
	return s->sib[f->who].id == f->id && !s->sib[f->who].lost;
}

static struct gw_sib_flow *flow_of(
    struct gw_worker *w, const struct gw_sib_set *s, const struct gw_pkt *k, uint32_t dqpn)
{
	const uint32_t h = gw_sib_hash(&k->src, &k->dst, dqpn);
	struct gw_sib_flow *set = &w->sibw->flow[h & (GW_SIB_FLOWS - GW_SIB_WAYS)], *f = set;
	const rwy_dur idle = w->app->conf->idle_expiry;

	for (struct gw_sib_flow *at = set; at < set + GW_SIB_WAYS; at++) {
		if (at->dqpn != dqpn || !at->last || !rwy_ip_eq(&at->src, &k->src) ||
		    !rwy_ip_eq(&at->dst, &k->dst)) {
			f = at->last < f->last ? at : f;
			continue;
		}
		f = at;
		if (rwy_since(f->last, w->now) < idle && (f->gen == s->gen || flow_stays(w, s, f))) {
			f->last = w->now;
			f->gen = s->gen;
			return f;
		}
		break;
	}
	*f = (struct gw_sib_flow){.src = k->src, .dst = k->dst, .last = w->now, .dqpn = dqpn, .gen = s->gen};
	f->who = (int8_t)owner_decide(w, s, k, dqpn);
	f->id = f->who < 0 ? 0 : s->sib[f->who].id;
	return f;
}

/* --- hand over -------------------------------------------------------------------------------- */

/* Finds the next hops of all siblings. One behind a router has none: the router would send the
 * packet back to us. */
static void hops_renew(struct gw_worker *w, const struct gw_sib_set *s)
{
	struct gw_sib_worker *sw = w->sibw;

	sw->nt_gen = w->nt->gen;
	sw->gen = s->gen;
	sw->all_known = true;
	for (unsigned i = 0; i < s->n; i++) {
		enum gw_nh_miss miss;
		struct rwy_ip addr;
		uint16_t port;

		sw->hop[i] = s->sib[i].id
		                 ? gw_nt_find(w->nt, w->app, &s->sib[i].addr, GW_NH_LAN, &miss, &addr, &port)
		                 : NULL;
		if (sw->hop[i] && !rwy_ip_eq(&sw->hop[i]->addr, &s->sib[i].addr))
			sw->hop[i] = NULL;
		if (!sw->hop[i] && s->sib[i].id && !s->sib[i].lost)
			sw->all_known = false;
	}
}

static void sibling_resolve(struct gw_worker *w, const struct rwy_ip *sibling)
{
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;

	if (!gw_nt_find(w->nt, w->app, sibling, GW_NH_LAN, &miss, &addr, &port) && miss == GW_NH_UNRESOLVED &&
	    rwy_ip_eq(&addr, sibling))
		gw_resolve_ask(w, &addr, port);
}

/* The sender of a packet, by its Ethernet header. */
enum origin { FROM_HOST, FROM_SIBLING, FORGED };

/*
 * A sibling's MAC address is one that its port's neighbour table has for it. Everybody on the LAN
 * can write it into a frame; the seal, where the site has a key, only a gateway.
 */
static enum origin origin_of(const struct gw_worker *w, const struct gw_sib_set *s, const struct rte_mbuf *m,
    const struct gw_pkt *k, const uint8_t *bth)
{
	const uint8_t *mac = rte_pktmbuf_mtod(m, const uint8_t *) + 6;

	for (unsigned i = 0; i < s->n; i++) {
		const struct gw_nh *nh = w->sibw->hop[i];

		if (!nh || memcmp(nh->l2, mac, 6) != 0)
			continue;
		if (nh->port != w->by_id[m->port]->idx || (s->sealed && !gw_seal_good(m, k, s->key, bth)))
			return FORGED;
		return FROM_SIBLING;
	}
	return FROM_HOST;
}

static void hand_on(struct gw_worker *w, const struct gw_sib_set *s, struct rte_mbuf *m,
    const struct gw_pkt *k, const uint8_t *bth, unsigned who)
{
	const struct gw_nh *nh = w->sibw->hop[who];
	uint32_t len = k->ip_len + (s->sealed ? GW_SEAL_LEN : 0);

	if (!nh) {
		sibling_resolve(w, &s->sib[who].addr);
		gw_rx_drop(m, &w->c.drop_sibling_unresolved);
		return;
	}
	/* Some stacks send RoCE with a hop limit of one, and it is carried as if the hosts were on
	 * one link. This makes no loop as long as we recognize every sibling that sends us a
	 * packet. */
	if (!gw_pkt_hop(rte_pktmbuf_mtod_offset(m, uint8_t *, k->off)) && !w->sibw->all_known) {
		gw_rx_drop(m, &w->c.drop_sibling_hops);
		return;
	}
	if (s->sealed && !gw_seal_put(m, k, s->key, bth)) {
		gw_rx_drop(m, &w->c.drop_tx_too_long);
		return;
	}
	if (!w->nh_used[nh->id])
		w->nh_used[nh->id] = 1;
	w->sibw->sent[who]++;
	w->c.sibling_tx++;
	gw_tx_lan(w, nh,
	    &(struct eng_lan_tx){
	        .buf = gw_buf_view(m, k->off, len), .len = len, .own = true, .pcp = k->pcp, .dst = &k->dst});
}

bool gw_sibling_take(struct gw_worker *w, struct rte_mbuf *m, const struct gw_pkt *k)
{
	const struct gw_sib_set *s = w->sib;
	const uint8_t *bth = gw_pkt_bth(m, k);
	struct gw_sib_flow *f;

	if (!bth)
		return false;
	f = flow_of(w, s, k, gw_bth_qpn(bth));
	if (f->who < 0)
		return false;
	if (w->sibw->nt_gen != w->nt->gen || w->sibw->gen != s->gen)
		hops_renew(w, s);
	switch (origin_of(w, s, m, k, bth)) {
	case FROM_HOST:
		hand_on(w, s, m, k, bth, (unsigned)f->who);
		return true;
	case FROM_SIBLING:
		/* The sibling knows better; otherwise nobody would take the packet. */
		f->who = HERE;
		w->c.sibling_kept++;
		return false;
	case FORGED:
		gw_rx_drop(m, &w->c.drop_sibling_forged);
		return true;
	}
	rwy_unreachable();
}
