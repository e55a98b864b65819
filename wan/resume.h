/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path begins with the rate that the active gateway of the pair had on it until a moment ago.
 * Private to wan/ and its tests; wan.h has what the tunnel's user calls.
 *
 * This follows "careful resume" (draft-ietf-tsvwg-careful-resume): a saved rate counts only on a
 * path with about the same round trip, for a few round trips, and no longer than it loses little.
 * Congestion control sees the answers and goes on from there. The draft takes half of a rate that
 * may be hours old. Here the load of the dead gateway has just left the path, and what hosts wait
 * for since then is sent at twice the rate, with a quarter more in flight at most.
 */
#ifndef WAN_RESUME_H
#define WAN_RESUME_H

#include "wan/path.h"

/*
 * The tunnel has come up, `took` after it first asked, which is at least a round trip. The rate
 * counts at once if that is short enough, else as soon as a round trip is known. The caller calls
 * wan_path_pace() then.
 */
void wan_resume_begin(struct wan_path *p, rwy_dur took, rwy_time now);
/* The path leads elsewhere: no rate of before counts. */
void wan_resume_forget(struct wan_path *p);
/* When it ends at the latest; RWY_NEVER: it does not count. */
static inline rwy_time wan_resume_until(const struct wan_path *p)
{
	return p->resume.active ? p->resume.until : RWY_NEVER;
}
/* After an ACK or a loss, and at that time: it may begin, or end. wan_path_pace() follows. */
void wan_resume_check(struct wan_path *p, rwy_time now);
/* Raises the answers of congestion control to the rate, within the limits of `cfg`. */
void wan_resume_raise(const struct wan_path *p, const struct cc_cfg *cfg, struct cc_answer *a);

#endif
