/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection: its records go to the workers, the workers' datagrams into it. Writing takes
 * a run of datagrams of one worker at a time, so that the peer sees few gaps; what a socket does
 * not accept stays here. Reading stops while a worker or packet memory is behind: TCP then slows
 * the peer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"

#define IN_HELLO 256u /* room for data that may come before the connection is open */
#define IN_OPEN  (256u << 10)
#define READS    8  /* most buffers read from one connection at a time */
#define WRITES   32 /* most runs written */
#define SEGMENTS (2 * GW_CONN_RUN)

static const char closed[] = "the peer closed the connection";

/* --- life ------------------------------------------------------------------------------------ */
static void watch(struct gw_carriers *cs, struct gw_conn *c)
{
	uint32_t idx = (uint32_t)(c - cs->conn);
	bool out = c->blocked || c->state == GW_CONN_CONNECTING;
	struct epoll_event ev = {.events = (c->stalled ? 0 : EPOLLIN) | (out ? EPOLLOUT : 0),
	    .data.u64 = (uint64_t)c->use << 32 | idx};

	(void)!epoll_ctl(cs->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
}

struct gw_conn *gw_conn_new(struct gw_carriers *cs, const struct gw_conn_kind *kind, int fd, bool accepted)
{
	struct gw_conn *c = NULL;
	struct epoll_event ev = {.events = accepted ? EPOLLIN : EPOLLOUT};

	for (unsigned i = 0; i < GW_CONNS_MAX && !c; i++)
		if (cs->conn[i].state == GW_CONN_FREE)
			c = &cs->conn[i];
	if (c) {
		uint32_t use = c->use + 1;

		if (c - cs->conn >= cs->top)
			cs->top = (unsigned)(c - cs->conn) + 1;

		memset(c, 0, sizeof(*c));
		c->use = use;
		c->kind = kind;
		c->in.p = malloc(IN_HELLO);
		c->in.cap = IN_HELLO;
		ev.data.u64 = (uint64_t)c->use << 32 | (uint32_t)(c - cs->conn);
	}
	if (!c || !c->in.p || (fd >= 0 && epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)) {
		if (c) {
			free(c->in.p);
			c->in.p = NULL;
		}
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	c->fd = fd;
	c->accepted = accepted;
	c->state = accepted ? GW_CONN_HELLO : GW_CONN_CONNECTING;
	return c;
}

void gw_conn_free(struct gw_carriers *cs, struct gw_conn *c)
{
	if (c->state == GW_CONN_FREE)
		return;
	c->kind->close(c);
	rte_pktmbuf_free_bulk(c->out + c->out_at, c->out_n - c->out_at);
	free(c->in.p);
	c->in.p = NULL;
	cs->stalled -= c->stalled;
	c->state = GW_CONN_FREE;
	while (cs->top && cs->conn[cs->top - 1].state == GW_CONN_FREE)
		cs->top--;
}

/* --- receiving ------------------------------------------------------------------------------- */
static struct rte_mbuf *stash_get(struct gw_stash *s, struct rte_mempool *pool)
{
	if (!s->n && rte_pktmbuf_alloc_bulk(pool, s->m, GW_STASH) == 0)
		s->n = GW_STASH;
	return s->n ? s->m[--s->n] : rte_pktmbuf_alloc(pool);
}

/* Copies a datagram into a packet buffer for the worker, the carrier's only copy. False: not
 * now. */
static bool deliver(struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *r, const char **why)
{
	bool small = r->len + RTE_PKTMBUF_HEADROOM <= GW_SMALL_ROOM;
	struct rte_mbuf *m;

	if (r->worker >= cs->app->workers) {
		c->t->c.drop_unknown_worker++;
		return true;
	}
	m = small ? stash_get(&cs->small, cs->pools->small) : stash_get(&cs->big, cs->pools->big);
	if (!m)
		return false;
	if (r->len > rte_pktmbuf_tailroom(m)) {
		rte_pktmbuf_free(m);
		c->t->c.refused_malformed++;
		*why = "a datagram larger than any of ours";
		return true;
	}
	memcpy(rte_pktmbuf_mtod(m, void *), r->body, r->len);
	m->data_len = (uint16_t)r->len;
	m->pkt_len = r->len;
	m->port = (uint16_t)c->t->idx;
	if (rte_ring_sp_enqueue(cs->in[r->worker], m) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	cs->touched |= (uint64_t)1 << r->worker;
	c->t->c.rx_datagrams++;
	return true;
}

/* Processes one record. False: it has to wait. */
static bool record_dispatch(
    struct gw_carriers *cs, struct gw_conn *c, const struct wan_rec *r, const char **why, rwy_time now)
{
	switch (r->type) {
	case WAN_REC_HELLO:
		cs->conn_ops->hello(cs, c, r, why, now);
		return true;
	case WAN_REC_DATAGRAM:
		if (c->state == GW_CONN_OPEN && c->t)
			return deliver(cs, c, r, why);
		break;
	case WAN_REC_WISH:
		if (c->state == GW_CONN_OPEN && c->t) {
			cs->conn_ops->wish(cs, c->t, r, why, now);
			return true;
		}
		break;
	}
	if (c->t)
		c->t->c.refused_malformed++;
	*why = "datagrams before the handshake";
	return true;
}

bool gw_conn_records(
    struct gw_carriers *cs, struct gw_conn *c, struct gw_input *in, const char **why, rwy_time now)
{
	uint32_t at = 0, use = c->use;
	bool all = true;
	struct wan_rec r;
	int n = 0;

	while (!*why && (n = wan_rec_get(in->p + at, in->n - at, &r)) > 0) {
		if (!(all = record_dispatch(cs, c, &r, why, now)))
			break;
		if (c->use != use || c->state == GW_CONN_FREE)
			return true; /* the record closed the tunnel's connections */
		at += (uint32_t)n;
	}
	if (n < 0) {
		if (c->t)
			c->t->c.refused_malformed++;
		*why = "no record";
	}
	memmove(in->p, in->p + at, in->n - at);
	in->n -= at;
	return all;
}

void gw_conn_stall(struct gw_carriers *cs, struct gw_conn *c, bool on)
{
	if (c->stalled == on)
		return;
	c->stalled = on;
	cs->stalled += on ? 1 : -1u;
	if (c->t)
		c->t->c.rx_stalls += on;
	c->kind->watch(cs, c);
}

/* Grows the buffer when the connection is open: much data follows. */
static bool input_grow(struct gw_conn *c)
{
	uint8_t *in;

	if (c->state != GW_CONN_OPEN || c->in.cap == IN_OPEN)
		return true;
	in = realloc(c->in.p, IN_OPEN);
	if (!in)
		return false;
	c->in.p = in;
	c->in.cap = IN_OPEN;
	return true;
}

static ssize_t bytes_read(struct gw_carriers *cs, struct gw_conn *c)
{
	uint8_t *at = c->in.p + c->in.n;
	size_t room = c->in.cap - c->in.n;

	return c->tls ? gw_conn_tls_recv(cs, c, at, room) : recv(c->fd, at, room, 0);
}

/* The sentence of errno. */
static const char *said(const struct gw_carriers *cs, const struct gw_conn *c)
{
	return c->tls && errno == EPROTO ? cs->why : strerror(errno);
}

static const char *tcp_read(struct gw_carriers *cs, struct gw_conn *c, rwy_time now)
{
	const char *why = NULL;
	uint32_t use = c->use;

	for (unsigned i = 0; i < READS || (c->tls && gw_conn_tls_pending(c)); i++) {
		ssize_t n;

		if (c->in.n) { /* data that waited */
			bool all = gw_conn_records(cs, c, &c->in, &why, now);

			if (why || c->use != use || c->state == GW_CONN_FREE)
				return why;
			if (c->state == GW_CONN_OPEN)
				gw_conn_stall(cs, c, !all);
			if (!all)
				return NULL;
		}
		if (!input_grow(c))
			return "no memory";
		n = bytes_read(cs, c);
		if (n == 0)
			return closed;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? NULL : said(cs, c);
		c->in.n += (uint32_t)n;
		if (c->t)
			c->t->c.rx_bytes += (uint64_t)n;
	}
	return NULL; /* the rest follows after other connections */
}

/* --- sending --------------------------------------------------------------------------------- */
bool gw_conn_fill(struct gw_carriers *cs, struct gw_conn *c, unsigned max)
{
	struct gw_carrier_tun *t = c->t;

	c->out_at = c->out_n = 0;
	if (c->state != GW_CONN_OPEN || !t->link || !t->set)
		return false;
	for (unsigned k = 0; k < cs->app->workers; k++) {
		unsigned w = t->turn++ % cs->app->workers;
		struct gw_link *l = &t->link[w];
		uint64_t bytes = 0;

		c->out_n = rte_ring_sc_dequeue_burst(l->out, (void **)c->out, max, NULL);
		if (!c->out_n)
			continue;
		for (unsigned i = 0; i < c->out_n; i++)
			bytes += c->out[i]->pkt_len;
		atomic_fetch_add_explicit(&l->taken, bytes, memory_order_release);
		if (bytes >= GW_LINK_MIN / 2) /* the worker may be asleep for lack of room */
			cs->touched |= (uint64_t)1 << w;
		return true;
	}
	return false;
}

static unsigned gather(const struct gw_conn *c, struct iovec v[SEGMENTS])
{
	uint32_t skip = c->off;
	unsigned n = 0;

	for (unsigned i = c->out_at; i < c->out_n; i++)
		for (struct rte_mbuf *m = c->out[i]; m && n < SEGMENTS; m = m->next) {
			uint32_t here = skip < m->data_len ? skip : m->data_len;

			skip -= here;
			if (m->data_len == here)
				continue;
			v[n].iov_base = rte_pktmbuf_mtod_offset(m, void *, here);
			v[n++].iov_len = m->data_len - here;
		}
	return n;
}

static void written(struct gw_conn *c, uint64_t n)
{
	unsigned from = c->out_at;

	c->t->c.tx_bytes += n;
	n += c->off;
	while (c->out_at < c->out_n && n >= c->out[c->out_at]->pkt_len)
		n -= c->out[c->out_at++]->pkt_len;
	rte_pktmbuf_free_bulk(c->out + from, c->out_at - from);
	c->t->c.tx_datagrams += c->out_at - from;
	c->off = (uint32_t)n;
}

static ssize_t bytes_write(struct gw_carriers *cs, struct gw_conn *c, struct iovec *v, unsigned n)
{
	const struct msghdr h = {.msg_iov = v, .msg_iovlen = n};

	return c->tls ? gw_conn_tls_send(cs, c, v, n) : sendmsg(c->fd, &h, MSG_NOSIGNAL);
}

static ssize_t output_write(struct gw_carriers *cs, struct gw_conn *c)
{
	struct iovec v[SEGMENTS];
	ssize_t n;

	if (c->out_at == c->out_n && c->ctl_n) {
		v[0] = (struct iovec){c->ctl, c->ctl_n};
		n = bytes_write(cs, c, v, 1);
		if (n > 0) {
			c->ctl_n -= (unsigned)n;
			memmove(c->ctl, c->ctl + n, c->ctl_n);
		}
		return n;
	}
	n = bytes_write(cs, c, v, gather(c, v));
	if (n > 0)
		written(c, (uint64_t)n);
	return n;
}

static void block(struct gw_carriers *cs, struct gw_conn *c, bool on)
{
	if (c->blocked == on)
		return;
	c->blocked = on;
	c->kind->watch(cs, c);
}

static const char *tcp_write(struct gw_carriers *cs, struct gw_conn *c)
{
	if (c->tls && gw_conn_tls_handshake(cs, c) != 0) {
		if (errno != EAGAIN)
			return said(cs, c);
		block(cs, c, gw_conn_tls_wants_write(c));
		return NULL;
	}
	for (unsigned i = 0; i < WRITES; i++) {
		ssize_t n;

		if (c->out_at == c->out_n && !c->ctl_n && !gw_conn_fill(cs, c, GW_CONN_RUN))
			break;
		n = output_write(cs, c);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return said(cs, c);
		if (n < 0) {
			block(cs, c, true);
			return NULL;
		}
	}
	block(cs, c, false);
	return NULL;
}

static bool tcp_room(const struct gw_conn *c)
{
	return !c->blocked && (!c->tls || gw_conn_tls_open(c));
}

static void tcp_close(struct gw_conn *c)
{
	gw_conn_tls_free(c);
	close(c->fd);
}

const struct gw_conn_kind gw_conn_tcp = {
    WAN_CARRIER_TCP, tcp_read, tcp_write, tcp_room, watch, tcp_close, NULL};
