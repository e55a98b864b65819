/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single allocation fails, at a bad moment: what hosts have ACKs for arrives, or they get an error,
 * and nobody waits for ever. The explorer's fault `heap` has the moments that nobody thought of.
 */
#include "engine/requester.h"
#include "tests/lib/eng_two_hosts.h"
#include "wan/tunnel.h"

static const struct rc_mk send_a = {.opcode = ROCE_RC_SEND_ONLY,
    .dqpn = QPN_B,
    .ack_req = true,
    .payload_len = 64,
    .src = HOST_A,
    .dst = HOST_B};
static const struct rc_mk read_a = {
    .opcode = ROCE_RC_READ_REQ, .dqpn = QPN_B, .va = 0x1000, .len = 64, .src = HOST_A, .dst = HOST_B};
static const struct rc_mk ack_b = {
    .opcode = ROCE_RC_ACK, .dqpn = QPN_A, .syndrome = 0x1f, .msn = 1, .src = HOST_B, .dst = HOST_A};
static const struct rc_mk answer_b = {.opcode = ROCE_RC_READ_RESP_ONLY,
    .dqpn = QPN_A,
    .syndrome = 0x1f,
    .msn = 2,
    .payload_len = 64,
    .src = HOST_B,
    .dst = HOST_A};

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static unsigned let;  /* so many more allocations have memory, */
static unsigned lack; /* and so many after them have none */

static bool fails(void)
{
	if (!lack || let) {
		let -= let > 0;
		return false;
	}
	lack--;
	return true;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(align, size);
}

/* Flows and small rings come in chunks: the next one needs a chunk. */
static void use_up_flows(struct wan_tunnel *t)
{
	t->tx_slab.free = t->rx_slab.free = t->ring_slab.free = NULL;
	t->tx_slab.left = t->rx_slab.left = t->ring_slab.left = 0;
}

static void no_memory_after(unsigned some, unsigned many)
{
	for (unsigned s = 0; s < 2 && many; s++)
		use_up_flows(site[s].e->tunnel[0].wan);
	let = some;
	lack = many;
}

static void send_of(const struct rc_mk *m, roce_psn psn)
{
	struct rc_mk one = *m;

	one.psn = psn;
	eng_host_sends(one.src[1] == 2, &one, 0);
}

/* Host A has sent to B, and B has answered. Then the flow of A's requests ends: it was idle. */
static void connect_and_rest(void)
{
	send_of(&send_a, 0);
	eng_pair_run(20 * RWY_MS);
	send_of(&ack_b, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[0].ack_psn, 0);
	eng_responder_abort(eng_side_of_a(), eng_now);
	eng_pair_run(100 * RWY_MS);
}

/* Without memory for a flow a request is dropped; one that has its ACK is never. */
static void test_request(void **state)
{
	const bool first = *state;

	if (!first)
		connect_and_rest();
	for (unsigned n = 0; n < 3; n++) { /* the flow, what the far gateway needs, or nothing */
		const roce_psn psn = first ? 0 : 1 + n;
		const unsigned before = site[0].of[0].acks;

		no_memory_after(n, n < 2);
		send_of(&send_a, psn);
		eng_pair_run(20 * RWY_MS);
		no_memory_after(0, 0);
		assert_true(site[0].of[0].acks == before || site[1].psn == psn);
		send_of(&send_a, psn);
		eng_pair_run(20 * RWY_MS);
		send_of(&ack_b, psn);
		eng_pair_run(20 * RWY_MS);
		assert_int_equal(site[1].psn, psn);
		assert_true(site[0].of[0].acks > before);
		if (first)
			break;
		eng_responder_abort(eng_side_of_a(), eng_now);
		eng_pair_run(100 * RWY_MS);
	}
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

/* The far gateway has no memory for a flow that uses a place again: the data comes again. */
static void test_opened_flow(void **state)
{
	connect_and_rest();
	send_of(&send_a, 1);
	no_memory_after(0, 1);
	eng_pair_run(3 * RWY_MS);
	assert_int_equal(lack, 0);
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[1].psn, 1);
}

