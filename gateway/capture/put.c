/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's packets into its ring. */
#include <string.h>
#include <unistd.h>

#include "gateway/capture/capture.h"

static void count(_Atomic uint64_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

static bool within_rate(struct gw_capture *c)
{
	return !c->limited || atomic_fetch_sub_explicit(&c->budget, 1, memory_order_relaxed) > 0;
}

struct gw_cap_rec *gw_cap_place(struct gw_cap_worker *cw, uint32_t wire_len)
{
	return gw_cap_ring_room(&cw->ring, wire_len < cw->cap->snap ? wire_len : cw->cap->snap);
}

bool gw_cap_keep(struct gw_cap_worker *cw, struct gw_cap_rec *r, uint32_t end, const struct gw_cap_facts *f,
    unsigned port, rwy_time now, uint32_t wire_len)
{
	const unsigned i = gw_cap_if(port, f->stage);
	const bool may = within_rate(cw->cap);

	count(&cw->taken[i]);
	if (!r || !may) {
		cw->c->capture_lost += may;
		cw->c->capture_over_rate += !may;
		count(&cw->lost[i]);
		if (r)
			r->skip = true;
		return false;
	}
	cw->c->capture_packets++;
	r->port = (uint8_t)port;
	r->wire_len = wire_len;
	r->time = now;
	r->facts = *f;
	if ((int32_t)(end - cw->kept) > 0)
		cw->kept = end;
	return true;
}

void gw_cap_publish(struct gw_cap_worker *cw)
{
	if (cw->open)
		return;
	cw->ring.next = cw->kept; /* what is behind it was refused */
	gw_cap_ring_publish(&cw->ring);
	if (gw_cap_ring_used(&cw->ring) > cw->ring.size / 4 &&
	    atomic_load_explicit(&cw->cap->asleep, memory_order_relaxed) &&
	    atomic_exchange(&cw->cap->asleep, false) && write(cw->cap->wake_fd, &(uint64_t){1}, 8) < 0)
		return; /* a full counter wakes as well */
}

void gw_cap_put(struct gw_cap_worker *cw, const struct gw_cap_facts *f, unsigned port, rwy_time now,
    const struct iovec *part, unsigned parts)
{
	struct gw_cap_rec *r;
	uint32_t all = 0, at = 0;

	if (!gw_cap_filter_takes(&cw->cap->filter, f))
		return;
	for (unsigned i = 0; i < parts; i++)
		all += (uint32_t)part[i].iov_len;
	r = gw_cap_place(cw, all);
	if (!gw_cap_keep(cw, r, cw->ring.next, f, port, now, all))
		return;
	for (unsigned i = 0; i < parts && at < r->len; i++) {
		const uint32_t left = r->len - at;
		const uint32_t n = part[i].iov_len < left ? (uint32_t)part[i].iov_len : left;

		memcpy(gw_cap_rec_bytes(r) + at, part[i].iov_base, n);
		at += n;
	}
	gw_cap_publish(cw);
}
