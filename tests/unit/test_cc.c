/* SPDX-License-Identifier: Apache-2.0 */
/* Congestion control alone: a simulated path returns acknowledgements, one per millisecond. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cc/cc.h"
#include "cc/limits.h"

#define MTU  1500
#define RTT  (20 * RWY_MS)
#define RATE ((uint64_t)125000000)

#define HIST 2048

/* A fluid path: data sent in a millisecond arrives at `rate`, the rest waits in a queue, a share
 * `loss` is lost. */
struct path {
	const struct cc_ops *ops;
	_Alignas(16) uint8_t state[CC_STATE_SIZE];
	struct cc_cfg cfg;
	rwy_time now;
	uint64_t rate, queue, queue_max;
	uint32_t loss_ppm;
	uint64_t demand; /* bytes per second offered by the sender; 0: unlimited */
	uint64_t delivered;
	uint64_t inflight;
	/* of each ms: delivered; out of the queue; lost */
	uint64_t hist[HIST], out[HIST], lost[HIST];
	uint32_t ms;
	rwy_dur rtt;
};

static void start(struct path *p, const struct cc_ops *ops, uint64_t cfg_rate)
{
	memset(p, 0, sizeof(*p));
	p->ops = ops;
	p->cfg = (struct cc_cfg){.rate_Bps = cfg_rate, .mtu = MTU, .initial_rtt = 100 * RWY_MS};
	p->now = RWY_SEC;
	p->rate = RATE;
	p->rtt = RTT;
	p->queue_max = RATE / 1000 * 30;
	ops->init(p->state, &p->cfg, p->now);
}

/* One millisecond: sends into the queue, drains the queue into the pipe, and acknowledges the
 * pipe's output a round trip later. */
static void step(struct path *p)
{
	uint64_t rtt_ms = p->rtt / RWY_MS, per_ms = p->rate / 1000;
	uint64_t want = p->ops->rate(p->state) / 1000, window = p->ops->window(p->state);
	bool app = p->demand && p->demand / 1000 < want;

	if (app)
		want = p->demand / 1000;
	if (p->inflight + want > window)
		want = window > p->inflight ? window - p->inflight : 0;
	p->queue += want;
	p->inflight += want;
	uint64_t out = p->queue < per_ms ? p->queue : per_ms;
	uint64_t random = out * p->loss_ppm / 1000000, over = 0;

	p->queue -= out;
	if (p->queue > p->queue_max) {
		over = p->queue - p->queue_max;
		p->queue = p->queue_max;
	}
	p->ms++;
	p->now += RWY_MS;
	p->out[p->ms % HIST] = out - random;
	p->lost[p->ms % HIST] = random + over;
	uint64_t acked = p->ms > rtt_ms ? p->out[(p->ms - rtt_ms) % HIST] : 0;
	uint64_t lost = p->ms > rtt_ms ? p->lost[(p->ms - rtt_ms) % HIST] : 0;
	uint64_t delay = rtt_ms + p->queue / per_ms;
	uint64_t prior = p->ms > delay ? p->hist[(p->ms - delay) % HIST] : 0;

	p->inflight -= acked + lost;
	p->delivered += acked;
	p->hist[p->ms % HIST] = p->delivered;
	struct cc_ack a = {.acked_bytes = acked,
	    .lost_bytes = lost,
	    .delivered = p->delivered,
	    .inflight = p->inflight,
	    .rate_Bps = (p->delivered - prior) * 1000 / delay,
	    .rtt = delay * RWY_MS,
	    .min_rtt = p->rtt,
	    .prior_delivered = prior,
	    .app_limited = app};

	p->ops->on_sent(p->state, (uint32_t)want, a.inflight, p->now);
	if (acked)
		p->ops->on_ack(p->state, &a, p->now);
}

static void run(struct path *p, unsigned ms)
{
	while (ms--)
		step(p);
}

static uint64_t share(struct path *p, unsigned ms)
{
	uint64_t before = p->delivered;

	run(p, ms);
	return (p->delivered - before) * 1000 / (p->rate / 1000 * ms);
}

static void test_find(void **state)
{
	assert_ptr_equal(cc_find("fixed"), &cc_fixed);
	assert_ptr_equal(cc_find("auto"), &cc_auto);
	assert_null(cc_find("reno"));
}

