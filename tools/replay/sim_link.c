/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the simulation, and their way over a link. */
#include <stdlib.h>
#include <string.h>

#include "rwy/hash.h"
#include "tools/replay/sim_int.h"

struct rwy_buf *rp_buf_new(uint32_t len)
{
	struct rwy_buf *b = calloc(1, sizeof(*b) + RP_HEADROOM + len);

	if (!b)
		abort();
	b->data = (uint8_t *)(b + 1) + RP_HEADROOM;
	b->len = len;
	b->headroom = RP_HEADROOM;
	return b;
}

void rp_sim_send(struct rp_sim *sim, struct wanem_link *l, uint32_t where, uint32_t extra, struct rwy_buf *b)
{
	struct wanem_outcome out;

	sim->packets++;
	sim->hash = rwy_hash_bytes(rwy_hash(rwy_hash(sim->hash, sim->now), where), b->data, b->len);
	wanem_link_in(l, b->len + extra, &out, sim->now);
	for (unsigned i = 0; i < out.count; i++) {
		struct rwy_buf *copy = b;

		if (i + 1 < out.count) {
			copy = rp_buf_new(b->len);
			memcpy(copy->data, b->data, b->len);
		}
		if (out.copy[i].corrupt_bits) /* it leaves the bytes of an Ethernet header alone */
			wanem_copy_corrupt(
			    &out.copy[i], copy->data - WANEM_ETH_HLEN, copy->len + WANEM_ETH_HLEN);
		due_push(&sim->due, &(struct due){out.copy[i].at, sim->order++, copy, where});
	}
	if (!out.count)
		free(b);
}
