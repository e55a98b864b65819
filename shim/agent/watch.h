/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's client of the controller's API: it watches the redirects of its site by a long poll
 * and keeps a lease. It uses one of several controllers at a time and the next one when that one
 * fails; when all have failed it waits, longer each time. One thread.
 */
#ifndef SHIM_AGENT_WATCH_H
#define SHIM_AGENT_WATCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"
#include "shim/agent/conf.h"

#define HAGENT_WHY 400

struct hagent_watch_ops {
	/* A new policy, as the text of a file. False, with why: the one before stays. */
	bool (*policy)(
	    void *ctx, const char *text, uint64_t generation, const char *from, char why[HAGENT_WHY]);
	/* Addresses of relays that do not answer, an array for the caller; NULL: no memory. */
	json_t *(*down)(void *ctx);
};

struct hagent_watch;

/* conf and ops stay the caller's and outlive it. RWY_ENOMEM. */
RWY_MUST_CHECK int hagent_watch_new(
    struct hagent_watch **out, const struct hagent_conf *conf, const struct hagent_watch_ops *ops, void *ctx);
void hagent_watch_free(struct hagent_watch *w); /* NULL is allowed */
/* Begins requests that are due and hears answers; never blocks. */
void hagent_watch_turn(struct hagent_watch *w, rwy_time now);
/* Waits for an answer, at most so long. */
void hagent_watch_wait(struct hagent_watch *w, int most_ms);
/* Whether a controller has renewed the lease, and it has not run out. So it is for 30 s after the
 * first turn, too: what an agent before this one wrote stays for so long. */
bool hagent_watch_holds(const struct hagent_watch *w, rwy_time now);
/* The next turn tells what was learned of relays. */
void hagent_watch_news(struct hagent_watch *w);

#endif
