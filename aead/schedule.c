/* SPDX-License-Identifier: Apache-2.0 */
#include "aead/schedule.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "rwy/endian.h"

#define PREFIX      "rwy "
#define PREFIX_LEN  4
#define LABEL_MAX   12
#define CONTEXT_MAX 32

void aead_expand_label(uint8_t *out, size_t n, const struct aead_secret *secret, const char *label,
    const void *context, size_t context_len)
{
	/* RFC 8446: u16 length, u8 and label, u8 and context */
	uint8_t info[2 + 1 + PREFIX_LEN + LABEL_MAX + 1 + CONTEXT_MAX], *p = info;
	size_t label_len = strlen(label);
	gnutls_datum_t k = {(unsigned char *)(uintptr_t)secret->b, AEAD_SECRET}, i = {info, 0};

	assert(n <= 64 && label_len <= LABEL_MAX && context_len <= CONTEXT_MAX);
	rwy_put16(p, (uint16_t)n);
	p += 2;
	*p++ = (uint8_t)(PREFIX_LEN + label_len);
	memcpy(p, PREFIX, PREFIX_LEN);
	for (size_t c = 0; c < label_len; c++)
		p[PREFIX_LEN + c] = (uint8_t)label[c];
	p += PREFIX_LEN + label_len;
	*p++ = (uint8_t)context_len;
	if (context_len)
		memcpy(p, context, context_len);
	i.size = (unsigned)(p + context_len - info);
	if (gnutls_hkdf_expand(GNUTLS_MAC_SHA256, &k, &i, out, n) < 0)
		abort(); /* SHA-256 is always there; without a key nothing may be sent */
}

void aead_secret_of(
    struct aead_secret *out, const struct aead_secret *exported, uint64_t sender, uint32_t worker)
{
	uint8_t context[12];

	rwy_put64(context, sender);
	rwy_put32(context + 8, worker);
	aead_expand_label(out->b, AEAD_SECRET, exported, "worker", context, sizeof(context));
}

int aead_key_from(struct aead_key *k, uint8_t iv[AEAD_NONCE], const struct aead_ops *ops, enum aead_alg alg,
    const struct aead_secret *secret)
{
	uint8_t key[AEAD_KEY_MAX];
	int r;

	aead_expand_label(key, aead_alg_key(alg), secret, "key", NULL, 0);
	aead_expand_label(iv, AEAD_NONCE, secret, "iv", NULL, 0);
	r = ops->key_init(k, alg, key);
	aead_wipe(key, sizeof(key));
	return r;
}

void aead_secret_next(struct aead_secret *out, const struct aead_secret *secret)
{
	struct aead_secret next;

	aead_expand_label(next.b, AEAD_SECRET, secret, "ku", NULL, 0);
	*out = next;
	aead_wipe(&next, sizeof(next));
}

uint8_t aead_secret_id(const struct aead_secret *secret)
{
	uint8_t id;

	aead_expand_label(&id, 1, secret, "id", NULL, 0);
	return id;
}

void aead_nonce(uint8_t out[AEAD_NONCE], const uint8_t iv[AEAD_NONCE], uint8_t path, uint64_t pn)
{
	uint8_t n[AEAD_NONCE] = {0};

	n[3] = path;
	rwy_put64(n + 4, pn);
	for (unsigned i = 0; i < AEAD_NONCE; i++)
		out[i] = iv[i] ^ n[i];
}
