/* SPDX-License-Identifier: Apache-2.0 */
/* One gateway of the world: its engine with buffers, links, tenants and configuration. */
#include "tests/sim/world_int.h"

#include "tests/sim/bounds.h"
#include "tests/sim/heap.h"
#include "tests/sim/states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING    512
#define CABLE   1 /* number of a pair's own tunnel */
#define BEAT    (5 * RWY_MS)
#define RESTART (50 * RWY_MS) /* of a gateway that was replaced */
#define WALK    1024          /* turns of an engine between two walks over its connections */
#define REST    (2 * RWY_US)  /* a turn that comes later than this was preceded by a rest */
/* most turns without rest of a gateway that gets and sends nothing: 300 us at least */
#define TURNS_MAX 300

/* --- buffers of an engine --------------------------------------------------------------------- */

static struct rwy_buf *buf_alloc(void *ctx, uint32_t headroom, uint32_t len)
{
	struct site *s = ctx;
	struct sim_buf *m;
	bool may;

	if ((s->w->cfg.buffers && s->bufs >= s->w->cfg.buffers) || sim_heap_fails())
		return NULL;
	s->bufs++;
	may = sim_heap_may_fail(false);
	m = sim_buf_new(headroom, len);
	sim_heap_may_fail(may);
	return &m->b;
}

static void buf_free(void *ctx, struct rwy_buf *b)
{
	struct site *s = ctx;

	s->bufs--;
	sim_buf_free(sim_buf_of(b));
}

static const struct rwy_buf_ops buf_ops = {buf_alloc, buf_free};

/* --- engine callbacks ------------------------------------------------------------------------- */

static void lan_tx(void *ctx, const struct eng_lan_tx *tx)
{
	struct site *s = ctx;
	const bool may = sim_heap_may_fail(false);
	struct sim_buf *m;

	m = sim_buf_new(SIM_ROOM, tx->len);
	s->turns = 0;
	memcpy(m->b.data, tx->buf ? tx->buf->data : tx->bytes, tx->len);
	m->b.w0 = tx->tenant ? s->world_of[tx->tenant] : 0;
	if (tx->tenant && !m->b.w0) /* a host of a tenant that is not admitted here */
		sim_buf_free(m);
	else
		sim_link_send(&s->w->links, sim_link_id(SIM_LAN_DOWN, s->idx), m, s->w->now);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
	sim_heap_may_fail(may);
}

static void wan_tx(void *ctx, unsigned tunnel, const struct wan_tx *tx)
{
	struct site *s = ctx;
	const bool may = sim_heap_may_fail(false);
	struct sim_buf *m;

	m = sim_buf_new(SIM_ROOM, wan_tx_size(tx));
	s->turns = 0;
	wan_tx_write(tx, m->b.data);
	m->b.w2 = s->worker;
	if (tunnel == CABLE)
		sim_link_send(
		    &s->w->links, sim_link_id(s->second ? SIM_CABLE_BACK : SIM_CABLE, s->idx), m, s->w->now);
	else if (tx->stream)
		sim_carrier_send(s, m);
	else
		sim_link_send(&s->w->links, sim_path_link(tx->path, s->idx), m, s->w->now);
	if (tx->buf && tx->own)
		buf_free(s, tx->buf);
	sim_heap_may_fail(may);
}

static void log_line(void *ctx, int level, const char *msg)
{
	struct site *s = ctx;

	if (s->w->cfg.verbose)
		fprintf(stderr, "%12.6f %c%.0u%s %d %s\n", (double)s->w->now / 1e9, 'A' + s->idx, s->worker,
		    s->second ? "2" : "", level, msg);
}

/* In these states a gateway acknowledges without asking anybody. */
static bool acknowledges_alone(const struct site *s)
{
	struct eng_standby_info i;

	return s->e && eng_standby_info(s->e, &i) &&
	       (!strcmp(i.state, "alone") || !strcmp(i.state, "copying"));
}

