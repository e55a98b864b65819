/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of keys misses nothing of a pair of gateways (gateway/keys/follow.h), however seldom it looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gateway/keys/follow.h"

static struct gw_app app;
static struct keys_pair seen;

static int begin(void **state)
{
	app = (struct gw_app){.state = GW_RUNNING};
	seen = (struct keys_pair){0};
	gw_pair_set(&app, GW_PAIR_HIDES);
	return 0;
}

static void look(bool shown, bool gave_up)
{
	struct keys_pair_news n = keys_pair_look(&seen, &app);

	assert_int_equal(n.shown, shown);
	assert_int_equal(n.gave_up, gave_up);
	n = keys_pair_look(&seen, &app); /* it is said once */
	assert_false(n.shown || n.gave_up);
}

static void test_seen(void **state)
{
	look(false, false);
	gw_pair_set(&app, GW_PAIR_ASKS);
	look(true, false);
	gw_pair_set(&app, GW_PAIR_SERVES);
	look(false, false);
	gw_pair_set(&app, GW_PAIR_REPLACED);
	look(false, false);
}

static void test_gives_up(void **state)
{
	look(false, false);
	gw_pair_set(&app, GW_PAIR_ASKS);
	look(true, false);
	gw_pair_set(&app, GW_PAIR_HIDES);
	look(false, true);
}

/* It asked and gave up between two looks: the keys that it was given are used up all the same. */
static void test_gives_up_unseen(void **state)
{
	look(false, false);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k <= i; k++) {
			gw_pair_set(&app, GW_PAIR_ASKS);
			gw_pair_set(&app, GW_PAIR_HIDES);
		}
		look(false, true);
	}
}

/* And asks again: it is said when it hides again, and not while it needs these keys. */
static void test_asks_again(void **state)
{
	look(false, false);
	gw_pair_set(&app, GW_PAIR_ASKS);
	gw_pair_set(&app, GW_PAIR_HIDES);
	gw_pair_set(&app, GW_PAIR_ASKS);
	look(true, false);
	gw_pair_set(&app, GW_PAIR_HIDES);
	look(false, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_seen, begin),
	    cmocka_unit_test_setup(test_gives_up, begin),
	    cmocka_unit_test_setup(test_gives_up_unseen, begin),
	    cmocka_unit_test_setup(test_asks_again, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
