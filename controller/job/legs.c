/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legs that a network has lost: see react.h. A job's record says so of each (`gone`), so that no
 * gateway sends along it (fleet/steer.c); what was granted there stays the job's.
 */
#include <stdio.h>
#include <string.h>

#include "controller/job/react.h"
#include "controller/state/change.h"
#include "controller/state/event.h"

static bool is_there(const struct plan_route *there, int n, const json_t *leg)
{
	for (int i = 0; n != PROVIDER_WHOLE && i < n; i++)
		if (mdl_leg_is(leg, there[i].edge, there[i].name))
			return true;
	return n == PROVIDER_WHOLE;
}

/* Says of one leg whether it is gone. Returns true if that is news. */
static bool mark(struct ctlr *c, const char *job, const char *provider, json_t *leg, bool gone)
{
	if (gone == json_is_true(json_object_get(leg, "gone")))
		return false;
	ctlr_event(c, gone ? EVENT_WARNING : EVENT_INFO, "job", job, "network %s has %s path %s at %s",
	    provider, gone ? "lost" : "again", mdl_text_of(leg, "path"), mdl_text_of(leg, "edge"));
	if (gone)
		json_object_set_new(leg, "gone", json_true());
	else
		json_object_del(leg, "gone");
	return true;
}

static void store(struct ctlr *c, const struct ctlr_job *j, json_t *record)
{
	struct ctlr_change *ch = ctlr_change_new(NULL, NULL);
	char key[STORE_KEY_MAX];

	if (!ch) {
		json_decref(record);
		return; /* the network is asked again */
	}
	snprintf(key, sizeof(key), "job/%.31s", j->name);
	ctlr_change_cmp(ch, key, j->mod_rev);
	ctlr_change_put(ch, key, record);
	(void)ctlr_change_submit(c, ch);
}

bool ctlr_legs_found(struct ctlr *c, const struct ctlr_job *j, const char *provider, const char *tunnel,
    const struct plan_route *there, int n)
{
	json_t *record = json_deep_copy(j->json), *entry, *leg;
	bool news = false, lacks = false;
	size_t i, k;

	json_array_foreach(json_object_get(record, "network"), i, entry)
	{
		if (strcmp(mdl_text_of(entry, "name"), tunnel) != 0)
			continue;
		json_array_foreach(json_object_get(entry, "legs"), k, leg)
		{
			const bool gone = !is_there(there, n, leg);

			if (strcmp(mdl_text_of(leg, "provider"), provider) != 0)
				continue;
			lacks |= gone;
			news |= mark(c, j->name, provider, leg, gone);
		}
	}
	if (news)
		store(c, j, record);
	else
		json_decref(record);
	return lacks;
}
