/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between gateways about their processes (engine/peer.h), in two engines with a perfect
 * WAN: gateway A loses what host A has ACKs for, and its journal with it.
 */
#include "engine/lanes.h"
#include "engine/msg.h"
#include "engine/note.h"
#include "engine/peer.h"
#include "engine/requester.h"
#include "engine/table.h"
#include "tests/lib/eng_cm.h"
#include "tests/lib/eng_pair.h"
#include "tests/lib/heap_buf.h"

#define QPN_A CM_QPN_A
#define QPN_B CM_QPN_B
#define SOON  (8 * RWY_MS)
#define GRACE (5 * RWY_SEC) /* peer.c */

static struct eng_journal_entry journal[64];
static bool journal_whole;

static void request(roce_psn psn)
{
	const struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .len = 64,
	    .payload_len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(SOON);
}

static void answer(roce_psn psn, uint8_t syndrome)
{
	const struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = syndrome,
	    .msn = psn - 4,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(SOON);
}

/* Host B gets a request that no responder accepts. */
static void refuse(roce_psn psn)
{
	answer(psn, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_INV_REQ));
	eng_pair_run(100 * RWY_MS);
}

/* Host B has 5; gateway A has acknowledged 6, which never reaches gateway B. */
static void owing(void)
{
	request(5);
	answer(5, 0x1f);
	eng_pair_cut(true);
	request(6);
	assert_int_equal(site[0].of[0].ack_psn, 6);
	assert_int_equal(site[1].psn, 5);
}

static void restart(void)
{
	eng_pair_restart(0);
	eng_pair_cut(false);
	eng_pair_run(GRACE - RWY_SEC);
	assert_int_equal(site[0].requests, 0);
}

static uint64_t forgotten(void)
{
	return eng_counters(site[0].e)->conns_forgotten;
}

/* Why the connection of hosts that are idle ended, as gateway B says it. */
static const char *reason(void)
{
	struct eng_flow_info f[4];
	uint32_t cursor = 0;
	const unsigned n = eng_flows(site[1].e, &cursor, f, 4);

	for (unsigned i = 0; i < n; i++)
		if (*f[i].error)
			return f[i].error;
	return "";
}

/* Both hosts are idle. Each gets a request that ends its QP. */
static void test_both_hosts_are_told(void **state)
{
	owing();
	restart();
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 1);
	assert_int_equal(eng_counters(site[1].e)->conns_lost, 1);
	assert_int_equal(site[1].qpn, QPN_B);
	assert_int_equal(site[1].psn, 6);
	refuse(6);
	assert_true(site[0].requests > 0);
	assert_int_equal(site[0].qpn, QPN_A);
	assert_non_null(strstr(reason(), "may have been lost"));
}

/* The same when host B has all: nobody knows. */
static void test_nobody_knows(void **state)
{
	request(5);
	answer(5, 0x1f);
	restart();
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 1);
	refuse(6);
	assert_true(site[0].requests > 0);
	assert_non_null(strstr(reason(), "may have been lost"));
}

/* Host A speaks in time: its request is compared with what gateway B has, as ever. */
static void test_a_host_that_speaks(void **state)
{
	request(5);
	answer(5, 0x1f);
	eng_pair_restart(0);
	eng_pair_run(RWY_SEC);
	request(6);
	answer(6, 0x1f);
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	assert_int_equal(site[1].psn, 6);
	assert_int_equal(site[0].of[0].ack_psn, 6);
	assert_int_equal(eng_counters(site[1].e)->conns_lost, 0);
}

/* With a journal gateway A asks by RESUME; nothing is left to tell. */
static void test_a_journal_knows(void **state)
{
	request(5);
	answer(5, 0x1f);
	restart();
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	assert_int_equal(eng_counters(site[1].e)->conns_lost, 0);
	assert_int_equal(site[0].requests, 0);
}

/* The journal is whole, and has no entry of a connection that promised nothing: nothing is lost. */
static void test_no_entry(void **state)
{
	eng_cm_connect(0, 7, 7, 14);
	eng_pair_cut(true);
	eng_pair_run(RWY_SEC);
	restart();
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	assert_int_equal(site[0].requests, 0);
	assert_int_equal(site[1].of[0].requests, 0);
	request(CM_PSN_A);
	assert_int_equal(site[1].psn, CM_PSN_A);
}

