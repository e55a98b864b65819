/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property test of responder and requester together: random requests of a model host over two lossy
 * LANs and a slow ordered pipe, in virtual time, many seeds, every ack mode and path MTU.
 * Invariants: the far memory equals that after executing the requests once and in order, each SEND
 * arrives once and in order, each ATOMIC runs once, READs return the right bytes, everything
 * completes. If the far host refuses, the requester gets an error, and the right one if nothing was
 * acknowledged early. SEEDS=N runs more; SEED=N one.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rwy/endian.h"
#include "tests/lib/rc_world.h"

#define MEM     (4u << 20)
#define COUNTER 4 /* 64-bit counters at the start of B's memory */
#define STATIC  (1u << 20)
#define WRITE0  (1u << 20)
#define RECV0   (3u << 20)
#define WRS     120
#define EXTRA   20 /* posted after a refusal, so that near mode has requests that fail */

struct run {
	struct rc_world w;
	uint64_t rng;
	uint8_t *a, *b, *shadow, *expect; /* memories; B's and A's expected content */
	struct rc_wr wr[WRS + EXTRA];
	unsigned n, comps, oks;
	unsigned bad_at; /* index of the refused request; WRS: none */
	enum rc_status status[WRS + EXTRA];
	uint32_t recv_off[WRS], recv_len[WRS], recv_imm[WRS];
	unsigned sends, recvs, atomics;
	uint32_t a_used, w_used, r_used;
	bool slow_recv; /* receives are posted late: RNR NAKs */
	const char *wrong;
};

static void done_a(void *ctx, const struct rc_comp *c)
{
	struct run *r = ctx;

	if (c->recv || c->id != r->comps)
		r->wrong = "completions out of order";
	if (c->id < WRS + EXTRA)
		r->status[c->id] = c->status;
	r->oks += c->status == RC_OK;
	r->comps++;
}

static void done_b(void *ctx, const struct rc_comp *c)
{
	struct run *r = ctx;

	if (!c->recv)
		r->wrong = "completion of nothing";
	else if (c->id != r->recvs || c->id >= r->sends || c->len != r->recv_len[c->id])
		r->wrong = "receive out of order, twice, or of a wrong length";
	else if (c->with_imm && c->imm != r->recv_imm[c->id])
		r->wrong = "immediate data";
	r->recvs++;
}

static uint32_t take(uint32_t *used, uint32_t len)
{
	uint32_t at = *used;

	*used += (len + 7) & ~7u;
	return at;
}

static uint32_t length(struct run *r, uint32_t mtu)
{
	switch (rng_below(&r->rng, 6)) {
	case 0:
		return rng_below(&r->rng, 9);
	case 1:
		return mtu * rng_below(&r->rng, 4);
	case 2:
		return rng_below(&r->rng, 12 * mtu > 16384 ? 16384 : 12 * mtu);
	default:
		return rng_below(&r->rng, 2 * mtu);
	}
}

/* Applies the request to the memories, executed once and in order. */
static void execute(struct run *r, const struct rc_wr *wr)
{
	uint64_t old, v;

	switch (wr->op) {
	case RC_WRITE:
	case RC_WRITE_IMM:
		memcpy(r->shadow + wr->remote, r->a + wr->local, wr->len);
		break;
	case RC_SEND:
	case RC_SEND_IMM:
	case RC_SEND_INV:
		memcpy(r->shadow + r->recv_off[r->sends - 1], r->a + wr->local, wr->len);
		break;
	case RC_READ:
		memcpy(r->expect + wr->local, r->shadow + wr->remote, wr->len);
		break;
	case RC_CAS:
	case RC_FAA:
		memcpy(&old, r->shadow + wr->remote, 8);
		v = wr->op == RC_FAA ? old + wr->swap_add : old == wr->compare ? wr->swap_add : old;
		memcpy(r->shadow + wr->remote, &v, 8);
		memcpy(r->expect + wr->local, &old, 8);
		r->atomics++;
		break;
	case RC_UNCARRIED:
		break;
	}
}

