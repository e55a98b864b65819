/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture played again: two model hosts talk in virtual time and are captured at one of them; the
 * schedule made of that has what they posted, and the simulation gives each host what it got then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rwy/due.h"
#include "rwy/endian.h"
#include "tests/lib/rc_host.h"
#include "tools/replay/sim.h"

#define MEM     (1u << 20)
#define ETH_LEN 14
#define LAN     (5 * RWY_US)

struct end {
	struct rc_host h;
	uint8_t mem[MEM];
	struct world *w;
	unsigned completed, received;
};

struct world {
	struct end e[2];
	struct rp_schedule *s;
	struct due_heap due;
	uint64_t order;
	rwy_time now;
	uint32_t snap; /* bytes captured of a frame at most; 0: all */
	unsigned lose; /* each so many packets of host 0 one is lost behind the capture; 0: none */
	unsigned miss; /* each so many packets of host 0 one is not captured; 0: none */
	unsigned sent;
	bool stopped; /* the clock of the capture */
};

struct flying {
	uint32_t len;
	uint8_t bytes[RC_PKT_MAX];
};

static void done(void *ctx, const struct rc_comp *c)
{
	struct end *e = ctx;

	assert_int_equal(c->status, RC_OK);
	e->completed += !c->recv;
	e->received += c->recv;
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->s = rp_schedule_new();
	assert_non_null(w->s);
	w->now = RWY_SEC;
	for (unsigned i = 0; i < 2; i++) {
		struct rc_host_cfg c;

		rc_host_cfg_default(&c);
		memcpy(c.ip, (uint8_t[]){10, 0, 0, (uint8_t)(i + 1)}, 4);
		memcpy(c.peer_ip, (uint8_t[]){10, 0, 0, (uint8_t)(2 - i)}, 4);
		c.peer_qpn = 0x20 + !i;
		c.sq_psn = i ? 5 : 0xfffff0; /* wraps soon */
		c.rq_psn = i ? 0xfffff0 : 5;
		c.done = done;
		c.ctx = &w->e[i];
		w->e[i].w = w;
		for (uint32_t b = 0; b < MEM; b++)
			w->e[i].mem[b] = (uint8_t)(b * 7 + b / 251 + i);
		rc_host_init(&w->e[i].h, &c, w->e[i].mem, MEM);
	}
	return w;
}

static void world_free(struct world *w)
{
	rc_host_fini(&w->e[0].h);
	rc_host_fini(&w->e[1].h);
	rp_schedule_free(w->s);
	while (w->due.n) {
		struct due d = due_pop(&w->due);

		free(d.what);
	}
	free(w->due.v);
	free(w);
}

/* The capture is at host 0. */
static void capture(struct world *w, const uint8_t *ip, uint32_t len)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {0};
	uint32_t most = w->snap && w->snap < ETH_LEN + len ? w->snap : ETH_LEN + len;

	frame[12] = 8;
	memcpy(frame + ETH_LEN, ip, len);
	assert_int_equal(
	    an_frame(w->s->an, w->stopped ? RWY_SEC : w->now, frame, most, ETH_LEN + len, false), 0);
}

static void output(struct world *w, unsigned i)
{
	uint8_t out[RC_PKT_MAX];
	struct flying *f;
	uint32_t len;

	while ((len = rc_host_output(&w->e[i].h, out, w->now))) {
		unsigned n = i ? 0 : ++w->sent;

		if (!i && !(w->miss && n % w->miss == 0))
			capture(w, out, len);
		if (w->lose && n && n % w->lose == 0)
			continue;
		f = malloc(sizeof(*f));
		assert_non_null(f);
		memcpy(f->bytes, out, len);
		f->len = len;
		due_push(&w->due, &(struct due){w->now + LAN, w->order++, f, !i});
	}
}

