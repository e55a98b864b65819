/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One of a pair of gateways: which ports are open. The engine decides who serves; what it says is
 * followed here, and told to the other threads by gw_app.pair.
 *
 *   HIDES     nothing passes but the pair's own port
 *   ASKS      the witness is asked for the tunnels: the WAN ports are open, for the kernel too,
 *             which has to find the next hop, and to exchange keys
 *   SERVES    all ports are open
 *   REPLACED  as HIDES; the process ends
 */
#include "gateway/datapath/standby.h"

#include <rte_ethdev.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/board.h"
#include "gateway/datapath/edge_pair.h"
#include "gateway/port/kernel.h"
#include "gateway/port/mbuf.h"
#include "gateway/setup.h"

#define LATE    3  /* beats without a turn, after which the other gateway may have taken over */
#define DRAINED 64 /* bursts at most that are read first then: more than a queue holds */
#define SAYS    10

/* After the begin, in milliseconds. A gateway that does not know yet that it was replaced may still
 * send, and move the address back to its port of the switch. */
static const uint16_t say_after[SAYS] = {0, 10, 20, 50, 100, 150, 200, 300, 500, 1000};

/*
 * While the other gateway is silent it may ask the witness, from our address: what the witness
 * sends to us then goes to it, until we say something. Later it asks once in `standby_wait`.
 */
#define SAY_OFTEN  (200 * RWY_MS) /* at first, */
#define OFTEN_FOR  (5 * RWY_SEC)  /* for so long */
#define SAY_SELDOM RWY_SEC

struct gw_standby {
	unsigned tunnel;
	bool silent;    /* the other gateway, */
	rwy_time since; /* since then */
	rwy_time say_at;
	rwy_dur beat;
	rwy_time turn; /* the last one */
	/* since it serves; SAYS announcements were made: all */
	rwy_time served;
	unsigned said;
	bool finding; /* hosts' addresses */
	uint32_t cursor;
	struct gw_standby_neigh neigh;
};

int gw_standby_new(struct gw_worker *w)
{
	const int tunnel = conf_standby(w->app->conf);
	const struct conf_tunnel *t;
	struct gw_standby *s;

	if (tunnel < 0)
		return 0;
	t = &w->app->conf->tunnel[tunnel];
	s = calloc(1, sizeof(*s));
	if (!s)
		return RWY_ENOMEM;
	s->tunnel = (unsigned)tunnel;
	s->silent = true;
	s->beat = t->standby_beat;
	s->turn = gw_now();
	s->said = SAYS;
	w->standby = s;
	w->gated = true;
	w->gate = GW_PAIR_HIDES;
	if (!w->idx)
		gw_pair_set(w->app, w->gate);
	return 0;
}

int gw_board_new(struct gw_app *app)
{
	if (conf_standby(app->conf) < 0 || app->workers < 2)
		return 0;
	if (eng_board_new(&app->board) == 0)
		return 0;
	gw_log(GW_LOG_ERROR, "main", "no memory for what the workers of the pair's gateway share");
	return RWY_ENOMEM;
}

void gw_board_free(struct gw_app *app)
{
	eng_board_free(app->board);
	app->board = NULL;
}

void gw_standby_free(struct gw_worker *w)
{
	free(w->standby);
}

static bool leads(const struct gw_worker *w)
{
	return !w->idx;
}

static void gate_set(struct gw_worker *w, enum gw_pair gate)
{
	if (w->gate == gate)
		return;
	w->gate = gate;
	w->gated = gate != GW_PAIR_SERVES;
	if (!leads(w))
		return;
	gw_pair_set(w->app, gate);
	gw_kernel_wake(w->app->kernel); /* the control thread tells the others */
}

void gw_standby_changed(void *ctx)
{
	const struct gw_worker *w = ctx;

	for (unsigned i = 0; i < w->app->workers; i++)
		if (i != w->idx && w->app->worker[i]) {
			atomic_store(&w->app->worker[i]->poked, true); /* it may fall asleep */
			gw_worker_wake(w->app->worker[i]);
		}
}