static void serves(void *ctx, bool on, bool replaced, rwy_time now)
{
	const bool may = sim_heap_may_fail(false);
	struct site *s = ctx;

	s->replaced |= replaced;
	if (on)
		sim_carrier_served(s);
	if (on && acknowledges_alone(s) && acknowledges_alone(sim_at(s->w, s->gateway ^ 2, s->worker)))
		s->w->two_served = true;
	sim_heap_may_fail(may);
}

static bool note(void *ctx, unsigned worker, const struct eng_note *n)
{
	return sim_note_send(ctx, worker, n);
}

static void board_changed(void *ctx)
{
	sim_workers_wake(ctx);
}

static const struct eng_ops eng_ops = {.lan_tx = lan_tx,
    .wan_tx = wan_tx,
    .log = log_line,
    .serves = serves,
    .board_changed = board_changed,
    .note = note};

/* --- tenants ---------------------------------------------------------------------------------- */

static void tenant_give(struct site *s, unsigned t)
{
	const struct sim_tenant *k = &s->tenant_at[t];
	struct eng_prefix p = {.addr = sim_host_ip(!s->idx, 0), .len = 120};
	struct eng_tenant_cfg c = {.vni = 100 + t,
	    .ack_mode = k->ack_mode,
	    .custody = k->custody,
	    .memory = k->memory,
	    .reserve = k->reserve,
	    .share = k->share,
	    .prefix = &p,
	    .prefixes = 1};

	p.addr.b[15] = 0;
	if (c.ack_mode == ENG_ACK_CAUSAL && s->w->directory[s->idx])
		abort(); /* conf_check_tenant_connections() refuses it */
	if (eng_tenant_set(s->e, k->idx, &c, s->w->now) != 0)
		abort();
	s->world_of[k->idx] = (uint8_t)t;
}

/* The tenants at the beginning. Each site has another index for a tenant. */
void sim_tenants_init(struct site *s)
{
	const struct sim_cfg *c = &s->w->cfg;

	for (unsigned t = 1; c->tenants && t <= SIM_TENANTS; t++) {
		s->tenant_at[t] = (struct sim_tenant){.idx = s->idx ? SIM_TENANTS + 1 - t : t,
		    .there = true,
		    .ack_mode = c->ack_mode,
		    .custody = c->custody_total,
		    .memory = c->memory_total,
		    .reserve = t == 1 ? c->reserve : 0,
		    .share = {.weight = c->same_weights ? 1 : t}};
		s->w->tenant[s->idx][t] = s->tenant_at[t];
	}
}

struct sim_tenant *sim_tenant(struct world *w, unsigned site, unsigned t)
{
	return &w->tenant[site][t];
}

static bool tenant_gone(struct site *s, unsigned t)
{
	if (s->e && s->tenant_at[t].removing)
		s->tenant_at[t].removing = !eng_tenant_remove(s->e, s->tenant_at[t].idx);
	return !s->tenant_at[t].removing;
}

static void tenant_apply(struct site *s, unsigned t)
{
	if (!s->e)
		return; /* applied at its next start */
	if (s->tenant_at[t].there) {
		tenant_give(s, t);
	} else {
		s->tenant_at[t].removing = true;
		s->world_of[s->tenant_at[t].idx] = 0; /* no packet is admitted any more */
		tenant_gone(s, t);
	}
	s->next = 0; /* the engine's timers may have changed */
}

void sim_tenant_apply_at(struct world *w, unsigned gateway, unsigned t)
{
	for (unsigned i = 0; i < sim_workers(w); i++) {
		struct site *s = sim_at(w, gateway, i);
		const bool removing = s->tenant_at[t].removing;

		s->tenant_at[t] = w->tenant[s->idx][t];
		s->tenant_at[t].removing = removing;
		tenant_apply(s, t);
	}
}

void sim_tenant_apply(struct world *w, unsigned site, unsigned t)
{
	for (unsigned g = site; g < w->gateways; g += 2)
		sim_tenant_apply_at(w, g, t);
}

