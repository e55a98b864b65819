/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packet thread: receives, calls the engine, sends, and sleeps when there is nothing to do
 * (adaptive polling).
 *
 * Sleep. After SPIN without work the worker sleeps until the engine's next timer, but never longer
 * than a back-off that grows from SLEEP_MIN to SLEEP_MAX: a host's packet must be answered within a
 * millisecond although most drivers cannot wake a thread. When all its receive queues have
 * interrupts, packets wake it and only the engine's timers bound the sleep.
 */
#include <errno.h>
#include <inttypes.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/random.h"
#include "engine/steering.h"
#include "gateway/capture/capture.h"
#include "gateway/carrier/carrier.h"
#include "gateway/datapath/edge.h"
#include "gateway/datapath/lease.h"
#include "gateway/datapath/notes.h"
#include "gateway/datapath/overlay.h"
#include "gateway/datapath/tx.h"
#include "gateway/datapath/sessions.h"
#include "gateway/datapath/engcfg.h"
#include "gateway/setup.h"
#include "gateway/datapath/sibling.h"
#include "gateway/datapath/standby.h"
#include "gateway/datapath/tenants.h"
#include "gateway/port/kernel.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"

#define SPIN      (15 * RWY_US)
#define SLEEP_MIN (20 * RWY_US)
#define SLEEP_MAX (300 * RWY_US)
/* interval of heartbeat, calls and the kernel's frames, with interrupts */
#define SLEEP_INTR (10 * RWY_MS)
#define SLEEP_LEAD (5 * RWY_US) /* a shorter wait is not worth a system call */
/* least time between two wake-ups of the control thread by one worker */
#define WAKE_EVERY (100 * RWY_US)

/* --- the loop -------------------------------------------------------------------------------- */

static unsigned ports_receive(struct gw_worker *w)
{
	struct rte_mbuf *pkts[GW_BURST];
	unsigned got = 0;

	for (unsigned i = 0; i < w->rxqs; i++) {
		uint16_t n = rte_eth_rx_burst(w->rxq[i].port->id, w->rxq[i].queue, pkts, GW_BURST);

		if (!n)
			continue;
		/* The clock is read after the burst: if the thread were descheduled between clock
		 * and burst, an ACK would seem to come before its time, and the smallest RTT would
		 * be shorter than the path. */
		w->now = gw_now();
		w->st.rx_bursts++;
		w->st.rx_packets += n;
		gw_rx(w, pkts, n, false);
		got += n;
	}
	w->c.rx_packets += got;
	return got;
}

static unsigned rings_receive(struct gw_worker *w)
{
	struct rte_mbuf *pkts[GW_BURST];
	unsigned n, got = 0;

	if (w->handoff) {
		n = rte_ring_sc_dequeue_burst(w->handoff, (void **)pkts, GW_BURST, NULL);
		if (n) {
			w->now = gw_now(); /* after the burst, as above */
			gw_rx(w, pkts, n, true);
		}
		got += n;
	}
	n = rte_ring_sc_dequeue_burst(w->from_kernel, (void **)pkts, GW_BURST, NULL);
	for (unsigned i = 0; i < n; i++)
		gw_tx_frame(w, w->by_id[pkts[i]->port], pkts[i]);
	return got + n;
}

static void kernel_wake(struct gw_worker *w)
{
	if (!w->kernel_fed || w->now < w->wake_at)
		return; /* the flag stays set: a later turn wakes it */
	gw_kernel_wake(w->app->kernel);
	w->kernel_fed = false;
	w->wake_at = w->now + WAKE_EVERY;
}

static void published_load(struct gw_worker *w)
{
	w->nt = gw_nt_of(w->app);
	w->ts = gw_tenants_of(w->app);
	w->sib = gw_sib_set_of(w->app);
	w->cap = gw_cap_of(gw_published_get(w->app->publisher, GW_CAPTURE), w->idx);
	if ((w->sib ? w->sib->gen : 0) != w->sib_gen)
		gw_sibling_begin(w);
	eng_steering_set(w->eng, gw_published_get(w->app->publisher, GW_STEERING));
}

unsigned gw_worker_turn(struct gw_worker *w)
{
	unsigned work;

	w->now = w->began = gw_now();
	gw_reader_quiescent(w->app->publisher, w->idx); /* it keeps nothing of the turn before */
	published_load(w);
	w->low = gw_pools_low(w->pools);
	if (w->standby)
		gw_standby_turn(w);
	work = ports_receive(w);
	work += rings_receive(w);
	if (w->notes)
		work += gw_notes_take(w);
	work += gw_carrier_turn(w);
	work += eng_poll(w->eng, w->now);
	gw_overlay_turn(w);
	gw_lease_turn(w);
	if (w->edge)
		work += gw_edge_turn(w) + (w->edge->pair ? gw_edge_pair_turn(w) : 0);
	gw_tx_flush(w);
	gw_carrier_flush(w);
	kernel_wake(w);
	gw_call_serve(w);
	atomic_store_explicit(&w->heartbeat, w->st.turns, memory_order_relaxed);
	return work;
}

