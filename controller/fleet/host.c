/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts whose agents ask for redirects. An agent keeps a lease here, so that operators see which
 * hosts follow which generation, and which relays they cannot reach. Nothing of it is stored:
 * agents come again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"

#define FORGET_TERMS 100 /* a host that is silent for so many terms of its lease is forgotten */
#define SWEEP_EVERY  (60 * RWY_SEC)

/* As of gateways: all renewals together stay below `gateways.heartbeats`. */
static uint64_t ttl_ms(const struct ctlr *c)
{
	const uint64_t lease = c->conf->lease / RWY_MS, spread = c->hosts.n * 3000 / c->conf->heartbeats;

	return lease > spread ? lease : spread;
}

static struct ctlr_host *host_need(struct ctlr *c, const char *name)
{
	return CTLR_MAP_NEED(&c->hosts, struct ctlr_host, name, name);
}

static void host_free(struct ctlr *c, struct ctlr_host *h)
{
	ctlr_map_del(&c->hosts, &h->node);
	mdl_free(&model_host_lease_table, &h->m);
	free(h);
}

/* An agent has one boot_id from its start to its end. A boot_id that comes back after another one
 * was seen means two agents with one certificate, which somebody may have stolen. The event is told
 * once, until the host is forgotten. */
static void boot_note(struct ctlr *c, struct ctlr_host *h, const char *boot_id)
{
	if (!*h->m.boot_id || !strcmp(h->m.boot_id, boot_id))
		return;
	if (!strcmp(h->before, boot_id) && !h->twice) {
		h->twice = true;
		ctlr_event(c, EVENT_ERROR, "host", h->name,
		    "two agents use its certificate at once: boots %s and %s", h->m.boot_id, boot_id);
	}
	snprintf(h->before, sizeof(h->before), "%s", h->m.boot_id);
}

enum ctlr_outcome ctlr_api_host_lease_post(struct ctlr *c, struct ctlr_req *r)
{
	struct model_host_lease m;
	struct ctlr_host *h;

	if (strcmp(r->who.name, r->arg[0]) != 0)
		return ctlr_req_fail(r, 403, "", "the certificate is %s's, not %s's", r->who.name, r->arg[0]);
	if (!ctlr_req_read(r, &model_host_lease_table, &m, NULL))
		return REQ_DONE;
	if (!ctlr_map_find(&c->sites, m.site)) {
		ctlr_req_fail(r, 404, "site", "site: there is no site %s", m.site);
		mdl_free(&model_host_lease_table, &m);
		return REQ_DONE;
	}
	h = host_need(c, r->who.name);
	if (!h) {
		mdl_free(&model_host_lease_table, &m);
		return ctlr_req_fail(r, 503, "", "out of memory");
	}
	boot_note(c, h, m.boot_id);
	mdl_free(&model_host_lease_table, &h->m);
	h->m = m; /* with what it owns */
	h->heard = ctlr_now();
	COUNT(c, host_leases);
	return ctlr_req_reply(r, 200, json_pack("{s:I}", "ttl_ms", (json_int_t)ttl_ms(c)));
}

json_t *ctlr_host_json(struct ctlr *c, const struct ctlr_host *h)
{
	const uint64_t age = rwy_since(h->heard, ctlr_now()) / RWY_MS;
	const char(*down)[MDL_ADDR] = h->m.down.at;
	json_t *list = json_array();

	for (unsigned i = 0; i < h->m.down.n; i++)
		json_array_append_new(list, json_string(down[i]));
	return json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:I}", "name", h->name, "site", h->m.site, "version",
	    h->m.version, "state", age < ttl_ms(c) ? "up" : "lost", "generation", (json_int_t)h->m.generation,
	    "down", list, "age_ms", (json_int_t)age);
}

void ctlr_hosts_tick(struct ctlr *c, rwy_time now)
{
	struct ctlr_host *h, *next;

	if (rwy_since(c->hosts_at, now) < SWEEP_EVERY)
		return;
	c->hosts_at = now;
	for (h = ctlr_map_next(&c->hosts, NULL); h; h = next) {
		next = ctlr_map_next(&c->hosts, h);
		if (rwy_since(h->heard, now) > FORGET_TERMS * ttl_ms(c) * RWY_MS)
			host_free(c, h);
	}
}

void ctlr_hosts_free(struct ctlr *c)
{
	struct ctlr_host *h;

	while ((h = ctlr_map_next(&c->hosts, NULL)))
		host_free(c, h);
	ctlr_map_free(&c->hosts);
}
