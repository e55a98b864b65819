/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of `roceway why` about the end of a connection, and about requests that are refused. */
#include "tools/roceway/why.h"

#include <stdarg.h>
#include <string.h>

#include "engine/why.h"

void why_add(json_t *list, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(list, json_string(text));
}

/* "2026-11-26 07:03:45 UTC" of an entry. Valid until the call after the next. */
static const char *when(const json_t *entry)
{
	static char text[2][40];
	static unsigned i;

	i ^= 1;
	snprintf(text[i], sizeof(text[i]), "%.10s %.8s UTC", js(entry, "time"),
	    strlen(js(entry, "time")) > 11 ? js(entry, "time") + 11 : "");
	return text[i];
}

/* The newest entry of this kind; NULL: there is none. */
static const json_t *newest(const struct why *w, const char *kind)
{
	for (size_t i = json_array_size(w->entries); i--;)
		if (!strcmp(js(json_array_get(w->entries, i), "kind"), kind))
			return json_array_get(w->entries, i);
	return NULL;
}

static const json_t *oldest(const struct why *w, const char *kind)
{
	const json_t *o;
	size_t i;

	json_array_foreach(w->entries, i, o) if (!strcmp(js(o, "kind"), kind)) return o;
	return NULL;
}

static unsigned count_of(const struct why *w, const char *kind)
{
	const json_t *o;
	unsigned n = 0;
	size_t i;

	json_array_foreach(w->entries, i, o) n += !strcmp(js(o, "kind"), kind);
	return n;
}

/* Explains an end where `host` itself ended the connection; NULL: nothing to add. */
static const char *advice_beside(unsigned why)
{
	switch (why) {
	case ENG_END_REFUSED:
		return "a request has a wrong key, address or permission, or does not fit what it posted";
	case ENG_END_SILENT:
		return "it is down, its queue pair is gone or in error, or its LAN loses packets";
	case ENG_END_NOT_READY:
		return "it posted no receives for what was sent to it";
	case ENG_END_LOST:
		return "what it had been told is done may have died with a gateway, so both hosts get an "
		       "error";
	case ENG_END_ANSWER_LOST:
		return "what it had been told is done died with a gateway, so both hosts get an error";
	case ENG_END_FORGOTTEN:
		return "its queue pair no longer exists, or was created again";
	case ENG_END_MALFORMED:
		return "the other gateway sent a request that is not valid: a fault of a gateway";
	case ENG_END_NO_MEMORY:
		return "this gateway had no packet buffer when it was needed (`roceway memory`)";
	case ENG_END_UNDELIVERED:
		return "what it had been acknowledged could not be delivered in the other direction";
	case ENG_CAUSE_NO_FLOW:
		return "this gateway had no memory, or no tunnel, for it (`roceway memory`, `roceway "
		       "tunnels`)";
	case ENG_CAUSE_LOST:
		return "it has an ACK of a gateway that is gone";
	case ENG_CAUSE_NO_TUNNEL:
		return "somebody removed the tunnel while requests were in custody";
	case ENG_CAUSE_REFUSED:
		return "the far gateway does not admit it, lacks its tenant, or is full: ask there, `roceway "
		       "recorder --kind refused`";
	case ENG_CAUSE_DAMAGED:
	case ENG_CAUSE_READ_DAMAGED:
		return "bytes changed inside a gateway: look at its memory";
	case ENG_CAUSE_READ_GONE:
	case ENG_CAUSE_ATOMIC_GONE:
		return "it repeated a request later than the gateway keeps answers";
	case ENG_CAUSE_STORED:
		return "its copies at the standby gateway were damaged: a fault of a gateway";
	}
	return NULL;
}

static void say_fail(const struct why *w, const json_t *fail, json_t *list)
{
	const bool requester = !strcmp(js(fail, "side"), "requester");
	const unsigned why = (unsigned)ji(fail, "value");
	const char *advice = advice_beside(why);

	if (!requester && why < ENG_ENDS) {
		if (w->other)
			why_add(list, "The other gateway says why, below.");
		else
			why_add(list,
			    "The other gateway says why: `roceway why %s %s` there, or `--other` here.",
			    w->remote, w->local);
		return;
	}
	if (advice)
		why_add(list, "%s: %s.", w->local, advice);
	if (requester && why == ENG_END_SILENT && count_of(w, "timeout"))
		why_add(list, "The recorder has %u times that %s did not answer in time, the first at %s.",
		    count_of(w, "timeout"), w->local, when(oldest(w, "timeout")));
}

/* True: the connection that is there now began after it. */
static bool is_earlier(const struct why *w, const json_t *fail)
{
	return w->flow && strcmp(js(w->flow, "state"), "failed") != 0;
}

static void say_refused(const struct why *w, json_t *list)
{
	const json_t *r = newest(w, "refused");
	const char *why = r ? strchr(js(r, "text"), ':') : NULL;
	char times[24] = "";

	if (!why)
		return;
	if (count_of(w, "refused") > 1)
		snprintf(times, sizeof(times), " (%u entries)", count_of(w, "refused"));
	why_add(
	    list, "Requests were refused%s, the last %s ago%s.", times, say_time(jn(r, "ago_seconds")), why);
}

void why_say_failed(const struct why *w, json_t *list)
{
	const json_t *fail = newest(w, "fail"), *lost = newest(w, "lost");
	const char *text = fail ? strchr(js(fail, "text"), ':') : NULL;

	if (text && is_earlier(w, fail))
		why_add(list, "An earlier connection of these queue pairs failed at %s, %s ago%s.",
		    when(fail), say_time(jn(fail, "ago_seconds")), text);
	else if (text)
		why_add(
		    list, "It failed at %s, %s ago%s.", when(fail), say_time(jn(fail, "ago_seconds")), text);
	else if (w->flow && !strcmp(js(w->flow, "state"), "failed"))
		why_add(list, "It failed: %s. The recorder no longer has when, and what came before.",
		    *js(w->flow, "error") ? js(w->flow, "error") : "the reason is not known");
	if (fail)
		say_fail(w, fail, list);
	if (lost)
		why_add(list, "The queue pair of %s had to be ended at %s%s.", w->local, when(lost),
		    strchr(js(lost, "text"), ':') ? strchr(js(lost, "text"), ':') : "");
	say_refused(w, list);
}
