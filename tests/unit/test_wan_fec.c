/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forward error correction: rebuilding, datagram by datagram; complete tunnels; invalid frames.
 * test_wan_fec_tail.c has what it gains and costs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_fec_pair.h"

/* Drops data datagrams in flight from end 0, chosen by their number since the last call. */
static unsigned kill_flying(struct wan_pair *p, bool (*dies)(unsigned nth, void *arg), void *arg)
{
	struct wan_link *l = &p->link[0];
	unsigned killed = 0;

	for (uint32_t i = 0; i < l->due.n; i++) {
		struct wan_link_pkt *k = l->due.v[i].what;

		if (k->len > 100 && dies((unsigned)(rwy_get64(k->data + 8)), arg)) {
			k->data[20] ^= 0xff; /* its checksum is wrong: lost */
			killed++;
		}
	}
	return killed;
}

/* --- one message, by hand ------------------------------------------------------------------------ */
struct choice {
	uint64_t first;
	unsigned count;
	bool chosen[512];
};

static bool is_chosen(unsigned nth, void *arg)
{
	struct choice *c = arg;
	uint64_t i = nth - c->first;

	return i < 512 && c->chosen[i];
}

/* Drops `count` of `total`, beginning at the next datagram. */
static void choose(struct choice *c, unsigned total, unsigned count, uint64_t seed)
{
	memset(c->chosen, 0, sizeof(c->chosen));
	for (c->count = 0; c->count < count;) {
		unsigned i = wan_rng_below(&seed, total);

		c->count += !c->chosen[i];
		c->chosen[i] = true;
	}
}

/* Sends n buffers and their repairs; drops those chosen, or as many as there are repairs and
 * `more`; lets it run. */
static rwy_dur hurt(struct wan_pair *p, unsigned n, struct choice *c, unsigned more, uint64_t seed)
{
	struct wan_stream *s = &p->stream[0];
	uint64_t repairs = wan_pair_stats(p, 0).c.repair_sent;
	struct wan_path *from = fec_pair_path(p, 0);

	rwy_time start = fec_pair_quiet(p);

	c->first = from->next_pn;
	s->total += n;
	while (from->next_pn < c->first + n || wan_fec_pending(&from->fec) || from->fec.tx->open)
		assert_true(wan_pair_step(p, p->now + FEC_RTT / 2));
	repairs = wan_pair_stats(p, 0).c.repair_sent - repairs;
	assert_in_range(repairs, 1, 200);
	if (!c->count)
		choose(c, n + (unsigned)repairs, (unsigned)repairs + more, seed);
	assert_int_equal(kill_flying(p, is_chosen, c), c->count);
	assert_true(wan_pair_run(p, p->now + 10 * RWY_SEC));
	assert_int_equal(p->errors, 0);
	return s->done_at - start;
}

/* Any m of the k + m are lost: rebuilt, byte for byte, without a round trip; one more: sent again,
 * still right. */
static void test_any_m(void **state)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct wan_link_cfg l = fec_pair_link();
		struct wan_cfg c;
		struct wan_pair p;
		struct choice pick = {0};

		fec_pair_cfg(&c);
		fec_pair_begin(&p, &c, &l, FEC_LEN - 60 * (uint32_t)seed, seed);
		if (seed % 3) /* of different lengths */
			p.stream[0].len_min = p.stream[0].len_max * 7 / 8;
		fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
		rwy_dur took = hurt(&p, 32, &pick, 0, seed);

		assert_int_equal(fec_pair_path(&p, 0)->fec.tx->group, 1);
		assert_in_range(took, FEC_RTT / 2, FEC_RTT / 2 + FEC_RTT / 16);
		assert_int_equal(wan_pair_stats(&p, 0).c.tx_retransmit, 0);
		assert_int_equal(wan_pair_stats(&p, 0).c.spurious_retransmit, 0);
		pick.count = 0;
		took = hurt(&p, 32, &pick, 1, seed);
		assert_true(took < 2 * FEC_RTT + FEC_RTT / 8);
		fec_pair_end(&p);
	}
}

/* A datagram with data tells its packet's IP header, by which its sender chooses a DSCP. A repair
 * tells none: it begins with the parity of several. */
