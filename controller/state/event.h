/* SPDX-License-Identifier: Apache-2.0 */
/* The last events, in memory: for the page and the log. Any thread. */
#ifndef CONTROLLER_STATE_EVENT_H
#define CONTROLLER_STATE_EVENT_H

#include <jansson.h>
#include <stdint.h>

enum severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR };
/* Any thread; goes to the log as well. */
void event(enum severity severity, const char *what, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
json_t *events_json(uint64_t after, unsigned limit);

#endif
