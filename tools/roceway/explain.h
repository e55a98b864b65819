/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `roceway explain` only: what it prints for people. Not here: how it is asked for (explain.c). */
#ifndef TOOLS_EXPLAIN_H
#define TOOLS_EXPLAIN_H

#include "tools/roceway/roceway.h"

/* A session's explanation; `events` (an array) is what happened to its tunnel. explain_text.c */
void explain_print(const json_t *x, const json_t *events);
/* A job with its plan; `events` is what happened to it. explain_job.c */
void explain_print_job(const json_t *job, const json_t *events);

/* explain_table.c: tunnels in networks, as `network` of a job has them; events, oldest first. */
void explain_print_network(const json_t *tunnels);
void explain_print_events(const json_t *events);
const char *explain_bps(const json_t *o, const char *key); /* "9.40 Gbps", "-" for 0 */
const char *explain_us(const json_t *o, const char *key);  /* "31.4 ms" */
/* Milliseconds since 1970 as UTC. The text is good until the next call. */
const char *explain_when(const json_t *o, const char *key);

#endif
