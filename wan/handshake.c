/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: HELLO in both directions, until each side has received its own fresh nonce back.
 * The contents of a HELLO (epoch, index, credit) are believed only with that proof, so an old or
 * forged HELLO never resets a live tunnel; it costs at most an answer.
 *
 *   A: HELLO want, nonce a                    ->
 *                                             <-  B: HELLO want, nonce b, echo a     A believes B
 *   A: HELLO nonce a', echo b                 ->                                     B believes A
 *
 * A sends data at once. B drops it as a stranger's while the last HELLO is missing. Therefore A
 * repeats that HELLO, quickly at first, until a datagram comes that B sends only after it believes
 * A. And when B knows no peer and receives data of a stranger, it asks at once: some gateway knows
 * B.
 *
 * States and what each event does in them: states.h. A new epoch, once believed, is a restart of
 * the peer. The index that a gateway gives depends on the peer's epoch, so that datagrams of two
 * incarnations of a gateway cannot be confused.
 *
 * Without keys this prevents accidents and blind forgery. It does not stop an attacker who reads
 * the path. With keys (keys.h) HELLOs are sealed, too.
 *
 * HELLOs also carry claims of a pair of gateways: claim.c, witness.c.
 */
#include <string.h>

#include "rwy/hash.h"
#include "wan/hello.h"
#include "wan/resume.h"
#include "wan/tunnel.h"

#define INTERVAL_MIN    (100 * RWY_MS)
#define INTERVAL_MAX    RWY_SEC
#define CHALLENGE_TRIES 5
#define REPEAT_FIRST    (2 * RWY_MS)
#define REPEATS         9 /* they span about a second */

void wan_hs_nonce(struct wan_tunnel *t, rwy_time now)
{
	struct wan_hs *h = &t->hs;

	h->nonce =
	    rwy_mix64(rwy_mix64(t->cfg.epoch + ++h->counter) ^ rwy_mix64(now ^ (uint64_t)t->cfg.index << 32));
	if (!h->nonce)
		h->nonce = 1;
	h->sent_n = 0;
}

void wan_hs_init(struct wan_tunnel *t, rwy_time now)
{
	t->hs.interval = INTERVAL_MIN;
	t->hs.next = now;
	wan_claim_init(t);
	wan_hs_nonce(t, now);
}

/* --- actions ---------------------------------------------------------------------------------- */
static void enter(struct wan_tunnel *t, enum wan_hs_state to, rwy_time now)
{
	static const bool may[WAN_HS_STATE_COUNT][WAN_HS_STATE_COUNT] = {
#define X(from, to) [WAN_HS_##from][WAN_HS_##to] = true,
	    WAN_HS_CHANGES(X)
#undef X
	};
	bool was_up = wan_hs_up(t);

	assert(to == t->hs.state || may[t->hs.state][to]);
	t->hs.state = to;
	if (wan_hs_up(t) != was_up)
		t->since = now;
}

/* The state of a peer that answers. */
static enum wan_hs_state up_state(const struct wan_hs *h)
{
	return h->tries ? WAN_HS_CHALLENGING : h->repeats ? WAN_HS_CONFIRMING : WAN_HS_UP;
}

static void report(struct wan_tunnel *t, bool restarted, rwy_time now)
{
	if (t->cfg.ops->state)
		t->cfg.ops->state(t->cfg.ctx, wan_hs_up(t), restarted, now);
}

/* Sets the time of the next HELLO. */
static void schedule(struct wan_tunnel *t, rwy_time now)
{
	struct wan_hs *h = &t->hs;

	if (h->state == WAN_HS_UP) {
		h->next = RWY_NEVER;
		return;
	}
	h->next = now + wan_claim_jitter(t, h->interval);
	h->interval = rwy_time_min(h->interval * 2, INTERVAL_MAX);
}

static void hs_ignore(struct wan_tunnel *t, const struct wan_hs_what *w)
{
}

static void hs_ask_later(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	schedule(t, w->now);
}

static void ask_at_once(struct wan_hs *h, rwy_time now)
{
	h->interval = INTERVAL_MIN;
	h->next = now;
}

void wan_hs_wake(struct wan_tunnel *t, rwy_time now)
{
	if (!wan_hs_up(t))
		ask_at_once(&t->hs, now);
}

static void hs_ask_now(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	if (rwy_since(t->hs.sent_at, w->now) >= INTERVAL_MIN)
		ask_at_once(&t->hs, w->now);
}

static void hs_count_down(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	struct wan_hs *h = &t->hs;

	h->tries -= h->tries > 0;
	h->repeats -= h->repeats > 0;
	if (wan_hs_up(t))
		enter(t, up_state(h), w->now);
	schedule(t, w->now);
}

