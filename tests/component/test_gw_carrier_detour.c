/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detours by TCP and QUIC (carrier/lab.h) where a WAN drops much: what is lost again goes by the
 * carrier, all else stays native. With one worker and with two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/component/carrier/lab.h"

static uint64_t opened_before, detoured[FP_SITES];

/* A site lets what is lost `after` times go by the carrier; NATIVE: no detours. */
static void detour(enum fp_site s, enum wan_carrier by, unsigned after)
{
	char why[160] = "";

	if (gw_carrier_detour(cl_app(s), 0, by, after, why, sizeof(why)) != 0)
		fail_msg("refused: %s", why);
}

/* The carrier answers each worker of the site in time. */
static bool ready(enum fp_site s)
{
	for (unsigned i = 0; i < cl_app(s)->workers; i++) {
		struct wan_stats st;

		eng_tunnel_stats(cl_app(s)->worker[i]->eng, 0, &st);
		if (!st.detour_proven)
			return false;
	}
	return cl_info(s).detouring;
}

static bool a_ready(void)
{
	return ready(FP_A);
}

static bool both_ready(void)
{
	return ready(FP_A) && ready(FP_B);
}

static bool more_by_a(void)
{
	return cl_wan_sum(FP_A).retransmit_detour > detoured[FP_A] + 20;
}

static void note_detours(void)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		detoured[s] = cl_wan_sum(s).retransmit_detour;
}

static void none_left(void)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		detour(s, WAN_CARRIER_NATIVE, 0);
	cl_until(cl_both_closed, true);
}

/* Much is lost: what is lost again goes by the carrier, all else stays native. */
static void detours_by(enum wan_carrier by)
{
	struct gw_carrier_info was[2] = {cl_info(FP_A), cl_info(FP_B)};

	if (!cl_both_native()) {
		cl_ask(FP_A, WAN_CARRIER_NATIVE);
		cl_until(cl_both_native, true);
	}
	cl_until(cl_both_closed, true);
	/* One end alone: the other one keeps the connections for it, and lets nothing go by them. */
	detour(FP_A, by, 1);
	cl_until(a_ready, true);
	assert_int_equal(cl_info(FP_A).detour, by);
	assert_int_equal(cl_info(FP_A).via, by);
	cl_carry(2000);
	note_detours();
	cl.dropped_of_8 = 2;
	cl_until(more_by_a, true);
	assert_int_equal(cl_wan_sum(FP_B).retransmit_detour, detoured[FP_B]);
	assert_false(cl_info(FP_B).detouring);
	/* Both (B's hosts only answer, so it has no data to lose). */
	detour(FP_B, by, 1);
	cl_until(both_ready, true);
	note_detours();
	cl_until(more_by_a, true);
	assert_true(cl_both_native());
	assert_int_equal(cl_info(FP_A).c.detours_began, was[FP_A].c.detours_began + 1);
	assert_int_equal(cl_info(FP_A).c.fallbacks, was[FP_A].c.fallbacks);
	cl.dropped_of_8 = 0;
	cl_check_hosts();
}

static bool opened_anew(void)
{
	return cl_info(FP_A).c.detours_began > opened_before && both_ready();
}

static void test_detour(void **state)
{
	detours_by(WAN_CARRIER_TCP);
	/* A connection dies with what took the detour: traffic goes on, and new ones are opened. */
	cl.dropped_of_8 = 2;
	for (unsigned i = 0; i < 3; i++) {
		opened_before = cl_info(FP_A).c.detours_began;
		cl_kill_one((enum fp_site)(i % 2));
		cl_until(opened_anew, true);
		note_detours();
		cl_until(more_by_a, true);
	}
	/* Everything by TCP, and back: then detours again. */
	opened_before = cl_info(FP_A).c.detours_began;
	cl_ask(FP_A, WAN_CARRIER_TCP);
	cl_until(cl_both_tcp, true);
	assert_false(cl_info(FP_A).detouring);
	cl_ask(FP_B, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(opened_anew, true);
	cl.dropped_of_8 = 0;
	none_left();
	cl_check_hosts();
}

static void test_detour_quic(void **state)
{
	detours_by(WAN_CARRIER_QUIC);
	none_left();
	cl_check_hosts();
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_detour),
	    cmocka_unit_test(test_detour_quic),
	    cmocka_unit_test(cl_test_end),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return cl_main(argc, argv, tests);
}
