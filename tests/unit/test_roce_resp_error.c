/* SPDX-License-Identifier: Apache-2.0 */
/* RC responder: duplicates, stale packets, the host's errors, the far host's errors. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "roce/resp.h"
#include "tests/lib/rc_resp.h"

#define START   0xfffff0u
#define INV_REQ 0x61
#define ACCESS  0x62
#define REM_OP  0x63
#define NONE    0xff /* no FIRST before it */

/* --- duplicates -------------------------------------------------------------------------------- */

static void test_dup_reacked_at_point(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	for (unsigned i = 0; i < 20; i++)
		rx_in(&x, ROCE_RC_SEND_ONLY, START + i, 4, 0);
	roce_resp_allow(&x.r, roce_psn_add(START, 18), 18);
	assert_true(rx_flush(&x));
	for (unsigned i = 0; i < 18; i++)
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + i, 4, 0), ROCE_RESP_DUP);
	assert_true(rx_flush(&x)); /* all of them get one ACK */
	assert_int_equal(x.out.psn, roce_psn_add(START, 17));
	assert_int_equal(x.out.msn, 18);
	assert_false(rx_flush(&x));
	rx_fini(&x);
}

static void test_dup_not_ackable_is_silent(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	x.no_ack_req = true;
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0);
	roce_resp_allow(&x.r, roce_psn_add(START, 1), 1);
	x.no_ack_req = false;
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_DUP);
	rx_flush(&x);
	assert_false(rx_flush(&x));
	rx_allow_all(&x); /* the retransmission requested it: now it gets its answer */
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	rx_fini(&x);
}

/*
 * After an answered READ the newest PSN is a response's. A plain ACK of it would complete the READ of a
 * requester that lost the response (Soft-RoCE does so): the duplicate is acknowledged at its own PSN.
 */
static void test_dup_never_acks_a_read_psn(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START + 2, 0, 2048);
	rx_allow_all(&x);
	rx_answer(&x, START + 2, ROCE_RC_READ_RESP_FIRST);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, START);
	rx_answer(&x, START + 3, ROCE_RC_READ_RESP_LAST);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, 31);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0);
	rx_allow_all(&x);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	assert_true(rx_flush(&x)); /* beyond the READ: an implied NAK if the requester lost it */
	assert_int_equal(x.out.psn, roce_psn_add(START, 4));
	/* Two READs in a row, the second half answered. */
	rx_in(&x, ROCE_RC_READ_REQ, START + 5, 0, 8);
	rx_in(&x, ROCE_RC_READ_REQ, START + 6, 0, 2048);
	rx_allow_all(&x);
	rx_answer(&x, START + 5, ROCE_RC_READ_RESP_ONLY);
	rx_answer(&x, START + 6, ROCE_RC_READ_RESP_FIRST);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 4));
	rx_fini(&x);
}

static void test_dup_read(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 5 * 1024);
	rx_in(&x, ROCE_RC_CMP_SWAP, START + 5, 0, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, 5 * 1024), ROCE_RESP_DUP_READ);
	assert_int_equal(x.act.psn_cnt, 5);
	assert_int_equal(
	    rx_in(&x, ROCE_RC_READ_REQ, START + 3, 0, 2 * 1024), ROCE_RESP_DUP_READ); /* partial */
	assert_int_equal(x.act.psn_cnt, 2);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 3, 0, 1u << 20), ROCE_RESP_DUP_READ);
	assert_int_equal(x.act.psn_cnt, 3); /* never beyond existing PSNs */
	assert_int_equal(rx_in(&x, ROCE_RC_CMP_SWAP, START + 5, 0, 0), ROCE_RESP_DUP_ATOMIC);
	assert_false(rx_flush(&x));
	rx_fini(&x);
}

/* The host requested the rest before any of it was sent: the responses then start with a FIRST. */
static void test_read_restarted_by_host(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 5 * 1024);
	rx_answer(&x, START, ROCE_RC_READ_RESP_FIRST);
	rx_answer(&x, START + 1, ROCE_RC_READ_RESP_MIDDLE);
	rx_in(&x, ROCE_RC_READ_REQ, START + 2, 0, 3 * 1024);
	rx_answer(&x, START + 2, ROCE_RC_READ_RESP_MIDDLE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_FIRST);
	rx_answer(&x, START + 3, ROCE_RC_READ_RESP_MIDDLE);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_MIDDLE);
	rx_in(&x, ROCE_RC_READ_REQ, START + 4, 0, 1024);
	rx_answer(&x, START + 4, ROCE_RC_READ_RESP_LAST);
	assert_int_equal(x.r.serve_opcode, ROCE_RC_READ_RESP_ONLY);
	rx_fini(&x);
}