/* --- sleep ----------------------------------------------------------------------------------- */

/* Returns true when something may have come while the interrupts were being armed. */
static bool intr_arm(struct gw_worker *w)
{
	for (unsigned i = 0; i < w->rxqs; i++)
		rte_eth_dev_rx_intr_enable(w->rxq[i].port->id, w->rxq[i].queue);
	atomic_store(&w->asleep, true);
	for (unsigned i = 0; i < w->rxqs; i++)
		if (rte_eth_rx_queue_count(w->rxq[i].port->id, w->rxq[i].queue) > 0)
			return true;
	return atomic_exchange(&w->poked, false) || !rte_ring_empty(w->from_kernel) ||
	       (w->handoff && !rte_ring_empty(w->handoff)) || (w->notes && !rte_ring_empty(w->notes)) ||
	       gw_call_pending(w) || gw_carrier_pending(w);
}

static void sleep_intr(struct gw_worker *w, rwy_dur d)
{
	struct timespec ts = {.tv_sec = (time_t)(d / RWY_SEC), .tv_nsec = (long)(d % RWY_SEC)};
	struct rte_epoll_event seen[GW_RXQ_MAX];
	struct epoll_event ev[2];
	uint64_t v;
	int n = intr_arm(w) ? 0 : epoll_pwait2(w->epoll_fd, ev, 2, &ts, NULL);

	atomic_store(&w->asleep, false);
	for (int i = 0; i < n; i++) {
		/* DPDK reads the event counters */
		if (ev[i].data.fd == w->intr_fd)
			rte_epoll_wait(w->intr_fd, seen, GW_RXQ_MAX, 0);
		else if (read(w->wake_fd, &v, sizeof(v)) < 0)
			continue; /* already processed */
	}
	for (unsigned i = 0; i < w->rxqs; i++)
		rte_eth_dev_rx_intr_disable(w->rxq[i].port->id, w->rxq[i].queue);
}

static void idle_sleep(struct gw_worker *w, rwy_dur *backoff)
{
	bool intr = w->intr_fd >= 0;
	rwy_time next = eng_next(w->eng), now = gw_now();
	rwy_dur d = intr ? SLEEP_INTR : *backoff;

	if (next <= now || w->kernel_fed) /* kernel_wake() is due soon */
		return;
	if (next - now < d)
		d = next - now;
	if (d < SLEEP_LEAD)
		return;
	w->st.sleeps++;
	gw_reader_offline(w->app->publisher, w->idx);
	if (intr)
		sleep_intr(w, d);
	else
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){.tv_nsec = (long)d}, NULL);
	gw_reader_online(w->app->publisher, w->idx);
	w->st.asleep += rwy_since(now, gw_now());
	if (*backoff < SLEEP_MAX)
		*backoff = *backoff * 2 > SLEEP_MAX ? SLEEP_MAX : *backoff * 2;
}

static void turn_account(struct gw_worker *w, rwy_time start, rwy_time end, bool worked)
{
	rwy_dur d = rwy_since(start, end);

	w->st.turns++;
	if (!worked) {
		w->st.idle += d;
		return;
	}
	w->st.busy_turns++;
	w->st.busy += d;
	if (d > w->st.turn_max)
		w->st.turn_max = d;
}

int gw_worker_main(void *worker)
{
	struct gw_worker *w = worker;
	bool adaptive = w->app->conf->polling == CONF_POLL_ADAPTIVE;
	rwy_dur backoff = SLEEP_MIN;
	rwy_time last_work;

	prctl(PR_SET_TIMERSLACK, 1);
	last_work = gw_now();
	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		bool worked = gw_worker_turn(w) > 0;
		rwy_time end = gw_now();

		turn_account(w, w->began, end, worked);
		if (worked) {
			last_work = end;
			backoff = SLEEP_MIN;
		} else if (adaptive && rwy_since(last_work, end) > SPIN) {
			idle_sleep(w, &backoff);
		}
	}
	w->cap = NULL;
	gw_tx_flush(w);
	gw_reader_offline(w->app->publisher, w->idx);
	return 0;
}

/* --- creation -------------------------------------------------------------------------------- */

