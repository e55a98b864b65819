/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a world from a seed: links, queue pairs, hosts. A new draw goes behind a fault's bit, so
 * that other seeds keep their worlds. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"

void sim_draw_links(struct run *r)
{
	struct sim_cfg *c = &r->cfg;
	struct sim_rng *g = &r->rng;

	for (unsigned i = 0; i < 2; i++) {
		struct link_cfg *l = &c->wan[i];

		l->delay = RWY_MS * (1 + sim_below(g, 60));
		l->rate_Bps = 12500000ull << sim_below(g, 5);
		l->queue = RWY_MS * (10 + sim_below(g, 90));
		l->loss = sim_chance(g, .7) ? sim_below(g, 50) / 1000.0 : 0;
		l->burst = sim_chance(g, .3) ? 2 + sim_below(g, 10) : 1;
		l->reorder = sim_chance(g, .5) ? sim_below(g, 30) / 1000.0 : 0;
		l->dup = sim_chance(g, .5) ? sim_below(g, 10) / 1000.0 : 0;
		l->corrupt = sim_chance(g, .5) ? sim_below(g, 10) / 1000.0 : 0;
	}
	c->wan_mtu = sim_chance(g, .5) ? 1472 : 600 + sim_below(g, 8000);
	c->ack_mode = (enum eng_ack_mode)sim_below(g, 4);
	if (r->faults & (F_IDLE | F_RESET))
		c->ack_mode = ENG_ACK_NEAR;
	if (sim_chance(g, .2))
		c->custody_conn = 64u << 10;
	if (sim_chance(g, .2))
		c->rx_window = 64;
	if (r->faults & F_LAN_LOSS) {
		c->lan.loss = .005;
		c->lan.corrupt = .002;
		if (sim_chance(g, .3)) {
			c->read_cache_conn = 4096;
			c->read_cache_total = 3 * 4096;
		}
	}
}

/* Memory is kept from run to run. */
static uint8_t *memory_of(unsigned qp, unsigned site)
{
	static uint8_t *kept[QPS_MAX][2];

	if (!kept[qp][site] && !(kept[qp][site] = malloc(MEM)))
		abort();
	return kept[qp][site];
}

static struct rc_wr *wrs_of(unsigned qp, unsigned site)
{
	static struct rc_wr *kept[QPS_MAX][2];

	if (!kept[qp][site] && !(kept[qp][site] = malloc(MASS_MAX * sizeof(**kept[qp]))))
		abort();
	return kept[qp][site];
}

void sim_side_init(struct run *r, unsigned qp, unsigned host, unsigned tenant)
{
	for (unsigned j = 0; j < 2; j++) {
		struct side *s = &r->qp[qp][j];

		s->run = r;
		s->idx = qp;
		s->site = j;
		s->host = host;
		s->tenant = tenant;
		s->qpn = 0x11 + 8 * qp + j;
		s->mem = memory_of(qp, j);
		s->wr = wrs_of(qp, j);
	}
}

/* With F_CAUSAL all are of two hosts, or, where address pairs have workers, most. */
static unsigned draw_host(struct run *r)
{
	if (r->faults & F_CAUSAL && (!(r->faults & F_WORKERS) || sim_below(&r->rng, 3)))
		return 0;
	return sim_below(&r->rng, SIM_HOSTS);
}

void sim_draw_qps(struct run *r)
{
	struct sim_rng *g = &r->rng;

	r->zero_psn = sim_chance(g, r->faults & F_LATE ? .8 : .4);
	r->qps = 1 + sim_below(
	                 g, sim_chance(g, r->faults & (F_SLOW | F_LATE) ? .7 : .2) && !(r->faults & F_SQUEEZE)
	                        ? QPS_MAX
	                        : 4);
	r->zero_psn |= r->faults & F_RESETS;
	if (r->faults & F_WORKERS && !(r->faults & F_RESETS)) /* CM names random PSNs */
		r->zero_psn = false;
	if (r->faults & (F_NIC | F_CAUSAL))
		r->qps = 1 + (r->faults & F_CAUSAL ? 1 : 0) + sim_below(g, 4);
	if (r->faults & F_CAUSAL && r->faults & F_WORKERS)
		r->qps += 3;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			s->run = r;
			s->idx = i;
			s->site = j;
			s->host = draw_host(r);
			s->qpn = 0x11 + 8 * i + sim_below(g, 8);
			s->mem = memory_of(i, j);
			s->wr = wrs_of(i, j);
		}
	/* Queue pairs of different tenants have the same hosts and QPNs. */
	for (unsigned i = 0; i < r->qps && r->cfg.tenants; i++)
		for (unsigned j = 0; j < 2; j++) {
			const struct side *first = &r->qp[i - i % (SIM_TENANTS + 1)][j];

			r->qp[i][j].tenant = i % (SIM_TENANTS + 1);
			r->qp[i][j].qpn = first->qpn;
			r->qp[i][j].host = first->host;
		}
}

/*
 * Custody is so small and an outage so long that hosts wait for seconds, with the retry budget of a
 * NIC (67 ms, 7 times). Withheld ACKs must never cost a connection. READs and ATOMICs are left out,
 * since nobody can answer them during an outage.
 */
