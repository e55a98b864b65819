/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of key exchanges, and what other threads ask of it. */
#include "gateway/keys/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "gateway/carrier/carrier.h"
#include "gateway/keys/internal.h"
#include "gateway/privileges.h"
#include "gateway/setup.h"

#define EVENTS    32
#define IDLE      (200 * RWY_MS) /* the list is looked at so often: gone 1 s after a revocation */
#define CHECK     (60 * RWY_SEC) /* time goes by: certificates expire */
#define TURN_OVER (50 * 1000)    /* ns: a mutex is not fair */

static void keys_lock(struct gw_keys *k)
{
	atomic_fetch_add(&k->waiting, 1);
	pthread_mutex_lock(&k->lock);
	atomic_fetch_sub(&k->waiting, 1);
}

static void keys_unlock(struct gw_keys *k)
{
	pthread_mutex_unlock(&k->lock);
	if (write(k->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

/* --- certificates ----------------------------------------------------------------------------- */
/* The time is not enough: a file may be written in place twice within one tick of the clock. */
static struct keys_stamp stamp_of(const char *path)
{
	struct stat st;

	if (!*path || stat(path, &st) != 0)
		return (struct keys_stamp){0};
	return (struct keys_stamp){.time = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
	    .size = (uint64_t)st.st_size,
	    .inode = (uint64_t)st.st_ino};
}

static bool is_same(const struct keys_stamp *a, const struct keys_stamp *b)
{
	return a->time == b->time && a->size == b->size && a->inode == b->inode;
}

int gw_keys_read(struct gw_cert **out, const struct conf *c, char *why, size_t size)
{
	const struct conf_tunnel_keys *f = &c->keys;

	*out = NULL;
	if (!*f->certificate)
		return 0;
	gw_privileges_no_core(); /* a reload may be the first to name one */
	return gw_cert_read(out, &(struct gw_cert_files){f->certificate, f->key, f->ca, f->crl}, why, size);
}

static void take(struct gw_keys *k, const struct conf_tunnel_keys *f, struct gw_cert *cert)
{
	gw_cert_free(k->cert);
	k->cert = cert;
	k->files = *f;
	k->crl = k->crl_failed = stamp_of(k->files.crl);
	k->check_at = 0;
	k->all.reread++;
	keys_crl_say(k, gw_now());
	gw_carrier_certs(k->app, &k->files);
}

void gw_keys_take(struct gw_app *app, const struct conf *c, struct gw_cert *cert)
{
	struct gw_keys *k = app->keys;

	if (!k) {
		gw_cert_free(cert);
		return;
	}
	keys_lock(k);
	take(k, &c->keys, cert);
	keys_unlock(k);
}

/*
 * The list of revoked certificates has changed: the files are read again, also after a failure,
 * which is logged once. A list that changes while it is read is read again.
 */
static void follow_list(struct gw_keys *k)
{
	const struct conf_tunnel_keys *f = &k->files;
	const struct keys_stamp is = stamp_of(f->crl);
	struct gw_cert *cert;
	char why[GW_CERT_WHY];

	if (!k->cert)
		return;
	if (is_same(&is, &k->crl)) {
		k->crl_failed = is;
		return;
	}
	if (is_same(&is, &k->crl_failed) && gw_now() < k->crl_again)
		return;
	k->crl_again = gw_now() + RWY_SEC;
	if (gw_cert_read(&cert, &(struct gw_cert_files){f->certificate, f->key, f->ca, f->crl}, why,
	        sizeof(why)) != 0) {
		if (!is_same(&is, &k->crl_failed))
			gw_log(GW_LOG_ERROR, "keys", "the certificates stay as they were: %s", why);
		k->crl_failed = is;
		return;
	}
	gw_log(GW_LOG_NOTICE, "keys", "crl=%s has changed: read again", f->crl);
	take(k, f, cert);
	k->crl = k->crl_failed = is;
}

/* --- tunnels ---------------------------------------------------------------------------------- */
static bool said(const struct rwy_ip *a)
{
	static const struct rwy_ip none;

	return !rwy_ip_eq(a, &none);
}

static void tun_remove(struct gw_keys *k, struct keys_tun *t)
{
	for (unsigned i = 0; i < KEYS_CONNS; i++)
		if (k->conn[i].state != KEYS_CONN_FREE && k->conn[i].t == t)
			keys_conn_free(k, &k->conn[i]);
	keys_unlisten(t->listener);
	gw_cert_peer_drop(&t->peer);
	memset(t, 0, sizeof(*t));
}

static int tun_add(struct gw_keys *k, unsigned idx, const struct conf_tunnel *c)
{
	struct keys_tun *t = &k->tun[idx];

	if (c->security == CONF_SEC_NONE) {
		gw_log(GW_LOG_WARNING, "keys",
		    "tunnel=%s SECURITY: NONE. Anybody on the path can read, change and forge its packets: "
		    "lab "
		    "only",
		    c->name);
		return 0;
	}
	t->conf = *c;
	t->local = said(&c->tcp_local) ? c->tcp_local : c->local;
	t->remote = said(&c->tcp_remote) ? c->tcp_remote : c->remote;
	t->idx = idx;
	t->id = conf_tunnel_id(c, 0);
	t->state = GW_KEYS_WANTED;
	t->listener = keys_listen(k, t);
	if (t->listener)
		return 0;
	snprintf(t->problem, sizeof(t->problem), "TCP port %u: %s", c->keys_port, strerror(errno));
	gw_log(GW_LOG_WARNING, "keys", "tunnel=%s cannot listen for key exchanges: %s", c->name, t->problem);
	return RWY_EINVAL;
}

int gw_keys_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_keys *k = app->keys;
	int rc = 0;

	if (!k || tunnel >= CONF_TUNNELS_MAX)
		return 0;
	keys_lock(k);
	tun_remove(k, &k->tun[tunnel]);
	if (c)
		rc = tun_add(k, tunnel, c);
	keys_unlock(k);
	return rc;
}

void gw_keys_info(const struct gw_app *app, unsigned tunnel, struct gw_keys_info *out)
{
	struct gw_keys *k = app->keys;
	const struct keys_tun *t;

	memset(out, 0, sizeof(*out));
	if (!k || tunnel >= CONF_TUNNELS_MAX)
		return;
	keys_lock(k);
	t = &k->tun[tunnel];
	out->state = t->state;
	out->since = t->since;
	out->standby = keys_reserve_done(k, t);
	out->peer_expires = t->peer.expires;
	snprintf(out->peer_name, sizeof(out->peer_name), "%s", conf_tunnel_peer_name(&t->conf));
	memcpy(out->problem, t->problem, sizeof(out->problem));
	out->c = t->c;
	out->all = k->all;
	out->crl_expires = gw_cert_crl_ends(k->cert);
	pthread_mutex_unlock(&k->lock);
}

/* --- the thread ------------------------------------------------------------------------------- */
static void events(struct gw_keys *k, const struct epoll_event *ev, int n, rwy_time now)
{
	for (int i = 0; i < n; i++) {
		uint64_t which = ev[i].data.u64, v;

		if (which == KEYS_EV_WAKE) {
			if (read(k->wake_fd, &v, sizeof(v)) < 0)
				continue; /* already processed */
		} else if (which & KEYS_EV_LISTEN) {
			struct keys_listener *l = &k->listener[which & ~KEYS_EV_LISTEN];

			if (l->fd >= 0)
				keys_accept(k, l, now);
		} else {
			keys_conn_event(k, which, ev[i].events, now);
		}
	}
}

static rwy_time conns_tick(struct gw_keys *k, rwy_time now)
{
	rwy_time next = RWY_NEVER;

	for (unsigned i = 0; i < KEYS_CONNS; i++) {
		struct keys_conn *c = &k->conn[i];

		if (c->state == KEYS_CONN_FREE)
			continue;
		if (now < c->deadline) {
			next = rwy_time_min(next, c->deadline);
			continue;
		}
		if (c->state == KEYS_CONN_CONNECTING) {
			keys_tun_unanswered(k, c, now);
			continue;
		}
		k->all.slow++;
		k->ops->failed(k, c, "the peer did not finish the exchange in time", now);
	}
	return next;
}

/*
 * The standby of a pair cannot reach anybody but the active gateway. When it takes over it needs
 * keys of its own at once. When it had to give up, those that it was given are used up: an exchange
 * with the active gateway asks for others.
 */
static void follow_pair(struct gw_keys *k, rwy_time now)
{
	const struct keys_pair_news news = keys_pair_look(&k->pair, k->app);

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].conf.standby ? news.gave_up : news.shown)
			keys_tun_anew(&k->tun[i], now);
}

