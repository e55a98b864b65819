/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The analysis names what limited a queue pair. Two model hosts talk over a wire with a delay, in
 * virtual time; one thing limits them in each case, and the capture of either end must say which.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce/build.h"
#include "roce/icrc.h"
#include "tests/lib/rc_host.h"
#include "tools/analyze/analyze.h"

#define MEM        (1u << 20)
#define FLIGHT_MAX 8192
#define ETH_LEN    14
#define POINTS     2000

struct scene {
	const char *name, *expect; /* word of the first finding */
	enum rc_wr_op op;
	uint32_t size, messages, depth;
	rwy_dur delay;  /* one way */
	rwy_dur tx_gap; /* between two packets of host A */
	rwy_dur think;  /* from a completion to the next post */
	uint32_t window, rd_max;
	rwy_dur timeout;
	unsigned lose;       /* each so many request packets one is lost; 0: none */
	bool lose_tail;      /* only last packets of messages are lost */
	rwy_dur recv_every;  /* a receive is posted so often; 0: all at once */
	unsigned slow_after; /* CNPs, and ten times the gap, from this packet on; 0: never */
	uint32_t mtu_most;   /* longer packets vanish; 0: none */
	unsigned corrupt;    /* each so many a packet's payload changes on the way */
	rwy_dur slot;        /* a bottleneck that takes so long for each packet */
	rwy_time dies;       /* host B is gone from then on */
	bool no_credit;      /* ACKs grant no further message */
	uint32_t rkey;       /* other than the right one */
	bool small_first;    /* the first message is of 64 bytes */
	uint8_t retry;
};

struct packet {
	rwy_time at;
	uint32_t len;
	uint8_t bytes[RC_PKT_MAX];
};

struct lane {
	struct packet *p;
	unsigned head, tail;
	rwy_time free_at; /* of its bottleneck */
};

struct world {
	const struct scene *s;
	struct rc_host a, b;
	uint8_t *mem_a, *mem_b;
	struct lane to_b, to_a;
	struct an *at_a, *at_b;
	rwy_time now, next_tx, next_recv;
	rwy_time post_at[4096]; /* of messages that wait for their time */
	unsigned posted, waiting, done, sent, recvs;
	bool failed;
};

static void post_later(struct world *w)
{
	if (w->posted + w->waiting < w->s->messages)
		w->post_at[w->waiting++] = w->now + w->s->think;
}

static void done_a(void *ctx, const struct rc_comp *c)
{
	struct world *w = ctx;

	w->done++;
	w->failed |= c->status != RC_OK;
	post_later(w);
}

static void done_b(void *ctx, const struct rc_comp *c)
{
	(void)ctx;
	(void)c;
}

static void capture(struct an *an, rwy_time at, const uint8_t *ip, uint32_t len)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {0};

	frame[12] = 8;
	memcpy(frame + ETH_LEN, ip, len);
	assert_int_equal(an_frame(an, at, frame, ETH_LEN + len, ETH_LEN + len, false), 0);
}

static void lane_push(struct world *w, struct lane *l, const uint8_t *bytes, uint32_t len, rwy_dur slot)
{
	struct packet *p = &l->p[l->tail++ % FLIGHT_MAX];

	assert_true(l->tail - l->head <= FLIGHT_MAX);
	l->free_at = rwy_time_max(l->free_at, w->now) + slot;
	p->at = l->free_at + w->s->delay;
	p->len = len;
	memcpy(p->bytes, bytes, len);
}

/* What happens to a request packet on its way. True: it is lost. */
static bool on_the_way(struct world *w, uint8_t *bytes, uint32_t len)
{
	const struct scene *s = w->s;
	struct roce_pkt pkt;

	w->sent++;
	assert_true(rc_pkt_read(bytes, len, &pkt));
	if (s->mtu_most && len > s->mtu_most)
		return true;
	if (s->corrupt && w->sent % s->corrupt == 0 && pkt.payload_len)
		pkt.payload[0] ^= 0xff;
	if (!s->lose || (s->lose_tail && !roce_op_ends(pkt.info)))
		return false;
	return w->sent % s->lose == 0;
}