static void test_no_ip_header(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	unsigned data = 0, repairs = 0, n;
	uint8_t vni[8];
	struct wan_tx tx[32];
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	for (unsigned i = 0; i < 32; i++) {
		struct rwy_buf *b = wan_pool_get(&p.pool, FEC_LEN);

		memset(b->data, 0x45, b->len);
		b->opcode = i == 31 ? 2 : 1; /* SEND last, SEND middle */
		wan_tx_send(p.stream[0].tx, b, p.now);
	}
	for (unsigned turn = 0; turn < 10; turn++, p.now += RWY_MS) {
		n = wan_poll(p.end[0].t, tx, 32, p.now);
		for (unsigned i = 0; i < n; i++) {
			const struct rwy_buf *b = tx[i].buf;

			if (!b)
				continue;
			assert_ptr_equal(rwy_buf_ip(b), b->kind == RWY_BUF_PARITY ? NULL : b->data);
			data += b->kind != RWY_BUF_PARITY;
			repairs += b->kind == RWY_BUF_PARITY;
			if (tx[i].own)
				rwy_buf_free(&p.pool.bufs, tx[i].buf);
		}
	}
	assert_int_equal(data, 32);
	assert_int_equal(repairs, wan_pair_stats(&p, 0).c.repair_sent);
	assert_true(repairs > 0);
	assert_ptr_equal(rwy_buf_ip(&(struct rwy_buf){.data = vni, .kind = RWY_BUF_TENANT}), vni + 4);
	fec_pair_end(&p);
}

static void test_burst(void **state)
{
	for (unsigned at = 0; at < 100; at += 9) {
		struct wan_link_cfg l = fec_pair_link();
		struct wan_cfg c;
		struct wan_pair p;
		struct choice pick = {.count = 8};

		fec_pair_cfg(&c);
		fec_pair_begin(&p, &c, &l, FEC_LEN, at + 1);
		fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 8);
		for (unsigned i = 0; i < 8; i++)
			pick.chosen[at + i] = true;
		rwy_dur took = hurt(&p, 250, &pick, 0, 0);

		assert_true(fec_pair_path(&p, 0)->fec.tx->depth * fec_pair_path(&p, 0)->fec.tx->send_m >= 8);
		assert_in_range(took, FEC_RTT / 2, FEC_RTT / 2 + FEC_RTT / 8);
		assert_int_equal(wan_pair_stats(&p, 1).c.rebuilt, 8);
		assert_int_equal(wan_pair_stats(&p, 0).c.tx_retransmit, 0);
		/* The sender knows that they were lost, and that they were one burst. */
		assert_int_equal(fec_pair_path(&p, 0)->fec.stats.reported, 8);
		fec_pair_end(&p);
	}
}

/* More losses in a block than its own repairs cover: shared repairs cover them, for one block or
 * several together. */
static void test_shared(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 3);
	for (unsigned blocks = 1; blocks <= 3; blocks++) {
		struct choice pick = {0};
		const struct wan_fec_tx *f;

		fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
		fec_pair_message(&p, 450); /* the cost limit of repairs is known from its first ACK on */
		fec_pair_message(&p, 450);
		f = fec_pair_path(&p, 0)->fec.tx;
		assert_true(f->depth >= 3 && f->send_m > 0 && f->send_g > blocks);
		for (unsigned b = 0; b < blocks; b++) {
			/* The first block takes the rest of the others; one is kept in reserve. */
			unsigned over = b ? 1 : f->send_g - blocks;

			for (unsigned i = 0; i < f->send_m + over; i++) {
				pick.chosen[b + (7 * i + b) * f->depth % (140 * f->depth)] = true;
				pick.count++;
			}
		}
		uint64_t before = wan_pair_stats(&p, 1).c.rebuilt;

		fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
		rwy_dur took = hurt(&p, 450, &pick, 0, 0);

		assert_int_equal(wan_pair_stats(&p, 1).c.rebuilt - before, pick.count);
		assert_int_equal(wan_pair_stats(&p, 0).c.tx_retransmit, 0);
		assert_int_equal(wan_pair_stats(&p, 1).c.drop_bad_repair, 0);
		assert_in_range(took, FEC_RTT / 2, FEC_RTT / 2 + FEC_RTT / 8);
	}
	fec_pair_end(&p);
}

/* --- no repairs without use ------------------------------------------------------------------- */
static void test_off(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	for (int i = 0; i < 50; i++)
		fec_pair_message(&p, 100);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0); /* nothing is lost */
	assert_null(fec_pair_path(&p, 0)->fec.tx);
	assert_null(fec_pair_path(&p, 1)->fec.keep);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	fec_pair_path(&p, 0)->srtt = 2 * FEC_RTT; /* a queue */
	assert_true(wan_fec_congested(&fec_pair_path(&p, 0)->fec, p.now));
	fec_pair_message(&p, 100);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0);
	fec_pair_path(&p, 0)->srtt = FEC_RTT;
	fec_pair_path(&p, 0)->fec.est.ce_until = p.now + FEC_RTT; /* marks */
	fec_pair_message(&p, 100);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0);
	p.now += 4 * FEC_RTT;
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	fec_pair_message(&p, 100);
	assert_true(wan_pair_stats(&p, 0).c.repair_sent > 0);
	fec_pair_end(&p);
	c.fec = WAN_FEC_OFF;
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	fec_pair_message(&p, 100);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0);
	fec_pair_end(&p);
}

