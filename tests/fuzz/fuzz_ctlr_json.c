/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON from clients of the controller, by the tables of controller/model; the first byte chooses
 * the table. Accepted input is written and read again, with the same result. A refusal names a
 * field or a reason, and leaves nothing allocated.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/model/model.h"

static const struct mdl_table *const tables[] = {&model_registration_table, &model_lease_table,
    &model_session_report_table, &model_link_report_table, &model_link_push_table, &model_site_table,
    &model_job_table, &model_caps_table, &model_failure_table, &model_host_lease_table};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static union {
	struct model_registration registration;
	struct model_lease lease;
	struct model_session_report sessions;
	struct model_link_report links;
	struct model_link_push push;
	struct model_site site;
	struct model_job job;
	struct model_caps caps;
} m, again;

static void must(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char zero[sizeof(m)];
	const struct mdl_table *t;
	struct mdl_error err;
	json_t *j, *out, *twice;

	if (!size)
		return 0;
	t = tables[data[0] % TABLES];
	j = mdl_parse((const char *)data + 1, size - 1, &err);
	if (!j) {
		must(*err.text);
		return 0;
	}
	if (mdl_read(j, t, &m, &err)) {
		must(*err.text && !memcmp(&m, zero, t->size));
		json_decref(j);
		return 0;
	}
	out = mdl_write(t, &m);
	must(out != NULL);
	must(!mdl_read(out, t, &again, &err));
	twice = mdl_write(t, &again);
	must(json_equal(out, twice));
	mdl_free(t, &m);
	mdl_free(t, &again);
	must(!memcmp(&m, zero, t->size));
	json_decref(j);
	json_decref(out);
	json_decref(twice);
	return 0;
}
