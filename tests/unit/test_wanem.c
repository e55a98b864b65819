/* SPDX-License-Identifier: Apache-2.0
 * The sans-I/O parts of wanem: what its links promise, checked by statistics with fixed seeds.
 * Not here: interfaces, real time and the control socket (wanem_e2e.py).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* The tool is no library: include its sources. */
#include "tools/wanem/hist.c"
#include "tools/wanem/hist.h"
#include "tools/wanem/line.c"
#include "tools/wanem/line.h"
#include "tools/wanem/link.c"
#include "tools/wanem/link.h"
#include "tools/wanem/set.c"
#include "tools/wanem/set.h"

#define N    200000u
#define MS   UINT64_C(1000000)
#define STEP 1000u /* ns between packets */
#define LEN  1000u

static void link_open(struct wanem_link *link, uint64_t seed, const char *settings)
{
	struct wanem_cfg cfg;
	struct wanem_err err = {""};

	wanem_cfg_default(&cfg);
	if (wanem_set_list(&cfg, settings, &err))
		fail_msg("%s: %s", settings, err.text);
	wanem_link_init(link, seed, &cfg);
}

static void link_change(struct wanem_link *link, const char *settings)
{
	struct wanem_cfg cfg = link->cfg;
	struct wanem_err err;

	assert_int_equal(wanem_set_list(&cfg, settings, &err), 0);
	wanem_link_set(link, &cfg);
}

/* True if k of n trials are within 5 deviations of p. */
static void assert_share(uint64_t hits, uint64_t n, double p)
{
	double dev = sqrt((double)n * p * (1 - p));

	assert_true(fabs((double)hits - (double)n * p) <= 5 * dev + 1);
}

static void test_neutral_is_transparent(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;

	link_open(&link, 1, "delay=0");
	for (uint64_t t = 0; t < 1000; t++) {
		wanem_link_in(&link, LEN, &outcome, t);
		assert_int_equal(outcome.count, 1);
		assert_true(outcome.copy[0].at == t);
		assert_int_equal(outcome.copy[0].corrupt_bits, 0);
	}
	assert_true(link.ctr[WANEM_CTR_in_bytes] == 1000 * LEN);
	assert_int_equal(wanem_link_queue(&link, NULL, 1000), 0);
	wanem_link_free(&link);
}

static void test_delay_is_exact(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;

	link_open(&link, 1, "delay=12.5ms");
	for (uint64_t t = 5; t < 5000; t += 7) {
		wanem_link_in(&link, LEN, &outcome, t);
		assert_true(outcome.copy[0].at == t + 12500000);
	}
	wanem_link_free(&link);
}

static uint64_t lose(const char *settings, uint64_t seed, uint64_t *bursts)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	uint64_t lost = 0;
	bool was_lost = false;

	link_open(&link, seed, settings);
	*bursts = 0;
	for (uint64_t i = 0; i < N; i++) {
		wanem_link_in(&link, LEN, &outcome, i * STEP);
		lost += !outcome.count;
		*bursts += !outcome.count && !was_lost;
		was_lost = !outcome.count;
	}
	assert_true(link.ctr[WANEM_CTR_drop_loss] + link.ctr[WANEM_CTR_drop_burst] == lost);
	wanem_link_free(&link);
	return lost;
}

static void test_independent_loss(void **state)
{
	static const char *const text[] = {"loss=0", "loss=0.01%", "loss=1%", "loss=0.3", "loss=100%"};
	static const double p[] = {0, 0.0001, 0.01, 0.3, 1};
	uint64_t bursts;

	for (unsigned i = 0; i < 5; i++)
		for (uint64_t seed = 0; seed < 5; seed++)
			assert_share(lose(text[i], seed, &bursts), N, p[i]);
	/* Independent: a burst starts at a lost packet after a delivered one. */
	lose("loss=30%", 1, &bursts);
	assert_share(bursts, N, 0.3 * 0.7);
}

/* Bounds of 5 deviations: bursts are independent, so their number is near Poisson and their lengths
 * geometric. */