static void a_sends(struct world *w)
{
	const struct scene *s = w->s;
	uint8_t bytes[RC_PKT_MAX];
	bool slow = s->slow_after && w->sent > s->slow_after;
	uint32_t len;

	while (w->now >= w->next_tx && (len = rc_host_output(&w->a, bytes, w->now)) != 0) {
		capture(w->at_a, w->now, bytes, len);
		w->next_tx = w->now + (slow ? 10 : 1) * s->tx_gap;
		if (slow && w->sent % 4 == 0) {
			struct roce_addr to_a = {.dqpn = w->b.cfg.peer_qpn, .sport = 4791, .ttl = 64};
			uint8_t cnp[ROCE_BUILD_MAX];
			uint32_t n;

			to_a.src = rwy_ip_from4(w->b.cfg.ip);
			to_a.dst = rwy_ip_from4(w->b.cfg.peer_ip);
			n = roce_build_cnp(cnp, &to_a);
			capture(w->at_a, w->now, cnp, n);
			capture(w->at_b, w->now, cnp, n);
		}
		if (!on_the_way(w, bytes, len))
			lane_push(w, &w->to_b, bytes, len, s->slot);
	}
}

static void b_sends(struct world *w)
{
	uint8_t bytes[RC_PKT_MAX];
	struct roce_pkt pkt;
	uint32_t len;

	while ((len = rc_host_output(&w->b, bytes, w->now)) != 0) {
		if (w->s->no_credit && rc_pkt_read(bytes, len, &pkt) && pkt.opcode == ROCE_RC_ACK) {
			uint8_t before = *pkt.ext;

			*pkt.ext = roce_aeth_make(ROCE_AETH_ACK, 0);
			roce_icrc_adjust(&pkt, pkt.ext, &before, 1);
		}
		capture(w->at_b, w->now, bytes, len);
		lane_push(w, &w->to_a, bytes, len, 0);
	}
}

static void lane_arrive(struct world *w, struct lane *l, struct rc_host *h, struct an *an)
{
	while (l->head != l->tail && l->p[l->head % FLIGHT_MAX].at <= w->now) {
		struct packet *p = &l->p[l->head++ % FLIGHT_MAX];

		if (h == &w->b && w->s->dies && w->now >= w->s->dies)
			continue;
		capture(an, w->now, p->bytes, p->len);
		rc_host_input(h, p->bytes, p->len, w->now);
	}
}

static void program(struct world *w)
{
	const struct scene *s = w->s;

	while (w->waiting && w->post_at[0] <= w->now) {
		struct rc_wr wr = {.id = w->posted,
		    .op = s->op,
		    .len = s->small_first && !w->posted ? 64 : s->size,
		    .rkey = s->rkey ? s->rkey : w->b.cfg.rkey};

		memmove(w->post_at, w->post_at + 1, --w->waiting * sizeof(w->post_at[0]));
		rc_host_post(&w->a, &wr);
		w->posted++;
	}
	if (s->op == RC_SEND)
		while (w->recvs < s->messages && w->now >= w->next_recv) {
			rc_host_post_recv(&w->b, 0, s->size);
			w->recvs++;
			w->next_recv = w->now + s->recv_every;
		}
}

static rwy_time next_of(const struct world *w)
{
	rwy_time t = rwy_time_min(rc_host_next(&w->a), rc_host_next(&w->b));

	if (w->next_tx > w->now)
		t = rwy_time_min(t, w->next_tx);
	if (w->waiting)
		t = rwy_time_min(t, w->post_at[0]);
	if (w->s->op == RC_SEND && w->recvs < w->s->messages)
		t = rwy_time_min(t, w->next_recv);
	if (w->to_a.head != w->to_a.tail)
		t = rwy_time_min(t, w->to_a.p[w->to_a.head % FLIGHT_MAX].at);
	if (w->to_b.head != w->to_b.tail)
		t = rwy_time_min(t, w->to_b.p[w->to_b.head % FLIGHT_MAX].at);
	return t;
}

