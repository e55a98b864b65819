/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steering by queue pair (`gateway.steering`): the worker of a host's packet, and the notes that
 * workers' engines send each other (engine/note.h). A ring for each worker has its notes.
 *
 * Thread: the worker's, unless a function says otherwise.
 */
#ifndef GATEWAY_DATAPATH_NOTES_H
#define GATEWAY_DATAPATH_NOTES_H

#include "engine/directory.h"
#include "gateway/datapath/pkt.h"
#include "gateway/gw.h"

/* The worker's ring; nothing without a directory. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_notes_new(struct gw_worker *w);
void gw_notes_free(struct gw_worker *w);
/* eng_ops.note. */
bool gw_note_send(void *ctx, unsigned worker, const struct eng_note *n);
/* Gives the engine the notes that wait; returns their number. */
unsigned gw_notes_take(struct gw_worker *w);
/*
 * The same before it gets a burst's datagrams, and before its hosts' packets: the directory may
 * lead here those that follow a note.
 */
static inline void gw_notes_first(struct gw_worker *w)
{
	if (w->notes && !rte_ring_empty(w->notes))
		gw_notes_take(w);
}

/* The worker of a RoCE packet by the directory; -1: none. For gw_worker_of(). */
int gw_directory_find(
    const struct gw_app *app, uint32_t vni, const struct rte_mbuf *m, const struct gw_pkt *k);

/* The worker that owns the flow of a host's packet. vni: of its tenant; 0: none. */
static inline unsigned gw_worker_of(
    const struct gw_app *app, uint32_t vni, const struct rte_mbuf *m, const struct gw_pkt *k)
{
	int at = app->directory ? gw_directory_find(app, vni, m, k) : -1;

	return at >= 0 ? (unsigned)at : eng_owner(vni, &k->src, &k->dst, app->workers);
}

#endif