static void check_bursts(const char *settings, double loss, double burst)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		uint64_t bursts, lost = lose(settings, seed, &bursts);
		double want = N * loss / burst, mean = (double)lost / (double)bursts;

		assert_true(fabs((double)bursts - want) <= 5 * sqrt(want) + 1);
		assert_true(fabs(mean - burst) <= 5 * burst / sqrt(want));
		assert_true(fabs((double)lost - N * loss) <= 5 * burst * sqrt(2 * want));
	}
}

static void test_bursty_loss(void **state)
{
	check_bursts("loss=1% burst=8", 0.01, 8);
	check_bursts("loss=10% burst=3", 0.1, 3);
	check_bursts("loss=0.5% burst=50", 0.005, 50);
	check_bursts("ge=0.1%/10%", 0.001 / 0.101, 10);
	check_bursts("ge=2%/25%", 0.02 / 0.27, 4);
}

static void test_ge_bad_and_good_shares(void **state)
{
	uint64_t bursts, lost = lose("ge=10%/30%/50%/1%", 3, &bursts);

	/* bad a quarter of the time: 0.25 * 0.5 + 0.75 * 0.01; correlated, hence the wider bound */
	assert_true(fabs((double)lost / N - 0.1325) < 0.01);
}

static void test_rate_serialises(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;

	/* 1000 bytes at 100 Mbit/s: 80 us each */
	link_open(&link, 1, "rate=100Mbit,delay=1ms,queue=5000");
	for (uint64_t i = 0; i < 1000; i++) {
		wanem_link_in(&link, LEN, &outcome, 10);
		assert_true(outcome.copy[0].at == 10 + (i + 1) * 80000 + MS);
	}
	assert_int_equal(wanem_link_queue(&link, NULL, 10), 1000);
	assert_int_equal(wanem_link_queue(&link, NULL, 10 + 80000 * 400), 600);
	/* An idle line starts at once. */
	wanem_link_in(&link, LEN, &outcome, 1000 * MS);
	assert_true(outcome.copy[0].at == 1001 * MS + 80000);
	wanem_link_free(&link);
	/* No drift if a packet takes no whole number of ns. */
	link_open(&link, 1, "rate=333Mbit,queue=100000");
	for (uint64_t i = 0; i < 99900; i++)
		wanem_link_in(&link, 125, &outcome, 0);
	assert_true(outcome.copy[0].at == UINT64_C(300000000));
	wanem_link_free(&link);
}

static void test_queue_bound(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	uint64_t bytes, sent = 0;

	link_open(&link, 1, "rate=8Mbit,queue=10"); /* 1 ms each */
	for (unsigned i = 0; i < 100; i++) {
		wanem_link_in(&link, LEN, &outcome, 0);
		assert_int_equal(outcome.count, i < 10);
	}
	assert_int_equal(link.queue_max, 10);
	assert_true(link.ctr[WANEM_CTR_drop_queue] == 90);
	wanem_link_in(&link, LEN, &outcome, MS); /* one has left */
	assert_int_equal(outcome.count, 1);
	wanem_link_in(&link, LEN, &outcome, MS);
	assert_int_equal(outcome.count, 0);
	assert_int_equal(outcome.drop, WANEM_CTR_drop_queue);
	wanem_link_free(&link);

	link_open(&link, 1, "rate=8Mbit,queue=10kB");
	for (unsigned i = 0; i < 10000; i++) { /* twice the rate for 5 s */
		wanem_link_in(&link, LEN, &outcome, i * MS / 2);
		sent += outcome.count;
		wanem_link_queue(&link, &bytes, i * MS / 2);
		assert_true(bytes <= 10000);
	}
	assert_in_range(sent, 5000, 5011);
	wanem_link_free(&link);
}

static void test_jitter_uniform_spread(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	uint64_t sum = 0, lo = UINT64_MAX, hi = 0;

	link_open(&link, 1, "delay=10ms,jitter=2ms,keep-order=off");
	for (uint64_t i = 0; i < N; i++) {
		uint64_t d;

		wanem_link_in(&link, LEN, &outcome, i * STEP);
		d = outcome.copy[0].at - i * STEP;
		sum += d;
		lo = d < lo ? d : lo;
		hi = d > hi ? d : hi;
	}
	assert_in_range(lo, 8 * MS, 8 * MS + 10000);
	assert_in_range(hi, 12 * MS - 10000, 12 * MS);
	assert_in_range(sum / N, 10 * MS - 15000, 10 * MS + 15000);
	wanem_link_free(&link);
}

