/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a connection; see ip.h. */
#include "tests/sim/dc/ip.h"

#include <stdlib.h>

#include "tests/sim/dc/dc.h"

#define WIRE_OVERHEAD 78 /* preamble 8, Ethernet 14, IPv4 20, TCP 20, FCS 4, gap 12 */

void dc_ip_init(
    struct dc *dc, void (*on_there)(void *ctx, uint32_t bytes, rwy_time posted, rwy_time now), void *ctx)
{
	dc->ip.on_there = on_there;
	dc->ip.ctx = ctx;
}

void dc_ip_fini(struct dc *dc)
{
	free(dc->ip.posted);
	dc->ip.posted = NULL;
}

void dc_ip_send(struct dc *dc, unsigned src, unsigned dst, uint32_t bytes, rwy_time now)
{
	struct dc_ip *ip = &dc->ip;
	struct dc_pkt *p = dc_pkt_get(dc);

	if (ip->n == ip->cap) {
		ip->cap = ip->cap ? 2 * ip->cap : 4096;
		ip->posted = realloc(ip->posted, ip->cap * sizeof(*ip->posted));
		if (!ip->posted)
			abort();
	}
	p->kind = DC_DATA;
	p->dqpn = DC_IP_QPN;
	p->psn = ip->n;
	p->src = (uint16_t)src;
	p->dst = (uint16_t)dst;
	p->first = p->last = true;
	p->len = (uint16_t)bytes;
	p->wire = bytes + WIRE_OVERHEAD;
	p->hash = ip->n * 0x9e3779b9u;
	ip->posted[ip->n++] = now;
	dc_port_send(dc_host_port(dc, src), p, now);
}

void dc_ip_rx(struct dc *dc, const struct dc_pkt *p, rwy_time now)
{
	struct dc_ip *ip = &dc->ip;

	if (p->psn >= ip->n || !ip->posted[p->psn]) {
		dc_violation(dc, "a message that nobody sent, or twice", p->psn, ip->n);
		return;
	}
	dc_hash(dc, now ^ p->psn);
	ip->there++;
	ip->on_there(ip->ctx, p->len, ip->posted[p->psn], now);
	ip->posted[p->psn] = 0;
}
