/* SPDX-License-Identifier: Apache-2.0 */
/* docs/states.md says what the state tables say (engine/states.h). A difference prints what it should say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/states.h"

static char want[16384], page[65536];

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *fmt, ...)
{
	size_t n = strlen(want);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want + n, sizeof(want) - n, fmt, ap);
	va_end(ap);
}

static void read_page(void)
{
	FILE *f = fopen("docs/states.md", "r");
	size_t n;

	assert_non_null(f);
	n = fread(page, 1, sizeof(page) - 1, f);
	page[n] = '\0';
	fclose(f);
}

static void compare(void)
{
	read_page();
	if (strstr(page, want))
		return;
	fprintf(stderr, "docs/states.md should say:\n%s", want);
	fail();
}

/* ENG_Q_LOCATING_LOST: what the page calls it. */
static const char *lower(const char *word)
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

#define STATE(e, n, s) add("| `%s` | %s |\n", n, s);
#define EVENT(e, n, s) add("| `%s` | %s |\n", n, s);
#define EDGE(a, b)     add("    %s -> %s\n", lower(#a), lower(#b));

static void test_requester(void **state)
{
	want[0] = '\0';
	add("| state | meaning |\n| --- | --- |\n");
	ENG_REQUESTER_STATES(STATE)
	add("\n| event | meaning |\n| --- | --- |\n");
	ENG_REQUESTER_EVENTS(EVENT)
	add("\n| state | first | message | response | timer |\n| --- | --- | --- | --- | --- |\n");
#define ROW(s, f, m, r, t) add("| `%s` | %s | %s | %s | %s |\n", lower(#s), #f, #m, #r, #t);
	ENG_REQUESTER_TABLE(ROW)
#undef ROW
	add("\n```dot\ndigraph requester {\n");
	ENG_REQUESTER_CHANGES(EDGE)
	add("}\n```\n");
	compare();
}

static void test_responder(void **state)
{
	want[0] = '\0';
	add("| state | meaning |\n| --- | --- |\n");
	ENG_RESPONDER_STATES(STATE)
	add("\n| event | meaning |\n| --- | --- |\n");
	ENG_RESPONDER_EVENTS(EVENT)
	add("\n| state | request | response | sync | rewind | fail | reset |\n"
	    "| --- | --- | --- | --- | --- | --- | --- |\n");
#define ROW(s, q, p, y, w, f, r)                                                                             \
	add("| `%s` | %s | %s | %s | %s | %s | %s |\n", lower(#s), #q, #p, #y, #w, #f, #r);
	ENG_RESPONDER_TABLE(ROW)
#undef ROW
	add("\n```dot\ndigraph responder {\n");
	ENG_RESPONDER_CHANGES(EDGE)
	add("}\n```\n");
	compare();
}

static void test_reuse(void **state)
{
	want[0] = '\0';
	add("| case | answer | applies to |\n| --- | --- | --- |\n");
#define X(c, a, s) add("| %s | %s | %s |\n", #c, #a, s);
	ENG_REUSE_CASES(X)
#undef X
	compare();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_requester), cmocka_unit_test(test_responder), cmocka_unit_test(test_reuse)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
