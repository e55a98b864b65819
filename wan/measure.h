/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quality of a path, measured by its traffic: whether losses come singly or in bursts, and the
 * path's recent delivery rate. Loss recovery measures round trips, jitter and the share of losses
 * (wan_stats). Keep-alive probes, one a second, measure a path without traffic.
 */
#ifndef WAN_MEASURE_H
#define WAN_MEASURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

#define WAN_MEASURE_WINDOW (10 * RWY_SEC) /* the best rate is that of the last one to two windows */

struct wan_measure {
	uint64_t lost_pn; /* packet number of the last datagram lost */
	/* datagrams lost; runs of consecutive losses; both are halved at times */
	uint32_t lost, runs;
	bool any_lost;
	uint64_t best[2]; /* bytes a second: best of this window, best of the one before */
	rwy_time window_at;
	rwy_time at; /* time of the last round-trip measurement; 0: none */
};

void wan_measure_init(struct wan_measure *l, rwy_time now);
/* Notes that a datagram was declared lost. Numbers are in order except for stragglers. */
void wan_measure_on_lost(struct wan_measure *l, uint64_t pn);
/* Notes an acknowledgement: its delivery rate (0: none), and whether the sender had nothing more to
 * send. */
void wan_measure_on_ack(struct wan_measure *l, uint64_t rate_Bps, bool app_limited, rwy_time now);
/* Mean number of consecutive losses, times 16: 16 means single losses; 0: too few losses. */
uint32_t wan_measure_burst16(const struct wan_measure *l);
/* The recent best rate while there was more to send, bytes a second; 0: unknown. */
uint64_t wan_measure_rate(const struct wan_measure *l);

#endif
