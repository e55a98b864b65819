/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a capture that workers have. The thread that begins a capture touches its memory. A
 * new page waits for the kernel, and on a virtual machine for its host: workers must not.
 */
#include "gateway/capture/capture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define RINGS     (32u << 20)  /* bytes of all rings, */
#define RING_MIN  (256u << 10) /*   of one at least, */
#define RING_MAX  (4u << 20)   /*   and at most */
#define HUGE_PAGE (2u << 20)

void gw_capture_release(void *capture)
{
	struct gw_capture *c = capture;

	if (!c || atomic_fetch_sub(&c->holders, 1) > 1)
		return;
	for (unsigned i = 0; i < c->workers; i++) {
		if (c->worker[i])
			free(c->worker[i]->ring.mem);
		free(c->worker[i]);
	}
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	free(c);
}

void *gw_cap_zeroed(size_t size)
{
	const size_t align = size < HUGE_PAGE ? 64 : HUGE_PAGE;
	void *m = aligned_alloc(align, (size + align - 1) & ~(align - 1));

	if (m && align == HUGE_PAGE)
		(void)madvise(m, size, MADV_HUGEPAGE); /* without, it is slower */
	if (m)
		memset(m, 0, size);
	return m;
}

static uint32_t ring_size(unsigned workers)
{
	uint32_t size = RING_MAX;

	while (size > RING_MIN && (uint64_t)size * workers > RINGS)
		size /= 2;
	return size;
}

static struct gw_cap_worker *worker_new(struct gw_capture *c)
{
	struct gw_cap_worker *w = gw_cap_zeroed(sizeof(*w));

	if (!w)
		return NULL;
	w->cap = c;
	w->ring.size = ring_size(c->workers);
	w->ring.mem = gw_cap_zeroed(w->ring.size);
	if (w->ring.mem)
		return w;
	free(w);
	return NULL;
}

struct gw_capture *gw_capture_new(const struct gw_app *app, const struct gw_cap_cfg *cfg)
{
	struct gw_capture *c = gw_cap_zeroed(sizeof(*c));

	if (!c)
		return NULL;
	c->filter = cfg->filter;
	c->snap = cfg->snap;
	c->limited = cfg->rate != 0;
	c->workers = app->workers;
	atomic_store(&c->holders, 1);
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake_fd < 0) {
		gw_capture_release(c);
		return NULL;
	}
	for (unsigned i = 0; i < c->workers; i++)
		if (!(c->worker[i] = worker_new(c))) {
			gw_capture_release(c);
			return NULL;
		}
	return c;
}
