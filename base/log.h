/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error, one event a line: level, UTC time, module, then a sentence or key=value pairs.
 * Under journald the level goes out as its "<n>" prefix and the time is left to the journal. Any thread; a
 * line is one write().
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum gw_log_level { GW_LOG_ERROR, GW_LOG_WARNING, GW_LOG_NOTICE, GW_LOG_INFO, GW_LOG_DEBUG };

/* Levels above `level` are not written. Once, before threads start; then: gw_log_set. */
void gw_log_init(int level);
int gw_log_set(int level); /* the level that was */
void gw_log(int level, const char *module, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
