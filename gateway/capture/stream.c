/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the workers' rings, oldest first, as blocks of pcapng. */
#include "gateway/capture/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roce/opcode.h"

#define OUT       (2u << 20) /* without slots */
#define SEEN      (1u << 18) /* packets remembered, to know one that comes again, */
#define WAYS      4u         /*   in sets of so many, of which the oldest goes */
#define MERGE_MAX 4096       /* packets that are written before others may have the lock */

/* Takes the next slot. False: the reader has all. */
static bool slot_take(struct gw_cap_stream *s)
{
	uint8_t *data = base_slots_room(&s->slots);

	s->out = (struct gw_cap_out){.data = data, .max = data ? BASE_SLOT_SIZE : 0};
	return data;
}

int gw_cap_stream_new(
    struct gw_cap_stream *s, const struct gw_app *app, uint64_t count, uint64_t utc, bool slots)
{
	*s = (struct gw_cap_stream){.app = app, .count = count, .utc = utc, .slots.fd = -1};
	if (slots && (base_slots_new(&s->slots) || !slot_take(s)))
		return RWY_ENOMEM;
	if (!slots)
		s->out = (struct gw_cap_out){.data = malloc(OUT), .max = OUT};
	s->seen = gw_cap_zeroed(SEEN * sizeof(*s->seen));
	s->texts = calloc(1, sizeof(*s->texts));
	if (!s->out.data || !s->seen || !s->texts)
		return RWY_ENOMEM;
	return 0;
}

void gw_cap_stream_free(struct gw_cap_stream *s)
{
	if (!s->slots.head)
		free(s->out.data);
	base_slots_close(&s->slots);
	free(s->seen);
	free(s->texts);
}

size_t gw_cap_stream_take(struct gw_cap_stream *s, void *buf, size_t max)
{
	const size_t left = s->out.len - s->from, n = left < max ? left : max;

	memcpy(buf, s->out.data + s->from, n);
	s->from += n;
	if (s->from == s->out.len)
		s->from = s->out.len = 0;
	return n;
}

uint64_t gw_cap_stream_lost(const struct gw_cap_stream *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < GW_CAP_IFS; i++)
		n += s->lost_told[i];
	return n;
}

static unsigned interfaces(const struct gw_cap_stream *s)
{
	return s->app->ports * 2;
}

static void counts(const struct gw_cap_stream *s, unsigned i, uint64_t *taken, uint64_t *lost)
{
	*taken = *lost = 0;
	for (unsigned w = 0; w < s->cap->workers; w++) {
		*taken += atomic_load_explicit(&s->cap->worker[w]->taken[i], memory_order_relaxed);
		*lost += atomic_load_explicit(&s->cap->worker[w]->lost[i], memory_order_relaxed);
	}
}

bool gw_cap_stream_head(struct gw_cap_stream *s, const struct gw_cap_cfg *cfg)
{
	char program[96], name[CONF_NAME + 16];

	snprintf(program, sizeof(program), "Roceway %s, %s", s->app->version, s->app->conf->name);
	if (!gw_cap_put_section(&s->out, program, cfg->comment))
		return false;
	for (unsigned i = 0; i < interfaces(s); i++) {
		const struct conf_port *p = &s->app->conf->port[i / 2];
		const bool lan = p->role == CONF_ROLE_LAN, in = i % 2 == 0;
		const enum gw_cap_stage stage =
		    lan ? (in ? GW_CAP_LAN_IN : GW_CAP_LAN_OUT) : (in ? GW_CAP_WAN_IN : GW_CAP_WAN_OUT);

		snprintf(name, sizeof(name), "%s %s", p->name, gw_cap_stage_name[stage]);
		if (!gw_cap_put_interface(
		        &s->out, name, lan ? "" : "before encryption, after decryption", cfg->snap))
			return false;
	}
	return true;
}

void gw_cap_stream_push(struct gw_cap_stream *s)
{
	if (!s->out.len)
		return;
	base_slots_fill(&s->slots, (uint32_t)s->out.len);
	s->out = (struct gw_cap_out){0};
}

/* Makes room at the end of `out`, whose first part the reader has taken. */
static void out_shift(struct gw_cap_stream *s)
{
	if (!s->from)
		return;
	memmove(s->out.data, s->out.data + s->from, s->out.len - s->from);
	s->out.len -= s->from;
	s->from = 0;
}

/* Makes room for a block of so many bytes. False: the reader must give some back. */
static bool room(struct gw_cap_stream *s, size_t need)
{
	if (s->out.max - s->out.len >= need)
		return true;
	if (s->slots.head) {
		gw_cap_stream_push(s);
		return slot_take(s);
	}
	if (!gw_cap_stream_has_room(s))
		return false;
	out_shift(s);
	return true;
}

/*
 * Where a packet is remembered at its stage: a set is within a cache line, and the packets of a
 * connection, which come in the order of their PSNs, have neighbouring ones.
 */
