/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers kept for hosts that lost them, in two engines with a perfect WAN: however many there are,
 * they use no more memory than the answers that a host may still ask for again, and those come from
 * memory.
 */
#include "tests/lib/eng_pair.h"

#include "engine/responder.h"

#define BATCH  64  /* outstanding at a time */
#define REPEAT 255 /* most READs and ATOMICs that a host can have outstanding */
/* Requests and answers of a batch in flight at once, and the tunnel's own. */
#define BUSY (4 * BATCH)
#define QPS  9

static uint16_t tenant; /* of the hosts */

static uint64_t original_of(uint32_t i)
{
	return 0x0123456700000000u + i;
}

/* Request i of a host of side 0, of queue pair `qpn`: PSN i. */
static void ask(uint32_t qpn, uint8_t opcode, uint32_t i)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = i & ROCE_PSN_MASK,
	    .dqpn = qpn,
	    .len = 64,
	    .swap_add = 1,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends_as(0, tenant, &m, 0);
}

/* Its answer, by the host of side 1. */
static void answer(uint32_t qpn, uint8_t opcode, uint32_t i)
{
	struct rc_mk m = {.opcode = opcode,
	    .psn = i & ROCE_PSN_MASK,
	    .dqpn = qpn + 0x1000,
	    .syndrome = 0x1f,
	    .msn = (i + 1) & ROCE_PSN_MASK,
	    .original = original_of(i),
	    .payload_len = opcode == ROCE_RC_ATOMIC_ACK ? 0 : 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends_as(1, tenant, &m, 0);
}

static void in_masses(uint32_t qpn, uint8_t request, uint8_t response, uint32_t from, uint32_t n)
{
	/* The first one alone: the flow is unpaired until it is answered. */
	for (uint32_t i = from, end = from + n, most = 1, k; i < end; i += k, most = BATCH) {
		unsigned served = site[0].responses, come = site[1].requests, done = 0;

		for (k = 0; k < most && i + k < end; k++)
			ask(qpn, request, i + k);
		for (unsigned turn = 0; turn < 20 && done < k; turn++) {
			eng_pair_run(2 * RWY_MS);
			for (; done < site[1].requests - come; done++)
				answer(qpn, response, i + done);
		}
		eng_pair_run(2 * RWY_MS);
		assert_int_equal(site[0].responses, served + k);
	}
}

static void atomics(uint32_t qpn, uint32_t from, uint32_t n)
{
	in_masses(qpn, ROCE_RC_FETCH_ADD, ROCE_RC_ATOMIC_ACK, from, n);
}

static void reads(uint32_t qpn, uint32_t from, uint32_t n)
{
	in_masses(qpn, ROCE_RC_READ_REQ, ROCE_RC_READ_RESP_ONLY, from, n);
}

/* The host repeats request i: true if it gets the answer and nothing else happens. */
static bool answered_again(uint32_t qpn, uint8_t opcode, uint32_t i)
{
	unsigned executed = site[1].requests, served = site[0].responses;

	ask(qpn, opcode, i);
	assert_int_equal(site[1].requests, executed);
	return site[0].responses == served + 1 && site[0].response_psn == (i & ROCE_PSN_MASK) &&
	       (opcode == ROCE_RC_READ_REQ || site[0].original == original_of(i));
}

/*
 * The host repeats the n before `end`, while one more request waits for its answer: otherwise a
 * repetition later than a round trip might be a new connection's, and the far host would be asked.
 */
static void last_again(uint32_t qpn, uint8_t opcode, uint32_t end, uint32_t n)
{
	ask(qpn, opcode, end);
	eng_pair_run(4 * RWY_MS);
	for (uint32_t i = end - n; i < end; i++)
		assert_true(answered_again(qpn, opcode, i));
	assert_int_equal(site[0].of[tenant].naks, 0);
}

/* 75,000 are more than a gateway has packet buffers. */
static void test_atomics(void **state)
{
	const uint32_t n = 75000;
	uint64_t idle;

	atomics(0x50, 7, BATCH); /* opens the connection */
	eng_pair_run(RWY_SEC);
	idle = site[0].bufs;
	assert_int_equal(idle, 0);
	atomics(0x50, 7 + BATCH, n - BATCH);
	assert_true(site[0].bufs_most <= BUSY);
	assert_true(site[1].bufs_most <= BUSY);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].bufs, idle);
	last_again(0x50, ROCE_RC_FETCH_ADD, 7 + n, REPEAT - 1);
	assert_int_equal(site[1].requests, n + 1);
}

