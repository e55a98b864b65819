/* SPDX-License-Identifier: Apache-2.0 */
/* docs/states.md equals the state tables (engine/states.h). A difference prints the expected
 * text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/states.h"
#include "tests/lib/states_page.h"

#define STATE(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EVENT(e, n, s) states_add("| `%s` | %s |\n", n, s);
#define EDGE(a, b)     states_add("    %s -> %s\n", states_lower(#a), states_lower(#b));

static void test_requester(void **state)
{
	states_begin();
	states_add("| state | meaning |\n| --- | --- |\n");
	ENG_REQUESTER_STATES(STATE)
	states_add("\n| event | meaning |\n| --- | --- |\n");
	ENG_REQUESTER_EVENTS(EVENT)
	states_add("\n| state | first | message | response | timer |\n| --- | --- | --- | --- | --- |\n");
#define ROW(s, f, m, r, t) states_add("| `%s` | %s | %s | %s | %s |\n", states_lower(#s), #f, #m, #r, #t);
	ENG_REQUESTER_TABLE(ROW)
#undef ROW
	states_add("\n```dot\ndigraph requester {\n");
	ENG_REQUESTER_CHANGES(EDGE)
	states_add("}\n```\n");
	states_compare();
}

static void test_responder(void **state)
{
	states_begin();
	states_add("| state | meaning |\n| --- | --- |\n");
	ENG_RESPONDER_STATES(STATE)
	states_add("\n| event | meaning |\n| --- | --- |\n");
	ENG_RESPONDER_EVENTS(EVENT)
	states_add("\n| state | request | uncarried | response | sync | rewind | fail | moved | reset |\n"
	           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
#define ROW(s, q, u, p, y, w, f, m, r)                                                                       \
	states_add("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n", states_lower(#s), #q, #u, #p, #y,   \
	    #w, #f, #m, #r);
	ENG_RESPONDER_TABLE(ROW)
#undef ROW
	states_add("\n```dot\ndigraph responder {\n");
	ENG_RESPONDER_CHANGES(EDGE)
	states_add("}\n```\n");
	states_compare();
}

static void test_reuse(void **state)
{
	states_begin();
	states_add("| case | answer | applies to |\n| --- | --- | --- |\n");
#define X(c, a, s) states_add("| %s | %s | %s |\n", #c, #a, s);
	ENG_REUSE_CASES(X)
#undef X
	states_compare();
}

static void test_standby(void **state)
{
	states_begin();
	states_add("| state | meaning |\n| --- | --- |\n");
	ENG_SB_STATES(STATE)
	states_add("\n| event | meaning |\n| --- | --- |\n");
	ENG_SB_EVENTS(EVENT)
	states_add("\n| state |");
#define X(e, n, s) states_add(" %s |", n);
	ENG_SB_EVENTS(X)
	states_add("\n| --- |");
#undef X
#define X(e, n, s) states_add(" --- |");
	ENG_SB_EVENTS(X)
#undef X
	states_add("\n");
#define ROW(s, e, c, l, o, t, a, y, q, w, g, r, v, k, x, h)                                                  \
	states_add("| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",  \
	    states_lower(#s), #e, #c, #l, #o, #t, #a, #y, #q, #w, #g, #r, #v, #k, #x, #h);
	ENG_SB_TABLE(ROW)
#undef ROW
	states_add("\n```dot\ndigraph standby {\n");
	ENG_SB_CHANGES(EDGE)
	states_add("}\n```\n");
	states_compare();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_requester), cmocka_unit_test(test_responder),
	    cmocka_unit_test(test_reuse), cmocka_unit_test(test_standby)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
