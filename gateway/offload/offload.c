/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of all ports: starts backends, follows the set of tenants, reads back, retries. One lock
 * covers all of it: changes come from the API's thread, ticks from the control thread.
 */
#include "gateway/offload/offload.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/gw.h"
#include "gateway/offload/rte.h"
#include "gateway/offload/tc.h"
#include "gateway/datapath/tenants.h"

#define READ_TICKS   5    /* counters and presence of rules */
#define MANY         2000 /* rules: reading more takes a while */
#define MANY_TICKS   60
#define RETRY_TICKS  10  /* rules refused for lack of room */
#define RETRY_BUDGET 256 /* rules per retry */

struct port {
	const struct gw_port *port;
	enum conf_offload kind;
	struct offload_rte *rte;
	struct offload_tc *tc;
	struct offload_sync *sync; /* NULL: the backend did not start */
	char error[OFFLOAD_WHY];
	unsigned shown; /* rules in hardware and kernel at the last log line */
};

struct gw_offload {
	pthread_mutex_t lock;
	struct port port[CONF_PORTS_MAX];
	unsigned n, ticks;
	uint64_t due; /* generation prepared and not committed; 0: none */
};

/* --- start and stop -------------------------------------------------------------------------- */

static void cfg_fill(struct offload_cfg *cfg, const struct gw_app *app, const struct gw_port *port)
{
	unsigned lans = 0;

	offload_cfg_default(cfg);
	memcpy(cfg->mac, port->mac, 6);
	for (unsigned i = 0; i < app->ports; i++) {
		const struct conf_port *c = &app->conf->port[i];

		lans += c->role == CONF_ROLE_LAN;
		for (unsigned a = 0; a < c->addrs && c->role == CONF_ROLE_LAN; a++)
			if (cfg->selfs < OFFLOAD_SELF_MAX)
				cfg->self[cfg->selfs++] = c->addr[a].addr;
	}
	/* A rule sends through its own port; with several ports a host's side does not tell the
	 * port. */
	cfg->forward = lans == 1;
}

static int backend_start(struct port *p, const struct offload_ops **ops, void **ctx)
{
	const struct conf_port *c = p->port->conf;
	struct offload_tc_cfg tc = {.skip_hw = false};
	int rc;

	if (p->kind == CONF_OFFLOAD_RTE) {
		*ops = &offload_rte_ops;
		rc = offload_rte_new(&p->rte, p->port->id, p->port->vlan, (uint16_t)p->port->rxqs);
		*ctx = p->rte;
		snprintf(p->error, sizeof(p->error), "%s", rc ? "out of memory" : "");
		return rc;
	}
	snprintf(tc.port, sizeof(tc.port), "%s", c->offload_device);
	rc = offload_tc_new(&p->tc, &tc, p->error);
	*ops = &offload_tc_ops;
	*ctx = p->tc;
	return rc;
}

/* A backend that does not start leaves everything in software: the gateway forwards all the
 * same. */
static void port_start(struct port *p, const struct offload_cfg *cfg)
{
	const struct offload_ops *ops;
	void *ctx;
	int rc = backend_start(p, &ops, &ctx);

	if (!rc) {
		rc = offload_sync_new(&p->sync, cfg, ops, ctx);
		if (rc)
			snprintf(p->error, sizeof(p->error), "rules of an earlier run cannot be removed");
	}
	if (rc)
		gw_log(GW_LOG_ERROR, "offload", "port=%s does not work: %s; all stays in software",
		    p->port->conf->name, p->error);
	else if (p->tc && offload_tc_no_vxlan(p->tc)[0])
		gw_log(GW_LOG_WARNING, "offload", "port=%s nothing of VXLAN: %s", p->port->conf->name,
		    offload_tc_no_vxlan(p->tc));
}

void gw_offload_free(struct gw_app *app)
{
	struct gw_offload *o = app->offload;

	for (unsigned i = 0; o && i < o->n; i++) {
		if (offload_sync_free(o->port[i].sync) != 0)
			gw_log(GW_LOG_ERROR, "offload", "port=%s keeps rules that cannot be removed",
			    o->port[i].port->conf->name);
		offload_tc_free(o->port[i].tc);
		offload_rte_free(o->port[i].rte);
	}
	if (o)
		pthread_mutex_destroy(&o->lock);
	free(o);
	app->offload = NULL;
	app->offload_hooks = NULL;
}

/* --- the set of tenants ----------------------------------------------------------------------- */

static void log_counts(struct port *p)
{
	struct offload_counts c;

	offload_sync_count(p->sync, &c);
	if (c.hardware + c.kernel == p->shown)
		return;
	p->shown = c.hardware + c.kernel;
	gw_log(GW_LOG_INFO, "offload", "port=%s rules: hardware=%u kernel=%u software=%u",
	    p->port->conf->name, c.hardware, c.kernel, c.software);
}

static int prepare(struct gw_app *app, const struct tenant_set *next, char why[OFFLOAD_WHY])
{
	struct gw_offload *o = app->offload;
	int rc = 0;

	why[0] = 0;
	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < o->n && !rc; i++) {
		struct port *p = &o->port[i];

		rc = p->sync ? offload_sync_prepare(p->sync, next) : 0;
		if (rc)
			snprintf(why, OFFLOAD_WHY, "port %s keeps a rule in hardware that cannot be removed",
			    p->port->conf->name);
	}
	o->due = next->generation;
	pthread_mutex_unlock(&o->lock);
	return rc;
}

