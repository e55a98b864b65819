/* SPDX-License-Identifier: Apache-2.0 */
/* The next hop by the kernel's routes: /proc/net/route (proc(5)), /proc/net/ipv6_route. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rwy/prefix.h"
#include "tools/replay/live/raw.h"

static void route4(const char *interface, const uint8_t peer[4], uint8_t next[4])
{
	FILE *f = fopen("/proc/net/route", "re");
	char line[256], name[IF_NAMESIZE + 1];
	uint32_t to, gateway, mask, dst, best = 0;
	bool found = false;

	memcpy(&dst, peer, 4); /* the file has addresses as they lie in memory */
	memcpy(next, peer, 4);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%16s %" SCNx32 " %" SCNx32 " %*x %*d %*d %*d %" SCNx32, name, &to, &gateway,
		        &mask) != 4)
			continue;
		if (strcmp(name, interface) != 0 || (dst & mask) != to)
			continue;
		if (found && __builtin_bswap32(mask) < best)
			continue;
		found = true;
		best = __builtin_bswap32(mask);
		memcpy(next, gateway ? (uint8_t *)&gateway : peer, 4);
	}
	if (f)
		fclose(f);
}

/* 32 hexadecimal digits. */
static bool read_ip6(const char *text, struct rwy_ip *out)
{
	for (unsigned i = 0; i < 16; i++)
		if (sscanf(text + 2 * (size_t)i, "%2" SCNx8, &out->b[i]) != 1)
			return false;
	return true;
}

static void route6(const char *interface, const struct rwy_ip *peer, struct rwy_ip *next)
{
	FILE *f = fopen("/proc/net/ipv6_route", "re");
	char line[256], to[33], via[33], name[IF_NAMESIZE + 1];
	static const struct rwy_ip none;
	struct rwy_ip prefix, hop;
	unsigned len, best = 0;
	bool found = false;

	*next = *peer;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%32s %x %*s %*s %32s %*s %*s %*s %*s %16s", to, &len, via, name) != 4 ||
		    strcmp(name, interface) != 0 || len > 128 || !read_ip6(to, &prefix) ||
		    !read_ip6(via, &hop) || !rwy_prefix_match(&prefix, (uint8_t)len, peer))
			continue;
		if (found && len < best)
			continue;
		found = true;
		best = len;
		*next = rwy_ip_eq(&hop, &none) ? *peer : hop;
	}
	if (f)
		fclose(f);
}

struct rwy_ip rp_route(const char *interface, const struct rwy_ip *peer)
{
	struct rwy_ip next;
	uint8_t v4[4];

	if (rwy_ip_is4(peer)) {
		route4(interface, peer->b + 12, v4);
		return rwy_ip_from4(v4);
	}
	route6(interface, peer, &next);
	return next;
}
