/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and end of an engine, and one turn of it. */
#include <stdlib.h>

#include "engine/causal.h"
#include "engine/copy.h"
#include "engine/emit.h"
#include "engine/hostrate.h"
#include "engine/memory.h"
#include "engine/pair.h"
#include "engine/peer.h"
#include "engine/port.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/settle.h"
#include "engine/store.h"
#include "engine/steer.h"
#include "engine/tenants.h"
#include "rwy/hash.h"
#include "rwy/prefetch.h"

#define TABLE_MIN 1024

static uint32_t table_size(uint32_t conns)
{
	uint32_t n = TABLE_MIN;

	while (n < conns)
		n <<= 1;
	return n;
}

int eng_new(struct eng **out, const struct eng_cfg *cfg, const struct eng_ops *ops, void *ctx,
    struct rwy_bufs bufs, rwy_time now)
{
	struct eng *e = calloc(1, sizeof(*e));
	int r = RWY_ENOMEM;

	if (!e)
		return r;
	e->cfg = *cfg;
	eng_mem_init(e);
	e->ops = ops;
	e->ctx = ctx;
	e->bufs = bufs;
	e->rng = cfg->seed;
	e->hash_seed = rwy_mix64(~cfg->seed);
	e->now = e->started = now;
	e->wheel_tick = now >> ENG_WHEEL_SHIFT;
	e->settle.at = e->peer_at = e->restore_at = RWY_NEVER;
	e->responder_slab.size = rwy_slab_size(sizeof(struct eng_responder));
	e->requester_slab.size = rwy_slab_size(sizeof(struct eng_requester));
	e->pair_slab.size = rwy_slab_size(sizeof(struct eng_pair));
	e->host_slab.size = rwy_slab_size(sizeof(struct eng_host));
	e->copy_slab.size = rwy_slab_size(sizeof(struct eng_copy));
	e->stored_slab.size = rwy_slab_size(sizeof(struct eng_stored));
	eng_sb_init(e, now);
	r = eng_recorder_init(e);
	if (r)
		goto err;
	eng_record_engine(e, &(struct eng_record){.kind = ENG_REC_START}, NULL, now);
	r = RWY_ENOMEM;
	e->table_mask = table_size(cfg->conns_max) - 1;
	e->table = calloc((size_t)e->table_mask + 1,
	    /* NOLINT(bugprone-sizeof-expression): an array of pointers */
	    sizeof(struct eng_side *));
	if (e->table)
		rwy_huge_pages(e->table, ((size_t)e->table_mask + 1) * sizeof(e->table[0]));
	e->occupied = calloc(((size_t)e->table_mask + 1) / 64, sizeof(*e->occupied));
	if (!e->table || !e->occupied)
		goto err;
	r = eng_tenants_init(e);
	if (r)
		goto err;
	r = eng_tunnels_init(e, now);
	if (r)
		goto err;
	r = eng_journal_init(e);
	if (r)
		goto err;
	e->journal_until = e->cfg.journal_for ? now + e->cfg.journal_for : RWY_NEVER;
	if (eng_sb_serves(e)) /* else when it begins to serve */
		eng_journal_restore(e, 0, now);
	*out = e;
	return 0;
err:
	eng_free(e);
	return r;
}

void eng_free(struct eng *e)
{
	if (!e)
		return;
	e->closing = true;
	for (uint32_t i = 0; e->table && i <= e->table_mask; i++)
		while (e->table[i]) {
			struct eng_side *side = e->table[i];

			if (side->is_requester)
				eng_requester_free((struct eng_requester *)side, e->now);
			else
				eng_responder_free((struct eng_responder *)side, e->now);
		}
	eng_store_clear(e, e->now);
	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		wan_free(e->tunnel[i].wan);
	free(e->fec_code);
	eng_rp_fini(e);
	eng_tenants_fini(e);
	rwy_slab_fini(&e->responder_slab);
	rwy_slab_fini(&e->requester_slab);
	rwy_slab_fini(&e->pair_slab);
	rwy_slab_fini(&e->host_slab);
	rwy_slab_fini(&e->copy_slab);
	rwy_slab_fini(&e->stored_slab);
	free(e->journal_free);
	free(e->orphans);
	free(e->occupied);
	free(e->table);
	eng_recorder_fini(e);
	free(e);
}

void eng_wan_rx(struct eng *e, unsigned tunnel, uint8_t path, struct rwy_buf *b, uint8_t ecn, rwy_time now)
{
	eng_sb_clock(e, now);
	e->now = now;
	if (!e->tunnel[tunnel].wan) { /* the tunnel was removed meanwhile */
		eng_drop(e, b, &e->c.drop_no_tunnel);
		return;
	}
	wan_recv(e->tunnel[tunnel].wan, path, b, ecn, now);
}

