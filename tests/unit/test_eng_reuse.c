/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts that reset their queue pairs in place and begin again at PSN 0, sooner than what they were
 * acknowledged is delivered, in two engines with a WAN between that can be cut.
 */
#include "engine/responder.h"
#include "engine/table.h"
#include "tests/lib/eng_pair.h"

#define QPN_A 0x51
#define QPN_B 0x50
#define OLD   64 /* bytes of a request of the first connection */
#define NEW   96 /* of the second one */

static struct {
	unsigned of_len[256]; /* requests that host B got, by payload */
	roce_psn psn_of_len[256];
} seen;

static void heard(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (roce_op_is_request(pkt->info) && s == &site[1]) {
		seen.of_len[pkt->payload_len & 255]++;
		seen.psn_of_len[pkt->payload_len & 255] = pkt->psn;
	}
}

static void request(roce_psn psn, uint32_t len, bool ack_req)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .psn = psn,
	    .dqpn = QPN_B,
	    .ack_req = ack_req,
	    .payload_len = len,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(10 * RWY_MS);
}

static void host_b_says(uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = QPN_A,
	    .syndrome = syndrome,
	    .msn = 1,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	eng_host_sends(1, &m, 0);
	eng_pair_run(10 * RWY_MS);
}

static int set_up(void **state)
{
	assert_int_equal(eng_pair_set_up(state), 0);
	memset(&seen, 0, sizeof(seen));
	site[0].heard = site[1].heard = heard;
	return 0;
}

/* PSN 0 was delivered, 1 to 3 are acknowledged and wait for the WAN. */
static void owed(void)
{
	request(0, OLD, true);
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].ack_psn, 0);
	eng_pair_cut(true);
	for (roce_psn psn = 1; psn <= 3; psn++)
		request(psn, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 3);
	eng_pair_run(10 * RWY_MS);
}

/* Quiet connections give memory back; what tells the second one from the first must stay. */
static void reset_with_custody(rwy_dur pause)
{
	unsigned acks;

	owed();
	eng_pair_run(pause);
	acks = site[0].of[0].acks;
	request(0, NEW, true);
	assert_int_equal(site[0].of[0].acks, acks); /* not a duplicate */
	eng_pair_cut(false);
	eng_pair_run(3 * RWY_SEC);
	assert_true(seen.of_len[NEW] > 0);
	assert_int_equal(seen.of_len[OLD], 1); /* nothing of the first connection but its PSN 0 */
	assert_int_equal(eng_counters(site[0].e)->drop_reused, 3);
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].acks, acks + 1);
	assert_int_equal(site[0].of[0].ack_psn, 0);
	request(1, NEW, true);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	assert_int_equal(seen.psn_of_len[NEW], 1);
}

static void test_reset_with_custody(void **state)
{
	reset_with_custody(0);
}

static void test_reset_after_a_pause(void **state)
{
	reset_with_custody(5 * RWY_SEC);
}

/* The same while the last ACK is still on the LAN: what follows must not be answered for the old one. */
static void test_reset_at_once(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_SEND_ONLY,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = NEW,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	unsigned acks;

	owed();
	m.psn = 4;
	m.payload_len = OLD;
	eng_host_sends(0, &m, 0);
	eng_pair_run(RWY_MS);
	acks = site[0].of[0].acks;
	assert_int_equal(site[0].of[0].ack_psn, 4);
	m.psn = 0;
	m.payload_len = NEW;
	eng_host_sends(0, &m, 0);
	m.psn = 1;
	eng_host_sends(0, &m, 0);
	eng_pair_run(5 * RWY_MS);
	assert_int_equal(site[0].of[0].acks, acks);
	m.psn = 2;
	eng_host_sends(0, &m, 0);
	eng_pair_cut(false);
	eng_pair_run(3 * RWY_SEC);
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].ack_psn, 2);
	assert_int_equal(seen.psn_of_len[NEW], 2);
	assert_int_equal(seen.of_len[OLD], 1);
}

