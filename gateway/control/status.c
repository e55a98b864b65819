/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/control/status.h"

#include <stdio.h>

#include "base/notify.h"

/* NULL: drain.c says it. */
static const char *words_of(const struct gw_app *app)
{
	static const char *const words[] = {[GW_PAIR_NONE] = "forwarding",
	    [GW_PAIR_HIDES] = "standby of a pair",
	    [GW_PAIR_ASKS] = "asks the witness of its pair",
	    [GW_PAIR_SERVES] = "forwarding",
	    [GW_PAIR_REPLACED] = "replaced by the other gateway of its pair"};

	return atomic_load(&app->state) == GW_RUNNING ? words[atomic_load(&app->pair)] : NULL;
}

void gw_status_say(const struct gw_app *app, bool ready, const char *more)
{
	const char *words = words_of(app);
	char text[1024] = "";

	if (words)
		snprintf(
		    text, sizeof(text), "STATUS=%s%s%s", words, more ? more : "", ready ? "\nREADY=1" : "");
	else if (ready)
		snprintf(text, sizeof(text), "READY=1");
	if (*text)
		gw_notify(text);
}
