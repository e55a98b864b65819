/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of an engine, by index (tenants.c) and by VNI (vni.c). */
#ifndef ENGINE_TENANTS_H
#define ENGINE_TENANTS_H

#include "engine/eng.h"

/* Makes tenant 0, the plain LAN. RWY_ENOMEM. */
int eng_tenants_init(struct eng *e);
/* Frees all tenants; their sides must be gone. */
void eng_tenants_fini(struct eng *e);
/* The tenant's table of CM exchanges, made when it is first asked for. NULL: no memory. */
struct roce_cm_tab *eng_tenant_cm(struct eng *e, uint32_t tenant);
/* The tunnel that dst is behind; -1: none. */
int eng_route_in(const struct eng *e, uint32_t tenant, const struct rwy_ip *dst);
/* Puts the tenant's VNI in front of a best-effort packet or CM message. False: b was dropped. */
bool eng_tag(struct eng *e, uint32_t tenant, struct rwy_buf *b);
#define ENG_NO_TENANT  (-1)
#define ENG_BAD_PACKET (-2)
/* Takes the VNI off again. The tenant's index, or one of these; b stays the caller's. */
int eng_untag(struct eng *e, struct rwy_buf *b);

/* --- vni.c --- */
/* The tenant's index; -1: none. VNI 0 is tenant 0. */
int eng_tenant_by_vni(const struct eng *e, uint32_t vni);
/* e->tenant[idx] has a VNI that it did not have before. RWY_ENOMEM. */
int eng_vni_enter(struct eng *e, uint32_t idx);
/* Builds the index of VNIs from all tenants. RWY_ENOMEM: the old one stays. */
int eng_vni_rebuild(struct eng *e);

#endif
