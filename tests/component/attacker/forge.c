/* SPDX-License-Identifier: Apache-2.0 */
/* Makes forged frames; forge.h tells which. */
#include "tests/component/attacker/forge.h"

#include <string.h>

#include "rwy/checksum.h"
#include "tests/lib/rng.h"
#include "wan/wire/pkt.h"

#define ETH        14
#define UDP        8
#define TAG        16
#define SEALED_AAD 16 /* of a sealed datagram: in the clear */

const char *const forge_names[FORGE_KIND_COUNT] = {
#define X(e, n, s) n,
    FORGE_KINDS(X)
#undef X
};

/* --- what passes ------------------------------------------------------------------------------ */
void forge_learn(struct forge_book *book, const uint8_t *frame, size_t len, uint16_t port)
{
	const uint8_t *ip = frame + ETH, *udp;
	struct forge_seen s;
	size_t ip_len;

	if (len < ETH + 20 + UDP + WAN_PKT_HDR || len > FORGE_FRAME || rwy_get16(frame + 12) != 0x0800 ||
	    ip[0] != 0x45 || ip[9] != 17)
		return;
	udp = ip + 20;
	ip_len = rwy_get16(ip + 2);
	if (ip_len < 20 + UDP + WAN_PKT_HDR || ETH + ip_len > len ||
	    (uint16_t)(rwy_get16(udp + 2) - port) > 1)
		return;
	s.len = (uint16_t)(ETH + ip_len);
	s.datagram = ETH + 20 + UDP;
	memcpy(s.b, frame, s.len);
	if (book->n < FORGE_FIRST)
		book->first[book->n] = s;
	book->recent[book->n % FORGE_RECENT] = s;
	book->last[rwy_get16(udp + 2) - port] = s;
	book->n++;
}

static const struct forge_seen *recent(const struct forge_book *b, uint64_t *rng)
{
	uint64_t n = b->n < FORGE_RECENT ? b->n : FORGE_RECENT;

	return n ? &b->recent[rng_below(rng, (uint32_t)n)] : NULL;
}

static const struct forge_seen *old(const struct forge_book *b, uint64_t *rng)
{
	uint64_t n = b->n < FORGE_FIRST ? b->n : FORGE_FIRST;

	return n ? &b->first[rng_below(rng, (uint32_t)n)] : NULL;
}

/* --- headers ---------------------------------------------------------------------------------- */
/* Puts the datagram of `len` bytes at `p` behind the headers of `like`: lengths and checksums fit. */
static size_t wrap(uint8_t *out, const struct forge_seen *like, const uint8_t *p, size_t len)
{
	uint8_t *ip = out + ETH, *udp = ip + 20;
	uint64_t sum;

	memmove(out + like->datagram, p, len);
	memcpy(out, like->b, like->datagram);
	rwy_put16(ip + 2, (uint16_t)(20 + UDP + len));
	rwy_put16(ip + 10, 0);
	rwy_put16(ip + 10, (uint16_t)~rwy_csum(ip, 20));
	rwy_put16(udp + 4, (uint16_t)(UDP + len));
	rwy_put16(udp + 6, 0);
	/* RFC 768: pseudo header of addresses, protocol and length */
	sum = (uint64_t)rwy_csum(ip + 12, 8) + 17 + UDP + len + rwy_csum(udp, (uint32_t)(UDP + len));
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(udp + 6, sum == 0xffff ? 0xffff : (uint16_t)~sum);
	return like->datagram + len;
}

