/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim of this gateway as one of a pair (wan.h, enum wan_claim), and whether its witness, the
 * gateway at the other end, has confirmed it. Its decisions as the witness of its peer are in
 * witness.c.
 *
 * Each HELLO carries the claim and its number. A new claim has the next number and a new nonce, so
 * an answer that echoes the present nonce is an answer to the present claim. While the claim is not
 * confirmed HELLOs want an answer, and are repeated.
 */
#include "rwy/hash.h"
#include "wan/hello.h"
#include "wan/tunnel.h"

#define REPEAT_FIRST (10 * RWY_MS)
#define REPEAT_MAX   RWY_SEC
/* An answer asks, too, but no sooner: both of a pair may get it, and answers would multiply. */
#define ASK_EACH     (5 * RWY_MS)
#define SEEKERS_MEET (5 * RWY_SEC)
#define SPARE_EACH   (200 * RWY_MS)
#define DOUBT_EACH   (100 * RWY_MS) /* a forged doubt costs so many HELLOs at most */

void wan_claim_init(struct wan_tunnel *t)
{
	t->claim.next = RWY_NEVER;
}

static bool confirmable(const struct wan_claims *c)
{
	return c->n && c->own != WAN_CLAIM_SILENT && c->own != WAN_CLAIM_YIELD;
}

/* A standby is there, and has no nonce of the witness for its first claim (wan_proof_spare). */
static bool lacks_spare(const struct wan_tunnel *t)
{
	return t->claim.own == WAN_CLAIM_HOLD && t->claim.granted && !t->hs.spare;
}

bool wan_claim_asks(const struct wan_tunnel *t, rwy_time now)
{
	const struct wan_claims *c = &t->claim;

	if (lacks_spare(t) && now >= c->next)
		return true;
	return confirmable(c) && (!c->granted || c->doubt) &&
	       (now >= c->next || rwy_since(c->asked, now) >= ASK_EACH);
}

/* When the next HELLO goes for a granted claim. At first the peer may show a new nonce unasked. */
static rwy_time next_granted(const struct wan_tunnel *t, rwy_time now)
{
	return lacks_spare(t) ? now + wan_claim_jitter(t, SPARE_EACH) : RWY_NEVER;
}

void wan_claim_spare(struct wan_tunnel *t, uint64_t nonce, rwy_time now)
{
	t->hs.spare = nonce;
	if (t->claim.granted && !t->claim.doubt)
		t->claim.next = next_granted(t, now);
}

bool wan_claim_shows(const struct wan_tunnel *t)
{
	return t->claim.own == WAN_CLAIM_HOLD && t->claim.granted;
}

/* --- out -------------------------------------------------------------------------------------- */
static enum wan_hello_claim on_wire(enum wan_claim c)
{
	switch (c) {
	case WAN_CLAIM_NONE:
	case WAN_CLAIM_SILENT:
	case WAN_CLAIM_YIELD:
		return WAN_HELLO_NO_CLAIM;
	case WAN_CLAIM_START:
	case WAN_CLAIM_KEEP:
		return WAN_HELLO_KEEP;
	case WAN_CLAIM_HOLD:
		return WAN_HELLO_HOLD;
	case WAN_CLAIM_TAKE:
	case WAN_CLAIM_INHERIT:
		return WAN_HELLO_TAKE;
	}
	rwy_unreachable();
}

uint8_t wan_claim_byte(const struct wan_tunnel *t)
{
	bool more = t->claim.own == WAN_CLAIM_INHERIT || t->claim.own == WAN_CLAIM_START;

	return t->claim.n | (more ? WAN_HELLO_INHERIT : 0);
}

uint8_t wan_claim_flags(const struct wan_tunnel *t, bool echoes)
{
	const struct wan_claims *c = &t->claim;
	bool held = echoes && wan_hs_up(t) && c->reply_n && c->reply_n == t->peer.claim_n;

	return (uint8_t)(on_wire(c->own) << WAN_HELLO_CLAIM | (held ? WAN_HELLO_HELD : 0));
}

rwy_dur wan_claim_jitter(const struct wan_tunnel *t, rwy_dur d)
{
	if (!t->claim.n)
		return d;
	return d - d / 4 + ((d / 2 * (rwy_mix64(t->hs.nonce + t->hs.sent_n) & 1023)) >> 10);
}

void wan_claim_sent(struct wan_tunnel *t, rwy_time now)
{
	struct wan_claims *c = &t->claim;
	bool due = now >= c->next;

	c->doubt = false;
	c->asked = now;
	c->next = c->granted ? next_granted(t, now) : now + wan_claim_jitter(t, c->interval);
	if (due)
		c->interval = rwy_time_min(2 * c->interval, REPEAT_MAX);
}

