/* SPDX-License-Identifier: Apache-2.0 */
/* The bottleneck; see line.h. */
#include "tests/sim/wan/line.h"
#include "tests/lib/rng.h"

/* Between two packets the queue only shrinks: its area is a triangle, cut off at `now`. */
static void area_until(struct line *l, double now)
{
	double dt = now - l->at, wait = l->busy - l->at;

	if (dt <= 0)
		return;
	if (wait > 0)
		l->area += wait > dt ? dt * (wait - dt / 2) : wait * wait / 2;
	l->at = now;
}

static bool marked(struct line *l, double queue)
{
	if (l->mark <= 0 || queue <= l->mark)
		return false;
	return queue >= 2 * l->mark || rng_unit(&l->rng) < (queue - l->mark) / l->mark;
}

rwy_time line_send(struct line *l, uint32_t bytes, bool *ce, rwy_time now)
{
	double start = l->busy > (double)now ? l->busy : (double)now;
	double queue = (start - (double)now) / l->ns_byte;

	area_until(l, (double)now);
	if (l->queue > 0 && queue + bytes > l->queue) {
		l->drops++;
		return RWY_NEVER;
	}
	if (ce) {
		*ce = marked(l, queue);
		l->marks += *ce;
	}
	l->busy = start + bytes * l->ns_byte;
	if (queue + bytes > l->most)
		l->most = queue + bytes;
	return (rwy_time)l->busy;
}

double line_queue(const struct line *l, rwy_time now)
{
	return l->busy > (double)now ? (l->busy - (double)now) / l->ns_byte : 0;
}

void line_measure(struct line *l, rwy_time now)
{
	area_until(l, (double)now);
	l->from = now;
	l->area = 0;
	l->most = line_queue(l, now);
	l->drops = l->marks = 0;
}

double line_queue_mean(struct line *l, rwy_time now)
{
	area_until(l, (double)now);
	return now > l->from ? l->area / (double)(now - l->from) : 0;
}