static void test_stale(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START - 1, 4, 0), ROCE_RESP_STALE);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START - 1, 4, 0), ROCE_RESP_STALE);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0), ROCE_RESP_DUP);
	/* No request; not RC. */
	assert_int_equal(rx_in(&x, ROCE_RC_ACK, START + 1, 0, 0), ROCE_RESP_STALE);
	assert_int_equal(rx_in(&x, 0x24, START + 1, 4, 0), ROCE_RESP_STALE);
	assert_false(roce_resp_broken(&x.r));
	rx_fini(&x);
}

/* Many times through the PSN space: duplicates stay duplicates. */
static void test_wrap(void **state)
{
	roce_psn psn = START;
	struct rx x;

	rx_init(&x, START, 256);
	for (unsigned i = 0; i < 24; i++) {
		uint32_t len = 256u * 900000;

		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, psn, 4, 0), ROCE_RESP_ACCEPT);
		psn = roce_psn_add(psn, 1);
		assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, psn, 0, len), ROCE_RESP_ACCEPT);
		for (uint32_t k = 0; k < 900000; k++)
			if (rx_answer(&x, psn + k, ROCE_RC_READ_RESP_MIDDLE) != ROCE_RESP_SERVE)
				fail();
		psn = roce_psn_add(psn, 900000);
		assert_int_equal(x.r.epsn, psn);
		assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, psn - 900000, 0, len), ROCE_RESP_DUP_READ);
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, psn - 900001, 4, 0), ROCE_RESP_DUP);
		assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, psn + 3, 4, 0), ROCE_RESP_GAP);
		rx_allow_all(&x);
	}
	rx_fini(&x);
}

/* --- the host's own errors ----------------------------------------------------------------- */

static void check_bad(uint8_t first, uint32_t first_len, uint8_t op, uint32_t len, uint32_t dma, int verdict)
{
	roce_psn at = roce_psn_add(START, first != NONE ? 2 : 1);
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	if (first != NONE) /* RETH: 3 packets */
		assert_int_equal(rx_in(&x, first, START + 1, 1024, first_len), ROCE_RESP_ACCEPT);
	rx_allow_all(&x);
	assert_int_equal(rx_in(&x, op, at, len, dma), verdict);
	assert_true(roce_resp_broken(&x.r));
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, at);
	assert_int_equal(x.out.syndrome, INV_REQ);
	assert_int_equal(x.out.msn, 1);
	assert_false(rx_flush(&x));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, at + 1, 4, 0), ROCE_RESP_FAILED);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0), ROCE_RESP_DUP);
	assert_true(rx_flush(&x)); /* again, once */
	assert_int_equal(x.out.syndrome, INV_REQ);
	assert_false(rx_flush(&x));
	rx_fini(&x);
}

static void test_bad_sequence(void **state)
{
	check_bad(NONE, 0, ROCE_RC_SEND_MIDDLE, 1024, 0, ROCE_RESP_BAD_SEQ);
	check_bad(NONE, 0, ROCE_RC_SEND_LAST, 4, 0, ROCE_RESP_BAD_SEQ);
	check_bad(NONE, 0, ROCE_RC_WRITE_LAST_IMM, 4, 0, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_SEND_FIRST, 1024, 0, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_SEND_ONLY, 4, 0, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_WRITE_MIDDLE, 1024, 0, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_READ_REQ, 0, 8, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_WRITE_FIRST, 3072, ROCE_RC_SEND_LAST, 4, 0, ROCE_RESP_BAD_SEQ);
	check_bad(ROCE_RC_WRITE_FIRST, 3072, ROCE_RC_FETCH_ADD, 0, 0, ROCE_RESP_BAD_SEQ);
}

