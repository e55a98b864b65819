/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sockaddr.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

void base_sockaddr_make(struct base_sockaddr *out, const struct rwy_ip *a, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->ss;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->ss;

	memset(out, 0, sizeof(*out));
	if (rwy_ip_is4(a)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->b + 12, 4);
		out->len = sizeof(*v4);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, a->b, 16);
		out->len = sizeof(*v6);
	}
}

void base_sockaddr_ip(const struct base_sockaddr *a, struct rwy_ip *out)
{
	if (a->ss.ss_family == AF_INET)
		*out = rwy_ip_from4((const uint8_t *)&((const struct sockaddr_in *)&a->ss)->sin_addr);
	else
		memcpy(out->b, &((const struct sockaddr_in6 *)&a->ss)->sin6_addr, 16);
}

int base_socket_error(int fd)
{
	int e = 0;
	socklen_t len = sizeof(e);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == 0 ? e : errno;
}
