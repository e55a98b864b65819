/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a run: which end is next, what it does in its turn, when the run ends, and what must
 * hold then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/wan/fec.h"
#include "tests/sim/wan/run.h"
#include "tests/sim/wan/wire.h"

#define START SIM_START
#define BURST 32
#define HANG  (600 * RWY_SEC) /* without a completed message: it hangs */
#define QUIET (5 * RWY_SEC)
/* datagrams in that time: keep-alives and last acknowledgements; of each path */
#define QUIET_MAX  100
#define QUIET_PATH 40
#define SLACK      (20 * RWY_MS)
#define ECN_ECT    2
#define ECN_CE     3
#define ROOM       ((uint64_t)256 << 20)
#define CARRIER_N  4096      /* datagrams that wait for the reliable carrier at most, */
#define CARRIER_B  (4 << 20) /* and bytes */

static uint64_t pow2_from(double x)
{
	uint64_t n = 1024;

	while ((double)n < x && n < 1u << 28)
		n *= 2;
	return n;
}

/* Bytes that the path holds, including the effects of timers and batches. */
static double in_flight(const struct scen *s)
{
	double rate, rtt;

	change_largest(s, &rate, &rtt);
	return rate / 8e9 * (rtt + jitter_most(s) + s->reorder_delay * (s->reorder > 0) + SLACK) +
	       s->paths * s->queue;
}

static int end_start(struct world *w, int i)
{
	const struct scen *s = &w->s;
	struct end *e = &w->end[i];
	double packets = in_flight(s) / (s->pmtu + INNER_HEAD) + 4096;
	struct wan_cfg c;

	if (scen_fragments(s))
		packets *= ceil((s->pmtu + INNER_HEAD) / (s->mtu - 100));
	wan_cfg_default(&c);
	c.ctx = e;
	c.ops = &work_ops;
	c.bufs = w->bufs.ops;
	c.cc = cc_find(s->cc);
	c.cc_cfg.rate_Bps = (uint64_t)((s->ccrate > 0                    ? s->ccrate
	                                   : strcmp(s->cc, "fixed") == 0 ? s->rate
	                                                                 : 0) /
	                               8);
	c.cc_cfg.initial_rtt = (rwy_dur)s->rtt;
	c.cc_cfg.mtu = (uint32_t)s->mtu;
	paths_configure(s, &c);
	c.epoch = 1000 + s->seed + (unsigned)i;
	c.index = 77 + (unsigned)i;
	c.tunnel_id = 5;
	c.tx_pkts_max = (uint32_t)pow2_from(2 * packets);
	c.rx_window = (uint32_t)pow2_from(s->window * packets);
	c.rx_bytes = w->rx_bytes;
	c.wire_overhead = (uint32_t)s->overhead;
	if (!fec_configure(&c, s->fec))
		return RWY_EINVAL;
	e->w = w;
	e->next = w->now;
	e->stall_at = w->s.stalls > 0 ? w->now : RWY_NEVER;
	if (wan_new(&e->t, &c, w->now) < 0)
		return RWY_ENOMEM;
	if (s->detour <= 0)
		return 0;
	e->detour = &w->detour[i];
	e->detour_in = &w->detour[!i];
	return wan_stream_detour(e->t, (unsigned)s->detour, w->now);
}

/* --- a turn --------------------------------------------------------------------------------------- */
static bool receive_one(struct end *e, struct link *in, rwy_time now)
{
	struct world *w = e->w;
	const uint8_t *bytes;
	const struct pkt *p = link_recv(in, &bytes, now);

	if (!p)
		return false;
	struct rwy_buf *b = bufs_rx(&w->bufs, p->len, p->real ? UINT32_MAX : p->stored);

	w->r->events++;
	hash_add(w->r, p->at, (uint64_t)p->len << 1 | p->bad);
	if (!b)
		return true; /* no memory: as if lost */
	memcpy(b->data, bytes, p->stored);
	seal_hdr_len = p->hdr_len;
	w->now = w->s.stalls > 0 ? now : p->at; /* a stalled process sees it only now */
	if (in == e->detour_in)
		wan_recv_stream(e->t, b, w->now);
	else
		wan_recv(e->t, p->path, b, p->ce ? ECN_CE : ECN_ECT, w->now);
	return true;
}

static void receive(struct end *e, rwy_time now)
{
	struct link *in;
	rwy_time at;

	while ((in = paths_next(e, &at)) && receive_one(e, in, now))
		;
	while (e->detour_in && receive_one(e, e->detour_in, now))
		;
}

