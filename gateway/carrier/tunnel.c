/* SPDX-License-Identifier: Apache-2.0 */
/* The carriers' tunnels: added, removed, moved and shown by other threads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"

static_assert(
    (int)CONF_CARRIER_NATIVE == (int)WAN_CARRIER_NATIVE && (int)CONF_CARRIER_TCP == (int)WAN_CARRIER_TCP &&
        (int)CONF_CARRIER_QUIC == (int)WAN_CARRIER_QUIC && (int)CONF_CARRIER_RDMA == (int)WAN_CARRIER_RDMA,
    "the two enums agree");

void gw_carriers_wake(struct gw_carriers *cs)
{
	if (write(cs->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

void gw_carriers_lock(struct gw_carriers *cs)
{
	atomic_fetch_add(&cs->waiting, 1);
	pthread_mutex_lock(&cs->lock);
	atomic_fetch_sub(&cs->waiting, 1);
}

/* --- tunnels --------------------------------------------------------------------------------- */
static struct gw_listener *listen_on(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct gw_listener *l = NULL;
	struct epoll_event ev = {.events = EPOLLIN};

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_listener *x = &cs->listener[i];

		if (x->fd >= 0 && x->port == t->conf.tcp_port && rwy_ip_eq(&x->addr, &t->local)) {
			x->users++;
			return x;
		}
		if (x->fd < 0 && !l)
			l = x;
	}
	l->fd = gw_sock_listen(t); /* one listener slot per tunnel */
	if (l->fd < 0) {
		snprintf(
		    t->problem, sizeof(t->problem), "TCP port %u: %s", t->conf.tcp_port, strerror(errno));
		return NULL;
	}
	l->addr = t->local;
	l->port = t->conf.tcp_port;
	l->users = 1;
	ev.data.u64 = GW_EV_LISTEN | (uint64_t)(l - cs->listener);
	(void)!epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, l->fd, &ev);
	return l;
}

static void unlisten(struct gw_listener *l)
{
	if (!l || --l->users)
		return;
	close(l->fd);
	l->fd = -1;
}

static bool said(const struct rwy_ip *a)
{
	static const struct rwy_ip none;

	return !rwy_ip_eq(a, &none);
}

/* A way that the tunnel cannot go by: an error if it must begin with it. */
static int impossible(const struct gw_carrier_tun *t, enum conf_carrier by)
{
	bool must = t->conf.carrier == by || t->conf.detour == by;

	gw_log(must ? GW_LOG_ERROR : GW_LOG_WARNING, "carrier", "tunnel=%s %s%s%s", t->conf.name, t->problem,
	    must ? "" : ": it cannot move to ", must ? "" : gw_carrier_word((enum wan_carrier)by));
	return must ? RWY_EINVAL : 0;
}

/* Whether its TCP connections can be made: they have a congestion control and a listener. */
static bool tcp_ready(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	if (gw_sock_congestion(t) != 0)
		return false;
	if (!t->listener)
		t->listener = listen_on(cs, t);
	return t->listener;
}

/* An unknown congestion control is an error in any case: the configuration names it. */
static int tunnel_tcp(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	if (!t->conf.tcp_port || tcp_ready(cs, t))
		return 0;
	if (*t->congestion)
		return impossible(t, CONF_CARRIER_TCP);
	gw_log(GW_LOG_ERROR, "carrier", "tunnel=%s %s", t->conf.name, t->problem);
	return RWY_EINVAL;
}

/* Gets the port of its QUIC connections, if it shall have any. */
static int tunnel_quic(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	const struct conf_tunnel *c = &t->conf;

	if (c->carrier != CONF_CARRIER_QUIC && c->detour != CONF_CARRIER_QUIC &&
	    (!c->quic_port || !cs->tls || !*conf_tunnel_peer_name(c)))
		return 0;
	t->quic = gw_quic_port_get(cs, t);
	return t->quic ? 0 : impossible(t, CONF_CARRIER_QUIC);
}

