/* SPDX-License-Identifier: Apache-2.0 */
/* roceway analyze: a flow's name and rate, in all its outputs. */
#include <arpa/inet.h>
#include <stdio.h>

#include "tools/roceway/analyze.h"

static void ip_text(const struct rwy_ip *ip, char out[INET6_ADDRSTRLEN])
{
	if (rwy_ip_is4(ip))
		inet_ntop(AF_INET, ip->b + 12, out, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip->b, out, INET6_ADDRSTRLEN);
}

void analyze_name(const struct an_flow *f, char out[ANALYZE_NAME_MAX])
{
	char src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN], vni[24] = "";

	ip_text(&f->key.src, src);
	ip_text(&f->key.dst, dst);
	if (f->key.vni)
		snprintf(vni, sizeof(vni), " vni %u", f->key.vni);
	snprintf(out, ANALYZE_NAME_MAX, "%s > %s %#x%s", src, dst, f->key.dqpn, vni);
}

double analyze_rate(const struct an_flow *f)
{
	rwy_dur d = rwy_since(f->first, f->last);

	return d ? (double)f->c.bytes / ((double)d / 1e9) : 0;
}