static void test_jitter_normal_spread(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	double sum = 0, squares = 0, mean, dev;
	uint64_t within = 0;

	link_open(&link, 1, "delay=10ms,jitter=1ms,jitter-dist=normal,keep-order=off");
	for (uint64_t i = 0; i < N; i++) {
		double d;

		wanem_link_in(&link, LEN, &outcome, i * STEP);
		d = (double)(outcome.copy[0].at - i * STEP) / 1e6;
		sum += d;
		squares += d * d;
		within += fabs(d - 10) < 1;
	}
	mean = sum / N;
	dev = sqrt(squares / N - mean * mean);
	assert_true(fabs(mean - 10) < 0.015);
	assert_true(fabs(dev - 1) < 0.015);
	assert_true(fabs((double)within / N - 0.683) < 0.01);
	wanem_link_free(&link);
}

/* Counts packets that left before one that arrived earlier. */
static uint64_t count_disorder(const char *settings, uint64_t *late)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	uint64_t latest = 0, disorder = 0;

	link_open(&link, 7, settings);
	for (uint64_t i = 0; i < N; i++) {
		wanem_link_in(&link, LEN, &outcome, i * STEP);
		if (outcome.copy[0].at < latest)
			disorder++;
		else
			latest = outcome.copy[0].at;
	}
	*late = link.ctr[WANEM_CTR_reordered];
	wanem_link_free(&link);
	return disorder;
}

static void test_order_under_jitter(void **state)
{
	uint64_t n;

	assert_true(count_disorder("delay=5ms,jitter=1ms", &n) == 0);
	assert_true(count_disorder("delay=1ms,jitter=5ms,jitter-dist=normal", &n) == 0);
	assert_true(count_disorder("delay=5ms,jitter=1ms,keep-order=off", &n) > N / 2);
}

static void test_reordering(void **state)
{
	uint64_t late, overtaken = count_disorder("delay=5ms,reorder=1%,reorder-delay=1us", &late);

	assert_share(late, N, 0.01);
	/* Held back by just one packet distance: none overtakes. */
	assert_true(overtaken == 0);
	/* 50 packet distances: each of 49 followers that is not held back itself overtakes. */
	overtaken = count_disorder("delay=5ms,reorder=0.01%,reorder-delay=50us", &late);
	assert_share(late, N, 0.0001);
	assert_in_range(overtaken, late * 40, late * 49);
}

static void test_duplication_and_corruption_shares(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;
	uint64_t copies = 0, bad = 0, bits = 0;

	link_open(&link, 3, "delay=1ms,dup=2%,corrupt=0.05,corrupt-bits=4");
	for (uint64_t i = 0; i < N; i++) {
		wanem_link_in(&link, LEN, &outcome, i * STEP);
		copies += outcome.count;
		for (unsigned c = 0; c < outcome.count; c++) {
			bad += outcome.copy[c].corrupt_bits > 0;
			bits += outcome.copy[c].corrupt_bits;
			assert_in_range(outcome.copy[c].corrupt_bits, 0, 4);
			assert_true(outcome.copy[c].at == i * STEP + MS);
		}
	}
	assert_share(copies - N, N, 0.02);
	assert_share(bad, copies, 0.05);
	assert_true(fabs((double)bits / (double)bad - 2.5) < 0.08);
	assert_true(link.ctr[WANEM_CTR_duplicated] == copies - N);
	assert_true(link.ctr[WANEM_CTR_corrupted] == bad);
	wanem_link_free(&link);
}

static unsigned count_flips(const uint8_t *frame, uint32_t len)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < len; i++)
		n += (unsigned)__builtin_popcount(frame[i]);
	return n;
}

