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

static bool no_memory;

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

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

/* A best-effort packet of a process that is gone stays incomplete: its parts do not become a packet
 * with those of the next process, which numbers its own from 1, too. */
static void test_parts(void **state)
{
	struct held h;
	struct wan_pair p;
	struct rwy_buf *b;

	begin(&p);
	b = wan_pool_get(&p.pool, 2500);
	memset(b->data, 0xee, b->len);
	wan_dgram_send(p.end[0].t, b, p.now);
	take(&p, 0, HELD, &h);
	assert_int_equal(h.n, 2);
	h.n = 1; /* the second part is lost */
	give(&p, 1, &h);
	assert_int_equal(wan_pair_stats(&p, 1).dgram_bufs, 1);
	wan_pair_restart(&p, 0);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[1].restarts_seen, 1);
	assert_int_equal(wan_pair_stats(&p, 1).dgram_bufs, 0);
	wan_pair_dgram(&p, 0, 2500);
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[1].dgrams_got, 1);
	assert_true(wan_pair_finish(&p));
}

/* A packet of which the dead process had got a part goes to the next one whole. */
static void test_whole(void **state)
{
	struct wan_pair p;
	struct held h;

	begin(&p);
	wan_pair_dgram(&p, 0, 2500);
	take(&p, 0, 1, &h);
	assert_true(p.end[0].t->dgram_off > 0);
	wan_pair_restart(&p, 1);
	for (int from = 1; !p.end[0].restarts_seen; from = !from) { /* HELLOs go first */
		take(&p, from, 1, &h);
		give(&p, !from, &h);
	}
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(p.end[0].restarts_seen, 1);
	assert_int_equal(p.end[1].dgrams_got, 1);
	assert_int_equal(wan_pair_stats(&p, 1).dgram_bufs, 0);
	assert_true(wan_pair_finish(&p));
}

static void reopen(struct wan_pair *p, struct wan_stream *s)
{
	uint8_t info[12];

	rwy_put32(info, s->id);
	rwy_put64(info + 4, 0);
	assert_int_equal(wan_tx_open(s->from->t, &s->tx, info, sizeof(info), s, p->now), 0);
}

/* An ABORT that finds no memory is not acknowledged, so it comes again: data behind it opens no
 * flow that nobody would end, and the slot's next flow arrives. */
static void test_abort_without_memory(void **state)
{
	struct held data, end;
	struct wan_pair p;
	struct wan_stream *s;

	begin(&p);
	s = &p.stream[0];
	wan_tx_send(s->tx, wan_pool_get(&p.pool, 1000), p.now);
	take(&p, 0, HELD, &data);
	wan_tx_abort(s->tx, p.now);
	s->tx = NULL;
	take(&p, 0, HELD, &end);
	no_memory = true;
	give(&p, 1, &end);
	no_memory = false;
	wan_pair_settle(&p, RWY_SEC);
	assert_int_equal(wan_pair_stats(&p, 0).tx_flows, 0);
	give(&p, 1, &data);
	assert_int_equal(wan_pair_stats(&p, 1).rx_flows, 0);
	reopen(&p, s);
	s->total = 5;
	wan_pair_run(&p, p.now + RWY_SEC);
	assert_int_equal(s->got, 5);
	assert_true(wan_pair_finish(&p));
}

/* Data of a slot where an earlier flow lives is not acknowledged: it would be lost. */
static void test_slot_taken(void **state)
{
	struct wan_rxslot *slot;
	struct wan_pair p;
	uint32_t id;

	begin(&p);
	p.stream[0].total = 1;
	assert_true(wan_pair_run(&p, p.now + RWY_SEC));
	id = p.stream[0].rx->id;
	slot = &p.end[1].t->rx[WAN_SLOT(id)];
	slot->use = (WAN_USE(id) - 1) & WAN_USE_MASK;
	slot->f->id = WAN_SLOT(id) | (uint32_t)slot->use << WAN_SLOT_BITS;
	p.stream[0].total = 2;
	wan_pair_settle(&p, 100 * RWY_MS);
	assert_int_equal(p.stream[0].got, 1);
	assert_int_equal(p.stream[0].acked, 1);
	assert_true(wan_pair_stats(&p, 1).c.drop_unknown_flow > 0);
	slot->use = WAN_USE(id);
	slot->f->id = id;
	assert_true(wan_pair_run(&p, p.now + RWY_SEC));
	assert_true(wan_pair_finish(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_credit),
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_whole),
	    cmocka_unit_test(test_abort_without_memory),
	    cmocka_unit_test(test_slot_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
