/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output for people: tables within TABLE_WIDTH columns (wide cells wrap, nothing is cut off, and no
 * number of an address is split), and numbers with units.
 */
#include "tools/roceway/roceway.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 12
#define GAP         2
#define WRAP_MIN    8 /* smallest width of a wrapped column */

struct table {
	unsigned columns, gap;
	const char *head[COLUMNS_MAX];
	bool right[COLUMNS_MAX], wrap[COLUMNS_MAX];
	size_t width[COLUMNS_MAX];
	char **cell;
	size_t cells, room;
};

static void *must(void *p)
{
	if (!p) {
		cli_error("out of memory");
		exit(EXIT_ERROR);
	}
	return p;
}

struct table *table_new(const char *const *columns)
{
	struct table *t = must(calloc(1, sizeof(*t)));

	for (; columns[t->columns] && t->columns < COLUMNS_MAX; t->columns++) {
		const char *h = columns[t->columns];

		t->right[t->columns] = *h == '>';
		t->wrap[t->columns] = *h == '~';
		h += *h == '>' || *h == '~';
		t->head[t->columns] = h;
		t->width[t->columns] = strlen(h);
	}
	return t;
}

void table_add(struct table *t, const char *fmt, ...)
{
	const size_t c = t->cells % t->columns;
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	must(text);
	if (t->cells == t->room) {
		t->room = t->room ? t->room * 2 : 64;
		t->cell = must(realloc(t->cell, t->room * sizeof(*t->cell)));
	}
	t->cell[t->cells++] = text;
	if (strlen(text) > t->width[c])
		t->width[c] = strlen(text);
}

/* An address, IPv4 or IPv6, a prefix or a MAC address. */
static bool is_address(const char *word, size_t len)
{
	return len > 0 && strspn(word, "0123456789abcdefABCDEF.:/") >= len &&
	       (memchr(word, '.', len) || memchr(word, ':', len));
}

/* The longest IPv4 address of the text: it is better read on one line. */
static size_t longest_ipv4(const char *text)
{
	size_t most = 0;

	while (*text) {
		const size_t len = strcspn(text, " ");

		if (len > most && is_address(text, len) && !memchr(text, ':', len))
			most = len;
		text += len;
		text += strspn(text, " ");
	}
	return most;
}

/* Narrows columns that wrap, the widest first, down to their least widths. True: the table fits. */
static bool narrow(struct table *t, const size_t least[COLUMNS_MAX])
{
	for (;;) {
		size_t all = (size_t)t->gap * (t->columns - 1), widest = COLUMNS_MAX;

		for (size_t c = 0; c < t->columns; c++) {
			all += t->width[c];
			if (t->wrap[c] && t->width[c] > least[c] &&
			    (widest == COLUMNS_MAX || t->width[c] > t->width[widest]))
				widest = c;
		}
		if (all <= TABLE_WIDTH || widest == COLUMNS_MAX)
			return all <= TABLE_WIDTH;
		t->width[widest]--;
	}
}

/* A table that would break an IPv4 address has half the distance between its columns instead, if
 * that suffices. */
static void fit(struct table *t)
{
	size_t least[COLUMNS_MAX], whole[COLUMNS_MAX], full[COLUMNS_MAX];
	bool fits = false;

	t->gap = GAP;
	if (!t->columns)
		return;
	memcpy(full, t->width, sizeof(full));
	for (size_t c = 0; c < t->columns; c++)
		whole[c] = least[c] = WRAP_MIN;
	for (size_t i = 0; i < t->cells; i++) {
		const size_t len = longest_ipv4(t->cell[i]), c = i % t->columns;

		if (len > whole[c])
			whole[c] = len;
	}
	for (unsigned gap = GAP; gap > 0 && !fits; gap--) {
		memcpy(t->width, full, sizeof(full));
		t->gap = gap;
		fits = narrow(t, whole);
	}
	if (!fits) {
		t->gap = GAP;
		narrow(t, least);
	}
}

/* The last place up to `width` behind one of these characters; 0: there is none. */
static size_t cut_behind(const char *text, size_t from, size_t width, const char *chars)
{
	for (size_t cut = width; cut > from; cut--)
		if (strchr(chars, text[cut - 1]))
			return cut;
	return 0;
}

/* How much of the text fits on a line of that width: up to a space if there is one; of an address
 * whole numbers. */
static size_t line_len(const char *text, size_t width)
{
	size_t cut;
	bool address;

	if (strlen(text) <= width)
		return strlen(text);
	for (cut = width; cut > 0; cut--)
		if (text[cut] == ' ')
			return cut;
	address = is_address(text, strcspn(text, " "));
	cut = cut_behind(text, address ? 0 : width / 2, width, address ? ".:/" : "-_./:");
	return cut ? cut : width;
}

static void print_row(const struct table *t, char *const *cell)
{
	const char *rest[COLUMNS_MAX];
	bool more = true;

	for (size_t c = 0; c < t->columns; c++)
		rest[c] = cell[c];
	while (more) {
		size_t pending = 0; /* spaces not printed yet: a line does not end in spaces */

		more = false;
		for (size_t c = 0; c < t->columns; c++) {
			size_t n = line_len(rest[c], t->width[c]), pad = t->width[c] - n;

			if (t->right[c])
				pending += pad;
			if (n)
				printf("%*s%.*s", (int)pending, "", (int)n, rest[c]);
			pending = n ? 0 : pending;
			pending += (t->right[c] ? 0 : pad) + t->gap;
			rest[c] += n;
			rest[c] += strspn(rest[c], " ");
			more = more || *rest[c];
		}
		putchar('\n');
	}
}

void table_print(struct table *t)
{
	char *head[COLUMNS_MAX];

	fit(t);
	for (size_t c = 0; c < t->columns; c++)
		head[c] = (char *)t->head[c];
	print_row(t, head);
	for (size_t i = 0; i + t->columns <= t->cells; i += t->columns)
		print_row(t, t->cell + i);
	for (size_t i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
	free(t);
}

void print_fact(const char *name, size_t width, const char *value)
{
	size_t n;

	do {
		n = line_len(value, TABLE_WIDTH - width - 2);
		if (n)
			printf("%-*s  %.*s\n", (int)width, name, (int)n, value);
		else
			puts(name);
		name = "";
		value += n;
		value += strspn(value, " ");
	} while (*value);
}

void print_object(const json_t *o)
{
	size_t width = 0, i;
	const char *key;
	json_t *v, *item;

	json_object_foreach((json_t *)o, key, v) if (strlen(key) > width) width = strlen(key);
	json_object_foreach((json_t *)o, key, v)
	{
		char *text = NULL;

		if (json_is_array(v) && json_is_object(json_array_get(v, 0))) {
			json_array_foreach(v, i, item)
			{
				text = must(json_dumps(item, 0));
				print_fact(key, width, text);
				free(text);
			}
			continue;
		}
		if (json_is_string(v))
			text = must(strdup(json_string_value(v)));
		else
			text = must(json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)));
		print_fact(key, width, text);
		free(text);
	}
}

void print_json(const json_t *j)
{
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
	putchar('\n');
}

const char *js(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

double jn(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

long long ji(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

bool jb(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}