static void swap(uint8_t *a, uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

static void noise(uint64_t *rng, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rng_next(rng);
}

/* --- frames of its own ------------------------------------------------------------------------ */
/* A HELLO as a peer's that has begun anew. */
static uint8_t *hello(uint8_t *d, uint64_t *rng)
{
	struct wan_f_hello h = {.flags = WAN_HELLO_WANT,
	    .mtu = 1500,
	    .index = (uint32_t)rng_next(rng),
	    .tunnel_id = rng_next(rng),
	    .epoch = rng_next(rng),
	    .nonce = rng_next(rng),
	    .rx_window = 1024,
	    .ack_delay_us = 1000,
	    .rx_bytes = 1 << 20,
	    .rx_cost = 256};

	wan_pkt_put(d, &(struct wan_pkt){.version = WAN_VERSION, .type = WAN_PKT_HELLO});
	return wan_f_hello_put(d + WAN_PKT_HDR, &h);
}

/* Two packets of a flow that is perhaps there. */
static uint8_t *run(uint8_t *p, uint64_t *rng)
{
	enum { LEN = 16 };
	struct wan_f_data d = {
	    .flow = rng_below(rng, 64), .seq = rng_below(rng, 1u << 20), .run = 2, .first = LEN};

	p = wan_f_data_put(p, &d);
	noise(rng, p, 2 * LEN + WAN_RUN_NEXT);
	rwy_put16(p + LEN, LEN);
	return p + 2 * LEN + WAN_RUN_NEXT;
}

/* The same of two flows. */
static uint8_t *bundle(uint8_t *p, uint64_t *rng)
{
	enum { LEN = 16 };
	struct wan_f_data d = {.flow = rng_below(rng, 64),
	    .seq = rng_below(rng, 1u << 20),
	    .bundle = true,
	    .run = 2,
	    .first = LEN};

	p = wan_f_data_put(p, &d);
	noise(rng, p, LEN);
	d.flow = rng_below(rng, 64);
	p = wan_f_bundle_put(p + LEN, &d, LEN);
	noise(rng, p, LEN);
	return p + LEN;
}

/* One frame that would do harm if it was believed. Flow ids count from low numbers. */
static uint8_t *frame(uint8_t *p, uint64_t *rng)
{
	static const uint8_t kinds[] = {WAN_F_DELIVERED, WAN_F_ABORT, WAN_F_RESET, WAN_F_CREDIT, WAN_F_RATE,
	    WAN_F_ACK, WAN_F_DATA, WAN_F_RUN, WAN_F_BUNDLE};
	const uint8_t kind = kinds[rng_below(rng, sizeof(kinds))];
	struct wan_f_ack ack = {.n = 1, .r = {{.lo = 0, .hi = rng_below(rng, 1u << 20)}}};

	if (kind == WAN_F_ACK)
		return wan_f_ack_put(p, 200, &ack);
	if (kind == WAN_F_RUN)
		return run(p, rng);
	if (kind == WAN_F_BUNDLE)
		return bundle(p, rng);
	*p++ = kind;
	if (kind == WAN_F_DELIVERED || kind == WAN_F_RATE)
		*p++ = 1;
	if (kind == WAN_F_DATA)
		*p++ = 0;
	if (kind != WAN_F_CREDIT) {
		rwy_put32(p, rng_below(rng, 64));
		p += 4;
	}
	/* what is behind a flow id is a count, bounds, or data */
	for (unsigned i = 0; i < 16; i += 8)
		rwy_put64(p + i, rng_below(rng, 1u << 20));
	switch ((enum wan_frame_type)kind) {
	case WAN_F_DELIVERED:
		return p + 4;
	case WAN_F_ABORT:
	case WAN_F_RESET:
		return p;
	case WAN_F_CREDIT:
		return p + 12;
	case WAN_F_RATE:
	case WAN_F_DATA:
	case WAN_F_PING:
	case WAN_F_ACK:
	case WAN_F_ACK_ECN:
	case WAN_F_REBUILT:
	case WAN_F_DGRAM:
	case WAN_F_REPAIR:
	case WAN_F_SHARED:
	case WAN_F_RUN:
	case WAN_F_BUNDLE:
		break;
	}
	return p + 16;
}

/* A datagram of frames with the index of one that passed, and a number that comes after it. */
static uint8_t *frames(uint8_t *d, const struct forge_seen *like, uint64_t *rng)
{
	struct wan_pkt h;
	uint8_t *p = d + WAN_PKT_HDR;

	wan_pkt_get(like->b + like->datagram, &h);
	h.type = WAN_PKT_FRAMES;
	h.flags = 0;
	h.pn = (h.pn & (((uint64_t)1 << 62) - 1)) + 1 + rng_below(rng, 100000);
	wan_pkt_put(d, &h);
	return frame(p, rng);
}

/* --- kinds ------------------------------------------------------------------------------------ */
/* One bit of any byte, or one byte of the header. */
static void change(uint8_t *d, size_t len, enum forge_kind kind, uint64_t *rng)
{
	if (kind == FORGE_FLIP)
		d[rng_below(rng, (uint32_t)len)] ^= (uint8_t)(1u << rng_below(rng, 8));
	else
		d[rng_below(rng, WAN_PKT_HDR)] ^= (uint8_t)(1 + rng_below(rng, 255));
}

/* The last frame of the other tunnel: other addresses and ports. NULL: none passed. */
static const struct forge_seen *other(const struct forge_book *b, const struct forge_seen *s)
{
	const struct forge_seen *o = &b->last[0];

	if (!memcmp(o->b + ETH + 12, s->b + ETH + 12, 12))
		o = &b->last[1];
	return o->len ? o : NULL;
}

/* A datagram that somebody else's is changed into; returns its length. */
static size_t alter(uint8_t *d, const struct forge_seen *s, enum forge_kind kind, uint64_t *rng)
{
	size_t len = s->len - s->datagram;

	memcpy(d, s->b + s->datagram, len);
	switch (kind) {
	case FORGE_FLIP:
	case FORGE_HEADER:
		change(d, len, kind, rng);
		return len;
	case FORGE_CUT:
		return rng_below(rng, (uint32_t)len);
	case FORGE_LONG:
		noise(rng, d + len, 32);
		return len + 1 + rng_below(rng, 32);
	case FORGE_NOISE:
		noise(rng, d + SEALED_AAD, len - SEALED_AAD);
		return len;
	case FORGE_HELLO:
		len = (size_t)(hello(d, rng) - d);
		wan_pkt_seal(d, len, NULL, 0);
		return len;
	case FORGE_CLEAR:
		len = (size_t)(frames(d, s, rng) - d);
		wan_pkt_seal(d, len, NULL, 0);
		return len;
	case FORGE_SEALED:
		len = (size_t)(frames(d, s, rng) - d);
		d[1] = s->b[s->datagram + 1] & 1;
		d[3] = s->b[s->datagram + 3];
		noise(rng, d + len, TAG);
		return len + TAG;
	case FORGE_REPLAY:
	case FORGE_OLD:
	case FORGE_CROSS:
	case FORGE_MIRROR:
	case FORGE_KIND_COUNT:
		break;
	}
	return len;
}

size_t forge_make(const struct forge_book *to, const struct forge_book *from, enum forge_kind kind,
    uint64_t *rng, uint8_t *out)
{
	const struct forge_seen *s =
	    kind == FORGE_OLD ? old(to, rng) : recent(kind == FORGE_MIRROR ? from : to, rng);
	const struct forge_seen *like = s;
	uint8_t d[FORGE_FRAME];
	size_t len;

	if (!s || s->len + 33u > FORGE_FRAME)
		return 0;
	if (kind == FORGE_CROSS && !(like = other(to, s)))
		return 0;
	len = wrap(out, like, d, alter(d, s, kind, rng));
	if (kind == FORGE_MIRROR) {
		swap(out, out + 6, 6);
		swap(out + ETH + 12, out + ETH + 16, 4);
		swap(out + ETH + 20, out + ETH + 22, 2);
	}
	return len;
}
