/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/agent/redirects.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDERS 4

/* A text that is one word of a line; NULL: it is none. */
static const char *word_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s && *s && !s[strcspn(s, " \t\r\n#,")] ? s : NULL;
}

static bool number_of(const json_t *o, const char *key, json_int_t lo, json_int_t hi, json_int_t *out)
{
	const json_t *v = json_object_get(o, key);

	*out = json_integer_value(v);
	return json_is_integer(v) && *out >= lo && *out <= hi;
}

struct relay {
	const char *address, *state;
	json_int_t order, weight, port;
};

static bool relay_read(const json_t *o, struct relay *r)
{
	r->address = word_of(o, "address");
	r->state = word_of(o, "state");
	return r->address && r->state && (!strcmp(r->state, "up") || !strcmp(r->state, "lost")) &&
	       number_of(o, "order", 0, ORDERS - 1, &r->order) &&
	       number_of(o, "weight", 1, 100, &r->weight) && number_of(o, "port", 1, 65535, &r->port);
}

/* Puts the relays of this order. False: one is malformed. *put: how many there are now. */
static bool order_put(FILE *f, const json_t *relays, json_int_t order, unsigned *put)
{
	const unsigned before = *put;
	const json_t *o;
	size_t i;

	json_array_foreach(relays, i, o)
	{
		struct relay r;

		if (!relay_read(o, &r))
			return false;
		if (r.order != order)
			continue;
		if (before && *put == before)
			fputs(" else", f);
		fprintf(f, " %s,weight=%d,port=%d%s", r.address, (int)r.weight, (int)r.port,
		    *r.state == 'l' ? ",down" : "");
		(*put)++;
	}
	return true;
}

static bool redirect_put(FILE *f, const json_t *o)
{
	const char *prefix = word_of(o, "prefix");
	const json_t *relays = json_object_get(o, "relays");
	unsigned put = 0;

	if (!prefix || !json_array_size(relays))
		return false;
	fprintf(f, "redirect %s via", prefix);
	for (json_int_t order = 0; order < ORDERS; order++)
		if (!order_put(f, relays, order, &put))
			return false;
	fputc('\n', f);
	return true;
}

char *hagent_redirects_text(const json_t *answer, char *why, size_t size)
{
	const json_t *list = json_object_get(answer, "redirects"), *o;
	char *text = NULL;
	size_t n = 0, i, bad = SIZE_MAX;
	FILE *f = json_is_array(list) ? open_memstream(&text, &n) : NULL;
	bool good;

	if (!f) {
		snprintf(why, size, "%s", json_is_array(list) ? "no memory" : "expected a list of redirects");
		return NULL;
	}
	json_array_foreach(list, i, o) if (bad == SIZE_MAX && !redirect_put(f, o)) bad = i;
	good = !ferror(f);
	good = fclose(f) == 0 && good;
	if (good && bad == SIZE_MAX)
		return text;
	if (!good)
		snprintf(why, size, "no memory");
	else
		snprintf(why, size, "redirects[%zu] is malformed", bad);
	free(text);
	return NULL;
}