void sim_draw_squeeze(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct link_cfg *l = &r->cfg.wan[i];

		l->delay = RWY_MS * (1 + sim_below(&r->rng, 30));
		l->rate_Bps = 12500000;
		l->loss = 0;
	}
	r->cfg.ack_mode = ENG_ACK_NEAR;
	r->cfg.custody_conn = (16u << 10) << sim_below(&r->rng, 3);
	if (sim_chance(&r->rng, .5))
		r->cfg.custody_total = 64u << 10;
	/* Not before the far host has confirmed every connection, since nothing is acknowledged
	 * before that. Nor before a move of the tunnel: a carrier may be broken, without being
	 * noticed, for longer than these hosts try. */
	r->fault_at = 1700 * RWY_MS + RWY_MS * sim_below(&r->rng, 200);
}

/*
 * Hard bounds of a few windows for all queue pairs together. A tenant has a quarter of it reserved.
 */
void sim_draw_bounds(struct run *r)
{
	struct sim_cfg *c = &r->cfg;

	c->memory_conn = (96u << 10) << sim_below(&r->rng, 3);
	c->memory_total = c->memory_conn << (1 + sim_below(&r->rng, 3));
	c->custody_conn = c->memory_conn - c->memory_conn / 4;
	c->custody_total = c->memory_total - c->memory_total / 4;
	c->unpaired_total = c->memory_total / 2;
	c->reserve = sim_chance(&r->rng, .5) ? c->memory_total / 4 : 0;
}

/* The LAN is faster than the WAN by so much that small messages wait in a row. */
void sim_draw_small(struct run *r)
{
	for (unsigned i = 0; i < 2; i++)
		r->cfg.wan[i].rate_Bps = 1250000ull << sim_below(&r->rng, 4);
}

/* 2 to 20 MB/s, like Soft-RoCE. */
void sim_draw_slow(struct run *r)
{
	for (unsigned j = 0; j < 2; j++)
		for (unsigned k = 0; k < SIM_HOSTS; k++)
			r->slow[j][k] = 50 + sim_below(&r->rng, 450);
}

/* A new connection between the two sides of qp[i], and its workload. */
void sim_connect_qp(struct run *r, struct side *s)
{
	struct sim_rng *g = &r->rng;
	uint32_t mtu = 256u << sim_below(g, 5);
	roce_psn psn[2];

	for (unsigned j = 0; j < 2; j++) {
		psn[j] = r->zero_psn ? 0 : (roce_psn)(sim_next(g) & ROCE_PSN_MASK);
		s[j].done = s[j].recvs = s[j].begun = s[j].posted = s[j].completed = s[j].chained = 0;
		s[j].done_at = 0;
		s[j].error = false;
		s[j].status = RC_OK;
		sim_draw_memory(r, &s[j]);
	}
	for (unsigned j = 0; j < 2; j++) {
		struct rc_host_cfg c;
		struct rwy_ip me = sim_host_ip(j, s[j].host), peer = sim_host_ip(!j, s[!j].host);

		rc_host_cfg_default(&c);
		memcpy(c.ip, me.b + 12, 4);
		memcpy(c.peer_ip, peer.b + 12, 4);
		c.peer_qpn = s[!j].qpn;
		c.mtu = mtu;
		c.sq_psn = psn[j];
		c.rq_psn = psn[!j];
		c.rkey = 0x1000 + (uint32_t)sim_below(g, 1000);
		if (r->faults & F_RESETS) /* the same memory region */
			c.rkey = 0x1000;
		/* With so little credit a READ waits long behind WRITEs that were acknowledged
		 * early. */
		c.timeout = r->faults & F_SQUEEZE             ? 67 * RWY_MS
		            : r->faults & (F_LATE | F_RATES)  ? (r->faults & F_LAN_LOSS ? 5 : 10) * RWY_SEC
		            : r->faults & (F_SLOW | F_DETOUR) ? 5 * RWY_SEC
		            : r->cfg.rx_window                ? 2 * RWY_SEC
		                                              : 500 * RWY_MS;
		/*
		 * 7 means no limit, as in Soft-RoCE: then only a gateway can end a connection. A host
		 * that uses its QPN again may wait for seconds, while the answer to a repeat of the
		 * connection before could still come. With half a second it would give up.
		 */
		c.retry = ((r->faults & F_CRASH) && !(r->faults & F_HOST)) ||
		                  ((r->faults & F_SQUEEZE) && sim_now(r->w) > r->fault_end)
		              ? 7
		              : 6;
		c.rnr_retry = 7;
		c.continues = r->cfg.seed & 1; /* as Soft-RoCE does, or as the standard says */
		if (r->faults & F_MASS) {
			c.rd_max = 1u << sim_below(g, 8);
			c.resources = RC_HOST_RES;
		}
		if (r->faults & F_NIC)
			sim_nic_cfg(r, &c);
		c.done = sim_completed;
		c.ctx = &s[j];
		rc_host_init(&s[j].h, &c, s[j].mem, MEM);
	}
	for (unsigned j = 0; j < 2; j++) {
		sim_draw_wrs(r, &s[j], &s[!j]);
		if (sim_chance(g, .3))
			s[j].wrs = 0;
	}
	sim_draw_uncarried(r, s);
	for (unsigned j = 0; j < 2; j++) {
		unsigned n = 0;

		for (unsigned k = 0; k < s[!j].wrs; k++)
			n += sim_takes_recv(&s[!j].wr[k]);
		sim_recvs_begin(r, &s[j], n);
	}
}
