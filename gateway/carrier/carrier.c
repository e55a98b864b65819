/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The carriers' thread: one epoll over all sockets, and requests of other threads between two
 * turns. Elsewhere: the tunnels (tunnel.c), one connection (conn.c, quic_port.c), all connections
 * of a tunnel (set.c), sockets (sock.c, quic_sock.c), the workers' end
 * (gateway/datapath/carrier.c).
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

#define TICK       (20 * RWY_MS)
#define EVENTS     64
#define EV_WAKE    UINT64_MAX
#define HELLO_TIME (3 * RWY_SEC)
#define STALL      (1 * RWY_MS)
#define TURN_OVER  (50 * 1000)

/* --- events ---------------------------------------------------------------------------------- */
/* The first tunnel with the peer; NULL: a stranger. */
static struct gw_carrier_tun *peer_of(
    struct gw_carriers *cs, const struct gw_listener *l, const struct rwy_ip *peer)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (cs->tun[i].used && cs->tun[i].listener == l && rwy_ip_eq(&cs->tun[i].remote, peer))
			return &cs->tun[i];
	return NULL;
}

/* t: the first tunnel of the peer's address, which pays for all of them; NULL: there is none. */
static bool welcome(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	bool many = t && cs->unknown >= GW_CONNS_UNKNOWN, keys = t && t->conf.security == CONF_SEC_KEYS;
	bool fast = keys && !many && t->theirs > now + GW_TLS_BURST * GW_TLS_EACH;

	cs->strangers += !t;
	cs->many += many;
	cs->rate += fast;
	if (!t || many || fast)
		return false;
	if (keys)
		t->theirs = (t->theirs > now ? t->theirs : now) + GW_TLS_EACH;
	return true;
}

static void accept_all(struct gw_carriers *cs, struct gw_listener *l, rwy_time now)
{
	struct base_sockaddr a = {.len = sizeof(a.ss)};
	struct gw_carrier_tun *t;
	struct gw_conn *c;
	struct rwy_ip peer;
	int fd;

	while ((fd = accept4(l->fd, (struct sockaddr *)&a.ss, &a.len, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		base_sockaddr_ip(&a, &peer);
		a.len = sizeof(a.ss);
		t = peer_of(cs, l, &peer);
		if (!welcome(cs, t, now)) {
			close(fd);
			continue;
		}
		c = gw_conn_new(cs, &gw_conn_tcp, fd, true);
		if (!c)
			continue;
		cs->unknown++;
		c->peer = peer;
		c->port = l->port;
		c->deadline = now + HELLO_TIME;
		/* Tunnels between the same addresses and ports are alike in this (introduce()). */
		if (t->conf.security == CONF_SEC_KEYS && gw_conn_tls_new(cs, c, NULL) != 0)
			gw_set_lost(cs, c, "no memory", now);
	}
}

/* An outgoing connection is established, or failed. */
static const char *connected(struct gw_carriers *cs, struct gw_conn *c)
{
	int e = base_socket_error(c->fd);

	if (e)
		return strerror(e);
	c->state = GW_CONN_HELLO;
	c->kind->watch(cs, c);
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
		why = c->kind->read(cs, c, now);
	if (c->state == GW_CONN_FREE || c->use != use)
		return;
	if (!why && events & (EPOLLERR | EPOLLHUP) && c->stalled)
		why = "connection reset";
	if (!why && c->state != GW_CONN_CONNECTING && (c->blocked ? events & EPOLLOUT : c->ctl_n))
		why = c->kind->write(cs, c);
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
		if (c->kind->room(c))
			why = c->kind->write(cs, c);
		if (why)
			gw_set_lost(cs, c, why, now);
	}
}

static void read_stalled(struct gw_carriers *cs, rwy_time now)
{
	for (unsigned i = 0; cs->stalled && i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];
		const char *why = c->state == GW_CONN_OPEN && c->stalled ? c->kind->read(cs, c, now) : NULL;

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
			c->counted = true;
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

		if ((c->state != GW_CONN_OPEN && c->state != GW_CONN_HELLO) || !c->kind->room(c))
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
		} else if (which & GW_EV_LISTEN) {
			accept_all(cs, &cs->listener[which & ~GW_EV_LISTEN], now);
		} else if (which & GW_EV_QUIC) {
			struct gw_quic_port *p = &cs->quic[which & ~GW_EV_QUIC];

			if (p->fd >= 0)
				gw_quic_sock_read(p->fd, p->end, now);
		} else if (which & GW_EV_RDMA) {
			gw_rdma_turn(cs, now);
		} else {
			conn_event(cs, which, ev[i].events, now);
		}
	}
}

static void *carrier_main(void *arg)
{
	struct gw_carriers *cs = arg;
	rwy_time next = 0, quic = RWY_NEVER;

	pthread_mutex_lock(&cs->lock);
	while (!atomic_load_explicit(&cs->stop, memory_order_relaxed)) {
		struct epoll_event ev[EVENTS];
		rwy_time now = gw_now();
		rwy_dur wait = rwy_since(now, rwy_time_min(next, quic));
		int n;

		if (cs->stalled && wait > STALL)
			wait = STALL;
		atomic_store(&cs->asleep, true);
		if (work_waits(cs))
			wait = 0;
		pthread_mutex_unlock(&cs->lock);
		/* a mutex is not fair */
		if (atomic_load_explicit(&cs->waiting, memory_order_relaxed))
			nanosleep(&(struct timespec){.tv_nsec = TURN_OVER}, NULL);
		n = epoll_pwait2(cs->epoll_fd, ev, EVENTS,
		    &(struct timespec){(time_t)(wait / RWY_SEC), (long)(wait % RWY_SEC)}, NULL);
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
		quic = gw_quic_ports_turn(cs, now);
		wake_workers(cs);
	}
	pthread_mutex_unlock(&cs->lock);
	return NULL;
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
		    (rc = gw_carrier_add(cs, i, &cs->app->conf->tunnel[i])) != 0)
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
		cs->listener[i].fd = cs->quic[i].fd = -1;
	pthread_mutex_init(&cs->lock, NULL);
	cs->epoch = base_random64();
	app->carriers = cs;
	rc = gw_carriers_certs_read(cs, &app->conf->keys);
	if (!rc)
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
		gw_carriers_wake(cs);
		pthread_join(cs->thread, NULL);
	}
	for (unsigned i = 0; i < GW_CONNS_MAX; i++)
		gw_conn_free(cs, &cs->conn[i]);
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		if (cs->listener[i].fd >= 0)
			close(cs->listener[i].fd);
		if (cs->quic[i].fd >= 0) {
			cs->quic[i].users = 1;
			gw_quic_port_put(cs, &cs->quic[i]);
		}
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
	gw_rdma_stop(cs);
	gw_quic_tls_free(cs->tls);
	pthread_mutex_destroy(&cs->lock);
	free(cs);
}
