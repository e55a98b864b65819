/* SPDX-License-Identifier: Apache-2.0 */
/* Underlay addresses of gateways, as they registered them. */
#include <stdio.h>
#include <string.h>

#include "controller/fleet/fleet.h"

bool ctlr_wan_address(char out[MDL_ADDR], const char *at)
{
	const bool six = *at == '[';

	snprintf(out, MDL_ADDR, "%s", at + six);
	*strrchr(out, ':') = 0;
	if (six)
		*strrchr(out, ']') = 0;
	return six;
}

const char *ctlr_wan_pair(const struct ctlr_gateway *g, const struct ctlr_gateway *peer, char local[MDL_ADDR])
{
	const char(*mine)[MDL_ADDR] = g->reg.wan.at, (*theirs)[MDL_ADDR] = peer->reg.wan.at;

	for (unsigned i = 0; i < g->reg.wan.n; i++)
		for (unsigned k = 0; k < peer->reg.wan.n; k++) {
			if ((*mine[i] == '[') != (*theirs[k] == '['))
				continue;
			(void)ctlr_wan_address(local, mine[i]);
			return theirs[k];
		}
	return NULL;
}
