/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's edge for other threads. */
#include "gateway/datapath/edge.h"
#include "gateway/relay.h"

bool gw_relay_counters_get(const struct gw_app *app, struct proxy_counters *out)
{
	const struct gw_worker *w = app->worker[0];

	if (!w || !w->edge)
		return false;
#define X(f, s) out->f = *(const volatile uint64_t *)&w->edge->core.c.f;
	PROXY_COUNTERS(X)
#undef X
	return true;
}

struct gw_link_name gw_link_of(const struct gw_worker *w, const struct eng_session *s)
{
	const struct proxy_link *l =
	    w->edge ? proxy_map_out(w->edge->core.map, &s->remote, &s->local, s->local_qpn) : NULL;

	return l ? (struct gw_link_name){l->id, l->relay} : (struct gw_link_name){0};
}

struct links_ask {
	const struct gw_edge *edge;
	uint32_t cursor;
	unsigned n;
	struct proxy_link *out;
	struct proxy_map_now *now;
};

static void links_copy(struct eng *e, void *arg)
{
	struct links_ask *a = arg;
	const struct proxy_link *l = NULL;

	proxy_map_count(a->edge->core.map, a->now);
	while (a->cursor != UINT32_MAX && a->n < GW_LINKS_MAX &&
	       (l = proxy_map_next(a->edge->core.map, &a->cursor)))
		a->out[a->n++] = *l;
	if (!l)
		a->cursor = UINT32_MAX;
}

int gw_links_get(
    struct gw_app *app, uint32_t *cursor, struct proxy_link out[GW_LINKS_MAX], struct proxy_map_now *now)
{
	struct gw_worker *w = app->worker[0];
	struct links_ask a = {.edge = w ? w->edge : NULL, .cursor = *cursor, .out = out, .now = now};
	int rc;

	if (!a.edge)
		return RWY_ENOENT;
	rc = gw_call(app, 0, links_copy, &a);
	if (rc)
		return rc;
	*cursor = a.cursor;
	return (int)a.n;
}
