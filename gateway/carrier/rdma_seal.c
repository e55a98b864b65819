/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/carrier/rdma_seal.h"

#include <string.h>

#include "rwy/endian.h"

#define AAD (GW_RDMA_HEAD + 4) /* the head and the immediate data */

void gw_rdma_head_put(uint8_t out[GW_RDMA_HEAD], enum gw_rdma_type type, uint8_t phase, uint32_t len)
{
	rwy_put16(out, (uint16_t)len);
	out[2] = (uint8_t)type;
	out[3] = phase;
}

int gw_rdma_head_get(const uint8_t *p, uint32_t n, enum gw_rdma_type *type)
{
	if (n < GW_RDMA_HEAD || rwy_get16(p) != n - GW_RDMA_HEAD)
		return RWY_EMALFORMED;
	if (p[2] == GW_RDMA_TLS ? n == GW_RDMA_HEAD || p[3] != 0
	                        : p[2] != GW_RDMA_SEALED || n < GW_RDMA_EXTRA || p[3] > 1)
		return RWY_EMALFORMED;
	*type = (enum gw_rdma_type)p[2];
	return 0;
}

/* --- keys ------------------------------------------------------------------------------------- */
static int key_make(const struct gw_rdma_seal *s, struct gw_rdma_key *k, uint8_t phase)
{
	s->aead->key_wipe(&k->key[phase]);
	return aead_key_from(&k->key[phase], k->iv[phase], s->aead, s->alg, &k->secret);
}

static void key_wipe(const struct gw_rdma_seal *s, struct gw_rdma_key *k)
{
	for (unsigned i = 0; i < 2; i++)
		s->aead->key_wipe(&k->key[i]);
}

/* The key of the next phase, beside the present one, which goes on. */
static int next_make(const struct gw_rdma_seal *s, struct gw_rdma_key *k)
{
	aead_secret_next(&k->secret, &k->secret);
	return key_make(s, k, !k->phase);
}

static void next_begins(const struct gw_rdma_seal *s, struct gw_rdma_key *k)
{
	s->aead->key_wipe(&k->key[k->phase]);
	k->phase = !k->phase;
	k->first = k->n;
}

struct gw_rdma_seal *gw_rdma_seal_new(const struct aead_ops *ops, enum aead_alg alg,
    const struct aead_secret *exported, bool opener, rwy_dur rekey, rwy_time now)
{
	struct gw_rdma_seal *s = aead_mem_alloc(sizeof(*s));

	if (!s)
		return NULL;
	s->aead = ops;
	s->alg = alg;
	s->rekey = rekey;
	s->tx.since = now;
	aead_expand_label(s->tx.secret.b, AEAD_SECRET, exported, opener ? "opener" : "accepter", NULL, 0);
	aead_expand_label(s->rx.secret.b, AEAD_SECRET, exported, opener ? "accepter" : "opener", NULL, 0);
	if (key_make(s, &s->tx, 0) == 0 && key_make(s, &s->rx, 0) == 0)
		return s;
	gw_rdma_seal_free(s);
	return NULL;
}

void gw_rdma_seal_free(struct gw_rdma_seal *s)
{
	if (!s)
		return;
	key_wipe(s, &s->tx);
	key_wipe(s, &s->rx);
	aead_mem_free(s, sizeof(*s));
}

/* --- messages --------------------------------------------------------------------------------- */
static void aad_put(uint8_t aad[AAD], const uint8_t head[GW_RDMA_HEAD], uint32_t immediate)
{
	memcpy(aad, head, GW_RDMA_HEAD);
	rwy_put32(aad + GW_RDMA_HEAD, immediate);
}

int gw_rdma_seal_put(
    struct gw_rdma_seal *s, uint8_t *to, const struct aead_in *in, uint32_t immediate, rwy_time now)
{
	struct gw_rdma_key *k = &s->tx;
	uint8_t aad[AAD], nonce[AEAD_NONCE];

	if (k->n - k->first >= GW_RDMA_PHASE || rwy_since(k->since, now) >= s->rekey) {
		if (next_make(s, k) != 0)
			return RWY_ENOMEM;
		next_begins(s, k);
		k->since = now;
		s->updates_sent++;
	}
	gw_rdma_head_put(to, GW_RDMA_SEALED, k->phase, (uint32_t)(in->head_len + in->body_len) + AEAD_TAG);
	aad_put(aad, to, immediate);
	aead_nonce(nonce, k->iv[k->phase], 0, k->n++);
	s->aead->seal(&k->key[k->phase], nonce, aad, AAD, to + GW_RDMA_HEAD, in);
	return 0;
}

int gw_rdma_seal_get(struct gw_rdma_seal *s, uint8_t *p, uint32_t n, uint32_t immediate)
{
	struct gw_rdma_key *k = &s->rx;
	const uint8_t phase = p[3];
	uint8_t aad[AAD], nonce[AEAD_NONCE];

	if (phase != k->phase && next_make(s, k) != 0)
		return RWY_ENOMEM;
	aad_put(aad, p, immediate);
	aead_nonce(nonce, k->iv[phase], 0, k->n);
	if (!s->aead->unseal(&k->key[phase], nonce, aad, AAD, p + GW_RDMA_HEAD, n - GW_RDMA_EXTRA))
		return RWY_EMALFORMED;
	if (phase != k->phase) {
		next_begins(s, k);
		s->updates_received++;
	}
	k->n++;
	return 0;
}
