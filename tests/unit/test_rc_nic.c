/* SPDX-License-Identifier: Apache-2.0 */
/* The model host as a NIC (tests/lib/rc_host.h, rc_host_cfg_nic): two of them on a wire without loss. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/rc_host.h"

#define MEM (1u << 20)

struct pair {
	struct rc_host h[2];
	uint8_t *mem[2];
	rwy_time now;
	unsigned acks, asked, packets; /* ACKs of host 1; packets of host 0, with AckReq and all */
	unsigned ok[2], bad[2];
	enum rc_status status;
	bool cut; /* the wire is */
};

static struct pair *the_pair;

static void on_done(void *ctx, const struct rc_comp *c)
{
	unsigned i = ctx == &the_pair->h[1];

	if (c->recv)
		return;
	the_pair->ok[i] += c->status == RC_OK;
	if (c->status != RC_OK && !the_pair->bad[i]++)
		the_pair->status = c->status;
}

static void pair_init(struct pair *p, uint32_t coalesce)
{
	struct rc_host_cfg c;

	memset(p, 0, sizeof(*p));
	the_pair = p;
	p->now = RWY_SEC;
	for (unsigned i = 0; i < 2; i++) {
		rc_host_cfg_nic(&c);
		c.coalesce = coalesce;
		c.done = on_done;
		c.ctx = &p->h[i];
		p->mem[i] = calloc(1, MEM);
		rc_host_init(&p->h[i], &c, p->mem[i], MEM);
	}
}

static void pair_fini(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++) {
		rc_host_fini(&p->h[i]);
		free(p->mem[i]);
	}
}

static bool send_one(struct pair *p, unsigned from)
{
	uint8_t out[RC_PKT_MAX];
	uint32_t len = rc_host_output(&p->h[from], out, p->now);
	struct roce_pkt pkt;

	if (!len)
		return false;
	assert_true(rc_pkt_read(out, len, &pkt));
	p->acks += from && pkt.opcode == ROCE_RC_ACK;
	p->packets += !from;
	p->asked += !from && pkt.ack_req;
	if (!p->cut)
		rc_host_packet(&p->h[!from], &pkt, p->now);
	return true;
}

/* Packets until nobody has any, then the next timer; until `until`. */
static void run_until(struct pair *p, rwy_time until)
{
	for (;;) {
		rwy_time at;

		while (send_one(p, 0) || send_one(p, 1))
			;
		at = rwy_time_min(rc_host_next(&p->h[0]), rc_host_next(&p->h[1]));
		if (at > until)
			return;
		p->now = rwy_time_max(p->now, at);
		rc_host_tick(&p->h[0], p->now);
		rc_host_tick(&p->h[1], p->now);
	}
}

static void post(struct pair *p, enum rc_wr_op op, uint32_t len)
{
	rc_host_post(&p->h[0], &(struct rc_wr){.op = op, .len = len, .rkey = p->h[1].cfg.rkey});
}

/* 2, 4, 8 and 16 ms, seven retries, and then an error. */
static void test_timer(void **state)
{
	static const unsigned ms[] = {2, 4, 8, 16, 16, 16, 16, 16};
	struct pair p;
	rwy_time at;

	(void)state;
	pair_init(&p, 1);
	p.cut = true;
	at = p.now;
	post(&p, RC_WRITE, 100);
	for (unsigned i = 0; i < 8; i++) {
		run_until(&p, p.now);
		assert_int_equal(p.packets, i + 1);
		at += ms[i] * RWY_MS;
		assert_int_equal(rc_host_next(&p.h[0]), at);
		run_until(&p, at);
	}
	assert_int_equal(p.bad[0], 1);
	assert_int_equal(p.status, RC_RETRY_EXC);
	assert_int_equal(p.now - RWY_SEC, rc_host_patience(&p.h[0].cfg));
	pair_fini(&p);
}

/* All is outstanding at once; AckReq with every 256th packet and the last one. */
static void test_deep_and_lazy(void **state)
{
	struct pair p;
	uint8_t out[RC_PKT_MAX];

	(void)state;
	pair_init(&p, 1);
	for (unsigned i = 0; i < 10; i++)
		post(&p, RC_WRITE, 100 * 1024);
	while (rc_host_output(&p.h[0], out, p.now))
		p.packets++;
	assert_int_equal(p.packets, 1000);
	rc_host_tick(&p.h[0], p.now + 2 * RWY_MS);
	p.packets = 0;
	run_until(&p, p.now);
	assert_int_equal(p.packets, 1000);
	assert_int_equal(p.asked, 4);
	assert_int_equal(p.ok[0], 10);
	pair_fini(&p);
}

/* One ACK for eight requests; for fewer after the delay. */
static void test_coalescing(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 8);
	p.h[0].cfg.lazy_ackreq = false;
	for (unsigned i = 0; i < 20; i++)
		post(&p, RC_WRITE, 8);
	run_until(&p, p.now);
	assert_int_equal(p.acks, 2);
	assert_int_equal(p.ok[0], 16);
	run_until(&p, p.now + p.h[1].cfg.ack_delay);
	assert_int_equal(p.acks, 3);
	assert_int_equal(p.ok[0], 20);
	pair_fini(&p);
}

/* RNR retry is 0: who heeds credits waits for receives, who does not dies. */
static void test_credits(void **state)
{
	(void)state;
	for (unsigned heeds = 0; heeds < 2; heeds++) {
		struct pair p;

		pair_init(&p, 1);
		if (!heeds) {
			p.h[0].cfg.credits = false;
			p.h[0].limit = UINT32_MAX;
		}
		for (unsigned i = 0; i < 3; i++)
			rc_host_post_recv(&p.h[1], 0, 4096);
		for (unsigned i = 0; i < 10; i++)
			post(&p, RC_SEND, 64);
		run_until(&p, p.now + RWY_SEC);
		assert_int_equal(p.h[1].rnr_sent, heeds ? 0 : 1);
		assert_int_equal(p.bad[0] > 0, !heeds);
		for (unsigned i = 0; i < 7; i++)
			rc_host_post_recv(&p.h[1], 0, 4096);
		run_until(&p, p.now + RWY_SEC);
		assert_int_equal(p.ok[0], heeds ? 10 : 3);
		pair_fini(&p);
	}
}

/* An error of the responder ends the requester of the same queue pair. */
static void test_whole(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, 1);
	rc_host_post(&p.h[1], &(struct rc_wr){.op = RC_READ, .len = 8, .rkey = p.h[0].cfg.rkey});
	p.h[1].cfg.rd_max = 0;
	rc_host_post(&p.h[0], &(struct rc_wr){.op = RC_WRITE, .len = 8, .rkey = 1});
	run_until(&p, p.now + RWY_SEC);
	assert_true(p.h[1].rq_error && p.h[1].sq_error && p.h[0].sq_error && p.h[0].rq_error);
	assert_int_equal(p.bad[1], 1);
	pair_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_timer),
	    cmocka_unit_test(test_deep_and_lazy),
	    cmocka_unit_test(test_coalescing),
	    cmocka_unit_test(test_credits),
	    cmocka_unit_test(test_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