/* In mode `far` gateway B has all that host A has ACKs for. */
static void test_mode_far(void **state)
{
	request(5);
	answer(5, 0x1f);
	restart();
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	assert_int_equal(site[0].requests, 0);
	request(6);
	answer(6, 0x1f);
	assert_int_equal(site[0].of[0].ack_psn, 6);
}

static void settle(enum eng_settle_state want)
{
	struct eng_settle_info i;

	eng_settle_begin(site[0].e, eng_now);
	eng_pair_run(10 * SOON);
	eng_settle_get(site[0].e, &i);
	assert_int_equal(i.state, want);
}

/* A drained gateway owes nothing: both hosts stay idle, and go on when they want. */
static void test_settled(void **state)
{
	request(5);
	answer(5, 0x1f);
	settle(ENG_SETTLED);
	restart();
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	request(6);
	answer(6, 0x1f);
	assert_int_equal(site[1].psn, 6);
	assert_int_equal(site[0].of[0].ack_psn, 6);
}

/* Host A has not spoken since the last restart: there is nothing to settle, and B must know that. */
static void test_settled_with_receivers(void **state)
{
	eng_cm_connect(0, 7, 7, 14);
	for (unsigned i = 0; i < 2; i++) {
		settle(ENG_SETTLED);
		restart();
	}
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
	assert_int_equal(site[0].requests, 0);
	assert_int_equal(site[1].of[0].requests, 0);
}

/*
 * It is drained once more before anything tells it how long a round trip of the WAN takes. The WAN
 * loses the first message to the far gateway.
 */
static void test_settled_before_traffic(void **state)
{
	struct eng_settle_info i;

	eng_cm_connect(0, 7, 7, 14);
	settle(ENG_SETTLED);
	eng_pair_delay(70 * RWY_MS);
	eng_pair_restart(0);
	eng_pair_run(300 * RWY_MS);
	eng_settle_begin(site[0].e, eng_now);
	eng_pair_cut(true);
	eng_pair_run(30 * RWY_MS);
	eng_pair_cut(false);
	do {
		eng_pair_run(RWY_MS);
		eng_settle_get(site[0].e, &i);
	} while (i.state != ENG_SETTLED);
	restart();
	eng_pair_run(2 * GRACE);
	assert_int_equal(forgotten(), 0);
}

/* It serves again, and dies: what it was then acknowledged counts. */
static void test_serves_again(void **state)
{
	request(5);
	answer(5, 0x1f);
	settle(ENG_SETTLED);
	eng_settle_cancel(site[0].e, eng_now);
	eng_pair_run(SOON);
	eng_pair_cut(true);
	request(6);
	assert_int_equal(site[0].of[0].ack_psn, 6);
	restart();
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 1);
	refuse(6);
	assert_true(site[0].requests > 0);
}

/* The far gateway is silent, and nothing is owed: settling takes its time, and ends. */
static void test_settled_without_a_wan(void **state)
{
	request(5);
	answer(5, 0x1f);
	eng_pair_cut(true);
	settle(ENG_CLOSING);
	eng_pair_run(RWY_SEC);
	settle(ENG_SETTLED);
}

/* Without a buffer the far gateway is told later. */
static void test_without_buffers(void **state)
{
	owing();
	restart();
	site[1].starved = true;
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 0);
	site[1].starved = false;
	eng_pair_run(RWY_SEC);
	assert_int_equal(forgotten(), 1);
}

/* Gateway A has no buffer for RESUME: it is told again. */
static void test_told_again(void **state)
{
	owing();
	restart();
	site[0].starved = true;
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 0);
	site[0].starved = false;
	eng_pair_run(GRACE);
	assert_int_equal(forgotten(), 1);
}

/* The requester side of gateway A, which asks host A in host B's name. */
static const struct eng_requester *asks_a(void)
{
	const struct eng_key k = {.src = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3}),
	    .dst = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}),
	    .qpn = QPN_A};
	const struct eng_side *s = eng_find(site[0].e, &k, true);

	assert_non_null(s);
	return (const struct eng_requester *)s;
}

static void request_b(roce_psn psn)
{
	const struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .ack_req = true,
	    .len = 64,
	    .payload_len = 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(SOON);
}

static void answer_a(roce_psn psn)
{
	const struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .syndrome = 0x1f,
	    .msn = 1,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(SOON);
}

