/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets before and after an event. The connection of a packet and its events are words of its
 * comment. The last packets are kept, the oldest go first. When a connection has an event, its
 * packets leave for the file; from then on its packets go there at once.
 *
 * A connection has a number as soon as the QPNs of both ends are known; before, its directions have
 * names, and packets with a number have the name, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/word.h"
#include "tools/roceway/capture.h"

#define CONNECTIONS 4096 /* that can have an event; each by its number and by a name */
#define WORD        128

/* A packet's connection: hashes of its number and of its direction's name, 0: it has none. */
struct which {
	uint64_t number, name;
};

struct kept {
	struct kept *next;
	struct which of;
	size_t len;
	uint8_t block[];
};

struct cap_trigger {
	char events[64]; /* separated by blanks */
	struct kept *first, **last;
	size_t bytes, max;
	uint64_t had[CONNECTIONS * 4]; /* numbers and names; open addressing; 0: free */
	unsigned n, later; /* connections in it; of them once more, by the number that came later */
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

static struct which which_of(const uint8_t *comment, size_t len)
{
	char number[WORD], name[WORD];

	word_get(comment, len, " conn=", number);
	word_get(comment, len, " flow=", name);
	return (struct which){*number ? hash(number) : 0, *name ? hash(name) : 0};
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

static uint64_t *place_of(struct cap_trigger *t, uint64_t key)
{
	size_t i = key % (CONNECTIONS * 4);

	while (t->had[i] && t->had[i] != key)
		i = (i + 1) % (CONNECTIONS * 4);
	return &t->had[i];
}

static bool has_had(struct cap_trigger *t, uint64_t key)
{
	return key && *place_of(t, key) == key;
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

static void keep(struct cap_trigger *t, const struct which *of, const uint8_t *block, size_t len)
{
	struct kept *k = sizeof(*k) + len <= t->max ? malloc(sizeof(*k) + len) : NULL;

	if (!k)
		return;
	*k = (struct kept){.of = *of, .len = len};
	memcpy(k->block, block, len);
	*t->last = k;
	t->last = &k->next;
	t->bytes += sizeof(*k) + len;
	while (t->bytes > t->max)
		unlink_next(t, &t->first);
}

static bool is_same(const struct which *kept, const struct which *of)
{
	/* What has another number was another connection, of the same name. */
	if (kept->number && of->number)
		return kept->number == of->number;
	return kept->name && kept->name == of->name;
}

static bool write_kept(struct cap_trigger *t, const struct which *of, struct cap_file *f)
{
	for (struct kept **at = &t->first; *at;) {
		if (!is_same(&(*at)->of, of)) {
			at = &(*at)->next;
			continue;
		}
		if (!cap_file_add(f, (*at)->block, (*at)->len))
			return false;
		unlink_next(t, at);
	}
	return true;
}

/*
 * A connection that has an event, or had one before it got its number. It is found by what this
 * packet says of it: by its number, which both directions have, or else by the name.
 */
static void note(struct cap_trigger *t, const struct which *of)
{
	const uint64_t key = of->number ? of->number : of->name;
	unsigned *count = has_had(t, of->name) ? &t->later : &t->n;

	if (*count == CONNECTIONS)
		return; /* of those that get a number later: QPNs are used again */
	(*count)++;
	*place_of(t, key) = key;
}

bool cap_trigger_packet(struct cap_trigger *t, const uint8_t *block, size_t len, struct cap_file *f)
{
	size_t n = 0;
	const uint8_t *comment = cap_block_option(block, len, CAP_OPT_COMMENT, &n);
	const struct which of = which_of(comment, n);
	const bool event = has_event(t, comment, n);

	if (!of.number && !of.name)
		return !event || cap_file_add(f, block, len); /* of no connection, as ARP */
	if (!has_had(t, of.number ? of.number : of.name)) {
		if (!has_had(t, of.name) && (!event || t->n == CONNECTIONS)) {
			keep(t, &of, block, len);
			return true;
		}
		note(t, &of);
		if (!write_kept(t, &of, f))
			return false;
	}
	return cap_file_add(f, block, len);
}