static bool takes_recv(enum rc_wr_op op)
{
	return op == RC_SEND || op == RC_SEND_IMM || op == RC_SEND_INV || op == RC_WRITE_IMM;
}

static void make_wr(struct run *r, unsigned i, uint32_t mtu, uint32_t rkey)
{
	struct rc_wr *wr = &r->wr[i];

	*wr = (struct rc_wr){.id = i, .op = (enum rc_wr_op)rng_below(&r->rng, 8), .rkey = rkey};
	wr->len = wr->op == RC_CAS || wr->op == RC_FAA ? 8 : length(r, mtu);
	wr->local = take(&r->a_used, wr->len);
	wr->imm = (uint32_t)rng_next(&r->rng);
	if (wr->op == RC_READ) { /* never what a later WRITE changes: a repeated READ may see later bytes */
		bool written = r->w_used > WRITE0 + wr->len && rng_below(&r->rng, 2);

		wr->remote = written ? WRITE0 + rng_below(&r->rng, r->w_used - WRITE0 - wr->len)
		                     : 64 + rng_below(&r->rng, STATIC - 64 - wr->len);
	} else if (wr->op == RC_CAS || wr->op == RC_FAA) {
		wr->remote = 8 * rng_below(&r->rng, COUNTER);
		wr->swap_add = rng_below(&r->rng, 5);
		wr->compare = rng_below(&r->rng, 5);
	} else if (wr->op == RC_WRITE || wr->op == RC_WRITE_IMM) {
		wr->remote = take(&r->w_used, wr->len);
	}
	if (takes_recv(wr->op)) {
		r->recv_off[r->sends] = take(&r->r_used, wr->len);
		r->recv_len[r->sends] = wr->op == RC_WRITE_IMM ? 0 : wr->len;
		r->recv_imm[r->sends] = wr->imm;
		r->sends++;
	}
	if (i == r->bad_at) {
		if (wr->op == RC_SEND || wr->op == RC_SEND_IMM || wr->op == RC_SEND_INV || !wr->len) {
			r->bad_at++; /* cannot be refused: the next one */
		} else {
			wr->rkey ^= 1;
			r->n = i; /* the requests from here on are not executed */
		}
	}
	if (i < r->n)
		execute(r, wr);
}

static const char *check_hosts(const struct run *r)
{
	const struct rc_host_bad *bad = &r->w.a.bad;

	if (r->w.broken)
		return r->w.broken;
	if (r->wrong)
		return r->wrong;
	if (bad->ghost || bad->ack || bad->opcode || bad->msn || bad->length)
		return bad->ghost    ? "ghost ACK"
		       : bad->ack    ? "ACK of a READ's PSN"
		       : bad->opcode ? "response opcode"
		       : bad->msn    ? "MSN"
		                     : "response length";
	if (r->w.hole)
		return "hole";
	if (r->w.b.rq_error && r->bad_at >= WRS)
		return "host B refused something right";
	return NULL;
}

static const char *check_memory(const struct run *r)
{
	if (memcmp(r->b, r->shadow, MEM) != 0)
		return "host B's memory";
	if (r->w.b.atomics != r->atomics)
		return "an ATOMIC ran twice or not at all";
	return NULL;
}

static bool is_rd(enum rc_wr_op op)
{
	return op == RC_READ || op == RC_CAS || op == RC_FAA;
}

/* Host B is silent after a refusal: requests whose answer the LAN lost before that fail, too. */
static bool error_ok(const struct run *r, const struct rc_wr *wr)
{
	bool silent = r->w.reqr.timeouts > r->w.reqr.cfg.retry;

	return r->bad_at < WRS && (r->w.cfg.mode != RC_END || is_rd(wr->op) || silent);
}

static const char *check_results(const struct run *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		const struct rc_wr *wr = &r->wr[i];

		if (r->status[i] != RC_OK)
			return error_ok(r, wr) ? NULL : "an error without a reason";
		if (is_rd(wr->op) && memcmp(r->a + wr->local, r->expect + wr->local, wr->len) != 0)
			return "what a READ or ATOMIC brought";
	}
	return NULL;
}

