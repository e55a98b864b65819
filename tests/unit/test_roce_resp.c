/* SPDX-License-Identifier: Apache-2.0 */
/* RC responder: verdicts, ACK point, NAKs, responses, path MTU. Failures and duplicates:
 * test_roce_resp_error.c. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "roce/resp.h"
#include "tests/lib/rc_resp.h"

#define START 0xfffff0u

/* --- in order ------------------------------------------------------------------------------ */

static void test_in_order_all_opcodes(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len, msn;
	} seq[] = {
	    {ROCE_RC_SEND_FIRST, 1024, 0},
	    {ROCE_RC_SEND_MIDDLE, 1024, 0},
	    {ROCE_RC_SEND_LAST, 1, 1},
	    {ROCE_RC_SEND_ONLY, 0, 2},
	    {ROCE_RC_SEND_ONLY_IMM, 1024, 3},
	    {ROCE_RC_SEND_ONLY_INV, 5, 4},
	    {ROCE_RC_SEND_FIRST, 1024, 4},
	    {ROCE_RC_SEND_LAST_IMM, 1024, 5},
	    {ROCE_RC_SEND_FIRST, 1024, 5},
	    {ROCE_RC_SEND_LAST_INV, 3, 6},
	    {ROCE_RC_WRITE_ONLY, 7, 7},
	    {ROCE_RC_WRITE_ONLY_IMM, 0, 8},
	};
	struct rx x;

	rx_init(&x, START, 1024);
	for (unsigned i = 0; i < sizeof(seq) / sizeof(*seq); i++) {
		assert_int_equal(
		    rx_in(&x, seq[i].opcode, START + i, seq[i].len, seq[i].len), ROCE_RESP_ACCEPT);
		assert_int_equal(x.act.psn_cnt, 1);
		assert_int_equal(x.act.msn, seq[i].msn);
		assert_int_equal(x.r.epsn, roce_psn_add(START, i + 1));
		rx_allow_all(&x);
		assert_true(rx_flush(&x));
		assert_int_equal(x.out.psn, roce_psn_add(START, i));
		assert_int_equal(x.out.msn, seq[i].msn);
		assert_int_equal(x.out.syndrome, ROCE_AETH_CREDIT_INVALID); /* no credits */
		assert_false(rx_flush(&x));
	}
	rx_fini(&x);
}

static void test_write_message(void **state)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct rx x;

		rx_init(&x, START, mtu);
		assert_int_equal(rx_in(&x, ROCE_RC_WRITE_FIRST, START, mtu, 3 * mtu - 1), ROCE_RESP_ACCEPT);
		assert_int_equal(rx_in(&x, ROCE_RC_WRITE_MIDDLE, START + 1, mtu, 0), ROCE_RESP_ACCEPT);
		assert_int_equal(rx_in(&x, ROCE_RC_WRITE_LAST_IMM, START + 2, mtu - 1, 0), ROCE_RESP_ACCEPT);
		assert_int_equal(x.act.msn, 1);
		rx_fini(&x);
	}
}

static void test_ack_only_when_asked_and_coalesced(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	x.no_ack_req = true;
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	assert_false(rx_flush(&x));
	x.no_ack_req = false;
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0);
	x.no_ack_req = true;
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 2, 4, 0);
	rx_allow_all(&x);
	assert_true(rx_flush(&x)); /* one ACK covers packets without AckReq, too */
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.msn, 3);
	assert_false(rx_flush(&x));
	rx_fini(&x);
}

/* A host that asks for no ACK in a long run gets one for each 64 packets all the same. */
static void test_ack_unasked(void **state)
{
	struct rx x;
	unsigned acks = 0;

	rx_init(&x, START, 1024);
	x.no_ack_req = true;
	for (unsigned i = 0; i < 640; i++) {
		rx_in(&x, ROCE_RC_SEND_ONLY, roce_psn_add(START, i), 4, 0);
		rx_allow_all(&x);
		acks += rx_flush(&x);
		assert_true(roce_psn_diff(x.r.epsn, x.r.acked) < 64);
	}
	assert_int_equal(acks, 10);
	rx_fini(&x);
}

static void test_watermark(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	for (unsigned i = 0; i < 4; i++)
		rx_in(&x, ROCE_RC_SEND_ONLY, START + i, 4, 0);
	assert_false(rx_flush(&x));
	roce_resp_allow(&x.r, roce_psn_add(START, 2), 2);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.msn, 2);
	assert_false(rx_flush(&x));
	roce_resp_allow(&x.r, START, 0); /* never back */
	assert_int_equal(x.r.allow_psn, roce_psn_add(START, 2));
	roce_resp_allow(&x.r, roce_psn_add(START, 9), 9); /* never past what was accepted */
	assert_int_equal(x.r.allow_psn, roce_psn_add(START, 2));
	roce_resp_allow(&x.r, roce_psn_add(START, 4), 4);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 3));
	rx_fini(&x);
}

