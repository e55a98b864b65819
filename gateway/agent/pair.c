/* SPDX-License-Identifier: Apache-2.0 */
/* One of a pair of gateways, as the control center hears of it: see pair.h. */
#include "gateway/agent/pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/internal.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/tunnels.h"
#include "rwy/hash.h"

/* --- what both have --------------------------------------------------------------------------- */

static void put_ip(FILE *f, const struct rwy_ip *a)
{
	for (unsigned i = 0; i < sizeof(a->b); i++)
		fprintf(f, "%02x", a->b[i]);
	fputc(' ', f);
}

static void put_tunnel(FILE *f, const struct conf_tunnel *t)
{
	fprintf(f, "tunnel %s %s %s %u %" PRIu64 " %u %u ", t->name, t->port, conf_tunnel_peer_name(t),
	    t->udp_port, t->rate_Bps, (unsigned)t->carrier, (unsigned)t->security);
	put_ip(f, &t->local);
	put_ip(f, &t->remote);
	for (unsigned i = 0; i < t->prefixes; i++) {
		put_ip(f, &t->prefix[i].addr);
		fprintf(f, "/%u ", t->prefix[i].len);
	}
	fputc('\n', f);
}

uint64_t ctrl_pair_digest(const struct conf *c, const struct conf_tunnel *tunnel, unsigned n)
{
	const int pair = conf_standby(c);
	const char *cable = pair >= 0 ? c->tunnel[pair].port : "";
	char *text = NULL;
	size_t len = 0;
	uint64_t h = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return 0;
	fprintf(f, "%s %s %u\n", c->name, c->controller.site, (unsigned)c->ack_mode);
	for (unsigned i = 0; i < c->ports; i++) {
		const struct conf_port *p = &c->port[i];

		if (!strcmp(p->name, cable))
			continue;
		fprintf(f, "port %s %u %u ", p->name, (unsigned)p->role, (unsigned)p->mtu);
		for (unsigned k = 0; k < sizeof(p->mac); k++)
			fprintf(f, "%02x", p->mac[k]);
		for (unsigned k = 0; k < p->addrs; k++)
			put_ip(f, &p->addr[k].addr);
		fputc('\n', f);
	}
	for (unsigned i = 0; i < n; i++)
		if (*tunnel[i].name && !tunnel[i].standby)
			put_tunnel(f, &tunnel[i]);
	if (fclose(f) == 0)
		h = rwy_hash_bytes(1, text, len);
	free(text);
	return h;
}

/* --- how it is -------------------------------------------------------------------------------- */

static void ask(struct eng *e, void *arg)
{
	struct ctrl_standby *s = arg;

	s->is = eng_standby_info(e, &s->i);
}

/* Worker 0 speaks for all. False: it is none, or the worker does not answer. */
static bool ask_worker(struct gw_ctrl *k, struct ctrl_standby *s)
{
	s->is = false;
	return *k->member && k->app->workers && gw_call(k->app, 0, ask, s) == 0 && s->is;
}

static uint64_t age_ms(rwy_time at)
{
	return at ? rwy_since(at, gw_now()) / RWY_MS : 0;
}

static uint64_t digest(struct gw_ctrl *k)
{
	struct conf_tunnel *own = calloc(CONF_TUNNELS_MAX, sizeof(*own));
	uint64_t h = 0;

	if (own) {
		gw_change_lock();
		h = ctrl_pair_digest(k->app->conf, own, gw_tunnels_own(k->app, own));
		gw_change_unlock();
	}
	free(own);
	return h;
}

static void put_event(json_t *o, const char *key, const char *by, rwy_time at)
{
	if (*by)
		json_object_set_new(
		    o, key, json_pack("{s:s, s:I}", "by", by, "age_ms", (json_int_t)age_ms(at)));
}

json_t *ctrl_pair(void *ctx)
{
	struct gw_ctrl *k = ctx;
	struct ctrl_standby s;
	json_t *o;

	if (!*k->member)
		return NULL;
	if (!ask_worker(k, &s)) { /* it hangs: what it said last */
		if (!k->standby.is)
			return NULL;
		s = k->standby;
	}
	k->standby = s;
	o = json_pack("{s:s, s:o, s:s, s:I, s:I}", "member", k->member, "configuration",
	    json_sprintf("%016" PRIx64, digest(k)), "state", s.i.state, "epoch", (json_int_t)s.i.term,
	    "age_ms", (json_int_t)age_ms(s.i.since));
	if (*s.i.other)
		json_object_set_new(o, "other", json_string(s.i.other));
	put_event(o, "served", s.i.took_by, s.i.took_at);
	put_event(o, "lost", s.i.lost_by, s.i.lost_at);
	return o;
}

/* All texts are static: pointers that differ are other words. */
bool ctrl_pair_news(void *ctx)
{
	struct gw_ctrl *k = ctx;
	const struct eng_standby_info *was = &k->standby.i;
	struct ctrl_standby s;

	if (!ask_worker(k, &s))
		return false;
	/* Connections that it took over: the control center hears of them from this process now. */
	if (s.i.serves && k->standby.is && !was->serves)
		ctrl_resync(k);
	return !k->standby.is || s.i.state != was->state || s.i.other != was->other ||
	       s.i.term != was->term || s.i.took_by != was->took_by || s.i.lost_by != was->lost_by ||
	       s.i.took_at != was->took_at || s.i.lost_at != was->lost_at;
}
