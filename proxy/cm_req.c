/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REQs: at the source relay the listen map or the trailer names the target; at the destination
 * relay the link gets its relay address and alias. Both ask the access list.
 */
#include "proxy/cm_int.h"
#include "proxy/cm_reply.h"
#include "proxy/rewrite.h"
#include "proxy/trailer.h"
#include "roce/wire.h"

/*
 * 4.096 us * 2^19 = 2.1 s: a few round trips of any WAN. Hosts that wait as long anyway get no MRA.
 * Linux does (20), and takes one MRA of an exchange: the relay's would end its patience after less
 * time than its own timeout, and its server's would be ignored.
 */
#define MRA_TIMEOUT 19

/* Target of a REQ, and how it was named. */
struct asked {
	struct rwy_ip target;
	uint16_t port;    /* of the target */
	uint16_t named;   /* in the service ID */
	uint32_t entry;   /* of the listen map, or PROXY_NIL */
	unsigned trailer; /* bytes */
	bool once;        /* by a one-time port */
};

static struct roce_cm_req *req_of(const struct proxy_cm_msg *c)
{
	return (struct roce_cm_req *)c->body;
}

static void refuse(struct proxy_edge *e, struct proxy_cm_msg *c, enum proxy_rej why, uint64_t *counter)
{
	proxy_cm_drop(c->act, counter);
	proxy_reply_rej(c->act, c->pkt, why);
	e->c.relay_rej_sent += c->act->reply_len != 0;
}

/* --- the addresses inside --------------------------------------------------------------------- */

static const uint8_t *ipcm_addr(const struct proxy_cm_msg *c, unsigned at)
{
	return req_of(c)->private_data + at + (c->pkt->is6 ? 0 : 12);
}

static bool ipcm_is(const struct proxy_cm_msg *c, unsigned at, const struct rwy_ip *a)
{
	return !memcmp(ipcm_addr(c, at), a->b + (c->pkt->is6 ? 0 : 12), c->pkt->is6 ? 16 : 4);
}

static bool has_ipcm(const struct proxy_cm_msg *c)
{
	return proxy_service_is_ip(c->m.service_id);
}

/* GIDs and IP-CM addresses are those of the packet: no host speaks for another. */
static bool is_own(const struct proxy_cm_msg *c)
{
	const struct roce_pkt *pkt = c->pkt;

	if (!rwy_ip_eq(&c->m.local_gid, &pkt->src) || !rwy_ip_eq(&c->m.remote_gid, &pkt->dst))
		return false;
	return !has_ipcm(c) ||
	       (proxy_ipcm_is(req_of(c)->private_data, pkt->is6) && ipcm_is(c, PROXY_IPCM_SRC, &pkt->src) &&
	           ipcm_is(c, PROXY_IPCM_DST, &pkt->dst));
}

/* Replaces a GID of both paths; the alternate one only if it was the same. */
static void put_gid(const struct roce_pkt *pkt, uint8_t *primary, uint8_t *alternate, const struct rwy_ip *a)
{
	if (!memcmp(primary, alternate, 16))
		proxy_rewrite_bytes(pkt, alternate, a->b, 16);
	proxy_rewrite_bytes(pkt, primary, a->b, 16);
}

static void put_ipcm(const struct proxy_cm_msg *c, unsigned at, const struct rwy_ip *a)
{
	bool is6 = c->pkt->is6;

	if (has_ipcm(c))
		proxy_rewrite_bytes(c->pkt, req_of(c)->private_data + at + (is6 ? 0 : 12),
		    a->b + (is6 ? 0 : 12), is6 ? 16 : 4);
}

static void put_port(const struct proxy_cm_msg *c, uint16_t port)
{
	uint8_t b[2];

	rwy_put16(b, port);
	proxy_rewrite_bytes(c->pkt, req_of(c)->service_id + 6, b, 2);
}