/* Chooses the receive queues that this worker polls, and its transmit queue on each port. */
static void take_queues(struct gw_worker *w)
{
	unsigned workers = w->app->workers;

	w->ports = w->app->ports;
	for (unsigned i = 0; i < w->ports; i++) {
		struct gw_port *p = w->app->port[i];

		w->by_id[p->id] = p;
		w->txq[i].port = p;
		w->txq[i].queue = (uint16_t)(w->idx % p->txqs);
		for (unsigned q = 0; q < p->rxqs && w->rxqs < GW_RXQ_MAX; q++)
			if ((q + (p->rxqs < workers ? i : 0)) % workers == w->idx)
				w->rxq[w->rxqs++] = (struct gw_rxq){.port = p, .queue = (uint16_t)q};
	}
}

static void intr_drop(struct gw_worker *w, unsigned queues)
{
	for (unsigned i = 0; i < queues; i++)
		rte_eth_dev_rx_intr_ctl_q(
		    w->rxq[i].port->id, w->rxq[i].queue, w->intr_fd, RTE_INTR_EVENT_DEL, NULL);
	if (w->intr_fd >= 0)
		close(w->intr_fd);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	w->intr_fd = w->epoll_fd = w->wake_fd = -1;
}

/*
 * Sets up wake-up by interrupts, if every receive queue has one. There are two epoll sets: DPDK's,
 * whose events only DPDK can read, and around it ours, which has also the eventfd for other
 * threads.
 */
static void intr_take(struct gw_worker *w)
{
	unsigned n = 0;
	struct epoll_event ev = {.events = EPOLLIN};

	if (w->app->conf->polling != CONF_POLL_ADAPTIVE || !w->rxqs)
		return;
	for (unsigned i = 0; i < w->rxqs; i++)
		if (!w->rxq[i].port->rx_intr)
			return;
	w->intr_fd = epoll_create1(EPOLL_CLOEXEC);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	while (w->intr_fd >= 0 && n < w->rxqs &&
	       rte_eth_dev_rx_intr_ctl_q(
	           w->rxq[n].port->id, w->rxq[n].queue, w->intr_fd, RTE_INTR_EVENT_ADD, NULL) == 0)
		n++;
	ev.data.fd = w->intr_fd;
	if (n == w->rxqs && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->intr_fd, &ev) == 0) {
		ev.data.fd = w->wake_fd;
		if (epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &ev) == 0)
			return;
	}
	intr_drop(w, n);
}

/* Names are process-wide: the gateway's own name keeps two gateways in one process apart
 * (tests/bench). */
static struct rte_ring *ring_new(const struct gw_worker *w, const char *what, unsigned len, unsigned flags)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "rwy_%s_%u_%.8s", what, w->idx, w->app->conf->name);
	return rte_ring_create(name, len, SOCKET_ID_ANY, flags);
}

/* Returns the rate of the fastest LAN port, as far as drivers know it: bytes a second. */
static uint64_t lan_rate(const struct gw_app *app)
{
	uint64_t mbps = 0;

	for (unsigned i = 0; i < app->ports; i++) {
		uint64_t speed = atomic_load_explicit(&app->port[i]->speed_mbps, memory_order_relaxed);

		if (app->port[i]->conf->role == CONF_ROLE_LAN && speed > mbps)
			mbps = speed;
	}
	return mbps * 125000;
}

/* Divides the memory, and says once when the buffers have no room for what the file asks for. */
static void memory_set(const struct gw_worker *w, struct eng_cfg *cfg)
{
	const uint64_t asked = cfg->custody_total;

	gw_eng_cfg_memory(cfg, w->app->workers, w->pools->big_n, w->pools->room + GW_MBUF_OVERHEAD);
	if (!w->idx && cfg->custody_total < asked)
		gw_log(GW_LOG_INFO, "main",
		    "memory.custody_total=%" PRIu64 " is more than `memory.buffers` have room for: ACKs wait "
		    "above %" PRIu64 " bytes",
		    w->app->conf->custody_total, cfg->custody_total * w->app->workers);
}

