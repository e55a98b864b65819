/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the far gateway waits for a silent host, in two engines: by the tenant's bounds and
 * counts, and as long as the host whose place it takes would have waited.
 */
#include "tests/lib/eng_pair.h"

#include "engine/msg.h"
#include "tests/lib/eng_cm.h"

static void request(unsigned tenant)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = CM_PSN_A,
	    .dqpn = CM_QPN_B,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends_as(0, (uint16_t)tenant, &m, 0);
}

/* Runs until the far gateway gives host B up, at most `most`; the time that this took. */
static rwy_dur given_up_after(rwy_dur most)
{
	const struct eng_counters *c = eng_counters(site[1].e);
	rwy_time begin = eng_now;

	while (!c->conns_failed && eng_now < begin + most)
		eng_pair_run(RWY_MS);
	return eng_now - begin;
}

/* 4.096 us * 2^16 is A's timeout, for B's ACK delay is 15. Three tries may take four times that. */
#define PATIENCE (3 * 4 * ((rwy_dur)4096 << 16))

static void test_cm(void **state)
{
	struct eng_flow_info f;

	eng_cm_connect(0, 2, 3, 14);
	f = eng_pair_flow(1);
	assert_int_equal(f.requester_retry, 2);
	assert_int_equal(f.requester_rnr_retry, 3);
	assert_int_equal(f.requester_patience, PATIENCE);
	assert_int_equal(f.requester_timeout_min, 50 * RWY_MS);
	assert_int_equal(f.requester_timeout_max, RWY_SEC);
	/* In the other direction it is B's own timeout. */
	assert_int_equal(eng_pair_flow(0).requester_patience, 3 * 4 * ((rwy_dur)4096 << 14));
	request(0);
	assert_in_range(given_up_after(60 * RWY_SEC), PATIENCE, PATIENCE + RWY_SEC);
	assert_true(eng_counters(site[1].e)->local_ack_timeout_err > 3);
	assert_string_equal(eng_pair_flow(1).error, "retry count exceeded");
}

/* A host without a timer waits for ever, and so does its gateway. */
static void test_cm_no_timer(void **state)
{
	eng_cm_connect(0, 0, 7, 0);
	assert_int_equal(eng_pair_flow(1).requester_patience, RWY_NEVER);
	request(0);
	assert_int_equal(given_up_after(100 * RWY_SEC), 100 * RWY_SEC);
	assert_true(eng_counters(site[1].e)->host_resent > 90);
}

static void tune_short(struct eng_cfg *c)
{
	c->timers = (struct eng_timers){
	    .timeout_min = 10 * RWY_MS, .timeout_max = 20 * RWY_MS, .retry = 3, .rnr_retry = 1};
}

/* Without CM the tenant's values decide. */
static void test_configured(void **state)
{
	struct eng_flow_info f;

	request(0);
	assert_in_range(given_up_after(RWY_SEC), 70 * RWY_MS, 80 * RWY_MS);
	f = eng_pair_flow(1);
	assert_int_equal(f.requester_retry, 3);
	assert_int_equal(f.requester_rnr_retry, 1);
	assert_int_equal(f.requester_patience, 0);
	assert_int_equal(f.requester_timeout_min, 10 * RWY_MS);
	assert_int_equal(f.requester_timeout_max, 20 * RWY_MS);
}

/* CM's timeout and counts do not change when B is asked again: that is a matter of its LAN. */
static void test_bounds_hold_with_cm(void **state)
{
	eng_cm_connect(0, 7, 7, 18);
	request(0);
	eng_pair_run(RWY_SEC);
	assert_in_range(eng_counters(site[1].e)->host_resent, 45, 55);
	assert_int_equal(eng_counters(site[1].e)->conns_failed, 0);
}

