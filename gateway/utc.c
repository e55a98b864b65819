/* SPDX-License-Identifier: Apache-2.0 */
/* UTC of an instant of the gateway's clock. */
#include <time.h>

#include "gateway/app.h"

uint64_t gw_utc(rwy_time t)
{
	struct timespec ts;
	rwy_time now;

	clock_gettime(CLOCK_REALTIME, &ts);
	now = gw_now();
	return (uint64_t)ts.tv_sec * RWY_SEC + (uint64_t)ts.tv_nsec - now + t;
}
