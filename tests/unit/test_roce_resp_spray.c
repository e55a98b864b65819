/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC responder behind a fabric that sprays packets over paths (adaptive routing): packets of one
 * queue pair arrive out of order. Each gap gets one NAK, however many packets follow it, and the
 * host goes back. docs/what-crosses.md has the shares that this program measures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/lib/rc_resp.h"

#define START   0xffff00u
#define PACKETS 10000
#define SLOTS   (1u << 20) /* a slot: the time of one packet on the link */
#define NAK_WAY 16         /* slots from a NAK to the first packet that the host sends again */
#define LATE_BY 64         /* at most */

/* The link of the host: which packet is in each slot, and when the answers come. */
struct fabric {
	struct rx x;
	roce_psn at[SLOTS + LATE_BY]; /* PSN + 1; 0: nothing arrives in this slot */
	roce_psn nak[SLOTS + NAK_WAY];
	unsigned sent, late, naks, gaps, accepted;
};

static struct fabric f;

/* One packet of the host, `by` slots late: it takes the next slot that is free. */
static void host_sends(unsigned slot, roce_psn psn, unsigned by)
{
	f.sent++;
	f.late += by > 0;
	while (f.at[slot + by])
		by++;
	f.at[slot + by] = psn + 1;
}

static void packet_arrives(unsigned slot)
{
	bool gap = f.x.r.state == ROCE_RS_GAP || f.x.r.state == ROCE_RS_GAP_NAK_SENT;
	enum roce_resp_verdict v = rx_in(&f.x, ROCE_RC_SEND_ONLY, (f.at[slot] - 1) & ROCE_PSN_MASK, 4, 0);

	f.accepted += v == ROCE_RESP_ACCEPT;
	f.gaps += v == ROCE_RESP_GAP && !gap;
	rx_allow_all(&f.x);
	while (rx_flush(&f.x))
		if (roce_aeth_type(f.x.out.syndrome) == ROCE_AETH_NAK) {
			assert_int_equal(f.x.out.syndrome, 0x60);
			assert_int_equal(f.x.out.psn, f.x.r.epsn);
			f.nak[slot + NAK_WAY] = f.x.out.psn + 1;
			f.naks++;
		}
}

/* Each packet number `every` that is sent comes `by` slots late. Returns packets sent in percent of
 * those delivered. */
static unsigned spray(unsigned every, unsigned by)
{
	roce_psn next = START, end = roce_psn_add(START, PACKETS);

	memset(&f, 0, sizeof(f));
	rx_init(&f.x, START, 1024);
	for (unsigned slot = 0; f.accepted < PACKETS; slot++) {
		assert_true(slot < SLOTS);
		/* IBA 9.7.5.2.2: the host goes back to what the NAK names, not forward. */
		if (f.nak[slot] && roce_psn_before(f.nak[slot] - 1, next))
			next = f.nak[slot] - 1;
		if (next != end) {
			host_sends(slot, next, every && slot % every == every - 1 ? by : 0);
			next = roce_psn_add(next, 1);
		}
		if (f.at[slot])
			packet_arrives(slot);
	}
	rx_fini(&f.x);
	assert_int_equal(f.naks, f.gaps);
	print_message("1 of %u late by %u: %u sent for %u, %u late, %u NAKs\n", every, by, f.sent, PACKETS,
	    f.late, f.naks);
	return f.sent * 100 / PACKETS;
}

static void test_in_order(void **state)
{
	assert_int_equal(spray(0, 0), 100);
	assert_int_equal(f.naks, 0);
}

/* A rare late packet costs a NAK for itself, and one for what was dropped behind it. */
static void test_rare(void **state)
{
	assert_in_range(spray(1000, 3), 101, 104);
	assert_in_range(f.naks, f.late, 2 * f.late);
	assert_in_range(spray(100, 3), 110, 140);
	assert_in_range(f.naks, f.late, 2 * f.late);
}

/* Spraying proper: most of what the host sends arrives in vain, but all of it is delivered once. */
static void test_sprayed(void **state)
{
	unsigned percent = spray(4, 2);

	assert_in_range(percent, 200, 2000);
	assert_true(f.naks <= f.sent / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_in_order), cmocka_unit_test(test_rare), cmocka_unit_test(test_sprayed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