static void test_silent_until_go(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	x.r.msn0 = ROCE_RESP_MSN_UNKNOWN;
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 8);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 5, 4, 0);
	rx_allow_all(&x);
	assert_false(rx_flush(&x));
	roce_resp_go(&x.r, 0xffffff);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, START);
	assert_int_equal(x.out.msn, 0); /* 1 message and base -1 */
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 0x60);
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.msn, 1);
	rx_fini(&x);
}

static void test_join_mid_message(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_WRITE_MIDDLE, START, 2048, 0), ROCE_RESP_ACCEPT);
	assert_int_equal(x.r.pmtu, 2048);
	assert_int_equal(rx_in(&x, ROCE_RC_WRITE_LAST, START + 1, 77, 0), ROCE_RESP_ACCEPT);
	assert_int_equal(rx_in(&x, ROCE_RC_WRITE_LAST, START + 2, 77, 0), ROCE_RESP_BAD_SEQ);
	rx_fini(&x);
}

static void test_rewind(void **state)
{
	struct rx x;

	rx_init(&x, START + 3, 1024);
	rx_in(&x, ROCE_RC_SEND_FIRST, START + 3, 1024, 0);
	rx_in(&x, ROCE_RC_SEND_LAST, START + 4, 10, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START + 5, 0, 8);
	roce_resp_rewind(&x.r, START);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, START);
	assert_int_equal(x.out.syndrome, 0x60);
	assert_int_equal(x.out.msn, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.msn, 1);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 3, 4, 0), ROCE_RESP_GAP);
	rx_fini(&x);
}

/* --- gaps ---------------------------------------------------------------------------------- */

static void test_one_nak_a_gap(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 2, 4, 0), ROCE_RESP_GAP);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 3, 4, 0), ROCE_RESP_GAP);
	assert_true(rx_flush(&x)); /* acknowledges START too */
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, 0x60);
	assert_int_equal(x.out.msn, 1);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0), ROCE_RESP_GAP);
	assert_false(rx_flush(&x));
	x.now += 99 * RWY_MS;
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 5, 4, 0);
	assert_false(rx_flush(&x));
	x.now += RWY_MS;
	assert_false(rx_flush(&x)); /* no packet, no ACK */
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 6, 4, 0);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 0x60);
	/* The gap is closed: a new one gets its own NAK at once. */
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_ACCEPT);
	rx_allow_all(&x);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 3, 4, 0);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.msn, 2);
	rx_fini(&x);
}

static void test_nak_waits_for_ack_point(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 5, 4, 0);
	assert_false(rx_flush(&x)); /* a NAK would acknowledge START */
	rx_allow_all(&x);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 0x60);
	rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 8);
	rx_allow_all(&x);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 5, 4, 0);
	assert_false(rx_flush(&x));
	rx_answer(&x, START + 1, ROCE_RC_READ_RESP_ONLY);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.msn, 2);
	rx_fini(&x);
}

/* The caller has no memory for the next packet: one NAK names it, when there is room again. */
static void test_no_room(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	assert_true(rx_flush(&x)); /* the ACK */
	assert_true(roce_resp_expects(&x.r, roce_psn_add(START, 1)));
	roce_resp_no_room(&x.r);
	for (unsigned i = 2; i < 6; i++) {
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + i, 4, 0), ROCE_RESP_GAP);
		assert_false(rx_flush(&x));
		x.now += 100 * RWY_MS;
	}
	roce_resp_room(&x.r);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 0x60);
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_false(rx_flush(&x));
	/* Nothing came after it: the NAK goes all the same. The host resends it before there is room: none. */
	roce_resp_no_room(&x.r);
	roce_resp_room(&x.r);
	assert_true(rx_flush(&x));
	roce_resp_no_room(&x.r);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_ACCEPT);
	rx_allow_all(&x);
	roce_resp_room(&x.r);
	assert_true(rx_flush(&x));
	assert_int_equal(roce_aeth_type(x.out.syndrome), ROCE_AETH_ACK);
	assert_false(rx_flush(&x));
	/* Behind a READ of unknown count the next PSN is not known. */
	rx_fini(&x);
	rx_init(&x, START, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 5000);
	assert_false(roce_resp_expects(&x.r, x.r.epsn));
	rx_fini(&x);
}

/* --- READ and ATOMIC ------------------------------------------------------------------------- */