/* As many again, over the end of the PSNs: an answer is found by its position, not by 24 bits. */
static void test_atomics_wrap(void **state)
{
	const uint32_t first = ROCE_PSN_MASK - 100;

	atomics(0x50, first, 300);
	eng_pair_run(RWY_SEC);
	assert_int_equal(site[0].bufs, 0);
	last_again(0x50, ROCE_RC_FETCH_ADD, first + 300, REPEAT - 1);
}

static void test_small_reads(void **state)
{
	const uint32_t n = 3000;

	reads(0x50, 7, n);
	assert_true(site[0].bufs_most <= BUSY + REPEAT + 1);
	eng_pair_run(20 * RWY_MS);
	assert_in_range(site[0].bufs, REPEAT, REPEAT + 1);
	last_again(0x50, ROCE_RC_READ_REQ, 7 + n, REPEAT - 1);
}

static void tune_little(struct eng_cfg *c)
{
	c->read_cache_conn = 128 * c->buf_cost;
	c->read_cache_total = 512 * c->buf_cost;
}

static int set_up_little(void **state)
{
	eng_pair_tune = tune_little;
	eng_pair_set_up(state);
	eng_pair_tune = NULL;
	return 0;
}

/* Each connection has its share: earlier ones give way to later ones, and keep the rest. */
static void test_shares(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);

	for (uint32_t q = 0; q < QPS; q++) {
		reads(0x50 + q, 7, 200);
		assert_true(eng_kept_buffers(site[0].e) <= 512);
		assert_int_equal(eng_kept_bytes(site[0].e), eng_kept_buffers(site[0].e) * 256ull);
		if (q == 0)
			assert_int_equal(eng_kept_buffers(site[0].e), 128);
	}
	assert_int_equal(c->read_cache_full, 0);
	assert_true(eng_kept_buffers(site[0].e) > 512 - BATCH);
	for (uint32_t q = 0; q < QPS; q++)
		last_again(0x50 + q, ROCE_RC_READ_REQ, 207, 512 / QPS - 1);
	/* An answer that is no longer kept may still wait in the host's own queue. */
	reads(0x50, 207, 1);
	ask(0x50, ROCE_RC_READ_REQ, 10);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 0);
	assert_int_equal(c->drop_read_on_its_way, 1);
	/* A host that asks later has lost it: an error, not silence. */
	eng_pair_run(1100 * RWY_MS);
	ask(0x50, ROCE_RC_READ_REQ, 208);
	ask(0x50, ROCE_RC_READ_REQ, 10);
	eng_pair_run(2 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 1);
}

static void add_tenant(unsigned at, uint64_t custody)
{
	uint8_t net[4] = {10, (uint8_t)(2 - at), 0, 0};
	struct eng_prefix p = {.addr = rwy_ip_from4(net), .len = 120};
	struct eng_tenant_cfg c = {.vni = 100, .custody = custody, .prefix = &p, .prefixes = 1};

	assert_int_equal(eng_tenant_set(site[at].e, 1, &c, eng_now), 0);
}

