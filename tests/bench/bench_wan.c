/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles per datagram of the native carrier: two tunnels in one process, one flow, no loss,
 * everything in cache. Counted: the sender (wan_tx_send(), wan_poll(), its ACKs) and the receiver
 * (wan_recv(), wan_rx_delivered(), its ACKs). Without keys the checksum is measured separately and
 * subtracted, and the copy in place of the wire does not count. With keys that copy is the
 * encryption, and counts at the sender; the decryption is the receiver's.
 *
 * Arguments: [--keys] [--payload N] [--json]: ns per byte of payload. It
 * counts a thousand packets at a time, and prints the best tenth of those parts: load can only add.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "aead/aead.h"
#include "rwy/crc32.h"
#include "wan/wan.h"

#define BURST 32
#define PARTS 1024
#define PART  (1u << 10) /* datagrams */
#define BUF   8192
#define NS    80 /* ns between two datagrams: 1 KiB at 100 Gb/s */

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
		b = aligned_alloc(64, BUF);
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

static uint32_t payload = 1024;
static bool keys;

/* In place of the wire. Returns what of it is the sender's work. */
static uint64_t put(const struct wan_tx *tx, struct rwy_buf *in)
{
	uint64_t t0 = __rdtsc();

	if (tx->key) {
		if (tx->buf && !tx->off && tx->buf->headroom >= tx->hdr_len)
			wan_tx_write_joined(tx, in->data);
		else
			wan_tx_write(tx, in->data);
		return __rdtsc() - t0;
	}
	memcpy(in->data, tx->hdr, tx->hdr_len);
	if (tx->len)
		memcpy(in->data + tx->hdr_len, tx->buf->data + tx->off, tx->len);
	return 0;
}

static unsigned transfer(
    struct wan_tunnel *from, struct wan_tunnel *to, uint64_t *send, uint64_t *recv, rwy_time now)
{
	struct wan_tx tx[BURST];
	struct rwy_buf *in[BURST];
	uint64_t t0 = __rdtsc();
	unsigned n = wan_poll(from, tx, BURST, now);

	wan_tick(from, now);
	*send += __rdtsc() - t0;
	for (unsigned i = 0; i < n; i++) {
		in[i] = pool_alloc(&pool, 64, wan_tx_size(&tx[i]));
		*send += put(&tx[i], in[i]);
	}
	t0 = __rdtsc();
	for (unsigned i = 0; i < n; i++)
		wan_recv(to, 0, in[i], 0, now);
	*recv += __rdtsc() - t0;
	return n;
}

/* The least of many rounds. */
static double crc_cycles(size_t hdr, size_t len)
{
	static uint8_t bytes[BUF];
	volatile uint32_t sum = 0;
	uint64_t best = UINT64_MAX;

	for (unsigned k = 0; k < PARTS; k++) {
		uint64_t t0 = __rdtsc();

		for (unsigned i = 0; i < PART; i++)
			sum +=
			    rwy_crc32_short(1, bytes, hdr) + (len ? crc32_gzip_refl(2, bytes + 64, len) : 0);
		t0 = __rdtsc() - t0;
		best = t0 < best ? t0 : best;
	}
	return (double)best / PART;
}

/* Cycles of a part, the packets that arrived in it, and the datagrams back. */
struct part {
	uint64_t tx_send, tx_recv, rx_send, rx_recv, sent, back;
};

static uint64_t all(const struct part *p)
{
	return p->tx_send + p->tx_recv + p->rx_send + p->rx_recv;
}

static int by_cycles(const void *a, const void *b)
{
	uint64_t x = all(a), y = all(b);

	return x < y ? -1 : x > y;
}

static rwy_time now = RWY_SEC;

static struct rwy_buf *packet(void)
{
	struct rwy_buf *b = pool_alloc(&pool, 64, payload);

	b->kind = 0;
	return b;
}

