/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Called once a second on the control thread: reads the tunnels' states on the workers and logs
 * them. Workers leave changes in atomics; a worker is called only when there is a line to write.
 * tunnel_watch.c decides which line to log, and when.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gw.h"
#include "gateway/port/neigh.h"
#include "gateway/setup.h"
#include "gateway/control/tunnel_watch.h"
#include "gateway/control/tunnels.h"

struct tunnel_log {
	struct tunnel_watch w;
	char name[CONF_NAME];    /* "": no tunnel has this number */
	bool told;               /* it has been up for ENG_TELLS_FOR */
	uint64_t sent, received; /* counts at the last line */
};

struct gw_tunnel_log {
	struct tunnel_log t[CONF_TUNNELS_MAX];
};

/* Returns the number of workers that have the tunnel up; *at: the last change on any. */
static unsigned workers_up(const struct gw_app *app, unsigned tunnel, rwy_time *at)
{
	unsigned up = 0;

	*at = 0;
	for (unsigned i = 0; i < app->workers; i++) {
		const uint64_t v =
		    atomic_load_explicit(&app->worker[i]->tun_state[tunnel], memory_order_relaxed);

		up += v & 1;
		if (v >> 1 > *at)
			*at = v >> 1;
	}
	return up;
}

struct tunnel_state {
	struct gw_worker *w;
	unsigned tunnel;
	struct wan_stats wan;
	bool resolved;
};

/* Runs on the worker's thread. */
static void state_read(struct eng *e, void *arg)
{
	struct tunnel_state *l = arg;
	enum gw_nh_miss miss;
	struct rwy_ip addr;
	uint16_t port;
	const struct gw_tun *t = &l->w->tun[l->tunnel];

	eng_tunnel_stats(e, l->tunnel, &l->wan);
	l->resolved = t->conf && gw_nt_find(l->w->nt, l->w->app, &t->conf->remote, t->path[0].port->idx,
	                             &miss, &addr, &port);
}

static void facts_gather(struct gw_app *app, unsigned tunnel, struct watch_facts *f)
{
	struct gw_counters c;
	struct tunnel_state *l = calloc(1, sizeof(*l));

	for (unsigned i = 0; l && i < app->workers; i++) {
		*l = (struct tunnel_state){.w = app->worker[i], .tunnel = tunnel};
		if (gw_call(app, i, state_read, l))
			continue;
		f->sent += l->wan.c.tx_datagrams;
		f->received += l->wan.c.rx_datagrams;
		f->other_version += l->wan.c.drop_version;
		f->other_tunnel += l->wan.c.drop_unknown_tunnel;
		f->resolved = f->resolved || l->resolved;
		if (l->wan.srtt > f->rtt)
			f->rtt = l->wan.srtt;
	}
	free(l);
	gw_counters_get(app, app->workers, &c);
	f->strangers = c.drop_wan_stranger;
}

/* By how much a count has grown; 0: another tunnel of its name and number took its place. */
static uint64_t since(uint64_t *was, uint64_t is)
{
	const uint64_t more = is >= *was ? is - *was : 0;

	*was = is;
	return more;
}

static void state_log(
    struct gw_app *app, unsigned tunnel, enum watch_line line, unsigned up, struct tunnel_log *t)
{
	const struct conf_tunnel *c = &app->conf->tunnel[tunnel];
	struct watch_facts f = {.conf = c,
	    .workers_up = up,
	    .workers = app->workers,
	    .link = atomic_load(&app->port[c->port_idx]->up),
	    .lasted = rwy_since(t->w.before, t->w.since)};
	char text[768];

	if (t->w.changes > t->w.logged + 1)
		f.flaps = t->w.changes - t->w.logged - 1;
	t->w.logged = t->w.changes;
	facts_gather(app, tunnel, &f);
	f.sent = since(&t->sent, f.sent);
	f.received = since(&t->received, f.received);
	tunnel_watch_text(text, sizeof(text), line, &f);
	gw_log(line == WATCH_UP ? GW_LOG_NOTICE : GW_LOG_WARNING, "tunnel", "%s", text);
}

static void state_follow(struct gw_app *app, unsigned tunnel, struct tunnel_log *t, rwy_time now)
{
	const char *name = tunnel < app->conf->tunnels ? app->conf->tunnel[tunnel].name : "";
	enum watch_line line;
	unsigned up;
	rwy_time at;

	if (strcmp(t->name, name) != 0) {
		*t = (struct tunnel_log){0};
		snprintf(t->name, sizeof(t->name), "%s", name);
		tunnel_watch_init(&t->w, now);
	}
	if (!*name)
		return;
	if (gw_pair_hides(atomic_load(&app->pair)) && !app->conf->tunnel[tunnel].standby) {
		*t->name = 0; /* the other gateway of the pair has it: nothing to tell */
		return;
	}
	up = workers_up(app, tunnel, &at);
	t->told =
	    t->told || (up == app->workers && rwy_since(rwy_time_max(at, t->w.start), now) >= ENG_TELLS_FOR);
	line = tunnel_watch_step(&t->w, up == app->workers, at, now);
	if (line)
		state_log(app, tunnel, line, up, t);
}

void gw_tunnels_log(struct gw_app *app)
{
	if (!app->tunnel_log)
		app->tunnel_log = calloc(1, sizeof(*app->tunnel_log));
	if (!app->tunnel_log)
		return;
	gw_tunnels_read(app);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		state_follow(app, i, &app->tunnel_log->t[i], gw_now());
	gw_tunnels_read_end(app);
}

bool gw_tunnels_told(const struct gw_app *app)
{
	bool any = false;

	for (unsigned i = 0; app->tunnel_log && i < CONF_TUNNELS_MAX; i++) {
		if (!*app->tunnel_log->t[i].name)
			continue;
		if (!app->tunnel_log->t[i].told)
			return false;
		any = true;
	}
	return any;
}

void gw_tunnels_log_end(struct gw_app *app)
{
	free(app->tunnel_log);
	app->tunnel_log = NULL;
}
