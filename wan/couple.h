/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the paths of a tunnel that share a bottleneck, and lets some of these rest: together they
 * take no more than one. It knows no algorithm of congestion control: it sees round trips, and says
 * which paths carry new data. couple.c tells how. Private to wan/ and its tests.
 */
#ifndef WAN_COUPLE_H
#define WAN_COUPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"
#include "wan/wire/limits.h"

enum wan_couple_state {
	WAN_COUPLE_CARRIES,
	WAN_COUPLE_HELD,  /* a test: does the queue of the path it may share with become shorter? */
	WAN_COUPLE_RESTS, /* another one carries what this one could: they share a bottleneck */
};

struct wan_couple_path {
	enum wan_couple_state state;
	bool tested;     /* it is held in a part of the test */
	uint8_t carrier; /* HELD, RESTS: the path that carries */
	uint8_t rested;  /* how often, which makes the next time longer */
	rwy_time until;  /* RESTS: it is tried again then */
	bool limited;    /* in this bin it had less to send than it may */
	rwy_dur sum;     /* round trips of this bin without the reverse queue, and their number */
	uint32_t n;
	rwy_dur mean; /* of the bin before; 0: too few */
	rwy_dur base; /* smallest round trip */
};

struct wan_couple {
	unsigned paths;
	struct wan_couple_path path[WAN_PATHS_MAX];
	/* alike[a][b], a < b: moves that both queues made together, less those of one alone */
	uint8_t alike[WAN_PATHS_MAX][WAN_PATHS_MAX];
	rwy_time bin_end; /* of this bin; 0: none has begun */
	/* The test. */
	bool testing;
	uint8_t watched; /* the path that carries meanwhile */
	uint8_t turn;    /* even: the others are held; odd: they carry */
	int8_t score;    /* turns that say that they share, less DOUBT for each other one */
	rwy_dur turn_rtt;
	rwy_time turn_from, turn_end;  /* what is measured of this turn */
	rwy_dur turn_sum, turn_before; /* round trips in it; their mean in the turn before */
	uint32_t turn_n;
	rwy_time test_not_before;
	uint8_t failed;        /* tests in a row that found nothing */
	uint32_t tests, found; /* in all */
};

/* A sample from an acknowledgement of a path. */
struct wan_couple_sample {
	rwy_dur rtt, base; /* without the reverse queue; smallest; 0: no sample */
	bool limited;      /* the sender had nothing more to send */
};

void wan_couple_init(struct wan_couple *c, unsigned paths);
/* Notes an acknowledgement. True: the state of a path may have changed. */
bool wan_couple_note(struct wan_couple *c, unsigned path, const struct wan_couple_sample *s, rwy_time now);
/* The path does not answer, or is new: what is known of its queue is forgotten. What rests for it
 * carries again. */
void wan_couple_gone(struct wan_couple *c, unsigned path);
/* The path takes no new data now. */
static inline bool wan_couple_rests(const struct wan_couple *c, unsigned path)
{
	return c->path[path].state != WAN_COUPLE_CARRIES;
}

#endif
