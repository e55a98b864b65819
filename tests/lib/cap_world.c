/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, their programs, and time. */
#include "tests/lib/cap_world.h"

#include <stdlib.h>
#include <string.h>

#include "roce/build.h"
#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/ether.h"
#include "tests/lib/cap_world_int.h"
#include "tests/lib/heap_buf.h"
#include "vxlan/vxlan.h"

#define MEM         (1u << 20)
#define RATE        UINT64_C(3125000000) /* bytes a second of a port of 25 Gbit/s */
#define FRAMING     38
#define CNP_EACH    (50 * RWY_US)  /* host B sends a CNP so often at most */
#define FASTER_EACH (300 * RWY_US) /* host A doubles its rate so long after a CNP, and so on */
#define SLOWEST     64
#define STEPS_MAX   8000000
#define UP_WAIT     (30 * RWY_SEC)
#define ETH_LEN     14
#define OUTER_LEN   50 /* Ethernet, IPv4, UDP, VXLAN */

static void put_outer(uint8_t *f, uint32_t inner, uint32_t vni)
{
	uint8_t *ip = f + ETH_LEN, *udp = ip + 20, *vx = udp + 8;

	rwy_put16(f + 12, RWY_ETHER_IP4);
	ip[0] = 0x45;
	rwy_put16(ip + 2, (uint16_t)(inner + OUTER_LEN - ETH_LEN));
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, (uint8_t[]){192, 0, 2, 1, 192, 0, 2, 2}, 8);
	rwy_put16(ip + RWY_IP4_CSUM, (uint16_t)~rwy_csum(ip, 20));
	rwy_put16(udp, 49152);
	rwy_put16(udp + 2, VXLAN_UDP_PORT);
	rwy_put16(udp + 4, (uint16_t)(inner + OUTER_LEN - ETH_LEN - 20));
	vx[0] = 8;
	rwy_put32(vx + 4, vni << 8);
}

static void capture(struct cap_world *w, unsigned place, const uint8_t *ip, uint32_t len)
{
	uint8_t frame[OUTER_LEN + ETH_LEN + RC_PKT_MAX] = {0};
	uint32_t at = w->s->vni ? OUTER_LEN : 0, all = at + ETH_LEN + len;

	if (w->s->vni)
		put_outer(frame, ETH_LEN + len, w->s->vni);
	rwy_put16(frame + at + 12, RWY_ETHER_IP4);
	memcpy(frame + at + ETH_LEN, ip, len);
	w->frame(w->ctx, w->now, frame, w->s->snap && w->s->snap < all ? w->s->snap : all, all, place);
}

static void send(struct cap_world *w, unsigned site, uint8_t *ip, uint32_t len)
{
	if (w->s->cnps) /* ECN-capable, as DCQCN has it */
		rwy_ip4_set16(ip, 0, (uint16_t)(rwy_get16(ip) | 2));
	capture(w, site, ip, len);
	cap_path_send(w, site, ip, len);
}

static void plan(struct cap_conn *c)
{
	if (c->planned < c->p->messages)
		c->post_at[c->planned++] = c->w->now + c->p->think;
}

static void done_a(void *ctx, const struct rc_comp *comp)
{
	struct cap_conn *c = ctx;

	c->done += comp->status == RC_OK;
	c->failed |= comp->status != RC_OK;
	plan(c);
}

static void done_b(void *ctx, const struct rc_comp *comp)
{
}

static void conn_init(struct cap_world *w, unsigned i)
{
	const struct cap_scene *s = w->s;
	struct cap_conn *c = &w->conn[i];
	struct rc_host_cfg a, b;

	*c = (struct cap_conn){.p = &s->program[i], .w = w, .slow = 1};
	(s->nic ? rc_host_cfg_nic : rc_host_cfg_default)(&a);
	a.window = s->window ? s->window : a.window;
	a.rd_max = c->p->rd_max ? c->p->rd_max : a.rd_max;
	a.timeout = s->timeout ? s->timeout : a.timeout;
	a.retry = s->retry ? s->retry : a.retry;
	a.credits |= s->credits;
	a.rnr_retry = 7;
	a.sq_psn = 0xfffff0 + i; /* wraps soon */
	a.rq_psn = 77 + i;
	a.peer_qpn = CAP_QPN_B + i;
	b = a;
	memcpy(b.ip, a.peer_ip, 4);
	memcpy(b.peer_ip, a.ip, 4);
	b.peer_qpn = CAP_QPN_A + i;
	b.sq_psn = a.rq_psn;
	b.rq_psn = a.sq_psn;
	b.rnr_timer = 14; /* 1.28 ms */
	a.done = done_a;
	b.done = done_b;
	a.ctx = b.ctx = c;
	c->mem[0] = calloc(1, MEM);
	c->mem[1] = calloc(1, MEM);
	c->post_at = calloc(c->p->messages, sizeof(*c->post_at));
	if (!c->mem[0] || !c->mem[1] || !c->post_at)
		abort();
	rc_host_init(&c->host[0], &a, c->mem[0], MEM);
	rc_host_init(&c->host[1], &b, c->mem[1], MEM);
}