/* The far host refused request bad_at. */
static const char *check_refusal(const struct run *r)
{
	bool rd = is_rd(r->wr[r->bad_at].op), earlier = false;

	for (unsigned i = 0; i < r->bad_at; i++)
		earlier = earlier || r->status[i] != RC_OK;
	if (r->comps != WRS + EXTRA || r->oks == r->comps)
		return "no error was seen";
	if ((rd || r->w.cfg.mode == RC_END) && r->status[r->bad_at] == RC_OK)
		return "a refused request completed";
	/* The host sends it once and then is silent: if the LAN lost that NAK, the error is an
	 * ordinary retry limit. */
	if (!earlier && r->w.cfg.mode == RC_END && r->status[r->bad_at] != RC_REM_ACCESS &&
	    (r->w.reqr.timeouts <= r->w.reqr.cfg.retry || r->status[r->bad_at] != RC_REM_OP))
		return "not the error that the host gave";
	return NULL;
}

static struct link_cfg lan_of(uint64_t *rng)
{
	struct link_cfg l = {.delay = 2 * RWY_US,
	    .reorder_extra = RWY_MS,
	    .dup_extra = 10 * RWY_US,
	    .corrupt_from = 28}; /* behind IP and UDP */

	l.loss = rng_below(rng, 3) ? rng_below(rng, 4000) / 65536.0 : 0; /* to 6 % */
	l.dup = rng_below(rng, 2) ? rng_below(rng, 2000) / 65536.0 : 0;
	l.reorder = rng_below(rng, 2) ? rng_below(rng, 2000) / 65536.0 : 0;
	l.corrupt = rng_below(rng, 3) ? 0 : rng_below(rng, 600) / 65536.0;
	l.jitter = 1 + rng_below(rng, 2) * 5000;
	return l;
}

static void run_init(struct run *r, uint64_t seed)
{
	struct rc_host_cfg ca, cb;
	struct rc_world_cfg wc = {.seed = seed * 7919 + 1};
	static const roce_psn starts[4] = {0, 0xfffff0, 0xffff80, 0x7fffc0};

	memset(r, 0, sizeof(*r));
	r->rng = seed;
	r->a = malloc(MEM);
	r->b = malloc(MEM);
	r->shadow = malloc(MEM);
	r->expect = calloc(1, MEM);
	for (uint32_t i = 0; i < MEM / 8; i++)
		((uint64_t *)r->a)[i] = rng_next(&r->rng);
	for (uint32_t i = 0; i < MEM / 8; i++)
		((uint64_t *)r->b)[i] = i < COUNTER ? 0 : rng_next(&r->rng);
	memcpy(r->shadow, r->b, MEM);
	r->w_used = WRITE0;
	r->r_used = RECV0;
	r->bad_at = rng_below(&r->rng, 4) ? WRS : 5 + rng_below(&r->rng, WRS - 20);
	r->n = WRS;
	r->slow_recv = rng_below(&r->rng, 2);
	rc_host_cfg_default(&ca);
	ca.mtu = 256u << rng_below(&r->rng, 5);
	ca.rd_max = 1 + rng_below(&r->rng, 16);
	ca.timeout = (5 + rng_below(&r->rng, 100)) * RWY_MS;
	ca.sq_psn = rng_below(&r->rng, 2) ? starts[rng_below(&r->rng, 4)] : rng_below(&r->rng, 1u << 24);
	ca.done = done_a;
	ca.ctx = r;
	cb = ca;
	memcpy(cb.ip, ca.peer_ip, 4);
	memcpy(cb.peer_ip, ca.ip, 4);
	cb.peer_qpn = 0x77;
	cb.rq_psn = ca.sq_psn;
	cb.rnr_timer = (uint8_t)(1 + rng_below(&r->rng, 16));
	cb.done = done_b;
	wc.mode = (enum rc_mode)rng_below(&r->rng, 3);
	wc.pmtu_known = rng_below(&r->rng, 2);
	wc.lan = lan_of(&r->rng);
	wc.wan_delay = rng_below(&r->rng, 30) * RWY_MS;
	wc.wan_jitter = RWY_MS;
	rc_world_init(&r->w, &wc, &ca, r->a, MEM, &cb, r->b, MEM);
	for (unsigned i = 0; i < WRS; i++)
		make_wr(r, i, ca.mtu, ca.rkey);
}

