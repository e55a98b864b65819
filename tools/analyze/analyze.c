/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows of a capture, by key in a hash table and in the order of their first packet in a list. A
 * response belongs to the flow whose requester it answers: CM says so, or PSNs do (pair.c).
 */
#include "tools/analyze/analyze.h"

#include <stdlib.h>
#include <string.h>

#include "roce/cm.h"
#include "roce/icrc.h"
#include "rwy/hash.h"
#include "tools/analyze/copy.h"
#include "tools/analyze/link.h"
#include "tools/analyze/open.h"
#include "tools/analyze/pair.h"
#include "tools/analyze/requester.h"

#define FRAME_MAX    65536
#define BUCKETS_MIN  256u
#define CM_CONNS     65536u           /* that CM sets up; their flows outlive their entries */
#define CM_CONNS_VNI 4096u            /* of one VNI: a capture of an overlay may have thousands */
#define AT_MOST      (UINT64_MAX / 2) /* so that no time of a capture is RWY_NEVER */

struct cm_of {
	uint32_t vni;
	struct roce_cm_tab *tab;
	struct cm_of *next;
};

struct bucket {
	struct an_flow *flow;
	uint64_t hash;
};

struct an {
	size_t points;
	struct bucket *bucket;
	uint32_t mask, flows;
	struct an_flow *head, *tail;
	struct an_openings *open;
	struct cm_of *cm;
	struct an_totals t;
	struct an_copies copies;
	an_saw *saw;
	void *saw_ctx;
	uint8_t packet[FRAME_MAX]; /* what was not captured is zero */
};

struct an *an_new(size_t points)
{
	struct an *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->points = points;
	a->mask = BUCKETS_MIN - 1;
	a->bucket = calloc(BUCKETS_MIN, sizeof(*a->bucket));
	a->open = an_openings_new();
	if (a->bucket && a->open)
		return a;
	an_openings_free(a->open);
	free(a->bucket);
	free(a);
	return NULL;
}

void an_free(struct an *a)
{
	if (!a)
		return;
	for (struct an_flow *f = a->head, *next; f; f = next) {
		next = f->next;
		an_open_remove(f);
		an_requester_free(f->rq);
		free(f->point);
		free(f);
	}
	for (struct cm_of *c = a->cm, *next; c; c = next) {
		next = c->next;
		roce_cm_tab_free(c->tab);
		free(c);
	}
	an_openings_free(a->open);
	free(a->bucket);
	free(a);
}

static uint64_t key_hash(const struct an_key *k)
{
	return rwy_hash_ip(rwy_hash_ip(rwy_hash(k->vni, k->dqpn), &k->src), &k->dst);
}

static bool key_eq(const struct an_key *a, const struct an_key *b)
{
	return a->vni == b->vni && a->dqpn == b->dqpn && rwy_ip_eq(&a->src, &b->src) &&
	       rwy_ip_eq(&a->dst, &b->dst);
}

static struct bucket *slot_of(struct an *a, const struct an_key *k, uint64_t hash)
{
	uint32_t i = (uint32_t)hash & a->mask;

	while (a->bucket[i].flow && (a->bucket[i].hash != hash || !key_eq(&a->bucket[i].flow->key, k)))
		i = (i + 1) & a->mask;
	return &a->bucket[i];
}

static int grow(struct an *a)
{
	uint32_t size = (a->mask + 1) * 2;
	struct bucket *b = calloc(size, sizeof(*b));

	if (!b)
		return RWY_ENOMEM;
	free(a->bucket);
	a->bucket = b;
	a->mask = size - 1;
	for (struct an_flow *f = a->head; f; f = f->next) {
		uint64_t hash = key_hash(&f->key);

		*slot_of(a, &f->key, hash) = (struct bucket){f, hash};
	}
	return 0;
}

static struct an_flow *flow_find(struct an *a, const struct an_key *k)
{
	return slot_of(a, k, key_hash(k))->flow;
}

/* Finds or makes. NULL: no memory. */
static struct an_flow *flow_need(struct an *a, const struct an_key *k)
{
	uint64_t hash = key_hash(k);
	struct bucket *b = slot_of(a, k, hash);
	struct an_flow *f;

	if (b->flow)
		return b->flow;
	if (a->flows * 2 > a->mask) {
		if (grow(a) != 0)
			return NULL;
		b = slot_of(a, k, hash);
	}
	f = calloc(1, sizeof(*f));
	if (!f || !(f->rq = an_requester_new(a->points))) {
		free(f);
		return NULL;
	}
	f->key = *k;
	*b = (struct bucket){f, hash};
	a->flows++;
	if (a->tail)
		a->tail->next = f;
	else
		a->head = f;
	a->tail = f;
	return f;
}

static struct cm_of *cm_of(struct an *a, uint32_t vni)
{
	struct roce_cm_cfg cfg;
	struct cm_of *c;

	for (c = a->cm; c; c = c->next)
		if (c->vni == vni)
			return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	roce_cm_cfg_default(&cfg);
	cfg.capacity = vni ? CM_CONNS_VNI : CM_CONNS;
	cfg.half_open_max = cfg.capacity / 4;
	c->vni = vni;
	if (roce_cm_tab_new(&c->tab, &cfg) != 0) {
		free(c);
		return NULL;
	}
	c->next = a->cm;
	a->cm = c;
	return c;
}

