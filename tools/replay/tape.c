/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a flow by PSN, and a kept packet parsed. */
#include "tools/replay/tape.h"

#include <string.h>

static int by_psn(const void *a, const void *b)
{
	const struct rp_raw *x = a, *y = b;

	if (x->psn != y->psn)
		return x->psn < y->psn ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

/* The PSN in a packet, unwrapped by one that is not far from it. */
static int64_t unwrap(int64_t near, int64_t psn)
{
	return near + roce_psn_diff((uint32_t)psn & ROCE_PSN_MASK, (uint32_t)near & ROCE_PSN_MASK);
}

static void sort(struct rp_tape *t)
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

uint64_t rp_tape_other(const struct rp_schedule *s, const struct rp_tape *t, uint32_t pmtu, uint32_t reads)
{
	int64_t psn = 0, highest = 0, longest = 0;
	struct roce_pkt pkt;

	for (uint32_t i = 0; i < t->n; i++) {
		int64_t span = 1;

		psn = i ? unwrap(psn, t->v[i].psn) : t->v[i].psn;
		if (i && psn < highest - 2 * (int64_t)ROCE_OUTSTANDING_MAX - reads * longest)
			return t->v[i].seq;
		rp_packet_get(s, &t->v[i].pkt, &pkt);
		if (pkt.info->op == ROCE_OP_READ_REQ)
			span = roce_read_packets(roce_reth_len(&pkt), pmtu);
		longest = span > longest ? span : longest;
		highest = i && psn + span < highest ? highest : psn + span;
	}
	return UINT64_MAX;
}

uint32_t rp_tape_end(struct rp_tape *t, uint64_t seq)
{
	const uint32_t n = t->n;

	while (t->n && t->v[t->n - 1].seq >= seq)
		t->n--;
	return n - t->n;
}

/* What came before these requests answers others: of another flow, or before the capture. */
static void begin_at(struct rp_tape *answers, uint64_t seq)
{
	uint32_t n = 0;

	while (n < answers->n && answers->v[n].seq < seq)
		n++;
	answers->n -= n;
	memmove(answers->v, answers->v + n, answers->n * sizeof(*answers->v));
}

void rp_tapes_sort(struct rp_tape *requests, struct rp_tape *answers)
{
	const struct rp_raw *q = requests->v;
	uint32_t newest = 0;

	if (answers && answers->n)
		begin_at(answers, q[0].seq);
	for (uint32_t i = 1; i < requests->n; i++)
		requests->v[i].psn = unwrap(q[i - 1].psn, q[i].psn);
	for (uint32_t i = 0; answers && i < answers->n; i++) {
		struct rp_raw *a = &answers->v[i];

		while (newest + 1 < requests->n && q[newest + 1].seq < a->seq)
			newest++;
		a->psn = unwrap(q[newest].psn, a->psn);
	}
	sort(requests);
	if (answers)
		sort(answers);
}

const struct rp_raw *rp_tape_from(const struct rp_tape *t, int64_t psn)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (t->v[mid].psn < psn)
			low = mid + 1;
		else
			high = mid;
	}
	return low < t->n ? &t->v[low] : NULL;
}

const struct rp_raw *rp_tape_find(const struct rp_tape *t, int64_t psn)
{
	const struct rp_raw *r = rp_tape_from(t, psn);

	return r && r->psn == psn ? r : NULL;
}

void rp_packet_get(const struct rp_schedule *s, const struct rp_pkt *p, struct roce_pkt *out)
{
	/* It parsed when it was kept. */
	(void)roce_parse(s->bytes + p->off, p->len, out);
}
