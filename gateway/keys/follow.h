/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of keys looks at the gateway as one of a pair (gw_app.pair): what is new there. */
#ifndef GATEWAY_KEYS_FOLLOW_H
#define GATEWAY_KEYS_FOLLOW_H

#include "gateway/app.h"

/* As of the last look; zeros before the first one. */
struct keys_pair {
	int pair;         /* gw_app.pair */
	uint32_t gave_up; /* gw_app.pair_gave_up, of what was acted on */
};

struct keys_pair_news {
	bool shown;   /* the WAN can be reached since then */
	bool gave_up; /* it asked the witness since then, with the keys it was given, and gave up */
};

/*
 * Looks again. A gateway may ask the witness and give up between two looks. Thread: the caller's,
 * which is no worker.
 */
struct keys_pair_news keys_pair_look(struct keys_pair *seen, const struct gw_app *app);

#endif
