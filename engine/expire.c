/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep: forgets connections that are idle, disconnected, or of a tunnel or tenant that goes.
 */
#include "engine/emit.h"
#include "engine/mgmt.h"
#include "engine/requester.h"
#include "engine/reservation.h"
#include "engine/responder.h"
#include "engine/steer.h"

#define SWEEP_INTERVAL (2 * RWY_MS)
#define SWEEP_SLOTS    256
/* After this silence an unpaired host has given up, or begins again. It has no ACK. */
#define HALF_OPEN_SILENT (10 * RWY_SEC)
#define QUIET            (2 * RWY_SEC)  /* after this silence flows give memory back */
#define GIVEN_UP         (60 * RWY_SEC) /* after this silence a host repeats no READ */

static void leave_tunnel(struct eng_side *side, rwy_time now)
{
	struct eng_responder *rs = (struct eng_responder *)side;

	if (side->is_requester) {
		eng_requester_leave_tunnel((struct eng_requester *)side, now);
		return;
	}
	/*
	 * Acknowledged requests may be lost with the tunnel: the host's next request gets an error.
	 * With nothing in custody the connection goes on in another tunnel as if it were new.
	 */
	if (side->state != ENG_R_FAILED && rs->custody) {
		const bool asked = side->state == ENG_R_RESUMING; /* and nobody answers any more */

		eng_responder_fail(rs, rs->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    ENG_CAUSE_NO_TUNNEL, now);
		if (asked)
			eng_responder_note_loss(rs, true);
	}
	if (side->state != ENG_R_FAILED) {
		eng_responder_free(rs, now);
		return;
	}
	eng_responder_abort(rs, now);
	if (rs->responses)
		wan_rx_reset(rs->responses, now);
	rs->responses = NULL;
	side->e->tunnel[ENG_NO_TUNNEL].least_rtt = side->e->tunnel[side->tunnel].least_rtt;
	eng_side_move(side, ENG_NO_TUNNEL);
}

static bool expired(const struct eng_side *side, rwy_time now)
{
	const struct eng_responder *rs = (const struct eng_responder *)side;
	const struct eng_requester *rq = (const struct eng_requester *)side;
	bool idle = side->is_requester
	                ? !eng_requester_active(rq) || (!rq->reqr.q.n && !eng_requester_tells(rq))
	                : !rs->requests || !wan_tx_queued(rs->requests);

	if (side->tenant->removing)
		return true;
	/* No timer frees what a host has ACKs for, nor the requests that came for a host. */
	if (now >= eng_side_cold_of(side)->close_at)
		return side->is_requester ? idle
		                          : !eng_responder_owes(rs) && !rs->dreq_waits &&
		                                !(rs->requester && eng_requester_tells(rs->requester));
	if (!side->is_requester && eng_unpaired(side) && !rs->requester && side->state != ENG_R_RESUMING &&
	    now - side->last > HALF_OPEN_SILENT)
		return true;
	return idle && now - side->last > side->e->cfg.idle_expiry;
}

/* Memory and flows that a quiet connection does not need. */
static void rest(struct eng_side *side, rwy_time now)
{
	struct eng_requester *rq = (struct eng_requester *)side;
	struct eng_responder *rs = (struct eng_responder *)side;
	struct wan_txflow *tx;
	struct wan_rxflow *rx;

	if (side->is_requester)
		eng_requester_quiet(rq, now);
	else
		eng_rare_rest(rs);
	if (!side->is_requester && !rs->resp.rd_n)
		roce_resp_fini(&rs->resp);
	tx = side->is_requester ? rq->responses : rs->requests;
	rx = side->is_requester ? rq->requests : rs->responses;
	if (tx)
		wan_tx_rest(tx);
	if (rx)
		wan_rx_rest(rx);
}

/* A side that stays: what a host or its peer has waited for long enough. */
static void look_at_side(struct eng_side *side, rwy_time now)
{
	struct eng_responder *rs = (struct eng_responder *)side;

	if (now - side->last > QUIET && eng_wan(side))
		rest(side, now);
	if (side->is_requester)
		return;
	if (rs->rare->reads.cap && now - side->last > GIVEN_UP)
		eng_responder_forget_reads(rs);
	if (rs->dreq_waits)
		eng_dreq_look(rs, now);
	if (rs->untold)
		eng_dirty(side);
}

static void sweep_slot(struct eng *e, uint32_t slot, rwy_time now)
{
	for (struct eng_side *side = e->table[slot], *next; side; side = next) {
		next = side->chain;
		if (e->tunnel[side->tunnel].removing) {
			e->c.conns_expired++;
			leave_tunnel(side, now);
			continue;
		}
		if (!expired(side, now)) {
			eng_reservation_look(side);
			if (!side->is_requester)
				eng_patience_check((struct eng_responder *)side);
			look_at_side(side, now);
			continue;
		}
		e->c.conns_expired++;
		if (side->is_requester)
			eng_requester_free((struct eng_requester *)side, now);
		else
			eng_responder_free((struct eng_responder *)side, now);
	}
}

/* Looks at SWEEP_SLOTS table slots, so that no turn is long. The table is a multiple of that. */
void eng_sweep(struct eng *e, rwy_time now)
{
	e->sweep_at = now + SWEEP_INTERVAL;
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct eng_tunnel *t = &e->tunnel[i];

		if (!t->wan)
			continue;
		t->min_rtt = wan_min_rtt(t->wan);
		if (t->min_rtt && (!t->least_rtt || t->min_rtt < t->least_rtt))
			t->least_rtt = t->min_rtt;
	}
	if (!e->sides)
		return;
	for (uint32_t i = 0; i < SWEEP_SLOTS / 64; i++, e->sweep += 64) {
		uint32_t first = e->sweep & e->table_mask;
		uint64_t bits, later = UINT64_MAX;

		while ((bits = e->occupied[first / 64] & later)) {
			unsigned k = (unsigned)__builtin_ctzll(bits);

			later = ~(((uint64_t)2 << k) - 1);
			sweep_slot(e, first + k, now);
		}
	}
}