static void test_corruption_flips_behind_the_header(void **state)
{
	uint8_t frame[100], ever[100] = {0};

	for (uint64_t key = 0; key < 20000; key++) {
		struct wanem_copy copy = {.corrupt_key = key * 77, .corrupt_bits = 1 + (unsigned)(key % 8)};

		memset(frame, 0, sizeof(frame));
		wanem_copy_corrupt(&copy, frame, sizeof(frame));
		assert_int_equal(count_flips(frame, WANEM_ETH_HLEN), 0);
		assert_int_equal(count_flips(frame, sizeof(frame)), copy.corrupt_bits);
		for (unsigned i = 0; i < sizeof(frame); i++)
			ever[i] |= frame[i];
	}
	for (unsigned i = WANEM_ETH_HLEN; i < sizeof(ever); i++)
		assert_int_equal(ever[i], 0xff);
	/* Nothing, or fewer bytes than configured, to flip. */
	memset(frame, 0, sizeof(frame));
	wanem_copy_corrupt(&(struct wanem_copy){.corrupt_bits = 64}, frame, WANEM_ETH_HLEN);
	assert_int_equal(count_flips(frame, sizeof(frame)), 0);
	wanem_copy_corrupt(&(struct wanem_copy){.corrupt_bits = 64}, frame, WANEM_ETH_HLEN + 1);
	assert_int_equal(count_flips(frame, sizeof(frame)), 8);
}

static void test_outage(void **state)
{
	struct wanem_link link;
	struct wanem_outcome outcome;

	link_open(&link, 1, "delay=1ms");
	wanem_link_outage(&link, 500);
	for (uint64_t t = 0; t < 1000; t++) {
		wanem_link_in(&link, LEN, &outcome, t);
		assert_int_equal(outcome.count, t >= 500);
	}
	assert_true(link.ctr[WANEM_CTR_drop_outage] == 500);
	wanem_link_outage(&link, WANEM_FOREVER);
	assert_true(wanem_link_is_down(&link, UINT64_C(1) << 62));
	wanem_link_in(&link, LEN, &outcome, UINT64_C(1) << 62);
	assert_int_equal(outcome.drop, WANEM_CTR_drop_outage);
	wanem_link_outage(&link, 0);
	assert_false(wanem_link_is_down(&link, 0));
	wanem_link_free(&link);
}

#define ALL                                                                                                  \
	"delay=5ms,jitter=1ms,loss=2%,burst=4,reorder=1%,dup=1%,corrupt=1%,corrupt-bits=3,"                  \
	"keep-order=off"

static void test_same_seed_same_decisions(void **state)
{
	struct wanem_link a, b, c;
	unsigned differ = 0;

	link_open(&a, 42, ALL);
	link_open(&b, 42, ALL);
	link_open(&c, 43, ALL);
	for (uint64_t i = 0; i < N; i++) {
		struct wanem_outcome fa = {0}, fb = {0}, fc = {0};
		uint64_t skew = i * i % 977; /* arrival times do not matter */

		wanem_link_in(&a, LEN, &fa, i * STEP);
		wanem_link_in(&b, LEN, &fb, i * STEP + skew);
		wanem_link_in(&c, LEN, &fc, i * STEP);
		assert_int_equal(fa.count, fb.count);
		for (unsigned k = 0; k < fa.count; k++) {
			assert_true(fa.copy[k].at + skew == fb.copy[k].at);
			assert_true(fa.copy[k].corrupt_key == fb.copy[k].corrupt_key);
			assert_int_equal(fa.copy[k].corrupt_bits, fb.copy[k].corrupt_bits);
		}
		differ += fa.count != fc.count;
	}
	assert_true(differ > N / 100);
	wanem_link_free(&a);
	wanem_link_free(&b);
	wanem_link_free(&c);
}

/* Other settings, a full queue or an outage do not change which packets are lost. */
static void test_decisions_are_independent(void **state)
{
	struct wanem_link a, b;
	unsigned checked = 0;

	link_open(&a, 42, "loss=5%");
	link_open(&b, 42, "loss=5%,delay=3ms,jitter=1ms,corrupt=10%,dup=20%,rate=1Gbit,queue=20");
	for (uint64_t i = 0; i < N; i++) {
		struct wanem_outcome fa, fb;

		if (i == N / 2)
			wanem_link_outage(&b, i * STEP * 10 + 5 * MS);
		wanem_link_in(&a, LEN, &fa, i * STEP * 7);
		wanem_link_in(&b, LEN, &fb, i * STEP * 7);
		if (!fb.count && fb.drop != WANEM_CTR_drop_loss)
			continue;
		checked++;
		assert_int_equal(!fa.count, !fb.count);
	}
	assert_true(checked > N / 3);
	assert_true(b.ctr[WANEM_CTR_drop_queue] > 0 && b.ctr[WANEM_CTR_drop_outage] > 0);
	wanem_link_free(&a);
	wanem_link_free(&b);
}

