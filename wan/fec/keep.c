/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of protected datagrams at the receiver: cfg.fec_rx_bytes of them, the newest of a path. What they
 * are good for is in solve.c.
 */
#include <stdlib.h>
#include <string.h>

#include "wan/tunnel.h"

static struct wan_fec_keep *keep_of(struct wan_path *p)
{
	const struct wan_cfg *cfg = &p->t->cfg;

	if (p->fec_keep || cfg->fec != WAN_FEC_AUTO || cfg->fec_rx_bytes < UINT16_MAX)
		return p->fec_keep;
	p->fec_keep = calloc(1, sizeof(*p->fec_keep));
	if (p->fec_keep) {
		p->fec_keep->cap = cfg->fec_rx_bytes;
		p->fec_keep->bytes = malloc(cfg->fec_rx_bytes);
	}
	if (p->fec_keep && !p->fec_keep->bytes) {
		free(p->fec_keep);
		p->fec_keep = NULL;
	}
	return p->fec_keep;
}

void wan_fec_keep(struct wan_path *p, uint64_t pn, uint32_t crc, const uint8_t *frames, uint32_t len)
{
	struct wan_fec_keep *k = keep_of(p);
	uint32_t size = WAN_FEC_PREFIX + len;

	if (!k || len > UINT16_MAX - WAN_FEC_PREFIX)
		return;
	uint64_t off = k->head % k->cap;

	if (off + size > k->cap) { /* in one piece */
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

const uint8_t *wan_fec_kept(const struct wan_path *p, uint64_t pn, uint32_t *len)
{
	const struct wan_fec_keep *k = p->fec_keep;
	const struct wan_fec_kept *s = k ? &k->slot[pn % WAN_FEC_KEEP] : NULL;

	if (!s || s->pn1 != pn + 1 || k->head - s->at > k->cap)
		return NULL;
	*len = s->len;
	return k->bytes + s->at % k->cap;
}

void wan_fec_keep_forget(struct wan_path *p)
{
	if (p->fec_keep)
		memset(p->fec_keep->slot, 0, sizeof(p->fec_keep->slot));
}

void wan_fec_keep_free(struct wan_path *p)
{
	if (p->fec_keep)
		free(p->fec_keep->bytes);
	free(p->fec_keep);
	p->fec_keep = NULL;
}
