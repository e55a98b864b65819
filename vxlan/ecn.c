/* SPDX-License-Identifier: Apache-2.0 */
/* The table of RFC 6040 figure 4, and the DSCP policies. */
#include "vxlan/ecn.h"

#include <string.h>

#define AT(inner, outer) ((VXLAN_##inner) << 2 | (VXLAN_##outer))
#define IS(result, j)                                                                                        \
	{                                                                                                    \
		.ecn = VXLAN_##result, .verdict = VXLAN_ECN_##j                                              \
	}

const struct vxlan_ecn_out vxlan_ecn_table[16] = {
    [AT(NOT_ECT, NOT_ECT)] = IS(NOT_ECT, FINE),
    [AT(NOT_ECT, ECT0)] = IS(NOT_ECT, DANGEROUS),
    [AT(NOT_ECT, ECT1)] = IS(NOT_ECT, DANGEROUS),
    [AT(NOT_ECT, CE)] = {.ecn = VXLAN_NOT_ECT, .verdict = VXLAN_ECN_DANGEROUS, .drop = true},

    [AT(ECT0, NOT_ECT)] = IS(ECT0, FINE),
    [AT(ECT0, ECT0)] = IS(ECT0, FINE),
    [AT(ECT0, ECT1)] = IS(ECT1, FINE),
    [AT(ECT0, CE)] = IS(CE, FINE),

    [AT(ECT1, NOT_ECT)] = IS(ECT1, FINE),
    [AT(ECT1, ECT0)] = IS(ECT1, UNUSED),
    [AT(ECT1, ECT1)] = IS(ECT1, FINE),
    [AT(ECT1, CE)] = IS(CE, FINE),

    [AT(CE, NOT_ECT)] = IS(CE, FINE),
    [AT(CE, ECT0)] = IS(CE, FINE),
    [AT(CE, ECT1)] = IS(CE, DANGEROUS),
    [AT(CE, CE)] = IS(CE, FINE),
};

bool vxlan_ecn_apply(uint8_t *inner_ip, uint8_t outer_ecn, struct vxlan_ecn_counters *c)
{
	uint8_t tos = vxlan_tos_get(inner_ip), was = tos & 3;
	const struct vxlan_ecn_out *o = vxlan_ecn_decap(was, outer_ecn);

	c->ecn_unused += o->verdict == VXLAN_ECN_UNUSED;
	c->ecn_dangerous += o->verdict == VXLAN_ECN_DANGEROUS;
	if (o->drop) {
		c->ecn_drop++;
		return false;
	}
	if (o->ecn == was)
		return true;
	c->ecn_ce += o->ecn == VXLAN_CE;
	c->ecn_ect1 += o->ecn == VXLAN_ECT1;
	vxlan_tos_set(inner_ip, (uint8_t)((tos & 0xfc) | o->ecn));
	return true;
}

void vxlan_dscp_keep(struct vxlan_dscp *p)
{
	for (unsigned i = 0; i < 64; i++)
		p->map[i] = (uint8_t)i;
}

int vxlan_dscp_set(struct vxlan_dscp *p, uint8_t dscp)
{
	if (dscp > 63)
		return RWY_EINVAL;
	memset(p->map, dscp, sizeof(p->map));
	return 0;
}
