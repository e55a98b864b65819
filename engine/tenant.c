/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of this worker: by index here, by VNI between gateways. Each has its own address space: keys,
 * pairs, CM tables, routes and custody are its own. Tenant 0 is the plain LAN.
 */
#include <stdlib.h>

#include "engine/eng.h"
#include "rwy/endian.h"

#define TAG_LEN  4 /* the VNI in front of a best-effort packet */
#define CM_SMALL 1024

static uint32_t vni_hash(uint32_t vni)
{
	return vni * 0x9e3779b1u >> 8;
}

/* --- the VNI table -------------------------------------------------------------------------------- */

/* A slot says only where to look: what it names may be gone, or have another VNI by now. */
static void vni_put(struct eng *e, uint32_t idx)
{
	uint32_t at = vni_hash(e->ten[idx]->cfg.vni) & e->vni_mask;

	for (; e->vni_slot[at] && e->vni_slot[at] != idx + 1; at = (at + 1) & e->vni_mask)
		if (!e->ten[e->vni_slot[at] - 1])
			break;
	e->vni_used += !e->vni_slot[at];
	e->vni_slot[at] = idx + 1;
}

static int vni_rebuild(struct eng *e)
{
	uint32_t n = 64, live = 0, *slot;

	for (uint32_t i = 1; i < e->tens; i++)
		live += e->ten[i] != NULL;
	while (n < 4 * live)
		n *= 2;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return RWY_ENOMEM;
	free(e->vni_slot);
	e->vni_slot = slot;
	e->vni_mask = n - 1;
	e->vni_used = 0;
	for (uint32_t i = 1; i < e->tens; i++)
		if (e->ten[i])
			vni_put(e, i);
	return 0;
}

/* e->ten[idx] has a VNI that it did not have. The whole table is looked at only when it is half full. */
static int vni_enter(struct eng *e, uint32_t idx)
{
	if (2 * (e->vni_used + 1) > e->vni_mask)
		return vni_rebuild(e);
	vni_put(e, idx);
	return 0;
}

int eng_tenant_by_vni(const struct eng *e, uint32_t vni)
{
	uint32_t at = vni_hash(vni) & e->vni_mask;

	if (!vni)
		return 0;
	for (; e->vni_slot[at]; at = (at + 1) & e->vni_mask) {
		const struct eng_ten *t = e->ten[e->vni_slot[at] - 1];

		if (t && !t->removing && t->cfg.vni == vni)
			return (int)e->vni_slot[at] - 1;
	}
	return -1;
}

/* --- life --------------------------------------------------------------------------------------- */
int eng_tenants_init(struct eng *e)
{
	struct eng_ten *t = calloc(1, sizeof(*t));

	e->tens = 16;
	e->ten = calloc(e->tens, sizeof(*e->ten)); /* NOLINT(bugprone-sizeof-expression): pointers */
	if (!t || !e->ten) {
		free(t);
		e->tens = 0;
		return RWY_ENOMEM;
	}
	t->cfg = (struct eng_tenant_cfg){.ack_mode = e->cfg.ack_mode,
	    .custody = UINT64_MAX,
	    .prefix = e->cfg.prefix,
	    .prefixes = e->cfg.prefixes};
	e->ten[0] = t;
	return vni_rebuild(e);
}

static void ten_free(struct eng_ten *t)
{
	if (!t)
		return;
	roce_cm_tab_free(t->cm);
	free(t->prefix);
	free(t);
}

void eng_tenants_fini(struct eng *e)
{
	for (uint32_t i = 0; i < e->tens; i++)
		ten_free(e->ten[i]);
	free(e->ten);
	free(e->vni_slot);
}

static int check(const struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg)
{
	int other = cfg->vni ? eng_tenant_by_vni(e, cfg->vni) : -1;
	const struct wan_class_cfg *s = &cfg->share;

	if (!idx || idx >= ENG_TENANTS_MAX || !cfg->vni || cfg->vni > 0xffffff ||
	    (other >= 0 && (uint32_t)other != idx))
		return RWY_EINVAL;
	if (s->weight > WAN_WEIGHT_MAX || s->priority >= WAN_PRIORITIES ||
	    (s->limit_Bps && s->limit_Bps < s->guarantee_Bps) ||
	    (!s->weight && (s->limit_Bps || s->guarantee_Bps)))
		return RWY_EINVAL;
	for (unsigned i = 0; i < cfg->prefixes; i++)
		if (!eng_tunnel_there(e, cfg->prefix[i].tunnel) || cfg->prefix[i].len > 128)
			return RWY_EINVAL;
	if (idx < e->tens && e->ten[idx] && e->ten[idx]->removing)
		return RWY_EAGAIN;
	return 0;
}

