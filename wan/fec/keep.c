/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of protected datagrams at the receiver: the newest cfg.fec_rx_bytes of a path. solve.c
 * uses them.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/fec/fec.h"

static struct wan_fec_keep *keep_of(struct wan_fec_path *p)
{
	const struct wan_fec *x = p->fec;

	if (p->keep || !x->on || x->rx_bytes < UINT16_MAX)
		return p->keep;
	p->keep = calloc(1, sizeof(*p->keep));
	if (p->keep) {
		p->keep->cap = x->rx_bytes;
		p->keep->bytes = malloc(x->rx_bytes);
	}
	if (p->keep && !p->keep->bytes) {
		free(p->keep);
		p->keep = NULL;
	}
	return p->keep;
}

void wan_fec_keep(struct wan_fec_path *p, uint64_t pn, uint32_t crc, const uint8_t *frames, uint32_t len)
{
	struct wan_fec_keep *k = keep_of(p);
	uint32_t size = WAN_FEC_PREFIX + len;

	if (!k || len > UINT16_MAX - WAN_FEC_PREFIX)
		return;
	uint64_t off = k->head % k->cap;

	if (off + size > k->cap) { /* a copy is contiguous */
		k->head += k->cap - off;
		off = 0;
	}
	struct wan_fec_kept *s = &k->slot[pn % WAN_FEC_KEEP];
	uint8_t *at = k->bytes + off;

	*s = (struct wan_fec_kept){.pn1 = pn + 1, .at = k->head, .len = size};
	rwy_put16(at, (uint16_t)len);
	rwy_put32(at + 2, crc);
	memcpy(at + WAN_FEC_PREFIX, frames, len);
	k->head += size;
}

const uint8_t *wan_fec_kept(const struct wan_fec_path *p, uint64_t pn, uint32_t *len)
{
	const struct wan_fec_keep *k = p->keep;
	const struct wan_fec_kept *s = k ? &k->slot[pn % WAN_FEC_KEEP] : NULL;

	if (!s || s->pn1 != pn + 1 || k->head - s->at > k->cap)
		return NULL;
	*len = s->len;
	return k->bytes + s->at % k->cap;
}

void wan_fec_keep_forget(struct wan_fec_path *p)
{
	if (p->keep)
		memset(p->keep->slot, 0, sizeof(p->keep->slot));
}

void wan_fec_keep_free(struct wan_fec_path *p)
{
	if (p->keep)
		free(p->keep->bytes);
	free(p->keep);
	p->keep = NULL;
}
