/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the job of a container by the addresses of its NICs, since names repeat from one cluster to
 * the next. Addresses of two tenants may overlap. */
#include <stdio.h>
#include <stdlib.h>

#include "controller/job/split.h"

struct holder {
	struct ctlr_map_node node;
	char key[MDL_NAME + MDL_ADDR];
	const struct ctlr_job *job;
};

static void key_of(char key[MDL_NAME + MDL_ADDR], const char *tenant, const char *address)
{
	char canon[MDL_ADDR];

	if (!mdl_ip(address, canon))
		*canon = 0;
	snprintf(key, MDL_NAME + MDL_ADDR, "%.31s %s", tenant ? tenant : "", canon);
}

static struct holder *holder_find(struct ctlr *c, const char *tenant, const char *address)
{
	char key[MDL_NAME + MDL_ADDR];

	key_of(key, tenant, address);
	return ctlr_map_find(&c->containers, key);
}

const struct ctlr_job *ctlr_containers_find(struct ctlr *c, const char *tenant, const char *address)
{
	const struct holder *h = holder_find(c, tenant, address);

	return h ? h->job : NULL;
}

/* When everything is read again, the job that has it now may come before the one that had it. */
static void holder_add(struct ctlr *c, const struct ctlr_job *j, const char *tenant, const char *address)
{
	struct holder *h = holder_find(c, tenant, address);

	if (h) {
		h->job = j;
		return;
	}
	h = calloc(1, sizeof(*h));
	if (!h)
		return;
	key_of(h->key, tenant, address);
	h->job = j;
	if (ctlr_map_add(&c->containers, &h->node, h->key))
		free(h);
}

static void holder_del(struct ctlr *c, const struct ctlr_job *j, const char *tenant, const char *address)
{
	struct holder *h = holder_find(c, tenant, address);

	if (!h || h->job != j)
		return;
	ctlr_map_del(&c->containers, &h->node);
	free(h);
}

void ctlr_containers_set_job(struct ctlr *c, const struct ctlr_job *j, bool add)
{
	const json_t *job = json_object_get(j->json, "job");
	const char *tenant = mdl_text_of(job, "tenant");
	json_t *k, *nic;
	size_t i, n;

	json_array_foreach(json_object_get(job, "containers"), i, k)
	{
		json_array_foreach(json_object_get(k, "nics"), n, nic)
		{
			if (add)
				holder_add(c, j, tenant, mdl_text_of(nic, "address"));
			else
				holder_del(c, j, tenant, mdl_text_of(nic, "address"));
		}
	}
}
