/* SPDX-License-Identifier: Apache-2.0 */
#include "wan/resume.h"

#include "cc/limits.h"
#include "wan/tunnel.h"

#define ROUNDS     4             /* round trips that it lasts */
#define LEAST      (10 * RWY_MS) /* and at least so long */
#define GAIN       2             /* paced so much faster */
#define OTHER_PATH 4             /* a round trip that differs by this factor is another path's */
#define LOSSES     8             /* datagrams that may be lost in any case, */
#define LOSS_PART  32            /* and one of so many */
#define RTT_MAX    (10 * RWY_SEC)
#define SAMPLE_MIN (100 * RWY_MS) /* of a mean rate */

bool wan_resume_of(struct wan_tunnel *t, unsigned path, struct wan_resume *out, rwy_time now)
{
	struct wan_path *p = &t->path[path];
	struct wan_resuming *r = &p->resume;
	rwy_dur took = rwy_since(r->sample_at, now);

	if (took >= SAMPLE_MIN) {
		r->mean_Bps = (uint64_t)((unsigned __int128)(p->delivered - r->sample) * RWY_SEC / took);
		r->sample = p->delivered;
		r->sample_at = now;
	}
	out->rate_Bps = wan_measure_rate(&p->measure);
	if (out->rate_Bps < r->mean_Bps)
		out->rate_Bps = r->mean_Bps;
	out->rtt = p->min_rtt;
	return p->state == WAN_PATH_USABLE && wan_path_has_rtt(p) && out->rate_Bps;
}

void wan_resume_set(struct wan_tunnel *t, unsigned path, const struct wan_resume *from)
{
	if (path < t->paths && !wan_hs_session(t) && from->rtt <= RTT_MAX)
		t->path[path].resume.from = *from;
}

static void begin(struct wan_path *p, rwy_time now)
{
	struct wan_resuming *r = &p->resume;

	r->waits = false;
	r->active = true;
	r->until = now + rwy_time_max(ROUNDS * r->from.rtt, LEAST);
	r->sent_n = p->sent_n;
	r->lost_n = p->lost_n;
}

void wan_resume_begin(struct wan_path *p, rwy_dur took, rwy_time now)
{
	struct wan_resuming *r = &p->resume;

	if (!r->from.rate_Bps || p->state == WAN_PATH_OFF)
		return;
	if (took / OTHER_PATH <= r->from.rtt)
		begin(p, now);
	else
		r->waits = true;
}

/* A round trip is known. */
static void compare(struct wan_path *p, rwy_time now)
{
	rwy_dur was = p->resume.from.rtt;

	p->resume.waits = false;
	if (p->srtt / OTHER_PATH <= was && was / OTHER_PATH <= p->srtt)
		begin(p, now);
}

void wan_resume_forget(struct wan_path *p)
{
	p->resume.from.rate_Bps = 0;
	p->resume.waits = p->resume.active = false;
}

void wan_resume_check(struct wan_path *p, rwy_time now)
{
	struct wan_resuming *r = &p->resume;

	if (r->waits && wan_path_has_rtt(p))
		compare(p, now);
	else if (r->active &&
	         (now >= r->until || p->lost_n - r->lost_n > LOSSES + (p->sent_n - r->sent_n) / LOSS_PART))
		r->active = false;
}

void wan_resume_raise(const struct wan_path *p, const struct cc_cfg *cfg, struct cc_answer *a)
{
	const struct wan_resuming *r = &p->resume;
	uint64_t rate, fast, window;

	if (!r->active)
		return;
	rate = cc_limit_rate(cfg, r->from.rate_Bps);
	fast = cc_limit_rate(cfg, GAIN * r->from.rate_Bps);
	/* A quarter more in flight: ACKs come in bursts. */
	window = (uint64_t)((unsigned __int128)rate * (uint64_t)(r->from.rtt + r->from.rtt / 4) / RWY_SEC) +
	         2 * p->mtu;
	window = cc_limit_window(cfg, window);
	a->rate_Bps = a->rate_Bps > fast ? a->rate_Bps : fast;
	a->window = a->window > window ? a->window : window;
}
