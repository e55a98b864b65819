/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/datapath/transit.h"

#include "gateway/datapath/overlay.h"

bool gw_transit_vxlan6(const struct gw_worker *w, const uint8_t *ip, uint32_t len)
{
	struct vxlan_pkt v;

	return vxlan_decap(&w->ov->vxlan, ip, len, &v) != VXLAN_NOT_VXLAN;
}
