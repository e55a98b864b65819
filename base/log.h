/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error, one event per line: level, UTC time, module, then a sentence or
 * key=value pairs. Under journald the level is written as its "<n>" prefix and the journal adds the
 * time. Any thread; a line is one write(). Nobody waits for the reader: while standard error, a
 * pipe, a socket or a terminal, has no room, lines are lost, and the next one comes behind a line
 * that tells how many. A terminal may show the beginning of a lost line. Writes to a terminal that
 * this user may not open do wait.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum gw_log_level { GW_LOG_ERROR, GW_LOG_WARNING, GW_LOG_NOTICE, GW_LOG_INFO, GW_LOG_DEBUG };

/* Sets the level above which nothing is written. Call it once before threads start; later use
 * gw_log_set. */
void gw_log_init(int level);
/* One JSON object a line instead: time, level, module, message. Call it before threads start. */
void gw_log_json(bool on);
/* Returns the former level. */
int gw_log_set(int level);
void gw_log(int level, const char *module, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
