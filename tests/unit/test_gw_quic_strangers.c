/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway/carrier/quic.h and packets of strangers (tests/lib/quic/lab.h): junk, handshakes that
 * nobody ends, a peer that begins again and again, another version, and addresses that must be
 * proved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/quic/lab.h"

static void junk(const struct gw_quic_addr *from, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1); /* exact size: the sanitizer sees a read beyond it */

	memcpy(copy, p, n);
	gw_quic_read(ql.site[QL_B].end, from, copy, n, 0, ql.now);
	free(copy);
}

static void test_junk(void **state)
{
	const struct gw_quic_counters *c;
	uint8_t b[1500];

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	assert_true(ql_run(ql_all_got, 20000, QL_TO_END));
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = ql_draw() % sizeof(b);

		for (size_t k = 0; k < n; k++)
			b[k] = (uint8_t)ql_draw();
		junk(&ql.site[QL_A].addr, b, n);
	}
	/* Real ones, damaged or cut. */
	ql_feed(&ql.site[QL_A], 40000);
	gw_quic_write(ql.site[QL_A].end, ql.now);
	for (unsigned i = ql.head; i != ql.tail; i++) {
		struct ql_held *h = &ql.held[i % QL_HELD];

		if (h->to != QL_B)
			continue;
		for (unsigned k = 0; k < 200; k++) {
			memcpy(b, h->p, h->n);
			b[ql_draw() % h->n] ^= (uint8_t)(1 + ql_draw() % 255);
			junk(&ql.site[QL_A].addr, b, k % 2 ? h->n : ql_draw() % h->n);
		}
	}
	assert_true(ql_run(ql_all_got, 60000, QL_TO_END));
	assert_int_equal(ql.site[QL_B].wrong, 0);
	assert_false(ql.site[QL_A].closed || ql.site[QL_B].closed);
	c = gw_quic_end_counters(ql.site[QL_B].end);
	assert_true(c->drop_malformed > 0 && c->drop_unknown + c->tx_resets + c->tx_versions > 0);
}

#define FLOOD 10000

/* First packets of peers that never go on: a few are kept, the rest costs no memory, and the real
 * peer still gets in. */
static void test_flood(void **state)
{
	const struct gw_quic_counters *c;
	unsigned sent = 0;

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	c = gw_quic_end_counters(ql.site[QL_B].end);
	for (unsigned i = 0; i < FLOOD; i++) {
		struct gw_quic_addr from = ql.site[QL_A].addr;

		from.port = (uint16_t)(1000 + i);
		from.ip.b[15] = i % 10 ? 1 : 200; /* 200: nobody's */
		gw_quic_end_free(ql.site[QL_A].end);
		ql_end_make(QL_A, "a", "ca", NULL);
		ql_dial();
		gw_quic_write(ql.site[QL_A].end, ql.now);
		for (; ql.head != ql.tail; ql.head++) {
			struct ql_held *h = &ql.held[ql.head % QL_HELD];

			if (h->to == QL_B) {
				sent++;
				junk(&from, h->p, h->n);
			}
			free(h->p);
		}
	}
	assert_int_equal(c->rx_datagrams, sent);
	assert_true(c->drop_stranger >= FLOOD / 10 && c->tx_retries >= FLOOD * 8 / 10);
	assert_true(sent - c->drop_stranger - c->tx_retries <= 2 * ql.cfg.half_retry);
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
	/* Those that did not go on are forgotten. */
	(void)ql_run(ql_never, 0, 2 * ql.cfg.handshake);
	assert_int_equal(c->handshake_failed, ql.cfg.half_retry);
}

/* Accounts of addresses are few, and an address may share one with the storm's by chance: one of
 * four other addresses connects at once. */
static bool another_opens(void)
{
	for (uint8_t host = 9; host < 13; host++) {
		gw_quic_end_free(ql.site[QL_A].end);
		ql.site[QL_A].addr.ip.b[15] = host;
		ql_end_make(QL_A, "a", "ca", NULL);
		ql_dial();
		if (ql_run(ql_both_open, 0, RWY_SEC))
			return true;
	}
	return false;
}

/* A peer at its own address that begins again and again: each handshake costs a signature, so only
 * so many are begun; later it is welcome again. Another address is not concerned. */
static void test_rate(void **state)
{
	unsigned opened_n = 0;

	(void)state;
	ql.cfg.each = 20 * RWY_SEC;
	ql.cfg.burst = 5;
	ql_begin("a", "ca", "b", "ca");
	for (unsigned i = 0; i < 20; i++) {
		opened_n += ql_run(ql_both_open, 0, RWY_SEC);
		gw_quic_end_free(ql.site[QL_A].end);
		ql.site[QL_A].opened = ql.site[QL_B].opened = false;
		ql.site[QL_A].addr.port++;
		ql_end_make(QL_A, "a", "ca", NULL);
		ql_dial();
	}
	assert_in_range(opened_n, 5, 7);
	assert_true(gw_quic_end_counters(ql.site[QL_B].end)->drop_rate >= 13);
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->opened, opened_n);
	assert_true(another_opens());
	gw_quic_end_free(ql.site[QL_A].end);
	ql.site[QL_A].opened = ql.site[QL_B].opened = false;
	ql.site[QL_A].addr.ip.b[15] = 1;
	ql_end_make(QL_A, "a", "ca", NULL);
	(void)ql_run(ql_never, 0, 21 * RWY_SEC);
	ql_dial();
	assert_true(ql_run(ql_both_open, 0, RWY_SEC));
}

static void test_versions(void **state)
{
	uint8_t b[1200] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9};
	const struct ql_held *h;

	(void)state;
	ql_begin("a", "ca", "b", "ca");
	junk(&ql.site[QL_A].addr, b, sizeof(b));
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->tx_versions, 1);
	h = &ql.held[(ql.tail - 1) % QL_HELD];
	/* RFC 9000, 17.2.1: version 0, the ids exchanged, ours is version 1 */
	assert_memory_equal(h->p + 1, "\0\0\0\0\4\11\11\11\11\10\1\2\3\4\5\6\7\10\0\0\0\1", 22);
	junk(&ql.site[QL_A].addr, b, 1199); /* too short to be answered (RFC 9000, 6) */
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->tx_versions, 1);
	assert_true(ql_run(ql_both_open, 0, QL_TO_END));
}

static void test_retry(void **state)
{
	(void)state;
	ql.cfg.half_retry = 0; /* always */
	ql_move(20000);
	assert_true(gw_quic_end_counters(ql.site[QL_B].end)->tx_retries >= 1);
	assert_int_equal(gw_quic_end_counters(ql.site[QL_B].end)->drop_token, 0);
}

static int tests(void)
{
	const struct CMUnitTest t[] = {QL_TEST(test_junk), QL_TEST(test_flood), QL_TEST(test_rate),
	    QL_TEST(test_versions), QL_TEST(test_retry)};

	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(void)
{
	return ql_main(NULL, tests);
}
