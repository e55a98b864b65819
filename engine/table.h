/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, memory and timers of an engine: sides by key, slabs, local hosts, the timer wheel. */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "engine/eng.h"

/* --- table.c: both sides of all connections, by key --- */
struct eng_side *eng_find(const struct eng *e, const struct eng_key *k, bool is_requester);
uint32_t eng_key_hash(const struct eng_key *k, bool is_requester);
void eng_insert(struct eng *e, struct eng_side *side);
void eng_remove(struct eng *e, struct eng_side *side);
/* A zeroed object; NULL: no memory. */
void *eng_slab_get(struct eng_slab *s);
void eng_slab_put(struct eng_slab *s, void *p);
void eng_slab_fini(struct eng_slab *s);
uint64_t eng_random(struct eng *e);

/* --- host.c: the record that requester sides towards a local host share --- */
/* NULL: no memory. Each get has its put. */
struct eng_host *eng_host_get(struct eng *e, uint32_t tenant, const struct rwy_ip *addr);
void eng_host_put(struct eng *e, struct eng_host *h); /* NULL allowed */

/* --- wheel.c --- */
void eng_wheel_arm(struct eng_requester *rq, rwy_time at);
void eng_wheel_disarm(struct eng_requester *rq);
/* Calls `due` for each whose time has come. */
void eng_wheel_run(struct eng *e, void (*due)(struct eng_requester *rq, rwy_time now), rwy_time now);

#endif
