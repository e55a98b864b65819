/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/quic/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "rwy/endian.h"
#include "wan/record.h"

#define STREAMS   64
#define TUNNEL_ID 0x5205
#define EPOCH     7
#define NONCE     0x1122334455667788
#define MOST      (WAN_REC_HDR + WAN_REC_MAX)
#define LONG_EACH 97 /* one of so many datagrams is as long as can be */

static struct {
	struct gw_quic_conn *c;
	struct wan_conn hello;
	struct wan_agree agree;
	uint32_t n, sent, got, next[STREAMS];
	unsigned streams;
	bool wished, done;
	struct {
		uint8_t *b;
		size_t n, cap;
	} in[STREAMS];
} r;

static uint32_t length_of(uint32_t k)
{
	return k % LONG_EACH == LONG_EACH - 1 ? WAN_REC_MAX : 21 + k * 7919 % 1400;
}

static void fill(uint32_t k, uint8_t *body, uint32_t len)
{
	rwy_put64(body, k);
	for (uint32_t i = 8; i < len; i++)
		body[i] = (uint8_t)(k * 31 + i * 7);
}

static void send_bytes(unsigned stream, const void *p, size_t n)
{
	struct iovec v = {(void *)(uintptr_t)p, n};

	if (gw_quic_send(r.c, stream, &v, 1) != 0)
		abort(); /* there was room */
}

static void send_hello(void)
{
	uint8_t b[WAN_REC_HELLO_LEN];
	size_t n = wan_conn_put(&r.hello, b);

	if (n)
		send_bytes(0, b, n);
}

void records_begin(struct gw_quic_conn *c, bool client, uint32_t n)
{
	memset(&r, 0, sizeof(r));
	r.c = c;
	r.n = n;
	r.streams = gw_quic_streams(c) < STREAMS ? gw_quic_streams(c) : STREAMS;
	r.agree = (struct wan_agree){.carrier = WAN_CARRIER_QUIC, .detour = WAN_CARRIER_TCP};
	for (unsigned s = 1; s < STREAMS; s++)
		r.next[s] = s - 1;
	wan_conn_init(&r.hello, TUNNEL_ID, EPOCH, NONCE, client);
	send_hello();
}

static bool wrong(const char *what, unsigned stream)
{
	printf("wrong %s stream=%u next=%u\n", what, stream, r.next[stream]);
	return false;
}

static bool datagram(const struct wan_rec *rec, unsigned stream)
{
	uint32_t k = r.next[stream], len = length_of(k);
	uint8_t want[WAN_REC_MAX];

	if (!r.hello.open || !stream)
		return wrong("datagram before the handshake, or on stream 0", stream);
	fill(k, want, len);
	if (rec->len != len || rec->worker != k % 4 || memcmp(rec->body, want, len))
		return wrong("datagram", stream);
	r.next[stream] += r.streams - 1;
	r.got++;
	return true;
}

static bool record(const struct wan_rec *rec, unsigned stream)
{
	switch (rec->type) {
	case WAN_REC_DATAGRAM:
		return datagram(rec, stream);
	case WAN_REC_HELLO:
		if (stream || wan_conn_hello(&r.hello, rec) != 0)
			return wrong("HELLO", stream);
		send_hello();
		return true;
	case WAN_REC_WISH:
		if (stream || wan_agree_get(&r.agree, rec) < 0)
			return wrong("WISH", stream);
		printf("wish count=%u carrier=%s detour=%s\n", r.agree.count,
		    wan_carrier_name(r.agree.carrier), wan_carrier_name(r.agree.peer_detour));
		return true;
	}
	return wrong("record", stream);
}

/* The records that are complete. */
static bool parse(unsigned stream)
{
	size_t at = 0;
	int len;

	do {
		struct wan_rec rec;

		len = wan_rec_get(r.in[stream].b + at, r.in[stream].n - at, &rec);
		if (len < 0)
			return wrong("head", stream);
		if (len && !record(&rec, stream))
			return false;
		at += (size_t)len;
	} while (len);
	r.in[stream].n -= at;
	memmove(r.in[stream].b, r.in[stream].b + at, r.in[stream].n);
	return true;
}

static void keep(unsigned stream, const uint8_t *p, size_t n)
{
	while (r.in[stream].cap < r.in[stream].n + n) {
		r.in[stream].cap = r.in[stream].cap ? 2 * r.in[stream].cap : MOST;
		r.in[stream].b = realloc(r.in[stream].b, r.in[stream].cap);
		if (!r.in[stream].b)
			abort();
	}
	memcpy(r.in[stream].b + r.in[stream].n, p, n);
	r.in[stream].n += n;
}

bool records_take(struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n)
{
	bool was = r.hello.open, good;

	(void)c;
	if (stream >= r.streams)
		return wrong("stream", 0);
	keep(stream, p, n);
	if (stream && !was) /* it overtook the handshake, and waits for it */
		return true;
	good = parse(stream);
	for (unsigned s = 1; good && !was && r.hello.open && s < r.streams; s++)
		good = parse(s);
	return good;
}

static void send_wish(void)
{
	uint8_t b[WAN_REC_WISH_LEN];

	wan_agree_put(&r.agree, b);
	send_bytes(0, b, sizeof(b));
	r.wished = true;
}

void records_turn(void)
{
	uint8_t b[MOST];

	if (!r.c || !r.hello.open)
		return;
	if (!r.wished)
		send_wish();
	for (; r.sent < r.n && gw_quic_room(r.c) >= MOST; r.sent++) {
		uint32_t len = length_of(r.sent);

		wan_rec_head(b, WAN_REC_DATAGRAM, (uint8_t)(r.sent % 4), len);
		fill(r.sent, b + WAN_REC_HDR, len);
		send_bytes(1 + r.sent % (r.streams - 1), b, WAN_REC_HDR + len);
	}
	if (r.done || r.sent < r.n || r.got < r.n)
		return;
	r.done = true;
	printf("done sent=%u got=%u streams=%u\n", r.sent, r.got, r.streams);
}
