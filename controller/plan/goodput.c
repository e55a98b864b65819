/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted goodput. Each carrier takes a share of the path's bandwidth for its headers, and each
 * answers to loss (share p of the packets) in its own way:
 *   native  repairs losses, and slows down for loss only when delay grows too: 1 - p
 *   bbr     the same until its bandwidth filter takes loss for the rate: 1 - p, and less above 10 %
 *   cubic   the larger of its own response function (RFC 9438, 5.) and Reno's, less the time that
 *           it waits for retransmission timeouts (Padhye et al., SIGCOMM 1998); per connection
 *   rdma    go-back-N: a loss repeats what its queue pair has under way, a second one of the same
 *           packet waits for a timeout. Where that takes more than 2 %, it is not possible
 * Powers are square roots of square roots, so the result is the same on every machine.
 */
#include <math.h>

#include "controller/plan/goodput.h"

#define MSS_BITS  (1448.0 * 8.0)
#define RTO_MIN_S 0.2 /* Linux adds it to the round trip */

#define RDMA_BITS      (4096.0 * 8.0) /* of a packet */
#define RDMA_TIMEOUT_S 0.54           /* 4.096 us * 2^17: gateway/carrier/rdma.h */

/* The share that headers leave of links with MTU 1500, for RoCE packets of 4096 bytes. */
static const double header_share[PLAN_CARRIER_COUNT] = {
    [PLAN_NATIVE] = 0.92, [PLAN_TCP] = 0.92, [PLAN_QUIC] = 0.90, [PLAN_RDMA] = 0.92};

struct bound {
	double bps;
	enum plan_limit limit;
};

static void lower(struct bound *b, double bps, enum plan_limit limit)
{
	if (bps < b->bps) {
		b->bps = bps;
		b->limit = limit;
	}
}

/* x^(3/4) */
static double pow34(double x)
{
	return sqrt(x) * sqrt(sqrt(x));
}

/* bit/s of one CUBIC connection at loss p > 0, `burst` losses in a row, round-trip time s
 * seconds. */
static double cubic_bps(double p, double burst, double s)
{
	/* Losses in a row are one event for the window but take longer to repair. burst^(3/4) lies
	 * between. */
	double event = p / pow34(burst), reno = 1.2247 / sqrt(event), cubic = 1.054 * pow34(s / event);
	double window = reno > cubic ? reno : cubic, stall = 3 * sqrt(3 * p / 8);

	if (stall > 1)
		stall = 1;
	/* SACK and RACK repair most losses: two fifths of the formula's timeouts remain. */
	return MSS_BITS / (s / window + 0.4 * (s + RTO_MIN_S) * stall * p * (1 + 32 * p * p));
}

static uint8_t algorithm(const struct plan_caps *src, const struct plan_caps *dst)
{
	/* Each end chooses the algorithm for what it sends. Both directions count, so the worse one
	 * does. */
	return src->tcp_algorithms & dst->tcp_algorithms & PLAN_TCP_BBR;
}

static uint64_t fewer(uint64_t a, uint64_t b, uint64_t if_none)
{
	a = a ? a : if_none;
	b = b ? b : if_none;
	return a < b ? a : b;
}

static double model_based(double p)
{
	/* From 10 % on the filter begins to take loss for the rate. */
	return p <= 0.1 ? 1 - p : (1 - p) * (p < 0.3 ? (0.3 - p) / 0.2 : 0);
}

/*
 * A NIC that misses a packet drops all that follow, until the packet comes again: the sender goes
 * back over a round trip, and over its timeout if the repeated packet is lost, too, since there is
 * one NAK for it.
 */
double plan_go_back_n(double bps, double p, double s, double qps)
{
	const double packets = bps / (RDMA_BITS * qps); /* of a queue pair, in a second */

	return p < 1 ? 1 / (1 + p / (1 - p) * (1 + packets * (s + p * RDMA_TIMEOUT_S))) : 0;
}

/* Why RDMA cannot go by this path, whose goodput would be b; PLAN_BY_NOTHING: it can. */
static enum plan_limit rdma_not(const struct plan_path *path, const struct plan_caps *src, double share)
{
	const uint64_t path_bps = path->by[PLAN_RDMA].bandwidth_bps.v;

