/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the edge's own that go out between two calls of the engine. */
#include <string.h>

#include "gateway/datapath/edge.h"
#include "gateway/datapath/resolve.h"
#include "gateway/datapath/tx.h"
#include "gateway/port/mbuf.h"

void gw_edge_to_lan(struct gw_worker *w, const uint8_t *ip, uint32_t len, const struct rwy_ip *host)
{
	struct eng_lan_tx tx = {.bytes = ip, .len = len, .dst = host};
	const struct gw_nh *nh = gw_next_hop(w, host, NULL, GW_NH_LAN);

	if (nh)
		gw_tx_lan(w, nh, &tx);
}

static void go_on(struct gw_worker *w, const struct gw_edge_wait *x)
{
	static const uint16_t plain;
	struct rwy_buf *b = x->b;
	struct rwy_ip to;

	if (!x->lan) {
		eng_tenant_rx(w->eng, &b, &plain, 1, w->now);
		return;
	}
	to = gw_edge_address(b->data, true);
	gw_edge_to_lan(w, b->data, b->len, &to);
	gw_buf_ops.free(w->pools, b);
}

/* Packets of a link that is gone meanwhile go with it: their hosts repeat them. */
static unsigned release(struct gw_worker *w, struct gw_edge_pair *p)
{
	const bool gates = eng_standby_gates(w->eng);
	const unsigned all = p->waits;
	struct gw_edge_wait go[GW_EDGE_WAITS];
	unsigned n = 0;

	p->waits = 0;
	for (unsigned i = 0; i < all; i++) {
		const struct gw_edge_wait x = p->wait[i];
		const struct proxy_link *l = &w->edge->core.view.links[x.link];

		if (l->state == PROXY_FREE || l->id != x.id)
			gw_buf_ops.free(w->pools, x.b);
		else if (!gates || proxy_mirror_has(&p->mirror, l))
			go[n++] = x;
		else
			p->wait[p->waits++] = x;
	}
	for (unsigned i = 0; i < n; i++) /* the engine may make others wait */
		go_on(w, &go[i]);
	return n;
}

unsigned gw_edge_pair_turn(struct gw_worker *w)
{
	struct gw_edge_pair *p = w->edge->pair;
	unsigned n = proxy_mirror_turn(&p->mirror, eng_standby_round(w->eng), w->now);

	return p->waits ? n + release(w, p) : n;
}
