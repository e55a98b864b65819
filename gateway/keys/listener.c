/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that accept peers' connections, and which of them are accepted. */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/keys/internal.h"

struct keys_listener *keys_listen(struct gw_keys *k, const struct keys_tun *t)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct keys_listener *l = NULL;

	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++) {
		struct keys_listener *x = &k->listener[i];

		if (x->fd >= 0 && x->port == t->conf.keys_port && rwy_ip_eq(&x->addr, &t->local)) {
			x->users++;
			return x;
		}
		if (x->fd < 0 && !l)
			l = x;
	}
	if (!l)
		return NULL; /* cannot be: one for each tunnel */
	l->fd = keys_sock_listen(&t->local, t->conf.keys_port);
	if (l->fd < 0)
		return NULL;
	l->addr = t->local;
	l->port = t->conf.keys_port;
	l->users = 1;
	ev.data.u64 = KEYS_EV_LISTEN | (uint64_t)(l - k->listener);
	(void)!epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, l->fd, &ev);
	return l;
}

void keys_unlisten(struct keys_listener *l)
{
	if (!l || --l->users)
		return;
	close(l->fd);
	l->fd = -1;
}

static struct keys_tun *tun_of(struct gw_keys *k, const struct keys_listener *l, const struct rwy_ip *peer)
{
	for (unsigned i = 0; i < CONF_TUNNELS_MAX; i++)
		if (k->tun[i].listener == l && rwy_ip_eq(&k->tun[i].remote, peer))
			return &k->tun[i];
	return NULL;
}

static unsigned conns_of(const struct gw_keys *k, const struct rwy_ip *peer)
{
	unsigned n = 0;

	for (unsigned i = 0; i < KEYS_CONNS; i++)
		n += k->conn[i].state != KEYS_CONN_FREE && k->conn[i].accepted &&
		     rwy_ip_eq(&k->conn[i].peer, peer);
	return n;
}

/* A handshake costs a signature: the first tunnel of the peer's address pays for all of them. */
static bool welcome(struct gw_keys *k, struct keys_tun *t, const struct rwy_ip *peer, rwy_time now)
{
	bool known = t && k->cert, full = known && conns_of(k, peer) >= KEYS_PER_PEER;
	bool fast = known && !full && t->theirs > now + KEYS_BURST;

	k->all.strangers += !known;
	k->all.full += full;
	k->all.rate += fast;
	if (!known || full || fast)
		return false;
	t->theirs = (t->theirs > now ? t->theirs : now) + KEYS_EACH;
	return true;
}

void keys_accept(struct gw_keys *k, struct keys_listener *l, rwy_time now)
{
	struct base_sockaddr a = {.len = sizeof(a.ss)};
	struct keys_conn *c;
	struct rwy_ip peer;
	int fd;

	while ((fd = accept4(l->fd, (struct sockaddr *)&a.ss, &a.len, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		base_sockaddr_ip(&a, &peer);
		a.len = sizeof(a.ss);
		if (!welcome(k, tun_of(k, l, &peer), &peer, now)) {
			close(fd);
			continue;
		}
		c = keys_conn_new(k, fd, true, now);
		if (!c)
			continue;
		c->peer = peer;
		c->local = l->addr;
		c->port = l->port;
		if (gw_kx_server(&c->kx, k->cert) != 0)
			keys_conn_free(k, c);
	}
}
