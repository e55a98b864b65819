/* SPDX-License-Identifier: Apache-2.0 */
/* What comes late or from before: a CREDIT behind a newer one, parts of a packet of the peer's last
 * process, data behind the end of its flow. The test carries datagrams by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define HELD 16

/* Datagrams under way. */
struct held {
	uint8_t bytes[HELD][2048];
	uint32_t len[HELD];
	unsigned n;
};

/* One flow from end 0, which sends nothing by itself. */
static void begin(struct wan_pair *p)
{
	struct wan_link_cfg l = {.delay = 5 * RWY_MS};
	struct wan_cfg c;

	wan_cfg_default(&c);
	wan_pair_init(p, &c, &l, &l, 3);
	wan_pair_streams(p, 1, 0, 1000, 1000, 16);
	wan_pair_settle(p, RWY_SEC);
	assert_true(p->end[0].up && p->end[1].up);
}

/* Takes up to `most` datagrams that the end sends now. */
static void take(struct wan_pair *p, int from, unsigned most, struct held *h)
{
	struct wan_tx tx[HELD];

	h->n = wan_poll(p->end[from].t, tx, most, p->now);
	for (unsigned i = 0; i < h->n; i++) {
		h->len[i] = wan_tx_size(&tx[i]);
		assert_true(h->len[i] <= sizeof(h->bytes[i]));
		wan_tx_write(&tx[i], h->bytes[i]);
		if (tx[i].own)
			rwy_buf_free(&p->pool.bufs, tx[i].buf);
	}
	assert_true(h->n > 0);
}

static void give(struct wan_pair *p, int to, const struct held *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		struct rwy_buf *b = wan_pool_get(&p->pool, h->len[i]);

		memcpy(b->data, h->bytes[i], h->len[i]);
		wan_recv(p->end[to].t, 0, b, 0, p->now);
	}
}

/* The newest credit counts, also where an older one comes behind it. */
static void test_credit(void **state)
{
	struct held older, newer;
	struct wan_pair p;
	uint64_t sent;

	begin(&p);
	wan_rx_credit(p.end[1].t, 100, 1 << 20, p.now);
	take(&p, 1, HELD, &older);
	wan_rx_credit(p.end[1].t, 100000, 1 << 28, p.now);
	take(&p, 1, HELD, &newer);
	give(&p, 0, &newer);
	assert_int_equal(p.end[0].t->peer.rx_window, 100000);
	give(&p, 0, &older);
	assert_int_equal(p.end[0].t->peer.rx_window, 100);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[0].t->peer.rx_window, 100000);
	assert_int_equal(p.end[0].t->peer.rx_bytes, 1 << 28);
	/* It is told once more, and not again and again. */
	sent = wan_pair_stats(&p, 1).c.tx_datagrams;
	wan_pair_settle(&p, RWY_SEC / 2);
	assert_true(wan_pair_stats(&p, 1).c.tx_datagrams - sent < 8);
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
