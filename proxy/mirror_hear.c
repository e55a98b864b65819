/* SPDX-License-Identifier: Apache-2.0 */
/* The standby's part: links of the relay that serves. */
#include "proxy/mirror_int.h"

#define SWEEP 256 /* places of the table in one turn */

/* The same link, perhaps in an earlier state; NULL: it is not here. */
static struct proxy_link *same(const struct proxy_map *map, const struct proxy_link *l)
{
	const struct proxy_cm_key k = {l->local, l->relay, l->comm_a, l->local_active};
	struct proxy_link *was = l->pair ? proxy_map_in(map, &l->relay, l->alias) : proxy_map_cm_in(map, &k);

	return was && was->id == l->id && was->pair == l->pair && rwy_ip_eq(&was->relay, &l->relay) ? was
	                                                                                            : NULL;
}

/* Removes a link that was not told in this round. False: there is none behind the cursor. */
static bool remove_untold(struct proxy_mirror *m, uint32_t *cursor, bool any)
{
	struct proxy_link *l;

	while ((l = proxy_map_next(m->edge->map, cursor)))
		if (l->said < m->first && (any || l->state == PROXY_CLOSED)) {
			proxy_map_remove(m->edge->map, l);
			return true;
		}
	return false;
}

/* A link that was not told is gone, or comes again; until then an open one is of use. */
static void make_room(struct proxy_mirror *m)
{
	if (!remove_untold(m, &m->closed, false))
		(void)remove_untold(m, &m->sweep, true);
}

static void take(struct proxy_mirror *m, struct proxy_link *l, rwy_time now)
{
	struct proxy_link *is;

	if (!proxy_edge_fits(m->edge, l)) {
		m->edge->c.links_unfit++;
		return;
	}
	is = same(m->edge->map, l);
	if (!is && proxy_map_full(m->edge->map))
		make_room(m);
	is = proxy_map_take(m->edge->map, is, l, now);
	if (!is) {
		m->edge->c.drop_told_full++;
		return;
	}
	proxy_map_note(m->edge->map, is);
	is->said = m->serial;
	m->edge->c.links_heard++;
}

/* Takes no more until the next BEGIN if one is missing. False: it is not the next. */
static bool follows(struct proxy_mirror *m, enum proxy_mirror_type type, uint64_t number)
{
	if (type == PROXY_MIRROR_BEGIN)
		m->listens = true;
	else if (number != m->heard + 1)
		m->listens = false;
	if (!m->listens)
		return false;
	m->heard = number;
	m->serial++;
	return true;
}

static void hear_link(struct proxy_mirror *m, enum proxy_mirror_type type, struct proxy_link *l, rwy_time now)
{
	struct proxy_link *is;

	if (type == PROXY_MIRROR_BEGIN) {
		m->answered = m->heard - 1; /* another process may count as the one before did */
		m->first = m->serial;
		m->sweeps = false;
		m->sweep = m->closed = 0;
	} else if (type == PROXY_MIRROR_LINK) {
		take(m, l, now);
	} else if (type == PROXY_MIRROR_DONE) {
		m->sweeps = true;
		m->sweep = 0;
	} else if ((is = same(m->edge->map, l))) {
		proxy_map_remove(m->edge->map, is);
	}
}

void proxy_mirror_hear(struct proxy_mirror *m, const uint8_t *bytes, uint32_t len, bool serves, rwy_time now)
{
	enum proxy_mirror_type type;
	struct proxy_link l;
	uint64_t number;

	if (!proxy_mirror_read(bytes, len, &type, &number, &l)) {
		m->edge->c.drop_told_malformed++;
		return;
	}
	if (type == PROXY_MIRROR_HAD) {
		if (m->round && number > m->had && number <= m->sent) {
			m->had = number;
			m->moved = now;
		}
		return;
	}
	if (serves)
		return; /* it was under way when this relay took over */
	if (!follows(m, type, number))
		m->edge->c.drop_told_gap++;
	else
		hear_link(m, type, &l, now);
}

unsigned proxy_mirror_standby_turn(struct proxy_mirror *m)
{
	uint8_t msg[PROXY_MIRROR_LEN];
	struct proxy_link *l;
	uint32_t len;

	for (unsigned n = 0; m->sweeps && n < SWEEP; n++) {
		l = proxy_map_next(m->edge->map, &m->sweep);
		if (!l)
			m->sweeps = false;
		else if (l->said < m->first)
			proxy_map_remove(m->edge->map, l);
	}
	if (m->answered == m->heard)
		return m->sweeps;
	len = proxy_mirror_write(msg, PROXY_MIRROR_HAD, m->heard, NULL);
	if (!m->send(m->ctx, msg, len))
		return 0;
	m->answered = m->heard;
	return 1;
}