/* The same of its RDMA connections. */
static int tunnel_rdma(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	if (!t->conf.rdma_port)
		return 0;
	t->rdma = gw_rdma_port_get(cs, t);
	return t->rdma ? 0 : impossible(t, CONF_CARRIER_RDMA);
}

int gw_carrier_add(struct gw_carriers *cs, unsigned idx, const struct conf_tunnel *c)
{
	static int (*const way[])(struct gw_carriers *, struct gw_carrier_tun *) = {
	    tunnel_tcp, tunnel_quic, tunnel_rdma};
	struct gw_carrier_tun *t = &cs->tun[idx];
	char problem[sizeof(t->problem)];
	int rc = 0;

	memset(t, 0, sizeof(*t));
	t->link = cs->link[idx];
	t->idx = idx;
	t->conf = *c;
	t->local = said(&c->tcp_local) ? c->tcp_local : c->local;
	t->remote = said(&c->tcp_remote) ? c->tcp_remote : c->remote;
	t->rdma_local = said(&c->rdma_local) ? c->rdma_local : t->local;
	t->rdma_remote = said(&c->rdma_remote) ? c->rdma_remote : t->remote;
	t->id = conf_tunnel_id(c, 0);
	t->retry_at = gw_now() + gw_set_second(t);
	t->agree.carrier = (enum wan_carrier)c->carrier;
	t->agree.detour = (enum wan_carrier)c->detour;
	t->used = true;
	/* One that is impossible leaves the others; the first that must be possible is shown. */
	for (unsigned i = 0; i < sizeof(way) / sizeof(*way); i++) {
		const int r = way[i](cs, t);

		if (r && !rc)
			memcpy(problem, t->problem, sizeof(problem));
		rc = rc ? rc : r;
	}
	if (rc)
		memcpy(t->problem, problem, sizeof(problem));
	return rc;
}

static void tunnel_remove(struct gw_carriers *cs, unsigned idx, rwy_time now)
{
	struct gw_carrier_tun *t = &cs->tun[idx];

	if (!t->used)
		return;
	gw_set_close(cs, t, now);
	unlisten(t->listener);
	t->used = false;
	gw_quic_port_put(cs, t->quic);
	gw_rdma_port_put(t->rdma);
}

int gw_carrier_tunnel(struct gw_app *app, unsigned tunnel, const struct conf_tunnel *c)
{
	struct gw_carriers *cs = app->carriers;
	int rc = 0;

	if (!cs || tunnel >= CONF_TUNNELS_MAX)
		return 0;
	gw_carriers_lock(cs);
	tunnel_remove(cs, tunnel, gw_now());
	if (c)
		rc = gw_carrier_add(cs, tunnel, c);
	pthread_mutex_unlock(&cs->lock);
	gw_carriers_wake(cs);
	return rc;
}

/* RWY_EINVAL: the tunnel cannot have connections of this carrier; `why` has one sentence. */
static int can_go_by(
    struct gw_carriers *cs, struct gw_carrier_tun *t, enum wan_carrier c, char *why, size_t size)
{
	const bool tcp = c == WAN_CARRIER_TCP, quic = c == WAN_CARRIER_QUIC, rdma = c == WAN_CARRIER_RDMA;

	if (tcp && !t->conf.tcp_port)
		snprintf(why, size, "tunnel %s has `tcp_port: 0` in the configuration: no TCP", t->conf.name);
	else if (quic && !t->conf.quic_port)
		snprintf(
		    why, size, "tunnel %s has `quic_port: 0` in the configuration: no QUIC", t->conf.name);
	else if (rdma && !t->conf.rdma_port)
		snprintf(
		    why, size, "tunnel %s has `rdma_port: 0` in the configuration: no RDMA", t->conf.name);
	else if ((tcp && !tcp_ready(cs, t)) || (quic && !t->quic && !(t->quic = gw_quic_port_get(cs, t))) ||
	         (rdma && !t->rdma && !(t->rdma = gw_rdma_port_get(cs, t))))
		snprintf(why, size, "%s", t->problem);
	else
		return 0;
	return RWY_EINVAL;
}