void gw_keys_wake(struct gw_app *app)
{
	if (app->keys && write(app->keys->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

static rwy_time tick(struct gw_keys *k, rwy_time now)
{
	rwy_time next;

	follow_pair(k, now);
	follow_list(k);
	if (now >= k->crl_say_at)
		keys_crl_say(k, now);
	if (now >= k->check_at) {
		k->check_at = now + CHECK;
		for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
			keys_tun_check(k, &k->tun[i], now);
	}
	next = conns_tick(k, now);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		next = rwy_time_min(next,
		    rwy_time_min(keys_tun_tick(k, &k->tun[i], now), keys_reserve_tick(k, &k->tun[i], now)));
	return rwy_time_min(next, now + IDLE);
}

static void *keys_main(void *arg)
{
	struct gw_keys *k = arg;

	pthread_mutex_lock(&k->lock);
	while (!atomic_load_explicit(&k->stop, memory_order_relaxed)) {
		struct epoll_event ev[EVENTS];
		rwy_dur wait = rwy_since(gw_now(), tick(k, gw_now()));
		int n;

		pthread_mutex_unlock(&k->lock);
		if (atomic_load_explicit(&k->waiting, memory_order_relaxed))
			nanosleep(&(struct timespec){.tv_nsec = TURN_OVER}, NULL);
		n = epoll_pwait2(k->epoll_fd, ev, EVENTS,
		    &(struct timespec){(time_t)(wait / RWY_SEC), (long)(wait % RWY_SEC)}, NULL);
		pthread_mutex_lock(&k->lock);
		events(k, ev, n, gw_now());
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

/* --- start, stop ------------------------------------------------------------------------------ */
static int thread_start(struct gw_keys *k)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = KEYS_EV_WAKE};
	sigset_t all, old;

	if (k->epoll_fd < 0 || k->wake_fd < 0 || epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, k->wake_fd, &ev) != 0)
		return RWY_ENOMEM;
	/* A tunnel that cannot listen can ask. */
	for (unsigned i = 0; i < k->app->conf->tunnels; i++)
		if (k->app->conf->tunnel[i].name[0])
			(void)!tun_add(k, i, &k->app->conf->tunnel[i]);
	sigfillset(&all); /* signals belong to the control thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	k->running = pthread_create(&k->thread, NULL, keys_main, k) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (k->running)
		(void)!pthread_setname_np(k->thread, "rwy-keys");
	return k->running ? 0 : RWY_ENOMEM;
}

int gw_keys_start(struct gw_app *app)
{
	struct gw_keys *k = calloc(1, sizeof(*k));
	struct gw_cert *cert;
	char why[GW_CERT_WHY];
	int rc;

	if (!k)
		return RWY_ENOMEM;
	app->keys = k;
	k->app = app;
	k->ops = &keys_tun_ops;
	k->epoch = base_random64();
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		k->listener[i].fd = -1;
	pthread_mutex_init(&k->lock, NULL);
	k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	k->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = gw_keys_read(&cert, app->conf, why, sizeof(why));
	if (rc) {
		gw_log(GW_LOG_ERROR, "keys", "%s", why);
		return rc;
	}
	take(k, &app->conf->keys, cert);
	return thread_start(k);
}

void gw_keys_stop(struct gw_app *app)
{
	struct gw_keys *k = app->keys;

	if (!k)
		return;
	app->keys = NULL;
	atomic_store(&k->stop, true);
	if (k->running) {
		(void)!write(k->wake_fd, &(uint64_t){1}, 8);
		pthread_join(k->thread, NULL);
	}
	for (unsigned i = 0; i < KEYS_CONNS; i++)
		if (k->conn[i].state != KEYS_CONN_FREE)
			keys_conn_free(k, &k->conn[i]);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		tun_remove(k, &k->tun[i]);
	gw_cert_free(k->cert);
	if (k->epoll_fd >= 0)
		close(k->epoll_fd);
	if (k->wake_fd >= 0)
		close(k->wake_fd);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
