/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the explorer, and the content that memory must have after it. */
#include <stdlib.h>
#include <string.h>

#include "wan/fec/fec.h"
#include "tests/sim/explore.h"

typedef uint64_t four __attribute__((vector_size(32)));

/* Fills memory with the results of sim_next() from a state on. The state is a counter, so four
 * results are mixed at once. */
static void fill(uint8_t *mem, uint64_t state)
{
	four s = state + (four){1, 2, 3, 4} * RNG_STEP;

	for (uint32_t k = 0; k < MEM; k += sizeof(s), s += 4 * RNG_STEP) {
		four v = RNG_MIX(s);

		memcpy(mem + k, &v, sizeof(v));
	}
}
static_assert(MEM % sizeof(four) == 0, "filled to the end");

void sim_draw_memory(struct run *r, struct side *s)
{
	s->drawn_from = r->rng.s;
	fill(s->mem, s->drawn_from);
	r->rng.s += MEM / 8 * RNG_STEP;
}

/* Drawing it again costs less than keeping it, which would not stay in the cache. */
void sim_recall_memory(struct side *s)
{
	static uint8_t before[2][MEM];

	s->before = before[s->site];
	fill(s->before, s->drawn_from);
}

#define SMALL_MAX     160 /* bytes of a small message */
#define SMALL_WRS_MAX 400
static_assert(SMALL_WRS_MAX <= MASS_MAX, "there is room for so many");
#define DIFFER_MIN 16 /* bytes that are hardly ever the same by chance */

static uint32_t draw_len(struct run *r, uint32_t max)
{
	static const uint32_t edge[] = {0, 1, 3, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 16384};
	uint32_t n = sim_chance(&r->rng, .5) ? edge[sim_below(&r->rng, 12)] : sim_below(&r->rng, max);

	return n < max ? n : max;
}

/*
 * The operations of a side. NICs wait for an answer for some round trips only, so all of their
 * operations are READs and ATOMICs, or none is. With F_BEHIND most are WRITEs, and a few READs and
 * ATOMICs are behind them.
 */
enum style { ALL, WRITES, READS, FEW_READS };

static enum style draw_style(struct run *r)
{
	if (r->faults & F_RESET_ALL)
		return sim_chance(&r->rng, .7) ? WRITES : ALL;
	if (!(r->faults & F_NIC))
		return ALL;
	return r->faults & F_BEHIND ? FEW_READS : r->nic_reads ? READS : WRITES;
}

/* For F_MASS: ATOMICs, small READs, or both with WRITEs between. No READs and ATOMICs where an
 * outage is longer than hosts try. */
static enum rc_wr_op draw_op(struct run *r, unsigned mass, enum style style)
{
	enum rc_wr_op op;

	if (style == READS || (style == FEW_READS && sim_chance(&r->rng, .02)))
		return (enum rc_wr_op)(RC_READ + sim_below(&r->rng, 3));

	if (mass == 2)
		mass = sim_chance(&r->rng, .1) ? 3 : sim_below(&r->rng, 2);
	if (r->faults & F_MASS)
		return (enum rc_wr_op[]){RC_READ, RC_FAA, 0, RC_WRITE}[mass];
	do
		op = (enum rc_wr_op)sim_below(&r->rng, 8);
	while (((r->faults & (F_SQUEEZE | F_RESET | F_SMALL)) || style == WRITES || style == FEW_READS) &&
	       (op == RC_READ || op == RC_CAS || op == RC_FAA));
	return op;
}

static unsigned most_wrs(const struct run *r)
{
	if (r->faults & F_MASS)
		return MASS_MAX;
	if (r->faults & F_HOSTILE) /* the other hosts have little to do */
		return WRS_MAX / 4;
	if (r->faults & F_SMALL)
		return SMALL_WRS_MAX;
	return r->faults & F_NIC ? NIC_WRS_MAX : WRS_MAX;
}

static uint32_t draw_len_of(struct run *r, uint32_t max)
{
	return r->faults & F_SMALL ? 1 + sim_below(&r->rng, SMALL_MAX) : draw_len(r, max);
}

/*
 * Nobody can tell the first request after a reset from the one before it at that PSN, repeated, if
 * they are equal: an empty SEND is like any other.
 */
