/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All TCP, QUIC or RDMA connections of a tunnel: opening them, agreeing with the peer on the
 * carrier, and the loss of one. The connections that exist together are a *set*. It is unknown
 * which of them carried a datagram, so when one is lost all are closed, and unacknowledged
 * datagrams are retransmitted natively.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "gateway/carrier/internal.h"

#define OPEN_TIME   (5 * RWY_SEC) /* time for connecting and the handshake */
#define BACKOFF_MIN (200 * RWY_MS)
#define BACKOFF_MAX (5 * RWY_SEC)
#define LIVED       (10 * RWY_SEC) /* a set that lived this long was a good one */
/* after a move back: connections without traffic for this long are unused */
#define QUIET (500 * RWY_MS)
/* time that one of two ends waits for the other, when both would connect */
#define SECOND_TURN (1 * RWY_SEC)
#define LINGER_MAX  (15 * RWY_SEC)

/* --- links to workers ------------------------------------------------------------------------- */
static bool links_new(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	unsigned workers = cs->app->workers;
	struct gw_link *l;
	char name[RTE_RING_NAMESIZE];

	if ((t->link = cs->link[t->idx]))
		return true;
	l = aligned_alloc(64, workers * sizeof(*l));
	if (!l)
		return false;
	memset(l, 0, workers * sizeof(*l));
	for (unsigned i = 0; i < workers; i++) {
		snprintf(name, sizeof(name), "rwy_car%u_%u_%.8s", t->idx, i, cs->app->conf->name);
		l[i].out = rte_ring_create(name, GW_LINK_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (!l[i].out) {
			while (i--)
				rte_ring_free(l[i].out);
			free(l);
			return false;
		}
	}
	t->link = cs->link[t->idx] = l;
	atomic_fetch_or(&cs->active, (uint64_t)1 << t->idx);
	return true;
}

/* The reliable carrier that has connections: the one that carries everything, else the detour. */
static enum wan_carrier wanted(const struct gw_carrier_tun *t)
{
	return t->agree.carrier != WAN_CARRIER_NATIVE ? t->agree.carrier : t->agree.detour;
}

/* The present set is of use: it carries everything, or detours of one of the ends. */
static bool of_use(const struct gw_carrier_tun *t)
{
	const struct wan_agree *a = &t->agree;

	return t->via == a->carrier ||
	       (a->carrier == WAN_CARRIER_NATIVE && (t->via == a->detour || t->via == a->peer_detour));
}

/* Detours go by whichever carrier is there. */
static void detours_update(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	bool on = t->set && t->open && t->agree.carrier == WAN_CARRIER_NATIVE &&
	          t->agree.detour != WAN_CARRIER_NATIVE && of_use(t);

	for (unsigned i = 0; t->link && i < cs->app->workers; i++)
		atomic_store(&t->link[i].detour, on ? (uint8_t)t->conf.detour_after : 0);
	if (on && !t->detouring) {
		t->c.detours_began++;
		t->problem[0] = 0;
		gw_log(GW_LOG_NOTICE, "carrier", "tunnel=%s detour=%s after=%u", t->conf.name,
		    wan_carrier_name(t->via), t->conf.detour_after);
	}
	t->detouring = on;
}

void gw_set_update(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	bool send = t->set && t->open && t->agree.carrier == t->via;

	detours_update(cs, t);
	for (unsigned i = 0; t->link && i < cs->app->workers; i++) {
		atomic_store(&t->link[i].send, send);
		atomic_store(&t->link[i].set, t->set);
	}
	cs->touched = UINT64_MAX; /* all workers must see the change */
	if (send == t->sending)
		return;
	t->sending = send;
	t->quiet_since = t->moved_at = now;
	if (send) {
		t->c.moves_to_tcp += t->via == WAN_CARRIER_TCP;
		t->c.moves_to_quic += t->via == WAN_CARRIER_QUIC;
		t->c.moves_to_rdma += t->via == WAN_CARRIER_RDMA;
		t->problem[0] = 0;
		gw_log(GW_LOG_NOTICE, "carrier", "tunnel=%s carrier=%s%s%s%s", t->conf.name,
		    wan_carrier_name(t->via), t->via == WAN_CARRIER_TCP ? " congestion_control=" : "",
		    t->via == WAN_CARRIER_TCP ? t->congestion : "", t->agree.by_peer ? " asked=peer" : "");
	} else if (t->agree.carrier == WAN_CARRIER_NATIVE) {
		t->c.moves_to_native++;
		gw_log(GW_LOG_NOTICE, "carrier", "tunnel=%s carrier=native%s", t->conf.name,
		    t->agree.by_peer ? " asked=peer" : "");
	}
}

static void drain_links(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct rte_mbuf *m[GW_BURST];
	unsigned n;

	for (unsigned i = 0; t->link && i < cs->app->workers; i++)
		while ((n = rte_ring_sc_dequeue_burst(t->link[i].out, (void **)m, GW_BURST, NULL)) > 0) {
			uint64_t bytes = 0;

			for (unsigned k = 0; k < n; k++)
				bytes += m[k]->pkt_len;
			atomic_fetch_add_explicit(&t->link[i].taken, bytes, memory_order_release);
			rte_pktmbuf_free_bulk(m, n);
		}
}

/* --- connections ----------------------------------------------------------------------------- */
static void control_append(struct gw_conn *c, const uint8_t *bytes, size_t n)
{
	if (c->ctl_n + n <= sizeof(c->ctl)) { /* otherwise the same message already waits */
		memcpy(c->ctl + c->ctl_n, bytes, n);
		c->ctl_n += (unsigned)n;
	}
}

static void control_hello(struct gw_conn *c)
{
	uint8_t b[WAN_REC_HELLO_LEN];

	control_append(c, b, wan_conn_put(&c->hello, b));
}

static void control_wish(struct gw_conn *c)
{
	uint8_t b[WAN_REC_WISH_LEN];

	wan_agree_put(&c->t->agree, b);
	control_append(c, b, sizeof(b));
}

void gw_set_tell(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	for (unsigned i = 0; i < cs->top; i++)
		if (cs->conn[i].state == GW_CONN_OPEN && cs->conn[i].t == t)
			control_wish(&cs->conn[i]);
}

void gw_set_close(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	for (unsigned i = 0; i < cs->top; i++)
		if (cs->conn[i].t == t)
			gw_conn_free(cs, &cs->conn[i]);
	t->open = 0;
	t->set = 0;
	t->agree.peer_detour = WAN_CARRIER_NATIVE;
	gw_set_update(cs, t, now);
	drain_links(cs, t);
}

rwy_dur gw_set_second(const struct gw_carrier_tun *t)
{
	return memcmp(t->remote.b, t->local.b, sizeof(t->local.b)) < 0 ? SECOND_TURN : 0;
}

static void retry_later(struct gw_carrier_tun *t, rwy_time now)
{
	t->backoff = !t->backoff ? BACKOFF_MIN : t->backoff * 2 < BACKOFF_MAX ? t->backoff * 2 : BACKOFF_MAX;
	t->retry_at = now + t->backoff / 2 + base_random64() % t->backoff + gw_set_second(t);
}

void gw_set_lost(struct gw_carriers *cs, struct gw_conn *c, const char *why, rwy_time now)
{
	const struct gw_conn_kind *kind = c->kind;
	struct gw_carrier_tun *t = c->t;
	bool open = c->state == GW_CONN_OPEN;
	bool needed = t && (wanted(t) == c->kind->carrier || (open && of_use(t)));

	if (!t) {
		cs->unknown--;
		cs->early += !c->counted;
	}
	if (t && open)
		t->open--;
	gw_conn_free(cs, c);
	if (!t || !needed) {
		if (t && open && !t->open)
			gw_set_close(cs, t, now);
		return;
	}
	snprintf(t->problem, sizeof(t->problem), "%s", why);
	if (!open) {
		t->c.connect_failed++;
		if (!c->accepted && t->retry_at <= now)
			retry_later(t, now);
		return;
	}
	if (rwy_since(t->set_since, now) > LIVED)
		t->backoff = 0;
	retry_later(t, now);
	t->c.fallbacks += t->sending;
	gw_log(GW_LOG_WARNING, "carrier", "tunnel=%s event=\"%s lost: back to native\" why=\"%s\"",
	    t->conf.name, gw_carrier_word(kind->carrier), why);
	gw_set_close(cs, t, now);
}

/* --- the handshake --------------------------------------------------------------------------- */
/* Whether it came to the tunnel's own port. */
static bool comes_to(const struct gw_carrier_tun *t, const struct gw_conn *c)
{
	const enum wan_carrier by = c->kind->carrier;

	return by == WAN_CARRIER_TCP    ? t->listener && t->conf.tcp_port == c->port
	       : by == WAN_CARRIER_QUIC ? t->quic && t->conf.quic_port == c->port
	                                : t->rdma && t->conf.rdma_port == c->port;
}

/* Connections that an end opens. */
static unsigned most_of(const struct gw_carrier_tun *t, enum wan_carrier c)
{
	return c == WAN_CARRIER_QUIC ? 1 : t->conf.tcp_connections;
}

static const struct rwy_ip *remote_of(const struct gw_carrier_tun *t, enum wan_carrier c)
{
	return c == WAN_CARRIER_RDMA ? &t->rdma_remote : &t->remote;
}

static struct gw_carrier_tun *tunnel_of(struct gw_carriers *cs, const struct gw_conn *c, uint64_t id)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_carrier_tun *t = &cs->tun[i];

		if (t->used && t->id == id && rwy_ip_eq(remote_of(t, c->kind->carrier), &c->peer) &&
		    comes_to(t, c))
			return t;
	}
	return NULL;
}

