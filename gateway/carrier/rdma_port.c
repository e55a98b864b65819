/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA connection manager: connections of the peer and of ours, and what it tells of each.
 * rdma_listen.c has the addresses where they arrive, rdma_conn.c the connections themselves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conf/schema.h"
#include "gateway/carrier/rdma.h"

#define RESOLVE_MS 2000
#define HELLO_TIME (3 * RWY_SEC)

/* --- the tunnel's parameters ------------------------------------------------------------------ */
/* Buffers of a connection in one direction: `rdma_buffers`, up to the next power of two. */
static uint32_t slots_of(const struct gw_carrier_tun *t)
{
	uint32_t n = GW_RDMA_SLOTS_MIN;

	while (n < t->conf.rdma_buffers && n < GW_RDMA_SLOTS_MAX)
		n *= 2;
	return n;
}

static struct rdma_conn_param param_of(const uint8_t greeting[GW_RDMA_GREETING])
{
	return (struct rdma_conn_param){.private_data = greeting,
	    .private_data_len = GW_RDMA_GREETING,
	    .retry_count = GW_RDMA_RETRIES,
	    .rnr_retry_count = 7}; /* no message meets an empty receive queue */
}

/* Options of a connection before its REQ or REP; each is only an improvement. */
static void tune(struct rdma_cm_id *id, const struct gw_carrier_tun *t)
{
	const uint8_t *map = t->conf.dscp.map;
	uint8_t tos = (uint8_t)(map[0] << 2), timeout = GW_RDMA_TIMEOUT;

	if (map[0] == map[63]) /* as for a TCP connection */
		(void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos));
	(void)rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
}

/* --- connections of the peer ------------------------------------------------------------------ */
static bool peer_ip(struct rdma_cm_id *id, struct rwy_ip *out)
{
	struct sockaddr *a = rdma_get_peer_addr(id);
	struct base_sockaddr s = {.len = sizeof(struct sockaddr_in6)};

	if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6))
		return false;
	memcpy(&s.ss, a, a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	base_sockaddr_ip(&s, out);
	return true;
}

/* The first tunnel with the peer; NULL: a stranger. Tunnels between the same addresses and ports
 * are alike in whether they have keys (introduce()). */
static struct gw_carrier_tun *peer_of(
    struct gw_carriers *cs, const struct gw_rdma_port *p, const struct rwy_ip *peer)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (cs->tun[i].used && cs->tun[i].rdma == p && rwy_ip_eq(&cs->tun[i].rdma_remote, peer))
			return &cs->tun[i];
	return NULL;
}

/* What does not fit between the greetings of the two ends; 0: all fits. */
static unsigned unfit(const struct gw_carriers *cs, const struct gw_carrier_tun *t, uint8_t cipher)
{
	const uint8_t ours = gw_rdma_cipher(cs, t);

	if (cipher == ours)
		return 0;
	return cipher && ours ? GW_RDMA_R_CIPHER : GW_RDMA_R_KEYS;
}

static void greeting_put(uint8_t out[GW_RDMA_GREETING], const struct gw_carriers *cs, const struct gw_conn *c,
    const struct gw_carrier_tun *t)
{
	gw_rdma_greeting_put(
	    out, &(struct gw_rdma_greeting){.slots = c->rdma->slots, .cipher = gw_rdma_cipher(cs, t)});
}

/* Connections of the peer that have not named their tunnel. Each has its memory locked already. */
static unsigned unnamed(const struct gw_carriers *cs, const struct rwy_ip *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cs->top; i++)
		n += cs->conn[i].state != GW_CONN_FREE && cs->conn[i].rdma && !cs->conn[i].t &&
		     rwy_ip_eq(&cs->conn[i].peer, peer);
	return n;
}

/* NULL: the id is gone. */
static struct gw_conn *accepted_new(struct gw_carriers *cs, struct rdma_cm_id *id,
    const struct gw_carrier_tun *t, uint32_t peer_slots, rwy_time now)
{
	uint8_t greeting[GW_RDMA_GREETING];
	struct rdma_conn_param param;
	struct gw_conn *c = gw_rdma_conn_new(cs, id, true, slots_of(t));
	const char *what;

	if (!c) {
		rdma_destroy_id(id); /* the peer gets a REJ */
		return NULL;
	}
	tune(id, t);
	greeting_put(greeting, cs, c, t);
	param = param_of(greeting);
	gw_rdma_conn_start(c, peer_slots);
	what = gw_rdma_conn_qp(cs, c);
	if (!what && t->conf.security == CONF_SEC_KEYS)
		what = gw_rdma_tls_begin(cs, c, NULL, now);
	if (!what && rdma_accept(id, &param) == 0)
		return c;
	gw_log(GW_LOG_WARNING, "carrier", "event=\"RDMA connection refused\" why=\"%s: %s\"",
	    what ? what : "accept", strerror(errno));
	gw_conn_free(cs, c);
	return NULL;
}

/* Why the peer's REQ is refused, counted; 0: it is not. t: the first tunnel of its address, which
 * pays for all of them. */