static void hs_answer(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	t->hs.reply = true;
	t->hs.peer_nonce = w->f->nonce;
	t->hs.peer_epoch = w->f->epoch;
	t->hs_path = w->p->id == WAN_PATH_STREAM || w->p->state == WAN_PATH_OFF ? 0 : w->p->id;
	wan_witness_on_asked(t, w->p, w->f);
}

/* If the answer is lost, the timer asks again. */
static void hs_challenge(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	struct wan_hs *h = &t->hs;

	hs_answer(t, w);
	if (h->tries)
		return;
	h->tries = CHALLENGE_TRIES;
	h->interval = INTERVAL_MIN;
	h->next = w->now + INTERVAL_MIN;
	if (wan_hs_up(t))
		enter(t, up_state(h), w->now);
}

static void peer_set(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	const struct wan_f_hello *f = w->f;

	wan_witness_believe(t, f);
	wan_claim_lapse(t, w->now);
	t->peer.epoch = f->epoch;
	t->peer.index = f->index;
	t->peer.rx_window = f->rx_window;
	t->peer.rx_bytes = f->rx_bytes;
	t->peer.rx_cost = f->rx_cost;
	t->peer.ack_delay = f->ack_delay_us * RWY_US;
	t->peer.mtu = f->mtu;
	t->peer.pcp = f->flags & WAN_HELLO_PCP;
	t->fec.peer = f->flags & WAN_HELLO_FEC;
	t->peer.order = f->flags & WAN_HELLO_ORDER;
	t->peer.run = f->more & WAN_HELLO_RUN;
	t->peer.bundle = f->more & WAN_HELLO_BUNDLE;
	t->mtu_min = t->fec.mtu = f->mtu < t->mtu_own ? f->mtu : t->mtu_own;
	t->index = t->fec.index = wan_hs_index(t, f->epoch);
	wan_keys_follow(t, f->epoch, w->now);
}

/* The HELLO is no replay: the peer is present. */
static void accept_proof(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	struct wan_hs *h = &t->hs;

	if (h->sent_n == 1 && !wan_path_has_rtt(w->p))
		wan_rtt_sample(w->p, w->now - h->sent_at, 0, w->now);
	wan_hs_nonce(t, w->now);
	h->tries = 0;
	/* A peer of a pair may want the new nonce for its standby. */
	h->repeats = w->f->flags & WAN_HELLO_WANT ? REPEATS : wan_claim_shows(t);
	h->interval = REPEAT_FIRST;
	t->last_rx = w->p->last_rx = w->now;
	if (w->p->state != WAN_PATH_OFF)
		wan_path_enter(w->p, WAN_PATH_USABLE, w->now);
	enter(t, up_state(h), w->now);
}

static void hs_meet(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	accept_proof(t, w);
	peer_set(t, w);
	for (unsigned i = 0; i < t->paths; i++) {
		wan_resume_begin(&t->path[i], rwy_since(t->hs.first_at, w->now), w->now);
		wan_path_pace(&t->path[i]);
	}
	wan_tx_wake_all(t);
	report(t, false, w->now);
	schedule(t, w->now);
}

static void hs_believe(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	bool was_up = wan_hs_up(t);

	accept_proof(t, w);
	if (!was_up)
		report(t, false, w->now);
	schedule(t, w->now);
}

static void hs_restart(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	accept_proof(t, w);
	t->c.peer_restarts++;
	for (unsigned i = 0; i <= t->paths; i++)
		wan_path_restart(wan_path_nth(t, i), w->now);
	t->fec.credit = 0;
	peer_set(t, w);
	wan_fec_rx_reset(&t->fec);
	wan_dgram_restart(t);
	wan_rx_end_all(t, WAN_CLOSE_PEER_RESET, w->now);
	wan_tx_restart(t, w->now);
	report(t, true, w->now);
	schedule(t, w->now);
}

static void hs_confirmed(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	t->hs.repeats = 0;
	enter(t, up_state(&t->hs), w->now);
}

static void hs_back(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	hs_confirmed(t, w);
	report(t, false, w->now);
}

static void hs_go_down(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	enter(t, WAN_HS_SILENT, w->now);
	t->c.went_down += t->claim.own != WAN_CLAIM_SILENT;
	ask_at_once(&t->hs, w->now);
	wan_claim_lapse(t, w->now);
	report(t, false, w->now);
}

