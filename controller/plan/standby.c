/* SPDX-License-Identifier: Apache-2.0 */
/* Who of a pair of gateways serves, and whether the other one could: see standby.h. */
#include "controller/plan/standby.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *text;
} states[] = {
#define X(e, w, s) [e] = {w, s},
    PLAN_STANDBY_STATES(X)
#undef X
};

static const struct {
	const char *name, *served, *lost;
} events[] = {
#define X(e, w, s, l) [e] = {w, s, l},
    PLAN_STANDBY_EVENTS(X)
#undef X
};

static const struct {
	const char *name;
	unsigned severity;
} whys[] = {
#define X(e, w, s) [e] = {w, s},
    PLAN_STANDBY_WHYS(X)
#undef X
};

const char *plan_standby_state_name(uint8_t state)
{
	return state < PLAN_STANDBY_STATE_COUNT ? states[state].name : "";
}

const char *plan_standby_state_text(uint8_t state)
{
	return state < PLAN_STANDBY_STATE_COUNT ? states[state].text : "";
}

const char *plan_standby_event_name(uint8_t event)
{
	return event < PLAN_STANDBY_EVENT_COUNT ? events[event].name : "";
}

const char *plan_standby_served_text(uint8_t event)
{
	return event < PLAN_STANDBY_EVENT_COUNT ? events[event].served : "";
}

const char *plan_standby_lost_text(uint8_t event)
{
	return event < PLAN_STANDBY_EVENT_COUNT ? events[event].lost : "";
}

const char *plan_standby_why_name(enum plan_standby_why why)
{
	return whys[why].name;
}

unsigned plan_standby_why_severity(enum plan_standby_why why)
{
	return whys[why].severity;
}

bool plan_standby_status_differs(const struct plan_standby_status *a, const struct plan_standby_status *b)
{
	return a->state != b->state || a->has_other != b->has_other ||
	       (a->has_other && a->other != b->other) || a->has_served != b->has_served ||
	       (a->has_served && a->served_by != b->served_by) || a->has_lost != b->has_lost ||
	       (a->has_lost && a->lost_by != b->lost_by) || a->refuses != b->refuses ||
	       a->epoch != b->epoch || a->configuration != b->configuration;
}

/* --- who serves ------------------------------------------------------------------------------- */

static void begin(struct plan_standby *p, unsigned k)
{
	const struct plan_standby_status *st = &p->m[k].st;
	struct plan_member *other = &p->m[!k];

	/* What it said last was true then: it died, or stands still. */
	if (p->serves == (int)!k && plan_member_claims(other) && other->st.epoch < st->epoch)
		other->said = false;
	p->serves = (int)k;
	p->epoch = st->epoch;
	p->since_ms = st->has_served ? st->served_ms : st->since_ms;
}

void plan_standby_settle(struct plan_standby *p, unsigned k, const struct plan_standby_status *st)
{
	struct plan_member *m = &p->m[k];
	const bool claims = plan_standby_state_serves(st->state), ours = p->serves == (int)k;
	const uint64_t most = m->st.after > m->st.epoch ? m->st.after : m->st.epoch;
	/* One process never goes back in time while it serves. */
	const bool back = claims && m->said && plan_member_claims(m) && st->epoch < most;
	bool heard_elsewhere;

	m->st = *st;
	m->st.after = back ? most : 0;
	m->said = true;
	heard_elsewhere = p->serves >= 0 && !ours && plan_member_claims(&p->m[!k]);
	if (!claims || back || (ours && st->epoch == p->epoch) || (heard_elsewhere && st->epoch <= p->epoch))
		return;
	begin(p, k);
}

void plan_standby_restart(struct plan_standby *p, unsigned k)
{
	p->m[k].said = false;
	memset(&p->m[k].st, 0, sizeof(p->m[k].st));
}

/* --- what it is worth ------------------------------------------------------------------------- */

#define SAY(o, w, ...)                                                                                       \
	do {                                                                                                 \
		(o)->why = (w);                                                                              \
		snprintf((o)->text, sizeof((o)->text), __VA_ARGS__);                                         \
	} while (0)

