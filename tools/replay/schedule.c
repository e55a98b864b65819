/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the packets of each flow while the capture is read, then pairs flows; side.c makes messages
 * of them. */
#include "tools/replay/schedule.h"

#include <string.h>

#include "tools/replay/tape.h"

#define ROOM_MIN   (1u << 20)
#define PMTU_GUESS 1024 /* of a connection without any payload: no packet depends on it */
#define DEPTH      16   /* READs outstanding where CM does not say */

static void *grow(void *v, uint32_t n, uint32_t *room, size_t size)
{
	uint32_t more = *room ? *room * 2 : 64;
	void *p;

	if (n < *room)
		return v;
	p = realloc(v, more * size);
	if (p)
		*room = more;
	return p;
}

static int keep(struct rp_schedule *s, const struct roce_pkt *pkt, uint32_t captured, struct rp_pkt *out)
{
	if (s->used + pkt->len > s->room) {
		uint64_t room = s->room ? s->room * 2 : ROOM_MIN;
		uint8_t *p = room > RP_BYTES_MAX ? NULL : realloc(s->bytes, room);

		s->too_large = room > RP_BYTES_MAX;
		if (!p)
			return RWY_ENOMEM;
		s->bytes = p;
		s->room = room;
	}
	*out = (struct rp_pkt){
	    s->used, (uint16_t)pkt->len, (uint16_t)(captured < pkt->len ? captured : pkt->len)};
	memcpy(s->bytes + s->used, pkt->ip, pkt->len);
	s->used += pkt->len;
	return 0;
}

static int tape_add(
    struct rp_schedule *s, struct rp_tape *t, const struct roce_pkt *pkt, uint32_t captured, rwy_time now)
{
	struct rp_raw *v;

	if (captured < (uint32_t)(pkt->payload - pkt->ip)) {
		s->headless++;
		return 0;
	}
	v = grow(t->v, t->n, &t->room, sizeof(*v));
	if (!v)
		return RWY_ENOMEM;
	t->v = v;
	v += t->n;
	*v = (struct rp_raw){.at = now, .seq = s->seq, .psn = pkt->psn};
	if (keep(s, pkt, captured, &v->pkt) != 0)
		return RWY_ENOMEM;
	t->n++;
	return 0;
}

static int cm_add(struct rp_schedule *s, uint32_t vni, const struct roce_pkt *pkt, rwy_time now)
{
	struct rp_cm *v = grow(s->cm, s->cms, &s->cm_room, sizeof(*v));

	if (!v)
		return RWY_ENOMEM;
	s->cm = v;
	v[s->cms].at = now;
	v[s->cms].vni = vni;
	if (keep(s, pkt, pkt->len, &v[s->cms].pkt) != 0)
		return RWY_ENOMEM;
	s->cms++;
	return 0;
}

static int saw(
    void *ctx, struct an_flow *f, uint32_t vni, const struct roce_pkt *pkt, uint32_t captured, rwy_time now)
{
	struct rp_schedule *s = ctx;
	struct rp_tapes *t;

	if (!f)
		return cm_add(s, vni, pkt, now);
	s->seq++;
	s->cut += captured < pkt->len;
	if (pkt->info->op == ROCE_OP_ACK)
		return 0;
	t = f->user;
	if (!t && !(t = f->user = calloc(1, sizeof(*t))))
		return RWY_ENOMEM;
	if (f->again) { /* the capture's next connection on these queue pair numbers */
		t->other = t->other ? t->other : s->seq;
		t->reused += roce_op_is_request(pkt->info);
		return 0;
	}
	return tape_add(s, roce_op_is_request(pkt->info) ? &t->requests : &t->responses, pkt, captured, now);
}

struct rp_schedule *rp_schedule_new(void)
{
	struct rp_schedule *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->an = an_new(0);
	if (!s->an) {
		free(s);
		return NULL;
	}
	an_watch(s->an, saw, s);
	return s;
}

static void side_free(struct rp_side *d)
{
	free(d->pkt);
	free(d->answer);
	free(d->msg);
	free(d->rd);
}

static void tapes_free(struct rp_schedule *s)
{
	for (const struct an_flow *f = an_flows(s->an); f; f = f->next) {
		struct rp_tapes *t = f->user;

		if (t) {
			free(t->requests.v);
			free(t->responses.v);
		}
		free(t);
	}
}

void rp_schedule_free(struct rp_schedule *s)
{
	if (!s)
		return;
	tapes_free(s);
	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++)
			side_free(&s->conn[i].side[j]);
	an_free(s->an);
	free(s->conn);
	free(s->cm);
	free(s->bytes);
	free(s);
}

static bool is_power(uint32_t n)
{
	return n >= 256 && n <= 4096 && !(n & (n - 1));
}

