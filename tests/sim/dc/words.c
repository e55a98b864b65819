/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints scenario words by a table; see words.h. */
#include "tests/sim/dc/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
	const char *s;
	double factor;
};

static bool suffix(enum word_unit u, const char *s, double *factor)
{
	static const struct suffix times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
	static const struct suffix bits[] = {
	    {"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {NULL, 0}};
	static const struct suffix bytes[] = {{"", 1}, {"K", 1 << 10}, {"KiB", 1 << 10}, {"M", 1 << 20},
	    {"MiB", 1 << 20}, {"G", 1 << 30}, {"GiB", 1 << 30}, {NULL, 0}};
	static const struct suffix share[] = {{"", 1}, {"%", .01}, {NULL, 0}};
	static const struct suffix plain[] = {{"", 1}, {NULL, 0}};
	const struct suffix *t = u == W_TIME    ? times
	                         : u == W_BITS  ? bits
	                         : u == W_BYTES ? bytes
	                         : u == W_SHARE ? share
	                                        : plain;

	for (; t->s; t++)
		if (strcmp(s, t->s) == 0) {
			*factor = t->factor;
			return true;
		}
	return false;
}

static const char *hint(enum word_unit u)
{
	switch (u) {
	case W_TIME:
		return "a time with its unit: 25ms, 300us";
	case W_BITS:
		return "bits a second: 400G, 10M";
	case W_BYTES:
		return "bytes: 4096, 128KiB, 8GiB";
	case W_SHARE:
		return "a share: 0.001, 1e-3, 0.1%";
	case W_NUMBER:
	case W_WHOLE:
	case W_CHOICE:
	case W_NAME:
		break;
	}
	return "a number";
}

static bool set_number(const struct word *k, void *at, const char *v, char *err, size_t size)
{
	char *end;
	double factor, x = strtod(v, &end);

	if (end == v || !isfinite(x) ||
	    (!suffix(k->unit, end, &factor) && !(k->unit == W_TIME && x == 0 && !*end))) {
		snprintf(err, size, "%s: '%s' is not %s", k->name, v, hint(k->unit));
		return false;
	}
	if (x != 0)
		x *= factor;
	if (x < k->min || x > k->max || (k->unit == W_WHOLE && x != floor(x))) {
		snprintf(err, size, "%s: '%s' is outside %g .. %g%s", k->name, v, k->min, k->max,
		    k->unit == W_TIME    ? " ns"
		    : k->unit == W_WHOLE ? ", whole"
		                         : "");
		return false;
	}
	memcpy(at, &x, sizeof(x));
	return true;
}

static bool set_choice(const struct word *k, void *at, const char *v, char *err, size_t size)
{
	const char *c = k->choices;
	size_t len = strlen(v);

	for (unsigned n = 0; *c; n++) {
		size_t w = strcspn(c, " ");

		if (w == len && strncmp(c, v, w) == 0) {
			memcpy(at, &n, sizeof(n));
			return true;
		}
		c += w + (c[w] == ' ');
	}
	snprintf(err, size, "%s: '%s' is none of: %s", k->name, v, k->choices);
	return false;
}

static bool set(const struct words *w, void *to, const char *name, const char *v, char *err, size_t size)
{
	for (unsigned i = 0; i < w->n; i++) {
		const struct word *k = &w->tab[i];
		char *at = (char *)to + k->at;

		if (strcmp(name, k->name) != 0)
			continue;
		if (k->unit == W_CHOICE)
			return set_choice(k, at, v, err, size);
		if (k->unit != W_NAME)
			return set_number(k, at, v, err, size);
		if (strlen(v) < (size_t)k->max) {
			snprintf(at, (size_t)k->max, "%s", v);
			return true;
		}
		snprintf(err, size, "%s: '%.60s' is too long", k->name, v);
		return false;
	}
	snprintf(err, size, "there is no key '%.60s'", name);
	return false;
}

static bool set_at(const struct words *w, void *to, const char *name, const char *v, const char *where,
    char *err, size_t size)
{
	char why[400];

	if (set(w, to, name, v, why, sizeof(why)))
		return true;
	snprintf(err, size, "%s: %s", where, why);
	return false;
}

bool words_set(const struct words *w, void *to, const char *word, const char *where, char *err, size_t size)
{
	const char *eq = strchr(word, '=');
	char name[32];

	if (!eq || eq == word || (size_t)(eq - word) >= sizeof(name)) {
		snprintf(err, size, "%s: '%.60s' is not key=value", where, word);
		return false;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(eq - word), word);
	return set_at(w, to, name, eq + 1, where, err, size);
}

static bool line_of(const struct words *w, void *to, char *line, const char *where, char *err, size_t size)
{
	char *save, *name, *v;

	line[strcspn(line, "#\r\n")] = 0;
	name = strtok_r(line, " \t", &save);
	if (!name)
		return true;
	v = strtok_r(NULL, " \t", &save);
	if (!v || strtok_r(NULL, " \t", &save)) {
		snprintf(err, size, "%s: '%.60s' wants one value", where, name);
		return false;
	}
	return set_at(w, to, name, v, where, err, size);
}

bool words_file(const struct words *w, void *to, const char *path, char *err, size_t size)
{
	FILE *f = fopen(path, "r");
	char line[512], where[300];
	bool good = true;

	if (!f) {
		snprintf(err, size, "%s: %s", path, strerror(errno));
		return false;
	}
	for (unsigned n = 1; good && fgets(line, sizeof(line), f); n++) {
		snprintf(where, sizeof(where), "%.280s:%u", path, n);
		good = line_of(w, to, line, where, err, size);
	}
	fclose(f);
	return good;
}

static int print_one(const struct word *k, const char *a, const char *b, char *out, size_t size)
{
	const char *v = k->choices;
	unsigned c, d;
	double x, y;

	if (k->unit == W_NAME)
		return strcmp(a, b) != 0 ? snprintf(out, size, " %s=%s", k->name, a) : 0;
	if (k->unit == W_CHOICE) {
		memcpy(&c, a, sizeof(c));
		memcpy(&d, b, sizeof(d));
		if (c == d)
			return 0;
		for (; c; c--)
			v += strcspn(v, " ") + 1;
		return snprintf(out, size, " %s=%.*s", k->name, (int)strcspn(v, " "), v);
	}
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x != y ? snprintf(out, size, " %s=%.15g%s", k->name, x, k->unit == W_TIME ? "ns" : "") : 0;
}

void words_print(const struct words *w, const void *of, const void *base, char *out, size_t size)
{
	size_t n = 0;

	*out = 0;
	for (unsigned i = 0; i < w->n && n < size; i++)
		n += (size_t)print_one(&w->tab[i], (const char *)of + w->tab[i].at,
		    (const char *)base + w->tab[i].at, out + n, size - n);
	if (*out == ' ')
		memmove(out, out + 1, strlen(out));
}

void words_help(const struct words *w, const char *program, const char *what)
{
	size_t column = 0;

	printf("usage: %s [KEY=VALUE]...\n  %s\n  Keys (docs/simulator.md tells them):\n", program, what);
	for (unsigned i = 0; i < w->n; i++) {
		const char *choices = w->tab[i].choices;
		const size_t n = strlen(w->tab[i].name) + (choices ? strlen(choices) + 3 : 0);

		if (column + n > 90)
			column = 0;
		if (!column)
			fputs(i ? "\n   " : "   ", stdout);
		printf(" %s%s%s%s", w->tab[i].name, choices ? " (" : "", choices ? choices : "",
		    choices ? ")" : "");
		column += n + 1;
	}
	putchar('\n');
}
