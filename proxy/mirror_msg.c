/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of two relays of a pair. docs/wire-format.md draws their bytes. */
#include <string.h>

#include "proxy/journal.h"
#include "proxy/mirror_int.h"
#include "rwy/endian.h"

#define SHORT 16 /* without a link */

enum { LOCAL_ACTIVE = 1, PAIR = 2, ONCE = 4 };

static bool has_link(enum proxy_mirror_type type)
{
	return type == PROXY_MIRROR_LINK || type == PROXY_MIRROR_LINK_GONE;
}

void proxy_mirror_number(uint8_t *msg, uint64_t number)
{
	rwy_put64(msg + 8, number);
}

uint32_t proxy_mirror_write(
    uint8_t out[PROXY_MIRROR_LEN], enum proxy_mirror_type type, uint64_t number, const struct proxy_link *l)
{
	memset(out, 0, PROXY_MIRROR_LEN);
	out[0] = (uint8_t)type;
	proxy_mirror_number(out, number);
	if (!has_link(type))
		return SHORT;
	out[1] = l->state;
	out[2] =
	    (uint8_t)((l->local_active ? LOCAL_ACTIVE : 0) | (l->pair ? PAIR : 0) | (l->once ? ONCE : 0));
	rwy_put16(out + 4, l->asked_port);
	rwy_put16(out + 6, l->port);
	rwy_put64(out + 16, l->id);
	rwy_put64(out + 24, l->tid);
	rwy_put64(out + 32, l->ca_guid);
	memcpy(out + 40, l->local.b, 16);
	memcpy(out + 56, l->remote.b, 16);
	memcpy(out + 72, l->relay.b, 16);
	rwy_put32(out + 88, l->lqpn);
	rwy_put32(out + 92, l->rqpn);
	rwy_put32(out + 96, l->alias);
	rwy_put32(out + 100, l->comm_a);
	rwy_put32(out + 104, l->comm_b);
	return PROXY_MIRROR_LEN;
}

/* As of a record: the same fields have to make sense. */
static bool link_read(const uint8_t *msg, struct proxy_link *l)
{
	struct proxy_record r = {.state = msg[1],
	    .local_active = !!(msg[2] & LOCAL_ACTIVE),
	    .pair = !!(msg[2] & PAIR),
	    .once = !!(msg[2] & ONCE),
	    .asked_port = rwy_get16(msg + 4),
	    .port = rwy_get16(msg + 6),
	    .id = rwy_get64(msg + 16),
	    .tid = rwy_get64(msg + 24),
	    .ca_guid = rwy_get64(msg + 32),
	    .lqpn = rwy_get32(msg + 88),
	    .rqpn = rwy_get32(msg + 92),
	    .alias = rwy_get32(msg + 96),
	    .comm_a = rwy_get32(msg + 100),
	    .comm_b = rwy_get32(msg + 104)};

	memcpy(r.local.b, msg + 40, 16);
	memcpy(r.remote.b, msg + 56, 16);
	memcpy(r.relay.b, msg + 72, 16);
	return proxy_record_read(&r, l);
}

bool proxy_mirror_read(
    const uint8_t *msg, uint32_t len, enum proxy_mirror_type *type, uint64_t *number, struct proxy_link *l)
{
	if (len < SHORT || msg[0] < PROXY_MIRROR_BEGIN || msg[0] > PROXY_MIRROR_HAD)
		return false;
	*type = (enum proxy_mirror_type)msg[0];
	*number = rwy_get64(msg + 8);
	if (!has_link(*type))
		return len == SHORT;
	return len == PROXY_MIRROR_LEN && link_read(msg, l);
}