/* Sends due packets, and checks that sequence numbers are in order without a gap. */
static void drain_in_order(struct wanem_line *line, uint32_t *next, uint64_t now)
{
	struct wanem_pkt pkt;

	while (wanem_line_pop(line, &pkt, now)) {
		uint32_t seq;

		assert_true(pkt.at <= now);
		memcpy(&seq, wanem_line_data(line, pkt.slot), sizeof(seq));
		assert_int_equal(seq, *next);
		(*next)++;
		wanem_line_put(line, pkt.slot);
	}
}

static void test_change_keeps_what_is_queued(void **state)
{
	static const char *const change[] = {"delay=50ms", "delay=1ms", "rate=80Mbit,queue=1000000",
	    "rate=1Gbit", "rate=unlimited", "jitter=1ms", "delay=20ms,jitter=0"};
	struct wanem_link link;
	struct wanem_line line;
	uint32_t next = 0;

	link_open(&link, 1, "delay=10ms,queue=1000000");
	assert_int_equal(wanem_line_init(&line, 60000), 0);
	for (uint32_t i = 0; i < 50000; i++) {
		struct wanem_outcome outcome;
		uint64_t now = (uint64_t)i * 10 * STEP;
		uint32_t slot = 0;

		if (i % 3000 == 2999)
			link_change(&link, change[i / 3000 % 7]);
		wanem_link_in(&link, LEN, &outcome, now);
		assert_int_equal(outcome.count, 1);
		assert_true(wanem_line_get(&line, &slot));
		memcpy(wanem_line_data(&line, slot), &i, sizeof(i));
		wanem_line_push(&line, slot, LEN, outcome.copy[0].at);
		drain_in_order(&line, &next, now);
	}
	assert_true(wanem_line_held(&line) > 0);
	drain_in_order(&line, &next, UINT64_MAX);
	assert_int_equal(next, 50000);
	assert_int_equal(wanem_line_held(&line), 0);
	wanem_line_free(&line);
	wanem_link_free(&link);
}

static void test_line_sorts_and_is_bounded(void **state)
{
	struct wanem_line line;
	struct wanem_pkt pkt;
	uint64_t last_at = 0, last_seq = 0, r = 1;
	uint32_t slot = 0, n = 0;

	assert_int_equal(wanem_line_init(&line, 1000), 0);
	assert_true(wanem_line_next(&line) == UINT64_MAX);
	for (unsigned i = 0; i < 1000; i++) {
		assert_true(wanem_line_get(&line, &slot));
		r = r * 6364136223846793005u + 1442695040888963407u;
		wanem_line_push(&line, slot, 100, r >> 57); /* many ties */
	}
	assert_false(wanem_line_get(&line, &slot));
	assert_int_equal(line.held_max, 1000);
	while (wanem_line_next(&line) != UINT64_MAX) {
		uint64_t at = wanem_line_next(&line);

		assert_false(at && wanem_line_pop(&line, &pkt, at - 1));
		assert_true(wanem_line_pop(&line, &pkt, at));
		assert_true(pkt.at == at && at >= last_at);
		if (n && at == last_at)
			assert_true(pkt.seq > last_seq);
		last_at = at;
		last_seq = pkt.seq;
		wanem_line_put(&line, pkt.slot);
		n++;
	}
	assert_int_equal(n, 1000);
	wanem_line_free(&line);
}