/* Until `until`. */
static void run(struct world *w, rwy_time until)
{
	for (;;) {
		rwy_time at = due_next(&w->due);

		for (unsigned i = 0; i < 2; i++) {
			output(w, i);
			at = rwy_time_min(at, rc_host_next(&w->e[i].h));
		}
		at = rwy_time_min(at, due_next(&w->due));
		if (at >= until)
			break;
		w->now = rwy_time_max(w->now, at);
		while (due_next(&w->due) <= w->now) {
			struct due d = due_pop(&w->due);
			struct flying *f = d.what;

			if (!d.where)
				capture(w, f->bytes, f->len);
			rc_host_input(&w->e[d.where].h, f->bytes, f->len, w->now);
			free(f);
		}
		for (unsigned i = 0; i < 2; i++)
			rc_host_tick(&w->e[i].h, w->now);
	}
	w->now = until;
}

static void post(struct world *w, unsigned i, enum rc_wr_op op, uint32_t len, uint32_t at)
{
	struct end *e = &w->e[i];
	struct rc_wr wr = {.op = op, .local = at, .remote = at, .len = len, .rkey = e->h.cfg.rkey, .imm = at};

	if (op == RC_FAA || op == RC_CAS) {
		wr.len = 8;
		wr.swap_add = 3;
	}
	if (op == RC_SEND || op == RC_SEND_IMM || op == RC_WRITE_IMM)
		rc_host_post_recv(&w->e[!i].h, MEM / 2, MEM / 4);
	rc_host_post(&e->h, &wr);
}

/* All operations, both ways; requests and answers, as a storage protocol has them. */
static void session(struct world *w)
{
	static const uint32_t len[] = {0, 1, 64, 1024, 1025, 4096, 70000};

	for (unsigned k = 0; k < 3 * sizeof(len) / sizeof(len[0]); k++) {
		uint32_t n = len[k % (sizeof(len) / sizeof(len[0]))];

		post(w, 0, RC_SEND, 64 + k, 64 * k);
		run(w, w->now + 200 * RWY_US);
		post(w, 1, RC_READ, n, 4096);
		post(w, 1, RC_WRITE, n, 8192);
		post(w, 1, k & 1 ? RC_SEND_IMM : RC_WRITE_IMM, 16, 128 * k);
		run(w, w->now + RWY_MS);
		post(w, 0, RC_FAA, 8, 512);
		post(w, 0, RC_READ, n, 100);
		run(w, w->now + RWY_MS);
	}
	run(w, w->now + 10 * RWY_SEC);
	assert_int_equal(w->e[0].completed, 63);
	assert_int_equal(w->e[1].completed, 63);
}

static void end(struct world *w)
{
	assert_int_equal(rp_schedule_end(w->s), 0);
}

/* --- the schedule ---------------------------------------------------------------------------- */

static void test_schedule_has_what_was_posted(void **state)
{
	struct world *w = world_new();
	const struct rp_side *a, *b;

	session(w);
	end(w);
	assert_int_equal(w->s->conns, 1);
	a = &w->s->conn[0].side[0];
	b = &w->s->conn[0].side[1];
	assert_int_equal(a->qpn, 0x20);
	assert_int_equal(b->qpn, 0x21);
	assert_int_equal(a->first, 0xfffff0);
	assert_int_equal(b->first, 5);
	assert_int_equal(a->msgs, w->e[0].completed);
	assert_int_equal(b->msgs, w->e[1].completed);
	assert_int_equal(a->msgs, 63);
	assert_int_equal(b->msgs, 63);
	assert_int_equal(a->rds, 42);
	assert_int_equal(w->s->conn[0].pmtu, 1024);
	/* B's first answers: after A's first SEND */
	assert_int_equal(b->msg[0].op, ROCE_OP_READ_REQ);
	assert_int_equal(b->msg[0].peers, 1);
	assert_int_equal(b->msg[2].peers, 1);
	/* A's ATOMIC: after B's first three; its next SEND after its own READ and ATOMIC */
	assert_int_equal(a->msg[1].op, ROCE_OP_FETCH_ADD);
	assert_int_equal(a->msg[1].peers, 3);
	assert_int_equal(a->msg[3].answers, 2);
	assert_int_equal(a->msg[3].at - a->msg[0].at, 2200 * RWY_US);
	assert_int_equal(a->lost.partial + a->lost.missing + a->lost.unanswered, 0);
	world_free(w);
}

