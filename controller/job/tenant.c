/* SPDX-License-Identifier: Apache-2.0 */
/* Which tenant a job is of. Its record has the tenant's name alone. */
#include <string.h>

#include "controller/job/jobs.h"

static const char *tenant_of(const json_t *record)
{
	return mdl_text_of(json_object_get(record, "job"), "tenant");
}

uint32_t ctlr_job_vni(const struct ctlr *c, const json_t *record)
{
	const struct ctlr_tenant *nt = ctlr_map_find(&c->tenants, tenant_of(record));

	return nt ? nt->vni : 0;
}

bool ctlr_job_lacks_tenant(const struct ctlr *c, const struct ctlr_job *j)
{
	const char *name = tenant_of(j->json);

	return *name && !ctlr_map_find(&c->tenants, name);
}

const struct ctlr_job *ctlr_job_of_tenant(const struct ctlr *c, const char *name)
{
	const struct ctlr_job *j;

	CTLR_MAP_EACH(&c->jobs, j)
	{
		if (!strcmp(tenant_of(j->json), name))
			return j;
	}
	return NULL;
}
