/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: gateways report them, the controller decides at once, the API lists them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/metrics.h"
#include "controller/server/req.h"
#include "controller/state/ctlr.h"
#include "controller/state/flow.h"
#include "controller/state/pair.h"
#include "controller/state/relay_link.h"

static void session_key(char key[MDL_NAME + MDL_ID], const char *gateway, const char *id)
{
	snprintf(key, MDL_NAME + MDL_ID, "%s:%s", gateway, id);
}

static void pair_of(const struct ctlr_flow *f, bool reverse, char out[2 * MDL_NAME])
{
	const struct ctlr_gateway *a = f->tunnel->end[0], *b = f->tunnel->end[1];

	/* the end at the source's site comes first */
	if ((a->site == f->site[0]) == reverse)
		snprintf(out, 2 * (size_t)MDL_NAME, "%s/%s", b->name, a->name);
	else
		snprintf(out, 2 * (size_t)MDL_NAME, "%s/%s", a->name, b->name);
}

/* Adds the decision in a gateway's form: the tunnel to the other gateway of the pair. */
static void decision_add(json_t *j, const struct ctlr_session *s)
{
	const struct ctlr_flow *f = s->flow;
	char pair[2 * MDL_NAME];
	const struct ctlr_tunnel *t = f ? f->tunnel : NULL;

	if (!t) {
		json_object_set_new(j, "reason",
		    json_string(
		        s->reason ? s->reason : "no pair of gateways of these sites is up with a tunnel"));
		return;
	}
	pair_of(f, strcmp(f->addr[0], s->source) != 0, pair);
	json_object_set_new(j, "pair", json_string(pair));
	json_object_set_new(j, "tunnel", json_string(t->end[t->end[0]->site == s->gateway->site]->name));
	json_object_set_new(j, "carrier", json_string(plan_carrier_name(t->carrier)));
	json_object_set_new(j, "rate_bps", json_integer((json_int_t)f->rate_bps));
}

/* --- reports ---------------------------------------------------------------------------------- */

static bool complete(struct ctlr_req *r, const struct model_session_report *m)
{
	const struct model_session *s = m->sessions.at;
	char field[64];

	for (unsigned i = 0; i < m->sessions.n; i++) {
		const char *missing = NULL;

		if (s[i].event == MODEL_OPENED && !*s[i].source)
			missing = "source";
		else if (s[i].event == MODEL_OPENED && !*s[i].destination)
			missing = "destination";
		else if (s[i].event == MODEL_OPENED && s[i].has_link && !*s[i].relay)
			missing = "relay";
		else if (s[i].event == MODEL_LOAD && !s[i].has_bytes)
			missing = "bytes";
		if (!missing)
			continue;
		snprintf(field, sizeof(field), "sessions[%u].%s", i, missing);
		ctlr_req_fail(r, 400, field, "%s: missing", field);
		return false;
	}
	return true;
}

static struct ctlr_session *session_open(
    struct ctlr *c, struct ctlr_gateway *g, uint8_t member, const struct model_session *m)
{
	char key[MDL_NAME + MDL_ID];
	struct ctlr_session *s;

	session_key(key, g->name, m->id);
	s = ctlr_map_find(&c->sessions, key);
	if (s)
		ctlr_session_free(c, s); /* an earlier session with the same id */
	if (c->sessions.n >= c->conf->sessions) {
		COUNT(c, sessions_refused);
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	memcpy(s->key, key, sizeof(key));
	if (ctlr_map_add(&c->sessions, &s->node, s->key)) {
		free(s);
		return NULL;
	}
	s->gateway = g;
	s->member = member;
	s->round = g->all[member].round;
	s->next = g->session;
	if (g->session)
		g->session->prev = s;
	g->session = s;
	g->sessions++;
	s->vni = (uint32_t)m->vni;
	s->source_qpn = (uint32_t)m->source_qpn;
	s->destination_qpn = (uint32_t)m->destination_qpn;
	s->udp_port = (uint16_t)m->udp_port;
	memcpy(s->source, m->source, sizeof(s->source));
	memcpy(s->destination, m->destination, sizeof(s->destination));
	s->bytes = m->bytes;
	s->opened = ctlr_now();
	memcpy(s->relay, m->relay, sizeof(s->relay));
	if (m->has_link && ctlr_relay_link_join(c, s, m->link) != 0)
		COUNT(c, relay_links_lost);
	s->flow = ctlr_flow_decide(c, s->vni, s->source, s->destination,
	    (const uint32_t[]){s->source_qpn, s->destination_qpn}, g->site,
	    *m->tunnel ? ctlr_tunnel_find(c, g->name, m->tunnel) : NULL, &s->reason);
	if (s->flow)
		s->flow->refs++;
	COUNT(c, sessions_opened);
	return s;
}

static void session_take(
    struct ctlr *c, struct ctlr_gateway *g, uint8_t member, const struct model_session *m, json_t *decisions)
{
	char key[MDL_NAME + MDL_ID];
	struct ctlr_session *s;
	json_t *j;

