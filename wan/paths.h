/* SPDX-License-Identifier: Apache-2.0 */
/* Several paths of a tunnel: which one may send, and which are silent. Private to wan/. */
#ifndef WAN_PATHS_H
#define WAN_PATHS_H

#include "wan/tunnel.h"

/* A path may carry data but for pacing. */
static inline bool wan_path_open(const struct wan_path *p)
{
	return wan_path_usable(p) && !p->rests && !p->spared && p->inflight < p->cwnd && wan_sent_room(p) &&
	       (p->state != WAN_PATH_TRIED || p->inflight_n < p->trial);
}
/* The choice of a path at a time: on `best`, which is open, data arrives first, its pacing counted;
 * NULL: none is open. Another one gets new data that would arrive by best only after `until`. */
struct wan_choice {
	struct wan_path *best;
	rwy_time until;
	bool granted; /* all that are open are granted: data divides by their rates */
};
/* Counts n bytes that granted path p sent, for the division of data by rates. */
void wan_paths_part(struct wan_path *p, uint32_t n);
struct wan_choice wan_paths_choose(const struct wan_tunnel *t, rwy_time now);
bool wan_paths_takes(const struct wan_choice *c, const struct wan_path *p, rwy_time now);
/* The part of the waiting data that goes by p, in 1/65536: by rates, among the paths that take
 * some. */
uint32_t wan_paths_share(
    const struct wan_tunnel *t, const struct wan_choice *c, const struct wan_path *p, rwy_time now);
/* The path that may send now; NULL: none. */
struct wan_path *wan_paths_pick(const struct wan_tunnel *t, const struct wan_choice *c, rwy_time now);
/* Finds t->first. */
void wan_paths_first(struct wan_tunnel *t, rwy_time now);
/* Another usable path, where a datagram arrives first; NULL: none. */
struct wan_path *wan_paths_beside(const struct wan_path *p, rwy_time now);
/* Asks paths, and notices silent ones, when wan_paths_next() is due. */
void wan_paths_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_paths_next(const struct wan_tunnel *t);

#endif
