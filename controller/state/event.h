/* SPDX-License-Identifier: Apache-2.0 */
/* The last events, in memory: for the page and the log. Any thread. */
#ifndef CONTROLLER_STATE_EVENT_H
#define CONTROLLER_STATE_EVENT_H

#include <jansson.h>
#include <stdint.h>

enum ctlr_severity { EVENT_INFO, EVENT_WARNING, EVENT_ERROR };

struct ctlr;
struct ctlr_events;

int ctlr_events_new(struct ctlr_events **out); /* RWY_ENOMEM */
void ctlr_events_free(struct ctlr_events *v);  /* NULL: fine */
/* what: the kind of object; name: which one, or NULL. It goes to the log as well. Any thread,
 * locked or not. */
void ctlr_event(struct ctlr *c, enum ctlr_severity severity, const char *what, const char *name,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Those behind number `after`, at most `limit`: {events, next}. The caller's. */
json_t *ctlr_events_json(struct ctlr *c, uint64_t after, unsigned limit);

#endif
