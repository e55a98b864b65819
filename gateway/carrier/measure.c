/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the path by a tunnel's connections: TCP's round trips and losses as the kernel counts
 * them, QUIC's as ngtcp2 does, RDMA's as its NICs do. While a tunnel sends by them nothing else
 * measures its path.
 */
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>

#include "gateway/carrier/internal.h"
#include "gateway/carrier/rdma_flow.h"

#define EVERY  (500 * RWY_MS)
#define MEMORY 1024 /* segments that the reported share of losses covers */
/* The same for RDMA, at most and at least: the planner asks for shares far below 1/1024. */
#define RDMA_MEMORY ((uint64_t)1 << 18)
#define RDMA_LEAST  ((uint64_t)1 << 16)

struct sum {
	uint64_t segs, lost, delivered;
	uint64_t srtt_us; /* sum of the round trips of the acknowledged segments */
	uint32_t min_us, var_us;
};

static uint32_t less(uint32_t a, uint32_t b)
{
	return a > b ? a - b : 0;
}

static void conn_measure(struct gw_conn *c, struct sum *s)
{
	const struct gw_conn_seen was = c->seen;
	socklen_t len = sizeof(struct tcp_info);
	struct tcp_info i;
	uint32_t delivered;

	memset(&i, 0, sizeof(i));
	if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &i, &len) != 0 ||
	    len < offsetof(struct tcp_info, tcpi_dsack_dups) + sizeof(i.tcpi_dsack_dups))
		return; /* kernel before 5.0 */
	c->seen = (struct gw_conn_seen){
	    i.tcpi_data_segs_out, i.tcpi_total_retrans, i.tcpi_dsack_dups, i.tcpi_delivered};
	s->segs += i.tcpi_data_segs_out - was.segs;
	s->lost += less(i.tcpi_total_retrans - was.again, i.tcpi_dsack_dups - was.twice);
	delivered = i.tcpi_delivered - was.delivered;
	if (!delivered || !i.tcpi_rtt)
		return; /* the last round trip is old */
	s->delivered += delivered;
	s->srtt_us += (uint64_t)i.tcpi_rtt * delivered;
	if (!s->min_us || i.tcpi_min_rtt < s->min_us)
		s->min_us = i.tcpi_min_rtt;
	if (i.tcpi_rttvar > s->var_us)
		s->var_us = i.tcpi_rttvar;
}

/* Adds losses of new segments; old ones decay. */
static void loss_add(
    struct gw_carrier_measure *m, uint64_t segs, uint64_t lost, uint64_t memory, uint64_t least)
{
	const uint64_t keep = segs < memory ? memory - segs : 0;
	uint64_t of;

	if (m->segs > keep) {
		m->lost16 = m->lost16 * keep / m->segs;
		m->segs = keep;
	}
	m->segs += segs;
	m->lost16 += lost << 16;
	if (m->lost16 > m->segs << 16)
		m->lost16 = m->segs << 16;
	of = m->segs > least ? m->segs : least;
	m->path.loss_ppm = of ? (uint32_t)((m->lost16 * 1000000 / of) >> 16) : 0;
}

/* ngtcp2 counts losses for each stream only, so a lost packet counts once for each stream in it. */
static void quic_measure(struct gw_conn *c, struct gw_carrier_measure *m, rwy_time now)
{
	const struct gw_conn_seen was = c->seen;
	struct gw_quic_info i;

	gw_quic_info(c->quic, &i);
	if (!i.srtt)
		return;
	c->seen = (struct gw_conn_seen){.segs = (uint32_t)i.pieces, .again = (uint32_t)i.lost};
	if (c->seen.segs == was.segs)
		return; /* nothing was sent: what is known is as old as it is */
	loss_add(m, c->seen.segs - was.segs, c->seen.again - was.again, MEMORY, 0);
	m->path.srtt = i.srtt;
	m->path.min_rtt = i.min_rtt;
	m->path.rttvar = i.rttvar;
	m->path.at = now;
}

/* The losses of a tunnel's RDMA connections, by any of them: they have one device. False: it does
 * not count them, so nothing is known. */
static bool rdma_losses(const struct gw_carrier_tun *t, const struct gw_conn *c, struct gw_carrier_measure *m)
{
	const uint64_t sent = t->c.tx_datagrams;
	const bool before = m->naks_known;
	uint64_t naks;

	m->naks_known = gw_rdma_naks(c, &naks);
	if (!m->naks_known)
		return false;
	if (before && sent > m->sent && naks >= m->naks)
		loss_add(m, sent - m->sent, naks - m->naks, RDMA_MEMORY, RDMA_LEAST);
	m->naks = naks;
	m->sent = sent;
	return before;
}

/* The round trip of the connection that had one last. */
static void rdma_measure(
    const struct gw_carrier_tun *t, const struct gw_conn *c, bool first, struct gw_carrier_measure *m)
{
	const struct gw_rdma_flow *f = gw_rdma_flow_of(c);

	if (first)
		m->losses = rdma_losses(t, c, m);
	if (!m->losses || !f->srtt || f->heard <= m->path.at)
		return;
	m->path.srtt = f->srtt;
	m->path.min_rtt = f->min_rtt;
	m->path.rttvar = f->rttvar;
	m->path.at = f->heard;
}

void gw_measure_tick(struct gw_carriers *cs, struct gw_carrier_tun *t, rwy_time now)
{
	struct gw_carrier_measure *m = &t->measure;
	struct sum s = {0};
	unsigned rdma = 0;

	if (!t->set || now < m->next)
		return;
	m->next = now + EVERY;
	for (unsigned i = 0; i < cs->top; i++)
		if (cs->conn[i].state == GW_CONN_OPEN && cs->conn[i].t == t) {
			if (cs->conn[i].quic)
				quic_measure(&cs->conn[i], m, now);
			else if (cs->conn[i].rdma)
				rdma_measure(t, &cs->conn[i], !rdma++, m);
			else
				conn_measure(&cs->conn[i], &s);
		}
	if (s.segs)
		loss_add(m, s.segs, s.lost, MEMORY, 0);
	if (!s.delivered)
		return;
	m->path.srtt = s.srtt_us / s.delivered * RWY_US;
	m->path.min_rtt = s.min_us * RWY_US;
	m->path.rttvar = s.var_us * RWY_US;
	m->path.at = now;
}
