/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that are NICs (F_NIC), few packet buffers in the gateways (F_POOL), and receives that are
 * posted late (F_RNR). docs/simulator.md says where the behaviour of NICs is documented.
 */
#include "tests/sim/explore.h"

#define READS_RATE 10000000 /* least of the WAN where all operations are READs and ATOMICs */
#define BUF_COST   4480     /* of a packet buffer that takes path MTU 4096 */

/* A NIC gives up after 80 to 110 ms without an answer. A round trip of the WAN, and the two of a
 * lost packet, must fit in. */
void sim_nic_links(struct run *r)
{
	struct sim_cfg *c = &r->cfg;

	for (unsigned i = 0; i < 2; i++) {
		struct link_cfg *l = &c->wan[i];

		l->delay = RWY_MS * (1 + sim_below(&r->rng, 7));
		l->queue = RWY_MS * (10 + sim_below(&r->rng, 20));
		l->loss = l->loss > .01 ? .01 : l->loss;
		l->burst = l->burst > 4 ? 4 : l->burst;
	}
	if (!(r->faults & F_BEHIND)) {
		c->ack_mode = ENG_ACK_NEAR;
		r->nic_reads = sim_chance(&r->rng, .2);
	}
	for (unsigned i = 0; i < 2 && r->nic_reads; i++) {
		struct link_cfg *l = &c->wan[i];

		/* Beside a flood even a packet that the full queue drops must fit in. */
		l->queue = (r->faults & F_HOSTILE ? 15 : 40) * RWY_MS;
		/* On a slower path (F_SMALL) the hosts' own answers fill the queue, and the repeat of
		 * what it drops waits in it once more. */
		l->rate_Bps = l->rate_Bps < READS_RATE ? READS_RATE : l->rate_Bps;
		l->loss = l->reorder = l->dup = l->corrupt = 0;
	}
	for (unsigned j = 0; j < 2; j++)
		for (unsigned k = 0; k < SIM_HOSTS; k++)
			r->slow[j][k] = 1; /* the LAN's rate, their queue pairs in turn */
}

void sim_pool_cfg(struct run *r)
{
	struct sim_cfg *c = &r->cfg;

	c->buffers = (r->faults & F_HOSTILE ? 1024u : 512u) << sim_below(&r->rng, 3);
	c->buf_cost = BUF_COST;
}

/* Changes the configuration that all hosts have. */
void sim_nic_cfg(struct run *r, struct rc_host_cfg *c)
{
	struct rc_host_cfg nic;
	bool other = sim_chance(&r->rng, .3);

	rc_host_cfg_nic(&nic);
	c->window = nic.window;
	c->mtu = c->mtu < 1024 ? 1024 : c->mtu;
	c->ack_every = 16u << sim_below(&r->rng, 5);
	/* 2, 4, 8, 16 ms; others about every 10 ms. */
	c->timeout = other ? 10 * RWY_MS : nic.timeout;
	c->timeout_max = other ? 10 * RWY_MS : nic.timeout_max;
	c->retry = nic.retry;
	c->seven = c->whole = c->lazy_ackreq = c->credits = true;
	c->coalesce = 1 + sim_below(&r->rng, 16);
	c->ack_delay = nic.ack_delay;
	c->rnr_retry = nic.rnr_retry;
	c->rnr_timer = 12; /* 0.64 ms */
	c->continues = false;
}

/* --- the first operation ------------------------------------------------------------------------ */

/*
 * Each connection begins with a small operation, and no host goes on before all are complete. Until
 * the far host has answered, a NIC waits for the WAN, and it gives up soon when others fill the WAN.
 */
void sim_nic_begin(struct run *r)
{
	r->greeting = true;
	sim_paths_heal(r);
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			s->wr[0].len = s->wr[0].len < 256 ? s->wr[0].len : 256;
			s->posted = s->wrs ? 1 : 0;
			if (s->wrs)
				rc_host_post(&s->h, &s->wr[0]);
			sim_pump(r, s);
		}
	sim_nic_go_on(r);
}

void sim_nic_go_on(struct run *r)
{
	for (unsigned i = 0; i < 2 * r->qps && r->greeting; i++) {
		const struct side *s = &r->qp[i / 2][i % 2];

		if (s->posted && !s->completed && !s->gone && !sim_is_bad(r, s))
			return;
	}
	r->greeting = false;
	for (unsigned i = 0; i < 2 * r->qps; i++) {
		struct side *s = &r->qp[i / 2][i % 2];

		while (s->posted < s->wrs && !s->gone && !sim_is_bad(r, s))
			rc_host_post(&s->h, &s->wr[s->posted++]);
		sim_pump(r, s);
	}
}

/* --- receives ----------------------------------------------------------------------------------- */

static void post_recv(struct side *s)
{
	rc_host_post_recv(&s->h, RECV + s->recvs++ % (AREA / SLOT) * SLOT, SLOT);
}

void sim_recvs_begin(struct run *r, struct side *s, unsigned n)
{
	s->recvs_due = n;
	while (s->recvs_due && (!(r->faults & F_RNR) || s->recvs < 2)) {
		s->recvs_due--;
		post_recv(s);
	}
	if (s->recvs_due)
		r->recv_at = sim_now(r->w) + RWY_MS * (1 + sim_below(&r->rng, 30));
}

void sim_recvs_tick(struct run *r, rwy_time now)
{
	bool more = false;

	if (now < r->recv_at)
		return;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			for (unsigned n = sim_below(&r->rng, 8); n && s->recvs_due && !s->gone; n--) {
				s->recvs_due--;
				post_recv(s);
			}
			more |= s->recvs_due && !s->gone;
			sim_pump(r, s);
		}
	r->recv_at = more ? now + RWY_MS * (1 + sim_below(&r->rng, 30)) : RWY_NEVER;
}
