/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways that are one to everybody else (docs/standby.md): which of them serves, by what both
 * say, and whether the other one could take over. Pure: no clock, no JSON; times are the caller's.
 *
 * Each of the two, a *member*, says its state and its *epoch*: one that begins to serve adds 1 to
 * the highest epoch that it knows. So of two that say that they serve, the one with the higher
 * epoch is right, and a process that stood still meanwhile is found out by its lower one.
 */
#ifndef PLAN_STANDBY_H
#define PLAN_STANDBY_H

#include <stdbool.h>
#include <stdint.h>

#define PLAN_MEMBERS     2
#define PLAN_MEMBER_NAME 32 /* bytes with the 0 */

/* X(enumerator, word, sentence). The words are the gateway's (ENG_SB_STATES); those up to LOSING
 * serve. */
#define PLAN_STANDBY_STATES(X)                                                                               \
	X(PLAN_STANDBY_ALONE, "alone", "it serves, and nobody has copies")                                   \
	X(PLAN_STANDBY_COPYING, "copying", "it serves, and the standby gets copies of what there is")        \
	X(PLAN_STANDBY_PAIRING, "pairing", "it serves, and the standby lacks some earlier copies")           \
	X(PLAN_STANDBY_PAIRED, "paired", "it serves, and the standby has everything")                        \
	X(PLAN_STANDBY_LOSING, "losing",                                                                     \
	    "it serves, and asks the witness who goes on: the standby is silent")                            \
	X(PLAN_STANDBY_YIELDING, "yielding", "it hands over to the standby")                                 \
	X(PLAN_STANDBY_ASKING, "asking", "it has just started, and asks who serves")                         \
	X(PLAN_STANDBY_STORING, "storing", "it stores copies, and does not have all yet")                    \
	X(PLAN_STANDBY_READY, "ready", "it has everything, and takes over when it must")                     \
	X(PLAN_STANDBY_TAKING, "taking", "it asks the witness: the one that served is silent")               \
	X(PLAN_STANDBY_REPLACED, "replaced", "the other one serves, and it starts again")

enum plan_standby_state {
#define X(e, w, s) e,
	PLAN_STANDBY_STATES(X)
#undef X
	    PLAN_STANDBY_STATE_COUNT
};

/* The gateway's events (ENG_SB_EVENTS): X(enumerator, word, why it serves, why no standby) */
#define PLAN_STANDBY_EVENTS(X)                                                                               \
	X(PLAN_STANDBY_E_SERVES, "serves", "the other one served", "the other one serves")                   \
	X(PLAN_STANDBY_E_COPIED, "copied", "the other one served", "the other one serves")                   \
	X(PLAN_STANDBY_E_LOSES, "loses", "the other one served", "the other one serves")                     \
	X(PLAN_STANDBY_E_STORES, "stores", "the other one was a standby", "the standby began again")         \
	X(PLAN_STANDBY_E_TAKES, "takes", "both asked the witness", "the standby asked for the tunnels")      \
	X(PLAN_STANDBY_E_ASKS, "asks", "the other one had just started", "the standby started again")        \
	X(PLAN_STANDBY_E_YIELDS, "yields", "the one that served handed over", "the other one handed over")   \
	X(PLAN_STANDBY_E_SILENT, "silent", "the one that served was silent", "the standby is silent")        \
	X(PLAN_STANDBY_E_WALKED, "walked", "all copies were there", "all copies were there")                 \
	X(PLAN_STANDBY_E_GRANTED, "granted", "it started, and nobody else served", "the witness agreed")     \
	X(PLAN_STANDBY_E_REFUSED, "refused", "the witness refused", "the witness refused")                   \
	X(PLAN_STANDBY_E_OVER, "over", "the witness refused for good", "the witness refused for good")       \
	X(PLAN_STANDBY_E_STUCK, "stuck", "a copy failed", "a copy could not be made, or was refused")        \
	X(PLAN_STANDBY_E_TIMER, "timer", "the other one did not answer", "the standby did not take over")    \
	X(PLAN_STANDBY_E_ORDER, "order", "an operator ordered it", "an operator ordered it")

