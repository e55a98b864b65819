/* SPDX-License-Identifier: Apache-2.0 */
/* The made-up gateway has a drain, a flight recorder, and packets. */
#ifndef TESTS_COMPONENT_API_DRAIN_H
#define TESTS_COMPONENT_API_DRAIN_H

#include "gateway/app.h"

/* server.c */
unsigned fake_worker(const struct eng *e);

/* Each engine owes `owed` bytes when it is drained; stuck: for ever. Returns 0 or an error. */
int fake_drain_start(struct gw_app *app, uint64_t owed, bool stuck);
void fake_drain_stop(void); /* before the API's end */

/* recorder.c: fills the flight recorders. Returns 0 or an error. */
int fake_recorder_start(rwy_time now);
void fake_recorder_stop(void); /* after the API's end */

/* packets.c: gives captures so many packets a second, each at two stages. Returns 0 or an error. */
int fake_packets_start(struct gw_app *app, uint64_t rate);
uint64_t fake_packets_lost(void); /* which found no room */
void fake_packets_stop(void);     /* after the API's end */

#endif
