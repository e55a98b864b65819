/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that CM sets up (F_CM): REQ, REP, RTU, then the work of one side. The side that
 * completes its last operation disconnects at once, as rdma_disconnect() does: its queue pair is
 * gone, and the peer's with the DREQ. The peer must have executed all that is complete before. MADs
 * are sent again until they are answered.
 */
#include "rwy/endian.h"
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_mad.h"
#include "tests/sim/explore.h"

#define AGAIN   (300 * RWY_MS)
#define QKEY    0x80010000u
#define MAD     256
#define ID_BASE 0x5000u

enum { REQ = 0x10, REP = 0x13, RTU = 0x14, DREQ = 0x15, DREP = 0x16 };

/* Communication IDs: round, queue pair and side. */
static uint32_t cm_id(const struct run *r, const struct side *s)
{
	return ID_BASE + r->round * 2 * QPS_MAX + 2 * s->idx + s->site;
}

static void put_gid(uint8_t *gid, unsigned site, unsigned host)
{
	memcpy(gid, sim_host_ip(site, host).b, 16);
}

static void make_req(struct run *r, const struct side *s, uint8_t *mad)
{
	const struct rc_host_cfg *c = &s->h.cfg;
	struct cp_req q = {.tid = cm_id(r, s),
	    .comm = cm_id(r, s),
	    .qpn = s->qpn,
	    .psn = c->rq_psn,
	    .retry = c->retry,
	    .rnr = r->qp[s->idx][!s->site].h.cfg.rnr_retry,
	    .timeout = 14,
	    .resp_res = 16,
	    .init_depth = 16};

	q.mtu = (uint8_t)(__builtin_ctz(c->mtu) - 7); /* 1: 256 .. 5: 4096 */
	put_gid(q.local_gid, s->site, s->host);
	put_gid(q.remote_gid, !s->site, r->qp[s->idx][!s->site].host);
	cp_make_req(mad, &q);
}

void sim_mad_send(
    struct run *r, unsigned site, unsigned host, unsigned peer, unsigned tenant, const uint8_t *mad)
{
	uint8_t out[RC_PKT_MAX];
	struct rwy_ip src = sim_host_ip(site, host), dst = sim_host_ip(!site, peer);
	struct rc_mk m = {.opcode = ROCE_UD_SEND_ONLY, .dqpn = 1, .qkey = QKEY, .src_qpn = 1, .payload = mad};

	m.payload_len = MAD;
	memcpy(m.src, src.b + 12, 4);
	memcpy(m.dst, dst.b + 12, 4);
	sim_host_tx(r->w, site, tenant, out, rc_pkt_make(out, &m));
}

static void send_mad(struct run *r, struct side *s, unsigned what)
{
	const struct side *p = &r->qp[s->idx][!s->site];
	uint32_t mine = cm_id(r, s), theirs = cm_id(r, p);
	uint8_t mad[MAD];

	if (what == REQ)
		make_req(r, s, mad);
	else if (what == REP)
		cp_make_rep(mad, &(struct cp_rep){.tid = theirs,
		                     .comm = mine,
		                     .remote = theirs,
		                     .qpn = s->qpn,
		                     .psn = s->h.cfg.rq_psn,
		                     .rnr = p->h.cfg.rnr_retry,
		                     .resp_res = 16,
		                     .init_depth = 16});
	else if (what == DREQ)
		cp_make_dreq(mad, mine, mine, theirs, p->qpn);
	else
		cp_make_ids(mad, (uint16_t)what, mine, mine, theirs);
	sim_mad_send(r, s->site, s->host, p->host, s->tenant, mad);
}

static void again(struct run *r, struct side *s)
{
	s->cm_at = sim_now(r->w) + AGAIN;
	r->cm_at = rwy_time_min(r->cm_at, s->cm_at);
}

static void little_work(struct side *s, const struct side *p)
{
	s->wrs = 1;
	s->wr[0] =
	    (struct rc_wr){.op = RC_WRITE, .len = SLOT, .remote = SINK, .local = SRC, .rkey = p->h.cfg.rkey};
}

/* The active side sends REQ; one side has work. */
void sim_cm_begin(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++) {
		unsigned worker = sim_below(&r->rng, 2), active = sim_below(&r->rng, 2);

		for (unsigned j = 0; j < 2; j++) {
			r->qp[i][j].cm = SIM_CM_DOWN;
			r->qp[i][j].cm_at = RWY_NEVER;
		}
		if (!r->qp[i][worker].wrs)
			worker = !worker;
		r->qp[i][!worker].wrs = 0;
		if (!r->qp[i][worker].wrs) /* neither had any, and no receive is posted */
			little_work(&r->qp[i][worker], &r->qp[i][!worker]);
		r->qp[i][active].cm = SIM_CM_ASKS;
		send_mad(r, &r->qp[i][active], REQ);
		again(r, &r->qp[i][active]);
	}
}

/*
 * F_WORKERS: CM sets up about half of them; the others begin at once. All are, where connections
 * before did not end by CM: their gateways cannot tell them from the next ones. None is where hosts
 * reset queue pairs in place: nobody does that to one of CM.
 */
void sim_cm_begin_some(struct run *r)
{
	for (unsigned i = 0; i < r->qps; i++) {
		const bool cm = !(r->faults & F_RESETS) && (r->cm_open || sim_chance(&r->rng, .5));
		const unsigned active = sim_below(&r->rng, 2);

		for (unsigned j = 0; j < 2; j++) {
			r->qp[i][j].cm = SIM_CM_DOWN;
			r->qp[i][j].cm_at = RWY_NEVER;
		}
		if (!cm) {
			sim_post_qp(r, r->qp[i]);
			continue;
		}
		r->qp[i][active].cm = SIM_CM_ASKS;
		send_mad(r, &r->qp[i][active], REQ);
		again(r, &r->qp[i][active]);
	}
}

