/* SPDX-License-Identifier: Apache-2.0 */
/* Asks networks for the tunnels that they made: see react.h. */
#include <stdio.h>
#include <string.h>

#include "controller/job/network.h"
#include "controller/job/react.h"
#include "controller/job/reservation.h"
#include "controller/state/event.h"

#define PER_TURN 8 /* jobs of which a network is asked at once */

static void on_asked(struct ctlr *c, struct ctlr_network_call *call)
{
	const struct ctlr_job *j;
	char job[MDL_NAME];

	if (call->rc) /* a network that fails says nothing of its tunnels */
		return;
	snprintf(job, sizeof(job), "%.*s", (int)strcspn(call->name, "~"), call->name);
	j = ctlr_map_find(&c->jobs, job);
	if (ctlr_reservation_locked(c, job, NULL)) /* its tunnels change: the record is older */
		return;
	if (!j || !ctlr_legs_found(c, j, c->conf->provider[call->net].name, call->name, call->route, call->n))
		return;
	if (ctlr_reservation_again(c, job) && !call->n)
		ctlr_event(c, EVENT_WARNING, "job", job,
		    "network %s has lost its tunnel %s: it is made again", c->conf->provider[call->net].name,
		    call->name);
}

static void ask_one(struct ctlr *c, unsigned net, const json_t *tunnel)
{
	struct ctlr_network_call *call;

	if (ctlr_network_find(c, mdl_text_of(tunnel, "provider")) != (int)net)
		return;
	call = ctlr_network_call_new(NETWORK_ASK, net, mdl_text_of(tunnel, "name"),
	    mdl_text_of(tunnel, "first"), mdl_text_of(tunnel, "second"));
	if (!call)
		return;
	call->patient = true;
	call->done = on_asked;
	if (!ctlr_network_submit(c, call))
		ctlr_network_call_free(call);
}

static void ask_job(struct ctlr *c, unsigned net, const struct ctlr_job *j)
{
	json_t *list, *t;
	size_t i;

	if (!json_object_get(j->json, "network") || ctlr_reservation_locked(c, j->name, NULL) ||
	    !ctlr_job_is_ours(c, j))
		return;
	list = ctlr_reservation_tunnels(c, j->name, j->json);
	json_array_foreach(list, i, t) ask_one(c, net, t);
	json_decref(list);
}

/* Asks of some jobs; of the next ones when the network has answered all of that. */
static void ask_network(struct ctlr *c, unsigned net, rwy_time now)
{
	struct ctlr_job *j[PER_TURN];
	char *last = c->ask[net].last;
	size_t n;

	if (now < c->ask[net].at || !ctlr_network_tells(c, net) || ctlr_network_asks(c, net))
		return;
	n = ctlr_map_page(&c->jobs, last, (void **)j, PER_TURN);
	for (size_t i = 0; i < n; i++)
		ask_job(c, net, j[i]);
	if (n == PER_TURN) {
		memcpy(last, j[n - 1]->name, sizeof(c->ask[net].last));
		return;
	}
	*last = 0;
	c->ask[net].at = now + c->conf->ask_networks;
}

void ctlr_ask_tick(struct ctlr *c, rwy_time now)
{
	for (unsigned i = 0; i < c->conf->providers; i++)
		ask_network(c, i, now);
}
