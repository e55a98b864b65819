/* SPDX-License-Identifier: Apache-2.0 */
/* The events of a job's ranks. */
#include "controller/job/split.h"
#include "controller/state/event.h"

/* Logs the containers that failed, with their ranks. */
static void log_failures(struct ctlr *c, const char *name, const json_t *was, const json_t *is)
{
	json_t *old = json_object_get(was, "containers"), *e;
	size_t i;

	json_array_foreach(json_object_get(is, "containers"), i, e)
	{
		const json_t *o = json_array_get(old, i);
		const uint64_t first = mdl_number_of(o, "first"), count = mdl_number_of(o, "count");

		if (!json_is_true(json_object_get(e, "failed")) || json_is_true(json_object_get(o, "failed")))
			continue;
		ctlr_event(c, EVENT_WARNING, "job", name,
		    "container %s failed, which had %u ranks from %u on", mdl_text_of(e, "name"),
		    (unsigned)count, (unsigned)first);
	}
}

void ctlr_ranks_log(struct ctlr *c, const char *name, const json_t *was, const json_t *is)
{
	const json_t *old = json_object_get(was, "ranks"), *table = json_object_get(is, "ranks");
	const unsigned missing = ctlr_split_missing(is);
	json_t *e;
	size_t i;

	if (!table || mdl_number_of(old, "generation") == mdl_number_of(table, "generation"))
		return;
	log_failures(c, name, old, table);
	if (missing) {
		ctlr_event(c, EVENT_WARNING, "job", name, "%u ranks have no container yet", missing);
		return;
	}
	json_array_foreach(json_object_get(table, "containers"), i,
	    e) if (mdl_number_of(e, "count") && !mdl_number_of(e, "first")) ctlr_event(c, EVENT_INFO, "job",
	    name, "all ranks are assigned; %s is the master", mdl_text_of(e, "name"));
}