bool sim_tenant_gone(struct world *w, unsigned site, unsigned t)
{
	bool gone = true;

	for (unsigned i = site; i < w->engines; i += 2)
		gone &= tenant_gone(&w->site[i], t);
	return gone;
}

void sim_steer(struct world *w, unsigned site, const struct eng_steer_cfg *v, unsigned n)
{
	struct eng_steering *old = w->steering[site];

	if (eng_steering_new(&w->steering[site], v, n) != 0)
		abort();
	for (unsigned i = site; i < w->engines; i += 2)
		if (w->site[i].e) {
			eng_steering_set(w->site[i].e, w->steering[site]);
			w->site[i].next = 0;
		}
	eng_steering_free(old);
}

/* --- start, turns, stop ----------------------------------------------------------------------- */

static void pair_cfg(struct eng_cfg *c, struct eng_board *board, rwy_dur beat)
{
	struct wan_cfg *wan = &c->tunnel[CABLE].wan;

	c->tunnels = CABLE + 1;
	c->standby =
	    (struct eng_standby_cfg){.on = true, .tunnel = CABLE, .wait = SIM_PAIR_WAIT, .board = board};
	snprintf(c->tunnel[CABLE].name, ENG_NAME_MAX, "pair");
	wan_cfg_default(wan);
	wan->cc = cc_find("fixed");
	wan->cc_cfg.rate_Bps = 1250000000;
	wan->fec = WAN_FEC_OFF;
	wan->keepalive = beat ? beat : BEAT;
	wan->tunnel_id = 8;
}

/* Worker 0 starts first. */
static void lanes_cfg(const struct site *s, struct eng_cfg *c)
{
	struct eng_lanes *l = &s->w->lanes[s->gateway];

	for (unsigned i = 0; i < c->tunnels && !s->worker; i++)
		eng_lanes_begin(l, i, sim_next(&s->w->rng) | 1);
	if (!s->worker)
		memset(&s->w->hosts[s->gateway], 0, sizeof(s->w->hosts[s->gateway]));
	c->lanes = l;
	c->hosts = &s->w->hosts[s->gateway];
}

/* A process that finds no memory to start is started again. */
static void new_engine(struct site *s, const struct eng_cfg *c)
{
	const struct rwy_bufs bufs = {&buf_ops, s};
	int r;

	sim_heap_may_fail(true);
	r = eng_new(&s->e, c, &eng_ops, s, bufs, s->w->now);
	sim_heap_may_fail(false);
	if (r != 0 && eng_new(&s->e, c, &eng_ops, s, bufs, s->w->now) != 0)
		abort();
}

