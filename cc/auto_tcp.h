/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of "auto" that shares a queue with loss-based TCP: one more CUBIC flow of ordinary
 * segments, which reacts to congestive losses only (the caller decides which are). At times it
 * takes its own packets out of the queue and watches whether the queue vanishes: then nobody else
 * is in it and the competition ends. The competition also ends when no queue stood since the last
 * test. Windows are bytes, times ns, shares in 1/65536. When to begin is decided in auto.c.
 */
#ifndef CC_AUTO_TCP_H
#define CC_AUTO_TCP_H

#include <stdalign.h>

#include "cc/cubic.h"

struct cc_tcp {
	alignas(16) uint8_t cubic[CC_CUBIC_SIZE];
	rwy_time settled_at; /* losses before this time concern data sent before the competition */
	uint64_t test_window;
	uint64_t hold_Bps; /* rate held until the first loss; 0: a loss came */
	rwy_time look_at, join_at;
	rwy_dur before;   /* RTT half a round trip ago */
	rwy_dur queue;    /* queue when the test began */
	rwy_time test_at; /* time of the next test; during a test: its end */
	/* during a test: from here on the queue holds only what the test left */
	rwy_time round_from;
	rwy_dur test_min; /* smallest RTT of this test */
	rwy_dur sum;      /* sum of the RTTs since the last test, and their number */
	uint32_t samples;
	bool testing, drained;
	bool half;             /* this test removes at least half of our packets */
	bool deep;             /* the last test found a much longer queue than BBR keeps */
	uint8_t alone, failed; /* tests in a row that found an empty queue; that found a queue */
	uint8_t quiet;         /* tests in a row that were unnecessary: no queue had stood */
	/* number of empty tests that ends the competition; doubled after leaving too early */
	uint8_t need;
	rwy_time left;
	uint32_t seed;
};

/* Applies a new configured rate. */
void cc_tcp_limits(struct cc_tcp *c, const struct cc_cfg *cfg);
/* Begins the competition. window: bytes in flight now; rtt: with the standing queue. *c keeps some
 * state of the last competition; zero at first. */
void cc_tcp_begin(struct cc_tcp *c, const struct cc_cfg *cfg, uint64_t window, rwy_dur rtt, rwy_time now);
enum cc_tcp_found {
	CC_TCP_STAYS, /* no change */
	CC_TCP_ALONE, /* nobody competes any more */
	/* the delay exceeds base, is test_min, and does not come from our packets */
	CC_TCP_UNMOVED,
};

/* Processes one ACK. congestive: its round lost more than the path's own share. share: our part of
 * the path's rate, in 1/1024. reverse: increase of the reverse delay in this RTT. base: RTT without
 * a queue; late: RTT that means a queue; noise: usual difference of consecutive RTTs. */
enum cc_tcp_found cc_tcp_on_ack(struct cc_tcp *c, const struct cc_ack *ack, bool congestive, unsigned share,
    rwy_dur reverse, rwy_dur base, rwy_dur late, rwy_dur noise, rwy_time now);
uint64_t cc_tcp_window(const struct cc_tcp *c);
uint64_t cc_tcp_rate(const struct cc_tcp *c);

#endif