static bool part(struct wan_tunnel *t[2], struct wan_txflow *f, struct part *p)
{
	const uint64_t had = got;

	memset(p, 0, sizeof(*p));
	while (p->sent < PART) {
		uint64_t t0 = __rdtsc();

		for (unsigned i = 0; i < BURST && wan_tx_queued(f) < 1024; i++)
			wan_tx_send(f, packet(), now);
		p->tx_send += __rdtsc() - t0;
		transfer(t[0], t[1], &p->tx_send, &p->rx_recv, now);
		p->sent = got - had;
		p->back += transfer(t[1], t[0], &p->rx_send, &p->tx_recv, now);
		now += BURST * NS;
		if (!got && now > 2 * RWY_SEC)
			return false;
	}
	return true;
}

static int tunnels(struct wan_tunnel *t[2], struct wan_txflow **f)
{
	static const uint8_t info[] = {1}; /* one without any would be a flow of order entries */
	const struct aead_secret way[2] = {{{1}}, {{2}}};
	struct wan_cfg c;

	wan_cfg_default(&c);
	c.ops = &ops;
	c.bufs = bufs;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = (uint64_t)125 * 1000000000;
	c.aead = keys ? aead_best() : NULL;
	if (payload > 1400)
		c.mtu[0] = payload + 200;
	for (unsigned i = 0; i < 2; i++) {
		c.epoch = i + 1;
		c.index = i + 1;
		if (wan_new(&t[i], &c, now) < 0)
			return -1;
		if (!keys)
			continue;
		if (wan_keys_offer(t[i], &(struct wan_secrets){.tx = way[i], .rx = way[!i]}, now) != 0)
			return -1;
		wan_keys_use(t[i], now);
	}
	return wan_tx_open(t[0], f, info, sizeof(info), f, now);
}

static double cycles_per_ns(void)
{
	struct timespec a, b;
	uint64_t from, to;
	double ns;

	clock_gettime(CLOCK_MONOTONIC, &a);
	from = __rdtsc();
	do {
		clock_gettime(CLOCK_MONOTONIC, &b);
		to = __rdtsc();
		ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
	} while (ns < 5e7);
	return (double)(to - from) / ns;
}

static void print(const struct part *p, bool json)
{
	double n = (double)p->sent, crc_tx = keys ? 0 : crc_cycles(30, payload);
	double crc_rx = keys ? 0 : crc_cycles(30 + payload, 0);

	if (json) {
		double ns = n * payload * cycles_per_ns();

		printf("{\"keys\": %s, \"payload\": %u, \"send_ns\": %.4f, \"recv_ns\": %.4f}\n",
		    keys ? "true" : "false", payload, (double)(p->tx_send + p->tx_recv) / ns,
		    (double)(p->rx_recv + p->rx_send) / ns);
		return;
	}
	printf("cycles per datagram of %u bytes, %.3f datagrams back for each, CRC included and without\n",
	    payload, (double)p->back / n);
	printf("  sender   send %6.1f %6.1f   acknowledged %6.1f\n", (double)p->tx_send / n,
	    (double)p->tx_send / n - crc_tx, (double)p->tx_recv / n);
	printf("  receiver recv %6.1f %6.1f   acknowledging %6.1f\n", (double)p->rx_recv / n,
	    (double)p->rx_recv / n - crc_rx, (double)p->rx_send / n);
	printf("  all without CRC of the data: %.1f\n", (double)all(p) / n - crc_tx - crc_rx);
}

int main(int argc, char **argv)
{
	static struct part p[PARTS];
	struct wan_tunnel *t[2];
	struct wan_txflow *f;
	bool json = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--keys"))
			keys = true;
		else if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--payload") && i + 1 < argc)
			payload = (uint32_t)atoi(argv[++i]);
		else
			return 2;
	}
	if (payload < 64 || payload > BUF / 2 || tunnels(t, &f) < 0)
		return 1;
	for (unsigned i = 0; i < PARTS; i++)
		if (!part(t, f, &p[i])) {
			fprintf(stderr, "bench_wan: nothing arrives\n");
			return 1;
		}
	qsort(p, PARTS, sizeof(p[0]), by_cycles);
	print(&p[PARTS / 10], json);
	return 0;
}
