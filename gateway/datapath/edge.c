/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/datapath/edge.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/rx.h"
#include "gateway/port/mbuf.h"
#include "gateway/setup.h"
#include "proxy/desk.h"
#include "proxy/fast.h"
#include "rwy/hash.h"

#define TICK         (100 * RWY_MS)
#define ONWARD_BURST 32

/* --- begin and end --------------------------------------------------------------------------- */

static struct proxy_prefix prefix_of(const struct conf_prefix *p)
{
	return (struct proxy_prefix){p->addr, p->len};
}

struct proxy_entry gw_edge_entry(const struct conf_map *m)
{
	struct proxy_entry e = {.listen = m->listen,
	    .port = m->port,
	    .target = m->target,
	    .target_port = m->target_port ? m->target_port : m->port,
	    .links_max = m->links};

	memcpy(e.name, m->name, sizeof(e.name));
	return e;
}

struct proxy_entry *gw_edge_entries(struct proxy_policy *p)
{
	return (struct proxy_entry *)(void *)(p + 1);
}

struct proxy_policy *gw_edge_policy(const struct conf_relay *c)
{
	struct proxy_policy *p = calloc(
	    1, sizeof(*p) + CONF_MAP_MAX * sizeof(struct proxy_entry) + c->allows * sizeof(struct proxy_acl));
	struct proxy_acl *a;

	if (!p)
		return NULL;
	a = (struct proxy_acl *)(void *)(gw_edge_entries(p) + CONF_MAP_MAX);
	memcpy(p->addr, c->addr, sizeof(p->addr));
	p->addrs = c->addrs;
	p->redirect_port = c->redirect_port;
	p->ask_port = c->ask_port;
	p->entry = gw_edge_entries(p);
	p->entries = c->maps;
	p->acl = a;
	p->acls = c->allows;
	for (unsigned i = 0; i < c->maps; i++)
		gw_edge_entries(p)[i] = gw_edge_entry(&c->map[i]);
	for (unsigned i = 0; i < c->allows; i++)
		a[i] = (struct proxy_acl){prefix_of(&c->allow[i].from), prefix_of(&c->allow[i].to),
		    c->allow[i].ports[0], c->allow[i].ports[1]};
	return p;
}

static_assert(sizeof(((struct proxy_edge *)0)->cookie_key) == 2 * sizeof(uint64_t), "two numbers are a key");
static_assert(CONF_RELAY_ADDRS == PROXY_ADDRS_MAX, "addresses are copied");
static_assert(CONF_NAME == PROXY_NAME_MAX, "names are copied");
static_assert(CONF_MAP_MAX <= PROXY_ENTRIES_MAX, "entries are counted");

static void ip_text(const struct rwy_ip *a, char *out, size_t n)
{
	if (rwy_ip_is4(a))
		inet_ntop(AF_INET, a->b + 12, out, (socklen_t)n);
	else
		inet_ntop(AF_INET6, a->b, out, (socklen_t)n);
}

static void log_link(void *ctx, enum proxy_news n, const struct proxy_link *l, unsigned why)
{
	static const char *const words[] = {"asked", "open", "rejected", "closed", "forgotten", "onward"};
	char local[INET6_ADDRSTRLEN], remote[INET6_ADDRSTRLEN], relay[INET6_ADDRSTRLEN], reason[32] = "";

	ip_text(&l->local, local, sizeof(local));
	ip_text(&l->remote, remote, sizeof(remote));
	ip_text(&l->relay, relay, sizeof(relay));
	if (n == PROXY_NEWS_REJECTED)
		snprintf(reason, sizeof(reason), " reason=%u", why);
	gw_log(GW_LOG_INFO, "relay",
	    "link=%016" PRIx64 " event=%s%s local=%s remote=%s relay=%s port=%u asked_by=%s qpn=%u "
	    "remote_qpn=%u alias=%u",
	    l->id, words[n], reason, local, remote, relay, l->port, l->local_active ? "local" : "remote",
	    l->lqpn, l->rqpn, l->alias);
}

/* The engine asks hosts as soon as it runs: their links are there before it. */
static int links_restore(struct gw_edge *g)
{
	const struct proxy_counters *c = &g->core.c;
	int rc = proxy_edge_restore(&g->core, gw_now());

	if (!rc && c->links_restored + c->links_unfit + c->links_broken)
		gw_log(c->links_unfit + c->links_broken ? GW_LOG_WARNING : GW_LOG_NOTICE, "relay",
		    "links of the process before: restored=%" PRIu64 " unfit=%" PRIu64 " broken=%" PRIu64,
		    c->links_restored, c->links_unfit, c->links_broken);
	return rc;
}

