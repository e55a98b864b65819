/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of tenants, and those that CM made, at a pair of gateways (engine/standby.h). Each
 * gateway has another index for a tenant.
 */
#include "tests/lib/eng_cm.h"
#include "tests/lib/eng_site_hosts.h"
#include "tests/lib/roce_pkt.h"

#define SITE 1 /* tenants with ack mode `site`, and with `near` */
#define NEAR 2

static const struct sp_host *a = &sp_host[SP_SITE_A];
static bool knows_site[SP_GATEWAYS]; /* the gateway has tenant SITE from its start */
static enum eng_ack_mode site_mode = ENG_ACK_SITE;

static void give(unsigned gw, uint32_t tenant)
{
	struct eng_prefix p = {
	    .addr = rwy_ip_from4((uint8_t[]){10, gw == SP_B ? 1 : 2, 0, 0}), .len = 120, .tunnel = SP_WAN};
	struct eng_tenant_cfg c = {.vni = 100 + tenant,
	    .ack_mode = tenant == SITE ? site_mode : ENG_ACK_NEAR,
	    .custody = 1 << 20,
	    .share = {.weight = 1},
	    .prefix = &p,
	    .prefixes = 1};

	assert_int_equal(eng_tenant_set(sp_gw[gw].e, sp_index(gw, tenant), &c, sp_now), 0);
}

static void started(unsigned gw)
{
	give(gw, NEAR);
	if (knows_site[gw])
		give(gw, SITE);
}

static int tenants_set_up(void **state)
{
	int r;

	for (unsigned i = 0; i < SP_GATEWAYS; i++)
		knows_site[i] = true;
	sp_started = started;
	r = sp_set_up_paired(state);
	sh_begin();
	return r;
}

/* --- tenants ------------------------------------------------------------------------------------ */

static void test_tenant(void **state)
{
	sh_tenant = SITE;
	sh_connect();
	assert_int_equal(a->ack.tenant, SITE);
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	sh_request(7);
	assert_true(sh_acked(7));
	sh_active_dies();
	sh_taken(1);
	sh_all_executed(8);
	assert_int_equal(a->ack.tenant, SITE);
	assert_int_equal(a->ack.from, SP_A2);
	sh_request(8);
	assert_true(sh_acked(8));
	assert_int_equal(a->ack.msn, 4);
	sh_all_executed(9);
	assert_int_equal(a->naks, 0);
}

/* The mode of each tenant counts. */
static void test_modes(void **state)
{
	sh_tenant = NEAR;
	sh_connect();
	sp_link(SP_1_TO_2, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	assert_int_equal(sp_counters(SP_A1)->copies_sent, 0);
	sp_link(SP_1_TO_2, SP_GOOD);
	sp_run(SH_SOON);
	sh_begin();
	sh_tenant = SITE;
	sh_connect();
	assert_int_equal(sp_counters(SP_A1)->copies_sent, 1);
	sp_link(SP_1_TO_2, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(5));
	sp_link(SP_1_TO_2, SP_GOOD);
	sp_run(SH_SOON);
	assert_true(sh_acked(6));
}

static int far_set_up(void **state)
{
	site_mode = ENG_ACK_FAR;
	return tenants_set_up(state);
}

static int near_set_up(void **state)
{
	site_mode = ENG_ACK_NEAR;
	return tenants_set_up(state);
}

static void becomes_site(void)
{
	site_mode = ENG_ACK_SITE;
	give(SP_A1, SITE);
	give(SP_A2, SITE);
}

/* The last request is under way when the mode changes: copies begin without another one. */
static void test_far_becomes_site(void **state)
{
	sh_tenant = SITE;
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(5));
	becomes_site();
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(SH_SOON);
	assert_true(sh_acked(6));
	sp_run(SH_SOON);
	assert_int_equal(sp_bytes(SP_A2, ENG_MEM_STORED), 0);
	sh_active_dies();
	sh_taken(1);
	sh_request(7);
	assert_true(sh_acked(7));
	sh_all_executed(8);
	assert_int_equal(a->naks, 0);
}

/* Requests that host A had an ACK for before are handed over only when the standby has them. */
static void test_near_becomes_site(void **state)
{
	struct eng_settle_info i;

	sh_tenant = SITE;
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	becomes_site();
	sp_cable(SP_HELD);
	eng_settle_begin(sp_gw[SP_A1].e, sp_now);
	sp_run(SH_SOON);
	eng_settle_get(sp_gw[SP_A1].e, &i);
	assert_int_equal(i.flows, 1);
	assert_int_equal(i.kept, 0);
	sp_cable(SP_GOOD);
	sp_run(SH_SOON);
	eng_settle_get(sp_gw[SP_A1].e, &i);
	assert_int_equal(i.flows, 0);
	assert_int_equal(i.kept, 1);
	assert_true(sp_bytes(SP_A2, ENG_MEM_STORED) > 0);
	sh_active_dies();
	sh_taken(1);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(SH_SOON);
	sh_all_executed(7);
}