static bool nobody_leaves(void *ctx)
{
	const struct run *r = ctx;

	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++)
			if (r->qp[i][j].cm == SIM_CM_LEAVES)
				return false;
	return true;
}

/* F_WORKERS: before QPNs are used again one side of each connection disconnects, or none does. */
void sim_cm_end_some(struct run *r)
{
	r->cm_open = sim_chance(&r->rng, .5);
	for (unsigned i = 0; i < r->qps; i++) {
		struct side *s = &r->qp[i][sim_below(&r->rng, 2)];

		if (s->cm != SIM_CM_UP)
			continue;
		if (r->cm_open || side_dead(s) || side_dead(&r->qp[i][!s->site])) {
			r->cm_open = true;
			continue;
		}
		s->cm = SIM_CM_LEAVES;
		send_mad(r, s, DREQ);
		again(r, s);
	}
	sim_run(r->w, sim_now(r->w) + 20 * RWY_SEC, nobody_leaves, r);
	r->cm_open |= !nobody_leaves(r);
}

static void connected(struct run *r, struct side *s)
{
	s->cm = SIM_CM_UP;
	s->cm_at = RWY_NEVER;
	for (unsigned k = 0; k < s->wrs; k++)
		rc_host_post(&s->h, &s->wr[k]);
	sim_pump(r, s);
}

static void on_dreq(struct run *r, struct side *s)
{
	const struct side *p = &r->qp[s->idx][!s->site];

	/* With F_HEAP a host may have heard of it as a responder. */
	if (s->cm != SIM_CM_OVER && !side_dead(s) && !(r->faults & F_HEAP ? side_dead(p) : p->error) &&
	    !side_removed(r, s) && s->h.msn < p->done)
		sim_fail(r, "disconnected before what was complete came", s, s->h.msn);
	s->cm = SIM_CM_OVER;
	s->cm_at = RWY_NEVER;
	send_mad(r, s, DREP);
}

void sim_cm_packet(struct run *r, unsigned site, const struct roce_pkt *pkt)
{
	const uint8_t *mad = pkt->payload;
	unsigned what = rwy_get16(mad + 16);
	uint32_t id = rwy_get32(mad + 24) - ID_BASE - r->round * 2 * QPS_MAX;
	struct side *s;

	if (id >= 2 * r->qps || id % 2 == site) /* of a round before */
		return;
	s = &r->qp[id / 2][site];
	/* Its CM lives on until the queue pairs are connected: else the peer would ask for ever. */
	if (s->gone && what == DREQ)
		return;
	if (what == REQ && (s->cm == SIM_CM_DOWN || s->cm == SIM_CM_ANSWERED)) {
		s->cm = SIM_CM_ANSWERED;
		send_mad(r, s, REP);
		again(r, s);
	} else if (what == REP && s->cm != SIM_CM_DOWN && s->cm != SIM_CM_OVER) {
		send_mad(r, s, RTU);
		if (s->cm == SIM_CM_ASKS)
			connected(r, s);
	} else if (what == RTU && s->cm == SIM_CM_ANSWERED) {
		connected(r, s);
	} else if (what == DREQ) {
		on_dreq(r, s);
	} else if (what == DREP && s->cm == SIM_CM_LEAVES) {
		s->cm = SIM_CM_OVER;
		s->cm_at = RWY_NEVER;
	}
}

/* After its completions. */
void sim_cm_leave(struct run *r, struct side *s)
{
	if (s->cm != SIM_CM_UP || !s->wrs || (s->done < s->wrs && !side_dead(s)))
		return;
	s->cm = SIM_CM_LEAVES;
	send_mad(r, s, DREQ);
	again(r, s);
}

void sim_cm_give_up(struct side *s)
{
	if (s->cm >= SIM_CM_LEAVES) /* its DREQ goes out all the same */
		return;
	s->cm = SIM_CM_DOWN;
	s->cm_at = RWY_NEVER;
}

void sim_cm_tick(struct run *r, rwy_time now)
{
	static const unsigned what[] = {[SIM_CM_ASKS] = REQ, [SIM_CM_ANSWERED] = REP, [SIM_CM_LEAVES] = DREQ};
	rwy_time next = RWY_NEVER;

	if (now < r->cm_at)
		return;
	for (unsigned i = 0; i < r->qps; i++)
		for (unsigned j = 0; j < 2; j++) {
			struct side *s = &r->qp[i][j];

			if (now >= s->cm_at && s->gone && s->cm == SIM_CM_LEAVES) {
				s->cm_at = RWY_NEVER;
			} else if (now >= s->cm_at) {
				s->cm_at = now + AGAIN;
				send_mad(r, s, what[s->cm]);
			}
			next = rwy_time_min(next, s->cm_at);
		}
	r->cm_at = next;
}

bool sim_cm_over(const struct run *r)
{
	/* CM did not connect the hostile host's. */
	for (unsigned i = 0; i < r->qps - r->bad_qps; i++) {
		const struct side *s = r->qp[i];

		/* Nobody answers the DREQ to a host that died. */
		if (!s[0].gone && !s[1].gone && (s[0].cm != SIM_CM_OVER || s[1].cm != SIM_CM_OVER))
			return false;
	}
	return true;
}