static uint64_t *seen_set(const struct gw_cap_stream *s, const struct gw_cap_facts *f)
{
	uint64_t dst[2], h;

	memcpy(dst, f->dst.b, 16);
	h = (dst[0] + dst[1] * 3 + ((uint64_t)f->vni << 32 | f->dqpn)) * 0x9e3779b97f4a7c15u;
	h = (h >> 32) + (uint64_t)f->stage * (SEEN / WAYS / GW_CAP_STAGE_COUNT) + f->psn;
	return &s->seen[h % (SEEN / WAYS) * WAYS];
}

/* Whether this packet passed its stage before. An ACK or CNP is not sent again: it is another
 * one. */
static bool again(struct gw_cap_stream *s, const struct gw_cap_facts *f, uint64_t id)
{
	const struct roce_opinfo *o = roce_op(f->opcode);
	const uint64_t what = id * 4 + f->stage;
	uint64_t *set;

	if (!f->roce || f->later || f->decision == GW_CAP_DROP || !roce_op_is_valid(o) ||
	    o->transport != ROCE_RC || o->op == ROCE_OP_ACK || o->op == ROCE_OP_ATOMIC_ACK)
		return false;
	set = seen_set(s, f);
	for (unsigned i = 0; i < WAYS; i++)
		if (set[i] == what)
			return true;
	memmove(set + 1, set, (WAYS - 1) * sizeof(*set));
	set[0] = what;
	return false;
}

static uint64_t lost_of(const struct gw_cap_stream *s, unsigned i)
{
	uint64_t taken, lost;

	counts(s, i, &taken, &lost);
	return lost;
}

/* False: no room. */
static bool put_record(struct gw_cap_stream *s, const struct gw_cap_rec *r)
{
	const struct gw_cap_facts *f = &r->facts;
	const unsigned i = gw_cap_if(r->port, f->stage);
	struct gw_cap_epb p = {.interface = i,
	    .inbound = i % 2 == 0,
	    .time = s->utc + r->time,
	    .len = r->len,
	    .wire_len = r->wire_len,
	    .data = gw_cap_rec_bytes(r)};
	char comment[GW_CAP_COMMENT];
	const size_t need = (size_t)GW_CAP_EPB_EXTRA + GW_CAP_COMMENT + r->len;
	uint64_t lost;

	if (!room(s, need))
		return false;
	lost = lost_of(s, i);
	p.id = gw_cap_id(f);
	p.dropped = lost - s->lost_put[i];
	p.comment = comment;
	p.comment_len =
	    gw_cap_comment(s->texts, comment, f, gw_cap_events(f) | (again(s, f, p.id) ? GW_CAP_AGAIN : 0u));
	if (!gw_cap_put_packet(&s->out, &p))
		return false;
	s->lost_put[i] = lost;
	s->packets++;
	return true;
}

/* The ring with the oldest record; NULL: all are empty. */
static struct gw_cap_ring *oldest(const struct gw_cap_stream *s, const struct gw_cap_rec **rec)
{
	struct gw_cap_ring *ring = NULL;

	*rec = NULL;
	for (unsigned w = 0; w < s->cap->workers; w++) {
		const struct gw_cap_rec *r = gw_cap_ring_first(&s->cap->worker[w]->ring);

		if (r && (!*rec || r->time < (*rec)->time)) {
			*rec = r;
			ring = &s->cap->worker[w]->ring;
		}
	}
	return ring;
}

bool gw_cap_stream_full(const struct gw_cap_stream *s)
{
	return s->count && s->packets >= s->count;
}

enum gw_cap_moved gw_cap_stream_move(struct gw_cap_stream *s)
{
	const struct gw_cap_rec *r;
	struct gw_cap_ring *ring;

	for (unsigned n = 0; !gw_cap_stream_full(s); n++) {
		ring = oldest(s, &r);
		if (!ring)
			break;
		if (n == MERGE_MAX)
			return GW_CAP_MORE;
		/* the next one, unless the ring begins again: a worker's processor has it */
		__builtin_prefetch((const uint8_t *)r + r->size);
		if (!put_record(s, r))
			return GW_CAP_NO_ROOM;
		gw_cap_ring_pop(ring, r);
	}
	return GW_CAP_ALL_MOVED;
}

bool gw_cap_stream_statistics(struct gw_cap_stream *s, rwy_time now, bool all)
{
	if (!s->slots.head)
		out_shift(s);
	else if (!room(s, (size_t)interfaces(s) * GW_CAP_EPB_EXTRA))
		return false;
	for (unsigned i = 0; i < interfaces(s); i++) {
		uint64_t taken, lost;

		counts(s, i, &taken, &lost);
		if (i && !all && taken == s->taken_told[i] && lost == s->lost_told[i])
			continue;
		if (!gw_cap_put_statistics(&s->out, i, s->utc + now, taken, lost))
			return false;
		s->taken_told[i] = taken;
		s->lost_told[i] = lost;
	}
	return true;
}
