/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/agent/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/random.h"
#include "proxy/ask.h"
#include "shim/addr.h"
#include "shim/host.h"

#define MISSES 3 /* unanswered questions: it is down */
#define HITS   2 /* answered ones: it is up again */

struct relay {
	struct rwy_ip addr;
	uint16_t port;
	uint64_t id;   /* of the last question; 0: it was answered, or there was none */
	unsigned seen; /* in a row: while it is up unanswered ones, while it is down answered */
	bool down;
};

struct hagent_probe {
	rwy_dur every;
	rwy_time at; /* of the next round */
	int fd[2];   /* IPv4, IPv6; -1: none yet */
	struct relay *relay;
	unsigned relays;
};

int hagent_probe_new(struct hagent_probe **out, rwy_dur every)
{
	struct hagent_probe *p = calloc(1, sizeof(*p));

	*out = p;
	if (!p)
		return RWY_ENOMEM;
	p->every = every;
	p->fd[0] = p->fd[1] = -1;
	return 0;
}

void hagent_probe_free(struct hagent_probe *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (p->fd[i] >= 0)
			close(p->fd[i]);
	free(p->relay);
	free(p);
}

static struct relay *find(struct relay *r, unsigned n, const struct rwy_ip *addr, uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (r[i].port == port && rwy_ip_eq(&r[i].addr, addr))
			return &r[i];
	return NULL;
}

void hagent_probe_set(struct hagent_probe *p, const struct shim_policy *policy)
{
	struct relay *list = calloc(policy->relays + 1, sizeof(*list));
	unsigned n = 0;

	if (!list) {
		gw_log(GW_LOG_ERROR, "probe", "no memory: relays of the new policy are not asked");
		return;
	}
	for (unsigned i = 0; i < policy->relays; i++) {
		const struct shim_relay *r = &policy->relay[i];
		const struct relay *was = find(p->relay, p->relays, &r->addr, r->port);

		if (find(list, n, &r->addr, r->port)) /* of another prefix, too */
			continue;
		list[n++] = was ? *was : (struct relay){.addr = r->addr, .port = r->port};
	}
	free(p->relay);
	p->relay = list;
	p->relays = n;
}

/* --- questions -------------------------------------------------------------------------------- */

static int socket_of(struct hagent_probe *p, const struct rwy_ip *a)
{
	int *fd = &p->fd[!rwy_ip_is4(a)];

	if (*fd < 0)
		*fd =
		    socket(rwy_ip_is4(a) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *fd;
}

/* A question that cannot be sent counts as unanswered: the relay cannot be reached from here. */
static void ask(struct hagent_probe *p, struct relay *r)
{
	const struct proxy_ask a = {.kind = PROXY_ASK_ALIVE, .id = base_random64()};
	int fd = socket_of(p, &r->addr);
	struct sockaddr_storage to;
	uint8_t bytes[PROXY_ASK_LEN];
	socklen_t n = shim_addr_put(&to, &r->addr, r->port);

	proxy_ask_write(bytes, &a);
	r->id = a.id;
	if (fd >= 0)
		(void)!sendto(fd, bytes, sizeof(bytes), MSG_NOSIGNAL, (struct sockaddr *)&to, n);
}

static bool change(struct relay *r)
{
	r->down = !r->down;
	r->seen = 0;
	gw_log(r->down ? GW_LOG_WARNING : GW_LOG_NOTICE, "probe", "relay %s port %u %s",
	    shim_ip_text(&r->addr), r->port, r->down ? "does not answer" : "answers again");
	return true;
}

/* The question before is over. Returns whether the relay went down. */
static bool unanswered(struct relay *r)
{
	if (!r->id)
		return false;
	if (r->down) {
		r->seen = 0;
		return false;
	}
	return ++r->seen >= MISSES && change(r);
}

/* Returns whether the relay came up. */
static bool answered(struct relay *r)
{
	r->id = 0;
	if (!r->down) {
		r->seen = 0;
		return false;
	}
	return ++r->seen >= HITS && change(r);
}

/*
 * Hears one answer. False: there is none. It must come from whom it is of: an id is 64 random bits,
 * but each relay knows its own.
 */
static bool hear(struct hagent_probe *p, int fd, bool *news)
{
	struct sockaddr_storage from = {0};
	socklen_t n = sizeof(from);
	uint8_t bytes[256];
	ssize_t len = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &n);
	struct proxy_ask a;
	struct rwy_ip addr;
	struct relay *r;
	uint16_t port;

	if (len < 0)
		return false;
	if (proxy_ask_read(bytes, (size_t)len, &a) != 0 || !a.is_answer || !a.id ||
	    !shim_addr_get((struct sockaddr *)&from, &addr, &port))
		return true;
	r = find(p->relay, p->relays, &addr, port);
	if (r && r->id == a.id)
		*news |= answered(r);
	return true;
}

bool hagent_probe_turn(struct hagent_probe *p, rwy_time now)
{
	bool news = false;

	for (unsigned i = 0; i < 2; i++)
		while (p->fd[i] >= 0 && hear(p, p->fd[i], &news))
			;
	if (now < p->at)
		return news;
	p->at = now + p->every;
	for (unsigned i = 0; i < p->relays; i++) {
		news |= unanswered(&p->relay[i]);
		ask(p, &p->relay[i]);
	}
	return news;
}

bool hagent_probe_down(const struct hagent_probe *p, const struct shim_relay *r)
{
	const struct relay *known = find(p->relay, p->relays, &r->addr, r->port);

	return known && known->down;
}

rwy_time hagent_probe_next(const struct hagent_probe *p)
{
	return p->at;
}
