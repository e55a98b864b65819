/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a flow's plots: points, thinned out when there are too many, and bytes over time.
 */
#include <stdlib.h>

#include "tools/analyze/requester.h"

#define BIN_MIN RWY_MS

static bool is_plain(uint8_t mark)
{
	return mark == AN_MARK_SENT || mark == AN_MARK_RESENT || mark == AN_MARK_ACK;
}

/*
 * Keeps every second plain point, and from now on half as many as before. Events all stay, until
 * hardly anything else is left: then the drawing ends.
 */
static void thin_out(struct an_flow *f)
{
	size_t kept = 0, plain = 0;

	for (size_t i = 0; i < f->points; i++)
		if (!is_plain(f->point[i].mark) || plain++ % 2 == 0)
			f->point[kept++] = f->point[i];
	if (kept > f->points - f->points / 8) {
		f->rq->points_max = 0;
		return;
	}
	f->points = kept;
	f->rq->point_stride *= 2;
}

void an_point_add(struct an_flow *f, uint64_t psn, enum an_mark mark, rwy_time now)
{
	struct an_requester *q = f->rq;

	if (!q->points_max || (is_plain((uint8_t)mark) && q->points_seen++ % q->point_stride))
		return;
	if (!f->point && !(f->point = calloc(q->points_max, sizeof(*f->point))))
		return;
	if (f->points == q->points_max)
		thin_out(f);
	if (f->points < q->points_max)
		f->point[f->points++] = (struct an_point){now, psn, (uint8_t)mark};
}

void an_bins_add(struct an_flow *f, uint32_t bytes, bool again, rwy_time now)
{
	struct an_bins *b = &f->bins;
	rwy_dur since = rwy_since(f->first, now);

	if (!b->width)
		b->width = BIN_MIN;
	while (since / b->width >= AN_BINS) {
		for (unsigned i = 0; i < AN_BINS / 2; i++) {
			b->fresh[i] = b->fresh[2 * i] + b->fresh[2 * i + 1];
			b->again[i] = b->again[2 * i] + b->again[2 * i + 1];
		}
		for (unsigned i = AN_BINS / 2; i < AN_BINS; i++)
			b->fresh[i] = b->again[i] = 0;
		b->width *= 2;
	}
	*(again ? &b->again[since / b->width] : &b->fresh[since / b->width]) += bytes;
}