/* --- in --------------------------------------------------------------------------------------- */
static void ask(struct wan_claims *c, rwy_time now)
{
	c->interval = REPEAT_FIRST;
	c->next = now;
}

void wan_claim_lapse(struct wan_tunnel *t, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	c->granted = false;
	if (confirmable(c))
		ask(c, now);
}

bool wan_claim_on_held(struct wan_tunnel *t, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	if (!confirmable(c) || c->granted)
		return false;
	c->granted = true;
	c->doubt = false;
	c->next = next_granted(t, now);
	return true;
}

/*
 * A gateway that is not one of a pair goes on asking: the peer takes it for the other one of a pair
 * that it remembers, until that is silent for long enough. An answer without proof makes us ask: a
 * witness that sees our frames, and no HELLO, has no nonce to echo.
 */
bool wan_claim_on_gone(struct wan_tunnel *t, const struct wan_f_hello *f, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	if (c->own == WAN_CLAIM_NONE)
		return false;
	if (f->echo && f->echo == t->hs.nonce)
		return true;
	if (confirmable(c) && rwy_since(t->hs.sent_at, now) >= DOUBT_EACH) {
		c->doubt = true;
		c->next = now;
	}
	return false;
}

/* It does not have the tunnel, and asks for it, whoever else may be there. */
static bool seeks(enum wan_claim own)
{
	return own == WAN_CLAIM_TAKE || own == WAN_CLAIM_INHERIT || own == WAN_CLAIM_NONE;
}

/* The HELLO's sender does, or has just started. */
static bool hello_seeks(const struct wan_f_hello *f, bool start)
{
	switch (wan_f_hello_claim(f)) {
	case WAN_HELLO_NO_CLAIM:
		return f->claim & WAN_HELLO_NUMBER;
	case WAN_HELLO_TAKE:
		return true;
	case WAN_HELLO_KEEP:
		return start && f->claim & WAN_HELLO_INHERIT;
	case WAN_HELLO_HOLD:
		break;
	}
	return false;
}

bool wan_claim_avoids(const struct wan_tunnel *t, const struct wan_f_hello *f, rwy_time now)
{
	const struct wan_claims *c = &t->claim;
	/* One that answers us does not seek: it hands over. */
	bool answers = f->echo && f->echo == t->hs.nonce;

	return c->n && !c->granted && !answers && rwy_since(c->since, now) < SEEKERS_MEET &&
	       (seeks(c->own) || c->own == WAN_CLAIM_START) && hello_seeks(f, seeks(c->own));
}

/* --- changes ---------------------------------------------------------------------------------- */
bool wan_claim_set(struct wan_tunnel *t, enum wan_claim own, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	c->own = own;
	c->since = now;
	c->granted = c->doubt = false;
	c->next = RWY_NEVER;
	if (own == WAN_CLAIM_SILENT)
		t->hs.reply = c->refuse = false;
	/* The witness shall know that this is one of a pair, whatever it claims next. */
	if ((own == WAN_CLAIM_SILENT || own == WAN_CLAIM_YIELD) && !c->n)
		c->n = 1;
	if (!wan_claim_speaks(t) || (own == WAN_CLAIM_NONE && !c->n))
		return false;
	c->n = c->n % WAN_HELLO_NUMBER + 1;
	ask(c, now);
	return true;
}

/*
 * The peer takes a new nonce whenever it confirms a claim, and shows it with that: a HELLO with
 * this one, that comes after a later claim was confirmed, is no proof any more.
 */
bool wan_proof_spare(const struct wan_tunnel *t, struct wan_proof *out)
{
	*out = (struct wan_proof){.epoch = wan_peer_epoch(t), .nonce = t->hs.spare};
	return out->epoch && out->nonce && t->claim.granted;
}

void wan_proof_use(struct wan_tunnel *t, const struct wan_proof *p)
{
	t->hs.peer_epoch = p->epoch;
	t->hs.peer_nonce = p->nonce;
}

void wan_claim_question(struct wan_tunnel *t, bool on)
{
	t->claim.question = on;
}

enum wan_claim wan_claimed(const struct wan_tunnel *t)
{
	return t->claim.own;
}

bool wan_claim_over(const struct wan_tunnel *t)
{
	return t->claim.over;
}

bool wan_claim_granted(const struct wan_tunnel *t)
{
	return t->claim.granted;
}
