/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analysis of flows that no model host makes: READ responses that are lost, READs of many PSNs,
 * requests whose ACKs are not in the capture. Packets are made one by one and show their headers
 * only.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "roce/opcode.h"
#include "tests/lib/rc_pkt.h"
#include "tools/analyze/analyze.h"

#define ETH_LEN  14
#define CAPTURED 100
#define MTU      1024u
#define QPN_A    0x11
#define QPN_B    0x12

struct line {
	struct an *an;
	rwy_time now;
};

static struct line line_new(void)
{
	struct line l = {an_new(0), RWY_SEC};

	assert_non_null(l.an);
	return l;
}

static void put(struct line *l, const struct rc_mk *m)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {[12] = 8};
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, m);

	l->now += RWY_US;
	assert_int_equal(an_frame(l->an, l->now, frame, len < CAPTURED ? len : CAPTURED, len, false), 0);
}

static void ask(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len)
{
	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .dqpn = QPN_B,
	           .len = len,
	           .payload_len = opcode == ROCE_RC_READ_REQ ? 0 : len});
}

static void answer(struct line *l, uint8_t opcode, uint64_t psn, uint32_t len)
{
	put(l, &(struct rc_mk){.opcode = opcode,
	           .psn = (roce_psn)(psn & ROCE_PSN_MASK),
	           .src = {10, 0, 0, 2},
	           .dst = {10, 0, 0, 1},
	           .dqpn = QPN_A,
	           .syndrome = 0x1f,
	           .payload_len = len});
}

/* Response i of a READ of n that begins at psn. */
static void respond(struct line *l, uint64_t psn, uint32_t i, uint32_t n)
{
	answer(l,
	    i == 0       ? ROCE_RC_READ_RESP_FIRST
	    : i == n - 1 ? ROCE_RC_READ_RESP_LAST
	                 : ROCE_RC_READ_RESP_MIDDLE,
	    psn + i, MTU);
}

/* The flow of the requests. */
static const struct an_flow *flow(const struct line *l)
{
	for (const struct an_flow *f = an_flows(l->an); f; f = f->next)
		if (f->key.dqpn == QPN_B)
			return f;
	return NULL;
}

/* --- READ responses -------------------------------------------------------------------------- */

static void test_one_lost_response_is_one(void **state)
{
	struct line l = line_new();

	ask(&l, ROCE_RC_READ_REQ, 7, 1024 * MTU);
	for (uint32_t i = 0; i < 1024; i++)
		if (i != 100)
			respond(&l, 7, i, 1024);
	assert_int_equal(flow(&l)->c.responses_lost, 1);
	/* The requester asks for the rest, of which two more are lost. */
	ask(&l, ROCE_RC_READ_REQ, 7 + 100, 924 * MTU);
	for (uint32_t i = 0; i < 924; i++)
		if (i != 5 && i != 50)
			respond(&l, 7 + 100, i, 924);
	assert_int_equal(flow(&l)->c.responses_lost, 3);
	an_free(l.an);
}

/* The first response is lost: what lies before the READ has none. */
static void test_lost_first_response(void **state)
{
	struct line l = line_new();

	for (uint32_t i = 0; i < 50; i++)
		ask(&l, ROCE_RC_SEND_ONLY, i, MTU);
	answer(&l, ROCE_RC_ACK, 49, 0);
	ask(&l, ROCE_RC_READ_REQ, 50, 8 * MTU);
	for (uint32_t i = 1; i < 8; i++)
		respond(&l, 50, i, 8);
	assert_int_equal(flow(&l)->c.responses_lost, 1);
	an_free(l.an);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_lost_response_is_one),
	    cmocka_unit_test(test_lost_first_response),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
