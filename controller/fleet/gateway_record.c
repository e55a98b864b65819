/* SPDX-License-Identifier: Apache-2.0 */
/* Lone gateways and members of pairs share this: the record of one that is up; a renewed lease. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "controller/fleet/fleet.h"
#include "controller/server/req.h"
#include "controller/state/change.h"

void ctlr_gateway_put(struct ctlr_change *ch, const char *name, const struct ctlr_gateway *g,
    const struct model_registration *reg, uint64_t lease, const char *owner)
{
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), "gateway/%s", name);
	ctlr_change_cmp(ch, key, g ? g->mod_rev : 0);
	ctlr_change_put(ch, key,
	    json_pack("{s:o, s:o, s:s, s:s}", "registration", mdl_write(&model_registration_table, reg),
	        "lease", json_sprintf("%016" PRIx64, lease), "owner", owner, "state", "up"));
}

uint64_t ctlr_gateway_new_lease(void)
{
	uint64_t lease = 0;

	while (!lease)
		if (getrandom(&lease, sizeof(lease), 0) != sizeof(lease))
			lease = 0;
	return lease;
}

void ctlr_gateway_heard(struct ctlr *c, struct ctlr_gateway *g, const struct model_lease *m)
{
	g->heard = ctlr_now();
	g->expires = g->heard + ctlr_gateway_ttl_ms(c) * RWY_MS;
	g->running = m->generation_running;
	g->load = m->load;
	g->refused = m->has_refused ? m->generation_refused : 0;
	snprintf(g->refusal, sizeof(g->refusal), "%s", m->has_refused && m->refusal ? m->refusal : "");
}

bool ctlr_replica_unfit(struct ctlr_req *r)
{
	if (!ctlr_replica_cut_off(r->c))
		return false;
	ctlr_req_fail(r, 503, "", "this replica is cut off from the store: go to another one");
	return true;
}

void ctlr_gateway_renewed(struct ctlr *c, struct ctlr_req *r, const struct ctlr_gateway *g)
{
	if (ctlr_replica_unfit(r))
		return;
	COUNT(c, leases);
	ctlr_req_reply(r, 200,
	    json_pack("{s:I, s:I}", "ttl_ms", (json_int_t)ctlr_gateway_ttl_ms(c), "generation",
	        (json_int_t)ctlr_document_generation(c, g)));
}
