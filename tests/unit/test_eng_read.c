/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs of many queue pairs to one slow host: it answers at a fixed rate, and the far gateway does
 * not repeat requests that the host is still going to answer (roce/reqr_host.h).
 */
#include "tests/lib/eng_pair.h"
#include "roce/icrc.h"
#include "roce/psn.h"

#define QPS      16
#define A_QPN    0x20
#define B_QPN    0x40
#define PMTU     1024u
#define LEN      (1u << 20)
#define CNT      (LEN / PMTU)
#define JOBS     64
#define PER_MS   16 /* packets of the host: 16 MB/s */
#define TURN     64 /* of one queue pair in a row, as with Soft-RoCE */
#define PROMISED (60 * RWY_SEC)

/* The requests that host B has to answer on one queue pair, in order. */
struct job {
	roce_psn psn;
	uint32_t cnt, at;
};

struct qp {
	unsigned qps_reads, asked; /* host A: READs to do, READs sent */
	roce_psn first, una;       /* its first PSN; the next response */
	roce_psn expects;          /* host B: the next request */
	bool naked;
	struct job job[JOBS];
	unsigned head, tail;
};

static struct qp qp[QPS];
static unsigned qps, turn, turn_left;
static uint64_t served, rng;
static unsigned credits = 0x1f; /* host B's, as the value of an AETH; 0x1f: none */
static unsigned loss;           /* of 1,000 packets between the far gateway and its host */

static bool lost(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (rng >> 33) % 1000 < loss;
}

static void a_reads(unsigned i)
{
	struct rc_mk m = {.opcode = ROCE_RC_READ_REQ,
	    .psn = roce_psn_add(qp[i].first, qp[i].asked * CNT),
	    .dqpn = B_QPN + i,
	    .va = 0x10000,
	    .rkey = 7,
	    .len = LEN,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	qp[i].asked++;
	eng_host_sends(0, &m, 2);
}

/* Host A: responses arrive in order, each once. */
static void a_heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	struct qp *q = &qp[pkt->dqpn - A_QPN];

	if (pkt->info->op != ROCE_OP_READ_RESP)
		return;
	assert_int_equal(pkt->psn, q->una);
	/* The far host's credits are between it and its gateway. */
	if (pkt->info->flags & ROCE_F_AETH)
		assert_int_equal(roce_aeth_syndrome(pkt), 0x1f);
	assert_true(roce_icrc_ok(pkt));
	q->una = roce_psn_add(q->una, 1);
}

static void b_sends(unsigned i, const struct rc_mk *what)
{
	struct rc_mk m = *what;

	m.dqpn = A_QPN + i;
	memcpy(m.src, (uint8_t[]){10, 2, 0, 3}, 4);
	memcpy(m.dst, (uint8_t[]){10, 1, 0, 3}, 4);
	if (!lost())
		eng_host_sends(1, &m, 2);
}

/* Host B: accepts requests in PSN order, and repeats answers on request. */
static void b_heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	struct qp *q = &qp[pkt->dqpn - B_QPN];
	uint32_t cnt = roce_read_packets(roce_reth_len(pkt), PMTU);

	assert_int_equal(pkt->info->op, ROCE_OP_READ_REQ);
	if (lost())
		return;
	if (roce_psn_after(pkt->psn, q->expects)) {
		q->naked = true;
		return;
	}
	if (pkt->psn == q->expects)
		q->expects = roce_psn_add(q->expects, cnt);
	assert_true(q->tail - q->head < JOBS);
	q->job[q->tail++ % JOBS] = (struct job){.psn = pkt->psn, .cnt = cnt};
}

static void b_answers_one(unsigned i)
{
	struct job *j = &qp[i].job[qp[i].head % JOBS];
	bool first = !j->at, last = j->at + 1 == j->cnt;
	struct rc_mk m = {.opcode = first  ? last ? ROCE_RC_READ_RESP_ONLY : ROCE_RC_READ_RESP_FIRST
	                            : last ? ROCE_RC_READ_RESP_LAST
	                                   : ROCE_RC_READ_RESP_MIDDLE,
	    .psn = roce_psn_add(j->psn, j->at++),
	    .syndrome = (uint8_t)credits,
	    .payload_len = PMTU};

	served++;
	if (last)
		qp[i].head++;
	b_sends(i, &m);
}

/* One millisecond of host B: queue pairs by turns. */
static void b_works(void)
{
	for (unsigned i = 0; i < qps; i++)
		if (qp[i].naked) {
			qp[i].naked = false;
			b_sends(i,
			    &(struct rc_mk){.opcode = ROCE_RC_ACK, .psn = qp[i].expects, .syndrome = 0x60});
		}
	for (unsigned n = 0, idle = 0; n < PER_MS && idle < qps;) {
		if (!turn_left || qp[turn].head == qp[turn].tail) {
			turn = (turn + 1) % qps;
			turn_left = TURN;
			idle += qp[turn].head == qp[turn].tail;
			continue;
		}
		idle = 0;
		turn_left--;
		n++;
		b_answers_one(turn);
	}
}

static unsigned reads_done(unsigned i)
{
	return ((qp[i].una - qp[i].first) & ROCE_PSN_MASK) / CNT;
}

