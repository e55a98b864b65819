/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of one worker's tunnels, on its thread. tunnels.c decides what changes, and in which
 * order. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "engine/tunnel.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/datapath/engcfg.h"
#include "gateway/datapath/lease.h"
#include "gateway/setup.h"
#include "gateway/control/tunnels_int.h"

static unsigned tunnels_count(const struct conf *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->tunnels; i++)
		n += *c->tunnel[i].name != 0;
	return n ? n : 1;
}

/* --- add one ---------------------------------------------------------------------------------- */

struct tunnel_attach {
	struct gw_worker *w;
	const struct conf_tunnel *conf;
	struct eng_tunnel_new *n;
	unsigned tunnel;
	int rc;
};

static void tunnel_attach(struct eng *e, void *arg)
{
	struct tunnel_attach *b = arg;

	gw_tx_tunnel_init(b->w, b->tunnel, b->conf);
	b->rc = eng_tunnel_add(e, b->tunnel, b->n);
	if (b->rc)
		gw_tx_tunnel_fini(b->w, b->tunnel);
}

int gw_tunnel_build(struct gw_app *app, unsigned worker, const struct conf *c, unsigned i)
{
	struct gw_worker *w = app->worker[worker];
	struct tunnel_attach b = {.w = w, .conf = &c->tunnel[i], .tunnel = i};
	struct eng_tunnel_cfg *e = calloc(1, sizeof(*e));
	int rc = RWY_ENOMEM;

	if (!e || !w)
		goto out;
	if (worker == 0) { /* the first one that gets it: nobody has the number now */
		gw_leases_reset(app, i);
		eng_lanes_begin(&app->lanes, i, base_random64() | 1);
	}
	rc = gw_eng_tunnel_cfg(e, c, i, worker);
	if (rc)
		goto out;
	gw_eng_tunnel_memory(
	    &e->wan, tunnels_count(c), app->workers, w->pools->big_n, w->pools->room + GW_MBUF_OVERHEAD);
	rc = eng_tunnel_make(&b.n, w->eng, i, e, gw_now());
	if (!rc) {
		rc = gw_call(app, worker, tunnel_attach, &b);
		if (!rc)
			rc = b.rc;
		if (rc)
			eng_tunnel_unmake(b.n);
	}
out:
	free(e);
	return w ? rc : 0;
}

/* --- change all ------------------------------------------------------------------------------- */

struct tunnels_set {
	struct gw_worker *w;
	const struct conf *c;
	uint64_t set;
	struct eng_tunnel_tune tune[CONF_TUNNELS_MAX];
	struct eng_prefix prefix[ENG_PREFIXES_MAX];
	unsigned prefixes;
	int rc;
};

static void tunnels_set(struct eng *e, void *arg)
{
	struct tunnels_set *t = arg;

	int rc = 0;

	for (unsigned i = 0; i < t->c->tunnels; i++)
		if (t->set >> i & 1) {
			t->tune[i].anew = gw_tx_tunnel_set(t->w, i, &t->c->tunnel[i]);
			rc = eng_tunnel_set(e, i, &t->tune[i], t->w->now);
			t->rc = t->rc ? t->rc : rc;
		}
	rc = eng_prefixes_set(e, t->prefix, t->prefixes);
	t->rc = t->rc ? t->rc : rc;
	gw_rx_forget(t->w);
}

int gw_tunnels_set(struct gw_app *app, unsigned worker, const struct conf *c)
{
	struct gw_worker *w = app->worker[worker];
	struct eng_tunnel_cfg *e = malloc(sizeof(*e));
	struct tunnels_set *t = calloc(1, sizeof(*t));
	int rc = e && t ? 0 : RWY_ENOMEM;

	if (t) {
		t->w = w;
		t->c = c;
	}
	for (unsigned i = 0; w && i < c->tunnels && !rc; i++) {
		if (!*c->tunnel[i].name)
			continue;
		rc = gw_eng_tunnel_cfg(e, c, i, worker);
		gw_eng_tunnel_memory(&e->wan, tunnels_count(c), app->workers, w->pools->big_n,
		    w->pools->room + GW_MBUF_OVERHEAD);
		t->set |= (uint64_t)1 << i;
		t->tune[i] = (struct eng_tunnel_tune){.rate_Bps = e->wan.cc_cfg.rate_Bps,
		    .rx_window = e->wan.rx_window,
		    .rx_bytes = e->wan.rx_bytes,
		    .congest = e->wan.congest,
		    .path_probe = e->wan.path_probe,
		    .paths = e->wan.paths,
		    .weight = e->weight};
		memcpy(t->tune[i].path_rate_Bps, e->wan.path_rate_Bps, sizeof(e->wan.path_rate_Bps));
		memcpy(t->tune[i].mtu, e->wan.mtu, sizeof(e->wan.mtu));
		memcpy(t->tune[i].use, e->wan.use, sizeof(e->wan.use));
		if (!rc)
			rc = gw_eng_prefixes(t->prefix, &t->prefixes, c, i);
	}
	if (!rc && w)
		rc = gw_call(app, worker, tunnels_set, t);
	if (!rc && w)
		rc = t->rc;
	free(e);
	free(t);
	return rc;
}

/* --- what goes ------------------------------------------------------------------------------- */

struct tunnels_detach {
	struct gw_worker *w;
	uint64_t set, detached;
	struct eng_tunnel_old *old[CONF_TUNNELS_MAX];
};

static void tunnels_detach(struct eng *e, void *arg)
{
	struct tunnels_detach *t = arg;

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		bool gone;

		if (!(t->set >> i & 1))
			continue;
		gone = eng_tunnel_remove(e, i, &t->old[i], t->w->now);
		if (!eng_tunnel_asked(e, i)) /* the answer is still to come */
			gw_tx_tunnel_close(t->w, i);
		if (!gone)
			continue;
		gw_tx_tunnel_fini(t->w, i);
		t->detached |= (uint64_t)1 << i;
	}
}

int gw_tunnels_detach(struct gw_app *app, unsigned worker, uint64_t set, uint64_t *detached)
{
	struct tunnels_detach *t = calloc(1, sizeof(*t));
	int rc;

	*detached = 0;
	if (!t)
		return RWY_ENOMEM;
	t->w = app->worker[worker];
	t->set = set;
	if (!t->w)
		t->detached = set;
	rc = t->w ? gw_call(app, worker, tunnels_detach, t) : 0;
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		eng_tunnel_gone(t->old[i]);
	*detached = t->detached;
	free(t);
	return rc;
}