static void tell_room(struct end *e, rwy_time now)
{
	double waits = line_queue(e->detour->line, now);

	wan_stream_room(e->t, CARRIER_N, waits < CARRIER_B ? CARRIER_B - (uint64_t)waits : 0);
}

static void transmit(struct end *e, rwy_time now)
{
	struct world *w = e->w;
	struct wan_tx tx[BURST];
	unsigned n;

	do {
		if (e->detour)
			tell_room(e, now);
		n = wan_poll(e->t, tx, BURST, now);
		for (unsigned i = 0; i < n; i++) {
			struct wan_tx *x = &tx[i];
			struct link_dgram d = {
			    .hdr = x->hdr, .hdr_len = x->hdr_len, .path = x->path, .len = x->len};

			if (x->buf) {
				d.payload = x->buf->data + x->off;
				d.real = !bufs_is_tx(&w->bufs, x->buf);
			}
			bool arrives =
			    link_send(x->stream ? e->detour : &w->link[x->path][e == &w->end[1]], &d, now);

			hash_add(w->r, now + arrives, x->hdr_len + x->len);
			if (e == &w->end[0])
				work_sent(w, x, arrives);
			if (x->own)
				rwy_buf_free(&w->bufs.ops, x->buf);
		}
		w->r->datagrams += n;
		w->r->events += n;
	} while (n == BURST);
}

/* Now and then other processes have the processor, for at most `stall`. */
static void maybe_stall(struct end *e, rwy_time now)
{
	struct world *w = e->w;

	if (now < e->stall_at)
		return;
	e->stall_until = now + (rwy_dur)(rng_unit(&w->rng) * w->s.stall);
	e->stall_at = e->stall_until + (rwy_dur)(-log(rng_unit(&w->rng)) * 1e9 / w->s.stalls);
}

static void turn(struct end *e, rwy_time now)
{
	struct world *w = e->w;

	receive(e, now);
	w->now = now;
	wan_tick(e->t, now);
	if (e == &w->end[0])
		work_feed(w, now);
	transmit(e, now);
	if (e == &w->end[0] && w->feeding) /* the wire took some, so the hosts have room for more */
		work_feed(w, now);
	e->last = now;
	e->next = wan_next(e->t);
	if (e == &w->end[0] && w->feeding)
		e->next = rwy_time_min(e->next, w->gave_at);
	maybe_stall(e, now);
	w->r->events++;
}

static rwy_time turn_at(const struct end *e)
{
	rwy_time at;

	paths_next(e, &at);
	at = rwy_time_min(at, e->next);
	if (e->detour_in)
		at = rwy_time_min(at, link_next(e->detour_in));
	return rwy_time_max(rwy_time_max(at, e->last + (rwy_dur)e->w->s.wake), e->stall_until);
}

/* --- the time series ------------------------------------------------------------------------------ */
static void trace(struct world *w, rwy_time now)
{
	struct wan_stats st, far;
	double span = (double)(now - w->trace_last_at) / 1e9;

	wan_get_stats(w->end[0].t, &st);
	wan_get_stats(w->end[1].t, &far);
	fprintf(w->trace, "%.6f,%.4f,%.4f,%.4f,%.4f,%.4f,%.3f,%u,%llu,%llu,%.4f\n",
	    (double)(now - START) / 1e6, (double)st.rate_Bps * 8e-9,
	    span > 0 ? (double)(w->payload_all - w->trace_payload) * 8e-9 / span : 0.,
	    (double)st.inflight / 1e6, line_queue(w->link[0][0].line, now) / 1e6, (double)st.cwnd / 1e6,
	    (double)st.srtt / 1e6, st.loss_ppm, (unsigned long long)st.c.lost, (unsigned long long)w->done,
	    span > 0 ? (double)(far.c.rx_bytes - w->trace_arrived) * 8e-9 / span : 0.);
	w->trace_payload = w->payload_all;
	w->trace_arrived = far.c.rx_bytes;
	w->trace_last_at = now;
	w->trace_at = now + w->trace_every;
}

static void trace_begin(struct world *w, FILE *f)
{
	if (!f)
		return;
	w->trace = f;
	w->trace_every = (rwy_dur)rwy_time_max((rwy_dur)(w->s.rtt / 20), 10 * RWY_US);
	w->trace_at = w->trace_last_at = w->now;
	fprintf(f, "ms,rate_gbps,delivered_gbps,inflight_mb,queue_mb,cwnd_mb,srtt_ms,loss_ppm,lost,messages,"
	           "arrived_gbps\n");
}

