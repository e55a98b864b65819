/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rare cases of hosts and gateways: ends of connections that an idle host must hear of, memory that
 * another gateway tries to fill, an answer of the connection before.
 */
#include "engine/peer.h"
#include "engine/requester.h"
#include "engine/tunnel.h"
#include "roce/icrc.h"
#include "rwy/endian.h"
#include "tests/lib/eng_two_hosts.h"
#include "tests/lib/heap_buf.h"

static const struct rc_mk send_a = {.opcode = ROCE_RC_SEND_ONLY,
    .dqpn = QPN_B,
    .ack_req = true,
    .payload_len = 64,
    .src = HOST_A,
    .dst = HOST_B};
static const struct rc_mk send_b = {.opcode = ROCE_RC_SEND_ONLY,
    .dqpn = QPN_A,
    .ack_req = true,
    .payload_len = 64,
    .src = HOST_B,
    .dst = HOST_A};
static const struct rc_mk read_a = {.opcode = ROCE_RC_READ_REQ,
    .psn = 1,
    .dqpn = QPN_B,
    .va = 0x1000,
    .len = 64,
    .src = HOST_A,
    .dst = HOST_B};
static const struct rc_mk answer_b = {.opcode = ROCE_RC_READ_RESP_ONLY,
    .psn = 1,
    .dqpn = QPN_A,
    .syndrome = 0x1f,
    .msn = 2,
    .payload_len = 64,
    .src = HOST_B,
    .dst = HOST_A};

static void send_of(const struct rc_mk *m, roce_psn psn)
{
	struct rc_mk one = *m;

	one.psn = psn;
	eng_host_sends(one.src[1] == 2, &one, 0);
	eng_pair_run(20 * RWY_MS);
}

static void ack_of(unsigned from, uint8_t syndrome, roce_psn psn)
{
	struct rc_mk m = {.opcode = ROCE_RC_ACK,
	    .psn = psn,
	    .dqpn = from ? QPN_A : QPN_B,
	    .syndrome = syndrome,
	    .msn = 1,
	    .src = HOST_A,
	    .dst = HOST_B};

	if (from) {
		memcpy(m.src, (uint8_t[4])HOST_B, 4);
		memcpy(m.dst, (uint8_t[4])HOST_A, 4);
	}
	eng_host_sends(from, &m, 0);
	eng_pair_run(20 * RWY_MS);
}

/* Host A has sent to B, and B has answered. */
static void connect_a(void)
{
	send_of(&send_a, 0);
	ack_of(1, 0x1f, 0);
}

/* --- an idle host ------------------------------------------------------------------------------ */

static bool fatal; /* host A got a request that ends its QP */

static void hear_fatal(struct eng_site *s, const struct roce_pkt *pkt)
{
	fatal |= pkt->opcode == ROCE_RC_WRITE_ONLY && roce_reth_len(pkt) == 0x80000000u;
}

static void one_retry(struct eng_cfg *c)
{
	c->timers.rnr_retry = 1;
}

static int set_up_rnr(void **state)
{
	eng_pair_tune = one_retry;
	return eng_pair_set_up(state);
}

/*
 * B's SEND failed at host A for want of a receive: that ends B's QP, not A's. A, which is idle,
 * hears that B did not take what A has an ACK for.
 */
static void test_told_after_rnr(void **state)
{
	unsigned asked;

	fatal = false;
	connect_a();
	send_of(&send_b, 0);
	ack_of(0, 0x1f, 0);
	site[0].heard = hear_fatal;
	send_of(&send_a, 1);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	send_of(&send_b, 1);
	ack_of(0, 0x21, 1);
	ack_of(0, 0x21, 1);
	assert_int_equal(eng_side_of_a()->requester->side.state, ENG_Q_FAILED);
	asked = site[0].requests;
	for (unsigned i = 0; i < 600 && site[0].requests == asked; i++)
		eng_pair_run(50 * RWY_MS); /* B answers nothing more */
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_FAILED);
	assert_true(site[0].requests > asked);
	ack_of(0, 0x60, 1); /* A says which PSN it expects */
	assert_true(fatal);
}