/* The same beside requests of host B. Before and after, the answers of host A count. */
static void test_told_again_beside_requests(void **state)
{
	owing();
	restart();
	request_b(0x100);
	answer_a(0x100);
	request_b(0x101);
	assert_int_equal(site[0].psn, 0x101);
	site[0].starved = true;
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 0);
	answer_a(0x101);
	assert_int_equal(asks_a()->reqr.q.n, 0);
	site[0].starved = false;
	eng_pair_run(GRACE);
	assert_int_equal(forgotten(), 1);
}

/* CM opened it, and of its requests not even the flow came to gateway B. */
static void test_nothing_came(void **state)
{
	eng_cm_connect(0, 7, 7, 14);
	eng_pair_cut(true);
	request(CM_PSN_A);
	assert_int_equal(site[0].of[0].ack_psn, CM_PSN_A);
	restart();
	eng_pair_run(2 * RWY_SEC);
	assert_int_equal(forgotten(), 1);
	assert_int_equal(site[1].qpn, QPN_B);
	refuse(site[1].psn);
	refuse(site[1].psn); /* that was a question; now the request that ends its QP */
	assert_true(site[0].requests > 0);
}

/* A DREQ of host A would pass for a good end of the connection: it is dropped, and A is told at once. */
static void test_dreq(void **state)
{
	owing();
	eng_pair_restart(0);
	eng_pair_cut(false);
	eng_pair_run(RWY_SEC);
	eng_cm_dreq(0);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(eng_counters(site[1].e)->drop_cm_lost, 1);
	assert_int_equal(site[1].qpn, QPN_B);
	assert_int_equal(site[1].of[0].others, 0);
	assert_int_equal(forgotten(), 1);
	refuse(6);
	eng_cm_dreq(0); /* CM repeats it */
	eng_pair_run(10 * RWY_SEC);
	assert_int_equal(eng_counters(site[1].e)->drop_cm_lost, 1);
	assert_int_equal(site[1].of[0].others, 1);
}

/* --- workers of gateway B: the test is the home worker ---------------------------------------- */

static struct eng_lanes lanes;
static uint64_t first; /* process of gateway A that the home worker heard of first; 0: none */
static unsigned passed;

static bool take_note(struct eng_site *s, unsigned worker, const struct eng_note *n)
{
	passed += n->type == ENG_NOTE_DREQ_GOES;
	eng_note_free(&s->e->bufs, n);
	return true;
}

static uint64_t epoch_of_a(void)
{
	return wan_peer_epoch(site[1].e->tunnel[0].wan);
}

/* The home worker got host A's DREQ from this process of gateway A. True: it may go. */
static bool dreq_goes(uint64_t epoch)
{
	struct eng_note n = {.type = ENG_NOTE_DREQ, .epoch = epoch};
	const unsigned before = passed;

	n.b = heap_buf_alloc(&site[1].bufs, 320, 512);
	n.b->len = eng_cm_make_dreq(n.b->data);
	site[1].note = take_note;
	eng_note_take(site[1].e, &n, eng_now);
	assert_int_equal(eng_counters(site[1].e)->drop_cm_lost, passed == before);
	return passed > before;
}

/* The worker still knows the process before, which may have acknowledged what is lost. */
static void test_dreq_of_another_process(void **state)
{
	eng_cm_connect(0, 7, 7, 14);
	assert_true(dreq_goes(epoch_of_a()));
	assert_false(dreq_goes(epoch_of_a() + 1));
}

static void with_lanes(struct eng_cfg *c)
{
	if (c->prefix[0].addr.b[13] != 1)
		return;
	eng_lanes_begin(&lanes, 0, 7);
	lanes.tunnel[0].first = first;
	c->lanes = &lanes;
	c->worker = 1;
	c->workers = 2;
}

/* CM opens a connection before the worker's own lane is up. */
static void open_early(void)
{
	struct eng_note n = {.type = ENG_NOTE_CM_OPEN,
	    .target = 1,
	    .conn = {.a = {.ip = rwy_ip_from4((uint8_t[4]){10, 1, 0, 3}), .qpn = QPN_A, .psn = CM_PSN_A},
	        .b = {.ip = rwy_ip_from4((uint8_t[4]){10, 2, 0, 3}), .qpn = QPN_B, .psn = CM_PSN_B},
	        .transport = ROCE_RC,
	        .path_mtu = CM_MTU}};

	eng_pair_restart(1);
	site[1].note = take_note;
	eng_note_take(site[1].e, &n, eng_now);
	assert_int_equal(eng_counters(site[1].e)->cm_connections, 1);
	eng_pair_run(100 * RWY_MS);
	assert_true(epoch_of_a());
}

