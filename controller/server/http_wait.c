/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait, and their resumption. The library walks all suspended connections whenever
 * one is resumed, and with a long poll of each gateway these are thousands. So several are resumed
 * together, and less often the more there are. The thread is in http_loop.c.
 */
#include <unistd.h>

#include "base/log.h"
#include "controller/server/http.h"
#include "controller/server/req.h"

/* Pause between two walks for each suspended connection, which takes 0.2 us of a walk. */
#define WALK      (4 * RWY_US)
#define WALK_LAZY (100 * RWY_US) /* the same if only expired polls are resumed */
#define LAZY_MAX  (250 * RWY_MS)
#define TOGETHER  32 /* requests resumed together; more if very many wait */

void ctlr_http_suspend(struct ctlr_http_worker *w, struct ctlr_req *r)
{
	MHD_suspend_connection(r->connection);
	w->suspended++;
	atomic_fetch_add_explicit(&w->c->counters.waiting, 1, memory_order_relaxed);
}

void ctlr_http_wake(struct ctlr_http_worker *w)
{
	const uint64_t one = 1;

	if (write(w->wake, &one, sizeof(one)) != sizeof(one))
		gw_log(GW_LOG_ERROR, "http", "a thread cannot be woken");
}

/* Any thread, under the state's lock. */
static void queue_resumed(struct ctlr_http_worker *w, struct ctlr_req *r)
{
	bool first;

	r->next = NULL;
	pthread_mutex_lock(&w->lock);
	*(w->first ? &w->last->next : &w->first) = r;
	w->last = r;
	first = r->status != 304 && !w->urgent++;
	pthread_mutex_unlock(&w->lock);
	if (first) /* otherwise the thread looks soon enough by itself */
		ctlr_http_wake(w);
}

/* Removes at most `most` requests from the queue. */
static struct ctlr_req *next_ready(struct ctlr_http_worker *w, unsigned most)
{
	struct ctlr_req *list, *r;

	pthread_mutex_lock(&w->lock);
	list = w->first;
	for (r = list; r; r = r->next) {
		w->urgent -= r->status != 304;
		if (!--most)
			break;
	}
	w->first = r ? r->next : NULL;
	if (r)
		r->next = NULL;
	pthread_mutex_unlock(&w->lock);
	return list;
}

/* The pause between two walks; RWY_NEVER: the queue is empty. */
static rwy_dur pause_of(struct ctlr_http_worker *w)
{
	rwy_dur lazy = w->suspended * WALK_LAZY, pause;

	lazy = lazy < LAZY_MAX ? lazy : LAZY_MAX;
	pthread_mutex_lock(&w->lock);
	pause = w->urgent ? w->suspended * WALK : w->first ? lazy : RWY_NEVER;
	pthread_mutex_unlock(&w->lock);
	return pause;
}

rwy_dur ctlr_http_resume_some(struct ctlr_http_worker *w, rwy_time now, bool at_once)
{
	const rwy_dur pause = pause_of(w), since = rwy_since(w->resumed, now);
	struct ctlr_req *list, *next;

	if (pause == RWY_NEVER)
		return RWY_NEVER;
	if (since < pause && !at_once)
		return pause - since;
	list = next_ready(w, at_once ? w->suspended : TOGETHER + w->suspended / TOGETHER);
	for (struct ctlr_req *r = list; r; r = next) {
		next = r->next; /* resuming gives r to the library, which may free it */
		MHD_resume_connection(r->connection);
		w->suspended--;
		atomic_fetch_sub_explicit(&w->c->counters.waiting, 1, memory_order_relaxed);
	}
	w->resumed = now;
	return pause;
}

static void continue_request(struct ctlr_req *r)
{
	if (!r->waiting)
		return;
	r->waiting = false;
	queue_resumed(r->worker, r);
}

void ctlr_req_finish(struct ctlr_req *r)
{
	ctlr_req_release(r);
	r->finished = true;
	continue_request(r);
}

void ctlr_req_resume(struct ctlr_req *r)
{
	r->status = 0;
	continue_request(r);
}
