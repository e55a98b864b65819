/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goodput of the QUIC carrier's connections in virtual time, for the planner's grid
 * (tests/bench/carrier_grid.py): two ends of gateway/carrier/quic.h over a line with a queue, delay
 * and loss (tests/lib/link.h). One end sends on as many streams as 16 queue pairs use, whatever
 * there is room for. What counts are bytes of streams that arrive in order, from `skip` round trips
 * on, for `count`. ngtcp2 draws its own random numbers, so a seed fixes only the line's.
 *
 * Arguments: DIR RATE RTT LOSS BURST QUEUE SKIP COUNT SEED [cubic]: certificates of site-a and site-b;
 * bit/s, us, ppm, packets, bytes, round trips.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/carrier/quic.h"
#include "tests/lib/link.h"

#define FIRST    2 /* the streams before are not for hosts' packets (quic_port.c) */
#define STREAMS  16
#define PIECE    1200      /* about a datagram of a host's packet of 1 KiB with its headers */
#define OVERHEAD 42        /* Ethernet, IP, UDP */
#define HELD     (1 << 17) /* datagrams on a line */

enum { A, B, SITES }; /* A opens and sends */

struct held {
	rwy_time at;
	uint16_t n;
	uint8_t ecn;
	uint8_t *p;
};

static struct site {
	struct gw_quic_end *end;
	struct gw_quic_conn *conn;
	struct gw_quic_addr addr;
	const char *expects;
	bool opened;
	uint64_t got;
	struct link link; /* from here to the other */
	struct held *held;
	unsigned head, tail;
} site[SITES];

static rwy_time now = RWY_SEC;
static uint64_t rng;
static struct gw_quic_cfg cfg;

static void die(const char *what)
{
	fprintf(stderr, "bench_quic: %s\n", what);
	exit(1);
}

/* --- the line --------------------------------------------------------------------------------- */
static void hold(struct site *s, const uint8_t *p, size_t n, uint8_t ecn, rwy_time at)
{
	struct held *h = &s->held[s->tail++ % HELD];

	if (s->tail - s->head > HELD)
		die("too much on the line");
	*h = (struct held){.at = at, .n = (uint16_t)n, .ecn = ecn, .p = malloc(n)};
	if (!h->p)
		die("no memory");
	memcpy(h->p, p, n);
}

static bool output(void *ctx, const struct gw_quic_out *o)
{
	struct site *s = ctx;

	for (size_t at = 0; at < o->len; at += o->segment) {
		size_t n = o->len - at < o->segment ? o->len - at : o->segment;
		struct link_fate f = {.ecn = o->ecn};

		link_send(&s->link, (uint32_t)n, &rng, &f, now);
		if (f.copies)
			hold(s, o->data + at, n, f.ecn, f.at[0]);
	}
	return true;
}

static void deliver(unsigned from)
{
	struct site *s = &site[from];

	while (s->head != s->tail && s->held[s->head % HELD].at <= now) {
		struct held *h = &s->held[s->head++ % HELD];

		gw_quic_read(site[1 - from].end, &s->addr, h->p, h->n, h->ecn, now);
		free(h->p);
	}
}

/* --- the ends --------------------------------------------------------------------------------- */
static const char *name(void *ctx, const struct gw_quic_addr *remote)
{
	const struct site *s = ctx;

	(void)remote;
	return s->expects;
}

static void opened(void *ctx, struct gw_quic_conn *c, rwy_time t)
{
	struct site *s = ctx;

	(void)t;
	s->opened = true;
	s->conn = c;
}

static void received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time t)
{
	struct site *s = ctx;

	(void)p, (void)t;
	s->got += n;
	gw_quic_consumed(c, stream, n);
}

static void closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time t)
{
	(void)ctx, (void)c, (void)t;
	die(why);
}

static const struct gw_quic_ops ops = {output, name, opened, received, closed};