static void clear_trailer(const struct proxy_cm_msg *c, unsigned len)
{
	static const uint8_t zero[16];
	uint8_t *end = req_of(c)->private_data + PROXY_PRIVATE_LEN;

	for (unsigned n; len; len -= n) {
		n = len < sizeof(zero) ? len : sizeof(zero);
		proxy_rewrite_bytes(c->pkt, end - len, zero, n);
	}
}

/* --- the source relay ------------------------------------------------------------------------- */

static uint16_t source_port(const struct proxy_cm_msg *c)
{
	return rwy_get16(req_of(c)->private_data + PROXY_IPCM_PORT);
}

/* The one-time port of the REQ; of a repeat it is gone, and the link knows. */
static bool by_once(const struct proxy_edge *e, const struct proxy_cm_msg *c, const struct proxy_link *l,
    struct asked *a, rwy_time now)
{
	const struct proxy_target *t =
	    has_ipcm(c) ? proxy_once_find(&e->once, &c->pkt->src, &c->pkt->dst, source_port(c), now) : NULL;

	if (t) {
		a->target = t->addr;
		a->port = t->port;
		a->once = true;
		return true;
	}
	if (!l || !l->once || l->tid != c->m.tid || l->lqpn != c->m.qpn)
		return false;
	a->target = l->remote;
	a->port = l->port;
	a->once = true;
	return true;
}

/*
 * The trailer of the REQ. A one-time port of the same number was another program's, which is gone
 * and did not use it.
 */
static bool by_trailer(struct proxy_edge *e, const struct proxy_cm_msg *c, struct asked *a)
{
	struct proxy_target t;

	a->trailer = has_ipcm(c) ? proxy_trailer_read(req_of(c)->private_data, &t) : 0;
	if (!a->trailer)
		return false;
	(void)proxy_once_remove(&e->once, &c->pkt->src, &c->pkt->dst, source_port(c));
	a->target = t.addr;
	a->port = t.port;
	return true;
}

/* Finds a REQ's target by the listen map, the trailer or a one-time port; false: it is refused. */
static bool target_find(
    struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l, struct asked *a, rwy_time now)
{
	const struct proxy_policy *p = e->policy;
	int i;

	*a = (struct asked){.named = (uint16_t)c->m.service_id, .entry = PROXY_NIL};
	if (p->redirect_port && a->named == p->redirect_port) {
		if (!by_trailer(e, c, a) && !by_once(e, c, l, a, now)) {
			refuse(e, c, PROXY_REJ_SERVICE_ID, &e->c.refused_trailer);
			return false;
		}
	} else {
		i = proxy_entry_find(p, &c->pkt->dst, a->named);
		if (i < 0) {
			refuse(e, c, PROXY_REJ_SERVICE_ID, &e->c.refused_no_map);
			return false;
		}
		a->target = p->entry[i].target;
		a->port = p->entry[i].target_port;
		a->entry = (uint32_t)i;
	}
	/* The hosts of a link have one family: their packets are only rewritten. */
	if (proxy_is_relay(p, &a->target) || rwy_ip_eq(&a->target, &c->pkt->src) ||
	    rwy_ip_is4(&a->target) == c->pkt->is6) {
		refuse(e, c, PROXY_REJ_SERVICE_ID, &e->c.refused_loop);
		return false;
	}
	return true;
}

static void pass_in(
    struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l, unsigned trailer)
{
	struct roce_cm_req *r = req_of(c);

	put_gid(c->pkt, r->primary.remote_gid, r->alternate.remote_gid, &l->remote);
	put_ipcm(c, PROXY_IPCM_DST, &l->remote);
	put_port(c, l->port);
	clear_trailer(c, trailer);
	proxy_cm_pass(e, c, l);
}

/* --- the destination relay -------------------------------------------------------------------- */

/*
 * The relay address that stands for the remote host: of the family, nearest to the local host, and
 * no other exchange of that host there has the same ID.
 */
