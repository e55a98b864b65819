/* SPDX-License-Identifier: Apache-2.0 */
/* Key sets of a tunnel: which are here, and which one is used. keys.h tells how. */
#include "wan/keys.h"

#include <assert.h>
#include <string.h>

#include "rwy/endian.h"
#include "wan/key_phase.h"
#include "wan/key_set.h"
#include "wan/tunnel.h"

#define OLD_MIN   RWY_SEC
#define TRY_FIRST (20 * RWY_MS) /* HELLOs that ask for the peer's new set: each twice as late */
#define TRIES     8
/* A standby that took over has exchanged keys itself by then (docs/security.md). */
#define RESERVED_FOR (30 * RWY_SEC)

/* --- key sets --------------------------------------------------------------------------------- */
int wan_keys_new(struct wan_tunnel *t)
{
	t->keys = aead_mem_alloc(sizeof(*t->keys));
	if (!t->keys)
		return RWY_ENOMEM;
	t->keys->try_at = RWY_NEVER;
	return 0;
}

static void tx_wipe(const struct wan_tunnel *t, struct wan_key_tx *x)
{
	t->cfg.aead->key_wipe(&x->k.key);
	aead_wipe(x, sizeof(*x));
}

static void set_wipe(struct wan_tunnel *t, struct wan_key_set *s)
{
	struct wan_keys *k = t->keys;

	if (k->used == s)
		k->used = NULL;
	if (k->offered == s)
		k->offered = NULL;
	if (k->heard == s)
		k->heard = NULL;
	tx_wipe(t, &s->tx);
	s->epoch = 0;
	for (unsigned i = 0; i < 3; i++)
		t->cfg.aead->key_wipe(&s->rx.k[i].key);
	aead_wipe(&s->rx, sizeof(s->rx));
	s->state = WAN_KEY_NONE;
}

void wan_keys_free(struct wan_tunnel *t)
{
	if (!t->keys)
		return;
	wan_keys_wipe(t);
	aead_mem_free(t->keys, sizeof(*t->keys));
	t->keys = NULL;
}

/*
 * The set is old, and wiped at its time or when its place is needed. But the peer may still seal
 * with an old set: the word that a newer one is used did not arrive, and no sealed datagram tells
 * it while all of this end's go by the reliable carrier.
 */
static bool old_ends(const struct wan_keys *k, const struct wan_key_set *s)
{
	return s->state == WAN_KEY_OLD && s != k->heard;
}

/*
 * The rank of a set that is not in use; the lowest goes first. Datagrams under way that an old set
 * would open are sent again. Of sets that were offered the peer probably has the last one, and may
 * send nothing that another set opens. A set put aside answers another process that still asks; a
 * reserved one may be all that the standby has.
 */
static unsigned rank(const struct wan_keys *k, const struct wan_key_set *s)
{
	static const uint8_t of[WAN_KEY_STATE_COUNT] = {
	    [WAN_KEY_OLD] = 0, [WAN_KEY_OFFERED] = 1, [WAN_KEY_ASIDE] = 2, [WAN_KEY_RESERVED] = 3};

	return s == k->offered ? 4 : of[s->state];
}

/* True: `a` goes before `b`. `until` means another thing in each state. */
static bool goes_first(const struct wan_keys *k, const struct wan_key_set *a, const struct wan_key_set *b)
{
	return rank(k, a) != rank(k, b) ? rank(k, a) < rank(k, b) : a->until < b->until;
}

/* The place of a new set: a free one; or else the one with which least is lost. */
static struct wan_key_set *place(struct wan_keys *k)
{
	struct wan_key_set *best = NULL;

	for (unsigned i = 0; i < WAN_KEY_SETS; i++) {
		struct wan_key_set *s = &k->set[i];

		if (s->state == WAN_KEY_NONE)
			return s;
		if (s->state != WAN_KEY_USED && s != k->heard && (!best || goes_first(k, s, best)))
			best = s;
	}
	assert(best); /* at most two are excluded */
	return best;
}

/*
 * False: a set that is in use or offered has such an id, so datagrams could not be told apart, here
 * or at the peer; or an id is 0, which says that a datagram is in the clear.
 */
static bool ids_free(struct wan_tunnel *t, const struct wan_secrets *secrets)
{
	const uint8_t rx = aead_secret_id(&secrets->rx), tx = aead_secret_id(&secrets->tx);
	struct wan_keys *k = t->keys;

	if (!rx || !tx)
		return false;
	for (unsigned i = 0; i < WAN_KEY_SETS; i++) {
		struct wan_key_set *s = &k->set[i];

		if (s->state == WAN_KEY_NONE ||
		    (s->rx.id != rx && (s->state == WAN_KEY_OLD || s->tx.id != tx)))
			continue;
		if (!old_ends(k, s))
			return false;
		set_wipe(t, s);
	}
	return true;
}

static int set_new(struct wan_tunnel *t, const struct wan_secrets *secrets, enum wan_key_state state,
    struct wan_key_set **out, rwy_time now)
{
	struct wan_keys *k = t->keys;
	struct wan_key_set *s;

