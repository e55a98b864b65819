/* SPDX-License-Identifier: Apache-2.0 */
/* The last events in memory; see event.h. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "controller/state/ctlr.h"
#include "controller/state/event.h"

#define EVENTS 4096

struct ctlr_events {
	pthread_mutex_t lock;
	uint64_t n; /* number of events since the start */
	struct {
		uint64_t time_ms;
		enum ctlr_severity severity;
		char what[16], name[2 * MDL_NAME + MDL_ID], text[256];
	} e[EVENTS];
};

int ctlr_events_new(struct ctlr_events **out)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return RWY_ENOMEM;
	pthread_mutex_init(&(*out)->lock, NULL);
	return 0;
}

void ctlr_events_free(struct ctlr_events *v)
{
	if (v)
		pthread_mutex_destroy(&v->lock);
	free(v);
}

void ctlr_event(
    struct ctlr *c, enum ctlr_severity severity, const char *what, const char *name, const char *fmt, ...)
{
	static const int level[] = {GW_LOG_INFO, GW_LOG_WARNING, GW_LOG_ERROR};
	struct ctlr_events *events = c->events;
	char text[256];
	va_list ap;
	unsigned i;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	gw_log(level[severity], what, "%s%s%s", name ? name : "", name ? ": " : "", text);
	pthread_mutex_lock(&events->lock);
	i = events->n++ % EVENTS;
	events->e[i].time_ms = ctlr_wall_ms();
	events->e[i].severity = severity;
	snprintf(events->e[i].what, sizeof(events->e[i].what), "%s", what);
	snprintf(events->e[i].name, sizeof(events->e[i].name), "%s", name ? name : "");
	memcpy(events->e[i].text, text, sizeof(text));
	pthread_mutex_unlock(&events->lock);
}

json_t *ctlr_events_json(struct ctlr *c, uint64_t after, unsigned limit)
{
	struct ctlr_events *events = c->events;
	static const char *const word[] = {"info", "warning", "error"};
	json_t *list = json_array();
	uint64_t next;

	pthread_mutex_lock(&events->lock);
	next = after > events->n ? events->n : after;
	if (events->n > EVENTS && next < events->n - EVENTS)
		next = events->n - EVENTS;
	for (; next < events->n && json_array_size(list) < limit; next++) {
		const unsigned i = next % EVENTS;
		json_t *e = json_pack("{s:I, s:I, s:s, s:s, s:s}", "id", (json_int_t)next + 1, "time_ms",
		    (json_int_t)events->e[i].time_ms, "severity", word[events->e[i].severity], "what",
		    events->e[i].what, "text", events->e[i].text);

		if (!e) /* a client's text that is not UTF-8 */
			continue;
		if (*events->e[i].name)
			json_object_set_new(e, "name", json_string(events->e[i].name));
		json_array_append_new(list, e);
	}
	pthread_mutex_unlock(&events->lock);
	return json_pack("{s:o, s:I}", "events", list, "next", (json_int_t)next);
}