	if (path->cls != PLAN_RESERVED && path->cls != PLAN_DETERMINISTIC)
		return PLAN_NOT_RESERVED;
	if (path_bps && (double)path_bps * header_share[PLAN_RDMA] < (double)src->bandwidth_bps[PLAN_RDMA])
		return PLAN_NOT_WIDE;
	return share * PLAN_PPM < PLAN_PPM - PLAN_RDMA_WASTE_PPM ? PLAN_NOT_CLEAN : PLAN_BY_NOTHING;
}

struct plan_goodput plan_goodput(enum plan_carrier c, const struct plan_caps *src,
    const struct plan_caps *dst, const struct plan_path *path)
{
	const struct plan_leg *leg;
	struct bound b = {(double)PLAN_RATE_MAX, PLAN_BY_NOTHING};
	double p, s, link, streams, burst, share;
	enum plan_limit why_not;

	if ((unsigned)c >= PLAN_CARRIER_COUNT || src->bandwidth_bps[c] == 0)
		return (struct plan_goodput){0, PLAN_NOT_SOURCE};
	if (dst->bandwidth_bps[c] == 0)
		return (struct plan_goodput){0, PLAN_NOT_DESTINATION};
	leg = &path->by[c];
	p = (double)(leg->loss_ppm.v < PLAN_PPM ? leg->loss_ppm.v : PLAN_PPM) / PLAN_PPM;
	s = (double)(leg->rtt_us.v < PLAN_US_MAX ? leg->rtt_us.v : PLAN_US_MAX) / 1e6;
	burst = leg->burst.v > 1 ? (double)(leg->burst.v < PLAN_PPM ? leg->burst.v : PLAN_PPM) : 1;
	if (s < 1e-5)
		s = 1e-5;
	lower(&b, (double)src->bandwidth_bps[c], PLAN_BY_SOURCE);
	lower(&b, (double)dst->bandwidth_bps[c], PLAN_BY_DESTINATION);
	if (leg->bandwidth_bps.v)
		lower(&b, (double)leg->bandwidth_bps.v * header_share[c], PLAN_BY_PATH);
	link = b.bps;
	switch (c) {
	case PLAN_NATIVE:
		lower(&b, link * (1 - p), PLAN_BY_LOSS);
		break;
	case PLAN_TCP:
		streams = (double)fewer(src->tcp_streams, dst->tcp_streams, PLAN_TCP_STREAMS);
		lower(&b, streams * 8 * (double)fewer(src->tcp_window, dst->tcp_window, PLAN_TCP_WINDOW) / s,
		    PLAN_BY_WINDOW);
		if (p > 0 && algorithm(src, dst))
			lower(&b, link * model_based(p), PLAN_BY_LOSS);
		else if (p > 0)
			lower(&b, streams * cubic_bps(p, burst, s) * (1 - p) * header_share[c], PLAN_BY_LOSS);
		break;
	case PLAN_QUIC: /* one connection */
		lower(&b, 8 * (double)PLAN_QUIC_WINDOW / s, PLAN_BY_WINDOW);
		if (p > 0 && (src->quic_cubic || dst->quic_cubic))
			lower(&b, cubic_bps(p, burst, s) * (1 - p) * header_share[c], PLAN_BY_LOSS);
		else
			lower(&b, link * model_based(p), PLAN_BY_LOSS);
		break;
	case PLAN_RDMA:
		lower(&b, 8 * (double)fewer(src->rdma_window, dst->rdma_window, PLAN_RDMA_WINDOW) / s,
		    PLAN_BY_WINDOW);
		share =
		    plan_go_back_n(b.bps, p, s, (double)fewer(src->rdma_qps, dst->rdma_qps, PLAN_RDMA_QPS));
		why_not = rdma_not(path, src, share);
		if (why_not != PLAN_BY_NOTHING)
			return (struct plan_goodput){0, why_not};
		lower(&b, b.bps * share, PLAN_BY_LOSS);
		break;
	case PLAN_CARRIER_COUNT:
		break;
	}
	if (!(b.bps >= 1))
		b.bps = 1; /* possible, but hardly */
	return (struct plan_goodput){(uint64_t)b.bps, b.limit};
}
