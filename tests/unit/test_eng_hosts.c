/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a gateway tell each other of local hosts (engine/hosts.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/eng.h"
#include "engine/hosts.h"

#define T0 RWY_SEC

static struct eng_hosts hosts;
static struct eng e[3];
static struct eng_host h[3], other[3];

static int set_up(void **state)
{
	memset(&hosts, 0, sizeof(hosts));
	for (unsigned k = 0; k < 3; k++) {
		e[k].cfg.hosts = &hosts;
		e[k].cfg.worker = (uint8_t)k;
		e[k].cfg.workers = 3;
		h[k] = (struct eng_host){.addr = {{[15] = 1}}};
		other[k] = (struct eng_host){.addr = {{[15] = 2}}};
	}
	return 0;
}

static void test_heard(void **state)
{
	eng_host_answered(&e[1], &h[1], T0);
	eng_host_answered(&e[2], &h[2], T0 + 5);
	eng_host_ask_others(&e[0], &h[0], T0 + 9);
	assert_true(h[0].reqr.heard == T0 + 5);
	eng_host_ask_others(&e[0], &other[0], T0 + 9);
	assert_true(other[0].reqr.heard == 0);
	/* soon again: what was told still holds */
	eng_host_answered(&e[2], &h[2], T0 + RWY_MS / 2);
	eng_host_ask_others(&e[0], &h[0], T0 + RWY_MS);
	assert_true(h[0].reqr.heard == T0 + 5);
	eng_host_answered(&e[2], &h[2], T0 + 2 * RWY_MS);
	eng_host_ask_others(&e[0], &h[0], T0 + 2 * RWY_MS);
	assert_true(h[0].reqr.heard == T0 + 2 * RWY_MS);
}

/* A worker's own record is not counted twice. */
static void test_busy(void **state)
{
	rwy_dur busy;

	for (unsigned k = 0; k < 3; k++) {
		roce_reqr_host_asked(&h[k].reqr, 1 << 20, T0);
		roce_reqr_host_read(&h[k].reqr, 1 << 16, T0 + 4 * RWY_MS);
		roce_reqr_host_settled(&h[k].reqr, 1 << 16);
		eng_host_answered(&e[k], &h[k], T0 + 4 * RWY_MS);
	}
	busy = roce_reqr_host_busy(&h[1].reqr, 0);
	assert_true(busy > 10 * RWY_MS);
	eng_host_ask_others(&e[0], &h[0], T0 + 4 * RWY_MS);
	assert_true(h[0].reqr.others == 2 * busy);
	eng_host_ask_others(&e[0], &h[0], T0 + 14 * RWY_MS);
	assert_true(h[0].reqr.others == 2 * (busy - 10 * RWY_MS));
	eng_host_ask_others(&e[0], &h[0], T0 + 10 * RWY_SEC);
	assert_true(h[0].reqr.others == 0);
}

/* How late a host answers falls with time, however often it is told. */
static void test_late(void **state)
{
	rwy_time t = T0 + RWY_SEC;
	rwy_dur wait;

	roce_reqr_host_late(&h[1].reqr, T0, t);
	eng_host_answered(&e[1], &h[1], t);
	eng_host_ask_others(&e[0], &h[0], t);
	wait = roce_reqr_host_wait(&h[0].reqr, t);
	assert_true(wait > RWY_SEC && wait == roce_reqr_host_wait(&h[1].reqr, t));
	eng_host_answered(&e[0], &h[0], t);
	t += 20 * RWY_SEC;
	eng_host_ask_others(&e[1], &h[1], t);
	eng_host_ask_others(&e[2], &h[2], t);
	assert_true(roce_reqr_host_wait(&h[1].reqr, t) < wait);
	assert_true(roce_reqr_host_wait(&h[2].reqr, t) < wait);
}

static void test_one_worker(void **state)
{
	e[0].cfg.hosts = NULL;
	eng_host_ask_others(&e[0], &h[0], T0);
	assert_true(h[0].reqr.heard == 0 && h[0].reqr.others == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_heard, set_up),
	    cmocka_unit_test_setup(test_busy, set_up),
	    cmocka_unit_test_setup(test_late, set_up),
	    cmocka_unit_test_setup(test_one_worker, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