static unsigned accepted_of(
    const struct gw_carriers *cs, const struct gw_carrier_tun *t, bool accepted, bool open)
{
	unsigned n = 0;

	for (unsigned i = 0; i < cs->top; i++) {
		const struct gw_conn *c = &cs->conn[i];

		n += c->state != GW_CONN_FREE && c->t == t && c->accepted == accepted &&
		     (!open || c->state == GW_CONN_OPEN);
	}
	return n;
}

/* A tunnel with keys has TLS, and the client has its name; one without has none. */
static bool may_be_of(const struct gw_conn *c, const struct gw_carrier_tun *t)
{
	bool keys = t->conf.security == CONF_SEC_KEYS;

	return keys == (c->tls != NULL) && (!keys || gw_conn_tls_named(c, conf_tunnel_peer_name(&t->conf)));
}

/* An accepted connection names its tunnel. */
static bool introduce(struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *rec, const char **why)
{
	uint64_t id = 0;
	struct gw_carrier_tun *t = wan_conn_peek(rec, &id) ? tunnel_of(cs, c, id) : NULL;

	if (!t) {
		cs->strangers++;
		c->counted = true;
		*why = "no tunnel of ours";
		return false;
	}
	if (accepted_of(cs, t, true, false) >= 2 * most_of(t, c->kind->carrier)) {
		t->c.refused_full++;
		c->counted = true;
		*why = "enough connections";
		return false;
	}
	if (c->kind->carrier != WAN_CARRIER_QUIC && !may_be_of(c, t)) {
		t->c.refused_tunnel++;
		c->counted = true;
		*why = "the peer's certificate is not for `peer_name`, or only one end has keys";
		return false;
	}
	cs->unknown--;
	c->t = t;
	wan_conn_init(&c->hello, t->id, cs->epoch, base_random64(), false);
	if (c->kind->carrier == WAN_CARRIER_TCP)
		gw_sock_tune(c->fd, t);
	return true;
}