/* The second connection's PSN 0 is lost on the LAN: its PSN 1 is no duplicate of one delivered before. */
static void test_reset_first_lost(void **state)
{
	unsigned acks;

	request(0, OLD, true);
	host_b_says(0x1f, 0);
	request(1, OLD, true);
	host_b_says(0x1f, 1);
	eng_pair_cut(true);
	request(2, OLD, true);
	acks = site[0].of[0].acks;
	assert_int_equal(site[0].of[0].ack_psn, 2);
	request(1, NEW, true);
	assert_int_equal(site[0].of[0].acks, acks);
	eng_pair_cut(false);
	eng_pair_run(3 * RWY_SEC);
	assert_int_equal(seen.psn_of_len[NEW], 1);
	host_b_says(roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_PSN_SEQ), 0); /* host B names what is missing */
	assert_int_equal(site[0].of[0].naks, 1);
	request(0, NEW, true);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(seen.psn_of_len[NEW], 0);
	request(1, NEW, true);
	assert_int_equal(site[0].of[0].acks, acks); /* host B has executed nothing yet */
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].acks, acks + 1);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	eng_pair_cut(true);
	request(2, NEW, true);
	assert_int_equal(site[0].of[0].ack_psn, 2);
}

/*
 * The gateway knows the first connection from PSN 23 on, all of it is delivered, and the second one
 * begins at PSN 0 with a long WRITE. Its first packet is lost on the LAN: the others, from PSN 1 to
 * those of before, are no duplicates.
 */
static void test_first_of_a_message_lost(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_WRITE_MIDDLE,
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .payload_len = 256,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	unsigned acks;

	for (roce_psn psn = 23; psn < 30; psn++) {
		request(psn, OLD, true);
		host_b_says(0x1f, psn);
	}
	eng_pair_run(500 * RWY_MS);
	assert_int_equal(eng_custody_bytes(site[0].e), 0);
	assert_int_equal(site[0].of[0].ack_psn, 29);
	acks = site[0].of[0].acks;
	for (m.psn = 1; m.psn < 30; m.psn++)
		eng_host_sends(0, &m, 0);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(site[0].of[0].acks, acks);
}

/*
 * The gateway knows the first connection from PSN 23 on, and its last request is in custody. The
 * second one begins at PSN 0 with a long WRITE: what follows the packets from before PSN 23 is no
 * duplicate, so it has no ACK until the host sends again after a pause.
 */
static void test_before_the_start_with_custody(void **state)
{
	struct rc_mk m = {.opcode = ROCE_RC_WRITE_FIRST,
	    .dqpn = QPN_B,
	    .va = 0x1000,
	    .len = 40 * 256,
	    .ack_req = true,
	    .payload_len = 256,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	unsigned acks;

	for (roce_psn psn = 23; psn < 29; psn++) {
		request(psn, OLD, true);
		host_b_says(0x1f, psn);
	}
	eng_pair_cut(true);
	request(29, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 29);
	acks = site[0].of[0].acks;
	for (m.psn = 0; m.psn < 30; m.psn++, m.opcode = ROCE_RC_WRITE_MIDDLE)
		eng_host_sends(0, &m, 0);
	assert_int_equal(site[0].of[0].acks, acks);
	assert_int_equal(eng_counters(site[0].e)->drop_after_stale, 29);
	request(29, OLD, true); /* its host goes back: a repeat of the first connection has its ACK */
	assert_int_equal(site[0].of[0].acks, acks + 1);
}

/* A stray packet from before the start: the connection's next request is taken when it comes again. */
static void test_stray(void **state)
{
	for (roce_psn psn = 23; psn < 29; psn++) {
		request(psn, OLD, true);
		host_b_says(0x1f, psn);
	}
	eng_pair_cut(true);
	request(29, OLD, true);
	request(5, NEW, true);
	request(30, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 29);
	request(30, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 30);
	request(31, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 31);
}

/* READs of the first connection are answered; one of the second with another address is not. */
static void test_reset_read(void **state)
{
	struct rc_mk read = {.opcode = ROCE_RC_READ_REQ,
	    .psn = 1,
	    .dqpn = QPN_B,
	    .va = 0x1000,
	    .len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	struct rc_mk answer = {.opcode = ROCE_RC_READ_RESP_ONLY,
	    .psn = 1,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .msn = 2,
	    .payload_len = 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};

	request(0, OLD, true);
	host_b_says(0x1f, 0);
	eng_host_sends(0, &read, 0);
	eng_pair_run(10 * RWY_MS);
	eng_host_sends(1, &answer, 0);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	eng_pair_cut(true);
	request(2, OLD, true);
	assert_int_equal(site[0].of[0].ack_psn, 2);
	eng_host_sends(0, &read, 0); /* repeated: answered again */
	assert_int_equal(site[0].responses, 2);
	read.va = 0x2000;
	eng_host_sends(0, &read, 0);
	eng_pair_run(10 * RWY_MS);
	assert_int_equal(site[0].responses, 2);
	assert_int_equal(eng_counters(site[0].e)->drop_reused, 1);
}

/* The first request of the first connection never left: it must not reach the second one's queue pair. */
static void test_reset_before_the_first(void **state)
{
	eng_pair_cut(true);
	request(0, OLD, true);
	request(0, NEW, true);
	eng_pair_cut(false);
	eng_pair_run(3 * RWY_SEC);
	assert_true(seen.of_len[NEW] > 0);
	assert_int_equal(seen.of_len[OLD], 0);
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].ack_psn, 0);
}