static unsigned refusal(struct gw_carriers *cs, struct gw_carrier_tun *t, const struct rwy_ip *peer,
    const uint8_t *said, size_t n, struct gw_rdma_greeting *g, rwy_time now)
{
	unsigned why;

	if (cs->unknown >= GW_CONNS_UNKNOWN || unnamed(cs, peer) >= 2u * t->conf.tcp_connections) {
		cs->many++;
		return GW_RDMA_R_MANY;
	}
	if (gw_rdma_greeting_get(said, n, g) != 0) {
		cs->early++;
		return GW_RDMA_R_VERSION;
	}
	if ((why = unfit(cs, t, g->cipher)) != 0) {
		t->c.refused_tunnel++;
		return why;
	}
	if (g->cipher && t->theirs > now + GW_TLS_BURST * GW_TLS_EACH) {
		cs->rate++;
		return GW_RDMA_R_RATE;
	}
	if (g->cipher)
		t->theirs = rwy_time_max(t->theirs, now) + GW_TLS_EACH;
	return 0;
}

static void reject(struct rdma_cm_id *id, unsigned why)
{
	uint8_t said[GW_RDMA_GREETING];

	gw_rdma_refusal_put(said, (enum gw_rdma_refusal)why);
	/* a stranger is told nothing */
	(void)rdma_reject(id, why ? said : NULL, why ? sizeof(said) : 0);
	rdma_destroy_id(id);
}

static void on_request(struct gw_carriers *cs, struct gw_rdma_port *p, struct rdma_cm_id *id,
    const uint8_t *said, size_t n, rwy_time now)
{
	struct gw_rdma_greeting g;
	struct gw_carrier_tun *t;
	struct gw_conn *c;
	struct rwy_ip peer;
	unsigned why;

	t = peer_ip(id, &peer) ? peer_of(cs, p, &peer) : NULL;
	why = t ? refusal(cs, t, &peer, said, n, &g, now) : 0;
	cs->strangers += !t;
	if (!t || why) {
		reject(id, why);
		return;
	}
	c = accepted_new(cs, id, t, g.slots, now);
	if (!c)
		return;
	cs->unknown++;
	c->peer = peer;
	c->port = p->port;
	c->deadline = now + HELLO_TIME;
}

/* --- connections of ours ---------------------------------------------------------------------- */
static const char *route(struct gw_carriers *cs, struct gw_conn *c)
{
	const char *what = gw_rdma_conn_qp(cs, c);

	if (!what && rdma_resolve_route(c->rdma->id, RESOLVE_MS) != 0)
		what = "route";
	if (what)
		snprintf(cs->why, sizeof(cs->why), "RDMA: %s: %s", what, strerror(errno));
	return what ? cs->why : NULL;
}

static const char *request(struct gw_carriers *cs, struct gw_conn *c)
{
	uint8_t greeting[GW_RDMA_GREETING];
	struct rdma_conn_param param;

	greeting_put(greeting, cs, c, c->t);
	param = param_of(greeting);
	if (rdma_connect(c->rdma->id, &param) == 0)
		return NULL;
	snprintf(cs->why, sizeof(cs->why), "RDMA: connect: %s", strerror(errno));
	return cs->why;
}

/* The one who opens it has said what it wants; so has the peer. */
static const char *open_it(
    struct gw_carriers *cs, struct gw_conn *c, const uint8_t *said, size_t n, rwy_time now)
{
	struct gw_rdma_greeting g;

	if (gw_rdma_greeting_get(said, n, &g) != 0)
		return "the peer's greeting is of another version";
	if (unfit(cs, c->t, g.cipher))
		return "the peer's answer has other keys than were asked for";
	gw_rdma_conn_start(c, g.slots);
	c->state = GW_CONN_HELLO;
	return g.cipher ? gw_rdma_tls_begin(cs, c, conf_tunnel_peer_name(&c->t->conf), now) : NULL;
}

struct gw_conn *gw_rdma_open(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct base_sockaddr from, to;
	struct rdma_cm_id *id;
	struct gw_conn *c;

	base_sockaddr_make(&from, &t->rdma_local, 0);
	base_sockaddr_make(&to, &t->rdma_remote, t->conf.rdma_port);
	if (rdma_create_id(cs->rdma->events, &id, NULL, RDMA_PS_TCP) != 0) {
		snprintf(t->problem, sizeof(t->problem), "RDMA: %s", strerror(errno));
		return NULL;
	}
	c = gw_rdma_conn_new(cs, id, false, slots_of(t));
	if (!c) {
		rdma_destroy_id(id);
		snprintf(t->problem, sizeof(t->problem), "RDMA: no memory, or too many connections");
		return NULL;
	}
	tune(id, t);
	if (rdma_resolve_addr(id, (struct sockaddr *)&from.ss, (struct sockaddr *)&to.ss, RESOLVE_MS) == 0)
		return c;
	snprintf(t->problem, sizeof(t->problem), "RDMA: address: %s", strerror(errno));
	gw_conn_free(cs, c);
	return NULL;
}

