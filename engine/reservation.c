/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: see reservation.h. Which assignment a flow has is steer.c. */
#include "engine/reservation.h"

#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"

static unsigned class_of(uint32_t reservation)
{
	return ENG_TENANTS_MAX + reservation;
}

/* A number that was another tenant's before still has that tenant's class as parent. */
static bool class_ready(const struct wan_tunnel *t, unsigned class_id, uint32_t parent)
{
	struct wan_class_stats s;

	wan_class_stats(t, class_id, &s);
	return s.cfg.weight && s.cfg.parent == parent;
}

/* The assignment of what the side sends: requests to the remote host's QP, or responses to it. */
static const struct eng_steer_cfg *assignment_of(const struct eng_side *side)
{
	const struct eng_key *k = &side->key;
	const uint32_t vni = side->tenant->cfg.vni;

	if (side->is_requester)
		return eng_steer_find(
		    side->e, vni, &k->dst, &k->src, ((const struct eng_requester *)side)->remote_qpn);
	return eng_steer_find(side->e, vni, &k->src, &k->dst, k->qpn);
}

void eng_reservation_enter(struct eng_side *side, struct wan_txflow *f)
{
	const struct eng_steer_cfg *a = assignment_of(side);
	struct wan_tunnel *t = eng_wan(side);
	unsigned class_id = side->key.tenant;

	eng_side_cold(side)->steering_gen = side->e->steering_gen;
	if (a && a->reservation) {
		struct wan_class_cfg share = a->share;

		share.parent = class_id;
		if (class_ready(t, class_of(a->reservation), class_id) ||
		    wan_class_set(t, class_of(a->reservation), &share) == 0)
			class_id = class_of(a->reservation);
		else
			side->e->c.reservation_no_memory++;
	}
	wan_tx_class(f, class_id);
}

void eng_reservation_look(struct eng_side *side)
{
	struct wan_txflow *f = side->is_requester ? ((struct eng_requester *)side)->responses
	                                          : ((struct eng_responder *)side)->requests;

	if (eng_side_cold(side)->steering_gen != side->e->steering_gen && f && eng_wan(side))
		eng_reservation_enter(side, f);
}

void eng_reservation_stats(const struct eng *e, unsigned reservation, struct wan_class_stats *out)
{
	*out = (struct wan_class_stats){0};
	for (unsigned i = 0; reservation && i < e->cfg.tunnels; i++) {
		struct wan_class_stats s;

		if (!e->tunnel[i].wan)
			continue;
		wan_class_stats(e->tunnel[i].wan, class_of(reservation), &s);
		if (!s.cfg.weight)
			continue;
		out->cfg = s.cfg;
		out->sent += s.sent;
		out->sent_guaranteed += s.sent_guaranteed;
		out->waiting |= s.waiting;
		out->limited |= s.limited;
	}
}

/* Takes up what the set says for the classes that exist. */
static void apply_shares(struct eng *e)
{
	const struct eng_share *v;
	struct wan_class_stats s;
	uint32_t n;

	if (!e->steering)
		return;
	v = eng_steering_shares(e->steering, &n);
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		for (uint32_t j = 0; j < n && e->tunnel[i].wan; j++) {
			struct wan_class_cfg share = v[j].cfg;

			wan_class_stats(e->tunnel[i].wan, class_of(v[j].reservation), &s);
			if (!s.cfg.weight)
				continue; /* no flow has needed it here */
			share.parent = s.cfg.parent;
			/* The class exists and the share was checked. */
			if (wan_class_set(e->tunnel[i].wan, class_of(v[j].reservation), &share) != 0)
				e->c.reservation_no_memory++;
		}
}

void eng_steering_set(struct eng *e, const struct eng_steering *w)
{
	if (e->steering == w)
		return;
	e->steering = w;
	e->steering_gen++;
	apply_shares(e);
}