static bool reach(struct eng *e, uint32_t idx)
{
	uint32_t n = e->tens;
	struct eng_ten **v;

	while (n <= idx)
		n *= 2;
	if (n == e->tens)
		return true;
	v = calloc(n, sizeof(*v)); /* NOLINT(bugprone-sizeof-expression): pointers */
	if (!v)
		return false;
	memcpy(v, e->ten, e->tens * sizeof(*v)); /* NOLINT(bugprone-sizeof-expression) */
	free(e->ten);
	e->ten = v;
	e->tens = n;
	return true;
}

/* Its share of every tunnel. Only memory can be lacking: what is asked for was checked. */
static int share(struct eng *e, uint32_t idx, const struct wan_class_cfg *s)
{
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		int r = s->weight && e->tun[i].wan ? wan_class_set(e->tun[i].wan, idx, s) : 0;

		if (r)
			return r;
	}
	return 0;
}

int eng_tenant_set(struct eng *e, uint32_t idx, const struct eng_tenant_cfg *cfg, rwy_time now)
{
	struct eng_prefix *prefix = NULL;
	struct eng_ten *t, *fresh = NULL;
	int r = check(e, idx, cfg);

	if (r)
		return r;
	if (!reach(e, idx))
		return RWY_ENOMEM;
	if (cfg->prefixes && !(prefix = malloc(cfg->prefixes * sizeof(*prefix))))
		return RWY_ENOMEM;
	t = e->ten[idx];
	if (!t && !(t = fresh = calloc(1, sizeof(*t)))) {
		free(prefix);
		return RWY_ENOMEM;
	}
	r = share(e, idx, &cfg->share);
	if (r) {
		free(prefix);
		free(fresh);
		return r;
	}
	if (cfg->prefixes)
		memcpy(prefix, cfg->prefix, cfg->prefixes * sizeof(*prefix));
	struct eng_ten old = *t;

	t->cfg = *cfg;
	t->cfg.prefix = t->prefix = prefix;
	e->ten[idx] = t;
	if (old.cfg.vni != cfg->vni && (r = vni_enter(e, idx)) != 0) {
		*t = old;
		free(prefix);
		if (fresh) {
			e->ten[idx] = NULL;
			free(fresh);
		}
		return r;
	}
	free(old.prefix);
	e->reserved += cfg->reserve - old.cfg.reserve;
	e->common += eng_over(t) - eng_over(&old);
	if (fresh && e->jfree)
		eng_journal_restore(e, idx, now);
	return 0;
}

bool eng_tenant_remove(struct eng *e, uint32_t idx)
{
	struct eng_ten *t = idx && idx < e->tens ? e->ten[idx] : NULL;

	if (!t)
		return true;
	if (!t->removing) {
		e->common -= eng_over(t);
		e->reserved -= t->cfg.reserve;
		t->cfg.reserve = 0;
		e->common += eng_over(t);
		t->removing = true;
	}
	if (t->halves)
		return false;
	e->ten[idx] = NULL;
	ten_free(t);
	return true;
}

bool eng_tenant_stats(const struct eng *e, uint32_t idx, struct eng_tenant_stats *out)
{
	const struct eng_ten *t = idx < e->tens ? e->ten[idx] : NULL;

	if (!t)
		return false;
	*out = t->st;
	out->custody = t->custody;
	out->flows = t->halves;
	return true;
}

/* --- what is a tenant's own -------------------------------------------------------------------------- */
struct roce_cm_tab *eng_tenant_cm(struct eng *e, uint32_t tenant)
{
	struct eng_ten *t = eng_tenant(e, tenant);
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
	const struct eng_ten *t = eng_tenant(e, tenant);
	int to = t ? eng_route_of(t->cfg.prefix, t->cfg.prefixes, dst) : -1;

	return to >= 0 && eng_tunnel_there(e, (unsigned)to) ? to : -1;
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
