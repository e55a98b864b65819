/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters that tell what became of a captured frame. After each frame all that say something are
 * compared with what they were, in lanes; only when one did change is it looked for.
 */
#include <string.h>

#include "gateway/datapath/capture_int.h"
#include "gateway/datapath/edge.h"
#include "gateway/datapath/overlay.h"
#include "tenant/tenant.h"

typedef uint64_t lanes __attribute__((vector_size(32), aligned(8), may_alias));

/* One group's counters, of which `hot` is the one that ordinary packets count; 0: none is. */
struct group {
	const void *now;
	unsigned first, n;
	uint16_t hot;
};

#define HOT(first, type, field) ((uint16_t)((first) + offsetof(type, field) / 8))

/* Once a capture and worker. */
static void watch_make(struct gw_cap_worker *cw, struct gw_worker *w)
{
	struct gw_cap_watch *v = &cw->watch;

	cw->c = &w->c;
	for (unsigned i = 1; i < GW_CAP_REASONS; i++) {
		v->says[i] = (uint8_t)gw_cap_reason_says(i);
		v->asked[i] = v->says[i] == GW_CAP_SAYS_NOTHING ? 0 : UINT64_MAX;
	}
	v->asked[HOT(GW_CAP_OF_ENGINE, struct eng_counters, accepted)] = 0;
	v->asked[HOT(GW_CAP_OF_TUNNEL, struct wan_counters, rx_data)] = 0;
	v->made = true;
}

struct gw_cap_worker *gw_cap_part(struct gw_worker *w)
{
	if (__builtin_expect(!w->cap->watch.made, 0))
		watch_make(w->cap, w);
	return w->cap;
}

/* The groups that may count while a frame is handled. */
static unsigned groups_of(struct gw_worker *w, int tunnel, struct group g[5])
{
	const struct wan_counters *wan = tunnel < 0 ? NULL : eng_tunnel_counters(w->eng, (unsigned)tunnel);
	unsigned n = 0;

	g[n++] = (struct group){&w->c, GW_CAP_OF_GATEWAY, sizeof(w->c) / 8, 0};
	if (w->ts->n)
		g[n++] = (struct group){&w->ov->c, GW_CAP_OF_OVERLAY, sizeof(w->ov->c) / 8, 0};
	g[n++] = (struct group){eng_counters(w->eng), GW_CAP_OF_ENGINE, sizeof(struct eng_counters) / 8,
	    HOT(GW_CAP_OF_ENGINE, struct eng_counters, accepted)};
	if (w->edge)
		g[n++] =
		    (struct group){&w->edge->core.c, GW_CAP_OF_RELAY, sizeof(struct proxy_counters) / 8, 0};
	if (wan)
		g[n++] = (struct group){wan, GW_CAP_OF_TUNNEL, sizeof(*wan) / 8,
		    HOT(GW_CAP_OF_TUNNEL, struct wan_counters, rx_data)};
	return n;
}

static void watch_sync(struct gw_cap_watch *v, const struct group *g)
{
	memcpy(v->before + g->first, g->now, (size_t)g->n * 8);
}

void gw_cap_watch_begin(struct gw_worker *w, struct gw_cap_worker *cw)
{
	struct group g[5];
	const unsigned n = groups_of(w, -1, g);

	for (unsigned i = 0; i < n; i++)
		watch_sync(&cw->watch, &g[i]);
}

void gw_cap_watch_tunnel(struct gw_worker *w, struct gw_cap_worker *cw, int tunnel)
{
	struct group g[5];
	const unsigned n = tunnel < 0 ? 0 : groups_of(w, tunnel, g);

	if (n && g[n - 1].first == GW_CAP_OF_TUNNEL)
		watch_sync(&cw->watch, &g[n - 1]);
}

/* Whether a counter that is asked for changed. */
static bool changed(const struct gw_cap_watch *v, const struct group *g)
{
	const uint64_t *now = g->now, *before = v->before + g->first, *asked = v->asked + g->first;
	lanes d = {0};
	uint64_t rest = 0;
	unsigned i = 0;

	for (; i + 4 <= g->n; i += 4)
		d |= (*(const lanes *)(now + i) ^ *(const lanes *)(before + i)) & *(const lanes *)(asked + i);
	for (; i < g->n; i++)
		rest |= (now[i] ^ before[i]) & asked[i];
	return rest | d[0] | d[1] | d[2] | d[3];
}

/* The drop that the group counted; else what else it did. */
static void group_read(
    struct gw_cap_watch *v, const struct group *g, enum gw_cap_says *says, uint16_t *reason)
{
	const uint64_t *now = g->now;

	for (unsigned i = 0; i < g->n; i++) {
		const unsigned r = g->first + i;
		const enum gw_cap_says s = (enum gw_cap_says)v->says[r];

		if (now[i] == v->before[r] || s == GW_CAP_SAYS_NOTHING)
			continue;
		v->before[r] = now[i];
		if (*says == GW_CAP_SAYS_DROP || (*says && s != GW_CAP_SAYS_DROP))
			continue;
		*says = s;
		*reason = (uint16_t)r;
	}
}

enum gw_cap_says gw_cap_watch_read(
    struct gw_worker *w, struct gw_cap_worker *cw, int tunnel, uint16_t *reason)
{
	enum gw_cap_says says = GW_CAP_SAYS_NOTHING;
	struct gw_cap_watch *v = &cw->watch;
	struct group g[5];
	const unsigned n = groups_of(w, tunnel, g);

	*reason = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint64_t hot = g[i].hot ? ((const uint64_t *)g[i].now)[g[i].hot - g[i].first] : 0;

		if (changed(v, &g[i])) {
			group_read(v, &g[i], &says, reason);
		} else if (g[i].hot && hot != v->before[g[i].hot]) {
			v->before[g[i].hot] = hot;
			if (!says) {
				says = GW_CAP_SAYS_MORE;
				*reason = g[i].hot;
			}
		}
	}
	return says;
}
