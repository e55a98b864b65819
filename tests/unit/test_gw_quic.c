/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway/carrier/quic.h between two ends (tests/lib/quic/lab.h): what arrives in spite of loss and
 * delay, how much is under way, and how connections end: a link that dies, an end that begins anew;
 * an address that changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/lib/quic/lab.h"

/* --- data ------------------------------------------------------------------------------------- */
static void test_clean(void **state)
{
	struct gw_quic_info i;

	(void)state;
	ql_move(500000);
	gw_quic_info(ql.site[QL_A].conn, &i);
	assert_in_range(i.min_rtt, 2 * QL_DELAY, 3 * QL_DELAY);
	assert_true(i.srtt >= i.min_rtt && i.window > 0);
}

/* The share that an end says it lost. */
static unsigned said_lost_ppm(unsigned i)
{
	struct gw_quic_info q;

	gw_quic_info(ql.site[i].conn, &q);
	assert_true(q.pieces > 1000);
	return (unsigned)(q.lost * 1000000 / q.pieces);
}

static void test_loss(void **state)
{
	(void)state;
	ql_move(300000);
	assert_int_equal(said_lost_ppm(QL_A), 0);
	ql_tear_down(NULL);
	ql.loss_ppm = 20000;
	ql_move(300000);
	for (unsigned i = 0; i < QL_SITES; i++)
		assert_in_range(said_lost_ppm(i), ql.loss_ppm * 7 / 10, ql.loss_ppm * 13 / 10);
	ql.cfg.cc = GW_QUIC_CUBIC;
	ql_tear_down(NULL);
	ql_move(100000);
}

static void test_jumbo(void **state)
{
	(void)state;
	ql.cfg.payload = 8900;
	ql_move(300000);
	/* Fewer datagrams than small ones would need. */
	assert_true(gw_quic_end_counters(ql.site[QL_A].end)->tx_datagrams < 9u * 300000 / 1452);
}

/* What one stream lost does not hold up another. */
static void test_streams(void **state)
{
	uint8_t b[1000];
	struct iovec v = {b, sizeof(b)};

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	(void)ql_run(ql_never, 0, RWY_SEC);
	for (unsigned k = 1; k <= 2; k++) {
		for (size_t i = 0; i < sizeof(b); i++)
			b[i] = ql_byte(k, i);
		ql.drop_next = k == 1;
		assert_int_equal(gw_quic_send(ql.site[QL_A].conn, k, &v, 1), 0);
		gw_quic_write(ql.site[QL_A].end, ql.now);
		ql.now += RWY_MS;
	}
	(void)ql_run(ql_never, 0, QL_DELAY);
	assert_int_equal(ql.site[QL_B].got[1], 0);
	assert_int_equal(ql.site[QL_B].got[2], sizeof(b));
	(void)ql_run(ql_never, 0, RWY_SEC);
	assert_int_equal(ql.site[QL_B].got[1], sizeof(b));
	assert_int_equal(ql.site[QL_B].wrong, 0);
}

/* Memory is bounded: nobody may have more under way than the window. */
static void test_window(void **state)
{
	struct gw_quic_info i;
	uint64_t sum = 0;

	(void)state;
	ql.cfg.window = 100000;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	ql.cut = true;
	(void)ql_run(ql_never, 1u << 20, RWY_SEC);
	gw_quic_info(ql.site[QL_A].conn, &i);
	assert_in_range(i.unacked, 90000, 100000);
	for (unsigned k = 0; k < ql.cfg.streams; k++)
		sum += ql.site[QL_A].put[k];
	assert_in_range(sum, 90000, 100000);
	ql.cut = false;
	assert_true(ql_run(ql_all_got, 200000, QL_TO_END));
}

/* --- ends of connections ---------------------------------------------------------------------- */
static bool a_closed(uint64_t unused)
{
	(void)unused;
	return ql.site[QL_A].closed;
}

static void test_silent(void **state)
{
	rwy_time since;

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	assert_false(ql_run(a_closed, 0, 30 * RWY_SEC)); /* idle, but both are there */
	ql.cut = true;
	since = ql.now;
	assert_true(ql_run(a_closed, 0, QL_TO_END));
	assert_string_equal(ql.site[QL_A].why, "the peer is silent");
	assert_in_range(ql.now - since, 3 * RWY_SEC, 7 * RWY_SEC);
	assert_int_equal(gw_quic_end_counters(ql.site[QL_A].end)->lost, 1);
	assert_int_equal(gw_quic_next(ql.site[QL_A].end), RWY_NEVER);
}

static void test_close(void **state)
{
	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	gw_quic_close(ql.site[QL_B].conn, "the tunnel is removed");
	ql.site[QL_B].conn = NULL;
	assert_true(ql_run(a_closed, 0, RWY_SEC));
	assert_string_equal(ql.site[QL_A].why, "the peer closed the connection: the tunnel is removed");
	assert_false(ql.site[QL_B].closed);
}

/* B begins anew without its connections: A learns it at once, not after the idle time. */
static void test_restart(void **state)
{
	rwy_time since;

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	(void)ql_run(ql_never, 0, RWY_SEC);
	gw_quic_end_free(ql.site[QL_B].end);
	ql.site[QL_B].conn = NULL;
	ql_end_make(QL_B, "b", "ca", NULL);
	since = ql.now;
	ql_feed(&ql.site[QL_A], 10000);
	assert_true(ql_run(a_closed, 10000, QL_TO_END));
	assert_string_equal(ql.site[QL_A].why, "the peer does not know the connection any more");
	assert_true(ql.now - since < RWY_SEC);
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->tx_resets, 1);
}

static void test_migration(void **state)
{
	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_all_got, 20000, QL_TO_END));
	ql.site[QL_A].addr.port = 5555; /* a translator on the path forgot it */
	ql.site[QL_A].addr.ip.b[15] = 77;
	assert_true(ql_run(ql_all_got, 100000, QL_TO_END));
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->migrated, 1);
	assert_int_equal(gw_quic_remote(ql.site[QL_B].conn).port, 5555);
	assert_int_equal(ql.site[QL_B].wrong, 0);
	assert_false(ql.site[QL_A].closed || ql.site[QL_B].closed);
}

/* --- program ---------------------------------------------------------------------------------- */
static int tests(void)
{
	const struct CMUnitTest t[] = {QL_TEST(test_clean), QL_TEST(test_loss), QL_TEST(test_jumbo),
	    QL_TEST(test_streams), QL_TEST(test_window), QL_TEST(test_silent), QL_TEST(test_close),
	    QL_TEST(test_restart), QL_TEST(test_migration)};

	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(void)
{
	return ql_main(NULL, tests);
}
