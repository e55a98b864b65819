/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of connections from workers to the control center's thread: one ring per worker, which
 * never waits. Events that do not fit are counted, and the reader then asks for all connections
 * again (eng_sessions).
 */
#ifndef GATEWAY_DATAPATH_SESSIONS_H
#define GATEWAY_DATAPATH_SESSIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "gateway/relay.h"

#define GW_SESSION_RING 4096 /* power of two */

struct gw_session_event {
	struct eng_session s;
	bool open;
	struct gw_link_name link; /* of a relay */
};

struct gw_session_ring {
	_Alignas(64) _Atomic uint32_t head; /* written by the worker */
	_Atomic uint64_t lost;              /* written by the worker */
	_Alignas(64) _Atomic uint32_t tail; /* written by the reader */
	struct gw_session_event v[GW_SESSION_RING];
};

/* Called by the worker. False: there was no room. */
static inline bool gw_session_put(
    struct gw_session_ring *r, bool open, const struct eng_session *s, const struct gw_link_name *link)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) == GW_SESSION_RING) {
		atomic_store_explicit(
		    &r->lost, atomic_load_explicit(&r->lost, memory_order_relaxed) + 1, memory_order_relaxed);
		return false;
	}
	r->v[head % GW_SESSION_RING] = (struct gw_session_event){*s, open, *link};
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

/* Called by the reader. False: the ring is empty. */
static inline bool gw_session_get(struct gw_session_ring *r, struct gw_session_event *out)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&r->head, memory_order_acquire))
		return false;
	*out = r->v[tail % GW_SESSION_RING];
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

struct gw_app;
/* Returns a worker's ring; NULL: nobody reads. */
struct gw_session_ring *gw_sessions_of(const struct gw_app *app, unsigned worker);

#endif
