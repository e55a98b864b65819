/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the file again: see reload.h. */
#include "gateway/control/reload.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "base/notify.h"
#include "gateway/control/access.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/siblings.h"
#include "gateway/control/status.h"
#include "gateway/tls/cert.h"
#include "gateway/keys/keys.h"
#include "gateway/relay.h"

/* sd_notify(3): RELOADING=1 carries the time, and READY=1 ends the reload, successful or not. */
static void say_reloading(void)
{
	char text[64];
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
	    (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000);
	gw_notify(text);
}

static void say_refused(const struct gw_app *app, const struct conf_error *err)
{
	char text[sizeof(err->msg) + 64];

	if (err->line)
		gw_log(GW_LOG_ERROR, "reload", "refused, nothing has changed: %s:%u:%u: %s", err->file,
		    err->line, err->column, err->msg);
	else
		gw_log(GW_LOG_ERROR, "reload", "refused, nothing has changed: %s: %s", err->file, err->msg);
	if (err->line)
		snprintf(text, sizeof(text), "; reload refused: line %u: %s", err->line, err->msg);
	else
		snprintf(text, sizeof(text), "; reload refused: %s", err->msg);
	gw_status_say(app, true, text);
}

static void say_done(const struct gw_app *app, const struct gw_reload_done *d)
{
	const struct gw_network_done *n = &d->network;

	gw_log(GW_LOG_NOTICE, "reload",
	    "config=%s tenants: added=%u changed=%u removed=%u same=%u generation=%" PRIu64
	    " tunnels: added=%u changed=%u removed=%u same=%u%s took_us=%" PRIu64,
	    app->conf_path, n->tenants.added, n->tenants.changed, n->tenants.removed, n->tenants.same,
	    n->tenants.generation, n->added, n->changed, n->removed, n->same,
	    d->log_level_changed ? " log_level changed" : "", d->took / RWY_US);
	gw_status_say(app, true, NULL);
}

/* All else of the reload is in force already: a failure is logged, and the old map stays. */
static void map_set(struct gw_app *app, const struct conf *c)
{
	int rc = gw_map_set(app, &c->relay);

	if (rc)
		gw_log(GW_LOG_ERROR, "reload", "the listen map stays as it was: %s",
		    rc == RWY_ENOMEM ? "no memory, or no room beside removed entries that have links"
		                     : "the worker does not answer");
}

static int reload(struct gw_app *app, struct gw_reload_done *done, struct conf_error *err)
{
	struct gw_cert *cert;
	struct conf *c;
	int rc = conf_reload(&c, app->conf_path, app->conf, err);

	if (rc)
		return rc;
	rc = gw_keys_read(&cert, c, err->msg, sizeof(err->msg));
	if (!rc)
		rc = gw_network_apply(app, c, GW_SIDE_OWN, &cert, &done->network, err);
	gw_cert_free(cert); /* of a reload that was refused */
	if (!rc)
		rc = gw_siblings_own(app, c);
	if (!rc) {
		if (c->relay.addrs)
			map_set(app, c);
		gw_access_take(app, c);
		done->log_level = c->log_level;
		done->log_level_changed = gw_log_set(c->log_level) != c->log_level;
	}
	conf_free(c);
	return rc;
}

int gw_reload(struct gw_app *app, struct gw_reload_done *done, struct conf_error *err)
{
	const rwy_time start = gw_now();
	int rc;

	*done = (struct gw_reload_done){.log_level = 0};
	gw_change_lock();
	say_reloading();
	rc = reload(app, done, err);
	done->took = rwy_since(start, gw_now());
	if (rc) {
		if (!*err->file)
			snprintf(err->file, sizeof(err->file), "%s", app->conf_path);
		say_refused(app, err);
	} else {
		say_done(app, done);
	}
	gw_change_unlock();
	return rc;
}

/* --- on a thread of its own ------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_t thread;
	bool running, again, joinable;
} background = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool once_more(void)
{
	bool again;

	pthread_mutex_lock(&background.lock);
	again = background.again;
	background.again = false;
	background.running = again;
	pthread_mutex_unlock(&background.lock);
	return again;
}

static void *reload_thread(void *arg)
{
	struct gw_reload_done done;
	struct conf_error err;

	do
		(void)!gw_reload(arg, &done, &err); /* it has logged the result */
	while (once_more());
	return NULL;
}

void gw_reload_start(struct gw_app *app)
{
	pthread_mutex_lock(&background.lock);
	if (background.running) {
		background.again = true;
	} else {
		/* the thread has ended, or is about to */
		if (background.joinable)
			pthread_join(background.thread, NULL);
		background.joinable = background.running =
		    pthread_create(&background.thread, NULL, reload_thread, app) == 0;
		if (!background.running)
			gw_log(GW_LOG_ERROR, "reload", "refused, nothing has changed: no thread for it");
	}
	pthread_mutex_unlock(&background.lock);
}

void gw_reload_finish(void)
{
	bool joinable;

	pthread_mutex_lock(&background.lock);
	joinable = background.joinable;
	background.joinable = background.again = false;
	pthread_mutex_unlock(&background.lock);
	if (joinable)
		pthread_join(background.thread, NULL);
}
