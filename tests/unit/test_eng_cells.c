/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of the state tables that the explorer rarely or never enters: each by hand, in two engines
 * with a perfect WAN. Afterwards the connection is in the state of the table, and no buffer is lost
 * (eng_pair_tear_down).
 */
#include "tests/lib/eng_pair.h"

#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/emit.h"
#include "engine/pair.h"

#define QPN   0x200
#define B_QPN 0x1200

static const uint8_t host_a[4] = {10, 1, 0, 3}, host_b[4] = {10, 2, 0, 3};
static struct eng_responder *rs; /* of host A's requests, in the near gateway */
static struct eng_requester *rq; /* for the same requests, in the far gateway */

static struct rc_mk request(roce_psn psn)
{
	return (struct rc_mk){.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .ack_req = true,
	    .dqpn = QPN,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
}

static void host_b_says(uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = B_QPN,
	    .syndrome = syndrome,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
}

static struct eng_key key(void)
{
	return (struct eng_key){rwy_ip_from4(host_a), rwy_ip_from4(host_b), QPN, 0};
}

/* Host A's connection, one request acknowledged by host B. */
static int connected(void **state)
{
	struct rc_mk m = request(0);
	struct eng_key k = key();

	assert_int_equal(eng_pair_set_up(state), 0);
	eng_host_sends(0, &m, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[1].requests, 1);
	host_b_says(0x1f, 0);
	eng_pair_run(5 * RWY_MS);
	rs = (struct eng_responder *)eng_find(site[0].e, &k, false);
	rq = (struct eng_requester *)eng_find(site[1].e, &k, true);
	assert_true(rs && rq);
	assert_int_equal(rs->side.state, ENG_R_RUNNING);
	assert_int_equal(rq->side.state, ENG_Q_RUNNING);
	return 0;
}

/*
 * Gives a message of the flow of requests to the requester side, as the WAN does, which had a buffer.
 */
static void message(roce_psn psn)
{
	const bool starved = site[1].starved;
	struct rc_mk m = request(psn);
	struct rwy_buf *b;

	site[1].starved = false;
	b = rwy_buf_alloc(&site[1].e->bufs, 128, RC_PKT_MAX);
	site[1].starved = starved;
	assert_non_null(b);
	b->len = rc_pkt_make(b->data, &m);
	b->kind = RWY_BUF_PACKET;
	b->seq = ENG_NO_SEQ;
	eng_requester_message(rq, b, eng_now);
}

static void resume(roce_psn promised)
{
	struct eng_ctrl c = {
	    .type = ENG_CTRL_RESUME, .incarnation = rq->incarnation, .qpn = rq->remote_qpn, .psn = promised};
	const bool starved = site[1].starved;
	struct rwy_buf *b;

	site[1].starved = false;
	b = eng_ctrl_buf(site[1].e, &c);
	site[1].starved = starved;
	assert_non_null(b);
	b->seq = ENG_NO_SEQ;
	rq->flow = ENG_FLOW_FIRST;
	eng_requester_message(rq, b, eng_now);
}

static void word(enum eng_ctrl_type type, uint8_t syndrome)
{
	struct eng_ctrl c = {.type = (uint8_t)type,
	    .incarnation = rs->incarnation,
	    .qpn = rs->local_qpn,
	    .psn = rs->resp.epsn,
	    .syndrome = syndrome};
	struct rwy_buf *b = eng_ctrl_buf(site[0].e, &c);

	assert_non_null(b);
	b->seq = 0;
	eng_responder_message(rs, b, eng_now);
}

static const struct eng_states_seen *seen(unsigned at)
{
	return eng_states_seen(site[at].e);
}

static void end_requester(void)
{
	eng_requester_fail(rq, 1, 0x64, ENG_END_SILENT, eng_now);
	assert_int_equal(rq->side.state, ENG_Q_FAILED);
}

static void test_idle(void **state)
{
	const struct eng_counters *c = eng_counters(site[1].e);
	struct roce_pkt pkt;
	uint64_t ghosts;

	end_requester();
	eng_pair_undo(rq);
	assert_int_equal(rq->side.state, ENG_Q_IDLE);
	message(1);
	assert_int_equal(seen(1)->requester[ENG_Q_IDLE][ENG_QE_MESSAGE], 1);
	assert_int_equal(rq->side.state, ENG_Q_IDLE);

	struct rwy_buf *b = rwy_buf_alloc(&site[1].e->bufs, 128, RC_PKT_MAX);
	struct rc_mk ack = {.opcode = ROCE_RC_ACK, .psn = 0, .dqpn = B_QPN, .syndrome = 0x1f};

	b->len = rc_pkt_make(b->data, &ack);
	assert_true(rc_pkt_read(b->data, b->len, &pkt));
	ghosts = c->drop_ghost_ack;
	eng_requester_response(rq, &pkt, b, eng_now);
	assert_int_equal(c->drop_ghost_ack, ghosts + 1);
	assert_int_equal(seen(1)->requester[ENG_Q_IDLE][ENG_QE_RESPONSE], 1);
}

/* The near gateway opens the flow again before the host has answered: the first request asks the
 * host again. */
static void test_probing_first(void **state)
{
	end_requester();
	rq->flow = ENG_FLOW_FIRST;
	message(1);
	assert_int_equal(rq->side.state, ENG_Q_PROBING);
	rq->flow = ENG_FLOW_FIRST;
	message(1);
	assert_int_equal(rq->side.state, ENG_Q_PROBING);
	assert_int_equal(rq->reqr.q.n, 1);
	assert_int_equal(seen(1)->requester[ENG_Q_PROBING][ENG_QE_FIRST], 1);
}

static void locate(void)
{
	uint32_t remote_qpn = rq->remote_qpn;

	end_requester();
	rq->remote_qpn = remote_qpn;
	resume(1);
	assert_int_equal(rq->side.state, ENG_Q_LOCATING);
}

static void test_locating(void **state)
{
	locate();
	message(5);
	assert_int_equal(seen(1)->requester[ENG_Q_LOCATING][ENG_QE_MESSAGE], 1);
	assert_int_equal(rq->side.state, ENG_Q_FAILED); /* requests before that one are missing */
}

static void test_locating_first(void **state)
{
	locate();
	resume(1);
	assert_int_equal(rq->side.state, ENG_Q_LOCATING);
	assert_int_equal(rq->questions, 1);
	assert_int_equal(seen(1)->requester[ENG_Q_LOCATING][ENG_QE_FIRST], 1);
}

/* The host is silent: it is asked again, with an earlier PSN, and the known loss is kept. */
static void test_locating_lost(void **state)
{
	locate();
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	message(1);
	assert_int_equal(seen(1)->requester[ENG_Q_LOCATING_LOST][ENG_QE_MESSAGE], 1);
	eng_dirty(&rq->side);
	for (unsigned i = 0; i < 100 && rq->questions < 2; i++)
		eng_pair_run(20 * RWY_MS);
	assert_int_equal(rq->questions, 2);
	assert_int_equal(rq->side.state, ENG_Q_LOCATING_LOST);
	assert_true(seen(1)->requester[ENG_Q_LOCATING_LOST][ENG_QE_TIMER] > 0);
	host_b_says(0x1f, 0); /* it has all that A was promised; still more is known to be lost */
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_ENDING);
	rq->flow = ENG_FLOW_FIRST;
	message(1);
	assert_int_equal(rq->side.state, ENG_Q_ENDING);
	assert_int_equal(seen(1)->requester[ENG_Q_ENDING][ENG_QE_FIRST], 1);
}

