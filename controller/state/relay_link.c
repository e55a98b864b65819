/* SPDX-License-Identifier: Apache-2.0 */
/* Links of relays: the sessions that several relays report of one connection. See relay_link.h. */
#include "controller/state/relay_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int ctlr_relay_link_join(struct ctlr *c, struct ctlr_session *s, uint64_t id)
{
	struct ctlr_relay_link *l;
	char key[sizeof(l->key)];

	snprintf(key, sizeof(key), "%016" PRIx64, id);
	l = CTLR_MAP_NEED(&c->relay_links, struct ctlr_relay_link, key, key);
	if (!l)
		return RWY_ENOMEM;
	s->link = l;
	s->link_next = l->session;
	l->session = s;
	return 0;
}

void ctlr_relay_link_leave(struct ctlr *c, struct ctlr_session *s)
{
	struct ctlr_relay_link *l = s->link;
	struct ctlr_session **p;

	if (!l)
		return;
	for (p = &l->session; *p != s; p = &(*p)->link_next)
		;
	*p = s->link_next;
	s->link = NULL;
	if (l->session)
		return;
	ctlr_map_del(&c->relay_links, &l->node);
	free(l);
}
