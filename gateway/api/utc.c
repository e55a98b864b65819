/* SPDX-License-Identifier: Apache-2.0 */
/* Times as people read them. */
#include "gateway/api/api.h"

#include <time.h>

void api_utc(rwy_time t, char text[32])
{
	/* The nearest second: the same for each question, but for what the clocks drift. */
	const time_t at = (time_t)((gw_utc(t) + RWY_SEC / 2) / RWY_SEC);
	struct tm tm;

	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
}
