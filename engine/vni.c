/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a tenant by its VNI. */
#include <stdlib.h>

#include "engine/tenants.h"

static uint32_t vni_hash(uint32_t vni)
{
	return vni * 0x9e3779b1u >> 8;
}

/* A slot is a hint: its tenant may be gone or have another VNI by now. */
static void vni_put(struct eng *e, uint32_t idx)
{
	uint32_t at = vni_hash(e->tenant[idx]->cfg.vni) & e->vni_mask;

	for (; e->vni_slot[at] && e->vni_slot[at] != idx + 1; at = (at + 1) & e->vni_mask)
		if (!e->tenant[e->vni_slot[at] - 1])
			break;
	e->vni_used += !e->vni_slot[at];
	e->vni_slot[at] = idx + 1;
}

int eng_vni_rebuild(struct eng *e)
{
	uint32_t n = 64, live = 0, *slot;

	for (uint32_t i = 1; i < e->tenant_slots; i++)
		live += e->tenant[i] != NULL;
	while (n < 4 * live)
		n *= 2;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return RWY_ENOMEM;
	free(e->vni_slot);
	e->vni_slot = slot;
	e->vni_mask = n - 1;
	e->vni_used = 0;
	for (uint32_t i = 1; i < e->tenant_slots; i++)
		if (e->tenant[i])
			vni_put(e, i);
	return 0;
}

int eng_vni_enter(struct eng *e, uint32_t idx)
{
	/* At half full the table is rebuilt, without the slots of removed tenants. */
	if (2 * (e->vni_used + 1) > e->vni_mask)
		return eng_vni_rebuild(e);
	vni_put(e, idx);
	return 0;
}

int eng_tenant_by_vni(const struct eng *e, uint32_t vni)
{
	uint32_t at = vni_hash(vni) & e->vni_mask;

	if (!vni)
		return 0;
	for (; e->vni_slot[at]; at = (at + 1) & e->vni_mask) {
		const struct eng_tenant *t = e->tenant[e->vni_slot[at] - 1];

		if (t && !t->removing && t->cfg.vni == vni)
			return (int)e->vni_slot[at] - 1;
	}
	return -1;
}
