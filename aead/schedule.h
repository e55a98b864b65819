/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys from secrets: HKDF with SHA-256 (RFC 5869), and HKDF-Expand-Label as TLS 1.3 and QUIC have
 * it (RFC 8446 section 7.1), with "rwy " in place of "tls13 ". Any thread.
 */
#ifndef AEAD_SCHEDULE_H
#define AEAD_SCHEDULE_H

#include "aead/aead.h"

#define AEAD_SECRET 32

struct aead_secret {
	uint8_t b[AEAD_SECRET];
};

/* HKDF-Expand-Label(secret, label, context, n) to `out`; n up to 64 bytes, label up to 12, context
 * up to 32. */
void aead_expand_label(uint8_t *out, size_t n, const struct aead_secret *secret, const char *label,
    const void *context, size_t context_len);

/*
 * The secret of one direction and one worker of a tunnel, from what the handshake exported.
 * `sender`: rwy_spread_id or epoch of the gateway that seals with it, so that both ends name it
 * alike.
 */
void aead_secret_of(
    struct aead_secret *out, const struct aead_secret *exported, uint64_t sender, uint32_t worker);

/* Key and IV of a secret ("key", "iv"; RFC 9001 section 5.1). RWY_ENOMEM. */
RWY_MUST_CHECK int aead_key_from(struct aead_key *k, uint8_t iv[AEAD_NONCE], const struct aead_ops *ops,
    enum aead_alg alg, const struct aead_secret *secret);

/* The secret of the next phase ("ku"; RFC 9001 section 6.1). out may be secret. */
void aead_secret_next(struct aead_secret *out, const struct aead_secret *secret);

/* Says which secret a datagram is sealed with, and gives nothing of the secret away. */
uint8_t aead_secret_id(const struct aead_secret *secret);

/* IV xor (path, packet number), as in RFC 9001 section 5.3. No two datagrams of a key may have both
 * alike. */
void aead_nonce(uint8_t out[AEAD_NONCE], const uint8_t iv[AEAD_NONCE], uint8_t path, uint64_t pn);

/* Overwrites bytes, also where the compiler sees no use. */
void aead_wipe(void *p, size_t n);

/*
 * Memory for keys, zeroed, 64-byte aligned: not part of a core dump, not inherited by a child, not
 * swapped out where the limits allow. NULL: no memory. aead_mem_free wipes it; NULL is allowed.
 */
void *aead_mem_alloc(size_t n);
void aead_mem_free(void *p, size_t n);

#endif
