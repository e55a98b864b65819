/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that are over: idle, disconnected, or of a tunnel or tenant that goes. */
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/steer.h"

#define SWEEP_INTERVAL (2 * RWY_MS)
#define SWEEP_SLOTS    256
/* An unpaired flow whose host has been silent for this long: it has given up, or will begin anew. Nothing of
 * it was acknowledged. */
#define HALF_OPEN_SILENT (10 * RWY_SEC)
#define GIVEN_UP         (60 * RWY_SEC) /* a host that was silent for so long asks for no answer again */

static void leave_tunnel(struct eng_half *h, rwy_time now)
{
	struct eng_near *n = (struct eng_near *)h;

	if (h->is_far) {
		eng_far_free((struct eng_far *)h, now);
		return;
	}
	/* What its host was acknowledged may be lost: it must hear of that, when it asks for anything more.
	 * With nothing on the way the connection goes on elsewhere as if it were new. */
	if (h->state != ENG_R_FAILED && n->custody)
		eng_near_fail(n, n->resp.acked, roce_aeth_make(ROCE_AETH_NAK, ROCE_NAK_REM_OP),
		    "its tunnel was removed", now);
	if (h->state != ENG_R_FAILED) {
		eng_near_free(n, now);
		return;
	}
	eng_near_abort(n, now);
	if (n->rsp)
		wan_rx_reset(n->rsp, now);
	n->rsp = NULL;
	h->e->tun[ENG_NO_TUNNEL].least_rtt = h->e->tun[h->tunnel].least_rtt;
	eng_move(h, ENG_NO_TUNNEL);
}

static bool expired(const struct eng_half *h, rwy_time now)
{
	const struct eng_near *n = (const struct eng_near *)h;
	const struct eng_far *f = (const struct eng_far *)h;
	bool idle = h->is_far ? !eng_far_active(f) || !f->reqr.q.n : !n->req || !wan_tx_queued(n->req);

	if (now >= h->close_at || h->ten->removing)
		return true;
	if (!h->is_far && eng_unpaired(h) && !n->far && h->state != ENG_R_RESUMING &&
	    now - h->last > HALF_OPEN_SILENT)
		return true;
	return idle && now - h->last > h->e->cfg.idle_expiry;
}

static void sweep_slot(struct eng *e, uint32_t slot, rwy_time now)
{
	for (struct eng_half *h = e->table[slot], *next; h; h = next) {
		next = h->chain;
		if (e->tun[h->tunnel].removing) {
			e->c.conns_expired++;
			leave_tunnel(h, now);
			continue;
		}
		if (!expired(h, now)) {
			if (!h->is_far && ((struct eng_near *)h)->reads.cap && now - h->last > GIVEN_UP)
				eng_near_forget_reads((struct eng_near *)h);
			continue;
		}
		e->c.conns_expired++;
		if (h->is_far)
			eng_far_free((struct eng_far *)h, now);
		else
			eng_near_free((struct eng_near *)h, now);
	}
}

/* Looks at a few table slots a time, so that no turn is long. The table is a whole number of such times. */
void eng_sweep(struct eng *e, rwy_time now)
{
	e->sweep_at = now + SWEEP_INTERVAL;
	for (unsigned i = 0; i < e->cfg.tunnels; i++) {
		struct eng_tun *t = &e->tun[i];

		if (!t->wan)
			continue;
		t->min_rtt = wan_min_rtt(t->wan);
		if (t->min_rtt && (!t->least_rtt || t->min_rtt < t->least_rtt))
			t->least_rtt = t->min_rtt;
	}
	if (!e->halves)
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
