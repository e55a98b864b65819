/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a path is congested for good: not a burst, not a few marks, but loss, ECN marks or delay above a
 * threshold for several round trips and at least `hold`. What follows from it (other DSCP, another carrier)
 * is the caller's. Nothing is decided about the sending rate here: that is congestion control's.
 *
 * Time goes in slots, a sixteenth of max(hold, 4 round trips) each, longer while there is little traffic.
 * It begins when eight times in a row, over the last eight slots,
 *
 * - loss or marks: the share is above the threshold by more than chance (two standard deviations, as the
 * slots differ), and four slots or more have some: a burst is in one or two. 128 datagrams it takes at least.
 * Or
 * - delay: in six slots or more even the smallest round trip was above the base by the threshold: a queue
 * that stands. The base is the smallest round trip, and does not follow a queue that stays.
 *
 * It ends when over max(clear, 8 round trips) all of them are below half their thresholds. Who comes back
 * soon after its end stays twice as long, then again twice, up to 64 times: traffic that left the queue
 * because it was marked anew would else come and go for ever.
 */
#ifndef WAN_CONGEST_H
#define WAN_CONGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

enum wan_congest_by { WAN_CONGEST_NONE, WAN_CONGEST_LOSS, WAN_CONGEST_MARKS, WAN_CONGEST_DELAY };
const char *wan_congest_name(enum wan_congest_by by); /* "none", "loss", "marks", "delay" */

/* Thresholds; 0: not looked at. Shares are in parts per million. */
struct wan_congest_cfg {
	uint32_t loss_ppm;  /* datagrams lost */
	uint32_t marks_ppm; /* datagrams with ECN-CE */
	uint32_t delay_ppm; /* round trip above its base, of the base, */
	rwy_dur delay_min;  /* and at least so much */
	rwy_dur hold, clear;
};
/* loss 3 %, marks 10 %, delay 50 % and 5 ms; 400 ms, 2 s. */
void wan_congest_cfg_default(struct wan_congest_cfg *cfg);

#define WAN_CONGEST_SLOTS 8

struct wan_congest_slot {
	uint32_t acked, ce;
	int32_t lost; /* a late datagram takes one back */
	rwy_dur rtt;  /* smallest, RWY_NEVER: none */
	bool high;    /* that was above the base as it was then, by the threshold */
};

/* As it is: what for, since when, and what was measured over the last eight slots. */
struct wan_congest_state {
	enum wan_congest_by by;
	rwy_time since; /* of `by`; 0: since the start */
	uint32_t loss_ppm, marks_ppm;
	rwy_dur delay;   /* above the base, the smallest of the newest slot */
	uint32_t begins; /* how often it has begun */
};

struct wan_congest {
	struct wan_congest_cfg cfg;
	struct wan_congest_state st;
	struct wan_congest_slot slot[WAN_CONGEST_SLOTS], calm; /* calm: since calm_from */
	uint32_t bad;       /* so many times in a row it looked congested */
	uint32_t at, slots; /* present slot; how many are filled before it */
	rwy_time slot_from, calm_from;
	rwy_dur base; /* round trip without a queue; 0: not known */
	rwy_time base_at;
	uint32_t calm_slots, calm_high; /* slots since calm_from, and those with a high round trip */
	uint32_t again;                 /* log2 of how much longer it stays */
	rwy_time ended;
};

void wan_congest_init(struct wan_congest *c, const struct wan_congest_cfg *cfg, rwy_time now);
bool wan_congest_cfg_same(const struct wan_congest_cfg *a, const struct wan_congest_cfg *b);
/* Other thresholds from now on; what was measured stays. */
void wan_congest_retune(struct wan_congest *c, const struct wan_congest_cfg *cfg);
/* Round trips are measured in another way from now on: none before is to be compared with. */
void wan_congest_rebase(struct wan_congest *c, rwy_time now);
/* An acknowledgement: datagrams acknowledged, lost (negative: arrived after all), marked; its round
 * trip, 0: none; and the smallest of late that the path knows of. True: the state changed. */
bool wan_congest_note(struct wan_congest *c, uint32_t acked, int32_t lost, uint32_t ce, rwy_dur rtt,
    rwy_dur min_rtt, rwy_time now);

#endif