static int engine_new(struct gw_worker *w)
{
	struct eng_cfg *cfg = malloc(sizeof(*cfg));
	struct rwy_bufs bufs = {.ops = &gw_buf_ops, .ctx = w->pools};
	int rc = RWY_ENOMEM;

	if (cfg && (rc = gw_eng_cfg(cfg, w->app->conf, w->idx)) == 0) {
		gw_jfile_region(w->app, w->idx, cfg);
		gw_recorder_region(w->app, w->idx, cfg);
	}
	if (cfg && !rc) {
		cfg->lan_Bps = lan_rate(w->app);
		cfg->directory = w->app->directory;
		cfg->standby.board = w->app->board;
		if (w->app->workers > 1) {
			cfg->lanes = &w->app->lanes;
			cfg->hosts = &w->app->hosts;
		}
		for (unsigned i = 0; i < cfg->tunnels && !w->idx; i++) /* it is made first */
			eng_lanes_begin(&w->app->lanes, i, base_random64() | 1);
		cfg->worker = (uint8_t)w->idx;
		cfg->workers = (uint8_t)w->app->workers;
		memory_set(w, cfg);
	}
	if (cfg && !rc)
		rc = eng_new(&w->eng, cfg, w->edge ? &gw_relay_eng_ops : &gw_eng_ops, w, bufs, gw_now());
	free(cfg);
	return rc;
}

int gw_worker_new(struct gw_worker **out, struct gw_app *app, unsigned idx, struct gw_pools *pools)
{
	struct gw_worker *w = aligned_alloc(64, (sizeof(*w) + 63) & ~(size_t)63);
	int rc = RWY_ENOMEM;

	if (!w)
		return RWY_ENOMEM;
	memset(w, 0, sizeof(*w));
	w->app = app;
	w->idx = idx;
	w->pools = pools;
	w->epoll_fd = w->intr_fd = w->wake_fd = -1;
	gw_reader_join(app->publisher, idx);
	w->nt = gw_nt_of(app);
	w->ts = gw_tenants_of(app);
	w->tenants = app->tenant_count[idx];
	pthread_mutex_init(&w->call_lock, NULL);
	take_queues(w);
	w->sibw = aligned_alloc(64, sizeof(*w->sibw));
	if (!w->sibw)
		goto err;
	memset(w->sibw, 0, sizeof(*w->sibw));
	if (app->conf->controller.urls) {
		w->sessions = aligned_alloc(64, sizeof(*w->sessions));
		if (!w->sessions)
			goto err;
		memset(w->sessions, 0, sizeof(*w->sessions));
	}
	w->tun_conf = calloc(CONF_TUNNELS_MAX, sizeof(*w->tun_conf));
	if (!w->tun_conf)
		goto err;
	for (unsigned i = 0; i < app->conf->tunnels; i++)
		gw_tx_tunnel_init(w, i, &app->conf->tunnel[i]);
	w->nh_used = calloc(GW_NEIGH_MAX, 1);
	w->seen = calloc(GW_SEEN, sizeof(*w->seen));
	for (unsigned i = 0; i < w->ports; i++)
		if (!(w->verdict[i] = calloc(GW_VERDICTS, sizeof(struct gw_verdict))))
			goto err;
	w->from_kernel = ring_new(w, "from_kernel", GW_KERNEL_LEN, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (app->workers > 1) {
		w->handoff = ring_new(w, "handoff", GW_HANDOFF_LEN, RING_F_SC_DEQ);
		w->hand = calloc(app->workers, sizeof(*w->hand));
	}
	if (!w->nh_used || !w->seen || !w->from_kernel || (app->workers > 1 && (!w->handoff || !w->hand)))
		goto err;
	w->to_kernel = app->kernel->frames;
	intr_take(w);
	rc = gw_overlay_new(w);
	if (!rc)
		rc = gw_notes_new(w);
	if (!rc)
		rc = gw_edge_new(&w->edge, w);
	if (!rc)
		rc = gw_standby_new(w);
	if (!rc)
		rc = engine_new(w);
	if (rc)
		goto err;
	*out = w;
	return 0;
err:
	gw_worker_free(w);
	return rc;
}

struct gw_session_ring *gw_sessions_of(const struct gw_app *app, unsigned worker)
{
	return app->worker[worker] ? app->worker[worker]->sessions : NULL;
}

void gw_worker_free(struct gw_worker *w)
{
	if (!w)
		return;
	if (w->eng)
		eng_free(w->eng);
	for (unsigned i = 0; i < w->ports; i++) {
		rte_pktmbuf_free_bulk(w->txq[i].pkt, w->txq[i].n);
		free(w->verdict[i]);
	}
	gw_tx_room_free(w);
	gw_notes_free(w);
	gw_ring_free(w->handoff);
	free(w->hand);
	gw_ring_free(w->from_kernel);
	if (w->intr_fd >= 0)
		intr_drop(w, w->rxqs);
	gw_edge_free(w->edge);
	gw_overlay_free(w);
	gw_standby_free(w);
	free(w->sibw);
	free(w->nh_used);
	free(w->seen);
	free(w->tun_conf);
	free(w->sessions);
	pthread_mutex_destroy(&w->call_lock);
	gw_reader_leave(w->app->publisher, w->idx);
	free(w);
}