/* No memory for the request that ends the QP: it is tried again, at the PSN that the host named. */
static void test_end_owed(void **state)
{
	locate();
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	eng_dirty(&rq->side);
	eng_pair_run(5 * RWY_MS);
	site[1].starved = true;
	host_b_says(0x60, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_END_OWED);
	assert_true(seen(1)->requester[ENG_Q_END_OWED][ENG_QE_TIMER] > 0);
	host_b_says(0x60, 0);
	assert_int_equal(seen(1)->requester[ENG_Q_END_OWED][ENG_QE_RESPONSE], 1);
	message(1);
	assert_int_equal(seen(1)->requester[ENG_Q_END_OWED][ENG_QE_MESSAGE], 1);
	rq->flow = ENG_FLOW_FIRST;
	message(1);
	assert_int_equal(seen(1)->requester[ENG_Q_END_OWED][ENG_QE_FIRST], 1);
	assert_int_equal(rq->side.state, ENG_Q_END_OWED);
	site[1].starved = false;
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_ENDING);
	assert_int_equal(rq->reqr.q.head->psn, 0);
}

/* No memory for the question: it is tried again, and nothing is an answer to it before. */
static void test_question_owed(void **state)
{
	site[1].starved = true;
	locate();
	assert_int_equal(rq->reqr.q.n, 0);
	eng_pair_run(5 * RWY_MS);
	assert_true(seen(1)->requester[ENG_Q_LOCATING][ENG_QE_TIMER] > 0);
	host_b_says(0x60, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_LOCATING);
	assert_int_equal(rq->reqr.q.n, 0);
	site[1].starved = false;
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->reqr.q.n, 1);
	host_b_says(0x1f, 0); /* it has all that A was promised */
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_RUNNING);
}

