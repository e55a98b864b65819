/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rwy/hash.h"

#define VERSION    2
#define ANSWER     (20 * RWY_SEC) /* the other one's word */
#define AGAIN_NS   200000000L     /* between two attempts to connect */
#define TEXT_MAX   256
#define DONE_BYTE  'd'
#define BEGIN_BYTE 'b'

static rwy_time clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec;
}

/* --- TCP ------------------------------------------------------------------------------------ */

/* One attempt with each address. Returns the socket, or -1. */
static int try_all(const struct addrinfo *list, bool listens)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), on = 1;

		if (fd < 0)
			continue;
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (listens ? bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 1) == 0
		            : connect(fd, a->ai_addr, a->ai_addrlen) == 0)
			return fd;
		close(fd);
	}
	return -1;
}

static int wait_for(int listener, const char *where, rwy_dur wait, struct rp_error *err)
{
	struct pollfd p = {.fd = listener, .events = POLLIN};
	int fd = -1;

	if (poll(&p, 1, (int)(wait / RWY_MS)) > 0)
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	return fd >= 0 ? fd : rp_fail(err, "--pair %s: nobody connected", where);
}

bool rp_pair_is(const char *where)
{
	const char *colon = strrchr(where, ':');
	unsigned long port;
	char *end;

	if (!colon || colon - where >= TEXT_MAX || colon[1] < '0' || colon[1] > '9')
		return false;
	errno = 0;
	port = strtoul(colon + 1, &end, 10);
	return !errno && !*end && port > 0 && port <= 65535;
}

int rp_pair_open(struct rp_pair *p, const char *where, rwy_dur wait, struct rp_error *err)
{
	const char *colon = strrchr(where, ':');
	const bool listens = colon == where;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = listens ? AI_PASSIVE : 0}, *list;
	rwy_time until = clock_now() + wait;
	struct timeval limit = {.tv_sec = ANSWER / RWY_SEC};
	char host[TEXT_MAX];
	int fd, rc, on = 1;

	memset(p, 0, sizeof(*p));
	p->fd = -1;
	if (!rp_pair_is(where))
		return rp_fail(err, "--pair: '%s' is not HOST:PORT or :PORT", where);
	snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
	rc = getaddrinfo(listens ? NULL : host, colon + 1, &hints, &list);
	if (rc)
		return rp_fail(err, "--pair %s: %s", where, gai_strerror(rc));
	/* the other one may start later */
	while ((fd = try_all(list, listens)) < 0 && !listens && clock_now() < until)
		nanosleep(&(struct timespec){.tv_nsec = AGAIN_NS}, NULL);
	freeaddrinfo(list);
	if (fd < 0)
		return rp_fail(err, "--pair %s: %s", where, strerror(errno));
	if (listens && (fd = wait_for(fd, where, wait, err)) < 0)
		return -1;
	p->fd = fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return 0;
}

void rp_pair_close(struct rp_pair *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->theirs);
	p->theirs = NULL;
	p->fd = -1;
}

/* --- what is said --------------------------------------------------------------------------- */

/* The capture, so that two replays of different ones do not begin. */
static uint64_t fingerprint(const struct rp_schedule *s)
{
	uint64_t h = s->conns;

	for (uint32_t i = 0; i < s->conns; i++)
		for (unsigned j = 0; j < 2; j++) {
			const struct rp_side *d = &s->conn[i].side[j];

			h = rwy_hash(rwy_hash(rwy_hash_ip(h, &d->ip), d->qpn), d->msgs);
			for (uint32_t k = 0; k < d->msgs; k++)
				h = rwy_hash(rwy_hash(h, d->msg[k].len), d->msg[k].op);
		}
	return h;
}

static json_t *say(const struct rp_pair *p, uint64_t print, const char *as, const char *ip)
{
	json_t *qps = json_array();

	for (uint32_t i = 0; i < p->ends; i++)
		json_array_append_new(qps, json_pack("[I,I,I]", (json_int_t)p->mine[i].conn,
		                               (json_int_t)p->mine[i].qpn, (json_int_t)p->mine[i].psn));
	return json_pack("{si, sI, ss, ss, so}", "roceway_replay", VERSION, "capture",
	    (json_int_t)(print >> 1), "as", as, "address", ip, "queue_pairs", qps);
}

