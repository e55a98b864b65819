/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections without answers, in two engines with a perfect WAN: their number is limited, both
 * ends forget them when the host gives up, and others get their turn again.
 */
#include "tests/lib/eng_pair.h"

#include "engine/table.h"

/* Places that one host can have alone: the others are for other hosts. */
#define HOST_MAX (HALF_MAX * 7 / 8)

static void request(uint32_t qpn, uint8_t host)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = 5,
	    .dqpn = qpn,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 1, 0, host},
	    .dst = {10, 2, 0, host}};

	eng_host_sends(0, &m, 0);
}

/* A connection of another pair of hosts is opened. */
static void assert_others_work(uint32_t qpn, uint8_t host)
{
	struct rc_mk ack = {.opcode = ROCE_RC_ACK,
	    .psn = 5,
	    .dqpn = qpn + 1,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, 2, 0, host},
	    .dst = {10, 1, 0, host}};
	unsigned acks = site[0].acks;

	request(qpn, host);
	eng_pair_run(20 * RWY_MS);
	eng_host_sends(1, &ack, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].acks, acks + 1);
}

static void flood(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		request(0x1000 + i, 3);
}

static void test_bounded(void **state)
{
	const struct eng_counters *c = eng_counters(site[0].e);

	flood(1000);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(eng_flow_count(site[0].e), HOST_MAX);
	assert_int_equal(eng_flow_count(site[1].e), HOST_MAX);
	assert_int_equal(c->drop_half_open, 1000 - HOST_MAX);
	assert_int_equal(c->accepted, HOST_MAX);
	assert_true(site[1].requests >= 1);
	/* Another host finds a place meanwhile. */
	assert_others_work(0x50, 4);
}

/*
 * The host is silent: both ends forget, custody is empty, and a new connection has its turn. Nor can
 * the host's first answer be a late one by then.
 */
static void test_forgotten(void **state)
{
	flood(100);
	eng_pair_run(20 * RWY_SEC);
	assert_int_equal(eng_flow_count(site[0].e), 0);
	assert_int_equal(eng_flow_count(site[1].e), 0);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(site[0].bufs, 0);
	assert_int_equal(site[1].bufs, 0);
	assert_others_work(0x50, 3);
}

/*
 * 100 packets a second to queue pairs that nobody has, for longer than a flow is remembered: the
 * host's own new connections find a place, because its oldest flows give theirs up.
 */
static void test_steady(void **state)
{
	for (unsigned i = 0; i < 3000; i++) {
		request(0x1000 + i, 3);
		eng_pair_run(10 * RWY_MS);
	}
	assert_true(eng_counters(site[0].e)->half_open_replaced > 0);
	assert_int_equal(eng_flow_count(site[0].e), HOST_MAX);
	/* Another pair of hosts: the pair of those two has a turn for each flow (pair.c). */
	assert_others_work(0x50, 4);
	eng_pair_run(2 * RWY_SEC);
	request(0x70, 3);
	assert_int_equal(eng_flow_count(site[0].e), HOST_MAX + 1); /* with that of host 4 */
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(eng_counters(site[1].e)->drop_half_open, 0);
}

/*
 * Two hosts with many queue pairs that nobody has, and each asks on: a new connection of the same two
 * hosts has its turn soon, not after all of those.
 */
static void test_same_hosts(void **state)
{
	struct rc_mk ack = {.opcode = ROCE_RC_ACK,
	    .psn = 5,
	    .dqpn = 0x71,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	unsigned answered = 0;
	rwy_time begin;

	for (unsigned i = 0; i < 60; i++) {
		flood(30);
		eng_pair_run(RWY_SEC);
	}
	site[1].of_qpn[0x70] = 0;
	begin = eng_now;
	while (!site[1].of_qpn[0x70] && eng_now < begin + 30 * RWY_SEC) {
		request(0x70, 3);
		eng_pair_run(100 * RWY_MS);
	}
	assert_true(eng_now <= begin + 4 * RWY_SEC);
	/* The host was silent: its first answer could be for any of them, that to a repeat cannot. */
	for (begin = eng_now; !site[0].acks && eng_now < begin + RWY_SEC; eng_pair_run(20 * RWY_MS))
		if (site[1].of_qpn[0x70] != answered) {
			answered = site[1].of_qpn[0x70];
			eng_host_sends(1, &ack, 0);
		}
	assert_int_equal(site[0].acks, 1);
	assert_true(answered > 1);
}

/* A connection that is paired at once is not half open: the limit does not apply. */
static void test_paired_is_exempt(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = 5,
	    .ack_req = true,
	    .payload_len = 64,
	    .src = {10, 2, 0, 9},
	    .dst = {10, 1, 0, 9}};

	for (unsigned i = 0; i < HALF_MAX; i++) { /* side 1 is full of its own hosts' connections */
		m.dqpn = 0x2000 + i;
		eng_host_sends(1, &m, 0);
	}
	eng_pair_run(50 * RWY_MS);
	assert_int_equal(eng_flow_count(site[1].e), HOST_MAX);
	assert_others_work(0x50, 3); /* what comes from afar is answered by its host, and so paired */
	assert_int_equal(eng_counters(site[1].e)->drop_half_open, HALF_MAX - HOST_MAX);
}

/* A host that repeats its request keeps its place. */
static void test_patient_host(void **state)
{
	request(0x70, 3);
	for (unsigned i = 0; i < 4; i++) {
		eng_pair_run(6 * RWY_SEC);
		request(0x70, 3);
	}
	assert_int_equal(eng_counters(site[0].e)->conns_expired, 0);
	assert_int_equal(eng_flow_count(site[0].e), 1);
}

/* QPNs that share a bucket of one engine's flow table are scattered in another's: no host can choose them. */
static void test_seeded(void **state)
{
	struct eng_key k = {
	    rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}), rwy_ip_from4((uint8_t[4]){10, 2, 0, 3}), 0, 0};
	uint32_t mask = site[0].e->table_mask, want, n = 0, together = 0;

	assert_int_equal(mask, site[1].e->table_mask);
	want = eng_key_hash(site[1].e->hash_seed, &k, false) & mask;
	for (k.qpn = 1; n < 64; k.qpn++)
		if (!(eng_key_hash(site[0].e->hash_seed, &k, false) & mask)) {
			n++;
			together += (eng_key_hash(site[1].e->hash_seed, &k, false) & mask) == want;
		}
	assert_in_range(together, 0, 8);
	assert_int_not_equal(site[0].e->hash_seed, site[1].e->hash_seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_bounded, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_forgotten, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_same_hosts, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_steady, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_paired_is_exempt, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_patient_host, eng_pair_set_up, eng_pair_tear_down),
	    cmocka_unit_test_setup_teardown(test_seeded, eng_pair_set_up, eng_pair_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
