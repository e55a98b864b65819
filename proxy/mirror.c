/* SPDX-License-Identifier: Apache-2.0 */
/* The relay that serves tells its standby of links. */
#include "proxy/mirror_int.h"

#include <string.h>

#define WALK_LOOK 1024    /* places of the table in one turn, until all is told once; */
#define WALK_ON   128     /* later */
#define WALK_SEND 64      /* messages in one turn */
#define WINDOW    512     /* messages that the standby has not confirmed */
#define STUCK     RWY_SEC /* without any confirmation: a message may be lost */

static void changed(void *ctx, struct proxy_link *l, bool gone)
{
	struct proxy_mirror *m = ctx;

	l->said = 0;
	if (!m->round)
		return;
	if (gone && m->gone < PROXY_MIRROR_GONE)
		proxy_mirror_write(m->gone_msg[m->gone++], PROXY_MIRROR_LINK_GONE, 0, l);
	else if (gone)
		m->begun = false;
	else if (m->head - m->tail < PROXY_MIRROR_RING)
		m->ring[m->head++ % PROXY_MIRROR_RING] = (uint32_t)(l - m->edge->view.links);
	else
		m->cursor = 0;
}

void proxy_mirror_init(struct proxy_mirror *m, struct proxy_edge *edge, struct proxy_map_cfg *cfg)
{
	*m = (struct proxy_mirror){.edge = edge};
	cfg->changed = changed;
	cfg->ctx = m;
}

/* Sends it with the next number. */
static bool say(struct proxy_mirror *m, uint8_t *msg, uint32_t len)
{
	proxy_mirror_number(msg, m->sent + 1);
	if (m->sent - m->had >= WINDOW || !m->send(m->ctx, msg, len))
		return false;
	m->sent++;
	return true;
}

static bool say_plain(struct proxy_mirror *m, enum proxy_mirror_type type)
{
	uint8_t msg[PROXY_MIRROR_LEN];

	return say(m, msg, proxy_mirror_write(msg, type, 0, NULL));
}

static bool is_told(const struct proxy_mirror *m, const struct proxy_link *l)
{
	return l->said > m->base;
}

static bool say_link(struct proxy_mirror *m, struct proxy_link *l)
{
	uint8_t msg[PROXY_MIRROR_LEN];

	if (!say(m, msg, proxy_mirror_write(msg, PROXY_MIRROR_LINK, 0, l)))
		return false;
	l->said = m->sent;
	m->edge->c.links_told++;
	return true;
}

static bool begin(struct proxy_mirror *m)
{
	if (m->begun)
		return true;
	if (m->sent < m->serial) /* links have those numbers, of the time when it was the standby */
		m->sent = m->had = m->serial;
	if (!say_plain(m, PROXY_MIRROR_BEGIN))
		return false;
	m->begun = true;
	m->base = m->sent;
	m->done = 0;
	m->cursor = m->head = m->tail = m->gone = 0;
	return true;
}

static bool say_gone(struct proxy_mirror *m)
{
	while (m->gone) {
		if (!say(m, m->gone_msg[m->gone - 1], PROXY_MIRROR_LEN))
			return false;
		m->gone--;
	}
	return true;
}

static bool say_changes(struct proxy_mirror *m)
{
	for (; m->tail != m->head; m->tail++) {
		struct proxy_link *l = &m->edge->view.links[m->ring[m->tail % PROXY_MIRROR_RING]];

		if (l->state != PROXY_FREE && !is_told(m, l) && !say_link(m, l))
			return false;
	}
	return true;
}

static void walk(struct proxy_mirror *m)
{
	const uint64_t before = m->sent;

	const unsigned look = m->done ? WALK_ON : WALK_LOOK;

	for (unsigned n = 0; m->cursor < m->edge->view.links_max && n < look; n++, m->cursor++) {
		struct proxy_link *l = &m->edge->view.links[m->cursor];

		if (l->state == PROXY_FREE || is_told(m, l))
			continue;
		if (m->sent - before >= WALK_SEND || !say_link(m, l))
			return;
	}
	if (m->cursor == m->edge->view.links_max && !m->done && say_plain(m, PROXY_MIRROR_DONE))
		m->done = m->sent;
}

unsigned proxy_mirror_turn(struct proxy_mirror *m, uint32_t round, rwy_time now)
{
	const uint64_t before = m->sent;

	if (round != m->round) {
		m->round = round;
		m->begun = false;
		m->done = 0;
		m->had = m->sent; /* what was under way does not count */
		m->moved = now;
	}
	if (!round) {
		if (m->serial < m->sent) /* links have those numbers, of the time when it served */
			m->serial = m->sent;
		return proxy_mirror_standby_turn(m);
	}
	if (m->sent == m->had)
		m->moved = now;
	else if (rwy_since(m->moved, now) >= STUCK) {
		m->had = m->sent;
		m->begun = false;
		m->moved = now;
	}
	if (begin(m) && say_gone(m) && say_changes(m))
		walk(m);
	return (unsigned)(m->sent - before);
}

bool proxy_mirror_whole(const struct proxy_mirror *m, uint32_t round)
{
	return round == m->round && m->done && m->had >= m->done;
}

bool proxy_mirror_has(const struct proxy_mirror *m, const struct proxy_link *l)
{
	return m->begun && is_told(m, l) && l->said <= m->had;
}
