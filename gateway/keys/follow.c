/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/keys/follow.h"

struct keys_pair_news keys_pair_look(struct keys_pair *seen, const struct gw_app *app)
{
	/* gw_pair_set() counts before it stores the state. So this reads the state first. */
	const int pair = atomic_load(&app->pair);
	const uint32_t gave_up = atomic_load(&app->pair_gave_up);
	struct keys_pair_news n = {.shown = gw_pair_hides(seen->pair) && !gw_pair_hides(pair)};

	/* One that asks again needs its keys; it is counted once more when it gives up. */
	n.gave_up = pair == GW_PAIR_HIDES && gave_up != seen->gave_up;
	if (n.gave_up)
		seen->gave_up = gave_up;
	seen->pair = pair;
	return n;
}
