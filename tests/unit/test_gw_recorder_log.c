/* SPDX-License-Identifier: Apache-2.0 */
/* What came before failures is logged once, of the same connection only, and of not too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/eng.h"
#include "gateway/setup.h"

static struct gw_app app;
static struct eng *e;
static struct eng_tenant tenant;
static char said[16384];
static unsigned lines;

void gw_log(int level, const char *module, const char *fmt, ...)
{
	const size_t n = strlen(said);
	va_list ap;

	assert_int_equal(level, GW_LOG_INFO);
	assert_string_equal(module, "recorder");
	va_start(ap, fmt);
	vsnprintf(said + n, sizeof(said) - n, fmt, ap);
	va_end(ap);
	strcat(said, "\n");
	lines++;
}

const struct eng_recorder_ring *gw_recorder(const struct gw_app *a, unsigned worker)
{
	return worker ? NULL : e->rec.ring;
}

static int set_up(void **state)
{
	e = calloc(1, sizeof(*e));
	if (!e)
		return -1;
	e->cfg.recorder_n = 256;
	app = (struct gw_app){.workers = 2};
	said[0] = 0;
	lines = 0;
	return eng_recorder_init(e);
}

static int tear_down(void **state)
{
	eng_recorder_fini(e);
	free(e);
	return 0;
}

static void record(uint32_t qpn, uint32_t peer, enum eng_record_kind kind, uint32_t value, rwy_time at)
{
	struct eng_requester rq = {
	    .side = {.is_requester = true, .e = e, .tenant = &tenant}, .remote_qpn = peer};

	rq.side.key = (struct eng_key){rwy_ip_from4((const uint8_t[]){10, 2, 0, 3}),
	    rwy_ip_from4((const uint8_t[]){10, 1, 0, 3}), qpn, 0};
	eng_record_side(&rq.side, &(struct eng_record){.kind = kind, .value = value}, at);
}

static void look(void)
{
	said[0] = 0;
	lines = 0;
	gw_recorder_log(&app);
}

static void test_once(void **state)
{
	record(7, 0, ENG_REC_BEGIN, 0, RWY_SEC);
	record(8, 18, ENG_REC_BEGIN, 0, RWY_SEC);
	record(7, 17, ENG_REC_TIMEOUT, 1, 2 * RWY_SEC);
	eng_record_engine(e, &(struct eng_record){.kind = ENG_REC_DRAIN}, NULL, 2 * RWY_SEC);
	look();
	assert_int_equal(lines, 0);
	record(7, 17, ENG_REC_FAIL, ENG_END_SILENT, 3 * RWY_SEC);
	record(7, 17, ENG_REC_REQUESTER, 0, 3 * RWY_SEC);
	look();
	assert_string_equal(said,
	    "worker=0 local=10.1.0.3 local_qpn=7 remote=10.2.0.3 remote_qpn=0 before_ms=2000.000 "
	    "event=\"requester enters the flow table\"\n"
	    "worker=0 local=10.1.0.3 local_qpn=7 remote=10.2.0.3 remote_qpn=17 before_ms=1000.000 "
	    "event=\"no answer of the host to PSN 0, in a row: 1\"\n"
	    "worker=0 local=10.1.0.3 local_qpn=7 remote=10.2.0.3 remote_qpn=17 before_ms=0.000 "
	    "event=\"requester failed at PSN 0: retry count exceeded\"\n");
	look();
	assert_int_equal(lines, 0);
}

static void test_not_all(void **state)
{
	for (unsigned i = 0; i < 30; i++)
		record(7, 17, ENG_REC_TURN, 0, RWY_SEC);
	record(7, 17, ENG_REC_FAIL, ENG_END_SILENT, 3 * RWY_SEC);
	look();
	assert_int_equal(lines, 10);
	for (unsigned i = 0; i < 9; i++)
		record(100 + i, 200 + i, ENG_REC_FAIL, ENG_END_SILENT, 3 * RWY_SEC);
	look();
	assert_int_equal(lines, 5);
	assert_non_null(strstr(said, "worker=0 failures_untold=5 "));
}

/* More entries than the ring has, since the last look. */
static void test_wrapped(void **state)
{
	record(7, 17, ENG_REC_FAIL, ENG_END_SILENT, RWY_SEC);
	for (unsigned i = 0; i < 300; i++)
		record(8, 18, ENG_REC_TURN, 0, RWY_SEC);
	look();
	assert_int_equal(lines, 0);
	record(8, 18, ENG_REC_FAIL, ENG_END_SILENT, RWY_SEC);
	look();
	assert_int_equal(lines, 10);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_once), TEST(test_not_all), TEST(test_wrapped)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