static void test_bad_length(void **state)
{
	check_bad(NONE, 0, ROCE_RC_SEND_FIRST, 1020, 0, ROCE_RESP_BAD_LEN);
	check_bad(NONE, 0, ROCE_RC_SEND_FIRST, 2048, 0, ROCE_RESP_BAD_LEN);
	check_bad(NONE, 0, ROCE_RC_SEND_ONLY, 1025, 0, ROCE_RESP_BAD_LEN);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_SEND_MIDDLE, 512, 0, ROCE_RESP_BAD_LEN);
	check_bad(ROCE_RC_SEND_FIRST, 0, ROCE_RC_SEND_LAST, 1025, 0, ROCE_RESP_BAD_LEN);
	check_bad(NONE, 0, ROCE_RC_WRITE_ONLY, 8, 9, ROCE_RESP_BAD_LEN);
	check_bad(NONE, 0, ROCE_RC_WRITE_FIRST, 1024, 1024, ROCE_RESP_BAD_LEN); /* would be an ONLY */
	check_bad(NONE, 0, ROCE_RC_WRITE_FIRST, 1024, (1u << 31) + 1, ROCE_RESP_BAD_LEN);
	check_bad(ROCE_RC_WRITE_FIRST, 3072, ROCE_RC_WRITE_LAST, 1024, 0, ROCE_RESP_BAD_LEN);
	check_bad(ROCE_RC_WRITE_FIRST, 2048, ROCE_RC_WRITE_MIDDLE, 1024, 0, ROCE_RESP_BAD_LEN);
	check_bad(NONE, 0, ROCE_RC_READ_REQ, 0, (1u << 31) + 1, ROCE_RESP_BAD_LEN);
}

static void test_bad_length_pmtu_unknown(void **state)
{
	struct rx x;

	rx_init(&x, START, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_FIRST, START, 1000, 0), ROCE_RESP_BAD_LEN);
	rx_fini(&x);
	rx_init(&x, START, 0);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_FIRST, START, 128, 0), ROCE_RESP_BAD_LEN);
	assert_int_equal(x.r.pmtu, 0);
	rx_fini(&x);
}

/* A request that gateways do not carry, such as FLUSH. */
static enum roce_resp_verdict uncarried_in(struct rx *x, roce_psn psn)
{
	struct roce_pkt pkt;

	rc_pkt_make(x->bytes, &(struct rc_mk){.opcode = ROCE_RC_SEND_ONLY, .psn = psn, .ack_req = true});
	if (!rc_pkt_read(x->bytes, sizeof(x->bytes), &pkt))
		__builtin_trap();
	pkt.info = &roce_op_uncarried;
	roce_resp_recv(&x->r, &pkt, &x->act, x->now);
	return x->act.verdict;
}

/* Its NAK goes when all before it is acknowledged, at its own PSN, and again when it is repeated. */
static void test_uncarried(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	assert_int_equal(uncarried_in(&x, roce_psn_add(START, 1)), ROCE_RESP_BAD_OP);
	assert_false(rx_flush(&x)); /* the SEND has no ACK yet */
	rx_allow_all(&x);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, INV_REQ);
	assert_int_equal(x.out.msn, 1);
	assert_false(rx_flush(&x));
	assert_int_equal(uncarried_in(&x, roce_psn_add(START, 1)), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, INV_REQ);
	rx_fini(&x);
}

/* Out of order it is a gap like another; before the expected PSN it is no duplicate, and no ACK. */
static void test_uncarried_elsewhere(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	rx_flush(&x);
	assert_int_equal(uncarried_in(&x, START), ROCE_RESP_STALE);
	assert_false(rx_flush(&x));
	assert_int_equal(uncarried_in(&x, roce_psn_add(START, 2)), ROCE_RESP_GAP);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 0x60);
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	rx_fini(&x);
}

/* The host's error after an unanswered READ: the READ is answered first, then the NAK is sent. */
static void test_host_error_waits_for_read(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 8);
	rx_in(&x, ROCE_RC_SEND_LAST, START + 1, 8, 0);
	rx_allow_all(&x);
	assert_false(rx_flush(&x));
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START, 0, 8), ROCE_RESP_DUP_READ);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_LAST, START + 1, 8, 0), ROCE_RESP_FAILED);
	assert_int_equal(rx_answer(&x, START, ROCE_RC_READ_RESP_ONLY), ROCE_RESP_SERVE);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, INV_REQ);
	rx_fini(&x);
}

/* --- the far host's errors ----------------------------------------------------------------- */

static void test_fail_not_acked(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	for (unsigned i = 0; i < 5; i++)
		rx_in(&x, ROCE_RC_SEND_ONLY, START + i, 4, 0);
	roce_resp_allow(&x.r, roce_psn_add(START, 2), 2);
	assert_true(rx_flush(&x));
	roce_resp_fail(&x.r, roce_psn_add(START, 2), ACCESS);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_int_equal(x.out.syndrome, ACCESS);
	assert_int_equal(x.out.msn, 2);
	assert_false(rx_flush(&x));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 2, 4, 0), ROCE_RESP_FAILED);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 3, 4, 0), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 2));
	assert_false(rx_flush(&x));
	roce_resp_fail(&x.r, START, REM_OP); /* only the first counts */
	assert_int_equal(x.r.fail_syndrome, ACCESS);
	rx_fini(&x);
}