static int hear(struct rp_pair *p, const json_t *o, uint64_t print, const char *as, const char *peer,
    struct rp_error *err)
{
	json_int_t version = 0, capture = 0;
	const char *their_as = "", *their_ip = "";
	json_t *qps = NULL;

	if (json_unpack((json_t *)o, "{s:I, s:I, s:s, s:s, s:o}", "roceway_replay", &version, "capture",
	        &capture, "as", &their_as, "address", &their_ip, "queue_pairs", &qps) != 0 ||
	    version != VERSION)
		return rp_fail(err, "--pair: the other side is no replay of this version");
	if (capture != (json_int_t)(print >> 1) || json_array_size(qps) != p->ends)
		return rp_fail(err, "--pair: the other side plays another capture, or other connections");
	if (!strcmp(their_as, as))
		return rp_fail(err, "--pair: both sides play %.40s", as);
	if (strcmp(their_ip, peer) != 0)
		return rp_fail(
		    err, "--pair: the other side has the address %.40s, not %.40s", their_ip, peer);
	for (uint32_t i = 0; i < p->ends; i++) {
		json_int_t conn, qpn, psn;

		if (json_unpack(json_array_get(qps, i), "[I,I,I]", &conn, &qpn, &psn) != 0 ||
		    conn != (json_int_t)p->mine[i].conn || qpn < 2 || qpn > ROCE_PSN_MASK || psn < 0 ||
		    psn > ROCE_PSN_MASK)
			return rp_fail(err, "--pair: the other side names other queue pairs");
		p->theirs[i] = (struct rp_end){(uint32_t)conn, (uint32_t)qpn, (roce_psn)psn};
	}
	return 0;
}

static void text_of(const struct rwy_ip *ip, char out[INET6_ADDRSTRLEN])
{
	if (rwy_ip_is4(ip))
		inet_ntop(AF_INET, ip->b + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip->b, out, INET6_ADDRSTRLEN);
}

int rp_pair_agree(struct rp_pair *p, const struct rp_schedule *s, const struct rwy_ip *as,
    const struct rwy_ip *ip, const struct rwy_ip *peer, struct rp_error *err)
{
	char as_text[INET6_ADDRSTRLEN], ip_text[INET6_ADDRSTRLEN], peer_text[INET6_ADDRSTRLEN];
	const uint64_t print = fingerprint(s);
	json_error_t why;
	json_t *mine, *theirs;
	int rc;

	text_of(as, as_text);
	text_of(ip, ip_text);
	text_of(peer, peer_text);
	p->theirs = calloc(p->ends + 1u, sizeof(*p->theirs));
	mine = say(p, print, as_text, ip_text);
	if (!p->theirs || !mine) {
		json_decref(mine);
		return rp_fail(err, "not enough memory");
	}
	rc = json_dumpfd(mine, p->fd, JSON_COMPACT);
	json_decref(mine);
	theirs = rc == 0 ? json_loadfd(p->fd, JSON_DISABLE_EOF_CHECK, &why) : NULL;
	if (!theirs)
		return rp_fail(err, "--pair: the other side says nothing that is understood");
	rc = hear(p, theirs, print, as_text, peer_text, err);
	json_decref(theirs);
	return rc;
}

int rp_pair_begin(struct rp_pair *p, struct rp_error *err)
{
	char c = BEGIN_BYTE;

	if (send(p->fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(p->fd, &c, 1, 0) != 1 || c != BEGIN_BYTE)
		return rp_fail(err, "--pair: the other side is gone before the beginning");
	return 0;
}

void rp_pair_done(struct rp_pair *p)
{
	char c = DONE_BYTE;

	(void)!send(p->fd, &c, 1, MSG_NOSIGNAL);
}

bool rp_pair_is_done(struct rp_pair *p, bool *gone)
{
	char c = 0;
	ssize_t n = recv(p->fd, &c, 1, MSG_DONTWAIT);

	*gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
	return n == 1 && c == DONE_BYTE;
}