void sim_gateway_start(struct site *s)
{
	struct world *w = s->w;
	struct eng_cfg *c = malloc(sizeof(*c));
	struct wan_cfg *wan;

	if (!c)
		abort();
	s->journal_whole |= !s->starts; /* the first one found that nothing was lost */
	eng_cfg_default(c);
	c->follows = s->starts++;
	c->tunnels = 1;
	c->prefixes = 1;
	c->prefix[0].addr = sim_host_ip(!s->idx, 0);
	c->prefix[0].addr.b[15] = 0;
	c->prefix[0].len = 120;
	c->prefix[0].tunnel = 0;
	c->ack_mode = w->cfg.ack_mode;
	c->conns_max = 4096;
	c->custody_conn = w->cfg.custody_conn;
	c->custody_total = w->cfg.custody_total;
	c->memory_conn = w->cfg.memory_conn;
	c->memory_total = w->cfg.memory_total;
	c->unpaired_total = w->cfg.unpaired_total;
	c->read_cache_conn = w->cfg.read_cache_conn;
	c->read_cache_total = w->cfg.read_cache_total;
	c->seed = sim_next(&w->rng);
	c->journal = s->journal;
	c->journal_n = SIM_JOURNAL;
	c->journal_whole = s->journal_whole;
	c->term = &s->term;
	snprintf(c->tunnel[0].name, ENG_NAME_MAX, "peer");
	wan = &c->tunnel[0].wan;
	wan_cfg_default(wan);
	wan->paths = w->cfg.paths ? w->cfg.paths : 1;
	for (unsigned i = 0; i < wan->paths; i++)
		wan->mtu[i] = w->cfg.wan_mtu;
	wan->cc = cc_find(w->cfg.cc);
	wan->cc_cfg.rate_Bps = w->cfg.rate_Bps;
	wan->cc_cfg.mtu = w->cfg.wan_mtu;
	wan->tunnel_id = 7;
	sim_keys_cfg(w, wan);
	if (w->cfg.rx_window)
		wan->rx_window = w->cfg.rx_window;
	c->directory = w->directory[s->idx];
	if (c->directory && c->ack_mode == ENG_ACK_CAUSAL)
		abort(); /* conf_check_connections() refuses it */
	c->worker = (uint8_t)s->worker;
	c->workers = (uint8_t)w->cfg.workers;
	if (w->cfg.pairs)
		pair_cfg(c, w->board[s->gateway], w->cfg.beat);
	if (w->cfg.buffers)
		sim_bound_memory(c, w->cfg.buffers, w->cfg.buf_cost);
	if (w->engines > w->gateways)
		lanes_cfg(s, c);
	new_engine(s, c);
	memset(s->world_of, 0, sizeof(s->world_of));
	for (unsigned t = 1; w->cfg.tenants && t <= SIM_TENANTS; t++) {
		s->tenant_at[t].removing = false; /* the engine has nothing of it left */
		if (s->tenant_at[t].there)
			tenant_give(s, t);
	}
	eng_steering_set(s->e, w->steering[s->idx]);
	s->rates = (struct sim_rates){0};
	s->next = eng_next(s->e);
	free(c);
}

static bool promised_anything(const struct site *s)
{
	for (unsigned i = 0; i < SIM_JOURNAL; i++)
		if (s->journal[i].used)
			return true;
	return false;
}

/* gw_tunnels_told */
static bool is_told(const struct site *s)
{
	struct wan_stats t;

	eng_tunnel_stats(s->e, 0, &t);
	return t.up && rwy_since(t.since, s->w->now) >= ENG_TELLS_FOR;
}

static void stop_worker(struct site *s, rwy_dur after)
{
	/* gw_jfile_told, gw_jfile_close */
	s->journal_whole = (s->journal_whole || is_told(s)) && promised_anything(s);
	sim_states_add(eng_states_seen(s->e));
	eng_free(s->e);
	s->e = NULL;
	s->replaced = false;
	sim_burst_drop(s);
	sim_worker_stopped(s);
	sim_links_at(&s->w->links, s->w->now + after, SIM_START + (uint32_t)(s - s->w->site), NULL);
}

void sim_process_stop(struct world *w, unsigned gateway, rwy_dur after)
{
	for (unsigned k = 0; k < sim_workers(w); k++)
		if (sim_at(w, gateway, k)->e)
			stop_worker(sim_at(w, gateway, k), after);
	sim_carrier_stopped(w, gateway);
}

static void journal_lose(struct world *w, unsigned gateway)
{
	for (unsigned k = 0; k < sim_workers(w); k++) {
		struct site *s = sim_at(w, gateway, k);

		memset(s->journal, 0, sizeof(s->journal));
		s->journal_whole = false;
		s->term = 0;
	}
}

void sim_gateway_stop(struct world *w, unsigned gateway, rwy_dur after)
{
	sim_process_stop(w, gateway, after);
	if (w->cfg.no_journal)
		journal_lose(w, gateway);
}

/* gw_jfile_close: the other gateway knows better than its journal. */
static void replaced(struct site *s)
{
	sim_process_stop(s->w, s->gateway, RESTART);
	journal_lose(s->w, s->gateway);
}

