/* SPDX-License-Identifier: Apache-2.0 */
#include "base/siphash.h"

#include <endian.h>
#include <string.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t get_le64(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static uint64_t get_word(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return le64toh(v);
}

static uint64_t rotl(uint64_t v, unsigned n)
{
	return v << n | v >> (64 - n);
}

static void rounds(struct sip *s, unsigned n)
{
	while (n--) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = rotl(s->v1, 13) ^ s->v0;
		s->v3 = rotl(s->v3, 16) ^ s->v2;
		s->v0 = rotl(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = rotl(s->v1, 17) ^ s->v2;
		s->v3 = rotl(s->v3, 21) ^ s->v0;
		s->v2 = rotl(s->v2, 32);
	}
}

static void word(struct sip *s, uint64_t m)
{
	s->v3 ^= m;
	rounds(s, 2);
	s->v0 ^= m;
}

uint64_t base_siphash(const uint8_t key[BASE_SIPHASH_KEY], const void *data, size_t len)
{
	const uint64_t k0 = get_word(key), k1 = get_word(key + 8);
	const uint8_t *p = data;
	struct sip s = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
	    k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
	size_t i;

	for (i = 0; i + 8 <= len; i += 8)
		word(&s, get_word(p + i));
	word(&s, get_le64(p + i, len - i) | (uint64_t)len << 56);
	s.v2 ^= 0xff;
	rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