	wan_stir(t);
	if (!k)
		return RWY_EINVAL;
	if (!ids_free(t, secrets))
		return RWY_EEXIST;
	s = *out = place(k);
	set_wipe(t, s);
	s->state = state;
	s->until = now;
	s->reserved = s->kept = false;
	s->ends = RWY_NEVER;
	s->tx.secret = secrets->tx;
	s->tx.id = aead_secret_id(&s->tx.secret);
	s->rx.secret = secrets->rx;
	s->rx.id = aead_secret_id(&s->rx.secret);
	s->rx.next = 1;
	s->rx.before = 2;
	wan_key_rx_begin(&s->rx);
	if (wan_key_make(t, &s->rx.k[0], &s->rx.secret) != 0 || wan_key_rx_next(t, &s->rx) != 0 ||
	    wan_key_make(t, &s->tx.k, &s->tx.secret) != 0) {
		set_wipe(t, s);
		return RWY_ENOMEM;
	}
	return 0;
}

int wan_keys_offer(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now)
{
	struct wan_key_set *s;
	int rc = set_new(t, secrets, WAN_KEY_OFFERED, &s, now);

	if (rc)
		return rc;
	t->keys->offered = s;
	t->keys->try_at = RWY_NEVER;
	t->keys->tries = 0;
	return 0;
}

/* Wipes the sets for the standby that were made before `at`. */
static void unreserve(struct wan_tunnel *t, rwy_time at)
{
	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		if (t->keys->set[i].state == WAN_KEY_RESERVED && t->keys->set[i].until < at)
			set_wipe(t, &t->keys->set[i]);
}

int wan_keys_reserve(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now)
{
	struct wan_key_set *s;
	rwy_time last = 0;
	int rc;

	for (unsigned i = 0; t->keys && i < WAN_KEY_SETS; i++) {
		s = &t->keys->set[i];
		if (s->state != WAN_KEY_RESERVED)
			continue;
		if (s->kept)
			last = rwy_time_max(last, s->until);
		else
			set_wipe(t, s); /* for all that is known the standby did not get it */
	}
	if (t->keys)
		unreserve(t, last); /* the standby may not get these, and have the last ones */
	rc = set_new(t, secrets, WAN_KEY_RESERVED, &s, now);
	if (!rc)
		s->reserved = true;
	return rc;
}

void wan_keys_kept(struct wan_tunnel *t)
{
	for (unsigned i = 0; t->keys && i < WAN_KEY_SETS; i++)
		t->keys->set[i].kept = t->keys->set[i].state == WAN_KEY_RESERVED;
}

/* The peer is one of a pair, and is there: another process may have keys, and not the tunnel. */
static bool guarded(const struct wan_tunnel *t)
{
	return t->keys->used && t->peer.claim_n && wan_hs_up(t);
}

static rwy_time old_until(const struct wan_tunnel *t, rwy_time now)
{
	return now + rwy_time_max(wan_key_under_way(t), OLD_MIN);
}

/*
 * Keeps the keys that were used before, for answers, if another process of the pair may have them.
 */
static void retire(
    struct wan_tunnel *t, struct wan_key_set *was, const struct wan_key_set *now_used, rwy_time now)
{
	if (t->peer.claim_n && was->epoch != now_used->epoch) {
		was->state = WAN_KEY_ASIDE;
		was->until = now;
		return;
	}
	was->state = WAN_KEY_OLD;
	was->until = old_until(t, now);
	tx_wipe(t, &was->tx);
}

static void use(struct wan_tunnel *t, struct wan_key_set *s, rwy_time now)
{
	struct wan_keys *k = t->keys;

	s->state = WAN_KEY_USED; /* so that unreserve() leaves it */
	if (k->used) {
		/* Each exchange is followed by one for the standby, if there is one. */
		unreserve(t, k->used->until);
		retire(t, k->used, s, now);
	}
	k->used = s;
	t->c.key_sets++;
	if (k->offered == s) {
		k->offered = NULL;
		k->try_at = RWY_NEVER;
	}
	s->tx.since = now;
	wan_key_tx_begin(t, &s->tx);
}

int wan_keys_keep(struct wan_tunnel *t, const struct wan_secrets *secrets, rwy_time now)
{
	struct wan_key_set *s;
	int rc = set_new(t, secrets, WAN_KEY_RESERVED, &s, now);

	if (rc)
		return rc;
	s->reserved = true;
	use(t, s, now);
	return 0;
}

bool wan_keys_take_offered(struct wan_tunnel *t, rwy_time now)
{
	if (!t->keys || !t->keys->offered)
		return false;
	if (guarded(t)) {
		t->keys->try_at = now;
		return false;
	}
	use(t, t->keys->offered, now);
	return true;
}

struct wan_key_set *wan_key_set_for(struct wan_keys *k, uint64_t epoch)
{
	struct wan_key_set *best = NULL;

	if (!epoch)
		return NULL;
	if (k->used && k->used->epoch == epoch)
		return k->used;
	for (unsigned i = 0; i < WAN_KEY_SETS; i++) {
		struct wan_key_set *s = &k->set[i];

		if (s->state == WAN_KEY_ASIDE && s->epoch == epoch && (!best || s->until > best->until))
			best = s;
	}
	return best;
}

