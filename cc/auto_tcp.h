/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of "auto" that shares a queue with loss-based TCP: one more CUBIC flow of ordinary segments,
 * except that only congestive losses count (the caller tells which). From time to time it takes its own
 * packets out of the queue and looks whether the queue goes: then nobody else stands in it, and there is
 * nothing to compete with; nor is there when no queue stood at all since the last time. Windows are bytes,
 * times ns, shares in 1/65536. Not here: when to begin (auto.c).
 */
#ifndef CC_AUTO_TCP_H
#define CC_AUTO_TCP_H

#include <stdalign.h>

#include "cc/cubic.h"

struct cc_tcp {
	alignas(16) uint8_t cubic[CC_CUBIC_SIZE];
	rwy_time settled_at; /* what is lost before was sent before */
	uint64_t test_window;
	uint64_t hold_Bps; /* 0: there was a loss */
	rwy_time look_at, join_at;
	rwy_dur before;      /* an RTT half a round trip ago */
	rwy_dur queue;       /* that stood when the test began */
	rwy_time test_at;    /* the next test; during one: when it must end */
	rwy_time round_from; /* of a test: from here on only what the test left stands in the queue */
	rwy_dur test_min;    /* smallest RTT of this test */
	rwy_dur sum;         /* of the RTTs since the last test, and how many they are */
	uint32_t samples;
	bool testing, drained;
	bool half;             /* this test takes half of our packets out, or more */
	bool deep;             /* the last test found much more in the queue than BBR would keep there */
	uint8_t alone, failed; /* tests in a row that found an empty queue; that did not */
	uint8_t quiet;         /* times in a row that no queue had stood since the last time */
	uint8_t need;          /* so many of the first kind end it; twice as many when we left too early */
	rwy_time left;
	uint32_t seed;
};

void cc_tcp_limits(struct cc_tcp *c, const struct cc_cfg *cfg); /* the configured rate is another */
/* window: in flight now; rtt: with the queue that stands. What *c knows of last time is used; zero at first.
 */
void cc_tcp_begin(struct cc_tcp *c, const struct cc_cfg *cfg, uint64_t window, rwy_dur rtt, rwy_time now);
enum cc_tcp_found {
	CC_TCP_STAYS,   /* nothing new */
	CC_TCP_ALONE,   /* nobody competes any more */
	CC_TCP_UNMOVED, /* there is a delay beyond base, test_min, and our packets make no part of it */
};

/* One ACK. congestive: its round lost more than the path's own. share: of the path's rate that is ours, in
 * 1/1024. reverse: of this round trip, what the reverse delay is above its usual. base: the round trip
 * without a queue; late: one that says that a queue stands; noise: what one RTT differs from the one before
 * by. */
enum cc_tcp_found cc_tcp_on_ack(struct cc_tcp *c, const struct cc_ack *ack, bool congestive, unsigned share,
    rwy_dur reverse, rwy_dur base, rwy_dur late, rwy_dur noise, rwy_time now);
uint64_t cc_tcp_window(const struct cc_tcp *c);
uint64_t cc_tcp_rate(const struct cc_tcp *c);

#endif