/* A full queue that drops: the path's own loss, which must not be increased. */
static void test_congestion(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	l.rate_Bps = FEC_RATE / 10;
	l.queue_bytes = FEC_RATE / 10 * 20 / 1000;
	fec_pair_cfg(&c);
	c.cc_cfg.rate_Bps = FEC_RATE / 9;
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	fec_pair_message(&p, 20000);
	assert_true(wan_pair_stats(&p, 0).c.lost > 500);
	assert_true(wan_pair_stats(&p, 0).c.repair_sent < 40);
	fec_pair_end(&p);
}

/* A peer that does not announce support for repairs gets none. */
static void test_old_peer(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	p.end[0].t->fec.peer = false;
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	fec_pair_message(&p, 100);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0);
	assert_null(fec_pair_path(&p, 1)->fec.keep);
	fec_pair_end(&p);
}

/* --- invalid frames --------------------------------------------------------------------------- */
static void inject(struct wan_pair *p, const uint8_t *frames, uint32_t len)
{
	struct wan_tunnel *t = p->end[1].t;
	struct rwy_buf *b = p->pool.bufs.ops->alloc(p->pool.bufs.ctx, 160, WAN_PKT_HDR + len);
	struct wan_pkt h = {.version = WAN_VERSION, .index = t->index, .pn = fec_pair_path(p, 0)->next_pn};
	struct wan_sent s = {.bytes = 100};

	wan_loss_on_sent(fec_pair_path(p, 0), &s, true, p->now); /* its number is used */
	wan_pkt_put(b->data, &h);
	memcpy(b->data + WAN_PKT_HDR, frames, len);
	wan_pkt_seal(b->data, b->len, NULL, 0);
	wan_recv(t, 0, b, 0, p->now);
}

static void repair(struct wan_pair *p, const struct wan_f_repair *r, uint32_t len, uint8_t byte)
{
	uint8_t f[FEC_MTU];
	uint8_t *at = wan_f_repair_put(f, r);

	memset(at, byte, len);
	inject(p, f, (uint32_t)(at - f) + len);
}

static void test_lies(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	p.link[0].cfg.loss_ppm = 500000;
	fec_pair_message(&p, 200); /* copies, with gaps */
	p.link[0].cfg.loss_ppm = 0;
	uint32_t next = (uint32_t)fec_pair_path(&p, 0)->next_pn;
	const struct wan_f_repair good = {.depth = 1, .k = 20, .m = 4, .first = next};
	struct wan_f_repair bad[] = {good, good, good, good, good, good, good, good, good};
	uint64_t before = wan_pair_stats(&p, 1).c.drop_bad_repair,
	         frames = wan_pair_stats(&p, 1).c.drop_bad_frame;
	int64_t live = p.pool.live;

	bad[0].depth = 0;
	bad[1].k = 0;
	bad[2].k = WAN_FEC_K_MAX + 1;
	bad[3].m = 0;
	bad[4].m = WAN_FEC_M_MAX + 1;
	bad[5].index = WAN_FEC_M_MAX;
	bad[6].path = 7;
	bad[7].map_len = 2; /* 20 do not fit into 16 places */
	bad[8].first = next + 100000;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		repair(&p, &bad[i], 300, 1);
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_bad_frame, frames + 7); /* numbers that cannot be */
	assert_int_equal(
	    wan_pair_stats(&p, 1).c.drop_bad_repair, before + 2); /* no such path, no such block */
	repair(&p, &good, WAN_FEC_PREFIX, 1);                     /* no symbol */
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_bad_frame, frames + 8);
	assert_int_equal(p.pool.live, live);

	struct wan_f_repair r = good;

	repair(&p, &r, 300, 1); /* it waits */
	r.index = 1;
	r.k = 21;
	repair(&p, &r, 300, 1);
	r.k = 20;
	repair(&p, &r, 301, 1);
	r.m = 5;
	repair(&p, &r, 300, 1);
	assert_int_equal(wan_pair_stats(&p, 1).c.drop_bad_repair, before + 5);
	assert_int_equal(p.pool.live, live + 1);

	/* Blocks of what was there: symbols that do not belong to it. */
	uint64_t rebuilt = wan_pair_stats(&p, 1).c.rebuilt;

	for (uint32_t back = 1; back < 300; back++)
		for (uint8_t i = 0; i < 4; i++) {
			r = (struct wan_f_repair){
			    .depth = 1, .k = 3, .m = 4, .index = i, .first = next - back};
			repair(&p, &r, back & 1 ? 4200 : 300, (uint8_t)(back + i));
		}
	assert_true(wan_pair_stats(&p, 1).c.drop_bad_repair > before + 20);
	assert_int_equal(wan_pair_stats(&p, 1).c.rebuilt, rebuilt);

	/* An endless number of blocks: memory is limited. */
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t near = fec_pair_path(&p, 0)->next_pn;

		r = (struct wan_f_repair){
		    .depth = 1, .k = 200, .m = 32, .index = i % 32, .first = (uint32_t)(near + i / 32)};
		repair(&p, &r, 2000, (uint8_t)i);
		if (i % 64 == 0)
			wan_pair_step(&p, p.now + RWY_MS);
		assert_true(p.pool.live <= live + WAN_FEC_HELD_MAX + WAN_FEC_PARITY_MAX);
	}
	fec_pair_message(&p, 100); /* and it still works */
	fec_pair_end(&p);
}

