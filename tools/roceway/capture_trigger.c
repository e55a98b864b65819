/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets before and after an event. The connection of a packet and its events are words of its
 * comment. The last packets are kept, the oldest go first. When a connection has an event, its
 * packets leave for the file; from then on its packets go there at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "tools/roceway/capture.h"

#define CONNECTIONS 4096 /* that can have an event */
#define WORD        128

struct kept {
	struct kept *next;
	uint64_t connection;
	size_t len;
	uint8_t block[];
};

struct cap_trigger {
	char events[64]; /* separated by blanks */
	struct kept *first, **last;
	size_t bytes, max;
	uint64_t had[CONNECTIONS * 2]; /* open addressing; 0: free */
	unsigned n;
};

static bool read_events(struct cap_trigger *t, const char *events)
{
	static const char all[] = "nak rnr retransmit error drop";
	char copy[sizeof(t->events)], *save = NULL;

	if (strlen(events) >= sizeof(copy))
		events = "too many";
	snprintf(copy, sizeof(copy), "%s", events);
	for (char *word = strtok_r(copy, ",|", &save); word; word = strtok_r(NULL, ",|", &save)) {
		const size_t used = strlen(t->events);

		if (!base_word_in(word, all)) {
			cli_error("--trigger: no event %s: nak, rnr, retransmit, error, drop, or several "
			          "with commas",
			    word);
			return false;
		}
		snprintf(t->events + used, sizeof(t->events) - used, "%s%s", used ? " " : "", word);
	}
	if (!*t->events)
		cli_error("--trigger needs an event: nak, rnr, retransmit, error or drop");
	return *t->events;
}

struct cap_trigger *cap_trigger_new(const char *events, size_t memory)
{
	struct cap_trigger *t = calloc(1, sizeof(*t));

	if (!t) {
		cli_error("out of memory");
		return NULL;
	}
	t->max = memory;
	t->last = &t->first;
	if (read_events(t, events))
		return t;
	free(t);
	return NULL;
}

void cap_trigger_free(struct cap_trigger *t)
{
	while (t && t->first) {
		struct kept *k = t->first;

		t->first = k->next;
		free(k);
	}
	free(t);
}

unsigned cap_trigger_connections(const struct cap_trigger *t)
{
	return t->n;
}

/* --- words of the comment --------------------------------------------------------------------- */

/* The value of key= in a comment, which has no terminating 0; "": there is none. */
static void word_get(const uint8_t *comment, size_t len, const char *key, char out[WORD])
{
	const char *at = len ? memmem(comment, len, key, strlen(key)) : NULL;
	size_t n = 0;

	if (at) {
		at += strlen(key);
		while (at + n < (const char *)comment + len && at[n] != ' ' && n < WORD - 1)
			n++;
		memcpy(out, at, n);
	}
	out[n] = 0;
}

/* FNV-1a; never 0. */
static uint64_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3u;
	return h ? h : 1;
}

/* Its connection, or, while the other end's QPN is not known, its direction of it. */
static uint64_t connection_of(const uint8_t *comment, size_t len)
{
	char word[WORD];

	word_get(comment, len, " conn=", word);
	if (!*word)
		word_get(comment, len, " flow=", word);
	return *word ? hash(word) : 0;
}

static bool has_event(const struct cap_trigger *t, const uint8_t *comment, size_t len)
{
	char word[WORD], *save = NULL;

	word_get(comment, len, " event=", word);
	for (char *e = strtok_r(word, ",", &save); e; e = strtok_r(NULL, ",", &save))
		if (base_word_in(e, t->events))
			return true;
	return false;
}

/* --- packets ---------------------------------------------------------------------------------- */

static uint64_t *place_of(struct cap_trigger *t, uint64_t connection)
{
	size_t i = connection % (CONNECTIONS * 2);

	while (t->had[i] && t->had[i] != connection)
		i = (i + 1) % (CONNECTIONS * 2);
	return &t->had[i];
}

static void unlink_next(struct cap_trigger *t, struct kept **at)
{
	struct kept *k = *at;

	*at = k->next;
	if (t->last == &k->next)
		t->last = at;
	t->bytes -= sizeof(*k) + k->len;
	free(k);
}

static void keep(struct cap_trigger *t, uint64_t connection, const uint8_t *block, size_t len)
{
	struct kept *k = sizeof(*k) + len <= t->max ? malloc(sizeof(*k) + len) : NULL;

	if (!k)
		return;
	*k = (struct kept){.connection = connection, .len = len};
	memcpy(k->block, block, len);
	*t->last = k;
	t->last = &k->next;
	t->bytes += sizeof(*k) + len;
	while (t->bytes > t->max)
		unlink_next(t, &t->first);
}

static bool write_kept(struct cap_trigger *t, uint64_t connection, struct cap_file *f)
{
	for (struct kept **at = &t->first; *at;) {
		if ((*at)->connection != connection) {
			at = &(*at)->next;
			continue;
		}
		if (!cap_file_add(f, (*at)->block, (*at)->len))
			return false;
		unlink_next(t, at);
	}
	return true;
}

bool cap_trigger_packet(struct cap_trigger *t, const uint8_t *block, size_t len, struct cap_file *f)
{
	size_t n = 0;
	const uint8_t *comment = cap_block_option(block, len, CAP_OPT_COMMENT, &n);
	const uint64_t connection = connection_of(comment, n);
	uint64_t *place = connection ? place_of(t, connection) : NULL;

	if (place && !*place) {
		if (!has_event(t, comment, n) || t->n == CONNECTIONS) {
			keep(t, connection, block, len);
			return true;
		}
		*place = connection;
		t->n++;
		if (!write_kept(t, connection, f))
			return false;
	} else if (!place && !has_event(t, comment, n)) {
		return true; /* of no connection, as ARP */
	}
	return cap_file_add(f, block, len);
}