/* The far gateway has memory for a new flow, but its directory is full: it refuses the flow. */
static void test_no_place(void **state)
{
	struct eng_cfg *cfg = &site[1].e->cfg;
	struct rc_mk m = send_a;

	connect_and_rest();
	assert_int_equal(eng_directory_new(&cfg->directory, 1, 1), 0);
	for (uint64_t i = 1; i < 4096; i++)
		(void)eng_directory_add(cfg->directory, i * 0x9e3779b97f4a7c15u, 1);
	m.dqpn = QPN_B + 1;
	send_of(&m, 0);
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_counters(site[1].e)->drop_flow_table_full, 1);
	assert_int_equal(eng_counters(site[1].e)->drop_no_buffer, 0);
	eng_directory_free(cfg->directory);
	cfg->directory = NULL;
}

/* No memory for the flow of responses: the host sends its response again. */
static void test_response(void **state)
{
	struct eng_responder *rs;

	connect_and_rest();
	send_of(&read_a, 1);
	eng_pair_run(20 * RWY_MS);
	rs = eng_side_of_a();
	wan_rx_reset(rs->responses, eng_now);
	rs->responses = NULL;
	eng_pair_run(20 * RWY_MS);
	no_memory_after(0, 1);
	send_of(&answer_b, 1);
	assert_int_equal(lack, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].responses, 0);
	send_of(&answer_b, 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
}

/* The flow cannot grow: the host is asked again, and no connection ends. */
static void test_more_responses(void **state)
{
	connect_and_rest();
	for (roce_psn psn = 1; psn <= 20; psn++)
		send_of(&read_a, psn);
	eng_pair_run(20 * RWY_MS);
	eng_pair_cut(true);
	no_memory_after(1, 1); /* the first is for the list of those responses */
	for (roce_psn psn = 1; psn <= 20; psn++)
		send_of(&answer_b, psn);
	assert_int_equal(lack, 0);
	eng_pair_run(5 * RWY_MS);
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	assert_in_range(site[0].responses, 1, 19);
	for (roce_psn psn = 1; psn <= 20; psn++)
		send_of(&answer_b, psn);
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[0].responses, 20);
	assert_int_equal(site[0].of[0].naks, 0);
}

/* Nor can the flow of requests: one that finds no place has no ACK, and its host sends it again. */
static void test_more_requests(void **state)
{
	connect_and_rest();
	eng_pair_cut(true);
	no_memory_after(3, 1); /* the first ones are for the flow */
	for (roce_psn psn = 1; psn <= 20; psn++)
		send_of(&send_a, psn);
	assert_int_equal(lack, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 1); /* it acknowledges what is before */
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	for (roce_psn psn = 1; psn <= 20; psn++)
		send_of(&send_a, psn);
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[0].of[0].ack_psn, 20);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

/*
 * The first request is reported when the near gateway has the SYNC, and not before, also where there
 * is no memory to note that.
 */
static void test_report_start(void **state)
{
	const struct eng_key k = eng_key_of_a();
	const struct eng_requester *rq;

	send_of(&send_a, 0);
	eng_pair_run(20 * RWY_MS);
	rq = (const struct eng_requester *)eng_find(site[1].e, &k, true);
	assert_non_null(rq);
	eng_pair_cut(true);
	no_memory_after(5, 9); /* the other side and the flow of responses are made */
	send_of(&ack_b, 0);
	no_memory_after(0, 0);
	assert_true(rq->responses && rq->responses_sent == 1);
	assert_int_equal(rq->acked_seq, 1);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(rq->reported_seq, 0);
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	assert_int_equal(rq->reported_seq, 1);
	assert_int_equal(site[0].of[0].ack_psn, 0);
}

/* Host A has sent to B, B has answered, and both have been quiet for a while. */
static void connect_and_be_quiet(void)
{
	send_of(&send_a, 0);
	eng_pair_run(20 * RWY_MS);
	send_of(&ack_b, 0);
	eng_pair_run(8 * RWY_SEC);
	assert_int_equal(site[0].of[0].ack_psn, 0);
}

/* A flow has no ring and does not know what it was opened with. */
static bool rests(const struct wan_txflow *f)
{
	return !f->mask && !f->info;
}

/*
 * A quiet connection gives memory back, and takes it again. Where there is none its host's request
 * is dropped, and the next one taken.
 */