void sim_gateway_poll(struct site *s, rwy_time now)
{
	struct world *w = s->w;

	sim_notes_take(s);
	if (w->steering[s->idx])
		sim_rates_before(s->e, &s->rates, now);
	if (s->stream || s->detour)
		eng_stream_room(s->e, 0, SIM_CARRIER_ROOM - s->stream_n, UINT64_MAX);
	sim_heap_may_fail(true);
	eng_poll(s->e, now);
	sim_heap_may_fail(false);
	if (w->steering[s->idx] && !w->accounts)
		w->accounts = sim_rates_after(s->e, &s->rates, now);
	if (s->replaced) {
		replaced(s);
		return;
	}
	s->next = eng_next(s->e);
	if (w->accounts)
		return;
	w->accounts = sim_accounts_check(s->e, s->bufs, &s->common);
	if (++s->polls % WALK == 0 && !w->accounts)
		w->accounts = sim_accounts_walk(s->e);
	if (s->polls % WALK == 0 && w->steering[s->idx] && !w->accounts)
		w->accounts = sim_rates_walk(s->e, &s->rates, now);
}

void sim_gateway_turn(struct site *s, rwy_time now)
{
	s->turns = now > s->turned_at + REST ? 0 : s->turns + 1;
	s->turned_at = now;
	sim_burst_take(s);
	sim_gateway_poll(s, now);
	if (s->waiting_n)
		s->next = now;
	if (s->turns > TURNS_MAX && !s->w->accounts)
		s->w->accounts = "a gateway turns without rest, and sends nothing";
}

bool sim_buffer_found(struct site *s, const struct due *d)
{
	struct world *w = s->w;
	struct sim_buf *m = d->what;

	if (w->cfg.buffers && !sim_finds_buffer(&m->b, d->where / 2 == SIM_LAN_UP, s->bufs, w->cfg.buffers)) {
		w->no_buffer++;
		sim_buf_free(m);
		return false;
	}
	s->bufs++;
	return true;
}

bool sim_tenant_there(const struct site *s, const struct due *d)
{
	const struct sim_buf *m = d->what;

	return !m->b.w0 || s->tenant_at[m->b.w0].there;
}

void sim_packet_to_engine(struct site *s, const struct due *d)
{
	struct world *w = s->w;
	struct rwy_buf *b = &((struct sim_buf *)d->what)->b;

	sim_heap_may_fail(true);
	if (d->where / 2 == SIM_STREAM / 2)
		eng_stream_rx(s->e, 0, b, w->now);
	else if (d->where / 2 == SIM_CABLE || d->where / 2 == SIM_CABLE_BACK)
		eng_wan_rx(s->e, CABLE, 0, b, 0, w->now);
	else if (sim_kind_is_wan(d->where / 2))
		eng_wan_rx(s->e, 0, sim_path_of(d->where / 2), b, 0, w->now);
	else if (sim_tenant_there(s, d))
		eng_tenant_rx(s->e, &b, &(uint16_t){(uint16_t)s->tenant_at[b->w0].idx}, 1, w->now);
	else
		buf_free(s, b);
	sim_heap_may_fail(false);
}

void sim_to_gateway(struct world *w, struct site *s, const struct due *d)
{
	struct sim_buf *m = d->what;

	if (!s->e) {
		sim_buf_free(m);
		return;
	}
	if (w->now < s->paused_until) {
		bool stream = d->where / 2 == SIM_STREAM / 2; /* it waits */

		if (stream || s->ring++ < RING) {
			if (!stream)
				m->b.w1 = 1 + (uint32_t)(s - w->site);
			sim_links_at(&w->links, s->paused_until, d->where, m);
		} else {
			sim_buf_free(m);
		}
		return;
	}
	s->ring = s->turns = 0;
	if (w->cfg.turn && d->where / 2 != SIM_STREAM / 2) {
		sim_burst_add(s, d);
		return;
	}
	if (sim_buffer_found(s, d)) {
		sim_notes_take(s);
		sim_packet_to_engine(s, d);
	}
	sim_gateway_poll(s, w->now);
}
