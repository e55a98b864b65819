/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may begin an RC connection, in two engines: any host, those that CM connected, those of pairs
 * that the controller names. What is refused costs no memory and nothing on the WAN.
 */
#include "tests/lib/eng_pair.h"

#include "tests/lib/eng_cm.h"
#include "engine/steering.h"

static void set_mode(unsigned at, enum eng_admission m)
{
	uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
	struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
	const struct eng_tenant_cfg c = {
	    .vni = 9, .custody = 1 << 20, .prefix = &p, .prefixes = 1, .admission = m};

	assert_int_equal(eng_tenant_set(site[at].e, 1, &c, eng_now), 0);
}

static void set_modes(enum eng_admission a, enum eng_admission b)
{
	set_mode(0, a);
	set_mode(1, b);
}

static const struct eng_counters *counts(unsigned at)
{
	return eng_counters(site[at].e);
}

static void send(unsigned from, uint8_t opcode, uint32_t dqpn, roce_psn psn)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = psn,
	    .dqpn = dqpn,
	    .ack_req = true,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .payload_len = opcode == ROCE_RC_ACK ? 0 : 64,
	    .src = {10, (uint8_t)(1 + from), 0, 3},
	    .dst = {10, (uint8_t)(2 - from), 0, 3}};

	eng_host_sends_as(from, 1, &m, 0);
	eng_pair_run(5 * RWY_MS);
}

/* A request of host A to host B, B's ACK, and A's. */
static void exchange(roce_psn psn)
{
	unsigned requests = site[1].of[1].requests, acks = site[0].of[1].acks;

	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, psn);
	assert_int_equal(site[1].of[1].requests, requests + 1);
	send(1, ROCE_RC_ACK, CM_QPN_A, psn);
	assert_int_equal(site[0].of[1].acks, acks + 1);
}

/* Many QPNs that nobody has. */
static void flood(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
		    .psn = i,
		    .dqpn = 0x1000 + i,
		    .payload_len = 64,
		    .src = {10, 1, 0, 3},
		    .dst = {10, 2, 0, 3}};

		eng_host_sends_as(0, 1, &m, 0);
	}
	eng_pair_run(5 * RWY_MS);
}

static void assert_no_state(void)
{
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(eng_flow_count(site[i].e), 0);
		assert_int_equal(counts(i)->conns_opened, 0);
		assert_int_equal(eng_custody_bytes(site[i].e), 0);
		assert_int_equal(site[i].bufs, 0);
	}
	assert_int_equal(site[1].of[1].requests, 0);
}

static void test_open(void **state)
{
	set_modes(ENG_ADMIT_OPEN, ENG_ADMIT_OPEN);
	exchange(5);
	assert_int_equal(counts(0)->drop_not_admitted, 0);
}

static void test_cm(void **state)
{
	set_modes(ENG_ADMIT_CM, ENG_ADMIT_CM);
	flood(1000);
	assert_no_state();
	assert_int_equal(counts(0)->drop_not_admitted, 1000);
	eng_cm_connect(1, 7, 7, 14);
	exchange(CM_PSN_A);
	/* The same hosts, but another QPN. */
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B + 1, CM_PSN_A);
	assert_int_equal(counts(0)->drop_not_admitted, 1001);
	/* B's requests. */
	send(1, ROCE_RC_SEND_ONLY, CM_QPN_A, CM_PSN_B);
	assert_int_equal(site[0].of[1].requests, 1);
	assert_int_equal(counts(1)->drop_not_admitted, 0);
}

/* A connection that CM opened may be idle for longer than it is remembered. */
static void test_cm_idle(void **state)
{
	set_modes(ENG_ADMIT_CM, ENG_ADMIT_CM);
	eng_cm_connect(1, 7, 7, 14);
	exchange(CM_PSN_A);
	eng_pair_run(15 * RWY_SEC);
	assert_int_equal(eng_flow_count(site[0].e), 0);
	assert_int_equal(eng_flow_count(site[1].e), 0);
	exchange(CM_PSN_A + 1);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B + 1, 5);
	assert_int_equal(counts(0)->drop_not_admitted, 1);
	eng_cm_dreq(1);
	eng_pair_run(20 * RWY_SEC);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, CM_PSN_A + 2);
	assert_int_equal(counts(0)->drop_not_admitted, 2);
}

/* What CM ended is refused once it is forgotten. */
static void test_cm_ended(void **state)
{
	set_modes(ENG_ADMIT_CM, ENG_ADMIT_CM);
	eng_cm_connect(1, 7, 7, 14);
	exchange(CM_PSN_A);
	eng_cm_dreq(1);
	eng_pair_run(20 * RWY_SEC);
	assert_int_equal(eng_flow_count(site[0].e), 0);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, CM_PSN_A + 1);
	assert_int_equal(counts(0)->drop_not_admitted, 1);
	assert_int_equal(eng_flow_count(site[0].e), 0);
}

/* One line a second names a host; it has the number of packets since the line before. */
static void test_log(void **state)
{
	set_modes(ENG_ADMIT_CM, ENG_ADMIT_CM);
	flood(100);
	assert_int_equal(site[0].warnings, 1);
	assert_string_equal(site[0].warning,
	    "host=10.1.0.3 destination=10.2.0.3 qpn=4096 vni=9 "
	    "event=\"RC refused: CM did not open the connection\" packets=1");
	eng_pair_run(RWY_SEC);
	flood(1);
	assert_int_equal(site[0].warnings, 2);
	assert_non_null(strstr(site[0].warning, "packets=100"));
}

