/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The witness of a pair of gateways: which of them has the tunnel. It knows the epoch that it
 * believes, the latest claim of that epoch, and the epochs that lost the tunnel for good. When
 * another epoch, the asker, sends a HELLO:
 *
 *  - The believed epoch is up and claims KEEP: the asker is refused.
 *  - It is up and claims HOLD or TAKE: the asker is refused unless it claims TAKE.
 *  - It is up without a claim, or silent: the asker is challenged, as a peer that restarted.
 *  - The asker was replaced earlier, when it or its successor had a claim: it is refused for ever.
 *    An epoch names one process, and the state of that process is old.
 *
 * An asker that answers the challenge is believed: a restart of the peer (handshake.c). A refused
 * asker that wants an answer gets one, which says whether the refusal is for good: a HELLO of its
 * own kind, since an ordinary one with the asker's nonce would say that it is believed. Frames of a
 * replaced epoch are answered, too: that gateway may not know yet.
 *
 * A witness that may itself have been replaced, since it hands over or asks who serves, abstains:
 * the other gateway of its pair may already have decided the other way. The asker repeats its
 * HELLO.
 *
 * Where another tunnel decides (wan_claim_led), a HELLO of another epoch than the one that it names
 * waits until it names that one. It is then believed as any other one.
 *
 * A claim has a number. A HELLO of the believed epoch without proof of freshness changes the claim
 * only if its number is newer: an old HELLO that comes late, or again, does not. With proof it may
 * have any number: the numbers come round while nothing arrives.
 */
#include "wan/hello.h"
#include "wan/tunnel.h"

#define HINT_INTERVAL (100 * RWY_MS)
#define NEWER         (WAN_HELLO_NUMBER / 2 + 1)

static bool lost_for_good(const struct wan_claims *c, uint64_t epoch)
{
	for (unsigned i = 0; i < WAN_GONE_MAX && i < c->gone_n; i++)
		if (c->gone[i] == epoch)
			return true;
	return false;
}

static bool believed(const struct wan_tunnel *t, uint64_t epoch)
{
	return wan_hs_session(t) && t->peer.epoch == epoch;
}

bool wan_witness_waits(const struct wan_tunnel *t, const struct wan_f_hello *f)
{
	const struct wan_claims *c = &t->claim;

	return c->led && f->claim & WAN_HELLO_NUMBER && f->epoch != c->lead && !believed(t, f->epoch) &&
	       !lost_for_good(c, f->epoch);
}

bool wan_witness_abstains(const struct wan_tunnel *t, const struct wan_f_hello *f)
{
	const struct wan_claims *c = &t->claim;

	return (c->question || c->own == WAN_CLAIM_YIELD) && f->claim & WAN_HELLO_NUMBER && wan_hs_up(t) &&
	       !believed(t, f->epoch) && !lost_for_good(c, f->epoch);
}

bool wan_witness_refuses(const struct wan_tunnel *t, const struct wan_f_hello *f)
{
	if (believed(t, f->epoch))
		return false;
	if (lost_for_good(&t->claim, f->epoch))
		return true;
	if (t->claim.led && f->epoch == t->claim.lead)
		return false;
	if (!wan_hs_up(t) || t->peer.claim == WAN_HELLO_NO_CLAIM)
		return false;
	return t->peer.claim == WAN_HELLO_KEEP || wan_f_hello_claim(f) != WAN_HELLO_TAKE;
}

void wan_witness_forget_asker(struct wan_tunnel *t)
{
	t->hs.reply = false;
	t->hs.peer_nonce = 0;
	t->hs.peer_epoch = t->peer.epoch;
	t->claim.reply_n = 0;
	t->claim.native = false;
}

static void refuse(struct wan_tunnel *t, uint64_t epoch, uint64_t nonce, uint8_t path, bool native)
{
	struct wan_claims *c = &t->claim;

	c->refuse = true;
	c->refuse_over = lost_for_good(c, epoch);
	c->refuse_epoch = epoch;
	c->refuse_nonce = nonce;
	c->refuse_path = path;
	c->refuse_native = native;
}

void wan_witness_refuse(struct wan_tunnel *t, const struct wan_path *p, const struct wan_f_hello *f)
{
	bool stream = wan_path_is_stream(p);

	t->c.drop_refused++;
	/* it was challenged before, and the believed one has spoken since */
	if (t->hs.peer_epoch == f->epoch)
		wan_witness_forget_asker(t);
	if (f->flags & WAN_HELLO_WANT)
		refuse(t, f->epoch, f->nonce, stream ? 0 : p->id, !stream);
}

/* A pair has one address, so what the witness sends to one gateway may reach the other. The gateway
 * that it is not meant for must not use up the nonce. */
bool wan_witness_asks_another(const struct wan_tunnel *t, const struct wan_f_hello *f)
{
	return t->claim.n && wan_hs_up(t) && f->echo_epoch && f->echo_epoch != t->cfg.epoch;
}

void wan_witness_on_asked(struct wan_tunnel *t, const struct wan_path *p, const struct wan_f_hello *f)
{
	struct wan_claims *c = &t->claim;

	c->reply_n = f->claim & WAN_HELLO_NUMBER;
	c->native = c->reply_n && !believed(t, f->epoch) && !wan_path_is_stream(p);
}

static void note(struct wan_tunnel *t, const struct wan_f_hello *f)
{
	t->peer.claim = (uint8_t)wan_f_hello_claim(f);
	t->peer.claim_n = f->claim & WAN_HELLO_NUMBER;
}

static bool newer(uint8_t n, uint8_t than)
{
	return n && n != than && (n + WAN_HELLO_NUMBER - than) % WAN_HELLO_NUMBER < NEWER;
}

bool wan_witness_on_hello(struct wan_tunnel *t, const struct wan_f_hello *f, bool proof)
{
	uint8_t n = f->claim & WAN_HELLO_NUMBER;

	if (!believed(t, f->epoch) || n == t->peer.claim_n || !(proof || newer(n, t->peer.claim_n)))
		return false;
	note(t, f);
	return !proof;
}

void wan_witness_believe(struct wan_tunnel *t, const struct wan_f_hello *f)
{
	struct wan_claims *c = &t->claim;
	uint64_t before = t->peer.epoch;

	if (before && before != f->epoch && (t->peer.claim_n || f->claim)) {
		c->gone[c->gone_n++ % WAN_GONE_MAX] = before;
		if (t->hs.peer_epoch == before)
			wan_witness_forget_asker(t);
	}
	note(t, f);
}

void wan_witness_on_stranger(struct wan_tunnel *t, uint32_t index, uint8_t path, bool native, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	if (!c->gone_n || c->refuse || rwy_since(c->hinted, now) < HINT_INTERVAL)
		return;
	for (unsigned i = 0; i < WAN_GONE_MAX && i < c->gone_n; i++)
		if (wan_hs_index(t, c->gone[i]) == index) {
			c->hinted = now;
			refuse(t, c->gone[i], 0, path, native);
			return;
		}
}

uint64_t wan_peer_epoch(const struct wan_tunnel *t)
{
	return wan_hs_session(t) ? t->peer.epoch : 0;
}
