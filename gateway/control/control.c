/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: frames between workers and the kernel's taps, neighbors, link state, signals,
 * watchdog. It sleeps in epoll; a worker with work for it writes an eventfd, only while the thread
 * sleeps and at most every 100 us.
 */
#include <errno.h>
#include <rte_mempool.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "gateway/gw.h"
#include "gateway/port/kernel.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"
#include "gateway/port/netlink.h"
#include "base/notify.h"
#include "gateway/offload/offload.h"
#include "gateway/offload/queues.h"
#include "gateway/control/drain.h"
#include "gateway/control/reload.h"
#include "gateway/control/status.h"
#include "gateway/datapath/standby.h"
#include "gateway/setup.h"
#include "gateway/control/siblings.h"
#include "gateway/keys/keys.h"

#define TICK          (1 * RWY_SEC)
#define REFRESH_TICKS 5
#define TAP_BURST     64
#define EVENTS        16

enum source { SRC_SIGNAL = 1000, SRC_WAKE, SRC_NETLINK }; /* lower values: the tap of a port */

struct gw_control {
	struct gw_pools *pools;
	struct gw_netlink *nl;
	int epoll_fd, signal_fd;
	bool quit;
	unsigned ticks;
	int pair; /* enum gw_pair, as the other threads know it */
	uint64_t beat[GW_WORKERS_MAX];
	rwy_dur watchdog;
};

/* --- frames ---------------------------------------------------------------------------------- */

static struct gw_port *port_by_id(struct gw_app *app, uint16_t id)
{
	for (unsigned i = 0; i < app->ports; i++)
		if (app->port[i]->id == id)
			return app->port[i];
	return NULL;
}

/* The kernel counts frames that it does not accept (interface down, queue full). */
static void frames_to_kernel(struct gw_app *app)
{
	struct rte_mbuf *m[GW_BURST];
	unsigned n;

	while ((n = rte_ring_sc_dequeue_burst(app->kernel->frames, (void **)m, GW_BURST, NULL)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			struct gw_port *p = port_by_id(app, m[i]->port);

			if (p && write(p->tap_fd, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len) < 0 &&
			    errno != EAGAIN)
				gw_log(GW_LOG_DEBUG, "tap", "%s: %s", p->tap, strerror(errno));
			rte_pktmbuf_free(m[i]);
		}
	}
}

static void frames_from_kernel(struct gw_app *app, struct gw_port *p)
{
	struct gw_worker *w = app->worker[p->ctl_worker];

	for (unsigned i = 0; i < TAP_BURST; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(app->control->pools->big);
		ssize_t n = m ? read(p->tap_fd, rte_pktmbuf_mtod(m, void *), rte_pktmbuf_tailroom(m)) : 0;

		if (n <= 0) {
			rte_pktmbuf_free(m);
			return; /* no buffers: epoll calls again */
		}
		m->data_len = (uint16_t)n;
		m->pkt_len = (uint32_t)n;
		m->port = p->id;
		if (rte_ring_sp_enqueue(w->from_kernel, m) != 0)
			rte_pktmbuf_free(m);
		gw_worker_wake(w);
	}
}

static void asks_serve(struct gw_app *app)
{
	for (unsigned i = 0; i < app->workers; i++) {
		struct gw_worker *w = app->worker[i];
		uint32_t tail = atomic_load_explicit(&w->ask_tail, memory_order_relaxed);

		while (tail != atomic_load_explicit(&w->ask_head, memory_order_acquire)) {
			struct gw_ask a = w->ask[tail % GW_ASKS];

			atomic_store_explicit(&w->ask_tail, ++tail, memory_order_release);
			gw_netlink_resolve(app->control->nl, a.port, &a.addr);
		}
	}
}

/* Learns the neighbours that the active gateway of the pair told worker 0. */
static void neighs_learn(struct gw_app *app)
{
	struct gw_neigh_told t;

	while (app->workers && gw_standby_told(app->worker[0], &t))
		gw_netlink_learn(app->control->nl, &t.addr, t.mac);
}

static bool pending(struct gw_app *app)
{
	if (!rte_ring_empty(app->kernel->frames) || atomic_load(&app->pair) != app->control->pair)
		return true;
	for (unsigned i = 0; i < app->workers; i++)
		if (atomic_load(&app->worker[i]->ask_head) != atomic_load(&app->worker[i]->ask_tail))
			return true;
	return false;
}

/* --- signals, watchdog ----------------------------------------------------------------------- */

/* SIGTERM: false if it is the second one, or the configuration wants no drain. */
static bool drain_first(struct gw_app *app)
{
	const struct gw_drain_order order = {.signal = true, .timeout = app->conf->drain_timeout};

	return order.timeout && gw_drain_begin(app, &order) == 0;
}

