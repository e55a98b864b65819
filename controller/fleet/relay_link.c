/* SPDX-License-Identifier: Apache-2.0 */
/* Links of relays, for people: their ends, and the tunnel between the relays. */
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/state/ctlr.h"

#define ENDS_MAX 16 /* shown; a link has two, or one for each relay of a chain */

static json_t *end_json(const struct ctlr_session *s)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "gateway", s->gateway->name, "state",
	    s->gateway->up ? "up" : "lost", "relay", s->relay, "host", s->source, "peer", s->destination,
	    "qpn", (json_int_t)s->source_qpn, "bytes", (json_int_t)s->bytes, "age_ms",
	    (json_int_t)(rwy_since(s->opened, ctlr_now()) / RWY_MS));
}

/* Adds what is known of the segment between the relays. */
static void tunnel_add(json_t *j, const struct ctlr_flow *f)
{
	const struct ctlr_tunnel *t = f ? f->tunnel : NULL;
	const struct ctlr_link *m = t ? ctlr_link_latest(t) : NULL;

	if (!t)
		return;
	json_object_set_new(j, "tunnel", json_string(t->name));
	json_object_set_new(j, "carrier", json_string(plan_carrier_name(t->carrier)));
	json_object_set_new(j, "rate_bps", json_integer((json_int_t)t->rate_bps));
	if (!m)
		return;
	json_object_set_new(j, "rtt_us", json_integer((json_int_t)m->m.rtt_us));
	json_object_set_new(j, "loss_ppm", json_integer((json_int_t)m->m.loss_ppm));
}

json_t *ctlr_relay_link_json(struct ctlr *c, const struct ctlr_relay_link *l)
{
	json_t *ends = json_array(), *j = json_pack("{s:s, s:o}", "link", l->key, "ends", ends);
	const struct ctlr_flow *f = NULL;

	for (const struct ctlr_session *s = l->session; s && json_array_size(ends) < ENDS_MAX;
	     s = s->link_next) {
		json_array_append_new(ends, end_json(s));
		f = f ? f : s->flow;
	}
	tunnel_add(j, f);
	return j;
}
