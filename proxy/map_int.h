/* SPDX-License-Identifier: Apache-2.0 */
/* Private to proxy/map*.c: the table, and what it is made from. */
#ifndef PROXY_MAP_INT_H
#define PROXY_MAP_INT_H

#include "proxy/map.h"

/*
 * Links of a list have the same time to live. HALF and CLOSED are in order of the last touch.
 * Packets do not move links of OPEN and ENDING, and do not touch those of the others.
 */
enum proxy_list { PROXY_L_FREE, PROXY_L_HALF, PROXY_L_OPEN, PROXY_L_ENDING, PROXY_L_CLOSED, PROXY_L_COUNT };

/* Open links of an active host. Slots are probed linearly, and there are twice as many as links. */
struct proxy_source {
	struct rwy_ip ip;
	uint32_t links; /* 0: free, or was used */
	uint32_t half;  /* of them without a REP */
	bool used;
};

struct proxy_map {
	struct proxy_map_cfg cfg;
	uint32_t mask;
	uint32_t *in, *out, *cm_in, *cm_out;
	struct proxy_link *l;
	struct {
		uint32_t head, tail, n;
	} list[PROXY_L_COUNT];
	struct proxy_source *source;
	uint32_t source_mask, source_marks; /* slots that are used or were */
	uint32_t entry[PROXY_ENTRIES_MAX];
	uint32_t qpn;   /* the next alias to try */
	rwy_time awake; /* proxy_map_wake() */
	uint64_t born;  /* of the link that was noted first last (journal.h) */
};

/* map_cfg.c */
bool proxy_map_cfg_valid(const struct proxy_map_cfg *c);
/* Memory for free(); NULL: none. Links are zeroed, buckets PROXY_NIL. */
struct proxy_link *proxy_map_links_new(uint32_t n);
uint32_t *proxy_map_index_new(uint32_t buckets);

/* It counts as a link of its source and of its entry. */
static inline bool proxy_map_counted(const struct proxy_link *l)
{
	return l->state != PROXY_FREE && l->state != PROXY_CLOSED;
}

/* map.c: puts a link as tmpl is, in that state, into place i, which is free. */
struct proxy_link *proxy_map_put(
    struct proxy_map *m, uint32_t i, const struct proxy_link *tmpl, enum proxy_state s, rwy_time now);

/* map_index.c: an index finds the link; by its alias, its QPN, its communication ID. */
void proxy_map_hash_in(struct proxy_map *m, struct proxy_link *l);
void proxy_map_hash_out(struct proxy_map *m, struct proxy_link *l);
void proxy_map_hash_cm(struct proxy_map *m, struct proxy_link *l);
/* It finds it no more, if it did: by its QPN, by anything. */
void proxy_map_unhash_out(struct proxy_map *m, struct proxy_link *l);
void proxy_map_unhash(struct proxy_map *m, struct proxy_link *l);

/* map_note.c: the two records of place i; erases them, of which the one that counts is the last. */
struct proxy_record *proxy_map_records(const struct proxy_map *m, uint32_t i);
void proxy_record_erase(struct proxy_record *two, unsigned counts);
/* The journal does not have it any more. */
void proxy_map_unnote(struct proxy_map *m, struct proxy_link *l);

#endif
