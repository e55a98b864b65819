/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TCP carrier's thread: one epoll over all sockets, and requests of other threads between two
 * turns. Elsewhere: one connection (conn.c), all connections of a tunnel (set.c), sockets (sock.c),
 * the workers' end (gateway/datapath/carrier.c).
 */
#include "gateway/carrier/carrier.h"

#include <errno.h>
#include <rte_lcore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/random.h"
#include "gateway/carrier/internal.h"
#include "gateway/setup.h"

static_assert(
    (int)CONF_CARRIER_NATIVE == (int)WAN_CARRIER_NATIVE && (int)CONF_CARRIER_TCP == (int)WAN_CARRIER_TCP,
    "the two enums agree");

#define TICK       (20 * RWY_MS)
#define EVENTS     64
#define EV_WAKE    UINT64_MAX
#define EV_LISTEN  ((uint64_t)1 << 63)
#define HELLO_TIME (3 * RWY_SEC)
#define STALL_MS   1
#define TURN_OVER  (50 * 1000)

static void wake(struct gw_carriers *cs)
{
	if (write(cs->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

/* --- events ---------------------------------------------------------------------------------- */
static bool known_peer(const struct gw_carriers *cs, const struct gw_listener *l, const struct rwy_ip *peer)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (cs->tun[i].used && cs->tun[i].listener == l && rwy_ip_eq(&cs->tun[i].remote, peer))
			return true;
	return false;
}

static void accept_all(struct gw_carriers *cs, struct gw_listener *l, rwy_time now)
{
	struct gw_sockaddr a = {.len = sizeof(a.ss)};
	struct gw_conn *c;
	struct rwy_ip peer;
	int fd;

	while ((fd = accept4(l->fd, (struct sockaddr *)&a.ss, &a.len, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		gw_sock_ip(&a, &peer);
		a.len = sizeof(a.ss);
		if (!known_peer(cs, l, &peer) || cs->unknown >= GW_CONNS_UNKNOWN) {
			cs->strangers++;
			close(fd);
			continue;
		}
		c = gw_conn_new(cs, fd, true);
		if (!c)
			continue;
		cs->unknown++;
		c->peer = peer;
		c->port = l->port;
		c->deadline = now + HELLO_TIME;
	}
}

/* An outgoing connection is established, or failed. */
static const char *connected(struct gw_carriers *cs, struct gw_conn *c)
{
	int e = gw_sock_error(c->fd);

	if (e)
		return strerror(e);
	c->state = GW_CONN_HELLO;
	gw_conn_watch(cs, c);
	return NULL;
}

static void conn_event(struct gw_carriers *cs, uint64_t which, uint32_t events, rwy_time now)
{
	struct gw_conn *c = &cs->conn[(uint32_t)which];
	const char *why = NULL;
	uint32_t use = (uint32_t)(which >> 32);

	if (c->state == GW_CONN_FREE || c->use != use)
		return; /* closed by another event of this turn */
	if (c->state == GW_CONN_CONNECTING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		why = connected(cs, c);
	if (!why && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && c->state != GW_CONN_CONNECTING && !c->stalled)
		why = gw_conn_read(cs, c, now);
	if (c->state == GW_CONN_FREE || c->use != use)
		return;
	if (!why && events & (EPOLLERR | EPOLLHUP) && c->stalled)
		why = "connection reset";
	if (!why && c->state != GW_CONN_CONNECTING && (c->blocked ? events & EPOLLOUT : c->ctl_n))
		why = gw_conn_write(cs, c);
	if (why)
		gw_set_lost(cs, c, why, now);
}

/* --- turns ----------------------------------------------------------------------------------- */
static void write_all(struct gw_carriers *cs, rwy_time now)
{
	/* begin with another connection each time, or the first would get all of a scarce
	 * resource */
	unsigned n = cs->top, first = n ? ++cs->first % n : 0;

	for (unsigned i = 0; i < n; i++) {
		struct gw_conn *c = &cs->conn[i + first < n ? i + first : i + first - n];
		const char *why = NULL;

		if (c->state != GW_CONN_OPEN && c->state != GW_CONN_HELLO)
			continue;
		if (!c->blocked)
			why = gw_conn_write(cs, c);
		if (why)
			gw_set_lost(cs, c, why, now);
	}
}

static void read_stalled(struct gw_carriers *cs, rwy_time now)
{
	for (unsigned i = 0; cs->stalled && i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];
		const char *why = c->state == GW_CONN_OPEN && c->stalled ? gw_conn_read(cs, c, now) : NULL;

		if (why)
			gw_set_lost(cs, c, why, now);
	}
}

static void wake_workers(struct gw_carriers *cs)
{
	for (unsigned i = 0; cs->touched && i < cs->app->workers; i++)
		if (cs->touched >> i & 1 && cs->app->worker[i])
			gw_worker_wake(cs->app->worker[i]);
	cs->touched = 0;
}

static void carriers_tick(struct gw_carriers *cs, rwy_time now)
{
	for (unsigned i = 0; cs->unknown && i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];

		if (c->state != GW_CONN_FREE && !c->t && now > c->deadline) {
			cs->slow++;
			gw_set_lost(cs, c, "slow", now);
		}
	}
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (cs->tun[i].used)
			gw_set_tick(cs, &cs->tun[i], now);
}

/* Whether something waits and a connection could take it. */
static bool work_waits(const struct gw_carriers *cs)
{
	for (unsigned i = 0; i < cs->top; i++) {
		const struct gw_conn *c = &cs->conn[i];

		if ((c->state != GW_CONN_OPEN && c->state != GW_CONN_HELLO) || c->blocked)
			continue;
		if (c->ctl_n || c->out_at != c->out_n)
			return true;
		for (unsigned w = 0; c->t && c->t->link && c->state == GW_CONN_OPEN && w < cs->app->workers;
		     w++)
			if (!rte_ring_empty(c->t->link[w].out))
				return true;
	}
	return false;
}

static void events(struct gw_carriers *cs, const struct epoll_event *ev, int n, rwy_time now)
{
	for (int i = 0; i < n; i++) {
		uint64_t which = ev[i].data.u64, v;

		if (which == EV_WAKE) {
			if (read(cs->wake_fd, &v, sizeof(v)) < 0)
				continue; /* already processed */
		} else if (which & EV_LISTEN) {
			accept_all(cs, &cs->listener[which & ~EV_LISTEN], now);
		} else {
			conn_event(cs, which, ev[i].events, now);
		}
	}
}

static void *carrier_main(void *arg)
{
	struct gw_carriers *cs = arg;
	rwy_time next = 0;

	pthread_mutex_lock(&cs->lock);
	while (!atomic_load_explicit(&cs->stop, memory_order_relaxed)) {
		struct epoll_event ev[EVENTS];
		rwy_time now = gw_now();
		int n, wait = now >= next ? 0 : (int)((next - now) / RWY_MS) + 1;

		if (cs->stalled && wait > STALL_MS)
			wait = STALL_MS;
		atomic_store(&cs->asleep, true);
		if (work_waits(cs))
			wait = 0;
		pthread_mutex_unlock(&cs->lock);
		/* a mutex is not fair */
		if (atomic_load_explicit(&cs->waiting, memory_order_relaxed))
			nanosleep(&(struct timespec){.tv_nsec = TURN_OVER}, NULL);
		n = epoll_wait(cs->epoll_fd, ev, EVENTS, wait);
		pthread_mutex_lock(&cs->lock);
		atomic_store(&cs->asleep, false);
		now = gw_now();
		events(cs, ev, n, now);
		read_stalled(cs, now);
		if (now >= next) {
			carriers_tick(cs, now);
			next = now + TICK;
		}
		write_all(cs, now);
		wake_workers(cs);
	}
	pthread_mutex_unlock(&cs->lock);
	return NULL;
}

static void carriers_lock(struct gw_carriers *cs)
{
	atomic_fetch_add(&cs->waiting, 1);
	pthread_mutex_lock(&cs->lock);
	atomic_fetch_sub(&cs->waiting, 1);
}

/* --- tunnels --------------------------------------------------------------------------------- */
static struct gw_listener *listen_on(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct gw_listener *l = NULL;
	struct epoll_event ev = {.events = EPOLLIN};

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_listener *x = &cs->listener[i];

		if (x->fd >= 0 && x->port == t->conf.tcp_port && rwy_ip_eq(&x->addr, &t->local)) {
			x->users++;
			return x;
		}
		if (x->fd < 0 && !l)
			l = x;
	}
	l->fd = gw_sock_listen(t); /* one listener slot per tunnel */
	if (l->fd < 0)
		return NULL;
	l->addr = t->local;
	l->port = t->conf.tcp_port;
	l->users = 1;
	ev.data.u64 = EV_LISTEN | (uint64_t)(l - cs->listener);
	(void)!epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, l->fd, &ev);
	return l;
}

static void unlisten(struct gw_listener *l)
{
	if (!l || --l->users)
		return;
	close(l->fd);
	l->fd = -1;
}

static bool said(const struct rwy_ip *a)
{
	static const struct rwy_ip none;

	return !rwy_ip_eq(a, &none);
}

static int tunnel_add(struct gw_carriers *cs, unsigned idx, const struct conf_tunnel *c)
{
	struct gw_carrier_tun *t = &cs->tun[idx];
	bool must = c->carrier == CONF_CARRIER_TCP;

	memset(t, 0, sizeof(*t));
	t->link = cs->link[idx];
	t->idx = idx;
	t->conf = *c;
	t->local = said(&c->tcp_local) ? c->tcp_local : c->local;
	t->remote = said(&c->tcp_remote) ? c->tcp_remote : c->remote;
	t->id = conf_tunnel_id(c, 0);
	t->retry_at = gw_now() + gw_set_second(t);
	t->agree.carrier = must ? WAN_CARRIER_TCP : WAN_CARRIER_NATIVE;
	if (gw_sock_congestion(t) != 0) {
		gw_log(GW_LOG_ERROR, "carrier", "tunnel=%s %s", c->name, t->problem);
		return RWY_EINVAL;
	}
	if (c->tcp_port)
		t->listener = listen_on(cs, t);
	if (c->tcp_port && !t->listener) {
		snprintf(t->problem, sizeof(t->problem), "TCP port %u: %s", c->tcp_port, strerror(errno));
		gw_log(must ? GW_LOG_ERROR : GW_LOG_WARNING, "carrier", "tunnel=%s %s%s", c->name, t->problem,
		    must ? "" : ": it cannot move to TCP");
		if (must)
			return RWY_EINVAL;
	}
	t->used = true;
	return 0;
}

static void tunnel_remove(struct gw_carriers *cs, unsigned idx, rwy_time now)
{
	struct gw_carrier_tun *t = &cs->tun[idx];

	if (!t->used)
		return;
	gw_set_close(cs, t, now);
	unlisten(t->listener);
	t->used = false;
}

int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_carriers *cs = app->carriers;
	int rc = 0;

	if (!cs || tunnel >= CONF_TUNNELS_MAX)
		return 0;
	carriers_lock(cs);
	tunnel_remove(cs, tunnel, gw_now());
	if (c)
		rc = tunnel_add(cs, tunnel, c);
	pthread_mutex_unlock(&cs->lock);
	wake(cs);
	return rc;
}

