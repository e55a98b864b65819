/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a tunnel and its datagrams: the key that seals one, and the one that opens it. */
#include "wan/key_phase.h"
#include "wan/key_set.h"
#include "wan/tunnel.h"

/* --- sending ---------------------------------------------------------------------------------- */
static void mark(
    const struct wan_tunnel *t, struct wan_key_tx *x, struct wan_tx *tx, uint8_t path, uint64_t pn)
{
	tx->hdr[1] |= x->phase;
	tx->hdr[3] = x->id;
	tx->key = &x->k;
	tx->aead = t->cfg.aead;
	aead_nonce(tx->nonce, x->k.iv, path, pn);
	x->sent++;
}

void wan_keys_mark(struct wan_tunnel *t, struct wan_tx *tx, uint8_t path, uint64_t pn)
{
	mark(t, &t->keys->used->tx, tx, path, pn);
}

void wan_keys_mark_hello(struct wan_tunnel *t, struct wan_tx *tx, uint64_t epoch, bool tries, uint64_t pn)
{
	struct wan_keys *k = t->keys;
	struct wan_key_set *s = tries ? k->offered : wan_key_set_for(k, epoch);

	mark(t, s ? &s->tx : &k->used->tx, tx, WAN_PATH_HELLO, pn);
}

/* --- receiving -------------------------------------------------------------------------------- */
/* Place in `first`; WAN_PATHS_MAX: of HELLOs. A path that is not one opens nothing. */
static unsigned space_of(const struct wan_pkt *h)
{
	return h->type != WAN_PKT_HELLO && h->path < WAN_PATHS_MAX ? h->path : WAN_PATHS_MAX;
}

/* The key of a datagram. *next: it is that of the next phase. */
static const struct wan_key *rx_key(
    const struct wan_key_rx *x, const struct wan_pkt *h, rwy_time now, bool *next)
{
	uint64_t first = x->first[space_of(h)];

	*next = false;
	if ((h->flags & WAN_KEY_PHASE) == x->phase)
		return &x->k[x->now];
	*next = now >= x->before_until || (first != UINT64_MAX && h->pn > first);
	return &x->k[*next ? x->next : x->before];
}

static bool opens(
    const struct wan_tunnel *t, const struct wan_key *key, struct rwy_buf *b, const struct wan_pkt *h)
{
	uint8_t nonce[AEAD_NONCE], *at = b->data + WAN_SEALED_AAD;
	uint8_t path = h->type == WAN_PKT_HELLO ? WAN_PATH_HELLO : h->path;

	aead_nonce(nonce, key->iv, path, h->pn);
	return t->cfg.aead->unseal(
	    &key->key, nonce, b->data, WAN_SEALED_AAD, at, b->len - WAN_SEALED_AAD - AEAD_TAG);
}

/* Ids of sets differ (id_free). NULL: none has this one. */
static struct wan_key_set *set_of(struct wan_keys *k, uint8_t id)
{
	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		if (k->set[i].state != WAN_KEY_NONE && k->set[i].rx.id == id)
			return &k->set[i];
	return NULL;
}

bool wan_keys_open(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now)
{
	struct wan_keys *k = t->keys;
	struct wan_pkt h;
	struct wan_key_set *s = set_of(k, b->data[3]);
	uint64_t *first;
	bool next;

	if (!s) {
		t->c.drop_no_key++;
		return false;
	}
	wan_pkt_get(b->data, &h);
	if (!opens(t, rx_key(&s->rx, &h, now, &next), b, &h)) {
		t->c.drop_forged++;
		return false;
	}
	if (next)
		wan_key_rx_go_on(t, &s->rx, wan_key_under_way(t), now);
	first = &s->rx.first[space_of(&h)];
	if ((h.flags & WAN_KEY_PHASE) == s->rx.phase && h.pn < *first)
		*first = h.pn;
	b->len -= AEAD_TAG;
	b->data[1] &= (uint8_t)~WAN_KEY_PHASE;
	b->data[3] = 0;
	if (s != k->heard || s->state != WAN_KEY_USED || s->reserved || !s->epoch)
		wan_key_set_heard(t, s, b, &h, now);
	return true;
}
