/* SPDX-License-Identifier: Apache-2.0 */
/* Steering by queue pair. */
#include "gateway/datapath/notes.h"

#include <rte_ring_elem.h>

#include "base/log.h"
#include "base/random.h"
#include "engine/note.h"
#include "gateway/port/mbuf.h"
#include "gateway/setup.h"

#define NOTES_LEN 4096 /* notes that wait for a worker: as many as CM messages of a tunnel */

static_assert(sizeof(struct eng_note) % 4 == 0, "an element of a ring");
static_assert(GW_WORKERS_MAX <= ENG_WORKERS_MAX, "the directory has their numbers");

int gw_directory_new(struct gw_app *app)
{
	const struct conf *c = app->conf;

	if (c->steering != CONF_STEER_QP || app->workers < 2)
		return 0;
	if (eng_directory_new(&app->directory, (uint32_t)c->conns_max, base_random64()) == 0)
		return 0;
	gw_log(GW_LOG_ERROR, "main", "no memory for the directory of connections (gateway.steering)");
	return RWY_ENOMEM;
}

void gw_directory_free(struct gw_app *app)
{
	eng_directory_free(app->directory);
	app->directory = NULL;
}

int gw_notes_new(struct gw_worker *w)
{
	char name[RTE_RING_NAMESIZE];

	if (!w->app->directory)
		return 0;
	snprintf(name, sizeof(name), "rwy_notes_%u_%.8s", w->idx, w->app->conf->name);
	w->notes =
	    rte_ring_create_elem(name, sizeof(struct eng_note), NOTES_LEN, SOCKET_ID_ANY, RING_F_SC_DEQ);
	return w->notes ? 0 : RWY_ENOMEM;
}

void gw_notes_free(struct gw_worker *w)
{
	const struct rwy_bufs bufs = {.ops = &gw_buf_ops, .ctx = w->pools};
	struct eng_note n;

	while (w->notes && rte_ring_dequeue_elem(w->notes, &n, sizeof(n)) == 0)
		eng_note_free(&bufs, &n);
	rte_ring_free(w->notes);
	w->notes = NULL;
}

bool gw_note_send(void *ctx, unsigned worker, const struct eng_note *n)
{
	struct gw_worker *w = ctx, *to = w->app->worker[worker];

	/* Packets that nobody knows leave room for what keeps connections. */
	if (to && n->type == ENG_NOTE_PACKET && rte_ring_count(to->notes) > NOTES_LEN / 2)
		return false;
	if (!to || rte_ring_mp_enqueue_elem(to->notes, (void *)(uintptr_t)n, sizeof(*n)) != 0)
		return false;
	gw_worker_wake(to);
	return true;
}

unsigned gw_notes_take(struct gw_worker *w)
{
	const unsigned waiting = rte_ring_count(w->notes);
	struct eng_note n;
	unsigned got = 0;

	for (; got < waiting && rte_ring_sc_dequeue_elem(w->notes, &n, sizeof(n)) == 0; got++)
		eng_note_take(w->eng, &n, w->now);
	return got;
}

int gw_directory_find(
    const struct gw_app *app, uint32_t vni, const struct rte_mbuf *m, const struct gw_pkt *k)
{
	const uint8_t *bth = gw_pkt_bth(m, k);
	struct eng_key key = {.src = k->src, .dst = k->dst};

	if (!bth)
		return -1;
	key.qpn = gw_bth_qpn(bth);
	return eng_directory_find(app->directory, eng_directory_hash(app->directory, &key, vni, false));
}