/* --- events ----------------------------------------------------------------------------------- */
/* Our event of the connection manager's; GW_RDMA_EVENT_COUNT: none. */
static enum gw_rdma_event event_of(enum rdma_cm_event_type type)
{
	static const struct {
		enum rdma_cm_event_type type;
		enum gw_rdma_event event;
	} map[] = {{RDMA_CM_EVENT_ADDR_RESOLVED, GW_RDMA_EV_RESOLVED},
	    {RDMA_CM_EVENT_ROUTE_RESOLVED, GW_RDMA_EV_ROUTED},
	    {RDMA_CM_EVENT_ESTABLISHED, GW_RDMA_EV_ESTABLISHED},
	    {RDMA_CM_EVENT_ADDR_ERROR, GW_RDMA_EV_FAILED}, {RDMA_CM_EVENT_ROUTE_ERROR, GW_RDMA_EV_FAILED},
	    {RDMA_CM_EVENT_CONNECT_ERROR, GW_RDMA_EV_FAILED}, {RDMA_CM_EVENT_UNREACHABLE, GW_RDMA_EV_FAILED},
	    {RDMA_CM_EVENT_REJECTED, GW_RDMA_EV_FAILED},
	    {RDMA_CM_EVENT_DISCONNECTED, GW_RDMA_EV_DISCONNECTED},
	    {RDMA_CM_EVENT_DEVICE_REMOVAL, GW_RDMA_EV_DISCONNECTED}};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (map[i].type == type)
			return map[i].event;
	return GW_RDMA_EVENT_COUNT;
}

/* An event, copied: the id cannot be destroyed before the event was acknowledged. */
struct event {
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id, *listener;
	int status;
	uint8_t said[GW_RDMA_GREETING];
	size_t n;
};

static const char *failure(struct gw_carriers *cs, const struct event *e)
{
	const char *said = gw_rdma_refusal_get(e->said, e->n);

	if (e->type == RDMA_CM_EVENT_REJECTED)
		snprintf(cs->why, sizeof(cs->why), "the peer refuses the RDMA connection%s%s",
		    said ? ": " : "", said ? said : "");
	else if (e->type == RDMA_CM_EVENT_DISCONNECTED)
		return "the peer closed the connection";
	else
		snprintf(cs->why, sizeof(cs->why), "RDMA: %s%s%s", rdma_event_str(e->type),
		    e->status < 0 ? ": " : "", e->status < 0 ? strerror(-e->status) : "");
	return cs->why;
}

/* The connection is lost. With keys the peer may have said why, in what it sent at last. */
static const char *lost_why(struct gw_carriers *cs, struct gw_conn *c, const struct event *e, rwy_time now)
{
	if (c->tls && e->type == RDMA_CM_EVENT_DISCONNECTED)
		(void)gw_rdma_conn_take(cs, c, now);
	if (!*c->rdma->why)
		return failure(cs, e);
	snprintf(cs->why, sizeof(cs->why), "%s", c->rdma->why);
	return cs->why;
}

/* NULL: it is of a listener, whose context is a port. */
static struct gw_conn *conn_of(struct gw_carriers *cs, const struct rdma_cm_id *id)
{
	const uintptr_t at = (uintptr_t)id->context, first = (uintptr_t)cs->conn;

	return at >= first && at < first + sizeof(cs->conn) ? id->context : NULL;
}

static void on_event(struct gw_carriers *cs, const struct event *e, rwy_time now)
{
	const enum gw_rdma_event what = event_of(e->type);
	struct gw_conn *c = conn_of(cs, e->id);
	struct gw_rdma_step step;
	const char *why = NULL;

	if (!c && e->type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		gw_rdma_port_gone(cs, e->id, now);
	if (what == GW_RDMA_EVENT_COUNT || !c)
		return; /* it changes nothing: timewait's end, a new address */
	step = gw_rdma_step(c->rdma->state, what);
	if (step.what == GW_RDMA_DO_LOSE)
		why = lost_why(cs, c, e, now);
	c->rdma->state = step.next;
	switch (step.what) {
	case GW_RDMA_DO_NOTHING:
		return;
	case GW_RDMA_DO_ROUTE:
		why = route(cs, c);
		break;
	case GW_RDMA_DO_CONNECT:
		why = request(cs, c);
		break;
	case GW_RDMA_DO_OPEN:
		why = open_it(cs, c, e->said, e->n, now);
		break;
	case GW_RDMA_DO_LOSE:
		break;
	}
	if (why)
		cs->conn_ops->lost(cs, c, why, now);
}

void gw_rdma_turn(struct gw_carriers *cs, rwy_time now)
{
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(cs->rdma->events, &ev) == 0) {
		struct event e = {.type = ev->event, .id = ev->id, .status = ev->status};

		if (e.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			e.listener = ev->listen_id;
		e.n = ev->param.conn.private_data_len;
		e.n = !ev->param.conn.private_data ? 0 : e.n < sizeof(e.said) ? e.n : sizeof(e.said);
		if (e.n)
			memcpy(e.said, ev->param.conn.private_data, e.n);
		rdma_ack_cm_event(ev);
		if (e.listener)
			on_request(cs, e.listener->context, e.id, e.said, e.n, now);
		else
			on_event(cs, &e, now);
	}
}