static void opened(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	struct gw_carrier_tun *t = c->t;

	c->state = GW_CONN_OPEN;
	t->c.opened++;
	t->open++;
	if (!t->set) {
		t->via = c->kind->carrier;
		t->set = ++cs->sets ? cs->sets : ++cs->sets;
		t->set_since = t->quiet_since = now;
		memset(&t->measure, 0, sizeof(t->measure));
	}
	control_wish(c);
	gw_set_update(cs, t, now);
}

static void on_hello(
    struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *rec, const char **why, rwy_time now)
{
	if (c->state != GW_CONN_HELLO) {
		*why = "a second handshake";
		return;
	}
	if (!c->t && !introduce(cs, c, rec, why))
		return;
	if (wan_conn_hello(&c->hello, rec) != 0) {
		c->t->c.refused_tunnel++;
		*why = "the peer did not prove to be of the tunnel";
		return;
	}
	control_hello(c);
	if (!c->hello.open)
		return;
	if (c->t->set && c->t->via != c->kind->carrier)
		*why = "the tunnel's other carrier is still in use";
	else if (!links_new(cs, c->t))
		*why = "no memory";
	else
		opened(cs, c, now);
}

static void on_wish(struct gw_carriers *cs, struct gw_carrier_tun *t, const struct wan_rec *rec,
    const char **why, rwy_time now)
{
	int rc = wan_agree_get(&t->agree, rec);

	if (rc < 0) {
		t->c.refused_malformed++;
		*why = "no record";
	} else if (rc) {
		t->quiet_since = now;
		gw_set_update(cs, t, now);
	}
}

