/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/talk.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/addr.h"

#define TRIES   4
#define WAIT_MS 150 /* for the first answer; twice as long each time after */
#define DOWN    (10 * RWY_SEC)
#define COOKIES 3 /* answers that only change the cookie */

/*
 * By number: a library that gives the program other sockets (librspreload) would take these calls,
 * too.
 */
static long sys_socket(int family)
{
	return syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static rwy_time clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (rwy_time)t.tv_sec * RWY_SEC + (rwy_time)t.tv_nsec;
}

static uint64_t number_random(void)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) != (ssize_t)sizeof(v))
		v = clock_now() ^ (uint64_t)getpid() << 32;
	return v;
}

/* --- one relay -------------------------------------------------------------------------------- */

/* A socket to the relay, or a negative errno value. */
static int relay_open(const struct shim_relay *r, const struct rwy_ip *from)
{
	struct sockaddr_storage to, own;
	socklen_t n = shim_addr_put(&to, &r->addr, r->port), m = from ? shim_addr_put(&own, from, 0) : 0;
	long fd = sys_socket(to.ss_family);
	int rc;

	if (fd < 0)
		return -errno;
	if ((m && syscall(SYS_bind, fd, &own, m) != 0) || syscall(SYS_connect, fd, &to, n) != 0) {
		rc = -errno;
		syscall(SYS_close, fd);
		return rc;
	}
	return (int)fd;
}

static int answer_errno(unsigned answer)
{
	switch (answer) {
	case PROXY_ANSWER_OK:
		return 0;
	case PROXY_ANSWER_REFUSED:
		return -EACCES;
	case PROXY_ANSWER_LOOP:
		return -ELOOP;
	case PROXY_ANSWER_FULL:
	case PROXY_ANSWER_NO_QPN:
		return -ENOSPC;
	case PROXY_ANSWER_NO_REDIRECT:
		return -EOPNOTSUPP;
	default: /* VERSION, UNKNOWN, and what relays of later days say */
		return -EPROTO;
	}
}

/* Waits for the answer to request a->id until the time. 1: it is in *a; 0: it did not come. */
static int answer_wait(int fd, struct proxy_ask *a, rwy_time until)
{
	uint8_t bytes[256];
	struct proxy_ask got;

	for (;;) {
		rwy_time now = clock_now();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		struct timespec t;
		long n;

		if (now >= until)
			return 0;
		t = (struct timespec){(time_t)((until - now) / RWY_SEC), (long)((until - now) % RWY_SEC)};
		n = syscall(SYS_ppoll, &p, 1, &t, NULL, 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0)
			continue;
		n = syscall(SYS_recvfrom, fd, bytes, sizeof(bytes), MSG_DONTWAIT, NULL, NULL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return errno == ECONNREFUSED ? -EHOSTUNREACH : -errno;
		if (n < 0 || proxy_ask_read(bytes, (size_t)n, &got) != 0 || !got.is_answer || got.id != a->id)
			continue;
		*a = got;
		return 1;
	}
}

static int exchange(int fd, struct proxy_ask *a, unsigned tries)
{
	rwy_dur wait = WAIT_MS * RWY_MS;
	unsigned cookies = 0;
	uint8_t bytes[PROXY_ASK_LEN];

	for (unsigned i = 0; i < tries;) {
		struct proxy_ask got = *a;
		int rc;

		proxy_ask_write(bytes, a);
		if (syscall(SYS_sendto, fd, bytes, sizeof(bytes), MSG_NOSIGNAL, NULL, 0) < 0)
			return errno == ECONNREFUSED ? -EHOSTUNREACH : -errno;
		rc = answer_wait(fd, &got, clock_now() + wait);
		if (rc < 0)
			return rc;
		if (!rc) {
			i++;
			wait *= 2;
		} else if (got.answer == PROXY_ANSWER_COOKIE && cookies++ < COOKIES) {
			a->cookie = got.cookie;
		} else {
			*a = got;
			return answer_errno(a->answer);
		}
	}
	return -EHOSTUNREACH;
}

int shim_talk_briefly(
    const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a, unsigned tries)
{
	struct proxy_ask said = *a;
	int fd = relay_open(r, from), rc;

	if (fd < 0)
		return fd;
	said.id = number_random();
	said.is_answer = false;
	said.answer = 0;
	rc = exchange(fd, &said, tries);
	syscall(SYS_close, fd);
	*a = said;
	return rc;
}

int shim_talk(const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a)
{
	return shim_talk_briefly(r, from, a, TRIES);
}

/* --- several ---------------------------------------------------------------------------------- */

static bool is_down(const struct shim_relay *r, rwy_time now)
{
	return r->down || __atomic_load_n(&r->down_until, __ATOMIC_RELAXED) > now;
}

/* The next relay to ask: of the first order that has one, by weight. NULL: none is left. */
static struct shim_relay *relay_choose(
    struct shim_policy *p, const struct shim_rule *rule, const bool *asked, bool also_down)
{
	rwy_time now = clock_now();
	unsigned sum = 0, order = 256;
	struct shim_relay *best = NULL;

	for (unsigned i = 0; i < rule->relays; i++) {
		struct shim_relay *r = &p->relay[rule->first + i];

		if (asked[i] || r->order > order || (!also_down && is_down(r, now)))
			continue;
		order = r->order;
		sum += r->weight;
		/*
		 * A later one takes the place in weight of sum cases: each has its share in the
		 * end.
		 */
		if (number_random() % sum < r->weight)
			best = r;
	}
	return best;
}

int shim_talk_any(struct shim_policy *p, const struct shim_rule *rule, const struct rwy_ip *from,
    struct proxy_ask *a, struct shim_relay **by)
{
	bool asked[SHIM_RELAYS_MAX] = {0};
	const struct proxy_ask first = *a;
	int rc = -EHOSTUNREACH;

	for (;;) {
		struct shim_relay *r = relay_choose(p, rule, asked, false);

		r = r ? r : relay_choose(p, rule, asked, true);
		if (!r)
			return rc;
		*by = r;
		*a = first;
		asked[r - &p->relay[rule->first]] = true;
		rc = shim_talk(r, from, a);
		if (rc != -EHOSTUNREACH && rc != -ENETUNREACH && rc != -ENOSPC)
			return rc;
		__atomic_store_n(&r->down_until, rc == -ENOSPC ? 0 : clock_now() + DOWN, __ATOMIC_RELAXED);
	}
}