static struct world *world_new(const struct scene *s)
{
	struct world *w = calloc(1, sizeof(*w));
	struct rc_host_cfg a, b;

	assert_non_null(w);
	w->s = s;
	w->mem_a = calloc(1, MEM);
	w->mem_b = calloc(1, MEM);
	w->to_a.p = calloc(FLIGHT_MAX, sizeof(struct packet));
	w->to_b.p = calloc(FLIGHT_MAX, sizeof(struct packet));
	w->at_a = an_new(POINTS);
	w->at_b = an_new(0);
	rc_host_cfg_default(&a);
	a.window = s->window ? s->window : a.window;
	a.rd_max = s->rd_max ? s->rd_max : a.rd_max;
	a.timeout = s->timeout ? s->timeout : a.timeout;
	a.retry = s->retry ? s->retry : a.retry;
	a.sq_psn = 0xfffff0; /* wraps soon */
	a.rq_psn = 77;
	b = a;
	memcpy(b.ip, a.peer_ip, 4);
	memcpy(b.peer_ip, a.ip, 4);
	b.peer_qpn = 0x34;
	b.sq_psn = 77;
	b.rq_psn = a.sq_psn;
	b.rnr_timer = 14; /* 1.28 ms */
	a.done = done_a;
	b.done = done_b;
	a.ctx = b.ctx = w;
	rc_host_init(&w->a, &a, w->mem_a, MEM);
	rc_host_init(&w->b, &b, w->mem_b, MEM);
	w->now = RWY_SEC;
	for (unsigned i = 0; i < s->depth && i < s->messages; i++)
		w->post_at[w->waiting++] = w->now;
	return w;
}

static void world_free(struct world *w)
{
	rc_host_fini(&w->a);
	rc_host_fini(&w->b);
	an_free(w->at_a);
	an_free(w->at_b);
	free(w->to_a.p);
	free(w->to_b.p);
	free(w->mem_a);
	free(w->mem_b);
	free(w);
}

static struct world *play(const struct scene *s)
{
	struct world *w = world_new(s);

	for (unsigned steps = 0; steps < 4000000; steps++) {
		rwy_time next;

		lane_arrive(w, &w->to_b, &w->b, w->at_b);
		lane_arrive(w, &w->to_a, &w->a, w->at_a);
		program(w);
		rc_host_tick(&w->a, w->now);
		rc_host_tick(&w->b, w->now);
		b_sends(w);
		a_sends(w);
		next = next_of(w);
		if (w->done >= s->messages || w->failed || next == RWY_NEVER)
			break;
		w->now = rwy_time_max(next, w->now + 1);
	}
	an_end(w->at_a);
	an_end(w->at_b);
	return w;
}

static const struct an_flow *flow_of(const struct an *an)
{
	for (const struct an_flow *f = an_flows(an); f; f = f->next)
		if (f->c.packets)
			return f;
	return NULL;
}

static const char *first_word(const struct an_flow *f)
{
	return f && f->findings ? f->finding[0].word : "nothing";
}

