/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: a path's capacity is shared between classes (a tenant is one), a class's between its flows.
 *
 * A class with a guarantee goes first while it has had less than that (the highest priority, then the
 * earliest due time first). What is left is shared by weight between all that have something to send
 * (start-time fair queueing: Goyal, Vin and Chen, SIGCOMM 1996), the guaranteed ones too. A class over its
 * limit waits. Within a class flows take turns by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
 * With one class nothing of this costs anything.
 *
 * Counted are bytes on the wire of data that goes for the first time; what is sent again is the path's
 * expense.
 */
#ifndef WAN_SCHED_H
#define WAN_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/pace.h"
#include "rwy/time.h"
#include "wan/wan.h"

enum wan_heap_kind { WAN_HEAP_SHARE, WAN_HEAP_PARKED, WAN_HEAP_GUARANTEE, WAN_HEAP_KINDS };
#define WAN_HEAPS (WAN_HEAP_GUARANTEE + WAN_PRIORITIES) /* the guaranteed: one for each priority */

struct wan_class {
	struct wan_class_cfg cfg;
	uint32_t id;
	struct wan_txflow *head, *tail; /* flows with something to send */
	struct rwy_pace guarantee, limit;
	uint32_t place[WAN_HEAP_KINDS]; /* 1 + where it is in that heap, 0: it is not */
	uint64_t key[WAN_HEAP_KINDS];   /* virtual time; when it may go on; when due */
	uint32_t weight_inv;
	uint32_t turn;                  /* bytes it may still send before others are looked at */
	bool fresh;                     /* it has just become active: what it did not use is not saved */
	uint64_t sent, sent_guaranteed; /* bytes */
};

struct wan_heap {
	struct wan_class **v;
	uint32_t n;
};

struct wan_sched {
	struct wan_class first; /* class 0 */
	struct wan_class **v;   /* by number, NULL: class 0 stands for it; NULL: there is only class 0 */
	uint32_t cap;
	struct wan_heap heap[WAN_HEAPS];
	uint32_t waiting;                 /* bit p: the heap of priority p has somebody */
	struct wan_class *one[WAN_HEAPS]; /* the heaps' memory while there is only class 0 */
	struct wan_class *serving;        /* whose turn it is */
	bool by_guarantee;                /* and why */
	uint64_t vtime;
};

void wan_sched_init(struct wan_sched *s);
void wan_sched_fini(struct wan_sched *s);
/* f has something to send and is not listed. */
void wan_sched_add(struct wan_sched *s, struct wan_txflow *f);
/* The flow to send from, or NULL: none may now. It stays listed. */
struct wan_txflow *wan_sched_pick(struct wan_sched *s, rwy_time now);
/* So many bytes of the picked flow went out. */
void wan_sched_sent(struct wan_sched *s, struct wan_txflow *f, uint32_t bytes);
/* Whether anything is listed that is not over its limit; when the first may go on that is, RWY_NEVER. */
static inline bool wan_sched_any(const struct wan_sched *s)
{
	return s->heap[WAN_HEAP_SHARE].n;
}
static inline rwy_time wan_sched_next(const struct wan_sched *s)
{
	return s->heap[WAN_HEAP_PARKED].n ? s->heap[WAN_HEAP_PARKED].v[0]->key[WAN_HEAP_PARKED] : RWY_NEVER;
}

#endif