/* What is posted now. */
static void program(struct cap_world *w, struct cap_conn *c)
{
	const struct cap_program *p = c->p;

	if (p->op == RC_SEND)
		while (c->recvs < p->messages && w->now >= c->next_recv) {
			rc_host_post_recv(&c->host[1], 0, p->size);
			c->recvs++;
			if (c->recvs >= p->recvs)
				c->next_recv = w->now + p->recv_every;
		}
	while (c->posted < c->planned && c->post_at[c->posted] <= w->now) {
		struct rc_wr wr = {.id = c->posted,
		    .op = p->op,
		    .len = p->first_size && !c->posted ? p->first_size : p->size,
		    .rkey = p->rkey ? p->rkey : c->host[1].cfg.rkey};

		c->posted++;
		rc_host_post(&c->host[0], &wr);
	}
}

static rwy_dur wire_time(const struct cap_world *w, uint32_t len)
{
	return (len + FRAMING) * RWY_SEC / (w->s->rate_Bps ? w->s->rate_Bps : RATE);
}

/* The ports send one packet after the other, of the connections in turn. */
static void host_sends(struct cap_world *w, unsigned site)
{
	struct cap_site *t = &w->site[site];
	uint8_t bytes[RC_PKT_MAX];

	for (unsigned none = 0; none < w->conns && w->now >= t->port_free; none++) {
		struct cap_conn *c = &w->conn[t->turn++ % w->conns];
		uint32_t len;

		if ((site == CAP_AT_A && w->now < c->next_tx) ||
		    !(len = rc_host_output(&c->host[site], bytes, w->now)))
			continue;
		send(w, site, bytes, len);
		t->port_free = w->now + wire_time(w, len);
		if (site == CAP_AT_A)
			c->next_tx = w->now + c->slow * wire_time(w, len);
		none = 0;
	}
}

static void cnp_send(struct cap_world *w, struct cap_conn *c)
{
	const struct rc_host_cfg *b = &c->host[1].cfg;
	struct roce_addr to = {.dqpn = b->peer_qpn, .sport = 0xc000, .pkey = 0xffff, .ttl = 64};
	uint8_t cnp[ROCE_BUILD_MAX];

	if (c->last_cnp && w->now < c->last_cnp + CNP_EACH)
		return;
	c->last_cnp = w->now;
	w->cnps++;
	to.src = rwy_ip_from4(b->ip);
	to.dst = rwy_ip_from4(b->peer_ip);
	send(w, CAP_AT_B, cnp, roce_build_cnp(cnp, &to));
}

static struct cap_conn *conn_of(struct cap_world *w, unsigned site, uint32_t dqpn)
{
	uint32_t i = dqpn - (site == CAP_AT_A ? CAP_QPN_A : CAP_QPN_B);

	return i < w->conns ? &w->conn[i] : NULL;
}

/* A packet is at a host's port (served: or has waited for host B's time). Takes b. */
static void to_host(struct cap_world *w, unsigned site, bool served, struct rwy_buf *b)
{
	struct cap_conn *c;
	struct roce_pkt pkt;

	if (site == CAP_AT_B && w->s->b_dies && w->now >= w->begin + w->s->b_dies)
		goto out;
	if (!served)
		capture(w, site, b->data, b->len);
	if (!rc_pkt_read(b->data, b->len, &pkt) || !(c = conn_of(w, site, pkt.dqpn)))
		goto out;
	if (pkt.info->op == ROCE_OP_CNP && w->s->cnps && site == CAP_AT_A) {
		c->slow = c->slow < SLOWEST ? c->slow * 2 : c->slow;
		c->next_faster = w->now + FASTER_EACH;
	}
	if (site == CAP_AT_B && !served && w->s->cnps && pkt.ecn == 3)
		cnp_send(w, c);
	if (site == CAP_AT_B && !served && w->s->serve && roce_op_is_request(pkt.info)) {
		w->served = rwy_time_max(w->served, w->now) + w->s->serve;
		due_push(&w->due, &(struct due){w->served, w->order++, b, CAP_SERVED + site});
		return;
	}
	rc_host_packet(&c->host[site], &pkt, w->now);
out:
	heap_buf_free(&w->bufs, b);
}