/* A tenant's connections have equal parts of its custody, and use nothing of other tenants'. */
static void test_tenant(void **state)
{
	reads(0x50, 7, 100);
	for (unsigned at = 0; at < 2; at++)
		add_tenant(at, 80 * 256);
	tenant = 1;
	reads(0x60, 7, 100);
	assert_int_equal(eng_kept_buffers(site[0].e), 100 + 80);
	reads(0x61, 7, 100);
	assert_int_equal(eng_kept_buffers(site[0].e), 100 + 80 + 40);
	reads(0x60, 107, 1);
	assert_int_equal(eng_kept_buffers(site[0].e), 100 + 40 + 40);
	last_again(0x61, ROCE_RC_READ_REQ, 107, 40);
	tenant = 0;
	last_again(0x50, ROCE_RC_READ_REQ, 107, 100);
}

/* A host that is silent for a minute has given up. */
static void test_given_up(void **state)
{
	reads(0x50, 7, 100);
	assert_int_equal(eng_kept_buffers(site[0].e), 100);
	eng_pair_run(50 * RWY_SEC);
	assert_int_equal(eng_kept_buffers(site[0].e), 100);
	eng_pair_run(15 * RWY_SEC);
	assert_int_equal(eng_kept_buffers(site[0].e), 0);
	assert_int_equal(site[0].bufs, 0);
	assert_int_equal(eng_flow_count(site[0].e), 1);
	reads(0x50, 107, 100);
	last_again(0x50, ROCE_RC_READ_REQ, 207, 100);
}

static struct eng_responder *responder(uint32_t qpn)
{
	struct eng_key k = {
	    rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}), rwy_ip_from4((uint8_t[4]){10, 2, 0, 3}), qpn, tenant};

	return (struct eng_responder *)eng_find(site[0].e, &k, false);
}

/* A kept answer that has changed in memory gets no new ICRC: the host gets an error. */
static void test_damaged_read(void **state)
{
	const struct eng_keptq *kept;
	struct eng_responder *rs;
	struct rwy_buf *b;
	unsigned served;

	reads(0x50, 7, 10);
	rs = responder(0x50);
	assert_non_null(rs);
	kept = &rs->rare->reads;
	b = kept->at[(kept->head + kept->n - 1) & (kept->cap - 1)].buf;
	b->data[b->len - 20] ^= 1;
	ask(0x50, ROCE_RC_READ_REQ, 17); /* one that waits, see last_again */
	eng_pair_run(4 * RWY_MS);
	served = site[0].responses;
	ask(0x50, ROCE_RC_READ_REQ, 16);
	eng_pair_run(4 * RWY_MS);
	assert_int_equal(site[0].responses, served);
	assert_int_equal(eng_counters(site[0].e)->drop_wan_icrc, 1);
	assert_int_equal(site[0].of[tenant].naks, 1);
}

/* An ATOMIC's answer is kept as a number: a damaged one must not become such. */
static void test_damaged_atomic(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_ATOMIC_ACK,
	    .psn = 17,
	    .dqpn = 0x1050,
	    .syndrome = 0x1f,
	    .original = 5,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	struct eng_responder *rs;
	struct rwy_buf *b;
	unsigned served;

	atomics(0x50, 7, 10);
	ask(0x50, ROCE_RC_FETCH_ADD, 17);
	eng_pair_run(4 * RWY_MS);
	rs = responder(0x50);
	b = rwy_buf_alloc(&site[0].e->bufs, 128, RC_PKT_MAX);
	b->len = rc_pkt_make(b->data, &m);
	b->data[b->len - 6] ^= 1;
	b->kind = RWY_BUF_PACKET;
	served = site[0].responses;
	eng_responder_message(rs, b, eng_now);
	eng_pair_run(4 * RWY_MS);
	assert_int_equal(site[0].responses, served);
	assert_int_equal(eng_counters(site[0].e)->drop_wan_icrc, 1);
	assert_int_equal(site[0].of[tenant].naks, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_atomics, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_atomics_wrap, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_small_reads, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_shares, set_up_little, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_tenant, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_given_up, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_damaged_read, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_damaged_atomic, eng_pair_set_up, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
