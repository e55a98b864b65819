/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `roceway explain` only: the output for people. explain.c makes the requests. */
#ifndef TOOLS_EXPLAIN_H
#define TOOLS_EXPLAIN_H

#include "tools/roceway/roceway.h"

/* Prints a session's explanation; `events` (an array) are its tunnel's. explain_text.c */
void explain_print(const json_t *x, const json_t *events);
/* Prints a job with its plan and its events. explain_job.c */
void explain_print_job(const json_t *job, const json_t *events);

/* Prints a gateway, with the two of a pair, and its events. explain_gateway.c */
void explain_print_gateway(const json_t *gateway, const json_t *events);

/* explain_table.c: a job's tunnels in networks; events, oldest first. */
void explain_print_network(const json_t *tunnels);
/* Prints events, oldest first. */
void explain_print_events(const json_t *events);
const char *explain_bps(const json_t *o, const char *key); /* "9.40 Gbps", "-" for 0 */
const char *explain_us(const json_t *o, const char *key);  /* "31.4 ms" */
/* Milliseconds since 1970 as UTC. The text is valid until the next call. */
const char *explain_when(const json_t *o, const char *key);

#endif