static void test_limits(void **state)
{
	struct cc_cfg c = {.rate_Bps = 1000000, .min_rate_Bps = 5000, .mtu = 1500};

	assert_int_equal(cc_limit_rate(&c, 0), 5000);
	assert_int_equal(cc_limit_rate(&c, UINT64_MAX), 1000000);
	assert_int_equal(cc_limit_rate(&c, 70000), 70000);
	c.rate_Bps = 0;
	assert_int_equal(cc_limit_rate(&c, UINT64_MAX), CC_RATE_MAX);
	c.min_rate_Bps = 0;
	assert_int_equal(cc_limit_rate(&c, 0), CC_RATE_MIN);
	assert_int_equal(cc_limit_window(&c, 0), 3000);
	assert_int_equal(cc_limit_window(&c, UINT64_MAX), CC_WINDOW_MAX);
	assert_int_equal(cc_bytes_in(CC_RATE_MAX, 3600 * RWY_SEC), CC_RATE_MAX * 3600);
}

static void test_fixed(void **state)
{
	struct path p;
	char line[96];

	start(&p, &cc_fixed, RATE);
	assert_int_equal(cc_fixed.rate(p.state), RATE);
	assert_true(cc_fixed.window(p.state) >= 4 * RATE / 10);
	run(&p, 100);
	assert_int_equal(cc_fixed.rate(p.state), RATE);
	assert_in_range(cc_fixed.window(p.state), 4 * RATE / 50, 4 * RATE / 25);
	cc_fixed.on_lost(p.state, 1000000, p.now, 0, p.now);
	cc_fixed.on_persistent(p.state, p.now);
	assert_int_equal(cc_fixed.rate(p.state), RATE);
	assert_true(cc_fixed.print(p.state, line, sizeof(line)) > 0);
}

static void test_auto_finds_the_rate(void **state)
{
	for (uint64_t rate = 1250000; rate <= 125000000000; rate *= 10) {
		struct path p;

		start(&p, &cc_auto, 0);
		p.rate = rate;
		p.queue_max = rate / 1000 * 30;
		run(&p, 1000);
		assert_in_range(share(&p, 2000), 960, 1000);
	}
}

static void test_auto_bounded(void **state)
{
	struct path p;

	start(&p, &cc_auto, RATE / 2);
	run(&p, 1000);
	assert_in_range(share(&p, 1000), 470, 500);
	assert_true(cc_auto.rate(p.state) <= RATE / 2);
}

static void test_auto_random_loss(void **state)
{
	static const uint32_t losses[] = {1000, 10000, 100000, 180000};

	for (unsigned i = 0; i < 4; i++) {
		struct path p;

		start(&p, &cc_auto, 0);
		p.loss_ppm = losses[i];
		run(&p, 1500);
		assert_true(share(&p, 3000) >= (1000000 - losses[i]) / 1000 * 93 / 100);
	}
}

/* Less rate than before: the queue drains within a second, and the rate returns when the path's
 * does. */
static void test_auto_follows(void **state)
{
	struct path p;

	start(&p, &cc_auto, 0);
	run(&p, 1000);
	p.rate = RATE / 4;
	run(&p, 2000);
	assert_true(p.queue < p.rate / 1000 * 12);
	assert_in_range(share(&p, 2000), 900, 1000);
	p.rate = RATE;
	run(&p, 3000);
	assert_in_range(share(&p, 2000), 930, 1000);
}

static void test_auto_app_limited(void **state)
{
	struct path p;

	start(&p, &cc_auto, 0);
	run(&p, 1000);
	uint64_t window = cc_auto.window(p.state);

	p.demand = RATE / 100;
	run(&p, 20000); /* a long time with little to send */
	assert_true(cc_auto.window(p.state) >= window * 9 / 10);
	p.demand = 0;
	run(&p, 21);
	assert_in_range(share(&p, 100), 900, 1000); /* one round trip later, at once */
}