const struct gw_conn_ops gw_set_conn_ops = {.hello = on_hello, .wish = on_wish, .lost = gw_set_lost};

/* --- time ------------------------------------------------------------------------------------ */
static struct gw_conn *open_tcp(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	int fd = gw_sock_connect(t);
	struct gw_conn *c = fd >= 0 ? gw_conn_new(cs, &gw_conn_tcp, fd, false) : NULL;

	if (!c)
		snprintf(t->problem, sizeof(t->problem), "TCP: %s", strerror(errno));
	if (c && t->conf.security == CONF_SEC_KEYS &&
	    gw_conn_tls_new(cs, c, conf_tunnel_peer_name(&t->conf)) != 0) {
		gw_conn_free(cs, c);
		return NULL;
	}
	return c;
}

static void open_one(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	const enum wan_carrier by = wanted(t);
	struct gw_conn *c = by == WAN_CARRIER_TCP    ? open_tcp(cs, t)
	                    : by == WAN_CARRIER_QUIC ? gw_quic_port_open(cs, t, now)
	                                             : gw_rdma_open(cs, t);

	if (!c) {
		t->c.connect_failed++;
		retry_later(t, now);
		return;
	}
	c->t = t;
	c->peer = *remote_of(t, by);
	c->deadline = now + OPEN_TIME;
	wan_conn_init(&c->hello, t->id, cs->epoch, base_random64(), true);
	control_hello(c);
}

/* The peer's connections serve as well as ours: when both ends open some, only one continues. */
static bool leave_it_to_peer(const struct gw_carriers *cs, const struct gw_carrier_tun *t)
{
	return accepted_of(cs, t, true, true) &&
	       (t->agree.carrier == WAN_CARRIER_NATIVE || t->agree.by_peer || gw_set_second(t));
}

static void open_more(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	unsigned have = accepted_of(cs, t, false, false);

	if (now < t->retry_at || leave_it_to_peer(cs, t))
		return;
	for (; have < most_of(t, wanted(t)) && now >= t->retry_at; have++)
		open_one(cs, t, now);
}

/* Whether everything handed over was acknowledged, in both directions as far as can be seen. */
static bool drained(const struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	bool busy = t->c.rx_bytes != t->seen_bytes;

	t->seen_bytes = t->c.rx_bytes;
	for (unsigned i = 0; t->link && i < cs->app->workers; i++)
		busy |= rte_ring_count(t->link[i].out) || atomic_load(&t->link[i].inflight);
	for (unsigned i = 0; i < cs->top; i++)
		if (cs->conn[i].state == GW_CONN_OPEN && cs->conn[i].t == t)
			busy |= cs->conn[i].out_at != cs->conn[i].out_n || cs->conn[i].ctl_n;
	if (busy && rwy_since(rwy_time_max(t->set_since, t->moved_at), now) > LINGER_MAX)
		return true; /* the rest is retransmitted natively */
	if (busy)
		t->quiet_since = rwy_time_max(t->quiet_since, now - QUIET / 2);
	return !busy && rwy_since(t->quiet_since, now) > QUIET;
}

static void deadlines(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	for (unsigned i = 0; i < cs->top; i++) {
		struct gw_conn *c = &cs->conn[i];
		const char *why;

		if (c->state == GW_CONN_FREE || c->t != t)
			continue;
		if ((c->state == GW_CONN_CONNECTING || c->state == GW_CONN_HELLO) && now > c->deadline)
			gw_set_lost(cs, c, "no answer in time", now);
		else if (c->kind->tick && (why = c->kind->tick(c, now)))
			gw_set_lost(cs, c, why, now);
	}
}

void gw_set_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	bool can = wanted(t) == WAN_CARRIER_TCP    ? t->listener != NULL
	           : wanted(t) == WAN_CARRIER_QUIC ? t->quic != NULL
	           : wanted(t) == WAN_CARRIER_RDMA ? t->rdma != NULL
	                                           : false;

	deadlines(cs, t, now);
	if (!t->listener && !t->quic && !t->rdma)
		return;
	if (t->rdma)
		gw_rdma_port_tick(cs, t->rdma, now);
	if (t->set && !of_use(t)) { /* the former one; then the wanted one */
		if (drained(cs, t, now))
			gw_set_close(cs, t, now);
	} else if (can && (!t->set || t->via == wanted(t))) {
		open_more(cs, t, now);
	}
	if (!t->set)
		drain_links(cs, t);
	gw_measure_tick(cs, t, now);
}