/* Members that contradict each other, or themselves. False: none does. */
static bool contradict(const struct plan_standby *p, struct plan_standby_verdict *out)
{
	const struct plan_member *a = &p->m[0], *b = &p->m[1];

	for (unsigned k = 0; k < PLAN_MEMBERS; k++)
		if (plan_member_claims(&p->m[k]) && p->m[k].st.after) {
			SAY(out, PLAN_STANDBY_PAST,
			    "%s says that it serves in epoch %" PRIu64 ", and said %" PRIu64 " before",
			    p->m[k].name, p->m[k].st.epoch, p->m[k].st.after);
			return true;
		}
	if (!plan_member_claims(a) || !plan_member_claims(b))
		return false;
	if (a->st.epoch == b->st.epoch) {
		SAY(out, PLAN_STANDBY_BOTH, "%s and %s both say that they serve, in epoch %" PRIu64, a->name,
		    b->name, a->st.epoch);
		return true;
	}
	const struct plan_member *old = a->st.epoch < b->st.epoch ? a : b, *now = old == a ? b : a;

	SAY(out, PLAN_STANDBY_PAST,
	    "%.31s says that it serves in epoch %" PRIu64 ", which is past: %.31s serves in epoch %" PRIu64,
	    old->name, old->st.epoch, now->name, now->st.epoch);
	return true;
}

/* What the one that serves says. False: the other one has all copies. */
static bool lacks_copies(
    const struct plan_member *m, const struct plan_member *other, struct plan_standby_verdict *out)
{
	const char *by = m->st.has_lost ? plan_standby_lost_text(m->st.lost_by) : NULL;
	const char *heard = m->st.has_other ? plan_standby_state_name(m->st.other) : "silent";

	switch ((enum plan_standby_state)m->st.state) {
	case PLAN_STANDBY_PAIRED:
		return false;
	case PLAN_STANDBY_COPYING:
	case PLAN_STANDBY_PAIRING:
		SAY(out, PLAN_STANDBY_BEHIND, "%s is %s: the standby does not have all copies yet", m->name,
		    plan_standby_state_name(m->st.state));
		return true;
	case PLAN_STANDBY_ALONE:
	case PLAN_STANDBY_LOSING:
	case PLAN_STANDBY_YIELDING:
	case PLAN_STANDBY_ASKING:
	case PLAN_STANDBY_STORING:
	case PLAN_STANDBY_READY:
	case PLAN_STANDBY_TAKING:
	case PLAN_STANDBY_REPLACED:
	case PLAN_STANDBY_STATE_COUNT:
		break;
	}
	SAY(out, PLAN_STANDBY_NO_STANDBY, "%s is %s: %s%s%s is %s", m->name,
	    plan_standby_state_name(m->st.state), by ? by : "", by ? "; " : "",
	    *other->name ? other->name : "the other one", heard);
	return true;
}

void plan_standby_judge(const struct plan_standby *p, const char *differ, struct plan_standby_verdict *out)
{
	const struct plan_member *m = p->serves >= 0 ? &p->m[p->serves] : NULL;
	const struct plan_member *other = m ? &p->m[!p->serves] : NULL;

	if (contradict(p, out))
		return;
	if (!m || !m->up || !m->said) {
		SAY(out, PLAN_STANDBY_NOBODY, "no gateway of the pair says that it serves");
		return;
	}
	if (lacks_copies(m, other, out))
		return;
	if (!*other->name)
		SAY(out, PLAN_STANDBY_MISSING, "the standby of %s has not registered", m->name);
	else if (!other->up)
		SAY(out, PLAN_STANDBY_LOST, "%s does not renew its lease: it has no new documents",
		    other->name);
	else if (*differ)
		SAY(out, PLAN_STANDBY_DIFFER, "%s and %s differ in %s", m->name, other->name, differ);
	else if (other->said && other->st.refuses)
		SAY(out, PLAN_STANDBY_REFUSES, "%s refuses the document", other->name);
	else if (!other->said || other->st.state != PLAN_STANDBY_READY)
		SAY(out, PLAN_STANDBY_BEHIND, "%s is %s", other->name,
		    other->said ? plan_standby_state_name(other->st.state) : "silent since its start");
	else
		SAY(out, PLAN_STANDBY_PROTECTED, "%s serves, and %s has everything", m->name, other->name);
}
