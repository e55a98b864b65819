/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks each relay of a policy at intervals whether it is there. A relay that leaves three questions
 * in a row without an answer is down, and is up again with two answers in a row. All of it is the
 * agent's one thread; nothing blocks.
 */
#ifndef SHIM_AGENT_PROBE_H
#define SHIM_AGENT_PROBE_H

#include "shim/policy.h"

struct hagent_probe;

/* every: between two questions to one relay. RWY_ENOMEM. */
RWY_MUST_CHECK int hagent_probe_new(struct hagent_probe **out, rwy_dur every);
void hagent_probe_free(struct hagent_probe *p); /* NULL is allowed */
/* Asks the relays of this policy from now on; of those that it had, what is known stays. */
void hagent_probe_set(struct hagent_probe *p, const struct shim_policy *policy);
/* Asks and hears. Returns whether a relay went down or came up. */
bool hagent_probe_turn(struct hagent_probe *p, rwy_time now);
/* Whether the relay of this address and port is down. One that is not asked is not. */
bool hagent_probe_down(const struct hagent_probe *p, const struct shim_relay *r);
/* When the next question is due. */
rwy_time hagent_probe_next(const struct hagent_probe *p);

#endif
