/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last events in memory, for the page. Each one is also a line of the log.
 * Thread: any.
 */
#ifndef CONTROLLER_STATE_EVENT_H
#define CONTROLLER_STATE_EVENT_H

#include <jansson.h>
#include <stdint.h>

enum ctlr_severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR };

struct ctlr;
struct ctlr_events;

int ctlr_events_new(struct ctlr_events **out); /* RWY_ENOMEM */
void ctlr_events_free(struct ctlr_events *v);  /* NULL is allowed */
/* Adds an event. what: the kind of object; name: the object, or NULL. Thread: any, locked or
 * not. */
void ctlr_event(struct ctlr *c, enum ctlr_severity severity, const char *what, const char *name,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Events with a number above `after`, at most `limit`: {events, next}. The caller owns it; NULL:
 * out of memory. */
json_t *ctlr_events_json(struct ctlr *c, uint64_t after, unsigned limit);

#endif
