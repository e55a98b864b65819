/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of the keys of one direction (keys.h; RFC 9001 section 6). */
#include "wan/key_phase.h"

#include "wan/tunnel.h"

#define PTOS        3 /* for so many probe timeouts an old key opens what was under way */
#define PHASE_LIVES 2 /* and a phase lasts so many times that at least: the one before is over */

int wan_key_make(const struct wan_tunnel *t, struct wan_key *key, const struct aead_secret *secret)
{
	t->cfg.aead->key_wipe(&key->key);
	return aead_key_from(&key->key, key->iv, t->cfg.aead, t->cfg.aead_alg, secret);
}

void wan_key_tx_begin(const struct wan_tunnel *t, struct wan_key_tx *x)
{
	for (unsigned i = 0; i < t->paths; i++)
		x->first[i] = t->path[i].next_pn;
}

/*
 * `next` is made long before it is needed: a forged phase bit costs no key derivation. Without
 * memory for it the peer's next phase opens nothing, until the next key set.
 */
int wan_key_rx_next(struct wan_tunnel *t, struct wan_key_rx *x)
{
	aead_secret_next(&x->secret, &x->secret);
	return wan_key_make(t, &x->k[x->next], &x->secret);
}

void wan_key_rx_begin(struct wan_key_rx *x)
{
	for (unsigned i = 0; i <= WAN_PATHS_MAX; i++)
		x->first[i] = UINT64_MAX;
}

/* A datagram of the next phase came: it is the present one from now on. */
void wan_key_rx_go_on(struct wan_tunnel *t, struct wan_key_rx *x, rwy_dur keep, rwy_time now)
{
	uint8_t free = x->before;

	x->before = x->now;
	x->now = x->next;
	x->next = free;
	x->phase ^= 1;
	x->before_until = now + keep;
	wan_key_rx_begin(x);
	t->c.key_no_memory += wan_key_rx_next(t, x) != 0;
	t->c.key_updates_received++;
}

/*
 * How long a datagram may still be under way: probe timeouts of the slowest path that was measured.
 * Both ends must find about the same, but one of them may not know a path, or ask a silent one ever
 * less often. A datagram that takes longer is lost.
 */
rwy_dur wan_key_under_way(const struct wan_tunnel *t)
{
	rwy_dur longest = 0;

	for (unsigned i = 0; i < t->paths; i++)
		if (wan_path_has_rtt(&t->path[i]))
			longest = rwy_time_max(longest, wan_pto_first(&t->path[i]));
	return PTOS * (longest ? longest : wan_pto_first(&t->path[0]));
}

/* A datagram of this phase was acknowledged: the peer has its key. */
bool wan_key_phase_arrived(const struct wan_tunnel *t, const struct wan_key_tx *x)
{
	for (unsigned i = 0; i < t->paths; i++)
		if (wan_path_acked(&t->path[i]) && t->path[i].largest_acked >= x->first[i] &&
		    t->path[i].next_pn > x->first[i])
			return true;
	return false;
}

/* The earliest end of the phase: then the peer keeps no key of the one before any more. */
static rwy_time phase_least(const struct wan_tunnel *t, const struct wan_key_tx *x)
{
	return x->since + PHASE_LIVES * wan_key_under_way(t);
}

rwy_time wan_key_phase_end(const struct wan_tunnel *t, const struct wan_key_tx *x)
{
	rwy_time at = x->sent >= WAN_PHASE_MAX ? x->since : x->since + t->cfg.rekey;

	return rwy_time_max(at, phase_least(t, x));
}

/* Without memory for a new key the phase goes on, and it is tried again. */
void wan_key_phase_next(struct wan_tunnel *t, struct wan_key_tx *x, rwy_time now)
{
	struct aead_secret secret;
	struct wan_key next = {0};

	aead_secret_next(&secret, &x->secret);
	if (wan_key_make(t, &next, &secret) != 0) {
		t->c.key_no_memory++;
		x->since = now;
		aead_wipe(&secret, sizeof(secret));
		return;
	}
	t->cfg.aead->key_wipe(&x->k.key);
	x->k = next;
	x->secret = secret;
	x->phase ^= WAN_KEY_PHASE;
	x->sent = 0;
	x->since = now;
	wan_key_tx_begin(t, x);
	t->c.key_updates_sent++;
	aead_wipe(&next, sizeof(next));
	aead_wipe(&secret, sizeof(secret));
}