/* Each queue pair of host A has one READ outstanding, as Soft-RoCE has at this length. */
static void all_read(unsigned n, unsigned reads, rwy_dur one_way)
{
	bool more = true;

	qps = n;
	turn = turn_left = 0;
	served = 0;
	rng = 1;
	eng_pair_delay(one_way);
	site[0].heard = a_heard;
	site[1].heard = b_heard;
	for (unsigned i = 0; i < n; i++) {
		qp[i] = (struct qp){.first = 0x800000 * (i & 1) + 0x10000 * i};
		qp[i].una = qp[i].expects = qp[i].first;
	}
	for (rwy_time end = eng_now + PROMISED; more; eng_pair_run(RWY_MS)) {
		more = false;
		assert_true(eng_now < end);
		b_works();
		for (unsigned i = 0; i < n; i++) {
			if (qp[i].asked < reads && reads_done(i) == qp[i].asked)
				a_reads(i);
			more |= reads_done(i) < reads;
		}
	}
	eng_pair_run(2 * RWY_SEC); /* copies would arrive now */
}

/* Without loss each READ is requested once, whatever the distance. */
static void test_once(void **state)
{
	static const unsigned ns[] = {1, 4, QPS};
	static const rwy_dur ways[] = {10 * RWY_MS, 50 * RWY_MS};

	loss = 0;
	for (unsigned k = 0; k < 6; k++) {
		const struct eng_counters *c;
		unsigned n = ns[k / 2];

		assert_int_equal(eng_pair_set_up(state), 0);
		all_read(n, 3, ways[k % 2]);
		c = eng_counters(site[1].e);
		assert_int_equal(c->local_ack_timeout_err, 0);
		assert_int_equal(c->drop_old_response, 0);
		assert_int_equal(c->host_resent, 0);
		assert_int_equal(site[1].requests, 3 * n);
		assert_int_equal(served, (uint64_t)3 * n * CNT);
		assert_int_equal(eng_pair_tear_down(state), 0);
	}
}

/* A host that gives end-to-end credits: host A, which would never hear of new ones, gets none. */
static void test_credits(void **state)
{
	(void)state;
	credits = 3;
	all_read(1, 2, 10 * RWY_MS);
	credits = 0x1f;
}

/* The LAN loses packets: all READs complete, and the host answers little twice. */
static void test_lan_loss(void **state)
{
	loss = 1;
	for (unsigned n = 1; n <= QPS; n *= 4) {
		assert_int_equal(eng_pair_set_up(state), 0);
		all_read(n, 3, 10 * RWY_MS);
		assert_true(eng_counters(site[1].e)->host_resent > 0);
		assert_int_equal(eng_counters(site[1].e)->conns_failed, 0);
		assert_int_equal(eng_pair_tear_down(state), 0);
	}
}

/* Host A repeats READ number `nth`, answered long ago, from its packet `at` on. */
static void a_repeats(unsigned nth, unsigned at, uint64_t va)
{
	qp[0].una = roce_psn_add(qp[0].first, nth * CNT + at);
	eng_host_sends(0,
	    &(struct rc_mk){.opcode = ROCE_RC_READ_REQ,
	        .psn = qp[0].una,
	        .dqpn = B_QPN,
	        .va = va,
	        .rkey = 7,
	        .len = LEN - at * PMTU,
	        .src = {10, 1, 0, 3},
	        .dst = {10, 2, 0, 3}},
	    2);
	for (unsigned i = 0; i < 500; i++) {
		b_works();
		eng_pair_run(RWY_MS);
	}
	assert_int_equal(qp[0].una, roce_psn_add(qp[0].first, (nth + 1) * CNT));
}

/* Memory answers the rest of a READ; host B is asked about a READ that may be a new
 * connection's. */
static void test_repeats(void **state)
{
	loss = 0;
	all_read(1, 1, 10 * RWY_MS);
	assert_int_equal(site[1].requests, 1);
	a_repeats(0, 600, 0x10000 + 600 * PMTU);
	a_repeats(0, 1, 0x10000 + PMTU);
	assert_int_equal(site[1].requests, 1);
	assert_int_equal(served, CNT);
	a_repeats(0, 600, 0x20000);
	assert_int_equal(site[1].requests, 2);
	assert_int_equal(served, CNT + CNT - 600);
}

/* A complete READ again: only the connection's first one may be a new connection's. */
static void test_repeat_of_all(void **state)
{
	loss = 0;
	all_read(1, 2, 10 * RWY_MS);
	a_repeats(1, 0, 0x10000);
	assert_int_equal(site[1].requests, 2);
	a_repeats(1, 0, 0x20000);
	assert_int_equal(site[1].requests, 3);
}

static void test_repeat_of_first(void **state)
{
	loss = 0;
	all_read(1, 1, 10 * RWY_MS);
	a_repeats(0, 0, 0x10000);
	assert_int_equal(site[1].requests, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_once), cmocka_unit_test(test_lan_loss),
	    cmocka_unit_test_setup_teardown(test_credits, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeats, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeat_of_all, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeat_of_first, eng_pair_set_up, eng_pair_tear_down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