int gw_edge_new(struct gw_edge **out, struct gw_worker *w)
{
	const struct conf_relay *c = &w->app->conf->relay;
	struct proxy_map_cfg cfg;
	struct gw_edge *g;
	uint64_t key[2];
	int rc = RWY_ENOMEM;

	*out = NULL;
	if (!c->addrs)
		return 0;
	proxy_map_cfg_default(&cfg);
	cfg.links_max = c->links_max;
	cfg.half_open_max = c->half_open_max;
	cfg.source_max = c->host_max;
	cfg.idle_ttl = c->idle_expiry;
	cfg.journal = gw_jfile_links(w->app);
	cfg.seed = (uint64_t)gw_now() * RWY_HASH_MUL ^ (uint64_t)(uintptr_t)w;
	g = calloc(1, sizeof(*g));
	if (!g)
		return RWY_ENOMEM;
	g->w = w;
	g->policy = gw_edge_policy(c);
	if (conf_standby(w->app->conf) >= 0)
		g->pair = gw_edge_pair_new(w, &g->core, &cfg);
	if (g->policy && (g->pair || conf_standby(w->app->conf) < 0))
		rc = proxy_edge_init(&g->core, g->policy, &cfg);
	if (!rc)
		rc = links_restore(g);
	if (rc) {
		gw_edge_free(g);
		return rc;
	}
	for (unsigned i = 0; i < sizeof(key) / sizeof(*key); i++)
		key[i] = base_random64();
	memcpy(g->core.cookie_key, key, sizeof(key));
	g->core.news = log_link;
	*out = g;
	return 0;
}

void gw_edge_free(struct gw_edge *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < g->replies; i++)
		gw_buf_ops.free(g->w->pools, g->reply[i]);
	while (g->onward_tail != g->onward_head)
		gw_buf_ops.free(g->w->pools, g->onward[g->onward_tail++ % GW_EDGE_ONWARD]);
	gw_edge_pair_free(g->w, g->pair);
	proxy_edge_fini(&g->core);
	free(g->policy);
	free(g);
}

/* --- packets --------------------------------------------------------------------------------- */

void gw_edge_out_ahead(void *ctx, const struct eng_nexthop *nh)
{
	const struct gw_worker *w = ctx;

	proxy_fast_out_ahead(&w->edge->core, nh->link);
}

enum gw_edge_where gw_edge_in(
    struct gw_worker *w, const struct gw_port *p, struct rte_mbuf *m, struct gw_pkt *k, struct proxy_act *act)
{
	struct gw_edge *g = w->edge;
	const uint8_t *udp = gw_pkt_udp(m, k);
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, k->off);
	uint16_t port;

	act->reply_len = 0;
	act->link = NULL;
	if (!udp || !proxy_is_relay(g->policy, &k->dst))
		return GW_EDGE_KERNEL;
	port = rwy_get16(udp + 2);
	if (port != ROCE_UDP_PORT) {
		if (!port || port != g->policy->ask_port)
			return GW_EDGE_KERNEL;
		proxy_desk_packet(&g->core, ip, k->ip_len, act, w->now);
		if (gw_edge_pair_waits(w, act->link, act->reply, act->reply_len, true))
			act->reply_len = 0;
		return GW_EDGE_DROP;
	}
	/* Before a REQ makes a link that nobody could answer. */
	if (!gw_resolve_source(w, &k->src) && p->conf->source_check)
		return GW_EDGE_FOREIGN;
	proxy_edge_in(&g->core, ip, k->ip_len, act, w->now);
	if (act->verdict == PROXY_DROP)
		return GW_EDGE_DROP;
	k->dst = gw_edge_address(ip, true);
	return GW_EDGE_ENGINE;
}

/* A REJ for the remote host: the engine gets it with the next turn. */
static void reply_engine(struct gw_edge *g, const struct proxy_act *act)
{
	struct gw_worker *w = g->w;
	struct rwy_buf *b = NULL;

	if (g->replies < GW_EDGE_REPLIES)
		b = gw_buf_ops.alloc(w->pools, GW_EDGE_HEADROOM, act->reply_len);
	if (!b) {
		w->c.drop_no_mbuf++;
		return;
	}
	memcpy(b->data, act->reply, act->reply_len);
	b->len = act->reply_len;
	b->pcp = 0;
	g->reply[g->replies++] = b;
}

/* --- to another relay ------------------------------------------------------------------------- */

struct rwy_ip gw_edge_address(const uint8_t *ip, bool dst)
{
	const bool is6 = ip[0] >> 4 == 6;
	struct rwy_ip a;

	if (!is6)
		return rwy_ip_from4(ip + (dst ? 16 : 12));
	memcpy(a.b, ip + (dst ? 24 : 8), 16);
	return a;
}