int gw_carrier_set(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	struct gw_carriers *cs = app->carriers;
	struct gw_carrier_tun *t;
	int rc = 0;

	if (!cs || tunnel >= CONF_TUNNELS_MAX || !cs->tun[tunnel].used) {
		snprintf(why, size, "no such tunnel");
		return RWY_ENOENT;
	}
	carriers_lock(cs);
	t = &cs->tun[tunnel];
	if (c == WAN_CARRIER_TCP && !t->conf.tcp_port) {
		snprintf(why, size, "tunnel %s has `tcp_port: 0` in the configuration: no TCP", t->conf.name);
		rc = RWY_EINVAL;
	} else if (c == WAN_CARRIER_TCP && !t->listener) {
		snprintf(why, size, "%s", t->problem);
		rc = RWY_EINVAL;
	} else if (c == WAN_CARRIER_TCP && gw_sock_congestion(t) != 0) {
		snprintf(why, size, "%s", t->problem);
		rc = RWY_EINVAL;
	}
	if (!rc) {
		wan_agree_ask(&t->agree, c);
		t->problem[0] = 0;
		t->retry_at = t->backoff = 0;
		gw_set_tell(cs, t);
		gw_set_update(cs, t, gw_now());
	}
	pthread_mutex_unlock(&cs->lock);
	wake(cs);
	return rc;
}

