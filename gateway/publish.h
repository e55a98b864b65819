/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publication: how other threads hand workers an object that all of them read. A writer builds the
 * object, exchanges a pointer, and frees the old object when no worker can have it any more. DPDK's
 * rte_rcu_qsbr (quiescent-state based reclamation) says when that is.
 *
 * A reader (a worker, by its index) reports once a turn that it holds nothing of an earlier turn,
 * then loads the pointers that it needs for this turn. A reader that sleeps goes offline: nothing
 * waits for it. It loads every pointer again when it is back.
 *
 * Not here: orders to one worker about what it alone owns (gw_call, app.h).
 */
#ifndef GATEWAY_PUBLISH_H
#define GATEWAY_PUBLISH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/time.h"

/* All that is published. Each has one writer at a time and one function that gives it its type. */
enum gw_published {
	GW_NEXT_HOPS, /* struct gw_nt, by port/neigh.c: gw_nt_of() */
	GW_TENANTS,   /* struct tenant_set, by control/tenants.c: gw_tenants_of() */
	GW_SIBLINGS,  /* struct gw_sib_set or NULL, by control/siblings.c: gw_sib_set_of() */
	GW_STEERING,  /* struct eng_steering or NULL, by control/assignments.c */
	GW_CAPTURE,   /* struct gw_capture or NULL, by capture/session.c: gw_cap_of() */
	GW_PUBLISHED
};

/* A writer that wants its change done when it returns waits so long for a reader that hangs. */
#define GW_TAKE_UP_WAIT (500 * RWY_MS)

struct rte_rcu_qsbr;
struct gw_publication;

struct gw_publisher {
	_Alignas(64) _Atomic(const void *) slot[GW_PUBLISHED]; /* gw_published_get() */
	/* private */
	struct rte_rcu_qsbr *qs;
	pthread_mutex_t lock;                         /* writers; a reader that leaves */
	struct gw_publication *current[GW_PUBLISHED]; /* of slot[]; NULL: its writer frees it */
	struct gw_publication *retired;               /* to be freed, the newest first */
};

/* For so many readers, numbered from 0. Nothing is published: all pointers are NULL. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_publisher_new(struct gw_publisher **out, unsigned readers);
/* After the last reader has left. Frees what is published and what is retired. NULL is allowed. */
void gw_publisher_free(struct gw_publisher *p);

/* --- readers: each on its own thread, but for the first join and the last leave --------------- */

/* Before the reader's first load; after its last one. A reader that has joined is online. */
void gw_reader_join(struct gw_publisher *p, unsigned reader);
void gw_reader_leave(struct gw_publisher *p, unsigned reader);
/* It holds nothing that it has loaded so far. */
void gw_reader_quiescent(struct gw_publisher *p, unsigned reader);
/* The same, and it loads nothing until it is online again. */
void gw_reader_offline(struct gw_publisher *p, unsigned reader);
void gw_reader_online(struct gw_publisher *p, unsigned reader);

/*
 * A reader's copy for this turn. A writer may load what it publishes itself, as long as it holds
 * the lock that makes it the only one.
 */
static inline const void *gw_published_get(const struct gw_publisher *p, enum gw_published what)
{
	return atomic_load_explicit(&p->slot[what], memory_order_acquire);
}

/* --- writers: any thread but a reader's ------------------------------------------------------- */

/*
 * Exchanges the pointer. The publisher frees the object that was there, if it came with a free_fn,
 * in a later gw_publisher_reap(); now it owns `object`, if free_fn is not NULL. Returns a token for
 * the functions below; 0: out of memory, which needs a free_fn: nothing has changed.
 */
uint64_t gw_publish(
    struct gw_publisher *p, enum gw_published what, const void *object, void (*free_fn)(void *));
/*
 * True: each reader that is online has reported since. So each has the object that was published,
 * and none holds an older one.
 */
bool gw_publish_passed(struct gw_publisher *p, uint64_t token);
/* Waits for that, but not longer than at_most. False: a reader has not reported. */
bool gw_publish_wait(struct gw_publisher *p, uint64_t token, rwy_dur at_most);
/* Frees what is retired and read by nobody any more. Now and then. */
void gw_publisher_reap(struct gw_publisher *p);

#endif
