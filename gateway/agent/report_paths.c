/* SPDX-License-Identifier: Apache-2.0 */
/* What goes along the paths that networks granted: a part of the report of links (report.c). */
#include <stdlib.h>
#include <string.h>

#include "gateway/agent/internal.h"

struct look {
	struct wan_path_stats s[1 + CONF_PATHS_MAX];
	unsigned tunnel, paths;
};

static void look_at(struct eng *e, void *arg)
{
	struct look *l = arg;

	for (unsigned i = 0; i < l->paths; i++)
		(void)eng_path_stats(e, l->tunnel, i, &l->s[i]);
}

/* One path, of all workers. */
struct path {
	uint64_t sent;
	rwy_dur srtt;
	uint32_t loss_ppm;
	bool answers;
};

static void path_add(struct path *p, const struct wan_path_stats *s)
{
	static const char *const mute[] = {"off", "unproven", "silent"};

	p->sent += s->tx_bytes;
	p->srtt = rwy_time_max(p->srtt, s->srtt);
	p->loss_ppm = s->loss_ppm > p->loss_ppm ? s->loss_ppm : p->loss_ppm;
	for (unsigned i = 0; i < sizeof(mute) / sizeof(*mute); i++)
		p->answers = p->answers && s->state && strcmp(s->state, mute[i]) != 0;
}

/* bit/s since the last report; 0: this is the first, or the path has begun anew. */
static uint64_t rate_of(struct ctrl_sent *was, uint64_t sent, rwy_time now)
{
	const rwy_dur took = rwy_since(was->at, now);
	uint64_t bps = 0;

	if (was->at && took >= RWY_MS && sent >= was->bytes)
		bps = (uint64_t)((unsigned __int128)(sent - was->bytes) * 8 * RWY_SEC / took);
	*was = (struct ctrl_sent){sent, now};
	return bps;
}

static json_t *path_json(const struct conf_path *c, const struct path *p, uint64_t bps)
{
	return json_pack("{s:s, s:b, s:I, s:I, s:I}", "label", c->label, "answers", p->answers, "rate_bps",
	    (json_int_t)bps, "rtt_us", (json_int_t)(p->srtt / RWY_US), "loss_ppm",
	    (json_int_t)(p->loss_ppm > 1000000 ? 1000000 : p->loss_ppm));
}

json_t *ctrl_paths(struct gw_ctrl *k, unsigned tunnel, rwy_time now)
{
	const struct conf_tunnel *t = &k->app->conf->tunnel[tunnel];
	struct look *l = t->paths ? calloc(1, sizeof(*l)) : NULL;
	struct path v[1 + CONF_PATHS_MAX] = {0};
	json_t *list;

	if (!l)
		return NULL;
	l->tunnel = tunnel;
	l->paths = 1 + t->paths;
	for (unsigned i = 0; i < l->paths; i++)
		v[i].answers = true;
	for (unsigned w = 0; w < k->app->workers; w++) {
		memset(l->s, 0, sizeof(l->s));
		if (gw_call(k->app, w, look_at, l) != 0)
			break;
		for (unsigned i = 0; i < l->paths; i++)
			path_add(&v[i], &l->s[i]);
	}
	free(l);
	list = json_array();
	for (unsigned i = 1; i <= t->paths; i++) {
		const struct conf_path c = conf_tunnel_path(t, i);
		const uint64_t bps = rate_of(&k->sent[tunnel][i - 1], v[i].sent, now);

		if (*c.label && c.use != CONF_USE_NEVER)
			json_array_append_new(list, path_json(&c, &v[i], bps));
	}
	if (json_array_size(list))
		return list;
	json_decref(list);
	return NULL;
}