/* Acknowledged early, failed late: the next request gets a remote operational error. */
static void test_fail_after_ack(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	rx_flush(&x);
	roce_resp_fail(&x.r, START, ACCESS);
	assert_false(rx_flush(&x)); /* nothing outstanding: a NAK would be a ghost */
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, REM_OP);
	assert_int_equal(x.out.msn, 1);
	rx_fini(&x);
	/* With a request outstanding it is sent at once. */
	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_allow_all(&x);
	rx_flush(&x);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 1, 4, 0);
	roce_resp_fail(&x.r, START, ACCESS);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, REM_OP);
	rx_fini(&x);
}

static void test_fail_with_read_unanswered(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_READ_REQ, START, 0, 3000);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 3, 4, 0);
	rx_allow_all(&x);
	rx_answer(&x, START, ROCE_RC_READ_RESP_FIRST);
	roce_resp_fail(&x.r, roce_psn_add(START, 3), REM_OP);
	assert_int_equal(rx_answer(&x, START + 1, ROCE_RC_READ_RESP_MIDDLE), ROCE_RESP_UNEXPECTED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, REM_OP);
	rx_fini(&x);
}

static void test_fail_at_read(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 3000);
	rx_allow_all(&x);
	roce_resp_fail(&x.r, roce_psn_add(START, 1), ACCESS);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.msn, 1);
	assert_int_equal(x.out.syndrome, ACCESS);
	rx_fini(&x);
}

/* The LAN lost the response before the error: without its replay the NAK would stay an implied
 * NAK. */
static void test_fail_then_replay(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	rx_in(&x, ROCE_RC_FETCH_ADD, START + 1, 0, 0);
	rx_in(&x, ROCE_RC_READ_REQ, START + 2, 0, 2048);
	rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0);
	rx_allow_all(&x);
	rx_answer(&x, START + 1, ROCE_RC_ATOMIC_ACK);
	rx_answer(&x, START + 2, ROCE_RC_READ_RESP_FIRST);
	rx_answer(&x, START + 3, ROCE_RC_READ_RESP_LAST);
	roce_resp_fail(&x.r, roce_psn_add(START, 4), REM_OP);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 4));
	assert_int_equal(rx_in(&x, ROCE_RC_FETCH_ADD, START + 1, 0, 0), ROCE_RESP_DUP_ATOMIC);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 2, 0, 2048), ROCE_RESP_DUP_READ);
	assert_false(rx_flush(&x));
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0), ROCE_RESP_DUP);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, REM_OP);
	assert_int_equal(rx_in(&x, ROCE_RC_SEND_ONLY, START + 4, 4, 0), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	rx_fini(&x);
}

/* Failure at a PSN not yet sent: the ones before are acknowledged first. */
static void test_fail_at_next(void **state)
{
	struct rx x;

	rx_init(&x, START, 1024);
	rx_in(&x, ROCE_RC_SEND_ONLY, START, 4, 0);
	roce_resp_fail(&x.r, roce_psn_add(START, 7), REM_OP);
	assert_false(rx_flush(&x));
	rx_allow_all(&x);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.syndrome, 31);
	assert_int_equal(x.out.psn, START);
	assert_int_equal(rx_in(&x, ROCE_RC_READ_REQ, START + 1, 0, 8), ROCE_RESP_FAILED);
	assert_true(rx_flush(&x));
	assert_int_equal(x.out.psn, roce_psn_add(START, 1));
	assert_int_equal(x.out.syndrome, REM_OP);
	rx_fini(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_dup_reacked_at_point),
	    cmocka_unit_test(test_dup_not_ackable_is_silent),
	    cmocka_unit_test(test_dup_never_acks_a_read_psn),
	    cmocka_unit_test(test_dup_read),
	    cmocka_unit_test(test_read_restarted_by_host),
	    cmocka_unit_test(test_stale),
	    cmocka_unit_test(test_wrap),
	    cmocka_unit_test(test_bad_sequence),
	    cmocka_unit_test(test_bad_length),
	    cmocka_unit_test(test_bad_length_pmtu_unknown),
	    cmocka_unit_test(test_uncarried),
	    cmocka_unit_test(test_uncarried_elsewhere),
	    cmocka_unit_test(test_host_error_waits_for_read),
	    cmocka_unit_test(test_fail_not_acked),
	    cmocka_unit_test(test_fail_after_ack),
	    cmocka_unit_test(test_fail_with_read_unanswered),
	    cmocka_unit_test(test_fail_at_read),
	    cmocka_unit_test(test_fail_then_replay),
	    cmocka_unit_test(test_fail_at_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