static int set_up_journal(void **state)
{
	eng_pair_tune = eng_pair_with_journal;
	memset(eng_pair_journal, 0, sizeof(eng_pair_journal));
	return eng_pair_set_up(state);
}

/* A has an ACK of what only its gateway had. That restarts, and asks; nobody answers. */
static void resume_unanswered(void)
{
	fatal = false;
	connect_a();
	eng_pair_cut(true);
	send_of(&send_a, 1);
	assert_int_equal(site[0].of[0].ack_psn, 1);
	eng_pair_restart(0);
	site[0].heard = hear_fatal;
	eng_pair_run(RWY_SEC);
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_RESUMING);
}

/* The gateway asks A which PSN it expects; then A's QP ends. */
static void answer_the_question(void)
{
	for (unsigned i = 0; i < 600 && !site[0].requests; i++)
		eng_pair_run(50 * RWY_MS);
	ack_of(0, 0x60, 0);
	assert_true(fatal);
}

static void test_told_without_tunnel(void **state)
{
	struct eng_tunnel_old *old;

	resume_unanswered();
	while (!eng_tunnel_remove(site[0].e, 0, &old, eng_now))
		eng_pair_run(RWY_MS);
	eng_tunnel_gone(old);
	answer_the_question();
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_FAILED);
}

static void test_told_when_refused(void **state)
{
	const struct eng_prefix none = {.len = 0};

	resume_unanswered();
	eng_pair_restart(1);
	assert_int_equal(eng_prefixes_set(site[1].e, &none, 0), 0); /* it refuses the flow */
	eng_pair_cut(false);
	answer_the_question();
	assert_int_equal(eng_side_of_a()->side.state, ENG_R_FAILED);
}

/* The last response of a READ acknowledges it: the next process goes on behind it. */
static void test_journal_of_read(void **state)
{
	eng_pair_delay(50 * RWY_MS);
	send_of(&send_a, 0);
	eng_pair_run(200 * RWY_MS);
	ack_of(1, 0x1f, 0);
	eng_pair_run(200 * RWY_MS);
	eng_host_sends(0, &read_a, 0);
	eng_pair_run(150 * RWY_MS);
	eng_host_sends(1, &answer_b, 0);
	eng_pair_run(400 * RWY_MS);
	assert_int_equal(site[0].responses, 1);
	eng_pair_restart(0);
	for (unsigned i = 0; i < 100 && !site[0].of[0].acks; i++) { /* faster than a round trip */
		struct rc_mk m = send_a;

		m.psn = 2;
		eng_host_sends(0, &m, 0);
		eng_pair_run(10 * RWY_MS);
		assert_int_equal(eng_counters(site[0].e)->conns_failed, 0);
	}
	assert_int_equal(site[0].of[0].ack_psn, 2);
}

/* --- memory ------------------------------------------------------------------------------------ */

static void little_credit(struct eng_cfg *c)
{
	c->tunnel[0].wan.rx_bytes = 256 << 10;
	c->tunnel[0].wan.rx_window = 1024;
	c->tunnel[0].wan.rx_cost = 1024;
	c->memory_total = c->custody_total = 1 << 20;
	c->buf_cost = 1024;
}

static int set_up_credit(void **state)
{
	eng_pair_tune = little_credit;
	return eng_pair_set_up(state);
}

