/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/journal.h"

#include <string.h>

#include "rwy/crc32.h"

static uint32_t crc_of(const struct proxy_record *r)
{
	const size_t at = sizeof(r->crc);

	return rwy_crc32_short(PROXY_RECORD_VERSION, (const uint8_t *)r + at, sizeof(*r) - at);
}

void proxy_record_of(struct proxy_record *r, const struct proxy_link *l)
{
	*r = (struct proxy_record){.local = l->local,
	    .remote = l->remote,
	    .relay = l->relay,
	    .lqpn = l->lqpn,
	    .rqpn = l->rqpn,
	    .alias = l->alias,
	    .comm_a = l->comm_a,
	    .comm_b = l->comm_b,
	    .asked_port = l->asked_port,
	    .port = l->port,
	    .id = l->id,
	    .tid = l->tid,
	    .ca_guid = l->ca_guid,
	    .state = l->state,
	    .local_active = l->local_active,
	    .pair = l->pair,
	    .once = l->once};
}

void proxy_record_seal(struct proxy_record *r, uint32_t seq, uint64_t born)
{
	r->seq = seq;
	r->born = born;
	r->crc = crc_of(r);
}

static bool is_whole(const struct proxy_record *r)
{
	return r->seq && r->crc == crc_of(r);
}

int proxy_record_latest(const struct proxy_record two[2])
{
	const bool a = is_whole(&two[0]), b = is_whole(&two[1]);

	if (!a && !b)
		return -1;
	return b && (!a || two[1].seq > two[0].seq);
}

bool proxy_record_none(const struct proxy_record two[2])
{
	return !two[0].seq && !two[1].seq;
}

/* Whether its QPNs are those that a link in its state has. */
static bool qpns_fit(const struct proxy_record *r)
{
	if (r->lqpn > 0xffffff || r->rqpn > 0xffffff || r->alias > PROXY_QPN_MAX || r->alias == 1)
		return false;
	if (r->state == PROXY_CLOSED) /* perhaps before the REP came */
		return true;
	if (r->state != PROXY_REQ_SEEN)
		return r->lqpn && r->rqpn && r->alias;
	return r->local_active ? r->lqpn : r->rqpn && r->alias;
}

bool proxy_record_read(const struct proxy_record *r, struct proxy_link *l)
{
	const bool is4 = rwy_ip_is4(&r->local);

	if (r->state == PROXY_FREE || r->state >= PROXY_STATE_COUNT || r->local_active > 1 || r->pair > 1 ||
	    r->once > 1 || rwy_ip_is4(&r->remote) != is4 || rwy_ip_is4(&r->relay) != is4 || !qpns_fit(r))
		return false;
	/* A pair is open from its begin. */
	if (r->pair && r->state != PROXY_ESTABLISHED && r->state != PROXY_CLOSED)
		return false;
	*l = (struct proxy_link){.local = r->local,
	    .remote = r->remote,
	    .relay = r->relay,
	    .lqpn = r->lqpn,
	    .rqpn = r->rqpn,
	    .alias = r->alias,
	    .state = r->state,
	    .local_active = r->local_active,
	    .id = r->id,
	    .comm_a = r->comm_a,
	    .comm_b = r->comm_b,
	    .tid = r->tid,
	    .ca_guid = r->ca_guid,
	    .asked_port = r->asked_port,
	    .port = r->port,
	    .entry = PROXY_NIL,
	    .pair = r->pair,
	    .once = r->once};
	return true;
}

uint32_t proxy_journal_take(
    struct proxy_record *to, uint32_t to_links, const struct proxy_record *from, uint32_t from_links)
{
	uint32_t used = 0, left = 0;

	for (uint32_t i = 0; i < from_links; i++, from += 2) {
		if (proxy_record_none(from))
			continue;
		if (used < to_links)
			memcpy(&to[2 * (size_t)used++], from, 2 * sizeof(*from));
		else
			left++;
	}
	return left;
}

bool proxy_journal_any(const struct proxy_record *j, uint32_t links)
{
	for (uint32_t i = 0; i < links; i++, j += 2)
		if (!proxy_record_none(j))
			return true;
	return false;
}