static void tell_apart(const struct run *r, struct rc_wr *first)
{
	if (!(r->faults & F_RESETS) || (first->op != RC_SEND && first->op != RC_SEND_INV) ||
	    first->len >= DIFFER_MIN)
		return;
	first->len = DIFFER_MIN;
	if (first->local > SRC + AREA - DIFFER_MIN)
		first->local = SRC + AREA - DIFFER_MIN;
}

void sim_draw_wrs(struct run *r, struct side *s, struct side *peer)
{
	bool masses = r->faults & F_MASS;
	unsigned mass = masses ? sim_below(&r->rng, 3) : 0;
	enum style style = draw_style(r);

	s->wrs = 1 + sim_below(&r->rng, most_wrs(r));
	for (unsigned i = 0; i < s->wrs; i++) {
		struct rc_wr *w = &s->wr[i];
		uint32_t len;

		memset(w, 0, sizeof(*w));
		w->id = i;
		w->op = draw_op(r, mass, style);
		if ((r->faults & F_SLOW) && !masses && sim_chance(&r->rng, .5))
			w->op = RC_READ;
		w->rkey = peer->h.cfg.rkey;
		w->imm = (uint32_t)sim_next(&r->rng);
		switch (w->op) {
		case RC_WRITE:
		case RC_WRITE_IMM:
			len = draw_len_of(r, masses ? 4096 : AREA / 2);
			w->remote = SINK + sim_below(&r->rng, AREA - len);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_SEND:
		case RC_SEND_IMM:
		case RC_SEND_INV:
			len = draw_len_of(r, SLOT);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_READ:
			len = masses           ? 64
			      : style == READS ? draw_len(r, 4096)
			                       : draw_len(r, r->faults & F_SLOW ? AREA / 2 : AREA / 4);
			w->remote = SRC + sim_below(&r->rng, AREA - len);
			w->local = READ_TO + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_CAS:
		case RC_FAA:
			w->len = 8;
			w->remote = COUNTER;
			w->local = READ_TO + 8 * sim_below(&r->rng, AREA / 8);
			w->swap_add = sim_next(&r->rng);
			w->compare = 0;
			break;
		case RC_UNCARRIED: /* sim_draw_uncarried() */
			break;
		}
	}
	tell_apart(r, &s->wr[0]);
}

/* Not the first one: the gateway cannot answer on a queue pair that has no peer yet. */
void sim_draw_uncarried(struct run *r, struct side *s)
{
	struct side *one;

	s[0].uncarried = s[1].uncarried = 0;
	if (!(r->faults & F_UNCARRIED) || sim_chance(&r->rng, .3))
		return;
	one = &s[sim_below(&r->rng, 2)];
	if (one->wrs < 2)
		return;
	one->uncarried = 1 + sim_below(&r->rng, one->wrs - 1);
	one->wr[one->uncarried].op = RC_UNCARRIED;
	one->wr[one->uncarried].len = 8;
	one->wr[one->uncarried].local = SRC;
}

bool sim_refused(const struct run *r, const struct side *s)
{
	return r->qp[s->idx][0].uncarried || r->qp[s->idx][1].uncarried;
}

/* The operation that is not carried was reached, and refused. */
static bool refused_in_turn(const struct side *s)
{
	return s->error && s->status == RC_REM_INV && s->done == s->uncarried;
}

void sim_check_uncarried(struct run *r, struct side *s, bool calm)
{
	if (!s->uncarried || s->gone || r->qp[s->idx][!s->site].gone)
		return;
	if (refused_in_turn(s))
		s->wrs = s->done;
	else if (calm || !s->error || s->done > s->uncarried)
		sim_fail(r, "an operation that is not carried did not fail", s, s->uncarried);
}

bool sim_takes_recv(const struct rc_wr *w)
{
	return w->op == RC_SEND || w->op == RC_SEND_IMM || w->op == RC_SEND_INV || w->op == RC_WRITE_IMM;
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return v;
}

/* The effect of an operation on the responder's memory: bytes[0 .. len) at `at`. */
struct effect {
	uint32_t at, len;
	const uint8_t *bytes;
	uint64_t counter; /* for an ATOMIC: the bytes */
};

static uint64_t atomic(const struct rc_wr *w, uint64_t old)
{
	if (w->op == RC_FAA)
		return old + w->swap_add;
	return old == w->compare ? w->swap_add : old;
}

/* The effect of s's next operation. recv: receives consumed before it; theirs: the memory before
 * it. */
