/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of key exchanges. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "gateway/keys/internal.h"

#define BACKLOG 32

static int fail(int fd)
{
	int e = errno;

	close(fd);
	errno = e;
	return -1;
}

static void set_int(int fd, int level, int name, int value)
{
	/* each option is only an improvement */
	(void)!setsockopt(fd, level, name, &value, sizeof(value));
}

static int sock_new(const struct rwy_ip *addr, uint16_t port)
{
	bool v4 = rwy_ip_is4(addr);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct base_sockaddr a;

	if (fd < 0)
		return -1;
	base_sockaddr_make(&a, addr, port);
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (!v4)
		set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	return bind(fd, (struct sockaddr *)&a.ss, a.len) == 0 ? fd : fail(fd);
}

int keys_sock_listen(const struct rwy_ip *addr, uint16_t port)
{
	int fd = sock_new(addr, port);

	return fd < 0 || listen(fd, BACKLOG) == 0 ? fd : fail(fd);
}

int keys_sock_connect(const struct rwy_ip *local, const struct rwy_ip *remote, uint16_t port)
{
	int fd = sock_new(local, 0);
	struct base_sockaddr a;

	if (fd < 0)
		return -1;
	base_sockaddr_make(&a, remote, port);
	return connect(fd, (struct sockaddr *)&a.ss, a.len) == 0 || errno == EINPROGRESS ? fd : fail(fd);
}