/* A gateway ends its flow and opens it again, each time with new credit; the host takes nothing. */
static void test_flow_opened_again(void **state)
{
	struct eng_responder *rs;
	struct rc_mk m = send_a;

	connect_a();
	rs = eng_side_of_a();
	m.payload_len = 900;
	for (unsigned round = 0; round < 8; round++) {
		for (unsigned i = 0; i < 200; i++) {
			m.psn++;
			eng_host_sends(0, &m, 0);
			if (i % 60 == 59)
				eng_pair_run(2 * RWY_MS);
		}
		eng_pair_run(20 * RWY_MS);
		assert_true(site[1].e->mem.kind[ENG_MEM_RECEIVED] <= 3 * (256 << 10));
		eng_responder_abort(rs, eng_now);
		eng_pair_run(5 * RWY_MS);
	}
	assert_int_equal(eng_counters(site[1].e)->conns_failed, 1);
}

/* A gateway says again and again that a connection is lost, and takes no answer. */
static void test_lost_in_masses(void **state)
{
	const struct eng_peer_msg lost = {.type = ENG_PEER_LOST,
	    .psn = 1,
	    .open = {.type = ENG_OPEN_REQ, .incarnation = 1, .peer_qpn = QPN_A, .key = eng_key_of_a()}};
	uint64_t bufs;

	connect_a();
	eng_pair_cut(true);
	bufs = site[0].bufs;
	for (unsigned i = 0; i < 10000; i++) {
		struct rwy_buf *b = heap_buf_alloc(&site[0].bufs, 320, ENG_PEER_LEN);

		b->kind = RWY_BUF_CTRL;
		b->len = (uint32_t)eng_peer_encode(b->data, &lost);
		eng_peer_message(&site[0].e->tunnel[0], b, eng_now);
	}
	assert_true(site[0].bufs <= bufs + 256);
	eng_pair_cut(false);
}

/* The account of responses is empty when the tunnel is gone, in whatever order its sides go. */
static void test_account_without_tunnel(void **state)
{
	for (unsigned k = 0; k < 4; k++) {
		struct rc_mk sa = send_a, sb = send_b, rd = read_a, rr = answer_b;
		struct eng_tunnel_old *old;
		struct rc_mk *const to_b[] = {&sa, &rd}, *const to_a[] = {&sb, &rr};
		struct rc_mk ack_b = {
		    .opcode = ROCE_RC_ACK, .syndrome = 0x1f, .msn = 1, .src = HOST_B, .dst = HOST_A};
		struct rc_mk ack_a = {
		    .opcode = ROCE_RC_ACK, .syndrome = 0x1f, .msn = 1, .src = HOST_A, .dst = HOST_B};

		if (k)
			assert_int_equal(eng_pair_set_up(state), 0);
		for (unsigned i = 0; i < 2; i++) {
			to_b[i]->dqpn = QPN_B + 2 * k;
			to_a[i]->dqpn = QPN_A + 2 * k;
		}
		ack_b.dqpn = QPN_A + 2 * k;
		ack_a.dqpn = QPN_B + 2 * k;
		eng_host_sends(0, &sa, 0);
		eng_pair_run(20 * RWY_MS);
		eng_host_sends(1, &ack_b, 0);
		eng_pair_run(20 * RWY_MS);
		eng_host_sends(1, &sb, 0);
		eng_pair_run(20 * RWY_MS);
		eng_host_sends(0, &ack_a, 0);
		eng_pair_run(50 * RWY_MS);
		eng_host_sends(0, &rd, 0);
		eng_pair_run(20 * RWY_MS);
		eng_pair_cut(true);
		eng_host_sends(1, &rr, 0);
		eng_pair_run(5 * RWY_MS);
		sb.psn = 1;
		eng_host_sends(1, &sb, 0);
		eng_pair_run(20 * RWY_MS);
		assert_int_equal(site[1].e->mem_bufs[ENG_MEM_RESPONSES], 1);
		while (!eng_tunnel_remove(site[1].e, 0, &old, eng_now))
			eng_pair_run(RWY_MS);
		eng_tunnel_gone(old);
		eng_pair_run(RWY_SEC);
		assert_int_equal(site[1].e->mem_bufs[ENG_MEM_RESPONSES], 0);
		assert_int_equal(site[1].e->mem.kind[ENG_MEM_RESPONSES], 0);
		if (k < 3)
			assert_int_equal(eng_pair_tear_down(state), 0);
	}
}