static void effect_of(
    struct effect *e, const struct side *s, const struct rc_wr *w, unsigned recv, const uint8_t *theirs)
{
	*e = (struct effect){.len = w->len, .bytes = s->before + w->local};
	switch (w->op) {
	case RC_WRITE:
	case RC_WRITE_IMM:
		e->at = (uint32_t)w->remote;
		break;
	case RC_SEND:
	case RC_SEND_IMM:
	case RC_SEND_INV:
		e->at = RECV + recv % (AREA / SLOT) * SLOT;
		break;
	case RC_READ:
		e->len = 0;
		break;
	case RC_CAS:
	case RC_FAA:
		e->at = COUNTER;
		e->counter = atomic(w, get64(theirs + COUNTER));
		e->bytes = (const uint8_t *)&e->counter;
		break;
	case RC_UNCARRIED:
		e->len = 0;
		break;
	}
}

#define CHUNK 4096
#define NONE  UINT32_MAX

/* The first byte from `at` on that differs, within the area that operations touch. */
static uint32_t differ(const uint8_t *x, const uint8_t *y, uint32_t at)
{
	while (at < READ_TO && !(at % CHUNK) && !memcmp(x + at, y + at, CHUNK))
		at += CHUNK;
	for (; at < READ_TO; at++) {
		if (x[at] != y[at])
			return at;
		if (!((at + 1) % CHUNK))
			return differ(x, y, at + 1);
	}
	for (at = at < COUNTER ? COUNTER : at; at < COUNTER + 8; at++)
		if (x[at] != y[at])
			return at;
	return NONE;
}

static bool has(const struct effect *e, const uint8_t *mem, uint32_t at)
{
	return at >= e->at && at - e->at < e->len && mem[at] == e->bytes[at - e->at];
}

/* True if `mem` equals `theirs` except for bytes of the operation. *witness: on entry a byte that
 * contradicted the operation before (NONE: none); after false a byte that contradicts this one. */
static bool explained(const uint8_t *mem, const uint8_t *theirs, const struct effect *e, uint32_t *witness)
{
	if (*witness != NONE && mem[*witness] != theirs[*witness] && !has(e, mem, *witness))
		return false;
	for (uint32_t at = SINK; (at = differ(mem, theirs, at)) != NONE; at++)
		if (!has(e, mem, at)) {
			*witness = at;
			return false;
		}
	return true;
}

/* Puts the results of s's READs and ATOMICs into s->before, as if all were executed on p's first
 * memory. */
static void read_all(struct side *s, const struct side *p, uint64_t counter)
{
	for (unsigned k = 0; k < s->wrs; k++) {
		const struct rc_wr *w = &s->wr[k];

		if (w->op == RC_READ)
			memcpy(s->before + w->local, p->before + w->remote, w->len);
		if (w->op == RC_CAS || w->op == RC_FAA) {
			memcpy(s->before + w->local, &counter, 8);
			counter = atomic(w, counter);
		}
	}
}

/* How many of s's operations may be in p's memory, if the first k explain it: a READ leaves no
 * trace there. */
static unsigned most(const struct side *s, struct side *p, unsigned k, unsigned recv)
{
	unsigned found = k;

	for (; k < s->done; k++) {
		uint32_t witness = NONE;
		struct effect e;

		effect_of(&e, s, &s->wr[k], recv, p->before);
		memcpy(p->before + e.at, e.bytes, e.len);
		recv += sim_takes_recv(&s->wr[k]);
		e.len = 0;
		if (explained(p->mem, p->before, &e, &witness))
			found = k + 1;
	}
	return found;
}

/*
 * Checks the direction s -> p. In p, s's operations touch [SINK, READ_TO) and the counter; in s
 * they touch [READ_TO, COUNTER); they read from [SRC, SINK) of either. So both directions of a
 * queue pair can be executed in place on the first content. If all are done, all must be equal.
 * With an error memory must be the state after a prefix of the operations that includes at least
 * the completed READs and ATOMICs; the operation after the prefix may be there in part.
 */
