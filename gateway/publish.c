/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The publisher around rte_rcu_qsbr. Objects wait for their end in a list of our own:
 * rte_rcu_qsbr_dq has a fixed size and may refuse one, and is experimental in DPDK 22.11.
 */
#include "gateway/publish.h"

#include <rte_rcu_qsbr.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateway/app.h"

#define WAIT_NAP (20 * RWY_US)

/* An object that the publisher is to free. */
struct gw_publication {
	struct gw_publication *next;
	const void *object;
	void (*free_fn)(void *);
	uint64_t token; /* it was replaced then */
};

/* --- readers --------------------------------------------------------------------------------- */

void gw_reader_join(struct gw_publisher *p, unsigned reader)
{
	/* fails for a number out of range only */
	(void)rte_rcu_qsbr_thread_register(p->qs, reader);
	rte_rcu_qsbr_thread_online(p->qs, reader);
}

void gw_reader_leave(struct gw_publisher *p, unsigned reader)
{
	rte_rcu_qsbr_thread_offline(p->qs, reader);
	/*
	 * A writer does not look at a reader that is not registered. DPDK's library orders that,
	 * but it is built without the thread sanitizer, which needs the lock to see the order.
	 */
	pthread_mutex_lock(&p->lock);
	(void)rte_rcu_qsbr_thread_unregister(p->qs, reader);
	pthread_mutex_unlock(&p->lock);
}

void gw_reader_quiescent(struct gw_publisher *p, unsigned reader)
{
	rte_rcu_qsbr_quiescent(p->qs, reader);
}

void gw_reader_offline(struct gw_publisher *p, unsigned reader)
{
	rte_rcu_qsbr_thread_offline(p->qs, reader);
}

void gw_reader_online(struct gw_publisher *p, unsigned reader)
{
	rte_rcu_qsbr_thread_online(p->qs, reader);
}

/* --- writers --------------------------------------------------------------------------------- */

static void publication_free(struct gw_publication *b)
{
	if (b)
		b->free_fn((void *)(uintptr_t)b->object);
	free(b);
}

uint64_t gw_publish(
    struct gw_publisher *p, enum gw_published what, const void *object, void (*free_fn)(void *))
{
	struct gw_publication *b = free_fn ? malloc(sizeof(*b)) : NULL, *old;
	uint64_t token;

	if (free_fn && !b)
		return 0;
	if (b)
		*b = (struct gw_publication){.object = object, .free_fn = free_fn};
	pthread_mutex_lock(&p->lock);
	atomic_store_explicit(&p->slot[what], object, memory_order_release);
	token = rte_rcu_qsbr_start(p->qs);
	old = p->current[what];
	p->current[what] = b;
	if (old) {
		old->token = token;
		old->next = p->retired;
		p->retired = old;
	}
	pthread_mutex_unlock(&p->lock);
	return token;
}

/* Under the lock: rte_rcu_qsbr_check remembers what it found without one. */
static bool token_passed(struct gw_publisher *p, uint64_t token)
{
	return rte_rcu_qsbr_check(p->qs, token, false) != 0;
}

bool gw_publish_passed(struct gw_publisher *p, uint64_t token)
{
	bool passed;

	pthread_mutex_lock(&p->lock);
	passed = token_passed(p, token);
	pthread_mutex_unlock(&p->lock);
	return passed;
}

bool gw_publish_wait(struct gw_publisher *p, uint64_t token, rwy_dur at_most)
{
	const rwy_time end = gw_now() + at_most;

	while (!gw_publish_passed(p, token)) {
		if (gw_now() > end)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NAP}, NULL);
	}
	return true;
}

static void retired_free(struct gw_publication *b)
{
	while (b) {
		struct gw_publication *next = b->next;

		publication_free(b);
		b = next;
	}
}

void gw_publisher_reap(struct gw_publisher *p)
{
	struct gw_publication *done, **at = &p->retired;

	pthread_mutex_lock(&p->lock);
	while (*at && !token_passed(p, (*at)->token))
		at = &(*at)->next;
	done = *at; /* and all that are older */
	*at = NULL;
	pthread_mutex_unlock(&p->lock);
	retired_free(done);
}

/* --- life ------------------------------------------------------------------------------------ */

static void *lines_new(size_t size)
{
	void *m = aligned_alloc(64, (size + 63) & ~(size_t)63);

	if (m)
		memset(m, 0, size);
	return m;
}

int gw_publisher_new(struct gw_publisher **out, unsigned readers)
{
	struct gw_publisher *p = lines_new(sizeof(*p));

	if (!p)
		return RWY_ENOMEM;
	p->qs = lines_new(rte_rcu_qsbr_get_memsize(readers));
	if (!p->qs || rte_rcu_qsbr_init(p->qs, readers) != 0) {
		free(p->qs);
		free(p);
		return RWY_ENOMEM;
	}
	pthread_mutex_init(&p->lock, NULL);
	*out = p;
	return 0;
}

void gw_publisher_free(struct gw_publisher *p)
{
	if (!p)
		return;
	retired_free(p->retired);
	for (unsigned i = 0; i < GW_PUBLISHED; i++)
		publication_free(p->current[i]);
	pthread_mutex_destroy(&p->lock);
	free(p->qs);
	free(p);
}