/* Almost nothing arrives of the first flight: that is no measure of the path. */
static void test_auto_first_flight_lost(void **state)
{
	struct path p;

	start(&p, &cc_auto, 0);
	uint64_t window = cc_auto.window(p.state);
	struct cc_ack a = {.acked_bytes = 600,
	    .lost_bytes = window - 600,
	    .delivered = 600,
	    .rate_Bps = 600 * RWY_SEC / RTT,
	    .rtt = RTT,
	    .min_rtt = RTT};

	for (int i = 0; i < 6; i++) {
		cc_auto.on_ack(p.state, &a, p.now);
		assert_true(cc_auto.window(p.state) >= window);
		assert_true(cc_auto.rate(p.state) >= window * RWY_SEC / RTT);
	}
	run(&p, 300);
	assert_in_range(share(&p, 500), 850, 1000);
}

static void test_auto_outage(void **state)
{
	struct path p;

	start(&p, &cc_auto, 0);
	run(&p, 1000);
	uint64_t window = cc_auto.window(p.state);

	cc_auto.on_persistent(p.state, p.now);
	p.now += 3 * RWY_SEC;
	cc_auto.on_lost(p.state, window, p.now, 0, p.now);
	run(&p, 5);
	assert_true(cc_auto.window(p.state) >= window / 2);
	assert_in_range(share(&p, 500), 850, 1000);
}

/* Never 0, never below two datagrams, whatever the input. */
static void test_auto_nonsense(void **state)
{
	struct path p;
	uint64_t x = 1;

	start(&p, &cc_auto, 0);
	for (unsigned i = 0; i < 200000; i++) {
		struct cc_ack a;
		uint8_t *b = (uint8_t *)&a;

		for (size_t k = 0; k < sizeof(a); k++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			b[k] = (x >> 60) < 9 ? 0 : (uint8_t)(x >> 33);
		}
		a.app_limited = x >> 63;
		if (i % 3)
			a.rate_Bps &= 0xffffffffff;
		if (i % 2)
			a.acked_bytes &= 0xffffff, a.lost_bytes &= 0xffffff;
		p.now += (x >> 40) & 0xffffff;
		cc_auto.on_ack(p.state, &a, p.now);
		if (i % 100 == 0)
			cc_auto.on_persistent(p.state, p.now);
		assert_true(cc_limit_rate(&p.cfg, cc_auto.rate(p.state)) >= CC_RATE_MIN);
		assert_true(cc_limit_window(&p.cfg, cc_auto.window(p.state)) >= 2 * MTU);
	}
	char line[96];

	assert_true(cc_auto.print(p.state, line, sizeof(line)) > 0);
}

/* A path that becomes 500 times as long gets its window within a few round trips, not when the old minimum
 * expires. */
static void test_auto_longer_path(void **arg)
{
	alignas(16) uint8_t state[CC_STATE_SIZE];
	struct cc_cfg cfg = {.rate_Bps = 125000000, .mtu = 1472, .initial_rtt = 100 * RWY_MS};
	uint64_t delivered = 0;
	rwy_time now = RWY_SEC;

	cc_auto.init(state, &cfg, now);
	for (int i = 0; i < 220; i++) {
		rwy_dur rtt = i < 200 ? 200 * RWY_US : 100 * RWY_MS;
		uint64_t sent = cc_auto.window(state);
		struct cc_ack ack = {.acked_bytes = sent,
		    .delivered = delivered + sent,
		    .rtt = rtt,
		    .min_rtt = rtt,
		    .prior_delivered = delivered,
		    .rate_Bps = rwy_time_min(sent * RWY_SEC / rtt, 20000000)};

		now += rtt;
		delivered += sent;
		cc_auto.on_ack(state, &ack, now);
	}
	assert_true(cc_auto.window(state) >= 2000000); /* one BDP: 20 MB/s x 100 ms */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_auto_longer_path),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_fixed),
	    cmocka_unit_test(test_auto_finds_the_rate),
	    cmocka_unit_test(test_auto_bounded),
	    cmocka_unit_test(test_auto_random_loss),
	    cmocka_unit_test(test_auto_follows),
	    cmocka_unit_test(test_auto_app_limited),
	    cmocka_unit_test(test_auto_first_flight_lost),
	    cmocka_unit_test(test_auto_outage),
	    cmocka_unit_test(test_auto_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