void sim_check_direction(struct run *r, struct side *s, struct side *p)
{
	uint64_t counter = get64(p->before + COUNTER);
	uint32_t witness = NONE;
	unsigned recv = 0, k = 0;
	/* In ack mode `near` a completion says that the near gateway has the data. If that gateway
	 * dies, or the other queue pair does, one of the two hosts must have an error; if this host
	 * is idle, the other. A host is told by its queue pair, as responder, too. */
	bool died = (r->fault_done && (r->faults & (F_CRASH | F_MACHINE))) || (r->faults & F_DRAIN_CUT) ||
	            r->pair_bare;
	/* So it is in mode `site` when a queue pair got an error for lack of memory. */
	bool early = r->near >> s->tenant & 1 || died || (r->faults & F_HEAP && r->faults & F_STANDBY);
	/* Nor does mode `site` promise more than to tell this host when the peer's queue pair got an error
	 * first, as that of a NIC does whose READ waits through an outage. */
	bool told = r->faults & F_STANDBY ? side_dead(s) : s->error;
	bool all = !told && !side_removed(r, s) && !(early && (side_dead(s) || side_dead(p)));
	bool ok = false;

	if (s->uncarried && refused_in_turn(s)) /* what is before it is there, or the peer ended first */
		all = s->done == s->wrs && !side_dead(p);
	else if (r->pair_stale[s->site]) /* it is told when it speaks again (docs/standby.md, "Limits") */
		all = false;
	else if (r->faults & F_TOLD) /* data may be missing at the peer only if this host has an error */
		all = !side_dead(s) && !side_removed(r, s);
	for (;; k++) {
		struct effect e = {0};

		if (k < s->wrs)
			effect_of(&e, s, &s->wr[k], recv, p->before);
		if (!all || k == s->wrs)
			ok = explained(p->mem, p->before, &e, &witness);
		if (ok || k == s->wrs)
			break;
		memcpy(p->before + e.at, e.bytes, e.len);
		recv += sim_takes_recv(&s->wr[k]);
	}
	/*
	 * Data was lost with the gateway that acknowledged it. Both hosts must get an error, since
	 * each may wait for the other. A host whose peer's queue pair is in error for another
	 * reason (packets lost on the LAN after the crash) gets it with its next request only; one
	 * that has disconnected, not at all.
	 */
	if (ok && k < s->done && !side_dead(s) && !side_silent(s) &&
	    (r->faults & (F_CRASH_NEAR | F_CRASH_FAR | F_MACHINE)) && !(r->faults & F_LAN_LOSS) &&
	    !((r->faults & F_NIC) && side_dead(p)) && s->site == r->fault_site && !side_removed(r, s) &&
	    most(s, p, k, recv) < s->done)
		sim_fail(r, "completed, lost, and not told", s, k);
	if (!ok && (r->faults & F_TOLD) && all)
		sim_fail(r, "complete, lost, and never told", s, s->done);
	if (!ok)
		sim_fail(r,
		    all ? "memory at the responder is not what the operations make it"
		        : "memory at the responder is not what any number of the operations make it",
		    s, k);
	/* The data that the requester has read. */
	if (s->done < s->wrs)
		return;
	read_all(s, p, counter);
	if (memcmp(s->before + READ_TO, s->mem + READ_TO, AREA) != 0)
		sim_fail(r, "what was read is not what was there", s, s->done);
}

/* Datagrams of the last blocks that a tunnel's receiver may still repair. */
#define REPAIRS WAN_FEC_HELD_MAX
/* Most packets that a queue pair has in flight at a site: requests of either host, and answers. */
#define UNDER_WAY (4 * 128)

void sim_check_buffers(struct run *r, bool ended)
{
	if (sim_accounts(r->w))
		sim_fail(r, sim_accounts(r->w), &r->qp[0][0], 0);
	for (unsigned i = 0; i < 2; i++) {
		const unsigned workers = sim_workers(r->w);
		uint64_t kept = 0, bound = workers * REPAIRS + (ended ? 0 : r->qps * UNDER_WAY);

		for (unsigned k = 0; k < workers; k++) {
			const struct eng *e = sim_worker(r->w, i, k);

			kept += e ? eng_kept_buffers(e) : 0;
			if (e && eng_kept_bytes(e) > r->cfg.read_cache_total)
				sim_fail(r, "more READ responses are kept than may be", &r->qp[0][i],
				    (unsigned)kept);
		}
		bound += kept;
		if (sim_buffers(r->w, i) > bound)
			sim_fail(r,
			    ended ? "buffers are not as before" : "more buffers than hosts have outstanding",
			    &r->qp[0][i], (unsigned)(sim_buffers(r->w, i) - kept));
	}
}