static void test_quiet(void **state)
{
	const bool lacking = *state;
	const struct eng_key k = eng_key_of_a();
	const struct eng_requester *rq;
	struct eng_responder *rs;

	connect_and_be_quiet();
	rs = eng_side_of_a();
	rq = (const struct eng_requester *)eng_find(site[1].e, &k, true);
	assert_true(rq && rq->requests && !rq->responses && !rs->responses);
	assert_ptr_equal(rs->rare, &eng_rare_none);
	assert_true(rests(rs->requests));
	if (lacking) {
		no_memory_after(0, 1);
		send_of(&send_a, 1);
		assert_int_equal(lack, 0);
		assert_int_equal(eng_counters(site[0].e)->drop_no_buffer, 1);
	}
	send_of(&send_a, 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].psn_of[QPN_B], 1);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	assert_int_equal(site[0].of[0].naks, 0);
	send_of(&read_a, 2);
	eng_pair_run(20 * RWY_MS);
	send_of(&answer_b, 2);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	assert_true(rq->responses && rs->responses);
	eng_pair_run(70 * RWY_SEC);
	assert_ptr_equal(rs->rare, &eng_rare_none); /* the answer is not kept any longer */
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

/* The far gateway restarts, and there is no memory to open the quiet flow again: a tick does so. */
static void test_open_again(void **state)
{
	struct wan_txflow *f;

	connect_and_be_quiet();
	f = eng_side_of_a()->requests;
	no_memory_after(0, 1);
	wan_tx_restart(site[0].e->tunnel[0].wan, eng_now);
	assert_int_equal(lack, 0);
	assert_true(f->unnamed && !f->info);
	eng_pair_run(20 * RWY_MS);
	assert_true(!f->unnamed && f->info);
	send_of(&send_a, 1);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[1].psn_of[QPN_B], 1);
}

static int set_up_first(void **state)
{
	*state = &let;
	return eng_pair_set_up(state);
}

static int set_up_journal(void **state)
{
	eng_pair_tune = eng_pair_with_journal;
	memset(eng_pair_journal, 0, sizeof(eng_pair_journal));
	return eng_pair_set_up(state);
}

/*
 * The far gateway restarted, and has no memory to pair the two sides of a connection when its flow is
 * opened. The first request pairs them: nothing is owed any more when the host is asked later.
 */
static void test_pair_owed(void **state)
{
	const struct rc_mk send_b = {.opcode = ROCE_RC_SEND_ONLY,
	    .dqpn = QPN_A,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = HOST_B,
	    .dst = HOST_A};
	const struct eng_key k = eng_key_of_a();
	const struct eng_requester *rq;
	unsigned owed = 0;

	send_of(&send_a, 0);
	eng_pair_run(20 * RWY_MS);
	send_of(&ack_b, 0);
	send_of(&send_b, 0);
	eng_pair_run(20 * RWY_MS);
	for (roce_psn psn = 1; psn < 8; psn++) {
		eng_pair_restart(1);
		eng_pair_run(RWY_SEC);
		no_memory_after(psn - 1, 1);
		send_of(&send_a, psn);
		eng_pair_run(20 * RWY_MS);
		no_memory_after(0, 0);
		rq = (const struct eng_requester *)eng_find(site[1].e, &k, true);
		owed += rq && !rq->responder;
		send_of(&send_a, psn);
		eng_pair_run(20 * RWY_MS);
		send_of(&ack_b, psn);
		eng_pair_run(20 * RWY_MS);
		rq = (const struct eng_requester *)eng_find(site[1].e, &k, true);
		assert_non_null(rq);
		assert_false(rq->owes_pair);
	}
	assert_true(owed > 0);
}

#define TEST(t, set_up) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_request, eng_pair_set_up),
	    TEST(test_request, set_up_first),
	    TEST(test_opened_flow, eng_pair_set_up),
	    TEST(test_no_place, eng_pair_set_up),
	    TEST(test_response, eng_pair_set_up),
	    TEST(test_more_responses, eng_pair_set_up),
	    TEST(test_more_requests, eng_pair_set_up),
	    TEST(test_report_start, eng_pair_set_up),
	    TEST(test_quiet, eng_pair_set_up),
	    TEST(test_quiet, set_up_first),
	    TEST(test_open_again, eng_pair_set_up),
	    TEST(test_pair_owed, set_up_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
