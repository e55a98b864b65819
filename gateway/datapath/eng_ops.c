/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a worker's engine calls (struct eng_ops). tx_lan.c and tx_wan.c send
 * packets. */
#include "gateway/datapath/edge.h"
#include "gateway/datapath/notes.h"
#include "gateway/datapath/sessions.h"
#include "gateway/datapath/standby.h"
#include "gateway/datapath/tx.h"

static void log_event(void *ctx, int level, const char *msg)
{
	const struct gw_worker *w = ctx;

	if (w->app->workers > 1)
		gw_log(level, "engine", "worker=%u %s", w->idx, msg);
	else
		gw_log(level, "engine", "%s", msg);
}

static void path_congested(void *ctx, unsigned tunnel, uint8_t path, const struct wan_congest_state *s)
{
	struct gw_worker *w = ctx;
	uint64_t bit = (uint64_t)1 << tunnel;

	w->tunnel_congested = s->by ? w->tunnel_congested | bit : w->tunnel_congested & ~bit;
}

/* Stores the state for the control thread, which logs it (tunnel_log.c). */
static void tunnel_state(void *ctx, unsigned tunnel, bool up, rwy_time now)
{
	struct gw_worker *w = ctx;
	_Atomic uint64_t *s = &w->tun_state[tunnel];

	gw_standby_link(w, tunnel, up);
	/* Also called when the peer restarted. */
	if ((atomic_load_explicit(s, memory_order_relaxed) & 1) != up)
		atomic_store_explicit(s, now << 1 | up, memory_order_relaxed);
}

static void session(void *ctx, bool open, const struct eng_session *s)
{
	struct gw_worker *w = ctx;
	struct gw_link_name link;

	if (!w->sessions)
		return;
	link = gw_link_of(w, s);
	if (!gw_session_put(w->sessions, open, s, &link))
		w->c.drop_session_event++;
}

#define OPS                                                                                                  \
	.lan_tx = gw_tx_engine_lan, .wan_tx = gw_tx_engine_wan, .log = log_event,                            \
	.path_congested = path_congested, .tunnel_state = tunnel_state, .serves = gw_standby_serves,         \
	.board_changed = gw_standby_changed, .standby_note = gw_standby_note, .session = session,            \
	.note = gw_note_send

const struct eng_ops gw_eng_ops = {OPS};
const struct eng_ops gw_relay_eng_ops = {
    OPS, .lan_ahead = gw_edge_out_ahead, .standby_whole = gw_edge_pair_whole};
