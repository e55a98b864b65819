/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quality of a path, measured by its traffic: whether losses come alone or in bursts, and how much
 * it has carried of late. Round trips, jitter and the share lost are loss recovery's (wan_stats). A path
 * without traffic is measured by the keep-alive probes, one a second.
 */
#ifndef WAN_MEASURE_H
#define WAN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

#define WAN_MEASURE_WINDOW (10 * RWY_SEC) /* the best rate of this time, or of twice as long at most */

struct wan_measure {
	uint64_t lost_pn;    /* the last datagram lost */
	uint32_t lost, runs; /* datagrams, and runs of them one behind the other; both halved now and then */
	bool any_lost;
	uint64_t best[2]; /* bytes a second, of this window and of the one before */
	rwy_time window_at;
	rwy_time at; /* of the last round trip that was measured; 0: none */
};

void wan_measure_init(struct wan_measure *l, rwy_time now);
/* A datagram was declared lost. Numbers come in order, but for stragglers. */
void wan_measure_on_lost(struct wan_measure *l, uint64_t pn);
/* An acknowledgement: its delivery rate (0: none), whether the sender had nothing more to send then. */
void wan_measure_on_ack(struct wan_measure *l, uint64_t rate_Bps, bool app_limited, rwy_time now);
/* Datagrams lost in a row, the mean times 16: 16 is one by one; 0: too few were lost to say. */
uint32_t wan_measure_burst16(const struct wan_measure *l);
/* The most that it has carried of late when there was more to send, bytes a second; 0: not known. */
uint64_t wan_measure_rate(const struct wan_measure *l);

#endif
