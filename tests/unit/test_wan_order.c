/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order between flows: a buffer is handed over only after what it names is delivered. Two tunnels,
 * and datagrams that are delayed and lost at random; the engine at the far end delivers at random
 * times, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/heap_buf.h"
#include "tests/lib/rng.h"
#include "wan/tunnel.h"

#define ROOM  320
#define FLOWS 12
#define MOST  600 /* buffers of a flow */
#define STEP  (100 * RWY_US)

struct flow {
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	/* done: acknowledged by the host, since the far end began; known: delivered, as the sender
	 * knows; ever: acknowledged by the host. */
	unsigned sent, got, done, known, ever;
	bool fresh;   /* opened, and nothing came yet */
	bool stalled; /* its host acknowledges nothing */
	/* What each buffer waits for: so many of each flow. */
	unsigned after[MOST][FLOWS];
};

struct dgram {
	rwy_time at;
	unsigned to;
	uint32_t len;
	uint8_t bytes[2048];
};

static struct flow fl[FLOWS];
static struct wan_tunnel *end[2];
static struct wan_cfg cfg;
static uint64_t bufs, epoch;
static struct dgram *queue;
static unsigned queued;
static rwy_time now;
static uint64_t rng;
static double loss;
static rwy_dur jitter;

static void *rx_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time t)
{
	struct flow *x = &fl[info[0]];

	assert_int_equal(len, 1);
	x->rx = f;
	x->fresh = true;
	x->got = x->done;
	return x;
}

static void rx_data(void *ctx, void *user, struct rwy_buf *b, rwy_time t)
{
	struct flow *x = user;
	unsigned n = (unsigned)(b->data[0] << 8 | b->data[1]);

	if (x->fresh) {
		/* What is in custody comes again, when the far end began anew. */
		assert_true(n <= x->ever);
		x->got = x->done = n;
	}
	x->fresh = false;
	assert_int_equal(n, x->got);
	for (unsigned i = 0; i < FLOWS; i++)
		if (fl[i].tx)
			assert_true(fl[i].ever >= x->after[n][i]);
	x->got++;
	heap_buf_free(&bufs, b);
}

static void rx_close(void *ctx, void *user, enum wan_close_reason why, rwy_time t)
{
	((struct flow *)user)->rx = NULL;
}

static void tx_delivered(void *ctx, void *user, const struct rwy_buf *b, rwy_time t)
{
	((struct flow *)user)->known++;
}

static size_t tx_reopen(void *ctx, void *user, uint8_t info[WAN_OPEN_MAX], rwy_time t)
{
	info[0] = (uint8_t)((struct flow *)user - fl);
	return 1;
}

static void tx_reset(void *ctx, void *user, rwy_time t)
{
	((struct flow *)user)->tx = NULL;
}

static void state_changed(void *ctx, bool up, bool restarted, rwy_time t)
{
}

static const struct wan_ops ops = {.rx_open = rx_open,
    .rx_data = rx_data,
    .rx_close = rx_close,
    .tx_delivered = tx_delivered,
    .tx_reopen = tx_reopen,
    .tx_reset = tx_reset,
    .state = state_changed};

static void start(unsigned i)
{
	cfg.epoch = ++epoch;
	cfg.index = (uint32_t)(100 + epoch);
	assert_int_equal(wan_new(&end[i], &cfg, now), 0);
}

static int set_up(void **state)
{
	memset(fl, 0, sizeof(fl));
	queue = calloc(65536, sizeof(*queue));
	queued = 0;
	bufs = 0;
	now = RWY_SEC;
	loss = 0;
	jitter = 0;
	rng = 7;
	wan_cfg_default(&cfg);
	cfg.ops = &ops;
	cfg.bufs = (struct rwy_bufs){&heap_buf_ops, &bufs};
	cfg.cc_cfg.rate_Bps = 125000000;
	cfg.tunnel_id = 3;
	cfg.tx_pkts_max = 4096;
	for (unsigned i = 0; i < 2; i++)
		start(i);
	return 0;
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < 2; i++)
		wan_free(end[i]);
	free(queue);
	return bufs ? -1 : 0;
}