static void test_first_process(void **state)
{
	first = 0;
	open_early();
	assert_true(lanes.tunnel[0].first == epoch_of_a());
	assert_true(dreq_goes(epoch_of_a()));
}

/* The process of gateway A that had the connection ended before the lane was up. */
static void test_later_process(void **state)
{
	first = 99;
	open_early();
	assert_false(dreq_goes(epoch_of_a()));
}

static void test_messages(void **state)
{
	struct eng_peer_msg m = {.type = ENG_PEER_LOST,
	                        .alive = true,
	                        .psn = 0xabcdef,
	                        .open = {.type = ENG_OPEN_REQ,
	                            .rnr_retry = 7,
	                            .retry = 3,
	                            .ack_timeout = 15,
	                            .pmtu = 1024,
	                            .incarnation = 9,
	                            .peer_qpn = QPN_A,
	                            .vni = 5,
	                            .key = {.qpn = QPN_B}}},
	                    got;
	uint8_t out[ENG_PEER_LEN];

	assert_int_equal(eng_peer_encode(out, &m), ENG_PEER_LEN);
	assert_true(eng_peer_decode(&got, out, ENG_PEER_LEN));
	assert_memory_equal(&got, &m, sizeof(m));
	for (size_t n = 0; n < ENG_PEER_LEN; n++)
		assert_false(eng_peer_decode(&got, out, n));
	m.open.peer_qpn = 0; /* nobody could be told */
	eng_peer_encode(out, &m);
	assert_false(eng_peer_decode(&got, out, ENG_PEER_LEN));
	for (unsigned type = 0; type < 256; type++) {
		m.type = (uint8_t)type;
		if (type == ENG_PEER_LOST || type == ENG_PEER_KNOWN)
			continue;
		assert_int_equal(eng_peer_encode(out, &m), 8);
		assert_int_equal(
		    eng_peer_decode(&got, out, 8), type == ENG_PEER_SETTLED || type == ENG_PEER_SERVING);
		assert_false(eng_peer_decode(&got, out, 9));
	}
}

static void with_journal(struct eng_cfg *c)
{
	if (c->prefix[0].addr.b[13] == 2) { /* gateway A's */
		c->journal = journal;
		c->journal_n = 64;
		c->journal_whole = journal_whole;
		journal_whole = true;
	}
}

static void with_mode_far(struct eng_cfg *c)
{
	c->ack_mode = ENG_ACK_FAR;
}

static int far_set_up(void **state)
{
	eng_pair_tune = with_mode_far;
	return eng_pair_set_up(state);
}

static int lanes_set_up(void **state)
{
	first = 0;
	eng_pair_tune = with_lanes;
	return eng_pair_set_up(state);
}

static int journal_set_up(void **state)
{
	memset(journal, 0, sizeof(journal));
	journal_whole = false;
	eng_pair_tune = with_journal;
	return eng_pair_set_up(state);
}

static int tuned_tear_down(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_tear_down(state);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, eng_pair_set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_both_hosts_are_told),
	    CASE(test_nobody_knows),
	    CASE(test_a_host_that_speaks),
	    cmocka_unit_test_setup_teardown(test_a_journal_knows, journal_set_up, tuned_tear_down),
	    cmocka_unit_test_setup_teardown(test_no_entry, journal_set_up, tuned_tear_down),
	    cmocka_unit_test_setup_teardown(test_mode_far, far_set_up, tuned_tear_down),
	    CASE(test_settled),
	    CASE(test_settled_with_receivers),
	    CASE(test_settled_before_traffic),
	    CASE(test_serves_again),
	    CASE(test_settled_without_a_wan),
	    CASE(test_without_buffers),
	    CASE(test_told_again),
	    CASE(test_told_again_beside_requests),
	    CASE(test_nothing_came),
	    CASE(test_dreq),
	    CASE(test_dreq_of_another_process),
	    cmocka_unit_test_setup_teardown(test_first_process, lanes_set_up, tuned_tear_down),
	    cmocka_unit_test_setup_teardown(test_later_process, lanes_set_up, tuned_tear_down),
	    cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
