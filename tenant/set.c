/* SPDX-License-Identifier: Apache-2.0 */
/* The set of tenants of one generation: its memory, lookups, and checks over all tenants. */
#include <stdlib.h>
#include <string.h>

#include "tenant/internal.h"

/* --- names ------------------------------------------------------------------------------------ */

uint32_t tenant_name_find(
    const uint16_t *slot, uint32_t mask, const struct tenant *const *by_index, const char *name)
{
	uint32_t at = tenant_name_hash(name) & mask;

	for (; slot[at]; at = (at + 1) & mask) {
		const struct tenant *t = by_index[slot[at]];

		if (t && !strcmp(t->cfg.name, name))
			return slot[at];
	}
	return 0;
}

void tenant_name_add(uint16_t *slot, uint32_t mask, const char *name, uint32_t index)
{
	uint32_t at = tenant_name_hash(name) & mask;

	while (slot[at] && slot[at] != index)
		at = (at + 1) & mask;
	slot[at] = (uint16_t)index;
}

const struct tenant *tenant_by_name(const struct tenant_set *s, const char *name)
{
	return s->by_index[tenant_name_find(s->name_slot, s->name_mask, s->by_index, name)];
}

/* --- sets ------------------------------------------------------------------------------------- */

struct tenant_set *tenant_set_alloc(uint32_t n, uint32_t top)
{
	uint32_t bits = 4;
	size_t slots, size;
	struct tenant_set *s;

	while ((1u << bits) < 2 * n + 2)
		bits++;
	slots = (size_t)1 << bits;
	size = sizeof(*s) + top * sizeof(s->by_index[0]) + slots * sizeof(s->vni_slot[0]) +
	       slots * sizeof(s->name_slot[0]);
	s = calloc(1, size);
	if (!s)
		return NULL;
	s->top = top;
	s->n = n;
	s->vni_shift = 32 - bits;
	s->name_mask = (uint32_t)slots - 1;
	s->by_index = (const struct tenant **)(void *)(s + 1);
	s->vni_slot = (uint64_t *)(void *)(s->by_index + top);
	s->name_slot = (uint16_t *)(void *)(s->vni_slot + slots);
	return s;
}

static int twice(
    struct tenant_err *err, enum tenant_error why, const struct tenant *t, const struct tenant *other)
{
	int r = tenant_fail(err, RWY_EINVAL, why, t->cfg.name, -1);

	memcpy(err->other, other->cfg.name, sizeof(err->other));
	return r;
}

static int set_add(struct tenant_set *s, const struct tenant *t, struct tenant_err *err)
{
	uint32_t mask = (1u << (32 - s->vni_shift)) - 1, vni = t->cfg.vni;
	uint32_t at = vni * 0x9e3779b1u >> s->vni_shift;

	if (vni) {
		for (; s->vni_slot[at]; at = (at + 1) & mask)
			if (s->vni_slot[at] >> 16 == vni)
				return twice(
				    err, TENANT_E_VNI_TWICE, t, s->by_index[s->vni_slot[at] & 0xffff]);
		s->vni_slot[at] = (uint64_t)vni << 16 | t->index;
	}
	if (t->cfg.vlan) {
		if (s->vlan[t->cfg.vlan])
			return twice(err, TENANT_E_VLAN_TWICE, t, s->by_index[s->vlan[t->cfg.vlan]]);
		s->vlan[t->cfg.vlan] = (uint16_t)t->index;
	}
	s->by_index[t->index] = t;
	tenant_name_add(s->name_slot, s->name_mask, t->cfg.name, t->index);
	return 0;
}

/* Sums over all tenants; the first one that exceeds a limit is reported. */
struct sums {
	uint64_t guarantee[TENANT_TUNNELS_MAX];
	uint64_t memory;
};

static int sums_add(
    struct sums *sum, const struct tenant *t, const struct tenant_limits *lim, struct tenant_err *err)
{
	sum->memory += t->cfg.memory_ppm;
	if (sum->memory > TENANT_PPM)
		return tenant_fail(err, RWY_EINVAL, TENANT_E_SHARE, t->cfg.name, -1);
	if (!t->cfg.guarantee_Bps)
		return 0;
	for (uint64_t left = t->tunnels; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		uint64_t cap = lim->capacity_Bps[i];

		/* compares with cap - guarantee, so that no sum wraps */
		if (cap && (t->cfg.guarantee_Bps > cap || sum->guarantee[i] > cap - t->cfg.guarantee_Bps))
			return tenant_fail(err, RWY_EINVAL, TENANT_E_GUARANTEE, t->cfg.name, (int)i);
		sum->guarantee[i] += cap ? t->cfg.guarantee_Bps : 0;
	}
	return 0;
}

int tenant_set_fill(struct tenant_set *s, const struct tenant *const *by_index,
    const struct tenant_limits *lim, struct tenant_err *err)
{
	struct sums sum = {{0}, 0};
	int r = 0;

	for (uint32_t i = 1; i < s->top && !r; i++) {
		const struct tenant *t = by_index[i];

		if (!t)
			continue;
		r = set_add(s, t, err);
		if (!r)
			r = sums_add(&sum, t, lim, err);
	}
	return r;
}
