/* SPDX-License-Identifier: Apache-2.0 */
/* Reserved bandwidth of tunnels; see reserved.h. This is an index to the records of jobs. */
#include "controller/state/reserved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/state/work.h"

struct part {
	const struct ctlr_job *job;
	struct ctlr_reserved_sum r;
	struct part *next;
};

struct reserved {
	struct ctlr_map_node node;
	char tunnel[2 * MDL_NAME];
	struct part *part; /* list */
};

static uint32_t worst_of_legs(const json_t *entry, const char *key)
{
	uint64_t v = 0;
	json_t *leg;
	size_t i;

	json_array_foreach(json_object_get(entry, "legs"), i, leg) if (mdl_number_of(leg, key) > v) v =
	    mdl_number_of(leg, key);
	return (uint32_t)v;
}

static void add_part(
    struct ctlr *c, const struct ctlr_job *j, const char *tunnel, const json_t *entry, uint64_t bps)
{
	struct reserved *x = CTLR_MAP_NEED(&c->reserved, struct reserved, tunnel, tunnel);
	struct part *p = x ? calloc(1, sizeof(*p)) : NULL;

	if (!p)
		return;
	p->job = j;
	p->r = (struct ctlr_reserved_sum){.bps = bps,
	    .delay_us = worst_of_legs(entry, "delay_us"),
	    .jitter_us = worst_of_legs(entry, "jitter_us"),
	    .loss_ppm = worst_of_legs(entry, "loss_ppm"),
	    .at_ms = mdl_number_of(entry, "reserved_ms")};
	p->next = x->part;
	x->part = p;
}

static void del_parts(struct ctlr *c, const struct ctlr_job *j, const char *tunnel)
{
	struct reserved *x = ctlr_map_find(&c->reserved, tunnel);

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
	ctlr_map_del(&c->reserved, &x->node);
	free(x);
}

void ctlr_reserved_set_job(struct ctlr *c, const struct ctlr_job *j, bool add)
{
	json_t *n, *bps;
	const char *tunnel;
	struct ctlr_tunnel *t;
	size_t i;

	json_array_foreach(json_object_get(j->json, "network"), i, n)
	    json_object_foreach(json_object_get(n, "pairs"), tunnel, bps)
	{
		if (add && json_integer_value(bps) > 0)
			add_part(c, j, tunnel, n, (uint64_t)json_integer_value(bps));
		else
			del_parts(c, j, tunnel);
		t = ctlr_map_find(&c->tunnels, tunnel);
		if (t)
			ctlr_work_add_tunnel(c, t);
	}
}

void ctlr_reserved_get(const struct ctlr *c, const char *tunnel, struct ctlr_reserved_sum *out)
{
	const struct reserved *x = ctlr_map_find(&c->reserved, tunnel);

	memset(out, 0, sizeof(*out));
	for (const struct part *p = x ? x->part : NULL; p; p = p->next) {
		const struct ctlr_reserved_sum *r = &p->r;

		out->bps += r->bps;
		out->delay_us = r->delay_us > out->delay_us ? r->delay_us : out->delay_us;
		out->jitter_us = r->jitter_us > out->jitter_us ? r->jitter_us : out->jitter_us;
		out->loss_ppm = r->loss_ppm > out->loss_ppm ? r->loss_ppm : out->loss_ppm;
		out->at_ms = r->at_ms > out->at_ms ? r->at_ms : out->at_ms;
	}
}

void ctlr_reserved_each(const struct ctlr *c, const char *tunnel, ctlr_reserved_cb *fn, void *ctx)
{
	const struct reserved *x = ctlr_map_find(&c->reserved, tunnel);
	json_t *entry;
	size_t i;

	for (const struct part *p = x ? x->part : NULL; p; p = p->next)
		json_array_foreach(json_object_get(p->job->json, "network"), i, entry)
		{
			const uint64_t bps = mdl_number_of(json_object_get(entry, "pairs"), tunnel);

			if (bps)
				fn(ctx, entry, bps);
		}
}

bool ctlr_reserved_obs(const struct ctlr *c, const char *tunnel, struct plan_obs *out, rwy_time now)
{
	const uint64_t wall = ctlr_wall_ms();
	struct ctlr_reserved_sum r;
	rwy_dur age;

	ctlr_reserved_get(c, tunnel, &r);
	if (!r.bps)
		return false;
	age = wall > r.at_ms ? (wall - r.at_ms) * RWY_MS : 0;
	age = age < now ? age : now; /* our clock may have begun later */
	*out = (struct plan_obs){.source = CTLR_RESERVED_SOURCE,
	    .pushed = true,
	    .carrier = PLAN_ANY,
	    .cls = PLAN_RESERVED,
	    .has = PLAN_HAS_BANDWIDTH | PLAN_HAS_RTT | PLAN_HAS_JITTER | PLAN_HAS_LOSS,
	    .at = now - age,
	    .ttl = age + RWY_SEC, /* valid as long as the job exists */
	    .bandwidth_bps = r.bps,
	    .rtt_us = 2 * (r.delay_us < PLAN_US_MAX / 2 ? r.delay_us : PLAN_US_MAX / 2),
	    .jitter_us = r.jitter_us,
	    .loss_ppm = r.loss_ppm};
	return true;
}

void ctlr_reserved_list(struct ctlr *c, json_t *list)
{
	const uint64_t now = ctlr_wall_ms();
	struct ctlr_job *j;
	json_t *n;
	size_t i;

	CTLR_MAP_EACH(&c->jobs, j)
	json_array_foreach(json_object_get(j->json, "network"), i, n)
	{
		const uint64_t at = mdl_number_of(n, "reserved_ms");

		json_t *one = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "job", j->name, "source",
		    "reserved", "delay_us", (json_int_t)worst_of_legs(n, "delay_us"), "jitter_us",
		    (json_int_t)worst_of_legs(n, "jitter_us"), "loss_ppm",
		    (json_int_t)worst_of_legs(n, "loss_ppm"), "age_ms",
		    (json_int_t)(now > at ? now - at : 0));

		json_object_set_new(one, "name", json_copy(json_object_get(n, "name")));
		json_object_set_new(one, "site_a", json_copy(json_object_get(n, "first")));
		json_object_set_new(one, "site_b", json_copy(json_object_get(n, "second")));
		json_object_set_new(one, "bandwidth_bps", json_copy(json_object_get(n, "bandwidth_bps")));
		json_array_append_new(list, one);
	}
}

void ctlr_reserved_free(struct ctlr *c)
{
	ctlr_map_free(&c->reserved); /* its entries were freed with the jobs */
}