static void test_tenant(void **state)
{
	static const struct eng_timers own = {
	    .timeout_min = 5 * RWY_MS, .timeout_max = 5 * RWY_MS, .retry = 0, .rnr_retry = 0};

	for (unsigned i = 0; i < 2; i++) {
		uint8_t net[4] = {10, (uint8_t)(2 - i), 0, 0};
		struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
		struct eng_tenant_cfg c = {
		    .vni = 9, .custody = 1 << 20, .prefix = &p, .prefixes = 1, .timers = own};

		assert_int_equal(eng_tenant_set(site[i].e, 1, &c, eng_now), 0);
		c.vni = 10;
		c.timers = (struct eng_timers){0}; /* as the plain LAN's */
		assert_int_equal(eng_tenant_set(site[i].e, 2, &c, eng_now), 0);
	}
	request(1);
	assert_in_range(given_up_after(RWY_SEC), 5 * RWY_MS, 10 * RWY_MS);
	assert_int_equal(eng_pair_flow(1).requester_timeout_max, 5 * RWY_MS);
	request(2);
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_counters(site[1].e)->conns_failed, 1);
}

static void set_tenant(unsigned at)
{
	uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
	struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
	const struct eng_tenant_cfg c = {.vni = 9, .custody = 1 << 20, .prefix = &p, .prefixes = 1};

	assert_int_equal(eng_tenant_set(site[at].e, 1, &c, eng_now), 0);
}

/* The far gateway has forgotten all of the tenant: the flow that is opened again says it. */
static void test_told_again(void **state)
{
	struct eng_flow_info f;

	set_tenant(0);
	set_tenant(1);
	eng_cm_connect(1, 2, 3, 14);
	while (!eng_tenant_remove(site[1].e, 1))
		eng_pair_run(RWY_MS);
	eng_pair_run(50 * RWY_MS);
	set_tenant(1);
	request(1);
	eng_pair_run(20 * RWY_MS);
	f = eng_pair_flow(1);
	assert_int_equal(f.requester_patience, PATIENCE);
	assert_int_equal(f.requester_retry, 2);
	assert_int_equal(f.requester_rnr_retry, 3);
}

/* The near gateway tells CM's values to a far gateway that has lost them. */
static void test_open_info(void **state)
{
	static const struct {
		uint8_t sent, got;
	} retry[] = {{0, 0}, {7, 7}, {8, ENG_RETRY_UNKNOWN}, {255, ENG_RETRY_UNKNOWN}},
	  timeout[] = {{0, 0}, {1, 1}, {32, 32}, {33, 0}, {255, 0}};
	struct eng_open o = {.type = ENG_OPEN_REQ}, in;
	uint8_t b[ENG_OPEN_LEN];

	for (unsigned i = 0; i < sizeof(retry) / sizeof(retry[0]); i++) {
		o.retry = o.rnr_retry = retry[i].sent;
		assert_true(eng_open_decode(&in, b, eng_open_encode(b, &o)));
		assert_int_equal(in.retry, retry[i].got);
		assert_int_equal(in.rnr_retry, retry[i].got);
	}
	for (unsigned i = 0; i < sizeof(timeout) / sizeof(timeout[0]); i++) {
		o.ack_timeout = timeout[i].sent;
		assert_true(eng_open_decode(&in, b, eng_open_encode(b, &o)));
		assert_int_equal(in.ack_timeout, timeout[i].got);
	}
}

static int set_up_short(void **state)
{
	int rc;

	eng_pair_tune = tune_short;
	rc = eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return rc;
}

int main(void)
{
#define DEFAULTS(t) cmocka_unit_test_setup_teardown(t, eng_pair_set_up, eng_pair_tear_down)
#define SHORT(t)    cmocka_unit_test_setup_teardown(t, set_up_short, eng_pair_tear_down)
	const struct CMUnitTest tests[] = {DEFAULTS(test_cm), DEFAULTS(test_cm_no_timer),
	    SHORT(test_configured), SHORT(test_bounds_hold_with_cm), DEFAULTS(test_tenant),
	    DEFAULTS(test_told_again), cmocka_unit_test(test_open_info)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
