/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a flow by PSN, and a kept packet parsed. */
#include "tools/replay/tape.h"

static int by_psn(const void *a, const void *b)
{
	const struct rp_raw *x = a, *y = b;

	if (x->psn != y->psn)
		return x->psn < y->psn ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

void rp_tape_sort(struct rp_tape *t)
{
	uint32_t n = 0;

	if (!t->n)
		return;
	qsort(t->v, t->n, sizeof(*t->v), by_psn);
	for (uint32_t i = 0; i < t->n; i++)
		if (!n || t->v[i].psn != t->v[n - 1].psn)
			t->v[n++] = t->v[i];
	t->n = n;
}

const struct rp_raw *rp_tape_find(const struct rp_tape *t, int32_t psn)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (t->v[mid].psn < psn)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n && t->v[low].psn == psn ? &t->v[low] : NULL;
}

void rp_packet_get(const struct rp_schedule *s, const struct rp_pkt *p, struct roce_pkt *out)
{
	/* It parsed when it was kept. */
	(void)roce_parse(s->bytes + p->off, p->len, out);
}