static int take_cm(struct an *a, uint32_t vni, const struct roce_pkt *pkt, rwy_time now)
{
	struct roce_cm_event ev;
	struct roce_cm_msg msg;
	struct cm_of *c;
	int rc;

	if (roce_cm_parse(pkt, &msg) != 0)
		return 0;
	if (a->saw && (rc = a->saw(a->saw_ctx, NULL, vni, pkt, pkt->len, now)) != 0)
		return rc;
	c = cm_of(a, vni);
	if (!c)
		return RWY_ENOMEM;
	roce_cm_track(c->tab, &msg, &pkt->src, &pkt->dst, &ev, now);
	if (ev.kind != ROCE_CM_ESTABLISHED || ev.conn.transport != ROCE_RC)
		return 0;
	struct an_key to_b = {vni, ev.conn.a.ip, ev.conn.b.ip, ev.conn.b.qpn},
	              to_a = {vni, ev.conn.b.ip, ev.conn.a.ip, ev.conn.a.qpn};
	struct an_flow *fb = flow_need(a, &to_b), *fa = fb ? flow_need(a, &to_a) : NULL;

	if (!fa || an_requester_again(fa) != 0 || an_requester_again(fb) != 0)
		return RWY_ENOMEM;
	an_pair_set(fa, fb);
	fa->pmtu = fb->pmtu = ev.conn.path_mtu;
	fa->rq->pmtu_known = fb->rq->pmtu_known = ev.conn.path_mtu != 0;
	fa->cm = fb->cm = (struct an_cm){true, ev.conn.retry_count, ev.conn.ack_timeout, 0, 0};
	fb->cm.rnr_retry = ev.conn.a.rnr_retry;
	fa->cm.rnr_retry = ev.conn.b.rnr_retry;
	fb->cm.read_depth = ev.conn.a.initiator_depth;
	fa->cm.read_depth = ev.conn.b.initiator_depth;
	return 0;
}

static int take_rc(
    struct an *a, const struct an_key *k, const struct roce_pkt *pkt, uint32_t captured, rwy_time now)
{
	struct an_flow *f = flow_need(a, k), *o;
	int rc;

	if (!f)
		return RWY_ENOMEM;
	if (captured >= pkt->len && !roce_icrc_ok(pkt)) {
		f->c.icrc_bad++; /* whoever receives it drops it: it changes nothing */
		return 0;
	}
	if (an_is_copy(&a->copies, f, pkt, captured, now)) {
		a->t.copies++;
		return 0;
	}
	if (a->saw && (rc = a->saw(a->saw_ctx, f, k->vni, pkt, captured, now)) != 0)
		return rc;
	if (roce_op_is_request(pkt->info)) {
		if (pkt->ecn == 3)
			f->c.ce_marked++;
		rc = an_request(f, pkt, now);
		return rc || f->peer ? rc : an_open_follow(a->open, f);
	}
	o = an_pair_of(a->head, a->open, f, pkt->psn, now);
	if (o)
		an_response(o, pkt, now);
	else
		a->t.unpaired++;
	return 0;
}

static void take_cnp(struct an *a, const struct an_key *k, rwy_time now)
{
	struct an_flow *f = flow_find(a, k);

	if (f && f->peer)
		an_cnp(f->peer, now);
	else
		a->t.unpaired++;
}

/* Times that go back make no negative duration. 0 means "not set" in places. */
static rwy_time clock_of(struct an *a, rwy_time at)
{
	if (!a->t.packets++)
		a->t.first = a->t.last = at;
	if (at < a->t.last)
		a->t.backwards++;
	else
		a->t.last = at;
	return rwy_time_max(a->t.last, 1);
}

int an_frame(struct an *a, rwy_time at, const uint8_t *frame, uint32_t len, uint32_t wire_len, bool ip)
{
	rwy_time now = clock_of(a, rwy_time_min(at, AT_MOST));
	enum roce_parse_reason why;
	struct an_inner inner;
	struct roce_pkt pkt;

	if (wire_len < len)
		wire_len = len;
	if (!an_inner_find(frame, len, ip, &inner) || wire_len - inner.at > FRAME_MAX)
		return 0;
	memcpy(a->packet, frame + inner.at, len - inner.at);
	memset(a->packet + len - inner.at, 0, wire_len - len);
	why = roce_parse(a->packet, wire_len - inner.at, &pkt);
	if (why != ROCE_PARSE_OK) {
		a->t.malformed += why != ROCE_PARSE_NOT_ROCE;
		return 0;
	}
	a->t.roce++;
	bool whole = len == wire_len;

	a->t.cut += !whole;
	struct an_key k = {inner.vni, pkt.src, pkt.dst, pkt.dqpn};

	if (pkt.info->transport == ROCE_RC)
		return take_rc(a, &k, &pkt, len - inner.at, now);
	if (pkt.info->op == ROCE_OP_CNP) {
		take_cnp(a, &k, now);
		return 0;
	}
	a->t.other++;
	return roce_is_gsi(&pkt) && whole && roce_icrc_ok(&pkt) ? take_cm(a, inner.vni, &pkt, now) : 0;
}

void an_watch(struct an *a, an_saw *saw, void *ctx)
{
	a->saw = saw;
	a->saw_ctx = ctx;
}

void an_end(struct an *a)
{
	for (struct an_flow *f = a->head; f; f = f->next)
		an_verdict(f, a->t.last);
}

const struct an_flow *an_flows(const struct an *a)
{
	return a->head;
}

const struct an_totals *an_totals(const struct an *a)
{
	return &a->t;
}