/*
 * The answer to a REQ that came back goes to its host. If that is here, it is *tx afterwards, as if
 * it came from the far relay: true.
 */
static bool foreign(struct gw_edge *g, struct eng_lan_tx *tx)
{
	struct gw_worker *w = g->w;
	struct proxy_act act, out;

	proxy_edge_foreign(&g->core, tx->buf->data, tx->buf->len, &act, w->now);
	if (!act.reply_len)
		return false;
	g->made_to = gw_edge_address(act.reply, true);
	if (gw_verdict_route(w, &g->made_to) >= 0) {
		reply_engine(g, &act);
		return false;
	}
	memcpy(g->made, act.reply, act.reply_len);
	proxy_edge_out(&g->core, g->made, act.reply_len, NULL, &out, w->now);
	if (out.verdict != PROXY_PASS)
		return false;
	gw_buf_ops.free(w->pools, tx->buf);
	*tx = (struct eng_lan_tx){.bytes = g->made, .len = act.reply_len, .dst = &g->made_to};
	return true;
}

/* The engine keeps its packet until the next relay has acknowledged it, so this is a copy. */
static void onward(struct gw_edge *g, const struct eng_lan_tx *tx, int tunnel)
{
	struct gw_worker *w = g->w;
	uint32_t len = tx->buf ? tx->buf->len : tx->len;
	struct rwy_buf *b = NULL;
	struct proxy_act act;
	struct rwy_ip src;

	if (g->onward_head - g->onward_tail < GW_EDGE_ONWARD)
		b = gw_buf_ops.alloc(w->pools, GW_EDGE_HEADROOM, len);
	if (!b) {
		w->c.drop_no_mbuf++; /* it is sent again */
		return;
	}
	memcpy(b->data, tx->buf ? tx->buf->data : tx->bytes, len);
	b->len = len;
	b->pcp = 0;
	src = gw_edge_address(b->data, false);
	proxy_edge_onward(&g->core, b->data, len, gw_verdict_route(w, &src) == tunnel, &act, w->now);
	if (act.reply_len)
		reply_engine(g, &act);
	if (act.verdict == PROXY_PASS)
		g->onward[g->onward_head++ % GW_EDGE_ONWARD] = b;
	else
		gw_buf_ops.free(w->pools, b);
}

/* Only those that are there now: what the engine makes of them waits for the next turn. */
static unsigned onward_turn(struct gw_edge *g)
{
	static const uint16_t plain[ONWARD_BURST];
	struct rwy_buf *b[ONWARD_BURST];
	const unsigned all = g->onward_head - g->onward_tail;

	for (unsigned left = all, n; left; left -= n) {
		n = left < ONWARD_BURST ? left : ONWARD_BURST;
		for (unsigned i = 0; i < n; i++)
			b[i] = g->onward[g->onward_tail++ % GW_EDGE_ONWARD];
		eng_tenant_rx(g->w->eng, b, plain, n, g->w->now);
	}
	return all;
}

bool gw_edge_out(struct gw_worker *w, struct eng_lan_tx *tx)
{
	struct gw_edge *g = w->edge;
	struct proxy_act act;
	uint8_t *ip;
	int tunnel;

	if (tx->foreign)
		return foreign(g, tx);
	tunnel = gw_verdict_route(w, tx->dst);
	if (tunnel >= 0) {
		onward(g, tx, tunnel);
		return false;
	}
	if (tx->buf) {
		ip = tx->buf->data;
	} else if (tx->len <= sizeof(g->made)) {
		ip = memcpy(g->made, tx->bytes, tx->len);
		tx->bytes = ip;
	} else {
		w->c.drop_tx_too_long++;
		return false;
	}
	proxy_edge_out(
	    &g->core, ip, tx->buf ? tx->buf->len : tx->len, tx->nh ? &tx->nh->link : NULL, &act, w->now);
	if (act.reply_len)
		reply_engine(g, &act);
	return act.verdict == PROXY_PASS &&
	       !gw_edge_pair_waits(w, act.link, ip, tx->buf ? tx->buf->len : tx->len, true);
}

unsigned gw_edge_turn(struct gw_worker *w)
{
	static const uint16_t plain;
	struct gw_edge *g = w->edge;
	unsigned n = g->replies;

	while (g->replies)
		eng_tenant_rx(w->eng, &g->reply[--g->replies], &plain, 1, w->now);
	n += onward_turn(g);
	if (w->now - g->tick < TICK)
		return n;
	g->tick = w->now;
	if (w->standby && w->gate != GW_PAIR_SERVES)
		return n; /* the other relay sees their packets */
	proxy_edge_tick(&g->core, w->now);
	return n;
}
