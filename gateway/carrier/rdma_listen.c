/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of RDMA devices where tunnels' connections arrive, and the manager that serves them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "conf/schema.h"
#include "gateway/carrier/rdma.h"

#define BACKLOG 64
#define AGAIN   (5 * RWY_SEC) /* until a device that is gone is looked for again */

/* The connection manager, once. Returns 0 or a positive errno. */
static int manager_start(struct gw_carriers *cs)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = GW_EV_RDMA};
	struct gw_rdma *m;
	int e;

	if (cs->rdma)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ENOMEM;
	m->events = rdma_create_event_channel();
	if (!m->events) {
		e = errno;
		free(m);
		return e ? e : ENODEV;
	}
	(void)!fcntl(m->events->fd, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, m->events->fd, &ev) != 0) {
		e = errno;
		rdma_destroy_event_channel(m->events);
		free(m);
		return e;
	}
	cs->rdma = m;
	return 0;
}

bool gw_carrier_rdma_there(const struct rwy_ip *addr)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_cm_id *id = NULL;
	struct base_sockaddr a;
	bool there = false;

	if (!events)
		return false;
	base_sockaddr_make(&a, addr, 0);
	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0) {
		there = rdma_bind_addr(id, (struct sockaddr *)&a.ss) == 0 && id->verbs;
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(events);
	return there;
}

static int port_listen(struct gw_carriers *cs, struct gw_rdma_port *p)
{
	struct base_sockaddr a;
	int e;

	base_sockaddr_make(&a, &p->addr, p->port);
	if (rdma_create_id(cs->rdma->events, &p->id, p, RDMA_PS_TCP) != 0)
		return errno;
	if (rdma_bind_addr(p->id, (struct sockaddr *)&a.ss) == 0) {
		/* An address that no RDMA device has may be bound, but not to a device. */
		if (p->id->verbs && rdma_listen(p->id, BACKLOG) == 0)
			return 0;
		e = p->id->verbs ? errno : ENODEV;
	} else {
		e = errno;
	}
	rdma_destroy_id(p->id);
	p->id = NULL;
	return e;
}

struct gw_rdma_port *gw_rdma_port_get(struct gw_carriers *cs, struct gw_carrier_tun *t)
{
	struct gw_rdma_port *p = NULL;
	char addr[INET6_ADDRSTRLEN];
	int e = manager_start(cs);

	if (e) {
		snprintf(t->problem, sizeof(t->problem),
		    "no RDMA: this machine has no RDMA device, or not the kernel module rdma_ucm (%s)",
		    strerror(e));
		return NULL;
	}
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_rdma_port *x = &cs->rdma->port[i];

		if (x->users && x->port == t->conf.rdma_port && rwy_ip_eq(&x->addr, &t->rdma_local)) {
			x->users++;
			return x;
		}
		if (!x->users && !p)
			p = x;
	}
	p->addr = t->rdma_local; /* one port slot per tunnel */
	p->port = t->conf.rdma_port;
	if ((e = port_listen(cs, p)) != 0) {
		conf_print_ip(&t->rdma_local, addr, sizeof(addr));
		snprintf(t->problem, sizeof(t->problem),
		    e == ENODEV || e == EADDRNOTAVAIL ? "no RDMA: no RDMA device has the address %s"
		                                      : "no RDMA on %s, port %u: %s",
		    addr, t->conf.rdma_port, strerror(e));
		return NULL;
	}
	p->users = 1;
	return p;
}

void gw_rdma_port_put(struct gw_rdma_port *p)
{
	if (!p || --p->users)
		return;
	if (p->id)
		rdma_destroy_id(p->id);
	p->id = NULL;
}

void gw_rdma_port_tick(struct gw_carriers *cs, struct gw_rdma_port *p, rwy_time now)
{
	if (p->id || now < p->retry_at)
		return;
	p->retry_at = now + AGAIN;
	if (port_listen(cs, p) == 0)
		gw_log(GW_LOG_NOTICE, "carrier", "event=\"the RDMA device of port %u is back\"", p->port);
}

void gw_rdma_stop(struct gw_carriers *cs)
{
	struct gw_rdma *m = cs->rdma;

	if (!m)
		return;
	cs->rdma = NULL;
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (m->port[i].id)
			rdma_destroy_id(m->port[i].id);
	rdma_destroy_event_channel(m->events);
	free(m);
}

void gw_rdma_port_gone(struct gw_carriers *cs, const struct rdma_cm_id *id, rwy_time now)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct gw_rdma_port *p = &cs->rdma->port[i];

		if (p->id != id)
			continue;
		gw_log(GW_LOG_WARNING, "carrier", "event=\"the RDMA device of port %u is gone\"", p->port);
		rdma_destroy_id(p->id);
		p->id = NULL;
		p->retry_at = now + AGAIN;
		return;
	}
}