static const struct rwy_ip *address_choose(const struct proxy_edge *e, const struct proxy_cm_msg *c)
{
	const struct rwy_ip *local = &c->pkt->dst, *best = NULL;
	unsigned best_bits = 0;

	for (unsigned i = 0; i < e->policy->addrs; i++) {
		const struct rwy_ip *a = &e->policy->addr[i];
		struct proxy_cm_key k = {*local, *a, c->m.local_comm_id, false};
		unsigned bits = 0;

		if (rwy_ip_is4(a) == c->pkt->is6 || proxy_map_cm_in(e->map, &k))
			continue;
		while (bits < 128 && !((a->b[bits / 8] ^ local->b[bits / 8]) & 0x80 >> bits % 8))
			bits++;
		if (!best || bits > best_bits) {
			best = a;
			best_bits = bits;
		}
	}
	return best;
}

static void pass_out(struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *l)
{
	struct roce_cm_req *r = req_of(c);
	uint8_t qpn[3];

	rwy_put24(qpn, l->alias);
	proxy_rewrite_bytes(c->pkt, r->qpn, qpn, 3);
	put_gid(c->pkt, r->primary.local_gid, r->alternate.local_gid, &l->relay);
	put_ipcm(c, PROXY_IPCM_SRC, &l->relay);
	proxy_cm_pass(e, c, l);
}

/* --- both ------------------------------------------------------------------------------------- */

static bool link_add(struct proxy_edge *e, struct proxy_cm_msg *c, const struct proxy_link *tmpl,
    struct proxy_link **l, rwy_time now)
{
	switch (proxy_map_add(e->map, tmpl, l, now)) {
	case PROXY_LINK_OK:
		return true;
	case PROXY_LINKS_FULL:
		refuse(e, c, PROXY_REJ_NO_RESOURCES, &e->c.refused_links_full);
		return false;
	case PROXY_HALF_OPEN_FULL:
		refuse(e, c, PROXY_REJ_NO_RESOURCES, &e->c.refused_half_open);
		return false;
	case PROXY_SOURCE_FULL:
		refuse(e, c, PROXY_REJ_NO_RESOURCES, &e->c.refused_source);
		return false;
	}
	rwy_unreachable();
}

/* Whether the access list allows it, and the entry has room. */
static bool is_allowed(struct proxy_edge *e, struct proxy_cm_msg *c, const struct asked *a)
{
	if (!proxy_allows(e->policy, &c->pkt->src, &a->target, a->port)) {
		refuse(e, c, PROXY_REJ_SERVICE_ID, &e->c.refused_acl);
		return false;
	}
	if (a->entry != PROXY_NIL && e->policy->entry[a->entry].links_max &&
	    proxy_map_of_entry(e->map, a->entry) >= e->policy->entry[a->entry].links_max) {
		refuse(e, c, PROXY_REJ_NO_RESOURCES, &e->c.refused_entry);
		return false;
	}
	if (c->m.transport != ROCE_RC) {
		refuse(e, c, PROXY_REJ_TRANSPORT, &e->c.refused_transport);
		return false;
	}
	return true;
}

/* The link of a REQ that is repeated; its QPN and transaction say that it is. */
static bool is_repeated(const struct proxy_link *l, const struct proxy_cm_msg *c, const struct asked *a)
{
	return l->tid == c->m.tid && (c->in ? l->lqpn : l->rqpn) == c->m.qpn && l->port == a->port &&
	       rwy_ip_eq(&l->remote, c->in ? &a->target : &c->pkt->src);
}

static struct proxy_link *link_find(struct proxy_edge *e, const struct proxy_cm_msg *c)
{
	struct proxy_cm_key k = {c->pkt->src, c->pkt->dst, c->m.local_comm_id, c->in};

	return c->in ? proxy_map_cm_in(e->map, &k) : proxy_map_cm_out(e->map, &k);
}