/* --- the whole ------------------------------------------------------------------------------------ */
static void watch(struct world *w)
{
	struct wan_stats st, near;

	wan_get_stats(w->end[1].t, &st);
	if (st.rx_held_bytes > w->r->held_max)
		w->r->held_max = st.rx_held_bytes;
	wan_get_stats(w->end[0].t, &near);
	w->r->congest_begins = near.congest.begins;
	w->r->detoured = near.c.retransmit_detour;
	if (near.congest.by != WAN_CONGEST_NONE && w->watched_at)
		w->r->congested += w->now - w->watched_at;
	w->watched_at = w->now;
	if (st.rx_held_bytes > w->rx_bytes)
		violation(w, "the receiver holds more than its bound", st.rx_held_bytes, w->rx_bytes);
}

/* Makes the changes that are due, on the tunnel's own links. */
static void change(struct world *w, rwy_time now)
{
	while (now - w->began >= changes_next(&w->changes))
		changes_make(&w->changes, w->link);
}

/* Executes the next turn of any end. */
static rwy_time step(struct run *u)
{
	rwy_time now = RWY_NEVER;
	struct end *e = NULL;

	for (unsigned i = 0; i < 2 * u->tunnels; i++) {
		struct end *x = &u->world[i / 2].end[i % 2];
		rwy_time at = turn_at(x);

		if (at < now) {
			now = at;
			e = x;
		}
	}
	if (u->cross.next < now && u->cross.next < u->world[0].stop_at) {
		now = u->cross.next;
		if (now >= u->count_at)
			run_count(u, now);
		cross_run(&u->cross);
		return now;
	}
	if (!e)
		return now;
	if (now >= u->count_at)
		run_count(u, now);
	change(e->w, now);
	turn(e, now);
	if (e->w->trace && now >= e->w->trace_at)
		trace(e->w, now);
	return now;
}

static bool all_over(const struct run *u)
{
	for (unsigned i = 0; i < u->tunnels; i++)
		if (!work_over(&u->world[i]))
			return false;
	return true;
}

static uint64_t all_done(const struct run *u)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < u->tunnels; i++)
		sum += u->world[i].done;
	return sum;
}

static void work_until_done(struct run *u)
{
	struct world *w = &u->world[0];
	uint64_t done = 0, turns = 0;
	rwy_time since = w->now;
	rwy_dur hang = HANG + (rwy_dur)(w->s.outage_len + 8e9 * w->s.size / w->s.rate * 100);

	while (!all_over(u)) {
		rwy_time now = step(u);

		if (all_done(u) != done) {
			done = all_done(u);
			since = now;
		}
		if (now == RWY_NEVER || now - since > hang) {
			violation(w, "nothing arrives any more: messages begun, done", w->begun, w->done);
			return;
		}
		if ((++turns & 63) == 0)
			watch(&u->world[turns / 64 % u->tunnels]);
	}
}

static uint64_t quiet_most(const struct scen *s)
{
	return QUIET_PATH * s->paths > QUIET_MAX ? (uint64_t)(QUIET_PATH * s->paths) : QUIET_MAX;
}

static void quiet(struct run *u)
{
	struct world *w = &u->world[0];
	uint64_t before = 0, after = 0, most = u->tunnels * quiet_most(&w->s);
	rwy_time now = 0, until;

	for (unsigned i = 0; i < u->tunnels; i++) {
		work_close(&u->world[i]);
		u->world[i].end[0].next = u->world[i].now; /* it was called from outside */
		now = rwy_time_max(now, u->world[i].now);
	}
	for (until = now + QUIET; now < until && now != RWY_NEVER;)
		now = step(u);
	for (unsigned i = 0; i < u->tunnels; i++)
		before += u->world[i].r->datagrams;
	for (until = rwy_time_min(now, until) + QUIET; now < until && now != RWY_NEVER;)
		now = step(u);
	for (unsigned i = 0; i < u->tunnels; i++)
		after += u->world[i].r->datagrams;
	if (after - before > most)
		violation(w, "not quiet at the end: datagrams", after - before, most);
	for (unsigned k = 0; k < u->tunnels; k++)
		for (uint32_t i = 0; i < u->world[k].streams; i++) {
			struct stream *s = &u->world[k].stream[i];

			if (s->got != s->fed || s->rx)
				violation(&u->world[k], "a stream did not end", s->got, s->fed);
		}
}

static void add_rest(struct world *w)
{
	w->r->custody_max = (uint64_t)w->bufs.peak;
	w->r->changes = changes_results(&w->changes, w->stop_at - w->began, w->r->change);
	changes_fini(&w->changes);
	if (w->bufs.live)
		violation(w, "buffers leaked", (uint64_t)w->bufs.live, 0);
	if (w->s.rtts > 0)
		w->r->span = w->stop_at - w->measure_at;
}