/* The gateway beside host B refuses what a more liberal one beside host A lets through. */
static void test_far_gateway(void **state)
{
	set_modes(ENG_ADMIT_OPEN, ENG_ADMIT_CM);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, 5);
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(counts(1)->drop_not_admitted, 1);
	assert_int_equal(counts(1)->conns_opened, 0);
	assert_int_equal(site[1].of[1].requests, 0);
	/* The near gateway forgets it, too. */
	assert_int_equal(eng_flow_count(site[0].e), 0);
	assert_int_equal(site[0].bufs, 0);
	eng_cm_connect(1, 7, 7, 14);
	exchange(CM_PSN_A);
}

/* --- the controller's pairs ----------------------------------------------------------------------- */

static struct eng_steering *steering[2];

/* Both gateways get the pair in both directions, with these QPNs; 0: any. */
static void permit(uint32_t qpn_a, uint32_t qpn_b)
{
	const uint8_t a[4] = {10, 1, 0, 3}, b[4] = {10, 2, 0, 3};
	const struct eng_steer_cfg v[] = {
	    {rwy_ip_from4(a), rwy_ip_from4(b), .vni = 9, .dqpn = qpn_b, .tunnel = ENG_STEER_ANY},
	    {rwy_ip_from4(b), rwy_ip_from4(a), .vni = 9, .dqpn = qpn_a, .tunnel = ENG_STEER_ANY}};

	for (unsigned i = 0; i < 2; i++) {
		struct eng_steering *w;

		assert_int_equal(eng_steering_new(&w, v, 2), 0);
		eng_steering_set(site[i].e, w);
		eng_steering_free(steering[i]);
		steering[i] = w;
	}
}

static void test_controller(void **state)
{
	set_modes(ENG_ADMIT_CONTROLLER, ENG_ADMIT_CONTROLLER);
	flood(1000);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, 5);
	assert_no_state();
	assert_int_equal(counts(0)->drop_not_admitted, 1001);
	assert_non_null(strstr(site[0].warning, "the controller did not authorise the connection"));
	permit(0, 0);
	exchange(5);
	assert_int_equal(counts(1)->drop_not_admitted, 0);
}

static void test_controller_qpn(void **state)
{
	set_modes(ENG_ADMIT_CONTROLLER, ENG_ADMIT_CONTROLLER);
	permit(CM_QPN_A, CM_QPN_B);
	exchange(5);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B + 1, 5);
	assert_int_equal(counts(0)->drop_not_admitted, 1);
	send(1, ROCE_RC_SEND_ONLY, CM_QPN_A, 70);
	assert_int_equal(site[0].of[1].requests, 1);
}

/* CM alone is not enough: its connection is not learned, and its requests are refused. */
static void test_controller_cm(void **state)
{
	set_modes(ENG_ADMIT_CONTROLLER, ENG_ADMIT_CONTROLLER);
	eng_cm_connect(1, 7, 7, 14);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B, CM_PSN_A);
	assert_no_state();
	assert_int_equal(counts(0)->drop_not_admitted, 1);
}

/* A connection that exists goes on when its pair is withdrawn. */
static void test_controller_withdraws(void **state)
{
	set_modes(ENG_ADMIT_CONTROLLER, ENG_ADMIT_CONTROLLER);
	permit(0, 0);
	exchange(5);
	for (unsigned i = 0; i < 2; i++)
		eng_steering_set(site[i].e, NULL);
	exchange(6);
	send(0, ROCE_RC_SEND_ONLY, CM_QPN_B + 1, 5);
	assert_int_equal(counts(0)->drop_not_admitted, 1);
}

/* A pair that is only admitted has the tunnel of its prefix; one with a tunnel keeps that. */
static void test_steering(void **state)
{
	const uint8_t a[4] = {10, 1, 0, 3}, b[4] = {10, 2, 0, 3};
	const struct eng_steer_cfg v[] = {
	    {rwy_ip_from4(a), rwy_ip_from4(b), .vni = 9, .dqpn = 7, .tunnel = 0},
	    {rwy_ip_from4(a), rwy_ip_from4(b), .vni = 9, .dqpn = 7, .tunnel = ENG_STEER_ANY}};

	set_modes(ENG_ADMIT_CONTROLLER, ENG_ADMIT_OPEN);
	assert_int_equal(eng_steering_new(&steering[0], v, 2), 0);
	eng_steering_set(site[0].e, steering[0]);
	send(0, ROCE_RC_SEND_ONLY, 7, 5);
	assert_int_equal(counts(0)->drop_not_admitted, 0);
	assert_int_equal(site[1].of[1].requests, 1);
}

static void tune_forgetful(struct eng_cfg *c)
{
	c->idle_expiry = 2 * RWY_SEC;
}

static int set_up_forgetful(void **state)
{
	int rc;

	eng_pair_tune = tune_forgetful;
	rc = eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return rc;
}

static int tear_down(void **state)
{
	int rc = eng_pair_tear_down(state);

	for (unsigned i = 0; i < 2; i++) {
		eng_steering_free(steering[i]);
		steering[i] = NULL;
	}
	return rc;
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, eng_pair_set_up, tear_down)
	const struct CMUnitTest tests[] = {T(test_open), T(test_cm),
	    cmocka_unit_test_setup_teardown(test_cm_idle, set_up_forgetful, tear_down), T(test_cm_ended),
	    T(test_log), T(test_far_gateway), T(test_controller), T(test_controller_qpn),
	    T(test_controller_cm), T(test_controller_withdraws), T(test_steering)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