void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out)
{
	struct gw_carriers *cs = app->carriers;
	const struct gw_carrier_tun *t = cs && tunnel < CONF_TUNNELS_MAX ? &cs->tun[tunnel] : NULL;

	memset(out, 0, sizeof(*out));
	if (!t)
		return;
	carriers_lock(cs);
	if (t->used) {
		out->wanted = t->agree.carrier;
		out->sending = t->sending ? WAN_CARRIER_TCP : WAN_CARRIER_NATIVE;
		out->by_peer = t->agree.by_peer;
		out->connections = t->open;
		out->path = t->measure.path;
		memcpy(out->congestion, t->congestion, sizeof(out->congestion));
		if (out->wanted != out->sending || !t->listener)
			memcpy(out->problem, t->problem, sizeof(out->problem));
		out->c = t->c;
	}
	out->strangers = cs->strangers;
	out->slow = cs->slow;
	pthread_mutex_unlock(&cs->lock);
}

/* --- start, stop ----------------------------------------------------------------------------- */
static int rings_new(struct gw_carriers *cs)
{
	char name[RTE_RING_NAMESIZE];

	for (unsigned i = 0; i < cs->app->workers; i++) {
		snprintf(name, sizeof(name), "rwy_cin%u_%.8s", i, cs->app->conf->name);
		cs->in[i] = rte_ring_create(name, GW_IN_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!cs->in[i])
			return RWY_ENOMEM;
	}
	return 0;
}