/* Makes tunnel number k of the run. */
static int world_init(struct world *w, const struct scen *s, unsigned k, struct result *r)
{
	uint64_t seed = s->seed + ((uint64_t)k << 40);

	w->s = *s;
	w->r = r;
	r->hash = seed;
	w->now = START + (rwy_dur)(k * s->tunnel_gap);
	w->began = w->now;
	w->rng = ~seed;
	w->measure_at = START + (rwy_dur)(s->skip * s->rtt);
	w->stop_at = START + (rwy_dur)(s->rtts * s->rtt);
	w->rx_bytes = (uint64_t)(s->window * in_flight(s)) + ROOM;
	uint64_t packets =
	    w->rx_bytes / (uint64_t)s->pmtu * 2 + (uint64_t)(s->ahead / s->pmtu) + 4 * (uint64_t)s->flows;

	if (!bufs_init(&w->bufs, packets + 100000, !seal_thin))
		return RWY_ENOMEM;
	if (!paths_init(w, &seed))
		return RWY_ENOMEM;
	for (int i = 0; i < 2 && s->detour > 0; i++) {
		const struct scen c = scen_carrier(s);

		if (!link_init(&w->detour[i], &c, i == 1, rng_next(&seed)))
			return RWY_ENOMEM;
	}
	if (!changes_init(&w->changes, s, (rwy_dur)(s->rtts * s->rtt)))
		return RWY_ENOMEM;
	for (int i = 0; i < 2; i++) {
		int rc = end_start(w, i);

		if (rc < 0)
			return rc;
	}
	return work_init(w);
}

static int run_init(struct run *u, const struct scen *s, struct result *r, FILE *rates)
{
	uint64_t seed = ~s->seed;

	memset(u, 0, sizeof(*u));
	u->tunnels = (unsigned)s->tunnels;
	u->world = calloc(u->tunnels, sizeof(*u->world));
	u->others = calloc(u->tunnels, sizeof(*u->others));
	u->shared = u->tunnels > 1 || *s->cross;
	u->began = START;
	u->rates = rates;
	u->rates_every = rwy_time_max((rwy_dur)s->rtt, 10 * RWY_MS);
	seal_thin = scen_thin(s);
	for (unsigned k = 0; u->world && u->others && k < u->tunnels; k++) {
		int rc = world_init(&u->world[k], s, k, k ? &u->others[k] : r);

		if (rc < 0)
			return rc;
		u->line = u->world[0].link[0][0].line;
		for (unsigned p = 0; p < (s->bottleneck == BOTTLENECK_ONE ? (unsigned)s->paths : 1); p++)
			u->world[k].link[p][0].line = u->line;
	}
	return u->line && cross_init(&u->cross, s, u->line, START, seed) ? 0 : RWY_ENOMEM;
}

static void run_fini(struct run *u)
{
	for (unsigned k = 0; k < u->tunnels; k++) {
		struct world *w = &u->world[k];

		for (int i = 0; i < 2; i++)
			wan_free(w->end[i].t);
		add_rest(w);
		work_fini(w);
		paths_fini(w);
		for (int i = 0; i < 2 && w->s.detour > 0; i++)
			link_fini(&w->detour[i]);
		bufs_fini(&w->bufs);
		if (k) {
			u->world[0].r->violations += w->r->violations;
			u->world[0].r->duplicates += w->r->duplicates;
			result_fini(w->r);
		}
	}
	cross_fini(&u->cross);
	free(u->world);
	free(u->others);
}

int run_roceway(const struct scen *s, struct result *r, FILE *trace_to, FILE *rates)
{
	static struct run u; /* static because of its size */
	int rc = run_init(&u, s, r, rates);

	if (rc < 0)
		return rc; /* the program ends next */
	trace_begin(&u.world[0], trace_to);
	work_until_done(&u);
	for (unsigned k = 0; k < (unsigned)s->paths; k++)
		wan_get_path_stats(u.world[0].end[0].t, k, &r->path[k]);
	uint64_t first = r->first_bytes, extra = r->extra_bytes, datagrams = r->datagrams, events = r->events;

	u.world[0].trace = NULL;
	u.rates = NULL;
	quiet(&u);
	run_fini(&u);
	r->first_bytes = first;
	r->extra_bytes = extra;
	r->datagrams = datagrams;
	r->events = events;
	return 0;
}
