/* SPDX-License-Identifier: Apache-2.0 */
/* Flows, their place in a tunnel's list, and the end of sessions. place.c chooses the tunnel. */
#include "controller/state/flow.h"
#include "controller/state/relay_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "controller/state/work.h"

void ctlr_flow_unlink(struct ctlr_flow *f)
{
	if (!f->tunnel)
		return;
	if (f->prev)
		f->prev->next = f->next;
	else
		f->tunnel->flow = f->next;
	if (f->next)
		f->next->prev = f->prev;
	f->tunnel->flows--;
	f->tunnel = NULL;
	f->next = f->prev = NULL;
}

void ctlr_flow_link(struct ctlr_flow *f, struct ctlr_tunnel *t)
{
	f->tunnel = t;
	f->prev = NULL;
	f->next = t->flow;
	if (t->flow)
		t->flow->prev = f;
	t->flow = f;
	t->flows++;
}

struct ctlr_flow *ctlr_flow_new(struct ctlr *c, const char *key)
{
	return CTLR_MAP_NEED(&c->flows, struct ctlr_flow, key, key);
}

void ctlr_flow_key(char key[sizeof(((struct ctlr_flow *)0)->key)], uint32_t vni, const char *first,
    const char *second, uint32_t first_qpn, uint32_t second_qpn)
{
	const size_t size = sizeof(((struct ctlr_flow *)0)->key);
	const int n = snprintf(key, size, "%" PRIx32 "/%s/%s", vni, first, second);

	if (first_qpn && second_qpn && n > 0 && (size_t)n < size)
		snprintf(key + n, size - (size_t)n, "/%" PRIx32 "/%" PRIx32, first_qpn, second_qpn);
}

struct ctlr_flow *ctlr_flow_find(
    struct ctlr *c, uint32_t vni, const char *a, const char *b, uint32_t a_qpn, uint32_t b_qpn)
{
	char key[sizeof(((struct ctlr_flow *)0)->key)];
	struct ctlr_flow *f;

	ctlr_flow_key(key, vni, a, b, a_qpn, b_qpn);
	f = ctlr_map_find(&c->flows, key);
	if (f)
		return f;
	ctlr_flow_key(key, vni, b, a, b_qpn, a_qpn);
	return ctlr_map_find(&c->flows, key);
}

void ctlr_flow_lost_tunnel(struct ctlr *c, struct ctlr_tunnel *t)
{
	while (t->flow)
		ctlr_flow_unlink(t->flow);
}

void ctlr_session_free(struct ctlr *c, struct ctlr_session *s)
{
	struct ctlr_flow *f = s->flow;

	if (s->prev)
		s->prev->next = s->next;
	else
		s->gateway->session = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->gateway->sessions--;
	ctlr_relay_link_leave(c, s);
	ctlr_map_del(&c->sessions, &s->node);
	free(s);
	if (!f || --f->refs)
		return;
	ctlr_work_routes_changed(c, f->site[0]);
	ctlr_work_routes_changed(c, f->site[1]);
	ctlr_flow_unlink(f);
	ctlr_map_del(&c->flows, &f->node);
	free(f);
}
