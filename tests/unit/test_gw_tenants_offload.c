/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to hardware during a change of the set of tenants (gateway/offload/offload.h): before it is
 * published, and when every worker runs it; the undo; a refusal by hardware.
 */
#include "gateway/offload/offload.h"
#include "tests/lib/gw/fake.h"

static struct {
	unsigned prepared, back, committed;
	uint64_t present;   /* generation in force when prepare was called */
	uint64_t next;      /* its argument */
	uint64_t at_commit; /* published when commit was called */
	bool refuse;
} seen;

static struct gw_tenants_done done;
static struct conf_error err;

static int prepare(struct gw_app *app, const struct tenant_set *next, char why[OFFLOAD_WHY])
{
	seen.prepared++;
	seen.present = gw_tenants_of(app)->generation;
	seen.next = next->generation;
	snprintf(why, OFFLOAD_WHY, "port lan keeps a rule");
	return seen.refuse ? RWY_EAGAIN : 0;
}

static void back(struct gw_app *app, const struct tenant_set *present)
{
	seen.back++;
	assert_ptr_equal(present, gw_tenants_of(app));
}

static void commit(struct gw_app *app)
{
	seen.committed++;
	seen.at_commit = gw_tenants_of(app)->generation;
	for (unsigned i = 0; i < app->workers; i++)
		assert_int_equal(gw_tenants_of(app)->generation, seen.next);
}

static const struct gw_offload_hooks hooks = {prepare, back, commit};

static int set_up(void **state)
{
	memset(&seen, 0, sizeof(seen));
	fake_new(2);
	if (gw_tenants_new(&fake.app) != 0)
		return -1;
	fake_workers(FAKE_TUNNELS, NULL, 0);
	fake.app.offload_hooks = &hooks;
	return 0;
}

static int tear_down(void **state)
{
	fake.app.offload_hooks = NULL;
	fake_end();
	return 0;
}

static void test_order(void **state)
{
	struct conf_tenant t = fake_tenant("red", 7);

	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), 0);
	assert_int_equal(seen.prepared, 1);
	assert_int_equal(seen.committed, 1);
	assert_int_equal(seen.back, 0);
	assert_int_equal(seen.present, done.generation - 1);
	assert_int_equal(seen.next, done.generation);
	assert_int_equal(seen.at_commit, done.generation);
	assert_int_equal(gw_tenant_set(&fake.app, &t, &done, &err), 0); /* no change: no call */
	assert_int_equal(seen.prepared, 1);
	assert_int_equal(gw_tenant_del(&fake.app, "red", &done, &err), 0);
	assert_int_equal(seen.prepared, 2);
	assert_int_equal(seen.committed, 2);
}

static void test_hardware_refuses(void **state)
{
	struct conf_tenant t = fake_tenant("red", 7);

	seen.refuse = true;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EAGAIN);
	assert_non_null(strstr(err.msg, "port lan keeps a rule"));
	assert_int_equal(seen.back, 1);
	assert_int_equal(seen.committed, 0);
	assert_int_equal(gw_tenants_of(&fake.app)->n, 0);
	seen.refuse = false;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), 0);
	assert_int_equal(seen.committed, 1);
}

/* A worker refuses: hardware is restored; a worker does not run the set: hardware waits. */
static void test_worker_hangs(void **state)
{
	struct conf_tenant t = fake_tenant("red", 7);

	fake.app.worker[1]->hung = true;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), RWY_EAGAIN);
	assert_int_equal(seen.prepared, 1);
	assert_int_equal(seen.back, 1);
	assert_int_equal(seen.committed, 0);
	fake.app.worker[1]->hung = false;
	fake.app.worker[1]->late = true;
	assert_int_equal(gw_tenant_add(&fake.app, &t, &done, &err), 0);
	assert_int_equal(seen.prepared, 2);
	assert_int_equal(seen.committed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_hardware_refuses, set_up, tear_down),
	    cmocka_unit_test_setup_teardown(test_worker_hangs, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
