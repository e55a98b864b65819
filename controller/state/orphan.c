/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/orphan.h"

#include <stdio.h>
#include <stdlib.h>

void ctlr_orphan_add(struct ctlr *c, const char *tunnel, const char *gateway, uint64_t mod_rev)
{
	struct ctlr_orphan *o = calloc(1, sizeof(*o));

	if (!o)
		return; /* when everything is read the next time */
	snprintf(o->tunnel, sizeof(o->tunnel), "%s", tunnel);
	snprintf(o->gateway, sizeof(o->gateway), "%s", gateway);
	o->c = c;
	o->mod_rev = mod_rev;
	ctlr_orphan_put(o);
}

void ctlr_orphan_put(struct ctlr_orphan *o)
{
	o->next = o->c->orphan;
	o->c->orphan = o;
}

struct ctlr_orphan *ctlr_orphan_take(struct ctlr *c)
{
	struct ctlr_orphan *o = c->orphan;

	if (o)
		c->orphan = o->next;
	return o;
}

void ctlr_orphans_free(struct ctlr *c)
{
	struct ctlr_orphan *o;

	while ((o = ctlr_orphan_take(c)))
		free(o);
}
