/* SPDX-License-Identifier: Apache-2.0 */
/* The two clocks of the controller, in a file of its own: a test links another one in its place. */
#include <time.h>

#include "controller/state/ctlr.h"

rwy_time ctlr_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (rwy_time)ts.tv_sec * RWY_SEC + (rwy_time)ts.tv_nsec;
}

uint64_t ctlr_wall_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}