void gw_standby_serves(void *ctx, bool serves, bool replaced, rwy_time now)
{
	struct gw_worker *w = ctx;
	struct gw_standby *s = w->standby;

	if (leads(w))
		gate_set(w, replaced ? GW_PAIR_REPLACED : serves ? GW_PAIR_SERVES : GW_PAIR_HIDES);
	s->served = now;
	s->said = serves ? 0 : SAYS;
	s->finding = serves;
	s->cursor = 0;
	if (w->edge)
		gw_edge_pair_serves(w, serves, now);
}

void gw_standby_link(struct gw_worker *w, unsigned tunnel, bool up)
{
	if (!w->standby || tunnel != w->standby->tunnel)
		return;
	w->standby->silent = !up;
	gw_standby_neigh_begin(&w->standby->neigh);
	w->standby->since = w->standby->say_at = w->now;
}

/* A gateway that asks the witness must send on the WAN. */
static enum gw_pair gate_wanted(const struct gw_worker *w)
{
	struct eng_standby_info i;

	if (!leads(w))
		return (enum gw_pair)atomic_load_explicit(&w->app->pair, memory_order_relaxed);
	if (w->gate == GW_PAIR_SERVES || w->gate == GW_PAIR_REPLACED)
		return w->gate; /* until the engine says another thing */

	return eng_standby_info(w->eng, &i) && i.asks ? GW_PAIR_ASKS : GW_PAIR_HIDES;
}

static void find_hosts(struct gw_worker *w, struct gw_standby *s)
{
	if (!s->finding)
		return;
	gw_standby_find_hosts(w, &s->cursor);
	s->finding = s->cursor != 0;
}

static void say(struct gw_worker *w, struct gw_standby *s)
{
	if (!leads(w)) {
		find_hosts(w, s);
		return;
	}
	if (s->said < SAYS && w->now >= s->served + say_after[s->said] * RWY_MS) {
		gw_standby_announce(w, true);
		s->said++;
		s->say_at = w->now + SAY_OFTEN;
	} else if (s->silent && w->now >= s->say_at) {
		gw_standby_announce(w, false);
		s->say_at = w->now + (w->now < s->since + OFTEN_FOR ? SAY_OFTEN : SAY_SELDOM);
	}
	find_hosts(w, s);
	if (!s->silent)
		gw_standby_neigh_say(w, &s->neigh);
}

void gw_standby_note(void *ctx, enum eng_standby_kind kind, const uint8_t *bytes, uint32_t len, rwy_time now)
{
	struct gw_worker *w = ctx;

	if (kind == ENG_STANDBY_LINKS)
		gw_edge_pair_note(w, bytes, len);
	else if (leads(w) && w->gate == GW_PAIR_HIDES) /* else what the kernel finds out is newer */
		gw_standby_neigh_hear(w, &w->standby->neigh, bytes, len);
}

bool gw_standby_told(struct gw_worker *w, struct gw_neigh_told *out)
{
	struct gw_standby_neigh *n = w->standby ? &w->standby->neigh : NULL;
	uint32_t tail;

	if (!n)
		return false;
	tail = atomic_load_explicit(&n->tail, memory_order_relaxed);
	if (tail == atomic_load_explicit(&n->head, memory_order_acquire))
		return false;
	*out = n->told[tail % GW_TOLD];
	atomic_store_explicit(&n->tail, tail + 1, memory_order_release);
	return true;
}

/*
 * The process did not run for some time. Hosts' packets may wait that the other gateway has
 * answered since: what it says comes first, and the engine's timers, before any of them is looked
 * at.
 */
static void catch_up(struct gw_worker *w)
{
	struct rte_mbuf *pkts[GW_BURST];

	for (unsigned i = 0; i < w->rxqs; i++)
		for (unsigned k = 0; w->rxq[i].port->pair && k < DRAINED; k++) {
			uint16_t n = rte_eth_rx_burst(w->rxq[i].port->id, w->rxq[i].queue, pkts, GW_BURST);

			if (!n)
				break;
			w->st.rx_packets += n;
			gw_rx(w, pkts, n, false);
		}
	eng_poll(w->eng, w->now);
}

void gw_standby_turn(struct gw_worker *w)
{
	struct gw_standby *s = w->standby;

	if (rwy_since(s->turn, w->now) > LATE * s->beat && !w->gated)
		catch_up(w);
	s->turn = w->now;
	gate_set(w, gate_wanted(w));
	if (w->gate == GW_PAIR_SERVES)
		say(w, s);
}
