/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authenticated encryption with additional data (AES-GCM, NIST SP 800-38D), behind a table of
 * functions: intel-ipsec-mb where it is (ipsec_mb.c), GnuTLS elsewhere (gnutls.c). Tests and
 * simulators have a table of their own.
 *
 * Nobody here makes nonces. Two datagrams with one key and one nonce give both away: the caller
 * must never use a nonce twice.
 */
#ifndef AEAD_AEAD_H
#define AEAD_AEAD_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define AEAD_TAG       16
#define AEAD_NONCE     12
#define AEAD_KEY_MAX   32   /* bytes of a key */
#define AEAD_KEY_STATE 1024 /* bytes of an expanded key */

/* X(enumerator, name, bytes of the key) */
#define AEAD_ALGS(X)                                                                                         \
	X(AEAD_AES_128_GCM, "aes-128-gcm", 16)                                                               \
	X(AEAD_AES_256_GCM, "aes-256-gcm", 32)

enum aead_alg {
#define X(e, n, b) e,
	AEAD_ALGS(X)
#undef X
};

const char *aead_alg_name(enum aead_alg alg);
size_t aead_alg_key(enum aead_alg alg); /* bytes of its keys */

/* An expanded key. What it holds belongs to the table that made it. */
struct aead_key {
	alignas(64) uint8_t state[AEAD_KEY_STATE];
};

/* Plaintext in two pieces: `head`, then `body`, sealed as one. */
struct aead_in {
	const void *head, *body;
	size_t head_len, body_len; /* bytes; body_len 0: body is not read */
};

/*
 * Any thread may use a key that no thread changes. aad: additional data, authenticated and not
 * encrypted, up to 64 bytes.
 */
struct aead_ops {
	const char *name;
	/* Expands a key of aead_alg_key() bytes. RWY_ENOMEM. */
	int (*key_init)(struct aead_key *k, enum aead_alg alg, const uint8_t *key);
	/*
	 * Wipes it, and frees what it holds. A wiped or zeroed key is allowed, here and below: what
	 * it seals is of use to nobody, and it unseals nothing.
	 */
	void (*key_wipe)(struct aead_key *k);
	/* Writes the ciphertext, as long as what is sealed, and the tag. dst overlaps no part. */
	void (*seal)(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad,
	    size_t aad_len, uint8_t *dst, const struct aead_in *in);
	/*
	 * Unseals n bytes of ciphertext, which the tag follows, in place. False: they are not what
	 * was sealed; the bytes are worthless then.
	 */
	RWY_MUST_CHECK bool (*unseal)(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE],
	    const void *aad, size_t aad_len, uint8_t *bytes, size_t n);
};

extern const struct aead_ops aead_gnutls;
/* NULL: it was not there when this was built, or this machine lacks its instructions. */
const struct aead_ops *aead_ipsec_mb(void);
/* The fastest one here. */
const struct aead_ops *aead_best(void);

#endif
