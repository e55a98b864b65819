/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: classes (one per tenant, and one per reservation of a pair of hosts) share a
 * path's capacity, and the flows of a class share the class's part.
 *
 * A class below its guarantee goes first: the highest priority, then the earliest due time. The
 * rest is shared by weight between all classes with data to send, guaranteed ones included
 * (start-time fair queueing: Goyal, Vin and Chen, SIGCOMM 1996). A class above its limit waits. The
 * flows of a class take turns by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995). With a
 * single class the scheduler costs nothing.
 *
 * The hierarchy has two levels and is in the clocks, not in the heaps: a reservation competes like
 * a tenant, and each byte that it sends also moves its tenant's clocks. So a tenant with
 * reservations gets no more than its limit, and its guarantee pays for its reservations first; it
 * owes them nothing later, where they have more than it.
 *
 * Only first transmissions count, in bytes on the wire. The path bears the cost of retransmissions,
 * which go first, one class after the other (struct wan_againq).
 */
#ifndef WAN_SCHED_H
#define WAN_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/pace.h"
#include "rwy/time.h"
#include "wan/wan.h"

enum wan_heap_kind { WAN_HEAP_SHARE, WAN_HEAP_PARKED, WAN_HEAP_GUARANTEE, WAN_HEAP_KINDS };
#define WAN_HEAPS (WAN_HEAP_GUARANTEE + WAN_PRIORITIES) /* one guarantee heap per priority */

struct wan_class {
	struct wan_class_cfg cfg;
	uint32_t id;
	struct wan_class *parent;       /* NULL: none */
	struct wan_txflow *head, *tail; /* flows with data to send */
	struct rwy_pace guarantee, limit;
	rwy_dur lag;                    /* time for which it may catch up; 0: it has no guarantee */
	uint32_t place[WAN_HEAP_KINDS]; /* 1 + index in each heap; 0: not in it */
	uint64_t key[WAN_HEAP_KINDS];   /* virtual time; end of the wait; due time */
	uint32_t weight_inv;
	uint32_t turn; /* bytes left of this class's turn */
	/* just became active: unused guarantee of its idle time does not accumulate */
	bool fresh;
	uint64_t sent, sent_guaranteed; /* bytes */
};

struct wan_heap {
	struct wan_class **v;
	uint32_t n;
};

/* Classes by the low half of their numbers; an entry may be NULL: class 0 serves it. */
struct wan_class_table {
	struct wan_class **v; /* NULL: none */
	uint32_t cap;
};
#define WAN_CLASS_TABLES    2
#define WAN_CLASS_TABLE_MAX (WAN_CLASSES_MAX / WAN_CLASS_TABLES)

#define WAN_NOT_STUCK UINT64_MAX

struct wan_sched {
	struct wan_class first;                         /* class 0 */
	struct wan_class_table table[WAN_CLASS_TABLES]; /* two, so that both may be small */
	struct wan_heap heap[WAN_HEAPS];
	uint32_t classes, heap_cap;       /* class 0 included; room in each heap */
	uint32_t waiting;                 /* bit p: the heap of priority p is not empty */
	struct wan_class *one[WAN_HEAPS]; /* the heaps' memory while only class 0 exists */
	struct wan_class *serving;        /* class whose turn it is */
	bool by_guarantee;                /* the class was chosen for its guarantee */
	rwy_time now;                     /* of that choice */
	/* flows with data to send that are not bulk: they go on when bulk flows have no credit */
	struct wan_txflow *ahead_head, *ahead_tail;
	rwy_time ahead_at; /* until then limits stop all that could go ahead; 0: they do not */
	/* the credit that was left when the last choice found no flow for which it is enough;
	 * WAN_NOT_STUCK: it found one, or a flow has got data since */
	uint64_t stuck_at;
	uint64_t vtime;
};

/* sched_classes.c. wan_class_find: the class with this number, NULL: there is none.
 * wan_class_need: adds one if there is none; NULL: out of memory. */
struct wan_class *wan_class_find(const struct wan_sched *s, uint32_t id);
struct wan_class *wan_class_need(struct wan_sched *s, uint32_t id);
/* Takes a valid configuration over into the clocks; lists of flows and heaps stay as they are. */
void wan_class_configure(struct wan_class *c, const struct wan_class_cfg *cfg);
void wan_sched_init(struct wan_sched *s);
void wan_sched_fini(struct wan_sched *s);
/* Lists f, which has data to send and is not listed. */
void wan_sched_add(struct wan_sched *s, struct wan_txflow *f);
/* Returns the flow to send from, which stays listed; NULL: no flow may send now. */
struct wan_txflow *wan_sched_pick(struct wan_sched *s, rwy_time now);
/* When the limits of a class and of its parent let it go on; not after now: they do. */
rwy_time wan_sched_limits_at(struct wan_class *c, rwy_time now);
/* sched_ahead.c: keeps f, which has data to send and is not bulk, among those that go on without
 * bulk flows. */
void wan_sched_ahead_add(struct wan_sched *s, struct wan_txflow *f);
/* Removes it. Does nothing when it is not listed. */
void wan_sched_ahead_remove(struct wan_sched *s, struct wan_txflow *f);
/* The first of them that can send, whatever its limits; NULL: none. */
struct wan_txflow *wan_sched_ahead_first(const struct wan_sched *s);
/* The first of them that can send and is below its limits; NULL: none. Sets ahead_at. */
struct wan_txflow *wan_sched_ahead(struct wan_sched *s, rwy_time now);
/* It is served instead of the picked flow. */
void wan_sched_ahead_pick(struct wan_sched *s, struct wan_txflow *f);
/* Fills in what a datagram with data of the class says of it. */
static inline void wan_sched_tell(const struct wan_class *c, struct wan_tx *tx)
{
	tx->class_id = c->parent ? c->parent->id : c->id;
	tx->has_dscp = c->cfg.has_dscp;
	tx->dscp = c->cfg.dscp;
}
/* Charges bytes sent from the picked flow. */
void wan_sched_sent(struct wan_sched *s, struct wan_txflow *f, uint32_t bytes);
/* wan_sched_any: a listed class is below its limit. wan_sched_next: when the first class that waits
 * for its limit may go on; RWY_NEVER: none does. */
static inline bool wan_sched_any(const struct wan_sched *s)
{
	return s->heap[WAN_HEAP_SHARE].n;
}
static inline rwy_time wan_sched_next(const struct wan_sched *s)
{
	rwy_time at =
	    s->heap[WAN_HEAP_PARKED].n ? s->heap[WAN_HEAP_PARKED].v[0]->key[WAN_HEAP_PARKED] : RWY_NEVER;

	return s->ahead_at ? rwy_time_min(at, s->ahead_at) : at;
}

#endif