static void test_schedule_of_a_lossy_line(void **state)
{
	struct world *w = world_new();

	w->lose = 29;
	session(w);
	end(w);
	assert_int_equal(w->s->conn[0].side[0].msgs, 63);
	assert_int_equal(w->s->conn[0].side[1].msgs, 63);
	assert_true(w->s->conn[0].side[0].flow->c.resent_packets > 0);
	world_free(w);
}

static void test_what_was_not_captured_is_left_out(void **state)
{
	struct world *w = world_new();
	const struct rp_side *a;
	uint64_t psn = 0;

	w->miss = 5;
	session(w);
	end(w);
	a = &w->s->conn[0].side[0];
	assert_true(a->msgs < 63 && a->msgs > 20);
	assert_true(a->lost.missing > 0);
	for (uint32_t m = 0; m < a->msgs; m++) { /* PSNs close up */
		assert_int_equal(a->msg[m].psn, psn);
		psn += a->msg[m].psns;
	}
	world_free(w);
}

/* A capture whose clock stands still tells the order, and no two messages wait for each other. */
static void test_times_may_be_equal(void **state)
{
	struct world *w = world_new();
	const struct rp_side *a, *b;

	w->stopped = true;
	session(w);
	end(w);
	a = &w->s->conn[0].side[0];
	b = &w->s->conn[0].side[1];
	assert_int_equal(a->msg[62].at, a->msg[0].at);
	assert_int_equal(b->msg[0].peers, 1);
	assert_int_equal(a->msg[0].peers, 0);
	assert_int_equal(a->msg[1].peers, 3);
	assert_int_equal(a->msg[3].answers, 2);
	world_free(w);
}

/* --- the simulation -------------------------------------------------------------------------- */

static void run_sim(const struct rp_schedule *s, const struct rp_sim_cfg *c, struct rp_sim_result *r)
{
	const struct rp_sim_conn *k;
	struct rp_sim *sim;

	assert_int_equal(rp_sim_new(&sim, s, c), 0);
	rp_sim_run(sim, r);
	k = rp_sim_conns(sim);
	assert_true(r->up);
	assert_false(r->stalled);
	for (unsigned j = 0; j < 2; j++) {
		assert_false(k[0].host[j].failed);
		assert_string_equal(k[0].host[j].differs, "");
		assert_int_equal(rp_host_differences(&k[0].host[j]), 0);
		assert_int_equal(k[0].host[j].stats.completed, s->conn[0].side[j].msgs);
		assert_int_equal(k[0].host[j].stats.bytes, s->conn[0].side[j].bytes);
		assert_int_equal(k[0].host[!j].stats.received, s->conn[0].side[j].msgs);
	}
	assert_int_equal(rp_sim_free(sim), 0);
}

static void test_simulation_is_exact(void **state)
{
	struct world *w = world_new();
	struct rp_sim_result r;
	struct rp_sim_cfg c;

	session(w);
	end(w);
	rp_sim_cfg_default(&c);
	c.wan[0].delay = c.wan[1].delay = 10 * RWY_MS;
	for (unsigned m = ENG_ACK_NEAR; m <= ENG_ACK_CAUSAL; m++) {
		c.ack_mode = (enum eng_ack_mode)m;
		run_sim(w->s, &c, &r);
		assert_true(r.took >= w->s->last - w->s->first);
	}
	world_free(w);
}

static void test_simulation_with_loss_is_exact_and_repeats(void **state)
{
	struct rp_sim_result r[3];
	struct world *w = world_new();
	struct rp_sim_cfg c;

	w->lose = 11;
	session(w);
	end(w);
	rp_sim_cfg_default(&c);
	for (unsigned i = 0; i < 2; i++) {
		c.wan[i].delay = 10 * RWY_MS;
		c.wan[i].loss = .05;
		c.wan[i].reorder = .02;
		c.wan[i].dup = .01;
		c.wan[i].corrupt = .01;
	}
	c.lan.loss = .01;
	c.fault[0] = (struct rp_fault){.from = 5 * RWY_MS, .to = 305 * RWY_MS, .way = {true, true}};
	c.faults = 1;
	for (unsigned i = 0; i < 3; i++) {
		c.seed = i == 2 ? 9 : 4;
		run_sim(w->s, &c, &r[i]);
		assert_true(r[i].wan[0].lost > 0);
	}
	assert_int_equal(r[0].hash, r[1].hash);
	assert_int_equal(r[0].took, r[1].took);
	assert_int_not_equal(r[0].hash, r[2].hash);
	world_free(w);
}

