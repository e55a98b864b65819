/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles per datagram that forward error correction adds: two tunnels in one process, messages of
 * 16 MiB in 4 KiB buffers, and a sender that believes in a given loss. Counted as in bench_wan.c:
 * the sender (wan_tx_send(), wan_poll() with its repairs), the receiver (wan_recv(): the copies it
 * keeps, and repairs that it does not need). In the last row every 500th datagram is lost and
 * rebuilt. The wire does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "wan/tunnel.h"

#define PAYLOAD 4096
#define ROOM    8192
#define BURST   32
#define COUNT   (1u << 18)
#define WARM    (1u << 15)
#define MESSAGE 4096 /* buffers */
#define NS      90   /* ns between two datagrams: 400 Gb/s */
#define RTT     (25 * RWY_MS)

struct pool {
	struct rwy_buf *free;
};

static struct rwy_buf *pool_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct pool *p = ctx;
	struct rwy_buf *b = p->free;

	if (b)
		p->free = b->next;
	else
		b = aligned_alloc(64, ROOM);
	if (!b)
		abort();
	memset(b, 0, sizeof(*b));
	b->data = (uint8_t *)(b + 1) + headroom;
	b->headroom = (uint16_t)headroom;
	b->len = len;
	return b;
}

static void pool_free(void *ctx, struct rwy_buf *b)
{
	struct pool *p = ctx;

	b->next = p->free;
	p->free = b;
}

static struct pool pool;
static const struct rwy_buf_ops pool_ops = {pool_alloc, pool_free};
static struct rwy_bufs bufs = {&pool_ops, &pool};
static struct wan_rxflow *rx;
static uint64_t got;

static void *on_open(void *ctx, struct wan_rxflow *f, const uint8_t *info, size_t len, rwy_time now)
{
	rx = f;
	return &rx;
}

static void on_data(void *ctx, void *user, struct rwy_buf *b, rwy_time now)
{
	got++;
	wan_rx_delivered(rx, b->seq, now);
	rwy_buf_free(&bufs, b);
}

static void on_close(void *ctx, void *user, enum wan_close_reason reason, rwy_time now)
{
}

static const struct wan_ops ops = {.rx_open = on_open, .rx_data = on_data, .rx_close = on_close};

struct weather {
	const char *name;
	double loss, burst;
	bool lose;
};

struct cycles {
	uint64_t send, recv;
	uint64_t datagrams; /* with new data */
};

static unsigned transfer(
    struct wan_tunnel *from, struct wan_tunnel *to, struct cycles *c, bool lose, rwy_time now)
{
	static uint64_t nth;
	struct wan_tx tx[BURST];
	struct rwy_buf *in[BURST];
	uint64_t t0 = __rdtsc();
	unsigned n = wan_poll(from, tx, BURST, now), m = 0;

	wan_tick(from, now);
	c->send += __rdtsc() - t0;
	for (unsigned i = 0; i < n; i++) {
		in[m] = pool_alloc(&pool, 64, tx[i].hdr_len + tx[i].len);
		memcpy(in[m]->data, tx[i].hdr, tx[i].hdr_len);
		if (tx[i].len)
			memcpy(in[m]->data + tx[i].hdr_len, tx[i].buf->data + tx[i].off, tx[i].len);
		if (tx[i].own)
			rwy_buf_free(&bufs, tx[i].buf);
		if (lose && ++nth % 500 == 0)
			rwy_buf_free(&bufs, in[m]);
		else
			m++;
	}
	t0 = __rdtsc();
	for (unsigned i = 0; i < m; i++)
		wan_recv(to, 0, in[i], 0, now);
	c->recv += __rdtsc() - t0;
	return n;
}

/* Makes the sender believe in a long path with this loss; its own measurements differ. */
static void believe(struct wan_tunnel *t, const struct weather *w)
{
	struct wan_path *p = &t->path[0];

	p->srtt = p->min_rtt = p->latest = RTT;
	p->fec.est = (struct wan_fec_est){
	    .n = 4e6, .lost = 4e6 * w->loss, .runs = 4e6 * w->loss / w->burst, .off = w->loss <= 0};
}

static int run(const struct weather *w, struct cycles *sum, struct wan_counters *count)
{
	struct wan_stats stats;
	struct wan_cfg c;
	struct wan_tunnel *t[2];
	struct wan_txflow *f;
	rwy_time now = RWY_SEC;
	uint64_t put = 0, begin = 0;

	wan_cfg_default(&c);
	c.ops = &ops;
	c.bufs = bufs;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = (uint64_t)50 * 1000000000;
	c.mtu[0] = c.cc_cfg.mtu = PAYLOAD + 200;
	c.rx_window = 1u << 16;
	c.rx_bytes = (uint64_t)1 << 32;
	for (unsigned i = 0; i < 2; i++) {
		c.epoch = i + 1;
		c.index = i + 1;
		if (wan_new(&t[i], &c, now) < 0)
			return 1;
	}
	if (wan_tx_open(t[0], &f, NULL, 0, &f, now) < 0)
		return 1;
	*sum = (struct cycles){0};
	got = 0;
	while (got < WARM + COUNT) {
		struct cycles there = {0}, back = {0};
		uint64_t t0 = __rdtsc();

		for (unsigned i = 0; i < BURST && wan_tx_queued(f) < 1024; i++, put++) {
			struct rwy_buf *b = pool_alloc(&pool, 64, PAYLOAD);

			b->opcode = put % MESSAGE == MESSAGE - 1 ? 8 : 7; /* WRITE LAST, MIDDLE */
			wan_tx_send(f, b, now);
		}
		there.send = __rdtsc() - t0;
		if (wan_hs_session(t[0]))
			believe(t[0], w);
		transfer(t[0], t[1], &there, w->lose, now);
		transfer(t[1], t[0], &back, false, now);
		now += BURST * NS;
		if (got < WARM) {
			begin = got;
			continue;
		}
		sum->send += there.send;
		sum->recv += there.recv;
	}
	sum->datagrams = got - begin;
	wan_get_stats(t[0], &stats);
	*count = stats.c;
	wan_get_stats(t[1], &stats);
	count->rebuilt = stats.c.rebuilt;
	wan_free(t[0]);
	wan_free(t[1]);
	return 0;
}

int main(void)
{
	static const struct weather weathers[] = {
	    {"nothing lost", 0, 1, false},
	    {"1e-6", 1e-6, 1, false},
	    {"1e-4", 1e-4, 1, false},
	    {"1e-3", 1e-3, 1, false},
	    {"1e-2", 1e-2, 1, false},
	    {"1e-3, bursts of 8", 1e-3, 8, false},
	    {"1e-2, bursts of 8", 1e-2, 8, false},
	    {"2e-3, and it is lost", 2e-3, 1, true},
	};

	printf("cycles per datagram of %u bytes: sender, receiver, repairs %%, rebuilt\n", PAYLOAD);
	for (unsigned i = 0; i < sizeof(weathers) / sizeof(weathers[0]); i++) {
		struct cycles c;
		struct wan_counters n;

		if (run(&weathers[i], &c, &n))
			return 1;
		printf("  %-22s %7.0f %7.0f %6.2f %6llu\n", weathers[i].name, (double)c.send / c.datagrams,
		    (double)c.recv / c.datagrams, 100. * (double)n.repair_sent / (double)n.tx_data,
		    (unsigned long long)n.rebuilt);
	}
	return 0;
}
