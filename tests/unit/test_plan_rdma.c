/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA as a carrier that the planner may choose: where it is possible, what go-back-N bears (held to a
 * queue pair that is simulated packet by packet), and how a tunnel moves there and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/plan/decide.h"
#include "tests/lib/rng.h"

#define T    (1000 * RWY_SEC)
#define GBIT UINT64_C(1000000000)
#define BITS (4096.0 * 8)

/* --- go-back-N -------------------------------------------------------------------------------- */
/*
 * A reliable queue pair that always has something to send, in slots of one packet: the receiver drops
 * what is out of order and says so once (NAK), a round trip after the packet was sent; a packet that
 * is lost again waits for the timeout. Returns the share of slots that delivered something.
 */
static double queue_pair(double p, uint64_t rtt, uint64_t timeout, uint64_t slots, uint64_t seed)
{
	const uint64_t lost_of = 1000000000, lost = (uint64_t)(p * (double)lost_of);
	uint64_t next = 0, expected = 0, nak_at = UINT64_MAX, nak_for = 0, advanced = 0, g = seed;
	bool said = false;

	for (uint64_t t = 0; t < slots; t++) {
		if (t >= nak_at) {
			next = nak_for;
			nak_at = UINT64_MAX;
			advanced = t;
		} else if (t > advanced + rtt + timeout) {
			next = expected;
			advanced = t;
		}
		if (rng_next(&g) % lost_of < lost) {
			next++;
			continue;
		}
		if (next == expected) {
			expected++;
			said = false;
			advanced = t;
		} else if (next > expected && !said) {
			said = true;
			nak_at = t + rtt;
			nak_for = expected;
		}
		next++;
	}
	return (double)expected / (double)slots;
}

static void test_model(void **state)
{
	/* packets a second of the queue pair, round trip in ms, loss */
	static const struct {
		double pps, rtt_ms, p;
	} row[] = {{30000, 5, 0}, {30000, 5, 1e-5}, {30000, 5, 1e-4}, {30000, 5, 1e-3}, {100000, 1, 1e-4},
	    {100000, 10, 1e-5}, {100000, 10, 1e-4}, {75000, 50, 2e-6}, {75000, 50, 2e-5}, {10000, 100, 1e-4},
	    {30000, 0.05, 1e-3}};

	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const double s = row[i].rtt_ms / 1000, pps = row[i].pps;
		const double is = queue_pair(
		    row[i].p, (uint64_t)(s * pps), (uint64_t)(0.54 * pps), UINT64_C(20000000), 7 + i);
		const double said = plan_go_back_n(4 * pps * BITS, row[i].p, s, 4);

		if (said > is * 1.06 + 0.002 || said < is * 0.94 - 0.002)
			fail_msg("%.0f packets/s, %.2f ms, %.6f: %.4f of the model, %.4f of the queue pair",
			    pps, row[i].rtt_ms, row[i].p, said, is);
	}
}

/* --- where it is possible --------------------------------------------------------------------- */
static struct plan_caps caps(uint64_t native, uint64_t rdma)
{
	struct plan_caps c = {.tcp_algorithms = PLAN_TCP_BBR};

	c.bandwidth_bps[PLAN_NATIVE] = c.bandwidth_bps[PLAN_TCP] = native;
	c.bandwidth_bps[PLAN_RDMA] = rdma;
	return c;
}

static struct plan_question question(
    struct plan_caps c, enum plan_class cls, uint64_t path_bps, uint64_t rtt_us, uint64_t loss_ppm)
{
	struct plan_question q = {.source = c, .destination = c, .pinned = PLAN_ANY};

	plan_path_default(&q.path);
	q.path.cls = cls;
	for (unsigned k = 0; k < PLAN_CARRIER_COUNT; k++) {
		q.path.by[k].bandwidth_bps = (struct plan_value){path_bps, T, 1};
		q.path.by[k].rtt_us = (struct plan_value){rtt_us, T, 1};
		q.path.by[k].loss_ppm = (struct plan_value){loss_ppm, T, 1};
	}
	return q;
}

