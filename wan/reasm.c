/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reassembles fragments into one buffer. That is a copy: bytes of several datagrams cannot stay in
 * place. A bitmap in the buffer says which fragments are present. Offsets
 * follow from index and fragment size, so fragments never overlap (wan_f_data_get checked that
 * index, size and total agree).
 *
 * While incomplete: w0 = fragments present, w1 = bytes present, w2 = fragment size.
 */
#include <string.h>

#include "wan/tunnel.h"

struct rwy_buf *wan_reasm_new(struct wan_tunnel *t, const struct wan_f_data *d)
{
	struct rwy_buf *b = rwy_buf_alloc(&t->cfg.bufs, WAN_REASM_ROOM, d->total);

	if (!b)
		return NULL;
	b->kind = d->kind & 15;
	b->pcp = d->pcp & 15;
	b->w0 = b->w1 = 0;
	b->w2 = d->fsize;
	return b;
}

bool wan_reasm_add(struct rwy_buf *part, const struct wan_f_data *d, const uint8_t *bytes, size_t len)
{
	if (part->len != d->total || part->w2 != d->fsize || part->kind != d->kind)
		return false;
	if (part->w0 & (1u << d->index))
		return false;
	memcpy(part->data + (size_t)d->index * d->fsize, bytes, len);
	part->w0 |= 1u << d->index;
	part->w1 += (uint32_t)len;
	return true;
}

bool wan_reasm_done(const struct rwy_buf *part)
{
	return part->w1 == part->len;
}