static void signal_read(struct gw_app *app)
{
	struct gw_control *c = app->control;
	struct signalfd_siginfo s;

	if (read(c->signal_fd, &s, sizeof(s)) != sizeof(s))
		return;
	if (s.ssi_signo == SIGHUP) {
		gw_reload_start(app);
		return;
	}
	if (s.ssi_signo == SIGTERM && drain_first(app))
		return;
	gw_log(GW_LOG_NOTICE, "main", "stopping on signal %s", s.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	c->quit = true;
}

/* Feeds the watchdog only while every worker advances: systemd restarts a gateway that hangs. */
static void watchdog_feed(struct gw_app *app)
{
	struct gw_control *c = app->control;
	bool all = true;

	for (unsigned i = 0; i < app->workers; i++) {
		uint64_t beat = atomic_load(&app->worker[i]->heartbeat);

		if (beat == c->beat[i]) {
			all = false;
			gw_log(GW_LOG_ERROR, "main", "worker=%u does not move", i);
		}
		c->beat[i] = beat;
	}
	if (all && c->watchdog)
		gw_notify("WATCHDOG=1");
}

static void control_tick(struct gw_app *app)
{
	struct gw_control *c = app->control;
	uint64_t published, running;

	c->ticks++;
	gw_ports_poll_link(app);
	gw_publisher_reap(app->publisher);
	gw_tenants_tick(app);
	gw_tunnels_tick(app);
	gw_tunnels_log(app);
	gw_siblings_tick(app, c->nl);
	gw_tenants_generation(app, &published, &running);
	gw_offload_tick(app, running);
	gw_queue_rules_tick(app);
	watchdog_feed(app);
	gw_jfile_alive(app);
	gw_jfile_told(app, gw_tunnels_told(app));
	gw_recorder_alive(app);
	gw_recorder_log(app);
	if (c->ticks % REFRESH_TICKS == 0)
		gw_netlink_refresh(c->nl);
}

/* --- pair ------------------------------------------------------------------------------------ */

/* Tells others what worker 0 said. A gateway that the other one of its pair replaced begins anew:
 * its connections are the other one's. */
static void pair_follow(struct gw_app *app)
{
	struct gw_control *c = app->control;
	int pair = atomic_load(&app->pair);

	if (pair == c->pair)
		return;
	c->pair = pair;
	gw_status_say(app, false, NULL);
	gw_keys_wake(app);
	if (pair == GW_PAIR_REPLACED) {
		gw_log(GW_LOG_WARNING, "main",
		    "the other gateway of the pair has the tunnels: this process ends");
		c->quit |= !gw_drain_yields(app); /* that one lets the operator know first */
	}
}

/* --- loop ------------------------------------------------------------------------------------ */

static void event_dispatch(struct gw_app *app, uint32_t src)
{
	struct gw_control *c = app->control;
	uint64_t v;

	if (src < app->ports)
		frames_from_kernel(app, app->port[src]);
	else if (src == SRC_SIGNAL)
		signal_read(app);
	else if (src == SRC_NETLINK)
		gw_netlink_ready(c->nl);
	else if (src == SRC_WAKE && read(app->kernel->wake_fd, &v, sizeof(v)) < 0)
		return; /* another thread's wake-up, already processed */
}

void gw_control_run(struct gw_app *app)
{
	struct gw_control *c = app->control;
	rwy_time next = gw_now() + TICK;

	while (!c->quit) {
		struct epoll_event ev[EVENTS];
		rwy_time now = gw_now();
		rwy_time at = rwy_time_min(next, gw_drain_next(app));
		int n, wait = now >= at ? 0 : (int)((at - now) / RWY_MS) + 1;

		atomic_store(&app->kernel->asleep, true);
		if (pending(app))
			wait = 0;
		n = epoll_wait(c->epoll_fd, ev, EVENTS, wait);
		atomic_store(&app->kernel->asleep, false);
		for (int i = 0; i < n; i++)
			event_dispatch(app, ev[i].data.u32);
		pair_follow(app);
		frames_to_kernel(app);
		asks_serve(app);
		neighs_learn(app);
		c->quit |= gw_drain_tick(app, gw_now());
		if (gw_now() >= next) {
			/* Late ones do not come in a row: they look for changes. */
			next = gw_now() + TICK;
			control_tick(app);
		}
	}
}

/* --- creation -------------------------------------------------------------------------------- */

static int fd_watch(struct gw_control *c, int fd, uint32_t src)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = src};

	return fd >= 0 && epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : RWY_EINVAL;
}

int gw_control_new(struct gw_app *app, struct gw_pools *pools)
{
	struct gw_control *c = calloc(1, sizeof(*c));
	sigset_t set;
	int rc;

	if (!c)
		return RWY_ENOMEM;
	app->control = c;
	c->pools = pools;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	c->watchdog = gw_notify_watchdog();
	rc = gw_netlink_new(&c->nl, app);
	if (!rc)
		rc = fd_watch(c, c->signal_fd, SRC_SIGNAL);
	if (!rc)
		rc = fd_watch(c, app->kernel->wake_fd, SRC_WAKE);
	if (!rc)
		rc = fd_watch(c, gw_netlink_fd(c->nl), SRC_NETLINK);
	for (unsigned i = 0; i < app->ports && !rc; i++)
		rc = fd_watch(c, app->port[i]->tap_fd, i);
	if (rc)
		gw_log(GW_LOG_ERROR, "main", "control thread: %s", strerror(errno));
	return rc;
}

void gw_control_free(struct gw_app *app)
{
	struct gw_control *c = app->control;

	if (!c)
		return;
	gw_netlink_free(c->nl);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	if (c->signal_fd >= 0)
		close(c->signal_fd);
	free(c);
	app->control = NULL;
}

void gw_buffers_get(const struct gw_app *app, uint32_t *total, uint32_t *avail)
{
	const struct gw_pools *p = app->control ? app->control->pools : NULL;

	*total = *avail = 0;
	if (!p) /* not started: --print-metrics */
		return;
	*total = p->big_n;
	*avail = rte_mempool_avail_count(p->big);
}
