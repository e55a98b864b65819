/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detours of tunnels: the carrier of what a tunnel's native path loses repeatedly (wan/detour.c).
 * An operator sets it for one tunnel; both gateways get it with their documents.
 */
#include <stdio.h>
#include <string.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/change.h"

#define AFTER 2 /* default of `detour_after`, as in a gateway's file */

/* Both gateways have the carrier. Else *lacks is the one that has not. */
static bool possible(const struct ctlr_tunnel *t, uint8_t detour, const struct ctlr_gateway **lacks)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct model_caps *caps = &t->end[i]->reg.capabilities;

		*lacks = t->end[i];
		if (detour == MODEL_DETOUR_TCP ? !caps->has_tcp : !caps->has_quic)
			return false;
	}
	return true;
}

void ctlr_detour_add(struct ctlr *c, const struct ctlr_tunnel *t, json_t *j)
{
	const struct ctlr_detour *d = c->detours.n ? ctlr_map_find(&c->detours, t->name) : NULL;
	const struct ctlr_gateway *lacks;
	char word[MDL_NAME];

	/* a gateway would refuse a document with a carrier that it has lost */
	if (!d || !possible(t, d->m.detour, &lacks))
		return;
	json_object_set_new(j, "detour", json_string(mdl_word(MODEL_DETOURS, d->m.detour, word)));
	json_object_set_new(
	    j, "detour_after", json_integer((json_int_t)(d->m.detour_after ? d->m.detour_after : AFTER)));
}

/* The change brings both gateways new documents. */
static struct ctlr_change *change(const struct ctlr_req *r, char name[2 * MDL_NAME], char key[STORE_KEY_MAX])
{
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);
	char touch[STORE_KEY_MAX];

	ctlr_tunnel_key(name, r->arg[0], r->arg[1]);
	snprintf(key, STORE_KEY_MAX, "detour/%s", name);
	for (unsigned i = 0; ch && i < 2; i++) {
		snprintf(touch, sizeof(touch), "touch/%.31s", r->arg[i]);
		ctlr_change_put(ch, touch, json_object());
	}
	return ch;
}

enum ctlr_outcome ctlr_api_detour_put(struct ctlr *c, struct ctlr_req *r)
{
	const struct ctlr_tunnel *t = ctlr_tunnel_find(c, r->arg[0], r->arg[1]);
	char name[2 * MDL_NAME], key[STORE_KEY_MAX], word[MDL_NAME];
	const struct ctlr_gateway *lacks;
	struct model_detour m;
	struct ctlr_change *ch;

	if (!ctlr_req_read(r, &model_detour_table, &m, NULL))
		return REQ_DONE;
	if (!t)
		return ctlr_req_fail(
		    r, 404, "", "there is no tunnel between %s and %s", r->arg[0], r->arg[1]);
	if (!possible(t, m.detour, &lacks))
		return ctlr_req_fail(r, 409, "detour", "detour: gateway %s has no carrier %s", lacks->name,
		    mdl_word(MODEL_DETOURS, m.detour, word));
	ch = change(r, name, key);
	if (!ch)
		return ctlr_req_fail(r, 503, "", "out of memory");
	ctlr_change_put(ch, key, mdl_write(&model_detour_table, &m));
	return ctlr_req_commit(r, ch, 200);
}

enum ctlr_outcome ctlr_api_detour_delete(struct ctlr *c, struct ctlr_req *r)
{
	char name[2 * MDL_NAME], key[STORE_KEY_MAX];
	struct ctlr_change *ch = change(r, name, key);
	const struct ctlr_detour *d = ctlr_map_find(&c->detours, name);

	if (!ch)
		return ctlr_req_fail(r, 503, "", "out of memory");
	if (!d) {
		ctlr_change_cancel(ch);
		return ctlr_req_fail(r, 404, "", "tunnel %s has no detour", name);
	}
	ctlr_change_cmp(ch, key, d->mod_rev);
	ctlr_change_del(ch, key);
	return ctlr_req_commit(r, ch, 200);
}