static void commit_locked(struct gw_offload *o)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->port[i].sync) {
			offload_sync_commit(o->port[i].sync);
			log_counts(&o->port[i]);
		}
	o->due = 0;
}

static void commit(struct gw_app *app)
{
	struct gw_offload *o = app->offload;

	pthread_mutex_lock(&o->lock);
	commit_locked(o);
	pthread_mutex_unlock(&o->lock);
}

static void back(struct gw_app *app, const struct tenant_set *present)
{
	char why[OFFLOAD_WHY];

	if (prepare(app, present, why) != 0)
		gw_log(GW_LOG_ERROR, "offload", "%s", why);
	commit(app);
}

static const struct gw_offload_hooks hooks = {prepare, back, commit};

int gw_offload_new(struct gw_app *app)
{
	struct gw_offload *o = calloc(1, sizeof(*o));
	struct offload_cfg *cfg = malloc(sizeof(*cfg));

	if (!o || !cfg) {
		free(o);
		free(cfg);
		return RWY_ENOMEM;
	}
	pthread_mutex_init(&o->lock, NULL);
	for (unsigned i = 0; i < app->ports; i++) {
		struct port *p = &o->port[o->n];

		if (app->conf->port[i].offload == CONF_OFFLOAD_OFF)
			continue;
		p->port = app->port[i];
		p->kind = app->conf->port[i].offload;
		cfg_fill(cfg, app, p->port);
		port_start(p, cfg);
		o->n++;
	}
	free(cfg);
	app->offload = o;
	app->offload_hooks = o->n ? &hooks : NULL;
	if (o->n)
		back(app, gw_tenants_of(app));
	return 0;
}

/* --- once a second --------------------------------------------------------------------------- */

static void lost_look(struct port *p)
{
	const char *why = p->rte && offload_rte_was_reset(p->rte) ? "the port was reset"
	                  : p->tc && offload_tc_changed(p->tc)    ? "the device was made anew"
	                                                          : NULL;

	if (!why)
		return;
	gw_log(GW_LOG_WARNING, "offload", "port=%s %s: all rules go to software and are tried again",
	    p->port->conf->name, why);
	offload_sync_lost(p->sync, why);
	offload_sync_retry(p->sync, UINT32_MAX);
}

static void read_back(struct port *p)
{
	int gone = offload_sync_read(p->sync);

	snprintf(p->error, sizeof(p->error), "%s", gone < 0 ? "the rules cannot be read back" : "");
	if (gone <= 0)
		return;
	gw_log(GW_LOG_WARNING, "offload", "port=%s %d rules were missing: installed again",
	    p->port->conf->name, gone);
	offload_sync_retry(p->sync, UINT32_MAX);
}

void gw_offload_tick(struct gw_app *app, uint64_t running)
{
	struct gw_offload *o = app->offload;

	if (!o || !o->n)
		return;
	pthread_mutex_lock(&o->lock);
	o->ticks++;
	if (o->due && running >= o->due)
		commit_locked(o);
	for (unsigned i = 0; i < o->n && !o->due; i++) {
		struct port *p = &o->port[i];

		if (!p->sync)
			continue;
		lost_look(p);
		if (o->ticks % (p->shown > MANY ? MANY_TICKS : READ_TICKS) == 0)
			read_back(p);
		if (o->ticks % RETRY_TICKS == 0)
			offload_sync_retry(p->sync, RETRY_BUDGET);
		log_counts(p);
	}
	pthread_mutex_unlock(&o->lock);
}

/* --- inspection ------------------------------------------------------------------------------- */

static void port_info(const struct port *p, struct gw_offload_port *i)
{
	memset(i, 0, sizeof(*i));
	i->name = p->port->conf->name;
	i->backend = p->kind == CONF_OFFLOAD_RTE ? "rte_flow" : "tc";
	snprintf(i->error, sizeof(i->error), "%s", p->error);
	snprintf(i->device, sizeof(i->device), "%s", p->port->conf->offload_device);
	if (p->tc) {
		snprintf(i->vxlan, sizeof(i->vxlan), "%s", offload_tc_vxlan(p->tc));
		if (!p->error[0])
			snprintf(i->error, sizeof(i->error), "%s", offload_tc_no_vxlan(p->tc));
	}
	if (p->sync)
		offload_sync_count(p->sync, &i->count);
}

void gw_offload_each(struct gw_app *app, void (*port)(void *arg, const struct gw_offload_port *p),
    void (*rule)(void *arg, const struct offload_entry *e), void *arg)
{
	struct gw_offload *o = app->offload;

	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	for (unsigned i = 0; i < o->n; i++) {
		struct gw_offload_port info;

		port_info(&o->port[i], &info);
		port(arg, &info);
		if (o->port[i].sync)
			offload_sync_each(o->port[i].sync, rule, arg);
	}
	pthread_mutex_unlock(&o->lock);
}