static struct eng_responder *responder_a(void)
{
	const uint8_t a[4] = {10, 1, 0, 3}, b[4] = {10, 2, 0, 3};
	const struct eng_key k = {.src = rwy_ip_from4(a), .dst = rwy_ip_from4(b), .qpn = QPN_B};
	struct eng_side *s = eng_find(site[0].e, &k, false);

	assert_non_null(s);
	return (struct eng_responder *)s;
}

/*
 * PSN 1 found no memory, and its host sends PSN 2 later than a round trip: it belongs to the same
 * connection. So long after that no host repeats PSN 1, it may begin another one.
 */
static void test_refused(void **state)
{
	struct eng_responder *rs;
	uint32_t incarnation;

	request(0, OLD, true);
	host_b_says(0x1f, 0);
	rs = responder_a();
	incarnation = rs->incarnation;
	roce_resp_no_room(&rs->resp);
	rs->nak_psn = 1;
	rs->refused_at = eng_now;
	eng_pair_run(100 * RWY_MS);
	request(2, NEW, true);
	assert_int_equal(rs->incarnation, incarnation);
	eng_pair_run(9 * RWY_SEC);
	request(2, NEW, true); /* it is a gap all the time, which renews nothing */
	assert_int_equal(rs->incarnation, incarnation);
	eng_pair_run(RWY_SEC);
	request(2, NEW, true);
	assert_int_not_equal(rs->incarnation, incarnation);
	assert_int_equal(rs->refused_at, 0);
}

/*
 * PSN 0 and a READ, PSN 1, were executed; PSN 2 is lost on the LAN, and PSN 3 seems to begin a new
 * connection. Host B has sent its NAK before, and Soft-RoCE's ACK of a duplicate leaves the READ
 * out: the gateway at B knows of it, and asks for PSN 2, not for 1.
 */
