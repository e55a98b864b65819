/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of the whole engine: two of them, a WAN in memory between them that keeps, loses,
 * duplicates, swaps and corrupts, and hosts that send what the input says, valid or not. Buffers
 * have exactly the room they claim, and headers are written before output as the gateway does it.
 * After each step it checks counts and links of the flow table, limits, custody, buffers, packets
 * to hosts, and that time advances. What a host must see in the end is tested in tests/sim.
 * engine_world.h lists the parts.
 */
#include "tests/fuzz/engine_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_MAX  3000
#define IDLE_POLLS 64
#define EVENTS_MAX 3000 /* polls of the clock in one step of the script */

/* --- time ------------------------------------------------------------------------------------- */

/* Polls a site: nothing may stay due that polling does not do. */
static void poll_site(struct site *s)
{
	unsigned idle = 0;

	while (idle < IDLE_POLLS) {
		if (eng_poll(s->e, s->w->now))
			idle = 0;
		else
			idle++;
		if (eng_next(s->e) > s->w->now)
			return;
	}
	CHECK(idle < IDLE_POLLS); /* otherwise it is due for ever */
}

static bool deliver(struct site *s)
{
	uint32_t n = s->in_n;

	for (uint32_t i = 0; i < n; i++) {
		struct dgram d = s->in[i];
		struct rwy_buf *b = fz_buf_new(s, RX_ROOM, d.len);

		memcpy(b->data, d.bytes, d.len);
		free(d.bytes);
		eng_wan_rx(s->e, 0, 0, b, (uint8_t)(d.len & 3), s->w->now);
	}
	memmove(s->in, s->in + n, (s->in_n - n) * sizeof(s->in[0]));
	s->in_n -= n;
	return n;
}

static void settle(struct world *w)
{
	for (unsigned i = 0; i < 60; i++) {
		bool any = false;

		poll_site(&w->site[0]);
		poll_site(&w->site[1]);
		w->now += 50 * RWY_US;
		any = deliver(&w->site[0]);
		any = deliver(&w->site[1]) || any;
		if (!any)
			break;
	}
	poll_site(&w->site[0]);
	poll_site(&w->site[1]);
}

static void pass(struct world *w, rwy_dur d)
{
	rwy_time end = w->now + d;

	for (unsigned i = 0; i < EVENTS_MAX && w->now < end; i++) {
		rwy_time at = rwy_time_min(eng_next(w->site[0].e), eng_next(w->site[1].e));

		w->now = rwy_time_min(end, rwy_time_max(at, w->now + d / 64));
		settle(w);
	}
}

/* --- the WAN ---------------------------------------------------------------------------------- */

static void replay(struct site *s, uint8_t which)
{
	struct dgram *d = &s->old[which % KEEP];

	if (d->bytes)
		fz_put(s, d->bytes, d->len);
}

/* Sends frames from the peer's address with a right checksum and any content. */
static void lie(struct site *s, uint8_t n)
{
	struct dgram *d = &s->old[(s->old_n - 1) % KEEP];
	uint8_t out[400];
	uint32_t len = 20;

	if (!s->old_n || d->len < 20 || s->w->mode & 32)
		return;
	s->w->evil = true;
	memcpy(out, d->bytes, 20);
	rwy_put64(out + 8, rwy_get64(d->bytes + 8) + 1 + (n >> 6));
	if (n & 32) { /* open information of a flow, so that the engines see it */
		struct eng_open o = {.type = (uint8_t)(1 + fz_u8(s->w) % 3), .rnr_retry = 7, .retry = 7};
		uint8_t which = fz_u8(s->w), info[WAN_OPEN_MAX];
		struct wan_f_data f = {.open = true, .kind = which >> 6 & 1, .info = info};

		o.incarnation = which;
		o.vni = s->w->mode & 128 && which & 64 ? VNI : 0;
		o.key.qpn = 0x10 + (which & 3);
		o.peer_qpn = which & 32 ? 0x10 + (which & 3) : 0;
		o.key.src = fz_host_ip(o.type == ENG_OPEN_RSP ? s->idx : !s->idx, which >> 2 & 1, which & 8);
		o.key.dst = fz_host_ip(o.type == ENG_OPEN_RSP ? !s->idx : s->idx, which >> 2 & 1, which & 16);
		f.flow = fz_u8(s->w) & 15;
		f.info_len = (uint8_t)eng_open_encode(info, &o);
		len = (uint32_t)(wan_f_data_put(out + 20, &f) - out);
		if (which & 128 && s->last_len && s->last_len < sizeof(out) - len) {
			memcpy(out + len, s->last, s->last_len);
			len += s->last_len;
		}
	}
	for (unsigned i = 0; i < (n & 31u) * 2 && len < sizeof(out); i++)
		out[len++] = fz_u8(s->w);
	rwy_put32(out + 16, 0);
	wan_pkt_seal(out, len, NULL, 0);
	fz_put(s, out, len);
}