static int thread_start(struct gw_carriers *cs)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = EV_WAKE};
	sigset_t all, old;
	int rc;

	cs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	cs->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cs->epoll_fd < 0 || cs->wake_fd < 0 ||
	    epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, cs->wake_fd, &ev) != 0)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < cs->app->conf->tunnels; i++)
		if (cs->app->conf->tunnel[i].name[0] &&
		    (rc = tunnel_add(cs, i, &cs->app->conf->tunnel[i])) != 0)
			return rc;
	sigfillset(&all); /* signals belong to the control thread */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = rte_ctrl_thread_create(&cs->thread, "rwy-carrier", NULL, carrier_main, cs);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	cs->running = rc == 0;
	return rc ? RWY_ENOMEM : 0;
}

int gw_carriers_start(struct gw_app *app, struct gw_pools *pools)
{
	struct gw_carriers *cs = calloc(1, sizeof(*cs));
	int rc;

	if (!cs)
		return RWY_ENOMEM;
	cs->app = app;
	cs->pools = pools;
	cs->conn_ops = &gw_set_conn_ops;
	cs->epoll_fd = cs->wake_fd = -1;
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		cs->listener[i].fd = -1;
	pthread_mutex_init(&cs->lock, NULL);
	cs->epoch = base_random64();
	app->carriers = cs;
	rc = rings_new(cs);
	return rc ? rc : thread_start(cs);
}

void gw_carriers_stop(struct gw_app *app)
{
	struct gw_carriers *cs = app->carriers;

	if (!cs)
		return;
	app->carriers = NULL;
	atomic_store(&cs->stop, true);
	if (cs->running) {
		wake(cs);
		pthread_join(cs->thread, NULL);
	}
	for (unsigned i = 0; i < GW_CONNS_MAX; i++)
		gw_conn_free(cs, &cs->conn[i]);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		if (cs->listener[i].fd >= 0)
			close(cs->listener[i].fd);
		for (unsigned w = 0; cs->link[i] && w < app->workers; w++)
			gw_ring_free(cs->link[i][w].out);
		free(cs->link[i]);
	}
	for (unsigned i = 0; i < app->workers; i++)
		gw_ring_free(cs->in[i]);
	rte_pktmbuf_free_bulk(cs->big.m, cs->big.n);
	rte_pktmbuf_free_bulk(cs->small.m, cs->small.n);
	if (cs->epoll_fd >= 0)
		close(cs->epoll_fd);
	if (cs->wake_fd >= 0)
		close(cs->wake_fd);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}
