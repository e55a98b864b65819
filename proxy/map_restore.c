/* SPDX-License-Identifier: Apache-2.0 */
/* Makes links again of what an earlier process left in the table's journal (journal.h). */
#include <stdlib.h>

#include "proxy/journal.h"
#include "proxy/map_int.h"

struct left {
	uint64_t born;
	uint32_t place;
	uint8_t record; /* the one that counts */
};

static int by_birth(const void *a, const void *b)
{
	const struct left *x = a, *y = b;

	return x->born < y->born ? -1 : x->born > y->born;
}

/* Another link has its alias, or its communication ID. */
static bool contradicts(const struct proxy_map *m, const struct proxy_link *l)
{
	const struct proxy_cm_key in = {l->local, l->relay, l->comm_a, l->local_active},
	                          out = {l->remote, l->local, l->comm_a, l->local_active};

	if (l->alias && proxy_map_in(m, &l->relay, l->alias))
		return true;
	return !l->pair && (proxy_map_cm_in(m, &in) || proxy_map_cm_out(m, &out));
}

int proxy_map_restore(struct proxy_map *m, bool (*fits)(void *ctx, struct proxy_link *l), void *ctx,
    struct proxy_restored *out, rwy_time now)
{
	struct left *v = NULL;
	uint32_t n = 0;

	*out = (struct proxy_restored){0};
	if (!m->cfg.journal)
		return 0;
	v = calloc(m->cfg.links_max, sizeof(*v));
	if (!v)
		return RWY_ENOMEM;
	for (uint32_t i = 0; i < m->cfg.links_max; i++) {
		struct proxy_record *two = proxy_map_records(m, i);
		const int k = proxy_record_latest(two);

		if (k >= 0) {
			v[n++] = (struct left){two[k].born, i, (uint8_t)k};
		} else if (!proxy_record_none(two)) {
			out->broken++;
			proxy_record_erase(two, 0);
		}
	}
	/* The newest link of a queue pair is found first. */
	qsort(v, n, sizeof(*v), by_birth);
	for (uint32_t i = 0; i < n; i++) {
		struct proxy_record *two = proxy_map_records(m, v[i].place);
		struct proxy_link l;

		m->born = v[i].born;
		if (!proxy_record_read(&two[v[i].record], &l) || contradicts(m, &l)) {
			out->broken++;
		} else if (!fits(ctx, &l)) {
			out->refused++;
		} else {
			out->links++;
			proxy_map_put(m, v[i].place, &l, (enum proxy_state)l.state, now)->noted =
			    v[i].record + 1;
			continue;
		}
		proxy_record_erase(two, v[i].record);
	}
	free(v);
	return 0;
}
