/* SPDX-License-Identifier: Apache-2.0 */
/* Forward error correction: times of messages with and without it, in the mean and in the tail, and
 * the bytes that it costs. test_wan_fec.c has the mechanism. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/lib/long_case.h"
#include "tests/lib/wan_fec_pair.h"

static int by_size(const void *a, const void *b)
{
	rwy_dur x = *(const rwy_dur *)a, y = *(const rwy_dur *)b;

	return x < y ? -1 : x > y;
}

struct row {
	double mean, p99, p999, extra; /* relative to no loss; share of extra bytes */
};

static struct row measure(
    enum wan_fec_mode fec, uint64_t bufs, unsigned messages, uint32_t loss, uint32_t burst)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;
	rwy_dur *took = malloc(messages * sizeof(*took)), base;
	double sum = 0;

	fec_pair_cfg(&c);
	c.fec = fec;
	fec_pair_begin(&p, &c, &l, FEC_LEN, 7);
	base = fec_pair_message(&p, bufs) + FEC_RTT / 2; /* until the sender knows */
	if (burst > 1) {
		p.link[0].cfg.burst_ppm = loss / burst;
		p.link[0].cfg.burst_len = burst;
	} else {
		p.link[0].cfg.loss_ppm = loss;
	}
	for (unsigned i = 0; i < messages / 4 + 1 || fec_pair_path(&p, 0)->fec.est.n < 40000; i++)
		fec_pair_message(&p, bufs); /* it learns */
	struct wan_stats s0, s1;

	wan_get_stats(p.end[0].t, &s0);
	for (unsigned i = 0; i < messages; i++) {
		took[i] = fec_pair_message(&p, bufs) + FEC_RTT / 2;
		sum += (double)took[i];
	}
	wan_get_stats(p.end[0].t, &s1);
	qsort(took, messages, sizeof(*took), by_size);
	double data = (double)(messages * bufs) * FEC_LEN;
	unsigned at99 = (messages * 99 + 99) / 100 - 1, at999 = (messages * 999 + 999) / 1000 - 1;
	struct row r = {.mean = sum / messages / (double)base,
	    .p99 = (double)took[at99] / (double)base,
	    .p999 = (double)took[at999] / (double)base,
	    .extra = ((double)(s1.c.repair_bytes - s0.c.repair_bytes) +
	                 (double)(s1.c.tx_retransmit - s0.c.tx_retransmit) * FEC_LEN) /
	             data};

	print_message(
	    "%s %6llu KiB x %5u loss %5u ppm burst %u: mean %.4f p99 %.4f p99.9 %.4f extra %.2f %%\n",
	    fec == WAN_FEC_AUTO ? "fec" : "off", (unsigned long long)bufs * 4, messages, loss, burst, r.mean,
	    r.p99, r.p999, r.extra * 100);
	free(took);
	fec_pair_end(&p);
	return r;
}

/*
 * Losses cost no round trip, in the mean and in the tail. Without repairs they do: one row checks
 * that. Of forty messages p99 is the longest: 1.4 % of those of the last row wait for a repeat that
 * was lost, too.
 */
static void test_tail(void **state)
{
	static const struct {
		uint64_t bufs;
		unsigned messages;
		uint32_t loss, burst;
		double mean, p99, extra;
	} row[] = {
	    {32, 3000, 1000, 1, 1.03, 1.05, 0.16},
	    {32, 3000, 10000, 1, 1.03, 1.05, 0.16},
	    {1024, 300, 100, 1, 1.03, 1.05, 0.01},
	    {1024, 300, 1000, 1, 1.03, 1.05, 0.04},
	    {1024, 300, 10000, 1, 1.03, 1.05, 0.08},
	    {4096, 100, 1000, 8, 1.03, 1.05, 0.04},
	    {4096, 200, 10000, 8, 1.035, 1.05, 0.08},
	    {16384, 40, 1000, 1, 1.03, 1.35, 0.04},
	};

	long_case();
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct row r = measure(WAN_FEC_AUTO, row[i].bufs, row[i].messages, row[i].loss, row[i].burst);

		assert_true(r.mean <= row[i].mean);
		assert_true(r.p99 <= row[i].p99);
		assert_true(r.extra <= row[i].extra);
	}
	assert_true(measure(WAN_FEC_OFF, row[1].bufs, row[1].messages, row[1].loss, row[1].burst).p99 > 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_tail)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
