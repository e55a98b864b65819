/* SPDX-License-Identifier: Apache-2.0 */
/* Datagram header, checksum, integers, HELLO. The frames of running tunnels are in frame.c. */
#include <assert.h>

#include "rwy/crc32.h"
#include "wan/wire/pkt.h"

void wan_pkt_seal(uint8_t *hdr, size_t hdr_len, const uint8_t *payload, size_t len)
{
	uint32_t crc = rwy_crc32_short(0, hdr, hdr_len);

	if (len)
		crc = crc32_gzip_refl(crc, payload, len);
	rwy_put32(hdr + 16, crc);
}

void wan_pkt_seal_over(
    uint8_t *hdr, size_t hdr_len, const struct rwy_buf *b, uint32_t (*over)(const struct rwy_buf *, uint32_t))
{
	rwy_put32(hdr + 16, over(b, rwy_crc32_short(0, hdr, hdr_len)));
}

bool wan_pkt_open(uint8_t *p, size_t len)
{
	uint32_t want = rwy_get32(p + 16);

	rwy_put32(p + 16, 0);
	return crc32_gzip_refl(0, p, len) == want;
}

size_t wan_varint_size(uint64_t v)
{
	if (v < (1u << 6))
		return 1;
	if (v < (1u << 14))
		return 2;
	return v < (1u << 30) ? 4 : 8;
}

uint8_t *wan_varint_put(uint8_t *p, uint64_t v)
{
	assert(v < (uint64_t)1 << 62);
	switch (wan_varint_size(v)) {
	case 1:
		p[0] = (uint8_t)v;
		return p + 1;
	case 2:
		rwy_put16(p, (uint16_t)(0x4000 | v));
		return p + 2;
	case 4:
		rwy_put32(p, (uint32_t)(0x80000000 | v));
		return p + 4;
	default: /* a size, not an enum */
		rwy_put64(p, (uint64_t)3 << 62 | v);
		return p + 8;
	}
}

const uint8_t *wan_varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
	if (p >= end)
		return NULL;
	unsigned log = *p >> 6;

	if ((size_t)(end - p) < (size_t)1 << log)
		return NULL;
	if (log == 0)
		*v = p[0];
	else if (log == 1)
		*v = rwy_get16(p) & 0x3fff;
	else if (log == 2)
		*v = rwy_get32(p) & 0x3fffffff;
	else
		*v = rwy_get64(p) & (UINT64_MAX >> 2);
	return p + ((size_t)1 << log);
}

uint8_t *wan_f_hello_put(uint8_t *p, const struct wan_f_hello *h)
{
	p[0] = h->flags;
	p[1] = h->claim;
	rwy_put16(p + 2, h->mtu);
	rwy_put32(p + 4, h->index);
	rwy_put64(p + 8, h->tunnel_id);
	rwy_put64(p + 16, h->epoch);
	rwy_put64(p + 24, h->nonce);
	rwy_put64(p + 32, h->echo);
	rwy_put64(p + 40, h->echo_epoch);
	rwy_put32(p + 48, h->rx_window);
	rwy_put32(p + 52, h->ack_delay_us);
	rwy_put64(p + 56, h->rx_bytes);
	rwy_put32(p + 64, h->rx_cost);
	p += WAN_HELLO_LEN;
	if (h->more)
		*p++ = h->more;
	return p;
}

bool wan_f_hello_get(const uint8_t *p, size_t len, struct wan_f_hello *h)
{
	if (len < WAN_HELLO_LEN)
		return false;
	h->flags = p[0];
	h->claim = p[1];
	h->mtu = rwy_get16(p + 2);
	h->index = rwy_get32(p + 4);
	h->tunnel_id = rwy_get64(p + 8);
	h->epoch = rwy_get64(p + 16);
	h->nonce = rwy_get64(p + 24);
	h->echo = rwy_get64(p + 32);
	h->echo_epoch = rwy_get64(p + 40);
	h->rx_window = rwy_get32(p + 48);
	h->ack_delay_us = rwy_get32(p + 52);
	h->rx_bytes = rwy_get64(p + 56);
	h->rx_cost = rwy_get32(p + 64);
	h->more = len > WAN_HELLO_LEN ? p[WAN_HELLO_LEN] : 0;
	return h->flags & WAN_HELLO_GONE || (h->mtu >= WAN_HELLO_MTU && h->rx_window > 0);
}