/*
 * A host that executed nothing and has sent its NAK: it answers duplicates, by PSN -1, and nothing
 * else. The request that ends its QP comes at the PSN that it expects all the same.
 */
static void search(roce_psn expected)
{
	unsigned asked;

	locate();
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	eng_dirty(&rq->side);
	asked = site[1].requests;
	for (unsigned i = 0; i < 2000 && rq->side.state == ENG_Q_LOCATING_LOST; i++) {
		eng_pair_run(5 * RWY_MS);
		if (site[1].requests != asked && roce_psn_before(site[1].psn, expected))
			host_b_says(0x1f, ROCE_PSN_MASK);
		asked = site[1].requests;
	}
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->side.state, ENG_Q_ENDING);
	assert_int_equal(site[1].psn, expected);
}

static void test_search_behind(void **state)
{
	search(0xc00123);
}

static void test_search_near(void **state)
{
	search(0xff8000);
}

/* Host B connects anew with the same QPN, and who asks there is not known: no question is new. */
static void test_search_stays(void **state)
{
	const struct eng_key k = {rq->side.key.dst, rq->side.key.src, B_QPN, 0};
	struct eng_responder *anew;
	unsigned asked;
	roce_psn psn;

	locate();
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	eng_dirty(&rq->side);
	anew = eng_responder_get(site[1].e, &k, false, eng_now);
	eng_pair_join(anew, rq, ENG_BY_PEER);
	for (unsigned i = 0; i < 400 && rq->questions < 2; i++)
		eng_pair_run(5 * RWY_MS);
	rq->end = ENG_END_UNDELIVERED;
	anew->local_qpn = 0;
	anew->side.state = ENG_R_WAITING;
	psn = site[1].psn;
	asked = site[1].requests;
	for (unsigned i = 0; i < 100; i++) {
		host_b_says(0x1f, ROCE_PSN_MASK);
		eng_pair_run(5 * RWY_MS);
	}
	assert_true(site[1].requests > asked + 2); /* it is asked again */
	assert_int_equal(site[1].psn, psn);
	anew->side.state = ENG_R_NEW;
	host_b_says(0x1f, ROCE_PSN_MASK);
	eng_pair_run(5 * RWY_MS);
	assert_true(site[1].psn != psn);
}

static void test_locating_lost_first(void **state)
{
	locate();
	eng_requester_enter(rq, ENG_Q_LOCATING_LOST);
	resume(1);
	assert_int_equal(seen(1)->requester[ENG_Q_LOCATING_LOST][ENG_QE_FIRST], 1);
	assert_int_equal(rq->side.state, ENG_Q_LOCATING);
}

/* Messages about an incarnation that this side never had. */
static void test_new(void **state)
{
	struct eng_key k = key();

	k.qpn++;
	rs = eng_responder_get(site[0].e, &k, false, eng_now);
	assert_int_equal(rs->side.state, ENG_R_NEW);
	word(ENG_CTRL_SYNC, 0);
	word(ENG_CTRL_REWIND, 0);
	word(ENG_CTRL_FAIL, 0x64);
	assert_int_equal(rs->side.state, ENG_R_NEW);
	for (unsigned ev = ENG_RE_SYNC; ev <= ENG_RE_FAIL; ev++)
		assert_int_equal(seen(0)->responder[ENG_R_NEW][ev], 1);
}