static void test_histogram(void **state)
{
	struct wanem_hist h = {0};

	assert_true(wanem_hist_quantile(&h, 0.5) == 0);
	for (uint64_t v = 1; v <= 100000; v++)
		wanem_hist_add(&h, v);
	assert_true(h.min == 1 && h.max == 100000 && wanem_hist_mean(&h) == 50000);
	assert_in_range(wanem_hist_quantile(&h, 0.5), 50000, 50000 * 17 / 16);
	assert_in_range(wanem_hist_quantile(&h, 0.99), 99000, 100000);
	assert_true(wanem_hist_quantile(&h, 1) == 100000);
	wanem_hist_add(&h, UINT64_MAX);
	assert_true(wanem_hist_quantile(&h, 1) == UINT64_MAX);
}

static void test_units(void **state)
{
	struct wanem_cfg c;
	struct wanem_err err;

	wanem_cfg_default(&c);
	assert_int_equal(
	    wanem_set_list(&c, "delay=1.5ms jitter=250us,loss=0.5%, dup=0.25 rate=1.5Gbit", &err), 0);
	assert_true(c.delay == 1500000 && c.jitter == 250000 && c.rate == 1500000000);
	assert_true(fabs(c.loss - 0.005) < 1e-12 && fabs(c.dup - 0.25) < 1e-12);
	assert_int_equal(
	    wanem_set_list(&c, "queue=256KiB,ge=1%/0.5/90%,keep-order=off,corrupt-bits=8", &err), 0);
	assert_true(c.queue_in_bytes && c.queue == 262144 && !c.keep_order && c.corrupt_bits == 8);
	assert_true(fabs(c.ge_r - 0.5) < 1e-12 && fabs(c.ge_bad - 0.9) < 1e-12);
	assert_int_equal(wanem_set_list(&c, "queue=500,ge=off,rate=unlimited,delay=0", &err), 0);
	assert_true(!c.queue_in_bytes && c.queue == 500 && c.ge_p == 0 && c.rate == 0 && c.delay == 0);
}

static void test_wrong_settings_change_nothing(void **state)
{
	static const char *const wrong[] = {"", "delay", "delay=", "delay=10", "delay=-1ms", "delay=1e3ms",
	    "delay=2h", "delay=61s", "loss=1.5", "loss=101%", "loss=-1%", "loss=nan", "loss=1%%", "rate=5",
	    "rate=1Mbps", "rate=inf", "queue=0", "queue=10MBit", "burst=0.5", "burst=x", "ge=1%", "ge=0/1",
	    "ge=1%/0", "ge=1/1/1/1/1", "keep-order=yes", "jitter-dist=pareto", "corrupt-bits=0",
	    "corrupt-bits=65", "corrupt-bits=1.5", "speed=1", "loss=95%,burst=8", "ge=1%/10%,burst=4,loss=1%",
	    "delay=5ms,loss=200%", "delay=1.2.3ms"};
	struct wanem_cfg c, before;

	wanem_cfg_default(&c);
	before = c;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct wanem_err err = {""};

		if (!wanem_set_list(&c, wrong[i], &err))
			fail_msg("'%s' was taken", wrong[i]);
		assert_true(err.text[0] && !strchr(err.text, '\n'));
		assert_memory_equal(&c, &before, sizeof(c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_neutral_is_transparent),
	    cmocka_unit_test(test_delay_is_exact),
	    cmocka_unit_test(test_independent_loss),
	    cmocka_unit_test(test_bursty_loss),
	    cmocka_unit_test(test_ge_bad_and_good_shares),
	    cmocka_unit_test(test_rate_serialises),
	    cmocka_unit_test(test_queue_bound),
	    cmocka_unit_test(test_jitter_uniform_spread),
	    cmocka_unit_test(test_jitter_normal_spread),
	    cmocka_unit_test(test_order_under_jitter),
	    cmocka_unit_test(test_reordering),
	    cmocka_unit_test(test_duplication_and_corruption_shares),
	    cmocka_unit_test(test_corruption_flips_behind_the_header),
	    cmocka_unit_test(test_outage),
	    cmocka_unit_test(test_same_seed_same_decisions),
	    cmocka_unit_test(test_decisions_are_independent),
	    cmocka_unit_test(test_change_keeps_what_is_queued),
	    cmocka_unit_test(test_line_sorts_and_is_bounded),
	    cmocka_unit_test(test_histogram),
	    cmocka_unit_test(test_units),
	    cmocka_unit_test(test_wrong_settings_change_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
