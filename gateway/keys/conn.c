/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a key exchange: bytes between its socket and exchange.h. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/keys/internal.h"

#define CHUNK 4096

static void watch(const struct gw_keys *k, const struct keys_conn *c, int op)
{
	struct epoll_event ev = {.data.u64 = (uint64_t)c->use << 32 | (uint64_t)(c - k->conn)};
	size_t n = 0;

	if (c->kx)
		(void)gw_kx_output(c->kx, &n);
	ev.events = c->state == KEYS_CONN_LAST_WORDS ? EPOLLOUT : EPOLLIN;
	if (c->state == KEYS_CONN_CONNECTING || n)
		ev.events |= EPOLLOUT;
	(void)!epoll_ctl(k->epoll_fd, op, c->fd, &ev);
}

struct keys_conn *keys_conn_new(struct gw_keys *k, int fd, bool accepted, rwy_time now)
{
	for (unsigned i = 0; i < KEYS_CONNS; i++) {
		struct keys_conn *c = &k->conn[i];
		uint32_t use = c->use + 1;

		if (c->state != KEYS_CONN_FREE)
			continue;
		*c = (struct keys_conn){.state = accepted ? KEYS_CONN_OPEN : KEYS_CONN_CONNECTING,
		    .fd = fd,
		    .use = use & INT32_MAX, /* epoll's data tells it from a listener */
		    .accepted = accepted,
		    .deadline = now + KEYS_DEADLINE};
		watch(k, c, EPOLL_CTL_ADD);
		return c;
	}
	k->all.full++;
	close(fd);
	return NULL;
}

void keys_conn_free(struct gw_keys *k, struct keys_conn *c)
{
	(void)k;
	close(c->fd);
	gw_kx_free(c->kx);
	if (c->t && c->t->own == c)
		c->t->own = NULL;
	if (c->t && c->t->taken == c)
		c->t->taken = NULL;
	if (c->t && c->t->reserve.ask == c)
		c->t->reserve.ask = NULL;
	if (c->t && c->t->reserve.give == c)
		c->t->reserve.give = NULL;
	c->kx = NULL;
	c->t = NULL;
	c->state = KEYS_CONN_FREE;
}

/* 0, or an errno. */
static int flush(struct keys_conn *c)
{
	const uint8_t *p;
	size_t n;

	while (p = gw_kx_output(c->kx, &n), n) {
		ssize_t rc = send(c->fd, p, n, MSG_NOSIGNAL);

		if (rc < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : errno;
		gw_kx_sent(c->kx, (size_t)rc);
	}
	return 0;
}

void keys_conn_last_words(struct gw_keys *k, struct keys_conn *c)
{
	size_t n;

	if (flush(c) == 0 && (gw_kx_output(c->kx, &n), n)) {
		c->state = KEYS_CONN_LAST_WORDS;
		watch(k, c, EPOLL_CTL_MOD);
		return;
	}
	keys_conn_free(k, c);
}

/* NULL, or why the connection must end. */
static const char *fill(struct keys_conn *c)
{
	uint8_t chunk[CHUNK];
	ssize_t n = recv(c->fd, chunk, sizeof(chunk), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NULL : strerror(errno);
	if (n == 0 && gw_kx_state(c->kx) == GW_KX_INSTALLS)
		return "the peer has given up";
	if (n == 0)
		gw_kx_input_end(c->kx);
	else if (gw_kx_input(c->kx, chunk, (size_t)n) != 0)
		return "the peer sent more than an exchange has";
	return NULL;
}

static bool gone(const struct keys_conn *c, uint32_t use)
{
	return c->state == KEYS_CONN_FREE || c->use != use;
}

static void go_on(struct gw_keys *k, struct keys_conn *c, rwy_time now)
{
	const uint32_t use = c->use;
	enum gw_kx_event ev;
	int e;

	while (!gone(c, use) && c->state == KEYS_CONN_OPEN && (ev = gw_kx_step(c->kx)) != GW_KX_EV_NONE)
		k->ops->event(k, c, ev, now);
	if (gone(c, use))
		return;
	e = flush(c);
	if (e)
		k->ops->failed(k, c, strerror(e), now);
	else if (c->state == KEYS_CONN_LAST_WORDS)
		keys_conn_last_words(k, c);
	else
		watch(k, c, EPOLL_CTL_MOD);
}

void keys_conn_event(struct gw_keys *k, uint64_t which, uint32_t events, rwy_time now)
{
	struct keys_conn *c = &k->conn[(uint32_t)which];
	const char *why = NULL;

	if (gone(c, (uint32_t)(which >> 32)))
		return; /* closed by another event of this turn */
	if (c->state == KEYS_CONN_CONNECTING) {
		int e = base_socket_error(c->fd);

		if (e) {
			k->ops->failed(k, c, strerror(e), now);
			return;
		}
		c->state = KEYS_CONN_OPEN;
		c->deadline = now + KEYS_DEADLINE;
	}
	if (c->state == KEYS_CONN_OPEN && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		why = fill(c);
	if (why)
		k->ops->failed(k, c, why, now);
	else
		go_on(k, c, now);
}
