/* SPDX-License-Identifier: Apache-2.0 */
/* The workload of the explorer, and what memory must be after it. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/explore.h"

static uint32_t draw_len(struct run *r, uint32_t max)
{
	static const uint32_t edge[] = {0, 1, 3, 255, 256, 257, 1023, 1024, 1025, 4096, 4097, 16384};
	uint32_t n = sim_chance(&r->rng, .5) ? edge[sim_below(&r->rng, 12)] : sim_below(&r->rng, max);

	return n < max ? n : max;
}

void sim_draw_wrs(struct run *r, struct side *s, struct side *peer)
{
	s->wrs = 1 + sim_below(&r->rng, WRS_MAX);
	for (unsigned i = 0; i < s->wrs; i++) {
		struct rc_wr *w = &s->wr[i];
		uint32_t len;

		memset(w, 0, sizeof(*w));
		w->id = i;
		w->op = (enum rc_wr_op)sim_below(&r->rng, 8);
		while ((r->faults & F_SQUEEZE) && (w->op == RC_READ || w->op == RC_CAS || w->op == RC_FAA))
			w->op = (enum rc_wr_op)sim_below(&r->rng, 8);
		w->rkey = peer->h.cfg.rkey;
		w->imm = (uint32_t)sim_next(&r->rng);
		switch (w->op) {
		case RC_WRITE:
		case RC_WRITE_IMM:
			len = draw_len(r, AREA / 2);
			w->remote = SINK + sim_below(&r->rng, AREA - len);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_SEND:
		case RC_SEND_IMM:
		case RC_SEND_INV:
			len = draw_len(r, SLOT);
			w->local = SRC + sim_below(&r->rng, AREA - len);
			w->len = len;
			break;
		case RC_READ:
			len = draw_len(r, AREA / 4);
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
		}
	}
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

/* Executes one operation of `s` on the shadows of both memories. */
static void apply(const struct side *s, const struct rc_wr *w, uint8_t *mine, uint8_t *theirs, unsigned *recv)
{
	unsigned slot = *recv % (AREA / SLOT);
	uint64_t old;

	if (sim_takes_recv(w))
		(*recv)++;
	switch (w->op) {
	case RC_WRITE:
	case RC_WRITE_IMM:
		memcpy(theirs + w->remote, s->before + w->local, w->len);
		break;
	case RC_SEND:
	case RC_SEND_IMM:
	case RC_SEND_INV:
		memcpy(theirs + RECV + slot * SLOT, s->before + w->local, w->len);
		break;
	case RC_READ:
		memcpy(mine + w->local, theirs + w->remote, w->len);
		break;
	case RC_CAS:
	case RC_FAA:
		old = get64(theirs + COUNTER);
		memcpy(mine + w->local, &old, 8);
		if (w->op == RC_FAA || old == w->compare) {
			uint64_t v = w->op == RC_FAA ? old + w->swap_add : w->swap_add;

			memcpy(theirs + COUNTER, &v, 8);
		}
		break;
	}
}

/*
 * The direction s -> p. `mine` starts as s's memory before, `theirs` as p's. What s's operations touch in p
 * is [SINK, READ_TO) and the counter; in s [READ_TO, COUNTER). All done: all must be equal. With an error:
 * the state after some prefix of the operations, at least the READs and ATOMICs that completed; the operation
 * after the prefix may be there in part.
 */
void sim_check_direction(struct run *r, struct side *s, struct side *p)
{
	static uint8_t mine[MEM], theirs[MEM], nm[MEM], nt[MEM];
	unsigned recv = 0, k = 0, nrecv;
	bool ok = false;

	memcpy(mine, s->before, MEM);
	memcpy(theirs, p->before, MEM);
	/* In ack mode `near` a completion says that the near gateway has it; when that gateway dies, one of
	 * the two hosts must have an error: the other one when this one is idle. */
	if (!s->error && !(r->fault_done && (r->faults & F_CRASH) && side_dead(p)))
		for (; k < s->wrs; k++)
			apply(s, &s->wr[k], mine, theirs, &recv);
	for (;; k++) {
		ok = !memcmp(p->mem + SINK, theirs + SINK, READ_TO - SINK) &&
		     !memcmp(p->mem + COUNTER, theirs + COUNTER, 8);
		if (ok)
			break;
		memcpy(nm, mine, MEM);
		memcpy(nt, theirs, MEM);
		nrecv = recv;
		if (k < s->wrs)
			apply(s, &s->wr[k], nm, nt, &nrecv);
		ok = true;
		for (uint32_t i = SINK; i < READ_TO && ok; i++)
			ok = p->mem[i] == theirs[i] || p->mem[i] == nt[i];
		for (uint32_t i = COUNTER; i < COUNTER + 8 && ok; i++)
			ok = p->mem[i] == theirs[i] || p->mem[i] == nt[i];
		if (ok || k >= s->wrs)
			break;
		apply(s, &s->wr[k], mine, theirs, &recv);
	}
	/*
	 * Lost with the gateway that had acknowledged it: both must know, for both may be waiting for the
	 * other. A host whose peer's queue pair is in error for another reason (packets lost on the LAN after
	 * the crash) hears of it with its next request only.
	 */
	if (ok && k < s->done && !side_dead(s) && (r->faults & (F_CRASH_NEAR | F_CRASH_FAR)) &&
	    !(r->faults & F_LAN_LOSS) && s->site == r->fault_site)
		sim_fail(r, "completed, lost, and not told", s, k);
	if (!ok)
		sim_fail(r, "memory at the responder is not what the operations make it", s, k);
	/* What the requester read. */
	memcpy(mine, s->before, MEM);
	memcpy(theirs, p->before, MEM);
	recv = 0;
	for (k = 0; k < s->done; k++)
		apply(s, &s->wr[k], mine, theirs, &recv);
	if (s->done == s->wrs && memcmp(mine + READ_TO, s->mem + READ_TO, AREA) != 0)
		sim_fail(r, "what was read is not what was there", s, s->done);
}
