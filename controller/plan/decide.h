/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision which carrier a session or a pair of gateways uses, and how much bandwidth. This is
 * policy and nothing else: no I/O, clock, log, JSON or allocation. The caller keeps one struct
 * plan_hyst per tunnel, all 0 at first; it is the memory that keeps the decision from flapping. A
 * decision carries its inputs and its reason, so that it can be explained later, by plan_explain()
 * or field by field.
 *
 * The order of preference between equals is rdma, native, tcp, quic. RDMA comes first because the
 * NICs do its work; it is possible only where a network has promised the path, hardly anything is
 * lost, and both gateways have it.
 *
 * Cost: four predictions, however many gateways, tunnels or sessions there are.
 * Thread: none of its own; one at a time per plan_hyst.
 */
#ifndef PLAN_DECIDE_H
#define PLAN_DECIDE_H

#include <stddef.h>

#include "controller/plan/goodput.h"
#include "controller/plan/path.h"

/* The rule that decided. X(enumerator, word, sentence) */
#define PLAN_RULES(X)                                                                                        \
	X(PLAN_RULE_NONE, "no-carrier", "no carrier is possible: the alternatives say why")                  \
	X(PLAN_RULE_PINNED, "pinned", "the operator named the carrier")                                      \
	X(PLAN_RULE_ONLY, "only", "the only carrier that both gateways have")                                \
	X(PLAN_RULE_FIRST, "best", "no carrier before: the one that carries most")                           \
	X(PLAN_RULE_ENOUGH, "enough",                                                                        \
	    "no carrier before: of those that carry the demand the first in order")                          \
	X(PLAN_RULE_STAYS, "stays", "the carrier in use is the best, or nothing is better by enough")        \
	X(PLAN_RULE_CONFIRM, "confirming", "another carrier is better, but not yet for long enough")         \
	X(PLAN_RULE_HELD, "held", "another carrier is better, but the last change is too young")             \
	X(PLAN_RULE_MOVED, "moved", "another carrier has been better by enough for long enough")             \
	X(PLAN_RULE_HOME, "home", "a carrier earlier in order has been as good for long")                    \
	X(PLAN_RULE_FAILED, "failed", "the carrier in use is no longer possible")

enum plan_rule {
#define X(e, w, s) e,
	PLAN_RULES(X)
#undef X
	    PLAN_RULE_COUNT
};
/* The rule's word and its sentence; static text. */
const char *plan_rule_name(enum plan_rule r);
const char *plan_rule_text(enum plan_rule r);

/* Parameters of the policy. */
struct plan_policy {
	/* efficiency a: payload / what the gateway sends; 1..10^6 */
	uint32_t gateway_ppm[PLAN_CARRIER_COUNT];
	uint32_t wan_ppm; /* efficiency b: what the WAN's own headers leave, before loss; 1..10^6 */
	/* a carrier is as good as the best if it is less by no more than this share */
	uint32_t tie_ppm;
	uint32_t gain_ppm; /* another carrier must promise more by this share */
	rwy_dur confirm;   /* ... for this long without a break */
	rwy_dur hold;      /* minimum time between two changes of a tunnel */
	/* an earlier carrier in order must be as good for this long without a break */
	rwy_dur home;
};
/* Fills the defaults; docs/controller-planning.md says where they come from. */
void plan_policy_default(struct plan_policy *p);
/* RWY_EINVAL: an efficiency of 0 or above 1, a tie above 1, or a gain above 10. */
RWY_MUST_CHECK int plan_policy_check(const struct plan_policy *p);

/* A tunnel's memory between decisions. All 0: nothing is decided yet. */
struct plan_hyst {
	bool has;        /* a carrier is in use */
	bool homing;     /* an earlier carrier in order is as good since `home_at` */
	uint8_t carrier; /* enum plan_carrier: the one in use */
	/* enum plan_carrier: the one that is better since `better_at`; == carrier: none */
	uint8_t challenger;
	rwy_time changed_at; /* when the carrier came into use */
	rwy_time better_at, home_at;
};

struct plan_question {
	struct plan_caps source, destination;
	struct plan_path path;
	uint64_t demand_bps;      /* payload; 0: unknown, as much as possible */
	enum plan_carrier pinned; /* PLAN_ANY: the policy chooses */
};

struct plan_alternative {
	uint64_t goodput_bps; /* predicted; 0: the carrier is not possible */
	enum plan_limit limit;
	bool enough; /* it carries the demand */
};

struct plan_decision {
	enum plan_carrier carrier; /* PLAN_ANY: none is possible */
	enum plan_carrier before;  /* PLAN_ANY: there was none */
	enum plan_rule rule;
	bool changed; /* carrier != before */
	bool enough;  /* the demand fits; if not, the rates are cut to what fits */
	/* payload planned for: the demand, at most the prediction; for an unknown demand the
	 * prediction */
	uint64_t n_bps;
	uint64_t gateway_bps;  /* n/a */
	uint64_t edge_bps;     /* n/(a*b) */
	uint32_t a_ppm, b_ppm; /* as used: b is the policy's, less the loss of the path */
	rwy_time at;
	rwy_time again_at; /* decide again at this time even without new reports; or RWY_NEVER */
	struct plan_alternative alt[PLAN_CARRIER_COUNT];
	struct plan_question asked; /* the inputs, each value with source and time */
	struct plan_policy policy;
};

/* Decides and updates h. It cannot fail: where no carrier is possible the decision is PLAN_ANY. A
 * policy that plan_policy_check() refuses is replaced by the default. */
void plan_decide(struct plan_decision *out, const struct plan_question *q, const struct plan_policy *p,
    struct plan_hyst *h, rwy_time now);

/* n/a and n/(a*b), rounded up, at most PLAN_RATE_MAX. An efficiency of 0 counts as 1 ppm, one above
 * 10^6 as 10^6. */
uint64_t plan_gateway_bps(uint64_t n_bps, uint32_t a_ppm);
uint64_t plan_edge_bps(uint64_t n_bps, uint32_t a_ppm, uint32_t b_ppm);

/*
 * Writes the decision as text, some 20 lines, into buf: always terminated, cut where buf is full.
 * `name` gives the names of sources; NULL: their numbers. Returns the full length, as snprintf.
 */
typedef const char *plan_source_name_cb(void *ctx, uint32_t source);
size_t plan_explain(
    char *buf, size_t len, const struct plan_decision *d, plan_source_name_cb *name, void *ctx);

#endif
