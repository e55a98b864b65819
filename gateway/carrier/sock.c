/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of the TCP carrier: addresses, options, congestion control. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"

#define NOTSENT (48 << 10) /* most unsent bytes in a socket: the rest waits here */
/* ms without an acknowledgement after which the connection is dead */
#define USER_TIMEOUT 4000
#define BUFFER_MIN   (4u << 20)
#define BUFFER_MAX   (64u << 20)
#define BUFFER_TIME  5 /* a fifth of a second at the tunnel's rate */
#define BACKLOG      64
#define AVAILABLE    "/proc/sys/net/ipv4/tcp_available_congestion_control"

/* --- congestion control ---------------------------------------------------------------------- */
static bool takes(int fd, const char *name)
{
	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

static void available(char *out, size_t size)
{
	FILE *f = fopen(AVAILABLE, "re");

	if (!f || !fgets(out, (int)size, f))
		snprintf(out, size, "not known which");
	out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
}

int gw_sock_congestion(struct gw_carrier_tun *t)
{
	static const char *const first[] = {"bbr", "cubic"};
	int fd = socket(rwy_ip_is4(&t->local) ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool any = !strcmp(t->conf.tcp_cc, "auto"), good = false;
	socklen_t len = sizeof(t->congestion) - 1;
	char have[96];

	if (fd < 0) {
		snprintf(t->problem, sizeof(t->problem), "no TCP socket: %s", strerror(errno));
		return RWY_EINVAL;
	}
	for (unsigned i = 0; any && !good && i < 2; i++)
		good = takes(fd, first[i]);
	if (!any && !takes(fd, t->conf.tcp_cc)) {
		int e = errno;

		available(have, sizeof(have));
		snprintf(t->problem, sizeof(t->problem),
		    "tcp_congestion_control `%.31s` %s; the kernel has: %.80s", t->conf.tcp_cc,
		    e == EPERM ? "is not allowed to this process" : "is not in this kernel", have);
		close(fd);
		return RWY_EINVAL;
	}
	memset(t->congestion, 0, sizeof(t->congestion));
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, t->congestion, &len) != 0)
		snprintf(t->congestion, sizeof(t->congestion), "unknown");
	close(fd);
	return 0;
}

/* --- sockets --------------------------------------------------------------------------------- */
static void set_int(int fd, int level, int name, int value)
{
	/* each option is only an improvement */
	(void)!setsockopt(fd, level, name, &value, sizeof(value));
}

/* Sets buffers large enough for the distance: the kernel's own limits end at a few MiB and apply
 * without the privilege. */
static void buffers(int fd, const struct gw_carrier_tun *t)
{
	uint64_t want = t->conf.rate_Bps / BUFFER_TIME / t->conf.tcp_connections;
	int size = (int)(want < BUFFER_MIN ? BUFFER_MIN : want > BUFFER_MAX ? BUFFER_MAX : want) / 2;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0 && errno != EPERM)
		set_int(fd, SOL_SOCKET, SO_SNDBUF, size);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0 && errno != EPERM)
		set_int(fd, SOL_SOCKET, SO_RCVBUF, size);
}

void gw_sock_tune(int fd, const struct gw_carrier_tun *t)
{
	const uint8_t *map = t->conf.dscp.map;

	buffers(fd, t);
	(void)takes(fd, t->congestion); /* it was accepted before */
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT);
	set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT);
	if (map[0] != map[63])
		return; /* `keep` has no meaning for a stream with packets of many hosts */
	if (rwy_ip_is4(&t->local))
		set_int(fd, IPPROTO_IP, IP_TOS, map[0] << 2);
	else
		set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, map[0] << 2);
}

static int sock_new(const struct gw_carrier_tun *t, uint16_t port)
{
	bool v4 = rwy_ip_is4(&t->local);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e;
	struct base_sockaddr a;

	if (fd < 0)
		return -1;
	base_sockaddr_make(&a, &t->local, port);
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (!v4)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	gw_sock_tune(fd, t);
	if (bind(fd, (struct sockaddr *)&a.ss, a.len) == 0)
		return fd;
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

int gw_sock_listen(const struct gw_carrier_tun *t)
{
	int fd = sock_new(t, t->conf.tcp_port), e;

	if (fd < 0 || listen(fd, BACKLOG) == 0)
		return fd;
	e = errno;
	close(fd);
	errno = e;
	return -1;
}

int gw_sock_connect(const struct gw_carrier_tun *t)
{
	int fd = sock_new(t, 0), e;
	struct base_sockaddr a;

	if (fd < 0)
		return -1;
	base_sockaddr_make(&a, &t->remote, t->conf.tcp_port);
	if (connect(fd, (struct sockaddr *)&a.ss, a.len) == 0 || errno == EINPROGRESS)
		return fd;
	e = errno;
	close(fd);
	errno = e;
	return -1;
}