static bool link_begin(struct proxy_edge *e, struct proxy_cm_msg *c, const struct asked *a,
    struct proxy_link **out, rwy_time now)
{
	const struct rwy_ip *relay = c->in ? &c->pkt->dst : address_choose(e, c);
	struct proxy_link tmpl = {.local = c->in ? c->pkt->src : c->pkt->dst,
	    .remote = c->in ? a->target : c->pkt->src,
	    .comm_a = c->m.local_comm_id,
	    .tid = c->m.tid,
	    .ca_guid = rwy_get64(req_of(c)->ca_guid),
	    .asked_port = c->in ? a->named : 0,
	    .port = a->port,
	    .entry = a->entry,
	    .local_active = c->in,
	    .rqpn = c->in ? 0 : c->m.qpn};

	if (!relay) {
		refuse(e, c, PROXY_REJ_NO_RESOURCES, &e->c.refused_no_address);
		return false;
	}
	tmpl.relay = *relay;
	tmpl.id = proxy_link_id(&c->pkt->src, &a->target, c->m.local_comm_id, c->m.qpn, c->m.tid);
	if (!link_add(e, c, &tmpl, out, now))
		return false;
	if (c->in) {
		proxy_map_local_qpn(e->map, *out, c->m.qpn);
	} else if (proxy_map_alias(e->map, *out) != 0) {
		proxy_map_remove(e->map, *out);
		refuse(e, c, PROXY_REJ_NO_QP, &e->c.refused_qpn);
		return false;
	}
	e->c.links_asked++;
	if (c->in) /* if relays send it back here, it goes in a circle */
		proxy_hops_pass(&e->hops, tmpl.id, PROXY_HOPS_OWN, now);
	if (e->news)
		e->news(e->ctx, PROXY_NEWS_ASKED, *out, 0);
	return true;
}

/* Another REQ does not have this port any more. */
static void once_use(struct proxy_edge *e, const struct proxy_cm_msg *c, struct proxy_link *l)
{
	l->once = true;
	e->c.once_used += proxy_once_remove(&e->once, &c->pkt->src, &c->pkt->dst, source_port(c));
}

/*
 * A repeat goes on: its first may have been lost behind the far relay. A host that soon repeats it
 * again is told to wait.
 */
static void repeat(struct proxy_edge *e, struct proxy_cm_msg *c, struct proxy_link *l, rwy_time now)
{
	e->c.relay_cm_repeated++;
	if (l->state != PROXY_REQ_SEEN)
		return;
	proxy_map_state(e->map, l, PROXY_REQ_SEEN, now); /* it is as old as its last message */
	if (c->in && roce_cm_req_remote_resp_timeout(req_of(c)) < MRA_TIMEOUT) {
		proxy_reply_mra(c->act, c->pkt, MRA_TIMEOUT);
		e->c.relay_mra_sent += c->act->reply_len != 0;
	}
}

void proxy_cm_req(struct proxy_edge *e, struct proxy_cm_msg *c, rwy_time now)
{
	struct proxy_link *l = link_find(e, c);
	struct asked a = {.target = c->pkt->dst, .port = (uint16_t)c->m.service_id, .entry = PROXY_NIL};

	if (!c->m.local_comm_id || !c->m.qpn || !is_own(c)) {
		proxy_cm_drop(c->act, &e->c.drop_relay_cm_foreign);
		return;
	}
	if (c->in && !target_find(e, c, l, &a, now))
		return;
	/* After a close the same REQ begins anew: its REJ was lost; the target is asked again. */
	if (l && l->state != PROXY_CLOSED && is_repeated(l, c, &a)) {
		repeat(e, c, l, now);
	} else {
		if (!is_allowed(e, c, &a))
			return;
		if (l) {
			e->c.links_superseded += l->state != PROXY_CLOSED;
			proxy_map_remove(e->map, l);
		}
		if (!link_begin(e, c, &a, &l, now))
			return;
		if (a.once)
			once_use(e, c, l);
		proxy_map_note(e->map, l);
	}
	if (c->in)
		pass_in(e, c, l, a.trailer);
	else
		pass_out(e, c, l);
}
