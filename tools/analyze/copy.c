/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/analyze/copy.h"

#include <string.h>

#include "rwy/hash.h"

#define WITHIN (100 * RWY_US) /* no timer of a requester is as short */
#define MARKED 64u            /* bytes from the BTH on; the ICRC is of the rest */
#define OFTEN  4              /* copied is every so many request, at least */

/* Equal for copies, which differ before the BTH: MAC addresses, tags, hop limit. */
static uint64_t mark_of(const struct roce_pkt *pkt, uint32_t captured)
{
	const uint32_t from = (uint32_t)((const uint8_t *)pkt->bth - pkt->ip);
	uint32_t end = captured < pkt->len ? captured : pkt->len;
	uint64_t h = rwy_hash(0, pkt->len - from), word;

	if (end == pkt->len && pkt->len >= from + 4) {
		word = 0;
		memcpy(&word, pkt->ip + pkt->len - 4, 4);
		h = rwy_hash(h, word);
	}
	end = end < from + MARKED ? end : from + MARKED;
	for (uint32_t at = from; at < end; at += 8) {
		word = 0;
		memcpy(&word, pkt->ip + at, end - at < 8 ? end - at : 8);
		h = rwy_hash(h, word);
	}
	return h;
}

bool an_is_copy(
    struct an_copies *c, struct an_flow *f, const struct roce_pkt *pkt, uint32_t captured, rwy_time now)
{
	const struct an_seen was = f->seen;
	const bool request = roce_op_is_request(pkt->info);
	bool same;

	f->seen = (struct an_seen){mark_of(pkt, captured), now, ++c->packets};
	same = was.place && was.mark == f->seen.mark && rwy_since(was.at, now) <= WITHIN &&
	       !(f->peer && f->peer->seen.place > was.place);
	/* A responder that gets packets again sends equal ACKs, too. */
	if (same && pkt->info->op == ROCE_OP_ACK && c->of_request * OFTEN < c->requests)
		same = false;
	c->requests += request;
	c->of_request += request && same;
	if (same)
		f->seen.place = was.place; /* the third one is a copy, too */
	return same;
}