static void end_make(unsigned i, const char *dir)
{
	char cert[256], key[256], ca[256], why[200] = "";
	struct gw_cert_files f = {cert, key, ca, NULL};
	struct gw_quic_cfg c = cfg;
	struct gw_quic_tls *tls;

	snprintf(cert, sizeof(cert), "%s/site-%c.pem", dir, 'a' + i);
	snprintf(key, sizeof(key), "%s/site-%c.key", dir, 'a' + i);
	snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
	site[i].addr = (struct gw_quic_addr){
	    rwy_ip_from4((uint8_t[4]){192, 0, 2, (uint8_t)(1 + i)}), (uint16_t)(4000 + i)};
	site[i].expects = i == A ? "site-b" : "site-a";
	site[i].held = calloc(HELD, sizeof(*site[i].held));
	c.local = site[i].addr;
	if (!site[i].held || gw_quic_tls_new(&tls, &f, why, sizeof(why)) != 0)
		die(why);
	if (gw_quic_end_new(&site[i].end, &c, tls, &ops, &site[i]) != 0)
		die("no end");
	gw_quic_tls_free(tls);
}

static void feed(void)
{
	static const uint8_t bytes[PIECE];
	const struct iovec v = {(void *)(uintptr_t)bytes, sizeof(bytes)};
	static unsigned at;

	while (site[A].opened && gw_quic_room(site[A].conn) >= PIECE)
		if (gw_quic_send(site[A].conn, FIRST + at++ % STREAMS, &v, 1) != 0)
			break;
}

/* Runs for so long; returns what arrived. */
static uint64_t run(rwy_dur d)
{
	uint64_t had = site[B].got;
	rwy_time end = now + d;

	while (now < end) {
		rwy_time next = end;

		for (unsigned i = 0; i < SITES; i++)
			deliver(i);
		feed();
		for (unsigned i = 0; i < SITES; i++) {
			const struct site *s = &site[i];

			gw_quic_write(s->end, now);
			next = rwy_time_min(next, gw_quic_next(s->end));
			if (s->head != s->tail)
				next = rwy_time_min(next, s->held[s->head % HELD].at);
		}
		now = rwy_time_max(next, now + RWY_US);
	}
	return site[B].got - had;
}

int main(int argc, char **argv)
{
	double v[9] = {0}, rtt;
	uint64_t got;

	if (argc < 10)
		die("see its head");
	for (int i = 2; i < 10; i++)
		v[i - 1] = atof(argv[i]);
	rtt = v[2] * RWY_US;
	rng = (uint64_t)v[8] * 0x9e3779b97f4a7c15 + 1;
	gw_quic_cfg_default(&cfg);
	cfg.streams = FIRST + STREAMS;
	cfg.window = 32u << 20;
	cfg.cc = argc > 10 && !strcmp(argv[10], "cubic") ? GW_QUIC_CUBIC : GW_QUIC_BBR2;
	for (unsigned i = 0; i < SITES; i++) {
		end_make(i, argv[1]);
		site[i].link.cfg = (struct link_cfg){.delay = (rwy_dur)(rtt / 2),
		    .rate_Bps = (uint64_t)(v[1] / 8),
		    .overhead = OVERHEAD,
		    .queue_bytes = (uint64_t)v[5],
		    .loss = v[3] / 1e6,
		    .burst = v[4],
		    .loss_behind = true, /* as wanem and rwywan have it */
		    .keep_order = true};
	}
	if (gw_quic_connect(site[A].end, &site[B].addr, site[A].expects, &site[A], &site[A].conn, now) != 0)
		die("no connection");
	(void)run((rwy_dur)(v[6] * rtt));
	got = run((rwy_dur)(v[7] * rtt));
	if (!site[A].opened || !site[B].opened)
		die("no connection");
	printf("{\"goodput_bps\": %.0f}\n", (double)got * 8e9 / (v[7] * rtt));
	return 0;
}
