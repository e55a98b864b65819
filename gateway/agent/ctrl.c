/* SPDX-License-Identifier: Apache-2.0 */
/* The control center's thread, and applying documents: see ctrl.h. report.c has the reports. */
#include "gateway/agent/ctrl.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/internal.h"
#include "gateway/agent/keep.h"
#include "gateway/agent/pair.h"
#include "base/log.h"
#include "base/random.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/tunnels.h"

/* --- documents ------------------------------------------------------------------------------- */

/* Notes which tunnels of the document lead to which peers. */
static int peers_note(struct gw_ctrl *k, const struct conf *c, char (*peer)[CONF_NAME])
{
	char(*to)[2][CONF_NAME] = calloc(CONF_TUNNELS_MAX, sizeof(*to));
	unsigned n = 0;

	if (!to)
		return RWY_ENOMEM;
	for (unsigned i = 0; peer && i < c->tunnels; i++)
		if (*peer[i]) {
			memcpy(to[n][0], c->tunnel[i].name, CONF_NAME);
			memcpy(to[n++][1], peer[i], CONF_NAME);
		}
	free(k->tunnel);
	k->tunnel = to;
	k->tunnels = n;
	return 0;
}

static int parse(struct gw_app *app, struct document *d, const json_t *doc, struct conf_error *err)
{
	struct conf_tunnel *own = calloc(CONF_TUNNELS_MAX, sizeof(*own));
	int rc;

	if (!own) {
		snprintf(err->msg, sizeof(err->msg), "out of memory");
		return RWY_ENOMEM;
	}
	rc = document_parse(d, app->conf, own, gw_tunnels_own(app, own), doc, err);
	free(own);
	return rc;
}

static int assign(struct gw_app *app, const struct document *d)
{
	struct gw_assignment *v = calloc(d->assignments + 1, sizeof(*v));
	int rc = v ? 0 : RWY_ENOMEM;

	for (unsigned i = 0; v && i < d->assignments; i++) {
		const struct document_assignment *a = &d->assignment[i];

		v[i] = (struct gw_assignment){.vni = a->vni,
		    .src = a->source,
		    .dst = a->destination,
		    .src_qpn = a->source_qpn,
		    .dst_qpn = a->destination_qpn,
		    .rate_bps = a->rate_bps,
		    .priority = a->priority,
		    .has_dscp = a->has_dscp,
		    .dscp = a->dscp};
		memcpy(v[i].tunnel, a->tunnel, CONF_NAME);
		memcpy(v[i].job, a->job, CONF_NAME);
	}
	if (v)
		rc = gw_assign(app, v, d->assignments);
	free(v);
	return rc;
}

static int siblings(struct gw_app *app, const struct document *d)
{
	const struct gw_siblings_say s = {d->sibling, d->siblings, d->pair, d->pairs};

	return gw_siblings_set(app, &s);
}

static int apply(void *ctx, const json_t *doc, const char *text, char why[AGENT_WHY])
{
	struct gw_ctrl *k = ctx;
	struct gw_app *app = k->app;
	struct gw_network_done done;
	struct conf_error err = {0};
	struct document d;
	int rc;

	gw_change_lock();
	rc = parse(app, &d, doc, &err);
	if (!rc) {
		rc = peers_note(k, d.conf, d.peer);
		if (!rc)
			rc = gw_network_apply(app, d.conf, GW_SIDE_CONTROLLER, NULL, &done, &err);
		if (!rc)
			rc = assign(app, &d);
		if (!rc)
			rc = siblings(app, &d);
		document_fini(&d);
	}
	gw_change_unlock();
	snprintf(why, AGENT_WHY, "%s", err.msg);
	if (rc)
		return rc == RWY_EAGAIN || rc == RWY_ENOMEM ? rc : RWY_EINVAL;
	gw_log(GW_LOG_NOTICE, "control",
	    "document generation=%" JSON_INTEGER_FORMAT " tunnels: added=%u changed=%u removed=%u same=%u "
	    "tenants: added=%u changed=%u removed=%u same=%u "
	    "took_us=%" PRIu64,
	    json_integer_value(json_object_get(doc, "generation")), done.added, done.changed, done.removed,
	    done.same, done.tenants.added, done.tenants.changed, done.tenants.removed, done.tenants.same,
	    done.took / RWY_US);
	rc = keep_write(app->conf->controller.document, text);
	if (rc)
		gw_log(GW_LOG_WARNING, "control", "the document is not kept for the next start: %s: %s",
		    app->conf->controller.document, strerror(-rc));
	return 0;
}

/* The gateway's own come first, then the document's. */
static int adopt(struct conf *conf, struct conf *c)
{
	struct conf_tenant *more = realloc(conf->tenant, (conf->tenants + c->tenants + 1) * sizeof(*more));

	if (!more)
		return RWY_ENOMEM;
	conf->tenant = more;
	memcpy(conf->tunnel, c->tunnel, sizeof(c->tunnel));
	conf->tunnels = c->tunnels;
	if (c->tenants) /* else there is no array */
		memcpy(more + conf->tenants, c->tenant, c->tenants * sizeof(*more));
	conf->tenants += c->tenants;
	c->tenants = 0; /* ownership has moved */
	return 0;
}

