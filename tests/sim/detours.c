/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A native path that loses much, then nothing, again and again, beside a reliable carrier that takes
 * what was lost repeatedly (F_DETOUR). The policy changes at each end alone; the carrier stands
 * still for seconds, and breaks. No host may notice. Nothing takes a detour that was not lost, and
 * nothing is left of detours when all is over.
 */
#include "engine/eng.h"
#include "tests/sim/explore.h"
#include "wan/tunnel.h"

#define EACH_MAX  600 /* ms between changes */
#define AFTER_MAX 3
#define STALL_MAX 3000 /* ms */
#define LOSS_MIN  80   /* per mille */
#define LOSS_MAX  200
#define BURST_MAX 30
#define UNTIL     (20 * RWY_SEC) /* from then on the path loses nothing, and the policy stays */

static uint32_t below(struct run *r, uint32_t n)
{
	return sim_below(&r->detour_rng, n);
}

/* Path 0 begins to lose much, or loses nothing. With several paths one of them loses much anyway. */
static void lose(struct run *r, bool much)
{
	struct link_cfg c[2] = {r->cfg.wan[0], r->cfg.wan[1]};

	if (r->faults & F_PATHS)
		return;
	for (unsigned i = 0; i < 2; i++) {
		c[i].loss = much ? (LOSS_MIN + below(r, LOSS_MAX - LOSS_MIN)) / 1000.0 : 0;
		c[i].burst = much && below(r, 2) ? 2 + below(r, BURST_MAX) : 1;
	}
	sim_path_set(r->w, 0, c);
	sim_path_down(r->w, 0, r->outage);
}

void sim_detours_begin(struct run *r, rwy_time now)
{
	r->detour_rng.s = r->cfg.seed ^ 0x6465746f7572;
	r->detour_at = now + RWY_MS * below(r, EACH_MAX);
	lose(r, below(r, 4));
	for (unsigned i = 0; i < 2; i++)
		sim_stream_detour(r->w, i, below(r, AFTER_MAX + 1));
}

void sim_detours_tick(struct run *r, rwy_time now)
{
	if (now < r->detour_at)
		return;
	if (now > r->round_at + UNTIL) {
		r->detour_at = RWY_NEVER;
		lose(r, false);
		for (unsigned i = 0; i < 2; i++)
			sim_stream_detour(r->w, i, 1);
		return;
	}
	r->detour_at = now + RWY_MS * (1 + below(r, EACH_MAX));
	switch (below(r, 8)) {
	case 0:
		lose(r, false);
		break;
	case 1:
		sim_stream_stall(r->w, RWY_MS * below(r, STALL_MAX));
		break;
	case 2:
		sim_stream_break(r->w);
		break;
	case 3:
	case 4:
		lose(r, true);
		break;
	default:
		sim_stream_detour(r->w, below(r, 2), below(r, AFTER_MAX + 1));
	}
}

/*
 * Bytes that are under way by the carrier, besides questions whether it answers. There is one of
 * these each second, and a carrier that answers nothing has as many as the native path's probe
 * timeout is long: after a pause of a gateway that is seconds.
 */
static unsigned detour_bytes(const struct eng *e)
{
	const struct wan_path *p = wan_stream_path(e->tunnel[0].wan);
	unsigned n = 0;

	for (uint64_t pn = p->tail; pn < p->next_pn; pn++) {
		const struct wan_sent *s = &p->sent[pn & p->mask];

		if (s->state == WAN_SENT_INFLIGHT && (s->flags & WAN_S_DATA || s->log_n))
			n += s->bytes;
	}
	return n;
}

void sim_detours_end(struct run *r)
{
	for (unsigned i = 0; i < 2 && !r->why; i++) {
		struct eng *e = sim_engine(r->w, i);
		struct wan_stats s;

		if (!e)
			continue;
		eng_tunnel_stats(e, 0, &s);
		/* The packets of a lost bundle go again as a datagram each. With few buffers a lost run
		 * may go again as two. */
		if (!(r->faults & F_POOL) &&
		    s.c.retransmit_detour > s.c.lost + (WAN_BUNDLE_MAX - 1) * s.c.tx_bundles)
			sim_fail(r, "a detour of what was not lost", &r->qp[0][i],
			    (unsigned)(s.c.retransmit_detour - s.c.lost));
		else if (s.detour_waiting)
			sim_fail(r, "something still waits for a detour", &r->qp[0][i], s.detour_waiting);
		else if (!(r->faults & F_MOVES) && detour_bytes(e))
			sim_fail(r, "a detour has no end", &r->qp[0][i], detour_bytes(e));
	}
}
