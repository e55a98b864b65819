/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/analyze/pair.h"

#include "tools/analyze/requester.h"

/* Responses in a row that do not fit, after which the pair is in doubt; then twice as many... */
#define DOUBT 16u

void an_pair_set(struct an_flow *x, struct an_flow *y)
{
	if (x->peer)
		x->peer->peer = NULL;
	if (y->peer)
		y->peer->peer = NULL;
	x->peer = y;
	y->peer = x;
	x->given.odd = y->given.odd = 0;
	an_open_remove(x);
	an_open_remove(y);
}

static struct an_flow *pair(struct an_flow *x, struct an_flow *f)
{
	if (x)
		an_pair_set(x, f);
	return x;
}

/* Each time that the number of odd responses in a row doubles: a look at all flows takes long. */
static bool is_time(struct an_flow *f)
{
	const uint32_t n = ++f->given.odd;

	return n >= DOUBT && !(n & (n - 1));
}

/* x has a peer by its PSNs, and what it asks may be answered in f with this PSN. */
static bool may_be(const struct an_flow *x, const struct an_flow *f, roce_psn psn)
{
	return x != f->peer && x->peer && !x->cm.known && x->key.vni == f->key.vni &&
	       rwy_ip_eq(&x->key.src, &f->key.dst) && rwy_ip_eq(&x->key.dst, &f->key.src) &&
	       an_answers(x, psn);
}

/* The only flow that may be asking, of those whose peer may be another's, says fits(); or NULL. */
static struct an_flow *find_paired(struct an_flow *all, const struct an_flow *f, roce_psn psn,
    bool (*fits)(const struct an_flow *x, const struct an_flow *f))
{
	struct an_flow *found = NULL;

	for (struct an_flow *x = all; x; x = x->next) {
		if (x == f || !may_be(x, f, psn) || !fits(x, f))
			continue;
		if (found)
			return NULL;
		found = x;
	}
	return found;
}

/*
 * The peer of x is silent since the responses in f began: its queue pair is another's peer now. Or
 * those of the peer do not fit.
 */
static bool is_left(const struct an_flow *x, const struct an_flow *f)
{
	const struct an_flow *is = x->peer;

	return rwy_time_max(is->given.last, is->rq->last_sent) < f->given.first || is->given.odd >= DOUBT;
}

/* What answers x may as well answer f's peer: the two were exchanged. */
static bool is_exchanged(const struct an_flow *x, const struct an_flow *f)
{
	return an_asked(f->peer, x->peer->given.psn);
}

/*
 * Responses in f do not fit its peer. They answer another flow if they are to PSNs that the peer
 * has not sent, or if it sends no more; else they are repeats. Where there is no other flow the
 * capture lost requests.
 */
static struct an_flow *pair_again(
    struct an_flow *all, const struct an_openings *o, struct an_flow *f, roce_psn psn)
{
	struct an_flow *is = f->peer, *x = an_open_find(o, f, psn), *other;
	const bool asked = an_asked(is, psn);

	if (x && (!asked || is->rq->last_sent < x->first))
		return pair(x, f);
	x = asked ? NULL : find_paired(all, f, psn, is_exchanged);
	if (!x)
		return is;
	other = x->peer;
	an_pair_set(x, f);
	an_pair_set(is, other);
	return x;
}

struct an_flow *an_pair_of(
    struct an_flow *all, const struct an_openings *o, struct an_flow *f, roce_psn psn, rwy_time now)
{
	struct an_flow *x = f->peer;

	if (x && !x->cm.known && !an_answers(x, psn)) {
		if (is_time(f))
			x = pair_again(all, o, f, psn);
	} else if (x) {
		f->given.odd = 0;
	} else {
		x = pair(an_open_find(o, f, psn), f);
		if (!x && is_time(f))
			x = pair(find_paired(all, f, psn, is_left), f);
	}
	if (!f->given.first)
		f->given.first = now;
	f->given.last = now;
	f->given.psn = psn;
	return x;
}