void gw_ctrl_first(struct conf *conf, struct gw_ctrl_first *out)
{
	const char *path = conf->controller.document;
	struct conf_error err = {0};
	const unsigned tenants = conf->tenants;
	json_t *doc = NULL;
	char why[256];
	int rc;

	memset(out, 0, sizeof(*out));
	if (!conf->controller.urls)
		return;
	rc = keep_read(path, &doc, why, sizeof(why));
	if (rc == RWY_ENOENT)
		return;
	if (!rc) {
		rc = document_parse(&out->d, conf, conf->tunnel, conf->tunnels, doc, &err);
		snprintf(why, sizeof(why), "%.255s", err.msg);
	}
	if (!rc) {
		rc = adopt(conf, out->d.conf);
		if (!rc && conf_tenants_check(conf, &err)) {
			snprintf(why, sizeof(why), "%.255s", err.msg);
			while (conf->tenants > tenants)
				conf_tenant_fini(&conf->tenant[--conf->tenants]);
			conf->tunnels -= json_array_size(json_object_get(doc, "tunnels"));
			rc = RWY_EINVAL;
		}
		conf_free(out->d.conf);
		out->d.conf = NULL;
	}
	if (rc) {
		gw_log(GW_LOG_ERROR, "control", "%s: not used: %s", path, why);
		document_fini(&out->d);
	} else {
		out->generation = (uint64_t)json_integer_value(json_object_get(doc, "generation"));
		gw_log(GW_LOG_NOTICE, "control",
		    "%s: generation=%" PRIu64 " runs until a controller says otherwise", path,
		    out->generation);
	}
	json_decref(doc);
}

/* --- the thread ------------------------------------------------------------------------------ */

static void decided(void *ctx, const json_t *decisions)
{
	size_t i;
	json_t *d;

	/* A decision for all sessions comes with the next document; here it is only logged. */
	json_array_foreach((json_t *)(uintptr_t)decisions, i, d)
	{
		const char *id = json_string_value(json_object_get(d, "id"));
		const char *tunnel = json_string_value(json_object_get(d, "tunnel"));
		const char *reason = json_string_value(json_object_get(d, "reason"));

		gw_log(GW_LOG_DEBUG, "control", "session=%.64s tunnel=%.32s%s%.200s", id ? id : "?",
		    tunnel ? tunnel : "-", reason ? " reason=" : "", reason ? reason : "");
	}
}

static void log_line(void *ctx, int level, const char *msg)
{
	gw_log(level, "control", "%s", msg);
}

static const struct agent_ops ops = {.registration = ctrl_registration,
    .load = ctrl_load,
    .pair = ctrl_pair,
    .pair_news = ctrl_pair_news,
    .links = ctrl_links,
    .sessions = ctrl_sessions,
    .resync = ctrl_resync,
    .decided = decided,
    .apply = apply,
    .log = log_line};

static void *agent_thread(void *arg)
{
	struct gw_ctrl *k = arg;

	agent_run(k->agent);
	return NULL;
}

static int agent_start(struct gw_ctrl *k, uint64_t generation)
{
	const struct conf_controller *c = &k->app->conf->controller;
	struct agent_cfg cfg;
	sigset_t all, old;
	int rc;

	snprintf(k->boot_id, sizeof(k->boot_id), "%016" PRIx64, base_random64());
	conf_member(k->app->conf, k->member);
	agent_cfg_default(&cfg);
	cfg.url = (const char *const *)c->url;
	cfg.urls = c->urls;
	cfg.ca = c->ca;
	cfg.certificate = c->certificate;
	cfg.key = c->key;
	cfg.name = k->app->conf->name;
	cfg.boot_id = k->boot_id;
	cfg.member = k->member;
	cfg.generation = generation;
	rc = agent_new(&k->agent, &cfg, &ops, k);
	if (rc)
		return rc;
	sigfillset(&all); /* signals belong to the main thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&k->thread, NULL, agent_thread, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc ? RWY_EAGAIN : 0;
}

int gw_ctrl_start(struct gw_app *app, struct gw_ctrl_first *first)
{
	struct gw_ctrl *k;
	int rc;

	if (!app->conf->controller.urls)
		return 0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return RWY_ENOMEM;
	k->app = app;
	rc = peers_note(k, app->conf, first->d.peer);
	if (!rc) {
		gw_change_lock();
		if (first->d.assignments)
			rc = assign(app, &first->d);
		if (!rc && first->d.siblings)
			rc = siblings(app, &first->d);
		gw_change_unlock();
	}
	document_fini(&first->d);
	if (!rc)
		rc = agent_start(k, first->generation);
	if (rc) {
		gw_log(GW_LOG_ERROR, "control", "no thread for the control center: %s", strerror(-rc));
		agent_free(k->agent);
		free(k->tunnel);
		free(k);
		return rc;
	}
	app->ctrl = k;
	return 0;
}

void gw_ctrl_stop(struct gw_app *app)
{
	struct gw_ctrl *k = app->ctrl;

	if (!k)
		return;
	app->ctrl = NULL;
	agent_stop(k->agent);
	pthread_join(k->thread, NULL);
	agent_free(k->agent);
	free(k->tunnel);
	free(k);
}

bool gw_ctrl_status(const struct gw_app *app, struct agent_status *out)
{
	if (!app->ctrl)
		return false;
	agent_status(app->ctrl->agent, out);
	return true;
}