static void print_flow(const char *place, const struct scene *s, const struct an_flow *f)
{
	fprintf(stderr, "%s, captured at %s: expected %s\n", s->name, place, s->expect);
	for (unsigned i = 0; f && i < f->findings; i++)
		fprintf(stderr, "  %-12s %s\n", f->finding[i].word, f->finding[i].text);
#define X(field, text)                                                                                       \
	if (f && f->c.field)                                                                                 \
		fprintf(stderr, "  %-20s %llu\n", #field, (unsigned long long)f->c.field);
	AN_COUNTERS(X)
#undef X
}

#define LAN .delay = 5 * RWY_US
#define WAN .delay = 10 * RWY_MS

/* The capture at host B sees the same causes, but for those that only host A's link shows. */
static const struct scene scenes[] = {
    {"one WRITE at a time over 20 ms", "window", RC_WRITE, 4096, 50, 1, WAN, .tx_gap = RWY_US},
    {"16 WRITEs of 4 KiB over 20 ms", "window", RC_WRITE, 4096, 400, 16, WAN, .tx_gap = RWY_US},
    {"the NIC's window of 128 packets over 20 ms", "window", RC_WRITE, 65536, 100, 16, WAN, .tx_gap = RWY_US},
    {"a LAN at full rate", "sending", RC_WRITE, 65536, 200, 16, LAN, .tx_gap = 2 * RWY_US},
    {"a program that thinks", "idle", RC_WRITE, 4096, 100, 1, LAN, .tx_gap = RWY_US, .think = RWY_MS},
    {"4 READs of 16 KiB outstanding", "read depth", RC_READ, 16384, 200, 16, WAN, .tx_gap = RWY_US,
        .rd_max = 4},
    {"one READ of 4 KiB outstanding", "read depth", RC_READ, 4096, 60, 16, WAN, .tx_gap = RWY_US,
        .rd_max = 1},
    {"a lost packet of 130 over 20 ms", "loss", RC_WRITE, 65536, 60, 16, WAN, .tx_gap = RWY_US, .lose = 130},
    {"lost tails wait for the timer", "timeout", RC_WRITE, 4096, 80, 1, LAN, .tx_gap = RWY_US, .lose = 23,
        .lose_tail = true},
    {"receives come late", "rnr", RC_SEND, 1024, 60, 4, LAN, .tx_gap = RWY_US, .recv_every = 5 * RWY_MS},
    {"a timer of 5 ms over 20 ms", "timer", RC_WRITE, 1024, 30, 1, WAN, .tx_gap = RWY_US,
        .timeout = 15 * RWY_MS},
    {"CNPs", "cnp", RC_WRITE, 65536, 60, 16, LAN, .tx_gap = 5 * RWY_US, .slow_after = 200},
    {"a bottleneck on the way", "queue", RC_WRITE, 4096, 400, 64, LAN, .tx_gap = RWY_US, .slot = 20 * RWY_US},
    {"a path MTU too large", "mtu", RC_WRITE, 65536, 10, 1, LAN, .tx_gap = RWY_US, .mtu_most = 1000,
        .small_first = true, .retry = 5},
    {"a wrong rkey", "nak", RC_WRITE, 4096, 5, 1, LAN, .tx_gap = RWY_US, .rkey = 99},
    {"host B is gone", "dead", RC_WRITE, 4096, 4000, 4, LAN, .tx_gap = RWY_US, .dies = RWY_SEC + 10 * RWY_MS,
        .retry = 5},
    {"no credits", "credits", RC_WRITE, 4096, 60, 1, WAN, .tx_gap = RWY_US, .no_credit = true},
};

static void test_scenes(void **state)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
		const struct scene *s = &scenes[i];
		struct world *w = play(s);
		const struct an_flow *f = flow_of(w->at_a);

		if (getenv("VERBOSE") || strcmp(first_word(f), s->expect) != 0)
			print_flow("A", s, f);
		wrong += strcmp(first_word(f), s->expect) != 0;
		world_free(w);
	}
	assert_int_equal(wrong, 0);
}

/* Counters are exact where the hosts count the same. */
static void test_counts(void **state)
{
	static const struct scene s = {
	    "1 % loss", "loss", RC_WRITE, 65536, 60, 16, WAN, .tx_gap = RWY_US, .lose = 100};
	struct world *w = play(&s);
	const struct an_flow *f = flow_of(w->at_a);

	assert_int_equal(w->done, s.messages);
	assert_int_equal(f->c.messages, s.messages);
	assert_int_equal(f->c.writes, s.messages);
	assert_int_equal(f->c.bytes, (uint64_t)s.messages * s.size);
	assert_int_equal(f->c.resent_packets, w->a.resent);
	assert_int_equal(f->c.naks_sequence, w->b.nak_sent_n);
	assert_int_equal(f->c.not_captured, 0);
	assert_int_equal(f->pmtu, 1024);
	assert_int_equal(f->key.dqpn, 0x12);
	assert_true(f->rtt.min >= 2 * s.delay);
	assert_true(f->points > 100 && f->points <= POINTS);
	world_free(w);
}

