/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of local hosts that do not come by eng_tenant_rx(). */
#ifndef ENGINE_LAN_H
#define ENGINE_LAN_H

#include "engine/eng.h"

/*
 * An RC packet of a local host that another worker's engine got, checked, and has no connection
 * for. Takes b. It stays here, whatever becomes of it.
 */
void eng_lan_passed(struct eng *e, uint32_t tenant, struct rwy_buf *b, rwy_time now);

#endif