	session_key(key, g->name, m->id);
	if (m->event != MODEL_OPENED) {
		s = ctlr_map_find(&c->sessions, key);
		if (s && m->has_bytes)
			s->bytes = m->bytes;
		if (s && m->event == MODEL_CLOSED)
			ctlr_session_free(c, s);
		return;
	}
	s = session_open(c, g, member, m);
	j = json_pack("{s:s}", "id", m->id);
	if (s)
		decision_add(j, s);
	else
		json_object_set_new(
		    j, "reason", json_string("too many sessions: this one follows its prefix"));
	json_array_append_new(decisions, j);
	COUNT(c, decisions);
}

/*
 * A gateway that has registered again, or lost events, opens all its sessions anew, in several
 * reports. Those that none of them names have ended, and the event is lost.
 */
static void all_begin(struct ctlr_gateway *g, int member, const struct model_session_report *m)
{
	if (m->all_part == 1)
		g->all[member].round++;
	if (m->all_part)
		g->all[member].part =
		    m->all_part == 1 || m->all_part == g->all[member].part + 1 ? m->all_part : 0;
}

static void all_end(struct ctlr *c, struct ctlr_gateway *g, int member, const struct model_session_report *m)
{
	if (!m->all_last || !m->all_part || g->all[member].part != m->all_part)
		return;
	g->all[member].part = 0;
	for (struct ctlr_session *s = g->session, *next; s; s = next) {
		next = s->next;
		if (s->member == member && s->round != g->all[member].round)
			ctlr_session_free(c, s);
	}
}

static void sessions_take(struct ctlr *c, struct ctlr_gateway *g, int member,
    const struct model_session_report *m, json_t *decisions)
{
	const struct model_session *s = m->sessions.at;

	all_begin(g, member, m);
	for (unsigned i = 0; i < m->sessions.n; i++)
		session_take(c, g, (uint8_t)member, &s[i], decisions);
	all_end(c, g, member, m);
}

enum ctlr_outcome ctlr_api_session_post(struct ctlr *c, struct ctlr_req *r)
{
	struct ctlr_gateway *g = ctlr_map_find(&c->gateways, r->arg[0]);
	struct model_session_report m;
	json_t *decisions;

	if (!ctlr_req_is_gateway(r, r->arg[0]) || !ctlr_req_read(r, &model_session_report_table, &m, NULL))
		return REQ_DONE;
	if (!g)
		ctlr_req_fail(r, 404, "", "there is no gateway %s: register", r->arg[0]);
	else if (complete(r, &m) && ctlr_gateway_lease_holds(r, g, m.has_lease ? m.lease : g->lease)) {
		const struct ctlr_pair *p = g->reg.has_pair ? ctlr_pair_of(c, g->name) : NULL;
		const int member = p ? ctlr_pair_by_lease(p, m.has_lease ? m.lease : g->lease) : 0;

		decisions = json_array();
		sessions_take(c, g, member, &m, decisions);
		/* It has taken over: these are the same connections. */
		if (p && ctlr_pair_serving(p) == member)
			ctlr_gateway_drop_sessions(c, g, !member);
		ctlr_req_reply(r, 200, json_pack("{s:o}", "decisions", decisions));
		ctlr_metrics_decision(r->c, rwy_since(r->came, ctlr_now()));
	}
	mdl_free(&model_session_report_table, &m);
	return REQ_DONE;
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *ctlr_session_json(const struct ctlr_session *s)
{
	json_t *j = json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:I, s:i, s:I, s:I}", "id", s->key, "gateway",
	    s->gateway->name, "vni", (json_int_t)s->vni, "source", s->source, "destination", s->destination,
	    "source_qpn", (json_int_t)s->source_qpn, "destination_qpn", (json_int_t)s->destination_qpn,
	    "udp_port", (int)s->udp_port, "bytes", (json_int_t)s->bytes, "age_ms",
	    (json_int_t)(rwy_since(s->opened, ctlr_now()) / RWY_MS));

	if (s->link) {
		json_object_set_new(j, "link", json_string(s->link->key));
		json_object_set_new(j, "relay", json_string(s->relay));
	}
	decision_add(j, s);
	return j;
}

enum ctlr_outcome ctlr_api_session_list(struct ctlr *c, struct ctlr_req *r)
{
	const char *after = ctlr_req_param(r, "after"), *name = ctlr_req_param(r, "gateway");
	const struct ctlr_gateway *g = name ? ctlr_map_find(&c->gateways, name) : NULL;
	json_t *list = json_array();
	struct ctlr_session **page;
	uint64_t limit;
	size_t n = 0;

	if (!ctlr_req_number(r, "limit", 1, 1000, 100, &limit) || (name && !mdl_is_name(name))) {
		json_decref(list);
		return r->status ? REQ_DONE : ctlr_req_fail(r, 400, "gateway", "gateway: expected a name");
	}
	page = calloc(limit, sizeof(*page));
	if (page && name) { /* this gateway's sessions only, which are few */
		struct ctlr_map own = {0};
		struct item {
			struct ctlr_map_node node;
			struct ctlr_session *s;
		} *items = calloc(g ? g->sessions + 1 : 1, sizeof(*items));
		unsigned k = 0;

		for (struct ctlr_session *s = g && items ? g->session : NULL; s; s = s->next, k++) {
			items[k].s = s;
			if (ctlr_map_add(&own, &items[k].node, s->key))
				break;
		}
		n = ctlr_map_page(&own, after, (void **)page, limit);
		for (size_t i = 0; i < n; i++)
			page[i] = ((struct item *)page[i])->s;
		ctlr_map_free(&own);
		free(items);
	} else if (page) {
		n = ctlr_map_page(&c->sessions, after, (void **)page, limit);
	}
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, ctlr_session_json(page[i]));
	ctlr_req_reply(r, 200,
	    json_pack("{s:o, s:o}", "sessions", list, "next",
	        n == limit ? json_string(page[n - 1]->key) : json_null()));
	free(page);
	return REQ_DONE;
}