static void emit(unsigned from)
{
	struct wan_tx tx[8];
	unsigned n;

	while ((n = wan_poll(end[from], tx, 8, now)))
		for (unsigned i = 0; i < n; i++) {
			struct dgram *d = &queue[queued];

			queued += !rng_chance(&rng, loss);
			assert_true(queued < 65536);
			d->at = now + RWY_MS + (jitter ? rng_below(&rng, jitter) : 0);
			d->to = !from;
			d->len = tx[i].hdr_len;
			memcpy(d->bytes, tx[i].hdr, tx[i].hdr_len);
			if (tx[i].buf) {
				memcpy(d->bytes + d->len, tx[i].buf->data + tx[i].off, tx[i].len);
				d->len += tx[i].len;
				if (tx[i].own)
					heap_buf_free(&bufs, tx[i].buf);
			}
		}
}

static void arrive(void)
{
	for (unsigned i = 0; i < queued;) {
		struct dgram d = queue[i];
		struct rwy_buf *b;

		if (d.at > now) {
			i++;
			continue;
		}
		queue[i] = queue[--queued];
		b = heap_buf_alloc(&bufs, ROOM, d.len);
		memcpy(b->data, d.bytes, d.len);
		wan_recv(end[d.to], 0, b, 0, now);
	}
}

/* Hosts acknowledge what they got, some of it at a time. */
static void deliver(void)
{
	for (unsigned i = 0; i < FLOWS; i++) {
		struct flow *x = &fl[i];

		if (!x->rx || x->stalled || x->done == x->got || rng_chance(&rng, .5))
			continue;
		x->done += 1 + (unsigned)rng_below(&rng, x->got - x->done);
		if (x->done > x->ever)
			x->ever = x->done;
		wan_rx_delivered(x->rx, x->done - 1, now);
	}
}

static void run(rwy_dur time)
{
	for (rwy_time until = now + time; now < until; now += STEP) {
		arrive();
		deliver();
		for (unsigned i = 0; i < 2; i++) {
			wan_tick(end[i], now);
			emit(i);
		}
	}
}

static void open_flow(unsigned i)
{
	uint8_t info = (uint8_t)i;

	assert_int_equal(wan_tx_open(end[0], &fl[i].tx, &info, 1, &fl[i], now), 0);
}

static void send_after(unsigned i, const struct rwy_after *a, uint32_t len)
{
	struct rwy_buf *b = heap_buf_alloc(&bufs, ROOM, len);

	memset(b->data, 0, len);
	b->data[0] = (uint8_t)(fl[i].sent >> 8);
	b->data[1] = (uint8_t)fl[i].sent;
	b->kind = RWY_BUF_PACKET;
	b->opcode = 4;
	fl[i].sent++;
	wan_tx_send_after(fl[i].tx, b, a, now);
}

static void send_plain(unsigned i)
{
	send_after(i, &(struct rwy_after){RWY_NO_FLOW, 0}, 200);
}

/* One more of flow i, after all that flow `of` has sent. */
static void send_behind(unsigned i, unsigned of)
{
	struct rwy_after a = wan_tx_mark(fl[of].tx, fl[of].sent);

	fl[i].after[fl[i].sent][of] = fl[of].sent;
	send_after(i, &a, 200);
}

static void open_two(void)
{
	open_flow(0);
	open_flow(1);
	run(100 * RWY_MS);
	assert_true(wan_tx_orders(end[0]));
}

static void test_waits(void **state)
{
	open_two();
	fl[0].stalled = true;
	send_plain(0);
	send_behind(1, 0);
	send_plain(1);
	run(50 * RWY_MS);
	assert_int_equal(fl[0].got, 1);
	assert_int_equal(fl[1].got, 0);
	fl[0].stalled = false;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 2);
	assert_int_equal(end[1]->c.rx_held_back, 1);
	/* What is known to be delivered is not waited for. */
	send_behind(1, 0);
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 3);
	assert_int_equal(end[1]->c.rx_held_back, 1);
}

static void test_fragments(void **state)
{
	struct rwy_after a;

	open_two();
	fl[0].stalled = true;
	send_plain(0);
	a = wan_tx_mark(fl[0].tx, 1);
	fl[1].after[0][0] = 1;
	send_after(1, &a, 3000);
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 0);
	fl[0].stalled = false;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 1);
}

