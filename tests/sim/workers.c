/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several workers of a gateway: an engine each. They steer by queue pair and share a directory, with
 * notes between them; or they steer by address pair, and share a board if the gateway is one of a
 * pair. Worker k of one gateway talks to worker k of the other one.
 */
#include "tests/sim/world_int.h"

#include <stdlib.h>

#include "engine/board.h"
#include "tests/sim/heap.h"

#define SIDES 8192

static void directory_new(struct world *w, unsigned site)
{
	if (eng_directory_new(&w->directory[site], SIDES, w->cfg.seed + site) != 0)
		abort();
}

static void board_new(struct world *w, unsigned gateway)
{
	if (eng_board_new(&w->board[gateway]) != 0)
		abort();
}

void sim_workers_init(struct world *w)
{
	if (w->engines == w->gateways)
		return;
	for (unsigned g = 0; w->cfg.pairs && g < w->gateways; g++)
		board_new(w, g);
	if (w->cfg.pairs || w->cfg.by_pair)
		return;
	directory_new(w, 0);
	directory_new(w, 1);
	for (unsigned i = 0; i < w->engines; i++)
		if (!(w->site[i].notes = calloc(SIM_NOTES, sizeof(*w->site[i].notes))))
			abort();
}

void sim_workers_fini(struct world *w)
{
	for (unsigned i = 0; i < w->engines; i++) {
		sim_worker_stopped(&w->site[i]);
		free(w->site[i].notes);
	}
	for (unsigned i = 0; i < 2; i++)
		eng_directory_free(w->directory[i]);
	for (unsigned g = 0; g < SIM_GATEWAYS; g++)
		eng_board_free(w->board[g]);
}

struct site *sim_worker_of(struct world *w, unsigned gateway, const struct sim_buf *m)
{
	const struct eng_directory *d = w->directory[gateway % 2];
	const uint32_t vni = m->b.w0 ? 100 + m->b.w0 : 0;
	struct roce_pkt pkt;
	struct eng_key k;
	enum roce_parse_reason r;
	int at = -1;

	if (w->engines == w->gateways)
		return &w->site[gateway];
	r = roce_parse(m->b.data, m->b.len, &pkt);
	if (r == ROCE_PARSE_BAD_IP || r == ROCE_PARSE_TRUNCATED)
		return &w->site[gateway];
	k = (struct eng_key){.src = pkt.src, .dst = pkt.dst, .qpn = pkt.dqpn};
	if (d && (r == ROCE_PARSE_OK || r == ROCE_PARSE_UNKNOWN_OPCODE))
		at = eng_directory_find(d, eng_directory_hash(d, &k, vni, false));
	if (at < 0)
		at = (int)eng_owner(vni, &k.src, &k.dst, w->cfg.workers);
	return sim_at(w, gateway, (unsigned)at);
}

void sim_workers_wake(struct site *s)
{
	for (unsigned k = 0; k < s->w->cfg.workers; k++) {
		struct site *to = sim_at(s->w, s->gateway, k);

		if (to->e && to != s)
			to->next = s->w->now;
	}
}

bool sim_note_send(struct site *s, unsigned worker, const struct eng_note *n)
{
	struct site *to = sim_at(s->w, s->gateway, worker);

	if (!to->e || to->notes_n == SIM_NOTES || sim_heap_fails())
		return false;
	if (n->b)
		s->bufs--;
	to->notes[to->notes_n++] = *n;
	to->next = s->w->now;
	return true;
}

void sim_notes_take(struct site *s)
{
	for (unsigned i = 0; i < s->notes_n; i++) {
		struct eng_note n = s->notes[i];

		s->bufs += n.b != NULL;
		eng_note_take(s->e, &n, s->w->now);
	}
	s->notes_n = 0;
}

void sim_worker_stopped(struct site *s)
{
	struct world *w = s->w;

	for (unsigned i = 0; i < s->notes_n; i++)
		if (s->notes[i].b)
			sim_buf_free(sim_buf_of(s->notes[i].b));
	s->notes_n = 0;
	for (unsigned k = 0; k < sim_workers(w); k++)
		if (sim_at(w, s->gateway, k)->e)
			return;
	if (w->directory[s->idx]) {
		eng_directory_free(w->directory[s->idx]);
		directory_new(w, s->idx);
	}
	if (w->board[s->gateway]) {
		eng_board_free(w->board[s->gateway]);
		board_new(w, s->gateway);
	}
}

unsigned sim_workers(const struct world *w)
{
	return w->engines / w->gateways;
}

struct eng *sim_worker(struct world *w, unsigned site, unsigned worker)
{
	return sim_at(w, sim_serving(w, site), worker)->e;
}

uint64_t sim_custody(struct world *w, unsigned site)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < sim_workers(w); k++)
		bytes += eng_custody_bytes(sim_worker(w, site, k));
	return bytes;
}