static void test_snap_length_gives_zeros(void **state)
{
	struct world *w = world_new();
	struct rp_sim_result r;
	struct rp_sim_cfg c;

	w->snap = 128;
	session(w);
	end(w);
	assert_true(w->s->cut > 0);
	assert_int_equal(w->s->conn[0].side[0].msgs, 63);
	rp_sim_cfg_default(&c);
	run_sim(w->s, &c, &r);
	world_free(w);
}

static void test_snap_length_below_headers(void **state)
{
	struct world *w = world_new();

	w->snap = 50; /* in the BTH */
	session(w);
	end(w);
	assert_int_equal(rp_schedule_messages(w->s), 0);
	world_free(w);
}

/* --- one host -------------------------------------------------------------------------------- */

static void discard(void *ctx, const uint8_t *ip, uint32_t len)
{
	++*(unsigned *)ctx;
}

/* Gives host B the packets of A's messages up to before `end`; `changed` has one bit changed. */
static void give(struct rp_host *b, uint32_t end_at, uint32_t changed, uint32_t bit_of)
{
	const struct rp_side *a = b->peer;

	for (uint32_t m = 0; m < end_at; m++)
		for (uint32_t k = 0; k < a->msg[m].pkts; k++) {
			const struct rp_pkt *p = &a->pkt[a->msg[m].pkt + k];
			uint8_t bytes[RC_PKT_MAX];
			struct roce_pkt pkt;

			memcpy(bytes, b->cfg.schedule->bytes + p->off, p->len);
			assert_int_equal(roce_parse(bytes, p->len, &pkt), ROCE_PARSE_OK);
			if (m == changed)
				pkt.ext[bit_of] ^= 1;
			rp_host_recv(b, &pkt, RWY_SEC);
			while (rp_host_poll(b, 64, RWY_SEC))
				;
		}
}

/* A host tells what does not agree with the capture. */
static void test_a_difference_is_found(void **state)
{
	struct world *w = world_new();
	struct rp_host_cfg c;
	unsigned sent = 0;

	session(w);
	end(w);
	for (unsigned i = 0; i < 4; i++) {
		struct rp_host *b = calloc(1, sizeof(*b));

		assert_non_null(b);
		rp_host_cfg_default(&c);
		c.schedule = w->s;
		c.conn = &w->s->conn[0];
		c.side = 1;
		c.sq_psn = 5;
		c.rq_psn = 0xfffff0;
		c.send = discard;
		c.ctx = &sent;
		assert_int_equal(rp_host_init(b, &c, 0), 0);
		/* messages 0: SEND, 1: ATOMIC, 2: READ */
		give(b, i == 3 ? 60 : 63, i == 0 ? 0 : i == 1 ? 1 : UINT32_MAX, i ? 3 : 5);
		rp_host_end(b);
		assert_int_equal(b->stats.differs.payload, i == 0);
		assert_int_equal(b->stats.differs.header, i == 1);
		assert_int_equal(b->stats.differs.fewer, i == 3 ? 3 : 0);
		assert_int_equal(rp_host_differences(b), i == 2 ? 0 : i == 3 ? 3 : 1);
		assert_int_equal(b->differs[0] != 0, i != 2);
		rp_host_fini(b);
		free(b);
	}
	assert_true(sent > 63);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_schedule_has_what_was_posted),
	    cmocka_unit_test(test_schedule_of_a_lossy_line),
	    cmocka_unit_test(test_what_was_not_captured_is_left_out),
	    cmocka_unit_test(test_times_may_be_equal),
	    cmocka_unit_test(test_simulation_is_exact),
	    cmocka_unit_test(test_simulation_with_loss_is_exact_and_repeats),
	    cmocka_unit_test(test_snap_length_gives_zeros),
	    cmocka_unit_test(test_snap_length_below_headers),
	    cmocka_unit_test(test_a_difference_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
