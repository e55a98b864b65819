/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles per datagram of the native carrier: two tunnels in one process, one flow of 1 KiB buffers,
 * no loss, everything in cache. Counted: the sender (wan_tx_send(), wan_poll(), its ACKs) and the
 * receiver (wan_recv(), wan_rx_delivered(), its ACKs). The checksum is measured separately and
 * subtracted. The copy in place of the wire does not count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include <isa-l.h>

#include "wan/wan.h"

#define PAYLOAD 1024
#define BURST   32
#define COUNT   (1u << 21)
#define NS      80 /* ns between two datagrams: 1 KiB at 100 Gb/s */

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
		b = aligned_alloc(64, 2048);
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
		in[i] = pool_alloc(&pool, 64, tx[i].hdr_len + tx[i].len);
		memcpy(in[i]->data, tx[i].hdr, tx[i].hdr_len);
		if (tx[i].len)
			memcpy(in[i]->data + tx[i].hdr_len, tx[i].buf->data + tx[i].off, tx[i].len);
	}
	t0 = __rdtsc();
	for (unsigned i = 0; i < n; i++)
		wan_recv(to, 0, in[i], 0, now);
	*recv += __rdtsc() - t0;
	return n;
}

static double crc_cycles(size_t hdr, size_t len)
{
	static uint8_t bytes[2048];
	volatile uint32_t sum = 0;
	uint64_t t0 = __rdtsc();

	for (unsigned i = 0; i < 1000000; i++)
		sum += crc32_iscsi(bytes, (int)hdr, 1) + (len ? crc32_iscsi(bytes + 64, (int)len, 2) : 0);
	return (double)(__rdtsc() - t0) / 1e6;
}

int main(void)
{
	struct wan_cfg c;
	struct wan_tunnel *t[2];
	struct wan_txflow *f;
	rwy_time now = RWY_SEC;
	uint64_t tx_send = 0, tx_recv = 0, rx_send = 0, rx_recv = 0, sent = 0, back = 0;

	wan_cfg_default(&c);
	c.ops = &ops;
	c.bufs = bufs;
	c.cc = &cc_fixed;
	c.cc_cfg.rate_Bps = (uint64_t)125 * 1000000000;
	for (unsigned i = 0; i < 2; i++) {
		c.epoch = i + 1;
		c.index = i + 1;
		if (wan_new(&t[i], &c, now) < 0)
			return 1;
	}
	if (wan_tx_open(t[0], &f, NULL, 0, &f, now) < 0)
		return 1;
	for (unsigned warm = 0; sent < COUNT;) {
		uint64_t t0 = __rdtsc(), a = 0, b = 0, d = 0, e = 0;

		for (unsigned i = 0; i < BURST && wan_tx_queued(f) < 1024; i++)
			wan_tx_send(f, pool_alloc(&pool, 64, PAYLOAD), now);
		a = __rdtsc() - t0;
		unsigned n = transfer(t[0], t[1], &a, &b, now);
		unsigned m = transfer(t[1], t[0], &d, &e, now);

		now += BURST * NS;
		if (warm < 10000) {
			warm++;
			continue;
		}
		tx_send += a, rx_recv += b, rx_send += d, tx_recv += e;
		sent += n, back += m;
	}
	double crc_tx = crc_cycles(30, PAYLOAD), crc_rx = crc_cycles(30 + PAYLOAD, 0), n = (double)sent;

	printf("cycles per datagram of %u bytes, %.3f datagrams back for each, CRC included and without\n",
	    PAYLOAD, (double)back / n);
	printf("  sender   send %6.1f %6.1f   acknowledged %6.1f\n", (double)tx_send / n,
	    (double)tx_send / n - crc_tx, (double)tx_recv / n);
	printf("  receiver recv %6.1f %6.1f   acknowledging %6.1f\n", (double)rx_recv / n,
	    (double)rx_recv / n - crc_rx, (double)rx_send / n);
	printf("  all without CRC of the data: %.1f\n",
	    ((double)(tx_send + tx_recv + rx_recv + rx_send)) / n - crc_tx - crc_rx);
	return got ? 0 : 1;
}