/* No buffers for repairs, none to rebuild into: slower, not wrong. */
static void test_no_buffers(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;

	fec_pair_cfg(&c);
	fec_pair_begin(&p, &c, &l, FEC_LEN, 1);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	p.link[0].cfg.loss_ppm = 10000;
	p.pool.fail_ppm = 20000;
	for (int i = 0; i < 100; i++)
		fec_pair_message(&p, 300);
	assert_true(wan_pair_stats(&p, 1).c.rebuilt > 50);
	assert_true(p.pool.peak < 2000);
	fec_pair_end(&p);
}

/* Fragmented data, two lossy paths, restarts in the middle. */
static void test_weather(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct wan_link_cfg l = fec_pair_link();
		struct wan_cfg c;
		struct wan_pair p;

		fec_pair_cfg(&c);
		c.mtu[0] = 1472;
		l.loss_ppm = 20000;
		l.jitter = seed & 1 ? RWY_MS : 0;
		l.reorder_ppm = seed & 2 ? 5000 : 0;
		l.reorder_extra = 3 * RWY_MS;
		l.dup_ppm = seed & 4 ? 5000 : 0;
		l.corrupt_ppm = seed & 8 ? 2000 : 0;
		wan_pair_init(&p, &c, &l, &l, seed);
		wan_pair_streams(&p, 4, 3000, 1, FEC_LEN + 40, 400);
		if (seed & 16) {
			wan_pair_run(&p, p.now + 200 * RWY_MS);
			wan_pair_restart(&p, seed & 1);
		}
		assert_true(wan_pair_run(&p, p.now + 60 * RWY_SEC));
		assert_int_equal(p.errors, 0);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(wan_pair_stats(&p, i).c.drop_bad_frame, 0);
			assert_int_equal(wan_pair_stats(&p, i).c.drop_bad_repair, 0);
		}
		fec_pair_end(&p);
	}
}

/*
 * Hosts that stream with short queues, so little in a round trip that a group would close without
 * repairs: after the first group none is opened. With losses there are groups again.
 */
static void test_vain(void **state)
{
	struct wan_link_cfg l = fec_pair_link();
	struct wan_cfg c;
	struct wan_pair p;
	uint32_t before;

	fec_pair_cfg(&c);
	wan_pair_init(&p, &c, &l, &l, 5);
	wan_pair_streams(&p, 16, 400, FEC_LEN, FEC_LEN, 4);
	assert_true(wan_pair_run(&p, p.now + 20 * RWY_SEC));
	before = fec_pair_path(&p, 0)->fec.tx ? fec_pair_path(&p, 0)->fec.tx->group : 0;
	assert_in_range(before, 0, 1);
	assert_int_equal(wan_pair_stats(&p, 0).c.repair_sent, 0);
	fec_pair_know_loss(fec_pair_path(&p, 0), 0.01, 1);
	for (unsigned i = 0; i < 16; i++)
		p.stream[i].total += 40;
	assert_true(wan_pair_run(&p, p.now + 20 * RWY_SEC));
	assert_true(fec_pair_path(&p, 0)->fec.tx->group > before);
	assert_true(wan_pair_stats(&p, 0).c.repair_sent > 0);
	fec_pair_end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_any_m),
	    cmocka_unit_test(test_no_ip_header),
	    cmocka_unit_test(test_burst),
	    cmocka_unit_test(test_shared),
	    cmocka_unit_test(test_off),
	    cmocka_unit_test(test_congestion),
	    cmocka_unit_test(test_old_peer),
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_no_buffers),
	    cmocka_unit_test(test_weather),
	    cmocka_unit_test(test_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
