/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved bandwidth of tunnels: see reserve.h. The records of jobs are the truth; this is an index to them.
 */
#include "controller/state/reserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/work.h"

struct part {
	const struct job *job;
	struct reserve r;
	struct part *next;
};

struct reserved {
	struct map_node node;
	char tunnel[2 * MDL_NAME];
	struct part *part; /* list */
};

static uint32_t worst(const json_t *entry, const char *key)
{
	uint64_t v = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i, leg) if (mdl_number_of(leg, key) > v) v =
	    mdl_number_of(leg, key);
	return (uint32_t)v;
}

static struct reserved *need(struct ctlr *c, const char *tunnel)
{
	struct reserved *x = map_find(&c->reserved, tunnel);

	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	snprintf(x->tunnel, sizeof(x->tunnel), "%s", tunnel);
	if (map_add(&c->reserved, &x->node, x->tunnel)) {
		free(x);
		return NULL;
	}
	return x;
}

static void add_part(
    struct ctlr *c, const struct job *j, const char *tunnel, const json_t *entry, uint64_t bps)
{
	struct reserved *x = need(c, tunnel);
	struct part *p = x ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return;
	p->job = j;
	p->r = (struct reserve){.bps = bps,
	    .delay_us = worst(entry, "delay_us"),
	    .jitter_us = worst(entry, "jitter_us"),
	    .loss_ppm = worst(entry, "loss_ppm"),
	    .at_ms = mdl_number_of(entry, "granted_ms")};
	p->next = x->part;
	x->part = p;
}

static void del_parts(struct ctlr *c, const struct job *j, const char *tunnel)
{
	struct reserved *x = map_find(&c->reserved, tunnel);

	for (struct part **p = x ? &x->part : NULL, *q; p && (q = *p);) {
		if (q->job != j) {
			p = &q->next;
			continue;
		}
		*p = q->next;
		free(q);
	}
	if (!x || x->part)
		return;
	map_del(&c->reserved, &x->node);
	free(x);
}

void reserve_job(struct ctlr *c, const struct job *j, bool add)
{
	json_t *n, *bps;
	const char *tunnel;
	struct tunnel *t;
	size_t i;

	json_array_foreach(json_object_get(j->json, "network"), i, n)
	    json_object_foreach(json_object_get(n, "pairs"), tunnel, bps)
	{
		if (add && json_integer_value(bps) > 0)
			add_part(c, j, tunnel, n, (uint64_t)json_integer_value(bps));
		else
			del_parts(c, j, tunnel);
		t = map_find(&c->tunnels, tunnel);
		if (t)
			tunnel_plan(c, t);
	}
}

void reserve_of(const struct ctlr *c, const char *tunnel, struct reserve *out)
{
	const struct reserved *x = map_find(&c->reserved, tunnel);

	memset(out, 0, sizeof(*out));
	for (const struct part *p = x ? x->part : NULL; p; p = p->next) {
		const struct reserve *r = &p->r;

		out->bps += r->bps;
		out->delay_us = r->delay_us > out->delay_us ? r->delay_us : out->delay_us;
		out->jitter_us = r->jitter_us > out->jitter_us ? r->jitter_us : out->jitter_us;
		out->loss_ppm = r->loss_ppm > out->loss_ppm ? r->loss_ppm : out->loss_ppm;
		out->at_ms = r->at_ms > out->at_ms ? r->at_ms : out->at_ms;
	}
}

bool reserve_obs(const struct ctlr *c, const char *tunnel, struct plan_obs *out, rwy_time now)
{
	const uint64_t wall = ctlr_wall_ms();
	struct reserve r;
	rwy_dur age;

	reserve_of(c, tunnel, &r);
	if (!r.bps)
		return false;
	age = wall > r.at_ms ? (wall - r.at_ms) * RWY_MS : 0;
	age = age < now ? age : now; /* our clock began later */
	*out = (struct plan_obs){.source = RESERVE_SOURCE,
	    .pushed = true,
	    .carrier = PLAN_ANY,
	    .cls = PLAN_RESERVED,
	    .has = PLAN_HAS_BANDWIDTH | PLAN_HAS_RTT | PLAN_HAS_JITTER | PLAN_HAS_LOSS,
	    .at = now - age,
	    .ttl = age + RWY_SEC, /* as long as the job is there */
	    .bandwidth_bps = r.bps,
	    .rtt_us = 2 * (r.delay_us < PLAN_US_MAX / 2 ? r.delay_us : PLAN_US_MAX / 2),
	    .jitter_us = r.jitter_us,
	    .loss_ppm = r.loss_ppm};
	return true;
}

void reserve_list(struct ctlr *c, json_t *list)
{
	const uint64_t now = ctlr_wall_ms();
	struct job *j;
	json_t *n;
	size_t i;

	MAP_EACH(&c->jobs, j)
	json_array_foreach(json_object_get(j->json, "network"), i, n)
	{
		const uint64_t at = mdl_number_of(n, "granted_ms");

		json_t *one = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "job", j->name, "source",
		    "reserved", "delay_us", (json_int_t)worst(n, "delay_us"), "jitter_us",
		    (json_int_t)worst(n, "jitter_us"), "loss_ppm", (json_int_t)worst(n, "loss_ppm"), "age_ms",
		    (json_int_t)(now > at ? now - at : 0));

		json_object_set_new(one, "name", json_copy(json_object_get(n, "name")));
		json_object_set_new(one, "site_a", json_copy(json_object_get(n, "first")));
		json_object_set_new(one, "site_b", json_copy(json_object_get(n, "second")));
		json_object_set_new(one, "bandwidth_bps", json_copy(json_object_get(n, "bandwidth_bps")));
		json_array_append_new(list, one);
	}
}

void reserve_free(struct ctlr *c)
{
	map_free(&c->reserved); /* jobs took theirs along */
}
