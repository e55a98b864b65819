/* SPDX-License-Identifier: Apache-2.0 */
/* The next hop by the kernel's IPv4 routes: /proc/net/route (proc(5)). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/replay/live/raw.h"

void rp_route(const char *interface, const uint8_t peer[4], uint8_t next[4])
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
