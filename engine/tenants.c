/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of an engine: by index here, by VNI between gateways. Each has an address space of its
 * own: keys, pairs, CM table, prefixes, custody. Tenant 0 is the plain LAN. tenant_set.c adds and
 * changes tenants.
 */
#include <stdlib.h>

#include "engine/tenants.h"
#include "engine/emit.h"
#include "engine/memory.h"
#include "engine/steer.h"
#include "engine/table.h"
#include "engine/tunnel.h"
#include "rwy/endian.h"
#include "rwy/prefix.h"

#define TAG_LEN  4    /* bytes of the VNI in front of a best-effort packet */
#define CM_SMALL 1024 /* CM exchanges of a tenant; the plain LAN has as many as connections */

/* --- creation and end --- */
int eng_tenants_init(struct eng *e)
{
	struct eng_tenant *t = calloc(1, sizeof(*t));

	e->tenant_slots = 16;
	e->tenant =
	    /* NOLINT(bugprone-sizeof-expression): pointers */
	    calloc(e->tenant_slots, sizeof(*e->tenant));
	if (!t || !e->tenant) {
		free(t);
		e->tenant_slots = 0;
		return RWY_ENOMEM;
	}
	t->cfg = (struct eng_tenant_cfg){.ack_mode = e->cfg.ack_mode,
	    .admission = e->cfg.admission,
	    .timers = e->cfg.timers,
	    .custody = UINT64_MAX,
	    .prefix = e->cfg.prefix,
	    .prefixes = e->cfg.prefixes};
	eng_modes_set(e, t, e->cfg.mode, e->cfg.modes);
	e->tenant[0] = t;
	eng_mem_tenant_changed(e, t, 0);
	return eng_vni_rebuild(e);
}

static void tenant_free(struct eng_tenant *t)
{
	if (!t)
		return;
	roce_cm_tab_free(t->cm);
	free(t->prefix);
	free(t);
}

void eng_tenants_fini(struct eng *e)
{
	for (uint32_t i = 0; i < e->tenant_slots; i++)
		tenant_free(e->tenant[i]);
	free(e->tenant);
	free(e->vni_slot);
}

bool eng_tenant_remove(struct eng *e, uint32_t idx)
{
	struct eng_tenant *t = idx && idx < e->tenant_slots ? e->tenant[idx] : NULL;

	if (!t)
		return true;
	if (!t->removing) {
		uint64_t reserve = t->cfg.reserve;

		t->cfg.reserve = 0;
		eng_mem_tenant_changed(e, t, reserve);
		t->removing = true;
	}
	if (t->sides)
		return false;
	e->tenant[idx] = NULL;
	tenant_free(t);
	return true;
}

bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out)
{
	const struct eng_tenant *t = idx < e->tenant_slots ? e->tenant[idx] : NULL;

	if (!t)
		return false;
	*out = t->st;
	out->custody = t->mem.kind[ENG_MEM_CUSTODY] + t->mem.kind[ENG_MEM_UNPAIRED];
	out->flows = t->sides;
	out->held = t->mem.held;
	out->most = t->mem.most;
	out->max = t->memory_max < e->cfg.memory_total ? t->memory_max : e->cfg.memory_total;
	out->reserve = t->cfg.reserve;
	out->hosts = t->hosts;
	memcpy(out->kind, t->mem.kind, sizeof(out->kind));
	return true;
}

/* --- CM table, prefixes and tags of a tenant --- */
struct roce_cm_tab *eng_tenant_cm(struct eng *e, uint32_t tenant)
{
	struct eng_tenant *t = eng_tenant(e, tenant);
	const struct eng_cfg *c = &e->cfg;
	struct roce_cm_cfg cm;

	if (!t || t->cm)
		return t ? t->cm : NULL;
	roce_cm_cfg_default(&cm);
	cm.half_open_max = c->half_open_max;
	cm.capacity = c->conns_max > c->half_open_max ? c->conns_max : c->half_open_max;
	if (tenant && cm.capacity > CM_SMALL) {
		cm.capacity = CM_SMALL;
		if (cm.half_open_max > CM_SMALL / 4)
			cm.half_open_max = CM_SMALL / 4;
	}
	cm.seed = eng_random(e);
	if (roce_cm_tab_new(&t->cm, &cm) != 0)
		t->cm = NULL;
	return t->cm;
}

int eng_route_in(const struct eng *e, uint32_t tenant, const struct rwy_ip *dst)
{
	const struct eng_tenant *t = eng_tenant(e, tenant);
	int to = t ? eng_route_of(t->cfg.prefix, t->cfg.prefixes, dst) : -1;

	return to >= 0 && eng_tunnel_there(e, (unsigned)to) ? to : -1;
}

int eng_route_plain(const struct eng *e, const struct rwy_ip *dst)
{
	return eng_route_in(e, 0, dst);
}

int eng_route_plain_len(const struct eng *e, const struct rwy_ip *host)
{
	const struct eng_tenant_cfg *c = &e->tenant[0]->cfg;
	int best = -1;

	for (unsigned i = 0; i < c->prefixes; i++) {
		const struct eng_prefix *p = &c->prefix[i];

		if (p->len > best && rwy_prefix_match(&p->addr, p->len, host))
			best = p->len;
	}
	return best;
}

bool eng_tag(struct eng *e, uint32_t tenant, struct rwy_buf *b)
{
	b->kind = RWY_BUF_PACKET;
	if (!tenant)
		return true;
	if (b->headroom < TAG_LEN || b->len > UINT16_MAX - TAG_LEN) {
		eng_drop(e, b, &e->c.drop_no_buffer);
		return false;
	}
	b->data -= TAG_LEN;
	b->len += TAG_LEN;
	b->headroom = (uint16_t)(b->headroom - TAG_LEN);
	rwy_put32(b->data, eng_tenant(e, tenant)->cfg.vni);
	b->kind = RWY_BUF_TENANT;
	return true;
}

int eng_untag(struct eng *e, struct rwy_buf *b)
{
	int tenant;

	if (b->kind == RWY_BUF_PACKET)
		return 0;
	if (b->kind != RWY_BUF_TENANT || b->len <= TAG_LEN)
		return ENG_BAD_PACKET;
	tenant = rwy_get32(b->data) ? eng_tenant_by_vni(e, rwy_get32(b->data)) : -1;
	b->data += TAG_LEN;
	b->len -= TAG_LEN;
	b->headroom = (uint16_t)(b->headroom + TAG_LEN);
	b->kind = RWY_BUF_PACKET;
	return tenant < 0 ? ENG_NO_TENANT : tenant;
}