/* --- the script ------------------------------------------------------------------------------- */

static void step(struct world *w)
{
	static const rwy_dur units[4] = {20 * RWY_US, 2 * RWY_MS, 60 * RWY_MS, 700 * RWY_MS};
	static const uint8_t ops[16] = {ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY, ROCE_RC_READ_REQ,
	    ROCE_RC_FETCH_ADD, ROCE_RC_CMP_SWAP, ROCE_RC_SEND_FIRST, ROCE_RC_SEND_MIDDLE, ROCE_RC_SEND_LAST,
	    ROCE_RC_WRITE_FIRST, ROCE_RC_WRITE_MIDDLE, ROCE_RC_WRITE_LAST, ROCE_RC_WRITE_LAST_IMM,
	    ROCE_RC_SEND_ONLY_INV, ROCE_RC_READ_REQ, ROCE_RC_SEND_ONLY, ROCE_RC_WRITE_ONLY_IMM};
	uint8_t c = fz_u8(w), arg = fz_u8(w);
	struct site *s = &w->site[c >> 7];

	switch (c & 15) {
	case 0:
	case 1:
	case 2:
		fz_request(s, ops[(c >> 3 & 14) | (c & 1)], arg);
		break;
	case 3:
		fz_request(s, fz_u8(w), arg);
		break;
	case 4:
	case 5:
		fz_answer(s, (uint8_t)(s->got_n - 1 - (c >> 4 & 7)), arg);
		break;
	case 6:
		fz_any_response(s, arg);
		break;
	case 7:
		fz_cm(s, arg);
		break;
	case 8:
		fz_garbage(s, arg);
		break;
	case 9:
		fz_mutate(s, arg);
		break;
	case 10:
		pass(w, units[arg & 3] * (1 + (arg >> 2)));
		break;
	case 11:
		s->outcome = arg;
		break;
	case 12:
		if (arg & 1)
			fz_look(s);
		else {
			fz_site_stop(s);
			fz_site_start(s);
		}
		break;
	case 13:
		lie(s, arg);
		break;
	case 14:
		replay(s, arg);
		break;
	case 15:
		for (unsigned i = 0; i < (arg >> 3 & 15u); i++)
			fz_request(s, ROCE_RC_SEND_ONLY, (uint8_t)((arg & 7) | (arg >> 7) << 7));
		break;
	}
	if (!(c & 16) || c & 64)
		settle(w);
	fz_check(&w->site[0]);
	fz_check(&w->site[1]);
}

/* From here on everything works: all that is left must end by itself, and nothing may stay due. */
static void finish(struct world *w)
{
	w->alloc_fail = 0;
	w->site[0].outcome = w->site[1].outcome = 0;
	settle(w);
	for (unsigned i = 0; i < 12; i++) {
		pass(w, RWY_SEC);
		fz_check(&w->site[0]);
		fz_check(&w->site[1]);
	}
	for (unsigned i = 0; i < 2; i++) {
		struct site *s = &w->site[i];

		fz_site_stop(s);
		for (uint32_t k = 0; k < s->in_n; k++)
			free(s->in[k].bytes);
		for (uint32_t k = 0; k < KEEP; k++)
			free(s->old[k].bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *w;

	if (size < 2 || size > INPUT_MAX)
		return 0;
	w = calloc(1, sizeof(*w));
	CHECK(w);
	w->p = data;
	w->n = size;
	w->now = RWY_SEC;
	w->mode = fz_u8(w);
	if (w->mode & 64)
		w->alloc_fail = 3 + (w->mode & 31);
	for (unsigned i = 0; i < 2; i++) {
		w->site[i].w = w;
		w->site[i].idx = i;
		w->site[i].psn[1] = 0xfffffd;
		w->site[i].psn[2] = 100;
		fz_site_start(&w->site[i]);
	}
	pass(w, 100 * RWY_MS);
	while (w->n)
		step(w);
	finish(w);
	free(w);
	return 0;
}
