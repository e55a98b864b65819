/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/aead_test.h"

#include <string.h>

#include "rwy/hash.h"

struct key {
	uint64_t k[2];
};

static int key_init(struct aead_key *k, enum aead_alg alg, const uint8_t *key)
{
	memcpy(k->state, key, sizeof(struct key));
	return 0;
}

static void key_wipe(struct aead_key *k)
{
	memset(k->state, 0, sizeof(struct key));
}

/* The state of one datagram: what is mixed into its bytes, and their sum so far. */
struct run {
	uint64_t stream, sum, at;
};

static struct run begin(
    const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const uint8_t *aad, size_t aad_len)
{
	struct key key;
	uint64_t n[2] = {0};
	struct run r;

	memcpy(&key, k->state, sizeof(key));
	memcpy(n, nonce, AEAD_NONCE);
	r.stream = rwy_mix64(key.k[0] ^ rwy_mix64(n[0] ^ rwy_mix64(n[1])));
	r.sum = rwy_mix64(key.k[1] ^ r.stream);
	r.at = 0;
	for (size_t i = 0; i < aad_len; i++)
		r.sum = rwy_mix64(r.sum ^ aad[i]);
	return r;
}

/* Each byte of plaintext has its place in the sum, so what comes in two parts has one sum. */
static void add(struct run *r, const uint8_t *plain, size_t n)
{
	uint64_t sum = r->sum, at = r->at;

	for (size_t i = 0; i < n; i++)
		sum += (plain[i] + UINT64_C(0x9e3779b97f4a7c15)) * ((2 * (at + i) + 1) * r->stream | 1);
	r->sum = sum;
	r->at = at + n;
}

static void mix(uint64_t stream, uint64_t at, uint8_t *dst, const uint8_t *src, size_t n)
{
	for (size_t i = 0; i < n; i++)
		dst[i] = src[i] ^ (uint8_t)(stream >> ((at + i) & 7) * 8);
}

static void end(const struct run *r, uint8_t tag[AEAD_TAG])
{
	uint64_t t[2] = {rwy_mix64(r->sum ^ r->at), rwy_mix64(r->sum + r->stream)};

	memcpy(tag, t, AEAD_TAG);
}

static void part(struct run *r, uint8_t **dst, const void *src, size_t n)
{
	uint64_t at = r->at;

	add(r, src, n);
	mix(r->stream, at, *dst, src, n);
	*dst += n;
}

static void seal(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad, size_t aad_len,
    uint8_t *dst, const struct aead_in *in)
{
	struct run r = begin(k, nonce, aad, aad_len);

	part(&r, &dst, in->head, in->head_len);
	if (in->body_len)
		part(&r, &dst, in->body, in->body_len);
	end(&r, dst);
}

static bool open_bytes(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad,
    size_t aad_len, uint8_t *bytes, size_t n)
{
	struct run r = begin(k, nonce, aad, aad_len);
	uint8_t tag[AEAD_TAG];

	mix(r.stream, 0, bytes, bytes, n);
	add(&r, bytes, n);
	end(&r, tag);
	return memcmp(tag, bytes + n, AEAD_TAG) == 0;
}

const struct aead_ops aead_test = {
    .name = "test", .key_init = key_init, .key_wipe = key_wipe, .seal = seal, .unseal = open_bytes};
