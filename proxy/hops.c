/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/hops.h"

/* The way of the set that has the link; PROXY_HOPS_WAYS: none. */
static unsigned find(const struct proxy_hops *h, uint64_t link, rwy_time now)
{
	unsigned s = (unsigned)(link % PROXY_HOPS_SETS), i = 0;

	while (i < PROXY_HOPS_WAYS &&
	       (!h->set[s][i].limit || h->set[s][i].link != link || now - h->set[s][i].at >= PROXY_HOPS_TTL))
		i++;
	return i;
}

/* The first way that is free, or the oldest. */
static unsigned way_for(const struct proxy_hops *h, unsigned s)
{
	unsigned way = 0;

	for (unsigned i = 1; i < PROXY_HOPS_WAYS && h->set[s][way].limit; i++)
		if (!h->set[s][i].limit || h->set[s][i].at < h->set[s][way].at)
			way = i;
	return way;
}

bool proxy_hops_know(const struct proxy_hops *h, uint64_t link, unsigned limit, rwy_time now)
{
	unsigned way = find(h, link, now);

	return way < PROXY_HOPS_WAYS && limit < h->set[link % PROXY_HOPS_SETS][way].limit;
}

enum proxy_hop proxy_hops_pass(struct proxy_hops *h, uint64_t link, unsigned limit, rwy_time now)
{
	unsigned s = (unsigned)(link % PROXY_HOPS_SETS), way = find(h, link, now);
	bool again = way < PROXY_HOPS_WAYS;

	if (again && limit < h->set[s][way].limit)
		return PROXY_HOP_CIRCLE;
	if (!again)
		way = way_for(h, s);
	h->set[s][way].link = link;
	h->set[s][way].limit = limit;
	h->set[s][way].at = now;
	return again ? PROXY_HOP_AGAIN : PROXY_HOP_NEW;
}