static void test_resuming_rewind(void **state)
{
	eng_responder_start(rs, 1, 0, eng_now);
	eng_responder_enter(rs, ENG_R_RESUMING);
	word(ENG_CTRL_REWIND, 0);
	assert_int_equal(rs->side.state, ENG_R_RUNNING);
	assert_int_equal(seen(0)->responder[ENG_R_RESUMING][ENG_RE_REWIND], 1);
	word(ENG_CTRL_REWIND, 0);
	assert_int_equal(rs->side.state, ENG_R_RUNNING);
	assert_int_equal(seen(0)->responder[ENG_R_RUNNING][ENG_RE_REWIND], 1);
}

/* The far gateway refuses a flow with nothing in flight: the next request opens it again. */
static void test_resuming_reset(void **state)
{
	eng_responder_start(rs, 1, 0, eng_now);
	assert_true(eng_responder_open(rs, eng_now));
	eng_responder_enter(rs, ENG_R_RESUMING);

	struct wan_txflow *flow = rs->requests;

	eng_responder_reset(rs, eng_now);
	assert_int_equal(rs->side.state, ENG_R_WAITING);
	assert_null(rs->requests);
	assert_int_equal(seen(0)->responder[ENG_R_RESUMING][ENG_RE_RESET], 1);
	wan_tx_abort(flow, eng_now); /* as if the far gateway had refused it */
}

static void test_failed(void **state)
{
	eng_responder_fail(rs, rs->resp.epsn, 0x64, ENG_CAUSE_REFUSED, eng_now);
	word(ENG_CTRL_SYNC, 0);
	word(ENG_CTRL_REWIND, 0);
	word(ENG_CTRL_FAIL, 0x64);
	assert_int_equal(rs->side.state, ENG_R_FAILED);
	for (unsigned ev = ENG_RE_SYNC; ev <= ENG_RE_FAIL; ev++)
		assert_int_equal(seen(0)->responder[ENG_R_FAILED][ev], 1);
}

/* A FLUSH of host A on its connection, with this PSN. */
static void uncarried(roce_psn psn)
{
	struct rc_mk m = request(psn);

	m.opcode = 0x1c;
	eng_host_sends(0, &m, 0);
	eng_pair_run(5 * RWY_MS);
}

static void test_uncarried(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);
	struct rc_mk m = request(7);
	struct eng_key k = key();
	unsigned naks;

	/* Host A has only responded: its first PSN is unknown. */
	k.qpn++;
	assert_int_equal(eng_responder_get(site[0].e, &k, false, eng_now)->side.state, ENG_R_NEW);
	m.opcode = 0x1c;
	m.dqpn = QPN + 1;
	eng_host_sends(0, &m, 0);
	assert_int_equal(c->drop_uncarried_unknown, 1);
	assert_int_equal(seen(0)->responder[ENG_R_NEW][ENG_RE_UNCARRIED], 1);

	/* The far gateway has not said yet what host A was promised: it sends again. */
	eng_responder_start(rs, 1, 0, eng_now);
	eng_responder_enter(rs, ENG_R_RESUMING);
	uncarried(1);
	assert_int_equal(c->drop_resuming, 1);
	assert_int_equal(seen(0)->responder[ENG_R_RESUMING][ENG_RE_UNCARRIED], 1);

	/* The connection has failed: the host gets its error, not that of the operation. */
	eng_responder_enter(rs, ENG_R_RUNNING);
	eng_responder_fail(rs, rs->resp.epsn, 0x64, ENG_CAUSE_REFUSED, eng_now);
	naks = site[0].of[0].naks;
	uncarried(1);
	assert_int_equal(c->drop_after_error, 1);
	assert_int_equal(site[0].of[0].naks, naks + 1);
	assert_int_equal(rs->resp.fail_syndrome, 0x64);
	assert_int_equal(seen(0)->responder[ENG_R_FAILED][ENG_RE_UNCARRIED], 1);
	assert_int_equal(c->drop_uncarried, 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, connected, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_idle), TEST(test_probing_first), TEST(test_locating),
	    TEST(test_locating_first), TEST(test_locating_lost), TEST(test_end_owed),
	    TEST(test_question_owed), TEST(test_search_behind), TEST(test_search_near),
	    TEST(test_search_stays), TEST(test_locating_lost_first), TEST(test_new),
	    TEST(test_resuming_rewind), TEST(test_resuming_reset), TEST(test_failed), TEST(test_uncarried)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