void wan_hs_event(struct wan_tunnel *t, enum wan_hs_event ev, const struct wan_hs_what *what)
{
	typedef void action(struct wan_tunnel * t, const struct wan_hs_what *w);
	static action *const table[WAN_HS_STATE_COUNT][WAN_HS_EVENT_COUNT] = {
#define hs_IMPOSSIBLE NULL
#define ROW(s, a, b, c, d, e, f, g, h)                                                                       \
	[WAN_HS_##s] = {hs_##a, hs_##b, hs_##c, hs_##d, hs_##e, hs_##f, hs_##g, hs_##h},
	    WAN_HS_TABLE(ROW)
#undef ROW
	};
	action *act = table[t->hs.state][ev];

	assert(act);
	act(t, what);
}

/* --- in --------------------------------------------------------------------------------------- */
/* The engine may have changed the claim meanwhile, in a call by the event. */
static void granted(struct wan_tunnel *t, uint8_t number, rwy_time now)
{
	if (t->claim.n != number || !wan_claim_on_held(t, now))
		return;
	/* who confirms it has accepted us */
	if (wan_hs_up(t))
		hs_confirmed(t, &(struct wan_hs_what){.now = now});
	if (t->cfg.ops->claim)
		t->cfg.ops->claim(t->cfg.ctx, now);
}

static void take(struct wan_tunnel *t, const struct wan_hs_what *w)
{
	const struct wan_f_hello *f = w->f;
	uint8_t number = t->claim.n;
	bool known = wan_hs_session(t) && t->peer.epoch == f->epoch;
	/* The HELLO is an answer to ours: it is fresh, and its contents are true. */
	bool proof = f->echo && f->echo == t->hs.nonce && f->echo_epoch == t->cfg.epoch;

	if (f->flags & WAN_HELLO_WANT && !(known && wan_witness_asks_another(t, f)))
		wan_hs_event(t, known ? WAN_HSE_ASKED : WAN_HSE_OTHER, w);
	/* It may be an old one, which is no proof to the peer: then it challenges, as ever. The
	 * one that this end echoes is none either. */
	if (known)
		wan_claim_spare(t, f->nonce != t->hs.peer_nonce ? f->nonce : 0, w->now);
	if (proof)
		wan_hs_event(t, known || !wan_hs_session(t) ? WAN_HSE_PROOF : WAN_HSE_RESTART, w);
	/* HELLOs sent before that may still be under way: they must not count as proof. */
	if (wan_witness_on_hello(t, f, proof))
		wan_hs_nonce(t, w->now);
	if (proof && f->flags & WAN_HELLO_HELD)
		granted(t, number, w->now);
}

static void lose(struct wan_tunnel *t, rwy_time now)
{
	wan_claim_set(t, WAN_CLAIM_SILENT, now);
	if (wan_hs_up(t))
		wan_hs_event(t, WAN_HSE_SILENCE, &(struct wan_hs_what){.now = now});
	if (t->cfg.ops->replaced)
		t->cfg.ops->replaced(t->cfg.ctx, now);
}

static void hear(struct wan_tunnel *t, struct wan_path *p, const struct wan_f_hello *f, rwy_time now)
{
	struct wan_claims *c = &t->claim;

	if (wan_witness_waits(t, f)) {
		c->waits = true;
		c->waits_path = p->id;
		c->waiting = *f;
	} else if (wan_witness_abstains(t, f) || (!c->led && wan_claim_avoids(t, f, now))) {
		t->c.drop_refused++;
	} else if (wan_witness_refuses(t, f)) {
		wan_witness_refuse(t, p, f);
	} else {
		take(t, &(struct wan_hs_what){.p = p, .f = f, .now = now});
	}
}

void wan_claim_led(struct wan_tunnel *t, uint64_t epoch, rwy_time now)
{
	struct wan_claims *c = &t->claim;
	const struct wan_f_hello f = c->waiting;
	struct wan_path *p = wan_path_of(t, c->waits_path);

	wan_stir(t);
	c->led = true;
	c->lead = epoch;
	if (!c->waits || f.epoch != epoch)
		return;
	c->waits = false;
	if (p && c->own != WAN_CLAIM_SILENT)
		hear(t, p, &f, now);
}

void wan_hs_recv(struct wan_tunnel *t, struct wan_path *p, const uint8_t *body, size_t len, rwy_time now)
{
	struct wan_f_hello f;

	if (!wan_f_hello_get(body, len, &f)) {
		t->c.drop_bad_frame++;
		return;
	}
	bool gone = f.flags & WAN_HELLO_GONE;

	if (f.tunnel_id != t->cfg.tunnel_id || f.epoch == t->cfg.epoch ||
	    (gone && f.echo_epoch != t->cfg.epoch)) {
		t->c.drop_unknown_tunnel++;
		return;
	}
	t->c.rx_datagrams++;
	t->c.rx_bytes += len + WAN_PKT_HDR;
	if (gone) {
		if (wan_claim_on_gone(t, &f, now)) {
			t->claim.over |= f.flags & WAN_HELLO_HELD;
			lose(t, now);
		}
	} else {
		hear(t, p, &f, now);
	}
}
