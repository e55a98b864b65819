/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the log reports that a tunnel does not come up, went down or is up, and in which
 * words. A tunnel is up when every worker has it up. tunnel_log.c reads the workers and writes the
 * line.
 */
#ifndef GATEWAY_CONTROL_TUNNEL_WATCH_H
#define GATEWAY_CONTROL_TUNNEL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "rwy/time.h"

#define WATCH_PATIENCE (5 * RWY_SEC) /* time to come up before a warning */
/* lines about one tunnel at once; after that one every WATCH_REFILL */
#define WATCH_BURST  4
#define WATCH_REFILL (30 * RWY_SEC) /* the last state is always logged, if later */

enum watch_line { WATCH_NOTHING, WATCH_ABSENT, WATCH_DOWN, WATCH_UP };

struct tunnel_watch {
	rwy_time start;  /* first observation */
	rwy_time since;  /* beginning of the present state */
	rwy_time before; /* beginning of the state before */
	bool up, was_up, absent_logged;
	unsigned changes, logged; /* changes of state: so far, and until the last line */
	unsigned lines;           /* lines that may be written now */
	rwy_time refill_at;
};

/* The tunnel is down from `now` on. */
void tunnel_watch_init(struct tunnel_watch *w, rwy_time now);
/* Takes the present state; changed_at: the last change on any worker, 0: none yet. Returns the line
 * to log now. */
enum watch_line tunnel_watch_step(struct tunnel_watch *w, bool up, rwy_time changed_at, rwy_time now);

/* The tunnel's state for a log line. */
struct watch_facts {
	const struct conf_tunnel *conf;
	unsigned workers_up, workers;
	uint64_t sent, received; /* datagrams since the last line */
	uint64_t other_version, other_tunnel, strangers;
	bool link, resolved; /* link of its port; whether the next hop's MAC address is known */
	rwy_dur rtt;
	unsigned flaps; /* changes that no line reported */
	rwy_dur lasted; /* duration of the state before */
};
/* Writes one line without its newline. */
void tunnel_watch_text(char *out, size_t size, enum watch_line line, const struct watch_facts *f);

#endif
