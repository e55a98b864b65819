/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of datagrams that the engine derives (wan_ops.tx_crc), in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rwy/crc32.h"
#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define N 50u

static unsigned asked;

static uint32_t right(const struct rwy_buf *b, uint32_t crc)
{
	asked++;
	return crc32_gzip_refl(crc, b->data, b->len);
}

/* As of a packet that is not any more what it was when it was checked. */
static uint32_t wrong(const struct rwy_buf *b, uint32_t crc)
{
	return right(b, crc) ^ 1;
}

/* N buffers of `len` bytes; returns the datagrams that the receiver dropped for their CRC. */
static uint64_t carry(uint32_t len, uint32_t (*tx_crc)(const struct rwy_buf *b, uint32_t crc))
{
	const struct wan_link_cfg l = {.delay = 5 * RWY_MS, .rate_Bps = 12500000, .queue_bytes = 1u << 20};
	struct wan_pair p;
	struct wan_cfg c;
	struct wan_ops ops;
	uint64_t dropped;

	asked = 0;
	wan_cfg_default(&c);
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = l.rate_Bps;
	c.fec = WAN_FEC_OFF;
	wan_pair_init(&p, &c, &l, &l, 1);
	ops = *p.end[0].t->cfg.ops;
	ops.tx_crc = tx_crc;
	p.end[0].t->cfg.ops = &ops;
	wan_pair_streams(&p, 1, N, len, len, 16);
	assert_true(wan_pair_run(&p, p.now + 600 * RWY_SEC));
	assert_int_equal(p.errors, 0);
	dropped = wan_pair_stats(&p, 1).c.drop_crc;
	wan_pair_fini(&p);
	return dropped;
}

/* It is asked for whole packets of a certain length on, and not for others. */
static void test_asked(void **state)
{
	assert_int_equal(carry(511, right), 0);
	assert_int_equal(asked, 0);
	assert_int_equal(carry(512, right), 0);
	assert_int_equal(asked, N);
	assert_int_equal(carry(4000, right), 0); /* in fragments */
	assert_int_equal(asked, 0);
}

/* A wrong one does not stop the flow for ever: after some losses the bytes are read. */
static void test_wrong(void **state)
{
	const uint64_t dropped = carry(1024, wrong);

	print_message("%u packets, %llu datagrams dropped\n", N, (unsigned long long)dropped);
	assert_true(dropped >= 8 * N);
	assert_int_equal(asked, dropped);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_asked),
	    cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