static uint32_t pmtu_of(const struct an_flow *a, const struct an_flow *b)
{
	uint32_t most = a->pmtu > b->pmtu ? a->pmtu : b->pmtu;

	return is_power(most) ? most : PMTU_GUESS;
}

static struct rp_tape *tape_of(const struct an_flow *f, bool responses)
{
	struct rp_tapes *t = f->user;

	return !t ? NULL : responses ? &t->responses : &t->requests;
}

/*
 * Only the first of the connections on these queue pair numbers is played: both sides end where one
 * begins anew. n[i]: requests of side i that go.
 */
static void end_together(
    const struct rp_schedule *s, const struct rp_conn *c, const struct an_flow *const f[2], uint64_t n[2])
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; i < 2; i++) {
		const struct rp_tapes *t = f[i]->user;
		const uint64_t other =
		    t ? rp_tape_other(s, &t->requests, c->pmtu, f[i]->most_reads) : UINT64_MAX;

		at = other < at ? other : at;
		at = t && t->other && t->other < at ? t->other : at;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct rp_tapes *t = f[i]->user;

		n[i] = t ? t->reused + rp_tape_end(&t->requests, at) : 0;
		if (t)
			(void)rp_tape_end(&t->responses, at);
	}
}

/* The connection of a flow and its peer, of which `a` came first. */
static int conn_make(struct rp_schedule *s, const struct an_flow *a)
{
	struct rp_conn *c = &s->conn[s->conns++];
	const struct an_flow *const f[2] = {a, a->peer};
	uint64_t reused[2];
	int rc = 0;

	*c = (struct rp_conn){.vni = a->key.vni, .pmtu = pmtu_of(a, a->peer), .first = RWY_NEVER};
	end_together(s, c, f, reused);
	for (unsigned i = 0; i < 2 && !rc; i++) {
		c->side[i] = (struct rp_side){.ip = f[i]->key.src, .qpn = f[!i]->key.dqpn, .flow = f[i]};
		c->read_depth[i] = f[i]->cm.read_depth ? f[i]->cm.read_depth : DEPTH;
		rc = rp_side_make(s, c, i, tape_of(f[i], false), tape_of(f[!i], true));
		c->side[i].lost.reused += reused[i];
	}
	if (!rc)
		rp_conn_order(c);
	return rc;
}

static void times_of(struct rp_schedule *s, struct rp_conn *c)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct rp_side *d = &c->side[i];

		for (uint32_t m = 0; m < d->msgs; m++) {
			c->first = rwy_time_min(c->first, d->msg[m].at);
			c->last = rwy_time_max(c->last, d->msg[m].at);
		}
	}
	if (c->first == RWY_NEVER)
		return;
	s->first = rwy_time_min(s->first, c->first);
	s->last = rwy_time_max(s->last, c->last);
}

/* False: its connection is made, or has no packet. */
static bool is_first(const struct an_flow *f)
{
	struct rp_tapes *t[2] = {f->user, f->peer->user};
	const bool first = (t[0] || t[1]) && !(t[0] && t[0]->made) && !(t[1] && t[1]->made);

	for (unsigned i = 0; i < 2; i++)
		if (t[i])
			t[i]->made = true;
	return first;
}

int rp_schedule_end(struct rp_schedule *s)
{
	uint32_t flows = 0;

	an_end(s->an);
	for (const struct an_flow *f = an_flows(s->an); f; f = f->next)
		flows++;
	s->conn = calloc(flows + 1, sizeof(*s->conn));
	if (!s->conn)
		return RWY_ENOMEM;
	s->first = RWY_NEVER;
	for (const struct an_flow *f = an_flows(s->an); f; f = f->next) {
		const struct rp_tape *mine = tape_of(f, false);
		struct rp_conn *c = &s->conn[s->conns];

		if (!f->peer) {
			s->unpaired += mine && mine->n;
			continue;
		}
		if (!is_first(f))
			continue;
		if (conn_make(s, f) != 0)
			return RWY_ENOMEM;
		times_of(s, c);
		if (c->first != RWY_NEVER)
			continue;
		side_free(&c->side[0]); /* no message in either direction */
		side_free(&c->side[1]);
		s->conns--;
	}
	return 0;
}

bool rp_schedule_away(struct rp_schedule *s, const struct rwy_ip *ip, rwy_dur away)
{
	bool found = false;

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++)
			if (rwy_ip_eq(&s->conn[i].side[j].ip, ip)) {
				s->conn[i].side[j].away = away;
				rp_conn_order(&s->conn[i]);
				found = true;
			}
	return found;
}

uint64_t rp_schedule_messages(const struct rp_schedule *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->conns; i++)
		n += (uint64_t)s->conn[i].side[0].msgs + s->conn[i].side[1].msgs;
	return n;
}
