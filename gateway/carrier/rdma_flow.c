/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/carrier/rdma_flow.h"

#include <string.h>

#include "aead/aead.h"
#include "rwy/endian.h"

#define VERSION 1

static const uint8_t magic[4] = {'R', 'w', 'y', 'R'};

void gw_rdma_flow_init(struct gw_rdma_flow *f, uint32_t ours, uint32_t peers)
{
	*f = (struct gw_rdma_flow){
	    .ours = ours, .peers = peers, .allowed = peers, .posted = ours, .told = ours};
}

static uint32_t credits(const struct gw_rdma_flow *f)
{
	return f->allowed - f->sent;
}

/* Our buffers that no message is in. */
static uint32_t buffers(const struct gw_rdma_flow *f)
{
	return f->ours - (f->sent - f->done);
}

uint32_t gw_rdma_flow_room(const struct gw_rdma_flow *f)
{
	const uint32_t c = credits(f), b = buffers(f);

	if (c <= 1)
		return 0; /* the last one is for an empty message */
	return c - 1 < b ? c - 1 : b;
}

bool gw_rdma_flow_owes(const struct gw_rdma_flow *f)
{
	return f->posted - f->told >= f->ours / 4 && credits(f) && buffers(f);
}

uint32_t gw_rdma_flow_send(struct gw_rdma_flow *f, rwy_time now)
{
	if (f->sent == f->done)
		f->since = now;
	f->sent++;
	if (!f->timed_at) {
		f->timed = f->sent;
		f->timed_at = now;
	}
	f->told = f->posted;
	return f->posted;
}

static void round_trip(struct gw_rdma_flow *f, rwy_dur rtt, rwy_time now)
{
	const rwy_dur off = rtt > f->srtt ? rtt - f->srtt : f->srtt - rtt;

	f->rttvar = f->srtt ? (3 * f->rttvar + off) / 4 : rtt / 2;
	f->srtt = f->srtt ? (7 * f->srtt + rtt) / 8 : rtt;
	f->min_rtt = !f->min_rtt || rtt < f->min_rtt ? rtt : f->min_rtt;
	f->heard = now;
	f->timed_at = 0;
}

void gw_rdma_flow_done(struct gw_rdma_flow *f, rwy_time now)
{
	f->done++;
	f->since = now;
	if (f->timed_at && f->done == f->timed)
		round_trip(f, rwy_since(f->timed_at, now), now);
}

int gw_rdma_flow_recv(struct gw_rdma_flow *f, uint32_t immediate)
{
	/* Messages arrive in order, so the count never falls; and the peer posts a receive again
	 * only after a message of ours. */
	if (immediate - f->allowed >= UINT32_C(1) << 31 || immediate - f->sent > f->peers)
		return RWY_EMALFORMED;
	f->allowed = immediate;
	return 0;
}

void gw_rdma_flow_post(struct gw_rdma_flow *f)
{
	f->posted++;
}

bool gw_rdma_flow_dead(const struct gw_rdma_flow *f, rwy_time now)
{
	return f->sent != f->done && rwy_since(f->since, now) > GW_RDMA_SILENCE;
}

/* --- private data ----------------------------------------------------------------------------- */
/*
 *   0  "RwyR"
 *   4  version
 *   5  REQ and REP: cipher, 0: none; REJ: why
 *   6  REQ and REP: receives that the sender keeps posted; REJ: 0
 */
static void private_put(uint8_t out[GW_RDMA_GREETING], uint8_t what, uint32_t slots)
{
	memcpy(out, magic, sizeof(magic));
	out[4] = VERSION;
	out[5] = what;
	rwy_put16(out + 6, (uint16_t)slots);
}

static bool is_ours(const uint8_t *p, size_t n)
{
	return n >= GW_RDMA_GREETING && memcmp(p, magic, sizeof(magic)) == 0 && p[4] == VERSION;
}

void gw_rdma_greeting_put(uint8_t out[GW_RDMA_GREETING], const struct gw_rdma_greeting *g)
{
	private_put(out, g->cipher, g->slots);
}

int gw_rdma_greeting_get(const uint8_t *p, size_t n, struct gw_rdma_greeting *g)
{
	if (!is_ours(p, n) || p[5] > 1 + AEAD_AES_256_GCM)
		return RWY_EMALFORMED;
	g->cipher = p[5];
	g->slots = rwy_get16(p + 6);
	return g->slots < GW_RDMA_SLOTS_MIN || g->slots > GW_RDMA_SLOTS_MAX ? RWY_EMALFORMED : 0;
}

void gw_rdma_refusal_put(uint8_t out[GW_RDMA_GREETING], enum gw_rdma_refusal r)
{
	private_put(out, (uint8_t)r, 0);
}

const char *gw_rdma_refusal_get(const uint8_t *p, size_t n)
{
	if (!is_ours(p, n) || rwy_get16(p + 6))
		return NULL;
	switch (p[5]) {
#define X(e, n, s)                                                                                           \
	case e:                                                                                              \
		return s;
		GW_RDMA_REFUSALS(X)
#undef X
	default:
		return NULL;
	}
}