/* The other flow ends: nobody waits for it any longer. */
static void test_abort(void **state)
{
	open_two();
	fl[0].stalled = true;
	send_plain(0);
	send_behind(1, 0);
	fl[1].after[0][0] = 0;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 0);
	wan_tx_abort(fl[0].tx, now);
	fl[0].tx = NULL;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 1);
}

/* The same before the peer ever heard of it. */
static void test_abort_unsent(void **state)
{
	open_two();
	send_behind(1, 0);
	fl[1].after[0][0] = 0;
	fl[0].tx->window = 1;
	send_behind(1, 0);
	wan_tx_abort(fl[0].tx, now);
	fl[0].tx = NULL;
	fl[1].after[1][0] = 0;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 2);
}

/* The far end refuses the flow that is waited for. */
static void test_reset(void **state)
{
	open_two();
	fl[0].stalled = true;
	send_plain(0);
	send_behind(1, 0);
	run(50 * RWY_MS);
	fl[1].after[0][0] = 0;
	wan_rx_reset(fl[0].rx, now);
	fl[0].rx = NULL;
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 1);
	assert_null(fl[0].tx);
}

static void test_list(void **state)
{
	struct rwy_after v[3], order = {RWY_NO_FLOW, 0};

	for (unsigned i = 0; i < 4; i++)
		open_flow(i);
	run(100 * RWY_MS);
	for (unsigned i = 0; i < 3; i++) {
		fl[i].stalled = true;
		send_plain(i);
		v[i] = wan_tx_mark(fl[i].tx, 1);
		fl[3].after[0][i] = 1;
	}
	assert_true(wan_order_put(end[0], &order, 0, v, 3, now));
	send_after(3, &order, 100);
	for (unsigned i = 3; i-- > 0;) {
		run(20 * RWY_MS);
		assert_int_equal(fl[3].got, 0);
		fl[i].stalled = false;
	}
	run(20 * RWY_MS);
	assert_int_equal(fl[3].got, 1);
	run(100 * RWY_MS);
	assert_false(wan_tx_pending(end[0], &order));
	wan_order_end(end[0], order.flow, now);
	run(100 * RWY_MS);
	assert_int_equal(end[1]->rx_flows, 4);
}

/* A malformed list is counted, and holds nobody. */
static void test_bad_list(void **state)
{
	struct rwy_after v[1], order = {RWY_NO_FLOW, 0};

	open_two();
	v[0] = wan_tx_mark(fl[0].tx, 1);
	assert_true(wan_order_put(end[0], &order, 0, v, 1, now));
	assert_null(rwy_buf_ip(wan_tx_at(wan_tx_find(end[0], order.flow), 0)));
	((struct rwy_buf *)wan_tx_at(wan_tx_find(end[0], order.flow), 0))->kind = RWY_BUF_CTRL;
	send_after(1, &order, 100);
	run(50 * RWY_MS);
	assert_int_equal(fl[1].got, 1);
	assert_int_equal(end[1]->c.drop_bad_frame, 1);
}

/* --- at random ------------------------------------------------------------------------------ */

/* One more of flow i, after all that other flows have sent: by one name, or by a list. */
static void send_random(unsigned i, struct rwy_after *order)
{
	struct rwy_after v[FLOWS], a = {RWY_NO_FLOW, 0};
	unsigned n = 0, *after = fl[i].after[fl[i].sent];

	for (unsigned k = 0; k < FLOWS; k++) {
		if (k == i || !fl[k].tx || !rng_chance(&rng, .2) || fl[k].known == fl[k].sent)
			continue;
		after[k] = fl[k].sent;
		v[n++] = wan_tx_mark(fl[k].tx, fl[k].sent);
	}
	if (n == 1)
		a = v[0];
	else if (n && wan_order_put(end[0], order, 0, v, n, now))
		a = *order;
	send_after(i, &a, 60 + (uint32_t)rng_below(&rng, 1900));
}

static void restart_far(void)
{
	wan_free(end[1]);
	for (unsigned i = 0; i < FLOWS; i++)
		fl[i].rx = NULL;
	start(1);
}

static bool all_done(void)
{
	for (unsigned i = 0; i < FLOWS; i++)
		if (fl[i].tx && fl[i].known != fl[i].sent)
			return false;
	return true;
}

