/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What paths are used for, and how that changes while data is under way. A path keeps its packet
 * numbers for as long as the tunnel lives, whatever its number leads to: keys never see one twice,
 * and what the peer still sends is acknowledged. So a change here is the end of a silence or the
 * begin of one, and flows notice nothing.
 */
#include "wan/resume.h"
#include "wan/tunnel.h"

/* What is under way goes by other paths. Without memory for all of it the rest goes later. */
static void take_back(struct wan_path *p, rwy_time now)
{
	struct wan_lost l = {0};

	(void)wan_loss_take_back(p, RWY_NEVER, &l, now);
	p->moved_n += l.n;
	p->t->c.lost -= l.n;
}

void wan_use_tick(struct wan_tunnel *t, rwy_time now)
{
	for (unsigned i = 0; i < t->paths; i++)
		if (t->path[i].state == WAN_PATH_OFF && t->path[i].inflight_n)
			take_back(&t->path[i], now);
}

static void leave(struct wan_path *p, rwy_time now)
{
	wan_path_enter(p, WAN_PATH_OFF, now);
	take_back(p, now);
	p->asked = p->loss_timer = RWY_NEVER;
	p->probes = p->pto_count = 0;
	p->ping = false;
	wan_fec_tx_reset(&p->fec, now);
	wan_fec_forget(&p->fec);
}

/* Forgets what was measured where the path led before. */
static void forget(struct wan_path *p, rwy_time now)
{
	p->latest = p->srtt = p->rttvar = p->min_rtt = 0;
	p->min_rtt_at = p->reverse_at = 0;
	p->late[0] = p->late[1] = 0;
	p->loss_fp = 0;
	wan_fec_forget(&p->fec);
	p->reorder = (struct wan_reorder){.round_end = p->next_pn};
	p->silent_not_before = p->pto_not_before = 0;
	p->answered = p->asked_last = 0;
	wan_resume_forget(p);
	wan_ecn_restart(p);
	wan_congest_init(&p->congest, &p->t->cfg.congest, now);
	wan_measure_init(&p->measure, now);
	wan_path_cc_anew(p, now);
}

static void begin(struct wan_path *p, uint32_t mtu, rwy_time now)
{
	p->t->cfg.mtu[p->id] = p->mtu = p->fec.mtu = mtu;
	p->since = p->last_rx = now;
	forget(p, now);
	wan_path_enter(p, WAN_PATH_UNPROVEN, now);
	p->ping = true;
}

/* Makes paths up to this one, for which nothing was sent yet. */
static int make(struct wan_tunnel *t, unsigned path, uint32_t mtu, rwy_time now)
{
	while (t->paths <= path) {
		const unsigned i = t->paths;

		t->cfg.mtu[i] = mtu;
		t->cfg.use[i] = WAN_USE_NEVER;
		if (wan_path_init(&t->path[i], t, (uint8_t)i, now) < 0)
			return RWY_ENOMEM;
		t->paths++;
	}
	t->couple.paths = t->paths;
	t->polled = now;
	return 0;
}

int wan_retune_use(
    struct wan_tunnel *t, unsigned path, enum wan_path_use use, uint32_t mtu, bool anew, rwy_time now)
{
	struct wan_path *p;

	if (path >= WAN_PATHS_MAX || (path == 0 && use == WAN_USE_NEVER) || mtu > 9000 ||
	    mtu < t->mtu_own + (t->keys ? AEAD_TAG : 0))
		return RWY_EINVAL;
	if (path >= t->paths && use == WAN_USE_NEVER)
		return 0;
	if (path < t->paths && t->path[path].use == use && !anew)
		return 0;
	wan_stir(t);
	if (path >= t->paths && make(t, path, mtu, now) < 0)
		return RWY_ENOMEM;
	p = &t->path[path];
	if (use != WAN_USE_NEVER && !p->sent && wan_path_map_new(p) < 0)
		return RWY_ENOMEM;
	if (p->state != WAN_PATH_OFF && (anew || use == WAN_USE_NEVER))
		leave(p, now);
	if (use != p->use) /* as a spare or granted it may never again say how its queue is */
		wan_rest_gone(p, now);
	p->use = t->cfg.use[path] = use;
	if (p->state == WAN_PATH_OFF && use != WAN_USE_NEVER)
		begin(p, mtu, now);
	wan_rest_spare(t, now);
	return 0;
}