static void arrivals(struct cap_world *w)
{
	while (due_next(&w->due) <= w->now) {
		struct due d = due_pop(&w->due);
		unsigned site = d.where % 2;

		switch ((enum cap_where)(d.where - site)) {
		case CAP_TO_HOST:
			to_host(w, site, false, d.what);
			break;
		case CAP_SERVED:
			to_host(w, site, true, d.what);
			break;
		case CAP_TO_GATEWAY:
			cap_path_gateway(w, site, true, d.what);
			break;
		case CAP_TO_PEER:
			cap_path_gateway(w, site, false, d.what);
			break;
		}
	}
}

static rwy_time conn_next(const struct cap_world *w, const struct cap_conn *c)
{
	rwy_time t = rwy_time_min(rc_host_next(&c->host[0]), rc_host_next(&c->host[1]));

	if (c->posted < c->planned)
		t = rwy_time_min(t, c->post_at[c->posted]);
	if (c->p->op == RC_SEND && c->recvs < c->p->messages)
		t = rwy_time_min(t, c->next_recv);
	if (c->slow > 1)
		t = rwy_time_min(t, c->next_faster);
	return c->next_tx > w->now ? rwy_time_min(t, c->next_tx) : t;
}

/* Goes to the next event; false: there is none before `end`. */
static bool step(struct cap_world *w, rwy_time end)
{
	rwy_time t = cap_path_next(w);

	for (unsigned i = 0; i < w->conns && w->now >= w->begin; i++)
		t = rwy_time_min(t, conn_next(w, &w->conn[i]));
	for (unsigned i = 0; i < 2; i++)
		if (w->site[i].port_free > w->now)
			t = rwy_time_min(t, w->site[i].port_free);
	if (t >= end)
		return false;
	w->now = rwy_time_max(t, w->now + 1);
	return true;
}

static void turn(struct cap_world *w)
{
	arrivals(w);
	cap_path_poll(w);
	for (unsigned i = 0; i < w->conns && w->now >= w->begin; i++) {
		struct cap_conn *c = &w->conn[i];

		if (c->slow > 1 && w->now >= c->next_faster) {
			c->slow /= 2;
			c->next_faster = w->now + FASTER_EACH;
		}
		program(w, c);
		rc_host_tick(&c->host[0], w->now);
		rc_host_tick(&c->host[1], w->now);
	}
	for (unsigned i = 0; i < 2 && w->now >= w->begin; i++)
		host_sends(w, !i);
}

static bool over(const struct cap_world *w)
{
	for (unsigned i = 0; i < w->conns; i++)
		if (!w->conn[i].failed && w->conn[i].done < w->conn[i].p->messages)
			return false;
	return true;
}

static void begin(struct cap_world *w)
{
	while (w->s->gateways && !(w->site[0].up && w->site[1].up) && step(w, UP_WAIT))
		turn(w);
	while (w->now < w->begin && step(w, w->begin))
		turn(w);
	w->now = rwy_time_max(w->now, w->begin);
	for (unsigned i = 0; i < w->conns; i++) {
		struct cap_conn *c = &w->conn[i];

		for (uint32_t k = 0; k < c->p->depth && k < c->p->messages; k++)
			c->post_at[c->planned++] = w->now;
	}
}

static void world_end(struct cap_world *w, struct cap_result *r)
{
	for (unsigned i = 0; i < w->conns; i++) {
		struct cap_conn *c = &w->conn[i];

		r->done += c->done;
		r->failed += c->failed;
		r->resent += c->host[0].resent;
		r->naks += c->host[1].nak_sent_n;
		r->rnrs += c->host[1].rnr_sent;
		rc_host_fini(&c->host[0]);
		rc_host_fini(&c->host[1]);
		free(c->mem[0]);
		free(c->mem[1]);
		free(c->post_at);
	}
	r->cnps = w->cnps;
	cap_path_free(w);
	while (w->due.n) {
		struct due d = due_pop(&w->due);

		heap_buf_free(&w->bufs, d.what);
	}
	free(w->due.v);
	if (w->bufs)
		abort(); /* a buffer leaked */
	free(w);
}

struct cap_result cap_play(const struct cap_scene *s, cap_frame *frame, void *ctx)
{
	struct cap_world *w = calloc(1, sizeof(*w));
	struct cap_result r = {0};
	rwy_time end = RWY_NEVER;

	if (!w)
		abort();
	w->s = s;
	w->capture = capture;
	w->frame = frame;
	w->ctx = ctx;
	w->rng = s->seed + 1;
	w->now = w->begin = RWY_SEC; /* not 0, which means "not set" in places */
	while (w->conns < CAP_CONNS && s->program[w->conns].messages)
		conn_init(w, w->conns++);
	cap_path_init(w);
	begin(w);
	r.up = !s->gateways || (w->site[0].up && w->site[1].up);
	for (unsigned n = 0; r.up && n < STEPS_MAX; n++) {
		turn(w);
		if (end == RWY_NEVER && over(w))
			end = w->now + s->linger;
		if (!step(w, end))
			break;
	}
	world_end(w, &r);
	return r;
}
