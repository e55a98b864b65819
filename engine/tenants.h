/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants of this worker, by index and by VNI. */
#ifndef ENGINE_TENANTS_H
#define ENGINE_TENANTS_H

#include "engine/eng.h"

int eng_tenants_init(struct eng *e);
void eng_tenants_fini(struct eng *e);
struct roce_cm_tab *eng_tenant_cm(struct eng *e, uint32_t tenant); /* NULL: no memory */
/* The tunnel that dst is behind, -1: none. */
int eng_route_in(const struct eng *e, uint32_t tenant, const struct rwy_ip *dst);
/* Best-effort packets and CM messages name their tenant to the peer in front of the packet. False: dropped.
 */
bool eng_tag(struct eng *e, uint32_t tenant, struct rwy_buf *b);
#define ENG_NO_TENANT  (-1)
#define ENG_BAD_PACKET (-2)
int eng_untag(struct eng *e, struct rwy_buf *b); /* index, or one of these */

/* --- vni.c --- */
int eng_tenant_by_vni(const struct eng *e, uint32_t vni); /* index, -1: none */
/* e->ten[idx] has a VNI that it did not have. RWY_ENOMEM. */
int eng_vni_enter(struct eng *e, uint32_t idx);
int eng_vni_rebuild(struct eng *e);

#endif