static void test_read_left_out(void **state)
{
	struct rc_mk read = {.opcode = ROCE_RC_READ_REQ,
	    .psn = 1,
	    .dqpn = QPN_B,
	    .va = 0x1000,
	    .len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};
	struct rc_mk answer = {.opcode = ROCE_RC_READ_RESP_ONLY,
	    .psn = 1,
	    .dqpn = QPN_A,
	    .syndrome = 0x1f,
	    .msn = 2,
	    .payload_len = 64,
	    .src = {10, 2, 0, 3},
	    .dst = {10, 1, 0, 3}};
	struct eng_responder *rs;
	uint32_t incarnation;

	request(0, OLD, true);
	host_b_says(0x1f, 0);
	eng_host_sends(0, &read, 0);
	eng_pair_run(10 * RWY_MS);
	eng_host_sends(1, &answer, 0);
	eng_pair_run(100 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	rs = responder_a();
	incarnation = rs->incarnation;
	request(3, NEW, true);
	assert_int_not_equal(rs->incarnation, incarnation);
	eng_pair_run(300 * RWY_MS); /* host B is silent: it is asked by a duplicate, too */
	host_b_says(0x1f, 0);
	eng_pair_run(300 * RWY_MS); /* and once more: that could be the answer to PSN 0 */
	host_b_says(0x1f, 0);
	assert_int_equal(rs->resp.start, 2);
	assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
}

/* A repeated request has the same content, whatever its AckReq: custody stays. */
static void test_repeated(void **state)
{
	unsigned acks;

	owed();
	acks = site[0].of[0].acks;
	for (roce_psn psn = 0; psn <= 3; psn++)
		request(psn, OLD, psn & 1);
	assert_int_equal(site[0].of[0].acks, acks + 4);
	assert_int_equal(eng_counters(site[0].e)->drop_reused, 0);
	eng_pair_cut(false);
	eng_pair_run(3 * RWY_SEC);
	assert_true(seen.of_len[OLD] >= 4);
	assert_int_equal(seen.psn_of_len[OLD], 3);
}

/*
 * A relay between asks in its host's name which PSN is expected, by RDMA WRITEs of 0 bytes far
 * before the first PSN and far ahead of it. No connection begins there.
 */
static void test_a_question(void **state)
{
	const roce_psn first = 2000;
	struct rc_mk m = {.opcode = ROCE_RC_WRITE_ONLY,
	    .psn = roce_psn_add(first, ROCE_PSN_MASK + 1 - ROCE_OUTSTANDING_MAX),
	    .dqpn = QPN_B,
	    .ack_req = true,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	request(first, OLD, true);
	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
	host_b_says(0x1f, first);
	assert_int_equal(site[0].of[0].ack_psn, first);
	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
	request(first + 1, OLD, true);
	host_b_says(0x1f, first + 1);
	assert_int_equal(site[0].of[0].ack_psn, first + 1);
	m.psn = roce_psn_add(first, ROCE_PSN_MASK >> 1);
	eng_host_sends(0, &m, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].of[0].naks, 1); /* it names the PSN */
	request(first + 2, OLD, true);
	host_b_says(0x1f, first + 2);
	assert_int_equal(site[0].of[0].ack_psn, first + 2);
	assert_int_equal(seen.of_len[0], 0);
}

/* It failed before its QPN was known, so it got no error: what it repeats is carried anew. */
static void failed_without_a_qpn(void (*asks)(void))
{
	const struct eng_key k = {
	    rwy_ip_from4((uint8_t[]){10, 1, 0, 3}), rwy_ip_from4((uint8_t[]){10, 2, 0, 3}), QPN_B, 0};
	struct eng_responder *rs;

	asks();
	eng_pair_run(50 * RWY_MS);
	rs = (struct eng_responder *)eng_find(site[0].e, &k, false);
	assert_non_null(rs);
	eng_responder_fail(rs, 0, 0x64, ENG_END_SILENT, eng_now);
	assert_int_equal(rs->side.state, ENG_R_FAILED);
	eng_pair_run(RWY_SEC);
	asks();
	assert_int_equal(rs->side.state, ENG_R_WAITING);
	host_b_says(0x1f, 0);
	assert_int_equal(site[0].of[0].naks, 0);
}

static void sends(void)
{
	request(0, OLD, true);
}

static void reads(void)
{
	struct rc_mk m = {.opcode = ROCE_RC_READ_REQ,
	    .dqpn = QPN_B,
	    .va = 0x1000,
	    .len = 64,
	    .src = {10, 1, 0, 3},
	    .dst = {10, 2, 0, 3}};

	eng_host_sends(0, &m, 0);
	eng_pair_run(10 * RWY_MS);
}

static void test_failed_without_a_qpn(void **state)
{
	failed_without_a_qpn(sends);
	assert_int_equal(site[0].of[0].ack_psn, 0);
}

static void test_failed_read_without_a_qpn(void **state)
{
	failed_without_a_qpn(reads);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_reset_with_custody), TEST(test_reset_after_a_pause),
	    TEST(test_reset_before_the_first), TEST(test_reset_at_once), TEST(test_reset_first_lost),
	    TEST(test_first_of_a_message_lost), TEST(test_before_the_start_with_custody), TEST(test_stray),
	    TEST(test_reset_read), TEST(test_refused), TEST(test_read_left_out), TEST(test_repeated),
	    TEST(test_a_question), TEST(test_failed_without_a_qpn), TEST(test_failed_read_without_a_qpn)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