enum plan_standby_event {
#define X(e, w, s, l) e,
	PLAN_STANDBY_EVENTS(X)
#undef X
	    PLAN_STANDBY_EVENT_COUNT
};

/* What a member says of itself. Times: ms since 1970. */
struct plan_standby_status {
	uint8_t state;              /* enum plan_standby_state */
	uint8_t other;              /* the same, as it last heard of the other one */
	bool has_other;             /* false: the other one is silent */
	bool has_served, has_lost;  /* it came to serve; it lost its standby */
	uint8_t served_by, lost_by; /* enum plan_standby_event: by what */
	bool refuses;               /* the controller's document */
	uint64_t configuration;     /* a digest */
	uint64_t epoch;
	uint64_t after; /* the same process said this higher epoch before; 0: it did not */
	uint64_t since_ms, served_ms, lost_ms;
};

struct plan_member {
	char name[PLAN_MEMBER_NAME]; /* "": there is none */
	bool up;                     /* its lease runs */
	bool said; /* st is its present word; false: it said nothing, or the other one took over */
	struct plan_standby_status st;
};

struct plan_standby {
	struct plan_member m[PLAN_MEMBERS];
	int serves;        /* the member that serves, or did last; -1: nobody did */
	uint64_t epoch;    /* its epoch */
	uint64_t since_ms; /* since then */
};

static inline bool plan_standby_state_serves(uint8_t state)
{
	return state <= PLAN_STANDBY_LOSING;
}
/* A member says that it serves. */
static inline bool plan_member_claims(const struct plan_member *m)
{
	return *m->name && m->up && m->said && plan_standby_state_serves(m->st.state);
}

/* Static texts; "" for a number that is none. */
const char *plan_standby_state_name(uint8_t state);
const char *plan_standby_state_text(uint8_t state);
const char *plan_standby_event_name(uint8_t event);
const char *plan_standby_served_text(uint8_t event);
const char *plan_standby_lost_text(uint8_t event);

/* X(enumerator, word, severity: 0 information, 1 warning, 2 error) */
#define PLAN_STANDBY_WHYS(X)                                                                                 \
	X(PLAN_STANDBY_PROTECTED, "protected", 0)                                                            \
	X(PLAN_STANDBY_BOTH, "both-serve", 2)                                                                \
	X(PLAN_STANDBY_PAST, "past-epoch", 2)                                                                \
	X(PLAN_STANDBY_NOBODY, "nobody-serves", 1)                                                           \
	X(PLAN_STANDBY_NO_STANDBY, "no-standby", 1)                                                          \
	X(PLAN_STANDBY_BEHIND, "copies", 1)                                                                  \
	X(PLAN_STANDBY_MISSING, "not-registered", 1)                                                         \
	X(PLAN_STANDBY_LOST, "lost", 1)                                                                      \
	X(PLAN_STANDBY_DIFFER, "differ", 1)                                                                  \
	X(PLAN_STANDBY_REFUSES, "refuses", 1)

enum plan_standby_why {
#define X(e, w, s) e,
	PLAN_STANDBY_WHYS(X)
#undef X
	    PLAN_STANDBY_WHY_COUNT
};
const char *plan_standby_why_name(enum plan_standby_why why);
unsigned plan_standby_why_severity(enum plan_standby_why why);

struct plan_standby_verdict {
	enum plan_standby_why why; /* PLAN_STANDBY_PROTECTED: the other one could take over */
	char text[240];
};

/*
 * Member k says st: takes it, and decides who serves. A member that served and does not any more is
 * no longer believed (said: false) until it speaks again.
 */
void plan_standby_settle(struct plan_standby *p, unsigned k, const struct plan_standby_status *st);
/* Member k is another process now, with nothing said. */
void plan_standby_restart(struct plan_standby *p, unsigned k);
/* differ: in what the configurations of both differ, for people; "": in nothing. */
void plan_standby_judge(const struct plan_standby *p, const char *differ, struct plan_standby_verdict *out);
/* True if b says something else than a, times aside. */
bool plan_standby_status_differs(const struct plan_standby_status *a, const struct plan_standby_status *b);

#endif
