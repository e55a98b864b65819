/* SPDX-License-Identifier: Apache-2.0 */
/* roceway doctor: files below /sys and /proc, and the list of findings. */
#include "tools/roceway/doctor.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 512

static const char *const verdict_name[] = {"ok", "note", "bad"};

void doctor_add(
    struct doctor *d, enum doctor_verdict v, const char *check, const char *todo, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++) /* what a file has */
		*c = *c >= ' ' && *c < 127 ? *c : '?';
	d->bad = d->bad || v == DOCTOR_BAD;
	json_array_append_new(d->found, json_pack("{s:s, s:s, s:s, s:s?}", "check", check, "verdict",
	                                    verdict_name[v], "finding", text, "do", todo));
}

static FILE *open_below(const struct doctor *d, const char *fmt, va_list ap)
{
	char path[PATH_BYTES];
	const int n = snprintf(path, sizeof(path), "%s/", d->root);

	if (n < 0 || n >= (int)sizeof(path))
		return NULL;
	vsnprintf(path + n, sizeof(path) - (size_t)n, fmt, ap);
	return fopen(path, "re");
}

bool doctor_read(const struct doctor *d, char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	FILE *f;
	size_t n;

	va_start(ap, fmt);
	f = open_below(d, fmt, ap);
	va_end(ap);
	*out = 0;
	if (!f)
		return false;
	n = fread(out, 1, size - 1, f);
	fclose(f);
	out[n] = 0;
	while (n && (out[n - 1] == '\n' || out[n - 1] == ' '))
		out[--n] = 0;
	return true;
}

long long doctor_number(const struct doctor *d, const char *fmt, ...)
{
	char text[64], *end;
	long long v;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	f = open_below(d, fmt, ap);
	va_end(ap);
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		*text = 0;
	fclose(f);
	v = strtoll(text, &end, 10);
	return end == text ? -1 : v;
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

void doctor_each(struct doctor *d, const char *dir, void (*f)(struct doctor *d, const char *name))
{
	char path[PATH_BYTES];
	struct dirent **entry;
	int n;

	snprintf(path, sizeof(path), "%s/%s", d->root, dir);
	n = scandir(path, &entry, visible, alphasort);
	for (int i = 0; i < n; i++) {
		f(d, entry[i]->d_name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
}
