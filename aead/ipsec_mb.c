/* SPDX-License-Identifier: Apache-2.0 */
/* AES-GCM by intel-ipsec-mb, with the widest instructions that the machine has. */
#include "aead/aead.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <assert.h>
#include <intel-ipsec-mb.h>
#include <pthread.h>
#include <string.h>

static_assert(sizeof(struct gcm_key_data) + 8 <= AEAD_KEY_STATE, "an expanded key fits");
#define ALG_AT (AEAD_KEY_STATE - 8) /* place of the algorithm */
/* Up to so many bytes a copy costs less than three calls (bench-aead). */
#define COPY_MAX 2048

static IMB_MGR *mgr;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
	IMB_ARCH arch;

	mgr = alloc_mb_mgr(0);
	if (mgr)
		init_mb_mgr_auto(mgr, &arch);
	if (mgr && imb_get_errno(mgr)) {
		free_mb_mgr(mgr);
		mgr = NULL;
	}
}

static const struct gcm_key_data *gcm(const struct aead_key *k)
{
	return (const struct gcm_key_data *)(const void *)k->state;
}

static bool is_256(const struct aead_key *k)
{
	return k->state[ALG_AT] == AEAD_AES_256_GCM;
}

static int key_init(struct aead_key *k, enum aead_alg alg, const uint8_t *key)
{
	struct gcm_key_data *g = (struct gcm_key_data *)(void *)k->state;

	k->state[ALG_AT] = (uint8_t)alg;
	if (alg == AEAD_AES_256_GCM)
		IMB_AES256_GCM_PRE(mgr, key, g);
	else
		IMB_AES128_GCM_PRE(mgr, key, g);
	return 0;
}

static void key_wipe(struct aead_key *k)
{
	imb_clear_mem(k->state, sizeof(k->state));
}

/* Two parts: three calls more, but no copy of the second one. Worth it for long ones only. */
static void seal_parts(const struct aead_key *k, const uint8_t *nonce, const void *aad, size_t aad_len,
    uint8_t *dst, const struct aead_in *in)
{
	const struct gcm_key_data *g = gcm(k);
	struct gcm_context_data ctx;
	uint8_t *tag = dst + in->head_len + in->body_len;

	if (is_256(k)) {
		IMB_AES256_GCM_INIT(mgr, g, &ctx, nonce, aad, aad_len);
		IMB_AES256_GCM_ENC_UPDATE(mgr, g, &ctx, dst, in->head, in->head_len);
		IMB_AES256_GCM_ENC_UPDATE(mgr, g, &ctx, dst + in->head_len, in->body, in->body_len);
		IMB_AES256_GCM_ENC_FINALIZE(mgr, g, &ctx, tag, AEAD_TAG);
	} else {
		IMB_AES128_GCM_INIT(mgr, g, &ctx, nonce, aad, aad_len);
		IMB_AES128_GCM_ENC_UPDATE(mgr, g, &ctx, dst, in->head, in->head_len);
		IMB_AES128_GCM_ENC_UPDATE(mgr, g, &ctx, dst + in->head_len, in->body, in->body_len);
		IMB_AES128_GCM_ENC_FINALIZE(mgr, g, &ctx, tag, AEAD_TAG);
	}
}

static void seal(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad, size_t aad_len,
    uint8_t *dst, const struct aead_in *in)
{
	size_t n = in->head_len + in->body_len;
	const uint8_t *src = in->head;
	struct gcm_context_data ctx;

	if (in->body_len > COPY_MAX) {
		seal_parts(k, nonce, aad, aad_len, dst, in);
		return;
	}
	if (in->body_len) {
		memcpy(dst, in->head, in->head_len);
		memcpy(dst + in->head_len, in->body, in->body_len);
		src = dst;
	}
	if (is_256(k))
		IMB_AES256_GCM_ENC(mgr, gcm(k), &ctx, dst, src, n, nonce, aad, aad_len, dst + n, AEAD_TAG);
	else
		IMB_AES128_GCM_ENC(mgr, gcm(k), &ctx, dst, src, n, nonce, aad, aad_len, dst + n, AEAD_TAG);
}

/* In a time that says nothing about where they differ. */
static bool same_tag(const uint8_t *x, const uint8_t *y)
{
	uint8_t d = 0;

	for (unsigned i = 0; i < AEAD_TAG; i++)
		d |= x[i] ^ y[i];
	return d == 0;
}

static bool open_bytes(const struct aead_key *k, const uint8_t nonce[AEAD_NONCE], const void *aad,
    size_t aad_len, uint8_t *bytes, size_t n)
{
	struct gcm_context_data ctx;
	uint8_t tag[AEAD_TAG];

	if (is_256(k))
		IMB_AES256_GCM_DEC(mgr, gcm(k), &ctx, bytes, bytes, n, nonce, aad, aad_len, tag, AEAD_TAG);
	else
		IMB_AES128_GCM_DEC(mgr, gcm(k), &ctx, bytes, bytes, n, nonce, aad, aad_len, tag, AEAD_TAG);
	return same_tag(tag, bytes + n);
}

static const struct aead_ops ops = {
    .name = "ipsec-mb", .key_init = key_init, .key_wipe = key_wipe, .seal = seal, .unseal = open_bytes};

const struct aead_ops *aead_ipsec_mb(void)
{
	pthread_once(&once, start);
	return mgr ? &ops : NULL;
}

#else

const struct aead_ops *aead_ipsec_mb(void)
{
	return NULL;
}

#endif