static void flush_responder(struct eng_responder *rs, rwy_time now)
{
	if (rs->has_ahead)
		eng_responder_pass_ahead(rs, now);
	eng_responder_flush(rs, now);
}

/* Sends owed ACKs, and requests to local hosts. Returns the number of sides flushed. */
static unsigned flush_dirty(struct eng *e, rwy_time now)
{
	struct eng_side *side;
	unsigned n = 0;

	while ((side = e->dirty_head)) {
		e->dirty_head = side->dirty_next;
		if (!e->dirty_head)
			e->dirty_tail = NULL;
		side->dirty = false;
		side->dirty_next = NULL;
		if (e->dirty_head)
			eng_prefetch_side(e->dirty_head, ENG_REQUESTER_LINES);
		n++;
		if (!side->e) /* freed meanwhile */
			rwy_slab_put(side->is_requester ? &e->requester_slab : &e->responder_slab, side);
		else if (side->is_requester)
			eng_requester_flush((struct eng_requester *)side, now);
		else
			flush_responder((struct eng_responder *)side, now);
	}
	return n;
}

/* Emits datagrams of one tunnel, at most about 256 in a turn. */
static unsigned wan_out(struct eng *e, unsigned idx, rwy_time now)
{
	struct wan_tx tx[16];
	unsigned n, total = 0;

	do {
		n = wan_poll(e->tunnel[idx].wan, tx, 16, now);
		for (unsigned i = 0; i < n; i++)
			e->ops->wan_tx(e->ctx, idx, &tx[i]);
		total += n;
	} while (n == 16 && total < 256);
	return total;
}

static unsigned serve_tunnel(struct eng *e, unsigned idx, rwy_time now)
{
	struct wan_tunnel *wan = e->tunnel[idx].wan;
	unsigned n;

	if (wan_next(wan) <= now)
		wan_tick(wan, now);
	n = wan_out(e, idx, now);
	if (!n)
		wan_note_quiet(wan);
	return n;
}

/* Timers of tunnels with work, and their datagrams. */
static unsigned poll_tunnels(struct eng *e, rwy_time now)
{
	unsigned total = 0;

	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan && !wan_quiet(e->tunnel[i].wan, now))
			total += serve_tunnel(e, i, now);
	return total;
}

unsigned eng_poll(struct eng *e, rwy_time now)
{
	unsigned total;

	eng_sb_clock(e, now);
	e->now = now;
	if (e->cfg.lanes && e->cfg.worker)
		eng_lanes_look(e, now);
	if (e->cfg.standby.on)
		eng_sb_tick(e, now);
	if (!eng_sb_speaks(e)) /* what it may have to do for hosts waits until it serves */
		return poll_tunnels(e, now);
	if (now >> ENG_WHEEL_SHIFT > e->wheel_tick) {
		eng_wheel_run(e, eng_requester_tick, now);
		eng_pair_tick(e, now);
	}
	if (e->rps)
		eng_rp_poll(e, now);
	if (e->waiting)
		eng_mem_wake(e);
	if (e->causal_due && now >= e->causal_at)
		eng_causal_poll(e, now);
	total = flush_dirty(e, now);
	total += poll_tunnels(e, now);
	if (e->dirty_head)
		total += flush_dirty(e, now);
	if (now >= e->sweep_at)
		eng_sweep(e, now);
	if (now >= e->settle.at)
		eng_settle_step(e, now);
	if (now >= e->peer_at)
		eng_peer_step(e, now);
	if (now >= e->restore_at || e->restore.wanted)
		eng_journal_restore_again(e, now);
	return total;
}

rwy_time eng_next(const struct eng *e)
{
	rwy_time at = eng_sb_next(e);

	for (unsigned i = 0; i < e->cfg.tunnels; i++)
		if (e->tunnel[i].wan)
			at = rwy_time_min(at, wan_next(e->tunnel[i].wan));
	if (!eng_sb_speaks(e))
		return at;
	if (e->dirty_head || e->restore.wanted)
		return e->now;
	at = rwy_time_min(at, rwy_time_min(eng_pair_next(e), rwy_time_min(e->settle.at, e->peer_at)));
	at = rwy_time_min(at, e->restore_at);
	if (e->rps)
		at = rwy_time_min(at, eng_rp_next(e));
	if (e->causal_due)
		at = rwy_time_min(at, e->causal_at);
	if (e->wheel_n)
		at = rwy_time_min(at, (e->wheel_tick + 1) << ENG_WHEEL_SHIFT);
	if (e->sides)
		at = rwy_time_min(at, e->sweep_at);
	return at;
}