void wan_keys_follow(struct wan_tunnel *t, uint64_t epoch, rwy_time now)
{
	struct wan_key_set *s = t->keys ? wan_key_set_for(t->keys, epoch) : NULL;

	if (s && s != t->keys->used)
		use(t, s, now);
}

bool wan_keys_tries(const struct wan_tunnel *t, rwy_time now)
{
	return t->keys && now >= t->keys->try_at;
}

void wan_keys_tried(struct wan_tunnel *t, rwy_time now)
{
	struct wan_keys *k = t->keys;

	k->try_at = k->tries < TRIES ? now + (TRY_FIRST << k->tries) : RWY_NEVER;
	k->tries++;
}

void wan_keys_wipe(struct wan_tunnel *t)
{
	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		set_wipe(t, &t->keys->set[i]);
}

bool wan_keys_ready(const struct wan_tunnel *t)
{
	return t->keys->used;
}

/* --- what the peer seals with ----------------------------------------------------------------- */
/* The epoch of the process that sealed an opened datagram; 0: it does not say. */
static uint64_t sender(const struct wan_tunnel *t, const struct rwy_buf *b, const struct wan_pkt *h)
{
	struct wan_f_hello f;

	if (h->type != WAN_PKT_HELLO) /* each epoch gets an index of its own */
		return wan_hs_session(t) && h->index == t->index ? t->peer.epoch : 0;
	return wan_f_hello_get(b->data + WAN_PKT_HDR, b->len - WAN_PKT_HDR, &f) ? f.epoch : 0;
}

/* The peer has not sealed anything with it. */
static bool is_new(const struct wan_key_set *s)
{
	return s->state == WAN_KEY_OFFERED || s->state == WAN_KEY_RESERVED;
}

/* The peer has a set that it was offered, for it sends with it; or a process beside it does. */
static void offer_taken(struct wan_tunnel *t, struct wan_key_set *s, rwy_time now)
{
	if (!guarded(t) || s->epoch == t->peer.epoch) {
		use(t, s, now);
	} else if (s->epoch) {
		s->state = WAN_KEY_ASIDE;
		s->until = now;
		if (t->keys->offered == s) {
			t->keys->offered = NULL;
			t->keys->try_at = RWY_NEVER;
		}
	}
}

/*
 * The peer seals with a newer set than before. An old one that arrives late, or again, does not
 * count: it would keep its set for ever.
 */
static void peer_uses(struct wan_tunnel *t, struct wan_key_set *s, rwy_time now)
{
	struct wan_key_set *was = t->keys->heard;

	t->keys->heard = s;
	if (was && was->state == WAN_KEY_OLD)
		was->until = old_until(t, now);
}

void wan_key_set_heard(struct wan_tunnel *t, struct wan_key_set *s, const struct rwy_buf *b,
    const struct wan_pkt *h, rwy_time now)
{
	if (s->reserved && s->ends == RWY_NEVER)
		s->ends = now + RESERVED_FOR;
	if (is_new(s) || !s->epoch) {
		uint64_t epoch = sender(t, b, h);

		s->epoch = epoch ? epoch : s->epoch;
		if (is_new(s))
			offer_taken(t, s, now);
	}
	if (s != t->keys->heard && s->state == WAN_KEY_USED)
		peer_uses(t, s, now);
}

/* --- time ------------------------------------------------------------------------------------- */
static bool reserved_ends(const struct wan_key_set *s, rwy_time now)
{
	return s->state != WAN_KEY_NONE && s->reserved && now >= s->ends;
}

void wan_keys_tick(struct wan_tunnel *t, rwy_time now)
{
	struct wan_keys *k = t->keys;

	for (unsigned i = 0; i < WAN_KEY_SETS; i++)
		if ((old_ends(k, &k->set[i]) && now >= k->set[i].until) || reserved_ends(&k->set[i], now))
			set_wipe(t, &k->set[i]);
	if (!k->used || now < wan_key_phase_end(t, &k->used->tx) || !wan_key_phase_arrived(t, &k->used->tx))
		return;
	wan_key_phase_next(t, &k->used->tx, now);
}

rwy_time wan_keys_next(const struct wan_tunnel *t)
{
	const struct wan_keys *k = t->keys;
	rwy_time at = RWY_NEVER; /* try_at is in wan_hs_next(): only a HELLO tries the newest set */

	for (unsigned i = 0; i < WAN_KEY_SETS; i++) {
		if (old_ends(k, &k->set[i]))
			at = rwy_time_min(at, k->set[i].until);
		if (k->set[i].state != WAN_KEY_NONE && k->set[i].reserved)
			at = rwy_time_min(at, k->set[i].ends);
	}
	/* Until something of the phase is acknowledged there is no deadline: the ACK sets it. */
	if (k->used && wan_key_phase_arrived(t, &k->used->tx))
		at = rwy_time_min(at, wan_key_phase_end(t, &k->used->tx));
	return at;
}