static int unknown_set_up(void **state)
{
	int r;

	for (unsigned i = 0; i < SP_GATEWAYS; i++)
		knows_site[i] = i != SP_A2;
	sp_started = started;
	r = sp_set_up_paired(state);
	sh_begin();
	return r;
}

/* What the standby stores names a tenant by its VNI: it may come to know it later. */
static void test_tenant_comes_late(void **state)
{
	sh_tenant = SITE;
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	give(SP_A2, SITE);
	sh_active_dies();
	sh_taken(1);
	sh_all_executed(7);
	sh_request(7);
	assert_true(sh_acked(7));
	assert_int_equal(a->naks, 0);
}

/* A host with an ACK for a request that is lost gets an error. */
static void test_tenant_comes_too_late(void **state)
{
	sh_tenant = SITE;
	sh_connect();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(6);
	assert_true(sh_acked(6));
	sh_active_dies();
	sh_taken(0);
	give(SP_A2, SITE);
	for (unsigned i = 0; i < 20 && !a->naks; i++) {
		sh_request(7);
		sp_run(RWY_SEC);
	}
	assert_true(a->naks > 0);
	assert_int_equal(sh_executed(7), 0);
	assert_true(sh_acked(6));
}

/* --- CM ----------------------------------------------------------------------------------------- */

static void cm_req(void)
{
	uint8_t ip[TP_MAX];

	sp_host_sends_bytes(SP_SITE_A, 0, ip, eng_cm_make_req(ip, 7, 7, 14));
	sp_run(SH_SOON);
}

static void cm_rep(void)
{
	uint8_t ip[TP_MAX];

	sp_host_sends_bytes(SP_SITE_B, 0, ip, eng_cm_make_rep(ip, 7));
	sp_run(SH_SOON);
}

static int cm_set_up(void **state)
{
	int r = sp_set_up_paired(state);

	sh_begin();
	sh_b.epsn = CM_PSN_A;
	return r;
}

/* CM names the QPNs: the first request is acknowledged before the far host has answered. */
static void test_cm(void **state)
{
	cm_req();
	cm_rep();
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(CM_PSN_A);
	assert_true(sh_acked(CM_PSN_A));
	assert_int_equal(sh_b.done, 0);
	sh_request(CM_PSN_A + 1);
	sh_active_dies();
	sh_taken(1);
	assert_int_equal(sh_b.done, 2);
	assert_true(sh_acked(CM_PSN_A + 1));
	sh_request(CM_PSN_A + 2);
	assert_true(sh_acked(CM_PSN_A + 2));
	assert_int_equal(a->ack.msn, 3);
	assert_int_equal(sh_b.done, 3);
	assert_int_equal(a->naks, 0);
}

/* It has no request yet: the standby knows its first PSN. */
static void test_cm_before_first_request(void **state)
{
	cm_req();
	cm_rep();
	sh_active_dies();
	sh_taken(1);
	sp_link(SP_A_TO_B, SP_HELD);
	sh_request(CM_PSN_A);
	assert_true(sh_acked(CM_PSN_A));
	assert_int_equal(sh_b.done, 0);
	sp_link(SP_A_TO_B, SP_GOOD);
	sp_run(SH_SOON);
	assert_int_equal(sh_b.done, 1);
	assert_int_equal(a->naks, 0);
}

/* The active gateway dies before host B accepts the connection: it is learned from packets. */
static void test_cm_in_the_middle(void **state)
{
	cm_req();
	sh_active_dies();
	sh_taken(0);
	cm_rep();
	for (unsigned i = 0; i < 5 && !a->acks; i++) {
		sh_request(CM_PSN_A);
		sp_run(RWY_SEC);
	}
	assert_true(sh_acked(CM_PSN_A));
	assert_int_equal(sh_b.done, 1);
	sh_request(CM_PSN_A + 1);
	assert_true(sh_acked(CM_PSN_A + 1));
	assert_int_equal(a->naks, 0);
}

#define CASE(t, set_up) cmocka_unit_test_setup_teardown(t, set_up, sp_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_tenant, tenants_set_up),
	    CASE(test_modes, tenants_set_up),
	    CASE(test_far_becomes_site, far_set_up),
	    CASE(test_near_becomes_site, near_set_up),
	    CASE(test_tenant_comes_late, unknown_set_up),
	    CASE(test_tenant_comes_too_late, unknown_set_up),
	    CASE(test_cm, cm_set_up),
	    CASE(test_cm_before_first_request, cm_set_up),
	    CASE(test_cm_in_the_middle, cm_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
