/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides when the log says that a tunnel does not come up, went down or is up, and in which words. A tunnel
 * is up when it is so on every worker. Not here: reading workers, writing the line (tunnel_log.c).
 */
#ifndef GATEWAY_CONTROL_TUNNEL_WATCH_H
#define GATEWAY_CONTROL_TUNNEL_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "rwy/time.h"

#define WATCH_PATIENCE (5 * RWY_SEC)  /* a tunnel may take so long to come up before that is a warning */
#define WATCH_BURST    4              /* lines about one tunnel at once; then one every: */
#define WATCH_REFILL   (30 * RWY_SEC) /* the last state is always logged, later */

enum watch_line { WATCH_NOTHING, WATCH_ABSENT, WATCH_DOWN, WATCH_UP };

struct tunnel_watch {
	rwy_time start;  /* looked at for the first time */
	rwy_time since;  /* of the present state */
	rwy_time before; /* of the state before it */
	bool up, was_up, told_absent;
	unsigned changes, logged; /* of the state: so many, and so many when a line was written last */
	unsigned lines;           /* that may be written now */
	rwy_time refill_at;
};

void tunnel_watch_init(struct tunnel_watch *w, rwy_time now);
/* How it stands; changed_at: the last change on any worker, 0: none yet. What is to be said now. */
enum watch_line tunnel_watch_step(struct tunnel_watch *w, bool up, rwy_time changed_at, rwy_time now);

/* A tunnel as it is when a line about it is written. */
struct watch_facts {
	const struct conf_tunnel *conf;
	unsigned workers_up, workers;
	uint64_t sent, received; /* datagrams, since the last line */
	uint64_t other_version, other_tunnel, strangers;
	bool link, resolved; /* its port has link; the next hop's MAC address is known */
	rwy_dur rtt;
	unsigned flaps; /* changes that no line reported */
	rwy_dur lasted; /* how long it was down, or up, before */
};
/* One line, without its newline. */
void tunnel_watch_text(char *out, size_t size, enum watch_line line, const struct watch_facts *f);

#endif
