/* SPDX-License-Identifier: Apache-2.0 */
#include "tcp.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int accept_one(const char *port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
	int one = 1, lfd = socket(AF_INET6, SOCK_STREAM, 0), fd;

	any.sin6_port = htons((uint16_t)strtoul(port, NULL, 10));
	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (lfd < 0 || bind(lfd, (struct sockaddr *)&any, sizeof(any)) || listen(lfd, 1))
		return -1;
	fd = accept(lfd, NULL, NULL);
	close(lfd);
	return fd;
}

int tcp_open(const char *host, const char *port)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *ai;
	int fd;

	if (!host)
		return accept_one(port);
	if (getaddrinfo(host, port, &hints, &ai))
		return -1;
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

int tcp_swap(int fd, const void *mine, void *theirs, size_t size)
{
	size_t got = 0;

	if (send(fd, mine, size, MSG_NOSIGNAL) != (ssize_t)size)
		return -1;
	while (got < size) {
		ssize_t n = recv(fd, (char *)theirs + got, size - got, 0);

		if (n <= 0)
			return -1;
		got += (size_t)n;
	}
	return 0;
}
