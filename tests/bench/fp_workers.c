/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of gateways on processors of their own: see fp_workers.h. */
#include "tests/bench/fp_workers.h"

#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <stdatomic.h>
#include <string.h>

#include "gateway/datapath/notes.h"
#include "tests/bench/fp_run.h"

/* The thread of worker k of both gateways. */
static struct member {
	atomic_bool asked;
	bool started;
	void (*job)(struct member *m);
	struct gw_worker *w; /* turn(): whose */
	uint64_t cycles;     /* turn() took so long */
	_Atomic long switches;
	struct rte_mbuf *frame[FP_PORTS * FP_QUEUES * FP_RING];
	unsigned frames;
} member[FP_QUEUES];

/* Jobs. */
static void turn(struct member *m)
{
	const uint64_t t = rte_rdtsc();

	gw_worker_turn(m->w);
	m->cycles = rte_rdtsc() - t;
}

/* Puts copies of the frames into buffers of its own, as the driver of its queue does. */
static void copy(struct member *m)
{
	for (unsigned i = 0; i < m->frames; i++) {
		struct rte_mbuf *f = m->frame[i], *c = rte_pktmbuf_copy(f, f->pool, 0, f->pkt_len);

		if (!c)
			fp_die("packet buffers are used up");
		c->port = f->port;
		m->frame[i] = c;
	}
}

static void touch(struct member *m)
{
	for (unsigned i = 0; i < m->frames; i++) {
		const volatile uint8_t *d = rte_pktmbuf_mtod(m->frame[i], const volatile uint8_t *);

		for (uint32_t at = 0; at < m->frame[i]->data_len; at += RTE_CACHE_LINE_SIZE)
			(void)d[at];
	}
	m->frames = 0;
}

static void release(struct member *m)
{
	for (unsigned i = 0; i < m->frames; i++)
		rte_pktmbuf_free(m->frame[i]);
	m->frames = 0;
}

static int member_main(void *arg)
{
	struct member *m = arg;

	for (;;) {
		while (!atomic_load_explicit(&m->asked, memory_order_acquire))
			rte_pause();
		m->job(m);
		atomic_store_explicit(&m->switches, fp_switches(), memory_order_relaxed);
		atomic_store_explicit(&m->asked, false, memory_order_release);
	}
	return 0;
}

static void member_start(struct member *m, unsigned k)
{
	unsigned lcore = rte_lcore_id();

	for (unsigned i = 0; i < k; i++)
		lcore = rte_get_next_lcore(lcore, true, false);
	m->started = true;
	if (lcore >= RTE_MAX_LCORE || rte_eal_remote_launch(member_main, m, lcore) != 0)
		fp_die("no processor for a worker: --lcores has too few");
}

static void ask(unsigned k, void (*job)(struct member *m))
{
	struct member *m = &member[k];

	if (!k) {
		job(m);
		return;
	}
	if (!m->started)
		member_start(m, k);
	m->job = job;
	atomic_store_explicit(&m->asked, true, memory_order_release);
	while (atomic_load_explicit(&m->asked, memory_order_acquire))
		rte_pause();
}

/* The worker that a frame of a host or of the other gateway belongs to. */
static unsigned owner_of(const struct fp_gw *g, unsigned port, const struct rte_mbuf *m)
{
	struct gw_pkt k = {.off = RTE_ETHER_HDR_LEN};

	if (gw_pkt_ip(m, RTE_ETHER_TYPE_IPV4, &k) != GW_PKT_OK)
		fp_die("a frame is not IPv4");
	if (port == FP_LAN)
		return gw_worker_of(&g->app, 0, m, &k);
	return rwy_get16(rte_pktmbuf_mtod_offset(m, const uint8_t *, k.off + k.hdr + 2)) -
	       g->conf.tunnel[0].udp_port;
}

/* The frames of queue k are in buffers of its worker. */
static void receive(struct fp_port *p, unsigned k)
{
	struct member *m = &member[k];
	struct rte_mbuf *f[FP_RING];
	const unsigned n = rte_ring_dequeue_burst(p->rx[k], (void **)f, FP_RING, NULL);

	if (!n)
		return;
	memcpy(m->frame, f, n * sizeof(f[0]));
	m->frames = n;
	ask(k, copy);
	if (!rte_ring_enqueue_bulk(p->rx[k], (void **)m->frame, n, NULL))
		fp_die("a receive ring is full");
	m->frames = 0;
	rte_pktmbuf_free_bulk(f, n);
}

/* Worker k gets frames from other queues: it reads them. */
static void read_owned(struct fp_gw *g, unsigned k)
{
	struct member *m = &member[k];
	struct rte_mbuf *f[FP_RING];

	for (unsigned i = 0; i < FP_PORTS; i++)
		for (unsigned q = 0; q < g->port[i].queues; q++) {
			struct rte_ring *r = g->port[i].rx[q];
			const unsigned n = q == k ? 0 : rte_ring_dequeue_burst(r, (void **)f, FP_RING, NULL);

			for (unsigned x = 0; x < n; x++)
				if (owner_of(g, i, f[x]) == k)
					m->frame[m->frames++] = f[x];
			if (n && !rte_ring_enqueue_bulk(r, (void **)f, n, NULL))
				fp_die("a receive ring is full");
		}
	ask(k, touch);
}

void fp_workers_receive(struct fp_lab *l, enum fp_site s)
{
	struct fp_gw *g = &l->gw[s];

	for (unsigned k = 1; k < g->app.workers; k++) {
		ask(k, release);
		for (unsigned i = 0; i < FP_PORTS; i++)
			receive(&g->port[i], k);
	}
	for (unsigned k = 0; g->app.workers > 1 && k < g->app.workers; k++)
		read_owned(g, k);
}

struct rte_mbuf *fp_workers_sent(unsigned k, struct rte_mbuf *m)
{
	struct member *to = &member[k];
	struct rte_mbuf *c = rte_pktmbuf_copy(m, m->pool, 0, m->pkt_len);

	if (!c)
		fp_die("packet buffers are used up");
	to->frame[to->frames++] = m;
	if (to->frames == RTE_DIM(to->frame))
		ask(k, release);
	return c;
}

uint64_t fp_worker_turn(struct fp_lab *l, enum fp_site s, unsigned k)
{
	ask(k, release);
	member[k].w = l->gw[s].app.worker[k];
	ask(k, turn);
	return member[k].cycles;
}

long fp_workers_switches(void)
{
	long n = 0;

	for (unsigned k = 1; k < FP_QUEUES; k++)
		n += atomic_load_explicit(&member[k].switches, memory_order_relaxed);
	return n;
}