static void test_where(void **state)
{
	static const struct {
		const char *name;
		uint64_t native, rdma, path;
		enum plan_class cls;
		uint64_t rtt_us, loss_ppm;
		enum plan_carrier carrier;
		enum plan_limit limit; /* of RDMA */
	} row[] = {{"reserved and clean", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_RESERVED, 5000, 0, PLAN_RDMA,
	               PLAN_BY_SOURCE},
	    {"deterministic and clean", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_DETERMINISTIC, 5000, 0, PLAN_RDMA,
	        PLAN_BY_SOURCE},
	    {"its bandwidth is not known", 9 * GBIT, 9 * GBIT, 0, PLAN_RESERVED, 5000, 0, PLAN_RDMA,
	        PLAN_BY_SOURCE},
	    {"internet", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_INTERNET, 5000, 0, PLAN_NATIVE,
	        PLAN_NOT_RESERVED},
	    {"one gateway has it", 9 * GBIT, 0, 10 * GBIT, PLAN_RESERVED, 5000, 0, PLAN_NATIVE,
	        PLAN_NOT_SOURCE},
	    {"the device sends more than is promised", 9 * GBIT, 9 * GBIT, 9 * GBIT, PLAN_RESERVED, 5000, 0,
	        PLAN_NATIVE, PLAN_NOT_WIDE},
	    {"a little loss, near", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_RESERVED, 100, 100, PLAN_RDMA,
	        PLAN_BY_LOSS},
	    {"the same loss, far", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_RESERVED, 5000, 100, PLAN_NATIVE,
	        PLAN_NOT_CLEAN},
	    {"loss", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_DETERMINISTIC, 5000, 10000, PLAN_NATIVE,
	        PLAN_NOT_CLEAN},
	    {"all is lost", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_RESERVED, 5000, 1000000, PLAN_NATIVE,
	        PLAN_NOT_CLEAN},
	    {"so far that its window is too small", 9 * GBIT, 9 * GBIT, 10 * GBIT, PLAN_RESERVED, 50000, 0,
	        PLAN_NATIVE, PLAN_BY_WINDOW},
	    {"slower than native, but enough is not asked", 9 * GBIT, 5 * GBIT, 10 * GBIT, PLAN_RESERVED,
	        5000, 0, PLAN_NATIVE, PLAN_BY_SOURCE}};
	struct plan_policy p;

	plan_policy_default(&p);
	for (unsigned i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct plan_question q = question(caps(row[i].native, row[i].rdma), row[i].cls, row[i].path,
		    row[i].rtt_us, row[i].loss_ppm);
		struct plan_hyst h = {0};
		struct plan_decision d;

		plan_decide(&d, &q, &p, &h, T);
		if (d.carrier != row[i].carrier || d.alt[PLAN_RDMA].limit != row[i].limit)
			fail_msg("%s: %s; RDMA %s", row[i].name, plan_carrier_name(d.carrier),
			    plan_limit_name(d.alt[PLAN_RDMA].limit));
		assert_true(!d.alt[PLAN_RDMA].goodput_bps == (row[i].limit >= PLAN_NOT_SOURCE));
	}
}

/* The greatest loss that it bears: at the bound go-back-N takes 2 %, whatever rate and distance. */
static void test_bound(void **state)
{
	static const uint64_t rtt[] = {100, 1000, 5000, 20000};
	struct plan_caps c = caps(9 * GBIT, 9 * GBIT);

	c.rdma_window = 1u << 31; /* no bound here */
	for (unsigned i = 0; i < 4; i++) {
		uint64_t ppm = 0;
		struct plan_path path;
		double share;

		for (; ppm < PLAN_PPM; ppm++) {
			path = question(c, PLAN_RESERVED, 10 * GBIT, rtt[i], ppm).path;
			if (!plan_goodput(PLAN_RDMA, &c, &c, &path).bps)
				break;
		}
		assert_true(ppm > 0 && ppm < 1000);
		share = plan_go_back_n(9e9, (double)ppm / 1e6, (double)rtt[i] / 1e6, 4);
		assert_true(share < 0.98);
		share = plan_go_back_n(9e9, (double)(ppm - 1) / 1e6, (double)rtt[i] / 1e6, 4);
		assert_true(share >= 0.98);
	}
}

/* A tunnel over time: there after the path was reserved, back at once when loss appears, there again
 * when it has been clean for as long as `home` says. */
static void test_there_and_back(void **state)
{
	static const struct {
		unsigned at_s;
		enum plan_class cls;
		uint64_t loss_ppm;
		enum plan_carrier carrier;
		enum plan_rule rule;
	} step[] = {{0, PLAN_INTERNET, 0, PLAN_NATIVE, PLAN_RULE_FIRST},
	    {10, PLAN_RESERVED, 0, PLAN_NATIVE, PLAN_RULE_STAYS},
	    {69, PLAN_RESERVED, 0, PLAN_NATIVE, PLAN_RULE_STAYS},
	    {70, PLAN_RESERVED, 0, PLAN_RDMA, PLAN_RULE_HOME},
	    {75, PLAN_RESERVED, 0, PLAN_RDMA, PLAN_RULE_STAYS},
	    {76, PLAN_RESERVED, 1000, PLAN_NATIVE, PLAN_RULE_FAILED},
	    {77, PLAN_RESERVED, 0, PLAN_NATIVE, PLAN_RULE_STAYS},
	    {100, PLAN_RESERVED, 1000, PLAN_NATIVE, PLAN_RULE_STAYS}, /* it begins anew */
	    {101, PLAN_RESERVED, 0, PLAN_NATIVE, PLAN_RULE_STAYS},
	    {160, PLAN_RESERVED, 0, PLAN_NATIVE, PLAN_RULE_STAYS},
	    {161, PLAN_RESERVED, 0, PLAN_RDMA, PLAN_RULE_HOME},
	    {162, PLAN_INTERNET, 0, PLAN_NATIVE, PLAN_RULE_FAILED}};
	struct plan_hyst h = {0};
	struct plan_policy p;

	plan_policy_default(&p);
	for (unsigned i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		struct plan_question q =
		    question(caps(9 * GBIT, 9 * GBIT), step[i].cls, 10 * GBIT, 5000, step[i].loss_ppm);
		struct plan_decision d;

		plan_decide(&d, &q, &p, &h, T + step[i].at_s * RWY_SEC);
		if (d.carrier != step[i].carrier || d.rule != step[i].rule)
			fail_msg(
			    "step %u: %s by %s", i, plan_carrier_name(d.carrier), plan_rule_name(d.rule));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_model),
	    cmocka_unit_test(test_where),
	    cmocka_unit_test(test_bound),
	    cmocka_unit_test(test_there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
