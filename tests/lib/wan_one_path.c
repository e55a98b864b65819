/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/wan_one_path.h"

#include <stdlib.h>

#include "tests/lib/wan_pair.h"

static struct wan_pool pool;

static void *no_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	return NULL;
}
static void no_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
}
static void no_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
}
static const struct wan_ops ops = {.rx_open = no_open, .rx_data = no_data, .rx_close = no_close};

struct wan_path *wan_one_path(uint32_t tx_pkts_max, rwy_time now)
{
	struct wan_cfg c;
	struct wan_tunnel *t;

	wan_pool_init(&pool);
	wan_cfg_default(&c);
	c.ops = &ops;
	c.bufs = pool.bufs;
	c.epoch = 1;
	c.tx_pkts_max = tx_pkts_max;
	if (wan_new(&t, &c, now) < 0)
		abort();
	t->hs.state = WAN_HS_UP;
	t->peer.rx_window = 100;
	t->peer.rx_bytes = 1000000;
	t->path[0].state = WAN_PATH_USABLE;
	return &t->path[0];
}

uint64_t wan_one_send(struct wan_path *p, rwy_time now)
{
	struct wan_sent s = {.bytes = 1000};

	wan_loss_on_sent(p, &s, true, now);
	return p->next_pn - 1;
}

void wan_one_ack(struct wan_path *p, uint64_t lo, uint64_t hi, rwy_time now)
{
	struct wan_f_ack a = {.n = 1, .r = {{lo, hi}}};

	wan_loss_on_ack(p, &a, now);
}

enum wan_sent_state wan_one_state(const struct wan_path *p, uint64_t pn)
{
	return p->sent[pn & p->mask].state;
}
