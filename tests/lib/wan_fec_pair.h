/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends with forward error correction, one path of 25 ms and 10 Gb/s, and one stream: the test
 * sends a message at a time, and says which loss has been measured. */
#ifndef TESTS_LIB_WAN_FEC_PAIR_H
#define TESTS_LIB_WAN_FEC_PAIR_H

#include "tests/lib/wan_pair.h"
#include "wan/tunnel.h"

#define FEC_MTU   4400
#define FEC_LEN   4096
#define FEC_RTT   (25 * RWY_MS)
#define FEC_RATE  ((uint64_t)1250000000) /* 10 Gb/s */
#define FEC_EXTRA 42

static inline void fec_pair_cfg(struct wan_cfg *c)
{
	wan_cfg_default(c);
	c->mtu[0] = FEC_MTU;
	c->cc = &cc_fixed;
	c->cc_cfg.rate_Bps = FEC_RATE;
	c->cc_cfg.mtu = FEC_MTU;
	c->cc_cfg.initial_rtt = FEC_RTT;
	c->tx_pkts_max = 1u << 15;
	c->rx_window = 1u << 15;
	c->keepalive = 100 * RWY_SEC;
}

static inline struct wan_link_cfg fec_pair_link(void)
{
	return (struct wan_link_cfg){.delay = FEC_RTT / 2, .overhead = FEC_EXTRA};
}

static inline struct wan_path *fec_pair_path(struct wan_pair *p, int end)
{
	return &p->end[end].t->path[0];
}

/* Lets all datagrams in flight arrive. */
static inline rwy_time fec_pair_quiet(struct wan_pair *p)
{
	rwy_time until = p->now + 4 * FEC_RTT;

	while (wan_pair_step(p, until))
		;
	return p->now = until;
}

/* Both ends know each other and the round trip; one stream, end 0 to end 1, nothing sent yet. */
static inline void fec_pair_begin(
    struct wan_pair *p, const struct wan_cfg *c, const struct wan_link_cfg *l, uint32_t len, uint64_t seed)
{
	struct wan_link_cfg back = {.delay = l->delay, .overhead = FEC_EXTRA};

	wan_pair_init(p, c, l, &back, seed);
	wan_pair_streams(p, 1, 0, len, len, 1u << 15);
	wan_pair_run(p, p->now);
	p->stream[0].total = 1;
	assert_true(wan_pair_run(p, p->now + 10 * RWY_SEC));
	fec_pair_quiet(p);
}

/* As if this loss had been measured, in runs of this length. */
static inline void fec_pair_know_loss(struct wan_path *p, double loss, double burst)
{
	p->fec.est = (struct wan_fec_est){.n = 60000, .lost = 60000 * loss, .runs = 60000 * loss / burst};
	wan_fec_refresh(&p->fec); /* as after each ACK */
}

/* Sends n more buffers; returns the time until the last one arrives. */
static inline rwy_dur fec_pair_message(struct wan_pair *p, uint64_t n)
{
	struct wan_stream *s = &p->stream[0];
	rwy_time start = p->now;

	s->total += n;
	assert_true(wan_pair_run(p, p->now + 60 * RWY_SEC));
	assert_int_equal(p->errors, 0);
	return s->done_at - start;
}

static inline void fec_pair_end(struct wan_pair *p)
{
	wan_pair_fini(p);
	assert_int_equal(p->pool.live, 0);
}

#endif
