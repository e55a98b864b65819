/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/trailer.h"

#include <string.h>

#include "rwy/endian.h"

#define MAGIC   0x52777954u /* "RwyT" */
#define VERSION 1

enum { AT_VERSION = 4, AT_FAMILY = 5, AT_PORT = 6, AT_ADDR = 8 };

/* CRC-32 of IEEE 802.3, bit by bit: the library for hosts has it too, and links nothing. */
static uint32_t crc(const uint8_t *p, unsigned n)
{
	uint32_t c = 0xffffffff;

	for (unsigned i = 0; i < n; i++) {
		c ^= p[i];
		for (unsigned b = 0; b < 8; b++)
			c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1)));
	}
	return ~c;
}

unsigned proxy_trailer_len(const struct proxy_target *t)
{
	return rwy_ip_is4(&t->addr) ? PROXY_TRAILER4 : PROXY_TRAILER6;
}

unsigned proxy_trailer_write(uint8_t *out, const struct proxy_target *t)
{
	bool is4 = rwy_ip_is4(&t->addr);
	unsigned len = proxy_trailer_len(t);

	rwy_put32(out, MAGIC);
	out[AT_VERSION] = VERSION;
	out[AT_FAMILY] = is4 ? 4 : 6;
	rwy_put16(out + AT_PORT, t->port);
	memcpy(out + AT_ADDR, t->addr.b + (is4 ? 12 : 0), is4 ? 4 : 16);
	rwy_put32(out + len - 4, crc(out, len - 4));
	return len;
}

static bool read_at(const uint8_t *p, unsigned len, uint8_t family, struct proxy_target *t)
{
	if (rwy_get32(p) != MAGIC || p[AT_VERSION] != VERSION || p[AT_FAMILY] != family ||
	    rwy_get32(p + len - 4) != crc(p, len - 4))
		return false;
	if (family == 4)
		t->addr = rwy_ip_from4(p + AT_ADDR);
	else
		memcpy(t->addr.b, p + AT_ADDR, 16);
	t->port = rwy_get16(p + AT_PORT);
	/* An IPv4 address written as IPv6 would be a second way to say the same. */
	return t->port && (family == 4 || !rwy_ip_is4(&t->addr));
}

unsigned proxy_trailer_read(const uint8_t *private_data, struct proxy_target *t)
{
	if (read_at(private_data + PROXY_PRIVATE_LEN - PROXY_TRAILER4, PROXY_TRAILER4, 4, t))
		return PROXY_TRAILER4;
	if (read_at(private_data + PROXY_PRIVATE_LEN - PROXY_TRAILER6, PROXY_TRAILER6, 6, t))
		return PROXY_TRAILER6;
	return 0;
}

bool proxy_ipcm_is(const uint8_t *private_data, bool is6)
{
	return private_data[0] == 0 && private_data[1] >> 4 == (is6 ? 6 : 4);
}