/* Begins a change; the set is locked then. NULL: there is no such tunnel, and why says so. */
static struct gw_carrier_tun *change_begin(struct gw_carriers *cs, unsigned tunnel, char *why, size_t size)
{
	if (!cs || tunnel >= CONF_TUNNELS_MAX || !cs->tun[tunnel].used) {
		snprintf(why, size, "no such tunnel");
		return NULL;
	}
	gw_carriers_lock(cs);
	return &cs->tun[tunnel];
}

/* Ends it. rc: 0, or why nothing was changed. Returns rc. */
static int change_end(struct gw_carriers *cs, struct gw_carrier_tun *t, int rc)
{
	if (!rc) {
		t->problem[0] = 0;
		t->retry_at = t->backoff = 0;
		gw_set_tell(cs, t);
		gw_set_update(cs, t, gw_now());
	}
	pthread_mutex_unlock(&cs->lock);
	gw_carriers_wake(cs);
	return rc;
}

int gw_carrier_set(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	struct gw_carriers *cs = app->carriers;
	struct gw_carrier_tun *t = change_begin(cs, tunnel, why, size);
	int rc;

	if (!t)
		return RWY_ENOENT;
	rc = can_go_by(cs, t, c, why, size);
	if (!rc)
		wan_agree_ask(&t->agree, c);
	return change_end(cs, t, rc);
}

int gw_carrier_can(struct gw_app *app, unsigned tunnel, enum wan_carrier c, char *why, size_t size)
{
	struct gw_carriers *cs = app->carriers;
	struct gw_carrier_tun *t = change_begin(cs, tunnel, why, size);
	int rc;

	if (!t)
		return RWY_ENOENT;
	rc = can_go_by(cs, t, c, why, size);
	pthread_mutex_unlock(&cs->lock);
	return rc;
}

int gw_carrier_detour(
    struct gw_app *app, unsigned tunnel, enum wan_carrier by, unsigned after, char *why, size_t size)
{
	struct gw_carriers *cs = app->carriers;
	struct gw_carrier_tun *t = change_begin(cs, tunnel, why, size);
	int rc;

	if (!t)
		return RWY_ENOENT;
	rc = can_go_by(cs, t, by, why, size);
	if (!rc) {
		t->conf.detour = (enum conf_carrier)by;
		t->conf.detour_after = (uint16_t)after;
		t->agree.detour = by;
	}
	return change_end(cs, t, rc);
}

void gw_carrier_info(const struct gw_app *app, unsigned tunnel, struct gw_carrier_info *out)
{
	struct gw_carriers *cs = app->carriers;
	const struct gw_carrier_tun *t = cs && tunnel < CONF_TUNNELS_MAX ? &cs->tun[tunnel] : NULL;

	memset(out, 0, sizeof(*out));
	if (!t)
		return;
	gw_carriers_lock(cs);
	if (t->used) {
		out->wanted = t->agree.carrier;
		out->sending = t->sending ? t->via : WAN_CARRIER_NATIVE;
		out->by_peer = t->agree.by_peer;
		out->detour = t->agree.detour;
		out->detour_after = t->conf.detour_after;
		out->detouring = t->detouring;
		out->connections = t->open;
		out->via = t->set ? t->via : WAN_CARRIER_NATIVE;
		if (t->quic)
			out->quic = *gw_quic_end_counters(t->quic->end);
		out->path = t->measure.path;
		memcpy(out->congestion, t->congestion, sizeof(out->congestion));
		if (out->wanted != out->sending || !t->listener ||
		    (out->detour != WAN_CARRIER_NATIVE && !out->detouring) ||
		    (!t->quic && cs->tls && *conf_tunnel_peer_name(&t->conf)) ||
		    (!t->rdma && t->conf.rdma_port))
			memcpy(out->problem, t->problem, sizeof(out->problem));
		out->c = t->c;
	}
	out->strangers = cs->strangers;
	out->slow = cs->slow;
	out->early = cs->early;
	out->rate = cs->rate;
	out->many = cs->many;
	pthread_mutex_unlock(&cs->lock);
}
