/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects sustained congestion of a path: loss, ECN marks or delay above a threshold for several
 * round trips and for at least `hold`. A burst or a few marks do not count. The caller decides what
 * follows (another DSCP, another carrier). The sending rate is decided elsewhere, by congestion
 * control.
 *
 * Time is divided into slots. A slot lasts a sixteenth of max(hold, 4 round trips), and longer
 * while there is little traffic. Congestion begins when one of these conditions holds over the last
 * eight slots, eight times in a row:
 *
 * - Loss or marks: the share exceeds the threshold by more than chance explains (two standard
 *   deviations, computed from the differences between slots), at least four slots have some (a
 *   burst is in one or two), and at least 128 datagrams were counted.
 * - Delay: in at least six slots even the smallest round trip exceeded the base by the threshold,
 *   so a queue stands. The base is the smallest round trip; it does not follow a standing queue.
 *
 * Congestion ends when all three stay below half their thresholds for max(clear, 8 round trips). If
 * it begins again soon after its end, it has to stay calm for twice that time, then twice again, up
 * to 64 times: otherwise traffic that left the queue because it was remarked would come and go for
 * ever.
 */
#ifndef WAN_CONGEST_H
#define WAN_CONGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

enum wan_congest_by { WAN_CONGEST_NONE, WAN_CONGEST_LOSS, WAN_CONGEST_MARKS, WAN_CONGEST_DELAY };
const char *wan_congest_name(enum wan_congest_by by); /* "none", "loss", "marks", "delay" */

/* Thresholds; 0: not checked. Shares are in parts per million. */
struct wan_congest_cfg {
	uint32_t loss_ppm;  /* datagrams lost */
	uint32_t marks_ppm; /* datagrams with ECN-CE */
	uint32_t delay_ppm; /* least relative increase of the round trip over its base */
	rwy_dur delay_min;  /* least absolute increase */
	rwy_dur hold, clear;
};
/* The defaults: loss 3 %, marks 10 %, delay 50 % and 5 ms; hold 400 ms, clear 2 s. */
void wan_congest_cfg_default(struct wan_congest_cfg *cfg);

#define WAN_CONGEST_SLOTS 8

struct wan_congest_slot {
	uint32_t acked, ce;
	int32_t lost; /* datagrams lost, less those that arrived late after all */
	rwy_dur rtt;  /* smallest round trip; RWY_NEVER: none */
	bool high;    /* rtt exceeded the base of that time by the threshold */
};

/* The present state: its reason, its beginning, and the measures of the last eight slots. */
struct wan_congest_state {
	enum wan_congest_by by;
	rwy_time since; /* time when `by` last changed; 0: never */
	uint32_t loss_ppm, marks_ppm;
	rwy_dur delay;   /* smallest increase over the base in the newest slot */
	uint32_t begins; /* number of times that congestion began */
};

struct wan_congest {
	struct wan_congest_cfg cfg;
	struct wan_congest_state st;
	struct wan_congest_slot slot[WAN_CONGEST_SLOTS], calm; /* calm: sums since calm_from */
	/* consecutive slots that looked congested */
	uint32_t bad;
	uint32_t at, slots; /* index of the present slot; number of filled slots before it */
	rwy_time slot_from, calm_from;
	rwy_dur base; /* round trip without a queue; 0: unknown */
	rwy_time base_at;
	/* slots since calm_from; those of them with a high round trip */
	uint32_t calm_slots, calm_high;
	uint32_t again; /* log2 of the factor by which the calm time is longer */
	rwy_time ended;
};

/* Starts without measurements. */
void wan_congest_init(struct wan_congest *c, const struct wan_congest_cfg *cfg, rwy_time now);
bool wan_congest_cfg_same(const struct wan_congest_cfg *a, const struct wan_congest_cfg *b);
/* Replaces the thresholds; measurements are kept. */
void wan_congest_retune(struct wan_congest *c, const struct wan_congest_cfg *cfg);
/* Forgets the base: from now on round trips are measured in another way. */
void wan_congest_rebase(struct wan_congest *c, rwy_time now);
/* Processes one acknowledgement: the numbers of datagrams acknowledged, lost (negative: some
 * arrived after all) and marked; its round trip (0: none); the path's recent smallest round trip.
 * Returns true when the state changed. */
bool wan_congest_note(struct wan_congest *c, uint32_t acked, int32_t lost, uint32_t ce, rwy_dur rtt,
    rwy_dur min_rtt, rwy_time now);

#endif
