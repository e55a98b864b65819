/* SPDX-License-Identifier: Apache-2.0 */
/* AES-GCM by GnuTLS: on every machine. */
#include <string.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "aead/aead.h"

static gnutls_cipher_algorithm_t cipher_of(enum aead_alg alg)
{
	return alg == AEAD_AES_256_GCM ? GNUTLS_CIPHER_AES_256_GCM : GNUTLS_CIPHER_AES_128_GCM;
}

static gnutls_aead_cipher_hd_t handle(const struct aead_key *k)
{
	gnutls_aead_cipher_hd_t h;

	memcpy(&h, k->state, sizeof(h));
	return h;
}

static int key_init(struct aead_key *k, enum aead_alg alg, const uint8_t *key)
{
	gnutls_datum_t d = {(unsigned char *)(uintptr_t)key, (unsigned)aead_alg_key(alg)};
	gnutls_aead_cipher_hd_t h;

	if (gnutls_aead_cipher_init(&h, cipher_of(alg), &d) < 0)
		return RWY_ENOMEM;
	memcpy(k->state, &h, sizeof(h));
	return 0;
}

static void key_wipe(struct aead_key *k)
{
	gnutls_aead_cipher_hd_t h = handle(k);

	if (h)
		gnutls_aead_cipher_deinit(h); /* wipes it */
	memset(k->state, 0, sizeof(h));
}

static void seal(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad, size_t aad_len,
    uint8_t *dst, const struct aead_in *in)
{
	size_t n = in->head_len + in->body_len, tag = AEAD_TAG;
	giovec_t a = {(void *)(uintptr_t)aad, aad_len}, v = {dst, n};

	/* It seals several parts in place only. */
	memcpy(dst, in->head, in->head_len);
	if (in->body_len)
		memcpy(dst + in->head_len, in->body, in->body_len);
	if (!handle(k) ||
	    gnutls_aead_cipher_encryptv2(handle(k), nonce, AEAD_NONCE, &a, 1, &v, 1, dst + n, &tag) < 0)
		memset(dst, 0, n + AEAD_TAG); /* nothing leaves in the clear */
}

static bool open_bytes(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad,
    size_t aad_len, uint8_t *bytes, size_t n)
{
	giovec_t a = {(void *)(uintptr_t)aad, aad_len}, v = {bytes, n};

	return handle(k) && gnutls_aead_cipher_decryptv2(
	                        handle(k), nonce, AEAD_NONCE, &a, 1, &v, 1, bytes + n, AEAD_TAG) == 0;
}

const struct aead_ops aead_gnutls = {
    .name = "gnutls", .key_init = key_init, .key_wipe = key_wipe, .seal = seal, .unseal = open_bytes};
