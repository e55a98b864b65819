/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/states_page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char want[16384], page[65536];

void states_begin(void)
{
	want[0] = '\0';
}

void states_add(const char *fmt, ...)
{
	size_t n = strlen(want);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want + n, sizeof(want) - n, fmt, ap);
	va_end(ap);
}

void states_compare(void)
{
	states_compare_in("docs/states.md");
}

void states_compare_in(const char *path)
{
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	if (strstr(page, want))
		return;
	fprintf(stderr, "%s should say:\n%s", path, want);
	fail();
}

const char *states_lower(const char *word)
{
	static char out[4][64];
	static unsigned at;
	char *o = out[at++ % 4];
	size_t i = 0;

	for (; word[i] && i < 63; i++)
		o[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 'a' - 'A' : word[i]);
	o[i] = '\0';
	return o;
}