/* --- responses --------------------------------------------------------------------------------- */

static uint8_t byte_read;
static unsigned checksums; /* responses with a UDP checksum */

static void hear_read(struct eng_site *s, const struct roce_pkt *pkt)
{
	if (pkt->info->op != ROCE_OP_READ_RESP)
		return;
	byte_read = pkt->payload[0];
	assert_true(roce_icrc_ok(pkt));
	checksums += rwy_get16(pkt->ip + pkt->ip_hlen + 6) != 0;
}

/*
 * Both queue pairs are reset in place when a response is still under way. The new READ has the PSN
 * of the old one, and is not answered with what that one read.
 */
static void test_answer_of_before(void **state)
{
	uint8_t old[64];
	struct rc_mk answer = answer_b, other = send_a, read = read_a;

	memset(old, 0xaa, sizeof(old));
	answer.payload = old;
	byte_read = 0;
	site[0].heard = hear_read;
	eng_pair_delay(50 * RWY_MS);
	send_of(&send_a, 0);
	eng_pair_run(200 * RWY_MS);
	ack_of(1, 0x1f, 0);
	eng_pair_run(400 * RWY_MS);
	eng_host_sends(0, &read_a, 0);
	eng_pair_run(60 * RWY_MS);
	eng_pair_cut(true); /* one datagram is lost */
	eng_host_sends(1, &answer, 0);
	eng_pair_run(3 * RWY_MS);
	eng_pair_cut(false);
	eng_pair_run(110 * RWY_MS);
	other.payload_len = 96;
	send_of(&other, 0);
	read.va = 0x2000;
	eng_host_sends(0, &read, 0);
	eng_pair_run(600 * RWY_MS);
	assert_int_equal(byte_read, 0);
	assert_int_equal(site[0].responses, 0);
}

/* A host asks for the rest of a READ: the packets are others, and so is their UDP checksum. */
static void test_checksum_of_replay(void **state)
{
	struct rc_mk read = read_a, first = answer_b, last = answer_b, rest = read_a;
	uint8_t ip[RC_PKT_MAX];
	uint32_t len;

	read.len = 512;
	first.opcode = ROCE_RC_READ_RESP_FIRST;
	last.opcode = ROCE_RC_READ_RESP_LAST;
	last.psn = 2;
	first.payload_len = last.payload_len = 256;
	checksums = 0;
	site[0].heard = hear_read;
	connect_a();
	eng_host_sends(0, &read, 0);
	eng_pair_run(20 * RWY_MS);
	eng_host_sends(1, &first, 0);
	len = rc_pkt_make(ip, &last);
	rwy_put16(ip + 26, 0x1234); /* the ICRC does not cover it */
	eng_host_sends_bytes(1, ip, len);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(checksums, 1);
	rest.psn = 2;
	rest.va += 256;
	rest.len = 256;
	eng_host_sends(0, &rest, 0);
	eng_pair_run(20 * RWY_MS);
	assert_int_equal(site[0].response, ROCE_RC_READ_RESP_ONLY);
	assert_int_equal(checksums, 1);
}

static int set_up_plain(void **state)
{
	eng_pair_tune = NULL;
	return eng_pair_set_up(state);
}

#define TEST(t, set_up) cmocka_unit_test_setup_teardown(t, set_up, eng_pair_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_told_after_rnr, set_up_rnr),
	    TEST(test_told_without_tunnel, set_up_journal),
	    TEST(test_told_when_refused, set_up_journal),
	    TEST(test_journal_of_read, set_up_journal),
	    TEST(test_flow_opened_again, set_up_credit),
	    TEST(test_lost_in_masses, set_up_plain),
	    TEST(test_account_without_tunnel, set_up_plain),
	    TEST(test_answer_of_before, set_up_plain),
	    TEST(test_checksum_of_replay, set_up_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