static void test_read_holds_acks(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 2049), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.psn_cnt, 3);
	assert_int_equal(x.act.msn, 2);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0), ROCE_RESP_ACCEPT);
	rx_allow_all(&x);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, START);
	assert_int_equal(x.out.msn, 1);
	assert_false(rx_flush(&x));
	assert_int_equal(
	    rx_answer(&x, START + 2, ROCE_RC_READ_RESP_MIDDLE), ROCE_RESP_UNEXPECTED); /* a gap */
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_ATOMIC_ACK), ROCE_RESP_UNEXPECTED);
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_READ_RESP_FIRST), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_FIRST);
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_READ_RESP_FIRST), ROCE_RESP_SERVED);
	/* The far gateway requested the rest again: FIRST and LAST arrive for MIDDLE and LAST. */
	assert_int_equal(rx_answer(&x, START + 2, ROCE_RC_READ_RESP_FIRST), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_MIDDLE);
	assert_false(rx_flush(&x));
	assert_int_equal(rx_answer(&x, START + 3, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_LAST);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 4));
	assert_int_equal(x.out.msn, 3);
	assert_int_equal(rx_answer(&x, START + 3, ROCE_RC_READ_RESP_LAST), ROCE_RESP_SERVED);
	assert_int_equal(rx_answer(&x, START + 9, ROCE_RC_READ_RESP_LAST), ROCE_RESP_UNEXPECTED);
	rx_fini(&x);
}

static void test_response_acknowledges(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_FETCH_ADD, START + 1, 0, 0);
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_UNEXPECTED);
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_ATOMIC_ACK), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_ATOMIC_ACK);
	assert_int_equal(x.r.acked, roce_psn_add(START, 2));
	assert_false(rx_flush(&x)); /* nothing is owed, watermark or not */
	assert_int_equal(x.r.allow_psn, roce_psn_add(START, 2));
	assert_int_equal(x.r.allow_msn, 2);
	rx_fini(&x);
}

static void test_atomic_never_acked(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_CMP_SWAP, START, 0, 0);
	rx_in(&x, ROCE_RC_FETCH_ADD, START + 1, 0, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 2, 4, 0);
	rx_allow_all(&x);
	assert_false(rx_flush(&x));
	rx_answer(&x, START, ROCE_RC_ATOMIC_ACK);
	assert_false(rx_flush(&x));
	rx_answer(&x, START + 1, ROCE_RC_ATOMIC_ACK);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.msn, 3);
	rx_fini(&x);
}

static void test_read_counts(void **state)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		const uint32_t len[] = {0, 1, mtu, mtu + 1, 10 * mtu, 1u << 30};
		const uint32_t cnt[] = {1, 1, 1, 2, 10, (1u << 30) / mtu};

		for (unsigned i = 0; i < 6; i++) {
			struct rx x;

			rx_init(&x, START, mtu);
			assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, len[i]), ROCE_RESP_ACCEPT);
			assert_int_equal(x.act.psn_cnt, cnt[i]);
			assert_int_equal(x.r.epsn, roce_psn_add(START, cnt[i]));
			rx_fini(&x);
		}
	}
}

/* 2^24 PSNs later the same PSN belongs to another request: earlier answers do not fit it. */
static void test_serial(void **state)
{
	const uint32_t cnt = 1u << 15;
	struct rx x;
	uint64_t before;
	roce_psn psn;

	rx_init(&x, 5, 256);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, 5, 8, 0), ROCE_RESP_ACCEPT);
	before = roce_resp_serial(&x.r, 5);
	for (uint32_t n = 1 << 24; n; n -= cnt) {
		psn = x.r.epsn;
		assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, psn, 0, cnt * 256), ROCE_RESP_ACCEPT);
		assert_int_equal(roce_resp_serial(&x.r, psn) + cnt, roce_resp_serial(&x.r, x.r.epsn));
		for (uint32_t i = 0; i < cnt; i++)
			assert_int_equal(
			    rx_answer(&x, psn + i, roce_resp_read_opcode(i, cnt)), ROCE_RESP_SERVE);
	}
	assert_int_equal(roce_resp_serial(&x.r, 5), before + (1 << 24));
	rx_fini(&x);
}

static void test_too_many(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	for (unsigned i = 0; i < ROCE_RESP_RD_MAX; i++)
		assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + i, 0, 8), ROCE_RESP_ACCEPT);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + ROCE_RESP_RD_MAX, 0, 8), ROCE_RESP_TOO_MANY);
	assert_int_equal(x.r.epsn, roce_psn_add(START, ROCE_RESP_RD_MAX));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + ROCE_RESP_RD_MAX, 4, 0), ROCE_RESP_ACCEPT);
	for (unsigned i = 0; i < ROCE_RESP_RD_MAX; i++)
		assert_int_equal(rx_answer(&x, START + i, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_int_equal(x.r.rd_n, 0);
	rx_fini(&x);
	/* More PSNs than half the space cannot be outstanding. */
	rx_init(&x, START, 256);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, 1u << 30), ROCE_RESP_ACCEPT);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + x.act.psn_cnt, 0, 1u << 30), ROCE_RESP_TOO_MANY);
	rx_fini(&x);
}

