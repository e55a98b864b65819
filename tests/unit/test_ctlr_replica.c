/* SPDX-License-Identifier: Apache-2.0 */
/* When a replica takes itself for cut off from the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "controller/state/ctlr.h"

static struct ctlr_conf conf;
static struct ctlr c;

static int set_up(void **state)
{
	c = (struct ctlr){.conf = &conf};
	snprintf(conf.name, sizeof(conf.name), "one");
	c.renewed = ctlr_now();
	return 0;
}

static void silent(void)
{
	c.renewed = ctlr_now() - (CTLR_REPLICA_TTL + 1) * RWY_MS;
}

/* Alone it serves on: there is no other one to go to. */
static void test_alone(void **state)
{
	ctlr_replica_renewed(&c, ctlr_now());
	silent();
	assert_false(ctlr_replica_cut_off(&c));
}

/*
 * All were cut off, and their records have expired: what comes first when the store is back is that
 * the others are gone.
 */
static void test_all_cut_off(void **state)
{
	struct ctlr_map_node other;

	assert_int_equal(ctlr_map_add(&c.replicas, &other, "two"), 0);
	ctlr_replica_renewed(&c, ctlr_now());
	assert_false(ctlr_replica_cut_off(&c));
	silent();
	assert_true(ctlr_replica_cut_off(&c));
	ctlr_map_del(&c.replicas, &other);
	assert_true(ctlr_replica_cut_off(&c));
	c.renewed = ctlr_now();
	assert_false(ctlr_replica_cut_off(&c));
	ctlr_replica_renewed(&c, ctlr_now());
	silent();
	assert_false(ctlr_replica_cut_off(&c));
	ctlr_map_free(&c.replicas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_alone, set_up),
	    cmocka_unit_test_setup(test_all_cut_off, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