static void run_random(uint64_t seed, bool restart)
{
	struct rwy_after order = {RWY_NO_FLOW, 0};

	rng = seed;
	for (unsigned i = 0; i < FLOWS; i++)
		open_flow(i);
	run(100 * RWY_MS);
	loss = .02;
	jitter = 3 * RWY_MS;
	for (unsigned n = 0; n < 1000; n++) {
		unsigned i = (unsigned)rng_below(&rng, FLOWS);

		if (fl[i].tx && fl[i].sent < MOST)
			send_random(i, &order);
		if (n % 4 == 0)
			run(STEP);
		if (n == 500) {
			wan_tx_abort(fl[3].tx, now);
			fl[3].tx = NULL;
		}
		if (restart && n == 700)
			restart_far();
	}
	for (unsigned n = 0; n < 200 && !all_done(); n++)
		run(100 * RWY_MS);
	assert_true(all_done());
	assert_true(end[1]->c.rx_held_back > 0);
}

static void test_random(void **state)
{
	run_random(1, false);
}

static void test_restart(void **state)
{
	run_random(2, true);
}

/* Credit for a few buffers: those that wait leave room for those that they wait for. */
static void test_little_credit(void **state)
{
	wan_rx_credit(end[1], 1000, 70000, now);
	open_two();
	fl[0].tx->window = 200;
	for (unsigned n = 0; n < 100; n++) {
		send_plain(0);
		for (unsigned k = 0; k < 5; k++)
			send_behind(1, 0);
	}
	for (unsigned n = 0; n < 200 && !all_done(); n++)
		run(100 * RWY_MS);
	assert_true(all_done());
	assert_int_equal(end[1]->c.drop_no_credit, 0);
}

/*
 * More buffers wait for one of flow 0 than there is credit for, and flow 0 is bulk: its buffer finds
 * credit nevertheless.
 */
static void test_bulk_goes_on(void **state)
{
	wan_rx_credit(end[1], 1000, 600000, now);
	for (unsigned i = 0; i < 4; i++)
		open_flow(i);
	run(100 * RWY_MS);
	wan_tx_bulk(fl[0].tx);
	for (unsigned n = 0; n < 150; n++)
		for (unsigned i = 1; i < 4; i++) {
			struct rwy_after a = wan_tx_mark(fl[0].tx, 1);

			fl[i].after[fl[i].sent][0] = 1;
			send_after(i, &a, 1900);
		}
	run(200 * RWY_MS);
	assert_false(all_done());
	send_plain(0);
	for (unsigned n = 0; n < 200 && !all_done(); n++)
		run(100 * RWY_MS);
	assert_true(all_done());
	assert_int_equal(end[1]->c.drop_no_credit, 0);
}

/* The same for lists: each takes credit, and waits for all that it names. */
static void test_lists_leave_room(void **state)
{
	struct rwy_after order = {RWY_NO_FLOW, 0}, v[2];

	wan_rx_credit(end[1], 1000, 600000, now);
	for (unsigned i = 0; i < 3; i++)
		open_flow(i);
	run(100 * RWY_MS);
	end[0]->peer.rx_cost = 6000; /* a list takes as much as any other buffer */
	v[0] = wan_tx_mark(fl[0].tx, 1);
	v[1] = wan_tx_mark(fl[1].tx, 1);
	for (unsigned n = 0; n < 150; n++) {
		assert_true(wan_order_put(end[0], &order, 0, v, 2, now));
		fl[2].after[fl[2].sent][0] = fl[2].after[fl[2].sent][1] = 1;
		send_after(2, &order, 100);
	}
	run(200 * RWY_MS);
	assert_int_equal(fl[2].got, 0);
	send_plain(0);
	send_plain(1);
	for (unsigned n = 0; n < 200 && !all_done(); n++)
		run(100 * RWY_MS);
	assert_true(all_done());
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    T(test_waits),
	    T(test_fragments),
	    T(test_abort),
	    T(test_abort_unsent),
	    T(test_reset),
	    T(test_list),
	    T(test_bad_list),
	    T(test_random),
	    T(test_restart),
	    T(test_little_credit),
	    T(test_bulk_goes_on),
	    T(test_lists_leave_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
