/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses and struct rwy_ip. Ports are in host order. Pure: any thread. */
#ifndef SHIM_ADDR_H
#define SHIM_ADDR_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "rwy/ip.h"

/* Writes the address of a's family, IPv4 for a mapped one. Returns its length in bytes. */
static inline socklen_t shim_addr_put(struct sockaddr_storage *out, const struct rwy_ip *a, uint16_t port)
{
	memset(out, 0, sizeof(*out));
	if (rwy_ip_is4(a)) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;

		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->b + 12, 4);
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, a->b, 16);
	return sizeof(*in6);
}

/* Reads address and port; port may be NULL. False: it is no address of IP; nothing was written. */
static inline bool shim_addr_get(const struct sockaddr *s, struct rwy_ip *a, uint16_t *port)
{
	uint16_t p;

	if (s->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)s;

		*a = rwy_ip_from4((const uint8_t *)&in->sin_addr);
		p = ntohs(in->sin_port);
	} else if (s->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)s;

		memcpy(a->b, &in6->sin6_addr, 16);
		p = ntohs(in6->sin6_port);
	} else {
		return false;
	}
	if (port)
		*port = p;
	return true;
}

/* Whether it is the address that means all of a host's. */
static inline bool shim_addr_is_any(const struct rwy_ip *a)
{
	static const uint8_t zero[16];

	return !memcmp(a->b, zero, 16) || (rwy_ip_is4(a) && !memcmp(a->b + 12, zero, 4));
}

#endif
