/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that outlive the process: for each link two records in memory that the caller keeps, of
 * which the later whole one counts. A write replaces the older of the two records. If the process
 * dies in the middle of it, the other record has the link as it was, and no host was told of the
 * change. A record has a checksum; one that is torn, or of another version, is none.
 *
 * One writer, the thread of the table (map.h). Loss of power loses it all.
 */
#ifndef PROXY_JOURNAL_H
#define PROXY_JOURNAL_H

#include <assert.h>

#include "proxy/map.h"

#define PROXY_RECORD_VERSION 1

struct proxy_record {
	uint32_t crc;  /* of the rest, continued from the version */
	uint32_t seq;  /* the higher one of the two counts; 0: there is no record here */
	uint64_t born; /* orders the links by their begin */
	struct rwy_ip local, remote, relay;
	uint32_t lqpn, rqpn, alias, comm_a, comm_b;
	uint16_t asked_port, port;
	uint64_t id, tid, ca_guid;
	uint8_t state; /* enum proxy_state */
	uint8_t local_active, pair, once;
	uint8_t reserved[12];
};
static_assert(sizeof(struct proxy_record) == 128, "two cache lines");

/* The record of a link, whole but for seq, born and checksum; and these with the checksum. */
void proxy_record_of(struct proxy_record *r, const struct proxy_link *l);
void proxy_record_seal(struct proxy_record *r, uint32_t seq, uint64_t born);
/* The one of the two that counts: 0 or 1; -1: none. */
int proxy_record_latest(const struct proxy_record two[2]);
/* Nothing was written in this place, or it was removed. */
bool proxy_record_none(const struct proxy_record two[2]);
/* The link of a whole record; without an entry. False: its fields make no sense. */
bool proxy_record_read(const struct proxy_record *r, struct proxy_link *l);

/*
 * Copies what is in the places of another journal into the first places of this one, which is
 * zeroed. Returns how many had no room.
 */
uint32_t proxy_journal_take(
    struct proxy_record *to, uint32_t to_links, const struct proxy_record *from, uint32_t from_links);
/* Whether any link is in it. */
bool proxy_journal_any(const struct proxy_record *j, uint32_t links);

#endif
