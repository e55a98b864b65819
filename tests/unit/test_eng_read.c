/* SPDX-License-Identifier: Apache-2.0 */
/*
 * READs of many queue pairs to one slow host: it answers at a fixed rate, and the far gateway does
 * not repeat requests that the host is still going to answer (roce/reqr_host.h).
 */
#include "tests/lib/eng_pair.h"
#include "roce/icrc.h"
#include "roce/psn.h"

#define QPS      16
#define QPS_MAX  64
#define A_QPN    0x20
#define B_QPN    0x80
#define PMTU     1024u
#define LEN      (1u << 20)
#define CNT      (LEN / PMTU)
#define JOBS     64
#define PROMISED (300 * RWY_SEC)
#define A_WAITS  (268 * RWY_MS) /* host A asks again after so long without a response; 0.27 s */

/* The requests that host B has to answer on one queue pair, in order. */
struct job {
	roce_psn psn;
	uint32_t cnt, at;
	uint32_t sent; /* of cnt: the others found no room in the queue of the host's link */
	uint64_t nth;  /* of all requests to the host */
};

struct qp {
	unsigned asked;      /* host A: READs sent */
	roce_psn first, una; /* its first PSN; the next response */
	rwy_time heard;      /* host A's timer runs since then */
	roce_psn expects;    /* host B: the next request */
	bool naked;
	struct job job[JOBS];
	unsigned head, tail;
};

/* Host B: how it answers, and what it did. */
struct host_b {
	unsigned per_ms;   /* packets */
	unsigned in_a_row; /* packets of a queue pair that has its turn */
	unsigned room;     /* packets that its link's queue takes; further ones are lost */
	bool fifo;         /* it answers in the order of the requests, not by turns */
	unsigned turn, turn_left, queued;
	uint64_t served, arrived;
};

static const struct host_b soft_roce = {.per_ms = 16, .in_a_row = 64, .room = 1u << 20};
static struct host_b b;
static struct qp qp[QPS_MAX];
static unsigned qps;
static uint64_t rng;
static unsigned ahead = 1;           /* READs that a queue pair of host A has outstanding */
static bool repeats;                 /* host A has a timer */
static rwy_dur run_on = 2 * RWY_SEC; /* after all READs are done: copies would arrive then */
static unsigned credits = 0x1f;      /* host B's, as the value of an AETH; 0x1f: none */
static unsigned loss;                /* of 1,000 packets between the far gateway and its host */

static bool lost(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (rng >> 33) % 1000 < loss;
}

/* Host A asks for a READ, or for the rest of it. */
static void a_asks(unsigned i, roce_psn psn)
{
	uint32_t at = (psn - qp[i].first) % CNT;
	struct rc_mk m = {.opcode = ROCE_RC_READ_REQ,
	    .psn = psn,
	    .dqpn = B_QPN + i,
	    .va = 0x10000 + at * PMTU,
	    .rkey = 7,
	    .len = LEN - at * PMTU,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	qp[i].heard = eng_now;
	eng_host_sends(0, &m, 2);
}

static void a_reads(unsigned i)
{
	a_asks(i, roce_psn_add(qp[i].first, qp[i].asked++ * CNT));
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
	q->heard = eng_now;
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
	uint32_t cnt = roce_read_packets(roce_reth_len(pkt), PMTU), sent;

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
	sent = b.room - b.queued < cnt ? b.room - b.queued : cnt;
	if (!sent)
		return;
	b.queued += sent;
	q->job[q->tail++ % JOBS] =
	    (struct job){.psn = pkt->psn, .cnt = cnt, .sent = sent, .nth = b.arrived++};
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

	b.served++;
	b.queued--;
	if (j->at == j->sent)
		qp[i].head++;
	b_sends(i, &m);
}

static bool b_idle(unsigned i)
{
	return qp[i].head == qp[i].tail;
}

/* The queue pair with the oldest request; `qps`: there is none. */
static unsigned b_oldest(void)
{
	unsigned best = qps;

	for (unsigned i = 0; i < qps; i++)
		if (!b_idle(i) && (best == qps || qp[i].job[qp[i].head % JOBS].nth <
		                                      qp[best].job[qp[best].head % JOBS].nth))
			best = i;
	return best;
}

/* The queue pair whose packet is next; `qps`: host B has nothing to answer. */
static unsigned b_next(void)
{
	if (b.fifo)
		return b_oldest();
	for (unsigned idle = 0; idle <= qps; idle++) {
		if (b.turn_left && !b_idle(b.turn)) {
			b.turn_left--;
			return b.turn;
		}
		b.turn = (b.turn + 1) % qps;
		b.turn_left = b.in_a_row;
	}
	return qps;
}

/* One millisecond of host B. */
static void b_works(void)
{
	unsigned i;

	for (i = 0; i < qps; i++)
		if (qp[i].naked) {
			qp[i].naked = false;
			b_sends(i,
			    &(struct rc_mk){.opcode = ROCE_RC_ACK, .psn = qp[i].expects, .syndrome = 0x60});
		}
	for (unsigned n = 0; n < b.per_ms && (i = b_next()) < qps; n++)
		b_answers_one(i);
}

static unsigned reads_done(unsigned i)
{
	return ((qp[i].una - qp[i].first) & ROCE_PSN_MASK) / CNT;
}

/* Each queue pair of host A has `ahead` READs outstanding. Returns the time that they all take. */
static rwy_dur all_read(unsigned n, unsigned reads, rwy_dur one_way)
{
	rwy_time began = eng_now, done;
	bool more = true;

	qps = n;
	b.turn = b.turn_left = b.queued = 0;
	b.served = b.arrived = 0;
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
			while (qp[i].asked < reads && qp[i].asked - reads_done(i) < ahead)
				a_reads(i);
			if (repeats && reads_done(i) < qp[i].asked && eng_now - qp[i].heard >= A_WAITS)
				a_asks(i, qp[i].una);
			more |= reads_done(i) < reads;
		}
	}
	done = eng_now;
	eng_pair_run(run_on);
	return done - began;
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
		assert_int_equal(b.served, (uint64_t)3 * n * CNT);
		assert_int_equal(eng_pair_tear_down(state), 0);
	}
}