/* --- path MTU -------------------------------------------------------------------------------- */

static void test_pmtu_learned(void **state)
{
	for (uint32_t mtu = 256; mtu <= 4096; mtu *= 2) {
		struct rx x;

		rx_init(&x, START, 0);
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START, 100, 0), ROCE_RESP_ACCEPT);
		assert_int_equal(x.r.pmtu, 0);
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_FIRST, START + 1, mtu, 0), ROCE_RESP_ACCEPT);
		assert_int_equal(x.r.pmtu, mtu);
		rx_fini(&x);
	}
}

static void test_pmtu_wait(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, 256), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.psn_cnt, 1);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 5000), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.psn_cnt, 0);
	assert_true(roce_resp_parks(&x.r));
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 5000), ROCE_RESP_DUP_READ);
	assert_int_equal(x.act.psn_cnt, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 6, 4, 0), ROCE_RESP_PARK);
	assert_int_equal(x.act.pmtu, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_FIRST, START + 7, 1024, 0), ROCE_RESP_PARK);
	assert_int_equal(x.act.pmtu, 1024);
	assert_int_equal(roce_resp_set_pmtu(&x.r, 1000), 0);
	assert_true(roce_resp_parks(&x.r));
	assert_int_equal(roce_resp_set_pmtu(&x.r, 1024), 5);
	assert_false(roce_resp_parks(&x.r));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 6, 4, 0), ROCE_RESP_ACCEPT);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_FIRST, START + 7, 1024, 0), ROCE_RESP_ACCEPT);
	assert_int_equal(rx_answer(&x, START, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rx_answer(&x, START + 1 + i, ROCE_RC_READ_RESP_MIDDLE), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_LAST);
	assert_int_equal(roce_resp_set_pmtu(&x.r, 2048), 0); /* once known it stays */
	assert_int_equal(x.r.pmtu, 1024);
	rx_fini(&x);
}

/* A standby gateway finds a request behind the READ, and not the response. */
static void test_pmtu_wait_settled_by_next(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	assert_false(roce_resp_set_single(&x.r, START + 1));
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 1000);
	assert_false(roce_resp_set_single(&x.r, START + 2));
	assert_true(roce_resp_parks(&x.r));
	assert_true(roce_resp_set_single(&x.r, START + 1));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_ACCEPT);
	assert_false(roce_resp_set_single(&x.r, START + 2));
	/* it was not served yet */
	assert_int_equal(rx_answer(&x, START, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	rx_fini(&x);
}

static void test_pmtu_wait_settled_by_only(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 1000);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_PARK);
	assert_int_equal(rx_answer(&x, START, ROCE_RC_READ_RESP_FIRST), ROCE_RESP_UNEXPECTED);
	assert_int_equal(rx_answer(&x, START, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_ONLY);
	assert_false(roce_resp_parks(&x.r));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_ACCEPT);
	/* So the MTU is at least 1024: its replay and the next such READ have a count. */
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, 1000), ROCE_RESP_DUP_READ);
	assert_int_equal(x.act.psn_cnt, 1);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 2, 0, 1024), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.psn_cnt, 1);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 3, 0, 1025), ROCE_RESP_ACCEPT);
	assert_int_equal(x.act.psn_cnt, 0);
	rx_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_in_order_all_opcodes),
	    cmocka_unit_test(test_write_message),
	    cmocka_unit_test(test_ack_only_when_asked_and_coalesced),
	    cmocka_unit_test(test_ack_unasked),
	    cmocka_unit_test(test_watermark),
	    cmocka_unit_test(test_silent_until_go),
	    cmocka_unit_test(test_join_mid_message),
	    cmocka_unit_test(test_rewind),
	    cmocka_unit_test(test_one_nak_a_gap),
	    cmocka_unit_test(test_nak_waits_for_ack_point),
	    cmocka_unit_test(test_no_room),
	    cmocka_unit_test(test_read_holds_acks),
	    cmocka_unit_test(test_response_acknowledges),
	    cmocka_unit_test(test_atomic_never_acked),
	    cmocka_unit_test(test_read_counts),
	    cmocka_unit_test(test_serial),
	    cmocka_unit_test(test_too_many),
	    cmocka_unit_test(test_pmtu_learned),
	    cmocka_unit_test(test_pmtu_wait),
	    cmocka_unit_test(test_pmtu_wait_settled_by_next),
	    cmocka_unit_test(test_pmtu_wait_settled_by_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
