/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's conversation with relays, for the libraries and roceway-run. It blocks for a round trip
 * on the LAN; for about two seconds a relay that does not answer. Errors are negative errno values.
 * Any thread.
 */
#ifndef SHIM_TALK_H
#define SHIM_TALK_H

#include "proxy/ask.h"
#include "shim/policy.h"

/*
 * Asks one relay and waits for its answer, which is then in *a. from: the source address, as the
 * relay is to see it; NULL: the kernel's choice. The cookie is learned on the way. -EHOSTUNREACH:
 * no relay answers; -EACCES and others: it refuses, and a->answer says why.
 */
RWY_MUST_CHECK int shim_talk(const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a);
/* The same, with at most `tries` datagrams, each waited for as long as the first one. */
RWY_MUST_CHECK int shim_talk_briefly(
    const struct shim_relay *r, const struct rwy_ip *from, struct proxy_ask *a, unsigned tries);

/*
 * Asks the relays of a rule in their order, those of one order by weight, until one grants it. *by
 * is it, or the last that was asked. A relay that does not answer is left out for 10 s, unless
 * there is no other. After a refusal no other relay is asked, unless the relay had no room or no
 * QPN (-ENOSPC).
 */
RWY_MUST_CHECK int shim_talk_any(struct shim_policy *p, const struct shim_rule *rule,
    const struct rwy_ip *from, struct proxy_ask *a, struct shim_relay **by);

#endif