/*
 * Nothing is asked twice of a host with a slow link, in whatever order it answers, and it is never
 * idle: neither while a queue pair waits for its first answer behind those of others, nor when the
 * last of 64 READs waits for 16 s. No more is asked at a time than its queue takes.
 */
static void test_slow_host(void **state)
{
	static const struct {
		unsigned qps, ahead, reads, in_a_row, room;
		bool fifo;
	} cases[] = {
	    {16, 1, 5, 0, 20000, true},
	    {16, 1, 5, 64, 20000, false},
	    {16, 1, 5, CNT, 20000, false},
	    {16, 6, 6, 0, 20000, true},
	    {16, 6, 6, CNT, 20000, false},
	    {64, 1, 2, CNT, 80000, false},
	    {1, 6, 6, 0, 20000, true},
	};

	loss = 0;
	for (unsigned k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		uint64_t packets = (uint64_t)cases[k].qps * cases[k].reads * CNT;
		const struct eng_counters *c;

		b = (struct host_b){
		    .per_ms = 4, .in_a_row = cases[k].in_a_row, .room = cases[k].room, .fifo = cases[k].fifo};
		repeats = true;
		ahead = cases[k].ahead;
		assert_int_equal(eng_pair_set_up(state), 0);
		assert_in_range(all_read(cases[k].qps, cases[k].reads, 10 * RWY_MS),
		    packets * RWY_MS / b.per_ms, packets * RWY_MS / b.per_ms + RWY_SEC);
		c = eng_counters(site[1].e);
		assert_int_equal(c->local_ack_timeout_err, 0);
		assert_int_equal(c->implied_nak_seq_err, 0);
		assert_int_equal(c->host_resent, 0);
		assert_int_equal(c->drop_old_response, 0);
		assert_int_equal(b.served, packets);
		assert_int_equal(eng_pair_tear_down(state), 0);
	}
	b = soft_roce;
	ahead = 1;
	repeats = false;
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
	assert_int_equal(b.served, CNT);
	a_repeats(0, 600, 0x20000);
	assert_int_equal(site[1].requests, 2);
	assert_int_equal(b.served, CNT + CNT - 600);
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

/*
 * The timer of host A runs while it processes the answer, so one more copy of its first READ comes
 * afterwards. It repeated before the answer: then that copy goes nowhere, but the next one does.
 */
static void test_repeat_in_flight(void **state)
{
	loss = 0;
	b.per_ms = 4;
	b.fifo = repeats = true;
	run_on = 0;
	all_read(4, 1, 10 * RWY_MS); /* the last one waits for 0.77 s and asks three times */
	b = soft_roce;
	repeats = false;
	run_on = 2 * RWY_SEC;
	assert_int_equal(site[1].of_qpn[B_QPN + 3], 1);
	eng_pair_run(A_WAITS - 10 * RWY_MS);
	a_asks(3, qp[3].first);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(site[1].of_qpn[B_QPN + 3], 1);
	assert_int_equal(eng_counters(site[0].e)->drop_read_on_its_way, 1);
	eng_pair_run(A_WAITS - 100 * RWY_MS);
	site[0].heard = NULL; /* this answer is for a new connection */
	a_asks(3, qp[3].first);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(site[1].of_qpn[B_QPN + 3], 2);
}

static void test_repeat_of_first(void **state)
{
	loss = 0;
	all_read(1, 1, 10 * RWY_MS);
	a_repeats(0, 0, 0x10000);
	assert_int_equal(site[1].requests, 2);
}

/* 64 queue pairs begin at once. */
static void tune(struct eng_cfg *c)
{
	c->half_open_max = 2 * QPS_MAX;
}

int main(void)
{
	eng_pair_tune = tune;
	b = soft_roce;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_once), cmocka_unit_test(test_lan_loss),
	    cmocka_unit_test(test_slow_host),
	    cmocka_unit_test_setup_teardown(test_credits, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeats, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeat_of_all, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeat_in_flight, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_repeat_of_first, eng_pair_set_up, eng_pair_tear_down)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