/*
 * Behind the loss the capture sees each packet once or twice, and knows that some were lost before
 * it.
 */
static void test_place_b(void **state)
{
	static const struct scene s = {
	    "1 % loss", "loss", RC_WRITE, 65536, 60, 16, WAN, .tx_gap = RWY_US, .lose = 100};
	struct world *w = play(&s);
	const struct an_flow *f = flow_of(w->at_b);

	assert_true(f->c.lost_before > 0);
	assert_int_equal(f->c.messages, s.messages);
	assert_int_equal(f->c.bytes, (uint64_t)s.messages * s.size);
	world_free(w);
}

/* A bad ICRC is counted, and the packet changes nothing. */
static void test_icrc(void **state)
{
	static const struct scene s = {
	    "bad ICRCs", "icrc", RC_WRITE, 4096, 100, 4, LAN, .tx_gap = RWY_US, .corrupt = 50};
	struct world *w = play(&s);
	const struct an_flow *f = flow_of(w->at_b);

	assert_true(f->c.icrc_bad > 0);
	assert_string_equal(first_word(f), "icrc");
	assert_int_equal(f->c.messages, s.messages);
	world_free(w);
}

/* Cut packets say all but their ICRC; times that go back do no harm; rubbish neither. */
static void test_bad_input(void **state)
{
	uint8_t frame[ETH_LEN + RC_PKT_MAX] = {0};
	struct rc_mk m = {
	    .opcode = ROCE_RC_WRITE_ONLY, .psn = 5, .dqpn = 9, .payload_len = 1000, .len = 1000};
	struct an *an = an_new(10);
	uint32_t len = ETH_LEN + rc_pkt_make(frame + ETH_LEN, &m);
	uint64_t rng = 1;

	frame[12] = 8;
	assert_int_equal(an_frame(an, 1000, frame, 100, len, false), 0);
	assert_int_equal(an_totals(an)->cut, 1);
	assert_int_equal(an_flows(an)->c.bytes, 1000);
	assert_int_equal(an_frame(an, 10, frame, len, len, false), 0);
	assert_int_equal(an_totals(an)->backwards, 1);
	for (unsigned i = 0; i < 200000; i++) {
		uint8_t junk[200];

		memcpy(junk, frame, sizeof(junk));
		for (unsigned k = 0; k < 4; k++) {
			rng = rng * 6364136223846793005u + 1442695040888963407u;
			junk[(rng >> 33) % sizeof(junk)] = (uint8_t)(rng >> 50);
		}
		assert_int_equal(
		    an_frame(an, i, junk, (uint32_t)(rng >> 40) % sizeof(junk), sizeof(junk), i & 1), 0);
	}
	an_end(an);
	an_free(an);
}

static void test_hist(void **state)
{
	struct an_hist h = {0};

	assert_int_equal(an_hist_quantile(&h, 0.5), 0);
	for (rwy_dur d = 1; d <= 1000; d++)
		an_hist_add(&h, d * RWY_US);
	assert_int_equal(h.min, RWY_US);
	assert_int_equal(h.max, 1000 * RWY_US);
	assert_in_range(an_hist_quantile(&h, 0.5), 478 * RWY_US, 523 * RWY_US);
	assert_in_range(an_hist_quantile(&h, 0.99), 946 * RWY_US, 1000 * RWY_US);
	assert_int_equal(an_hist_quantile(&h, 1), h.max);
	assert_in_range(an_hist_mean(&h), 500 * RWY_US, 501 * RWY_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_scenes),
	    cmocka_unit_test(test_counts),
	    cmocka_unit_test(test_place_b),
	    cmocka_unit_test(test_icrc),
	    cmocka_unit_test(test_bad_input),
	    cmocka_unit_test(test_hist),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
