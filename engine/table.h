/* SPDX-License-Identifier: Apache-2.0 */
/* Tables and timers of an engine: sides by key, local hosts, the timer wheel. */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "engine/eng.h"

/* --- table.c: both sides of all connections, by key; random numbers --- */
/* NULL: no such side. */
struct eng_side *eng_find(const struct eng *e, const struct eng_key *k, bool is_requester);
/* The same where the hash is known: eng_key_hash() of e->hash_seed, k and is_requester. */
struct eng_side *eng_find_hashed(
    const struct eng *e, const struct eng_key *k, uint32_t hash, bool is_requester);
/* seed: a number that hosts cannot guess, or they choose keys that share a bucket. */
uint32_t eng_key_hash(uint64_t seed, const struct eng_key *k, bool is_requester);
/* Enters the side, whose key, tenant and tunnel are set; its key must not be there. */
void eng_insert(struct eng *e, struct eng_side *side);
/* Takes it out; the caller frees it. */
void eng_remove(struct eng *e, struct eng_side *side);
/* The first slot from `slot` on with a side; above e->table_mask: there is none. */
uint32_t eng_table_next(const struct eng *e, uint32_t slot);
/* Pseudo-random 64 bits from eng_cfg.seed (splitmix64): not for secrets. */
uint64_t eng_random(struct eng *e);

/* --- host.c: the record that the sides of a local host share --- */
/* A reference to its record, made if there is none; NULL: no memory. The tenant is there. */
struct eng_host *eng_host_get(struct eng *e, uint32_t tenant, const struct rwy_ip *addr);
/* Gives one reference back; the last one frees the record. NULL allowed. */
void eng_host_put(struct eng *e, struct eng_host *h);

/* --- wheel.c: timers of requester sides, about a millisecond apart --- */
/* Due in the tick of `at`, or earlier if it was armed so. RWY_NEVER: it is disarmed,
 * unless something of it found no memory. */
void eng_wheel_arm(struct eng_requester *rq, rwy_time at);
void eng_wheel_disarm(struct eng_requester *rq);
/* Disarms each requester side whose timer has expired, and calls `due` for it. */
void eng_wheel_run(struct eng *e, void (*due)(struct eng_requester *rq, rwy_time now), rwy_time now);

#endif