static void run_fini(struct run *r)
{
	rc_world_fini(&r->w);
	free(r->a);
	free(r->b);
	free(r->shadow);
	free(r->expect);
}

/* Posts requests and receives over time; receives are sometimes late, so that there are RNR
 * NAKs. */
static const char *run_go(struct run *r)
{
	unsigned posted = 0, recvs = 0, total = WRS;
	rwy_time limit = 600 * RWY_SEC;

	while (r->w.now < limit && !r->w.broken && !r->wrong) {
		unsigned n = rng_below(&r->rng, 40);

		for (; n && posted < WRS; n--)
			rc_host_post(&r->w.a, &r->wr[posted++]);
		for (n = rng_below(&r->rng, r->slow_recv ? 3 : 20); n && recvs < r->sends; n--, recvs++)
			rc_host_post_recv(&r->w.b, r->recv_off[recvs], r->recv_len[recvs]);
		if (posted == WRS && r->bad_at < WRS && r->w.b.rq_error && total < WRS + EXTRA) {
			r->wr[total] = (struct rc_wr){
			    .id = total, .op = RC_WRITE, .remote = 1u << 20, .rkey = r->w.a.cfg.rkey};
			rc_host_post(&r->w.a, &r->wr[total++]);
		}
		for (rwy_time until = r->w.now + 5 * RWY_MS; rc_world_step(&r->w, until);)
			;
		if (r->bad_at >= WRS && r->comps == WRS && r->recvs == r->sends && r->w.reqr.q.n == 0)
			break;
		if (r->comps == WRS + EXTRA)
			break;
	}
	/* Packets still in flight must not change anything. */
	for (rwy_time until = r->w.now + 5 * RWY_SEC; rc_world_step(&r->w, until);)
		;
	return r->w.now < limit ? NULL : "did not end";
}

static const char *run_one(uint64_t seed, bool say)
{
	struct run *r = malloc(sizeof(*r));
	const char *e, *late;

	run_init(r, seed);
	late = run_go(r);
	e = check_hosts(r);
	if (!e)
		e = late;
	if (!e)
		e = check_memory(r);
	if (!e)
		e = check_results(r);
	if (!e && r->bad_at < WRS)
		e = check_refusal(r);
	if (!e && r->bad_at >= WRS && (r->oks != WRS || r->recvs != r->sends))
		e = "not everything completed";
	if (say || e)
		printf("seed %llu: mode %d mtu %u psn %06x loss %.4f dup %.4f reorder %.4f pmtu %d bad_at %u "
		       "comps "
		       "%u ok %u recvs "
		       "%u/%u t %.1f ms resent %u a.resent %u rnr %u: %s\n",
		    (unsigned long long)seed, r->w.cfg.mode, r->w.a.cfg.mtu, r->w.a.cfg.sq_psn,
		    r->w.cfg.lan.loss, r->w.cfg.lan.dup, r->w.cfg.lan.reorder, r->w.cfg.pmtu_known, r->bad_at,
		    r->comps, r->oks, r->recvs, r->sends, (double)r->w.now / 1e6, r->w.reqr.resent,
		    r->w.a.resent, r->w.b.rnr_sent, e ? e : "ok");
	run_fini(r);
	free(r);
	return e;
}

static void test_seeds(void **state)
{
	const char *one = getenv("SEED"), *many = getenv("SEEDS");
	uint64_t n = many ? strtoull(many, NULL, 0) : 300, bad = 0;

	if (one) {
		assert_null(run_one(strtoull(one, NULL, 0), true));
		return;
	}
	for (uint64_t seed = 1; seed <= n; seed++)
		bad += run_one(seed, false) != NULL;
	assert_int_equal(bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
