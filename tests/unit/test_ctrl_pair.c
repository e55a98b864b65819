/* SPDX-License-Identifier: Apache-2.0 */
/* What one of a pair tells the control center (gateway/agent/pair.h), over a made-up worker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/agent/internal.h"
#include "gateway/agent/pair.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/tunnels.h"

static struct eng_standby_info info;
static bool hangs;
static unsigned resyncs;
static struct conf *conf;
static struct gw_app app;
static struct gw_ctrl ctrl;
static rwy_time now;

rwy_time gw_now(void)
{
	return now;
}

int gw_call(struct gw_app *a, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	if (hangs)
		return RWY_EAGAIN;
	fn(NULL, arg);
	return 0;
}

bool eng_standby_info(const struct eng *e, struct eng_standby_info *out)
{
	*out = info;
	return true;
}

void gw_change_lock(void)
{
}

void gw_change_unlock(void)
{
}

unsigned gw_tunnels_own(struct gw_app *a, struct conf_tunnel *out)
{
	memcpy(out, a->conf->tunnel, sizeof(a->conf->tunnel));
	return a->conf->tunnels;
}

void ctrl_resync(void *ctx)
{
	resyncs++;
}

static int set_up(void **state)
{
	struct conf_error err;

	if (conf_load(&conf, "conf/samples/pair.yaml", &err) != 0)
		return -1;
	info = (struct eng_standby_info){
	    .state = "ready", .other = "paired", .term = 3, .took_by = "", .lost_by = ""};
	hangs = false;
	resyncs = 0;
	app = (struct gw_app){.conf = conf, .workers = 1};
	ctrl = (struct gw_ctrl){.app = &app};
	conf_member(conf, ctrl.member);
	now = 10 * RWY_SEC;
	return 0;
}

static int tear_down(void **state)
{
	conf_free(conf);
	return 0;
}

static void set_local(const char *text)
{
	struct rwy_ip *a = &conf->tunnel[conf_standby(conf)].local;

	memset(a, 0, sizeof(*a));
	for (unsigned i = 0; i < 8; i++) {
		unsigned v = (unsigned)strtoul(text + 5 * (size_t)i, NULL, 16);

		a->b[2 * i] = (uint8_t)(v >> 8);
		a->b[2 * i + 1] = (uint8_t)v;
	}
}

static void test_name(void **state)
{
	char name[CONF_NAME];

	assert_string_equal(ctrl.member, "169.254.77.1");
	set_local("fe80:0000:0000:0000:0000:0000:0000:0001");
	conf_member(conf, name);
	assert_string_equal(name, "fe80--1");
	set_local("2001:0db8:aaaa:bbbb:cccc:dddd:eeee:ff02"); /* 38 characters: its end tells the two apart */
	conf_member(conf, name);
	assert_string_equal(name, "8-aaaa-bbbb-cccc-dddd-eeee-ff02");
	set_local("0000:0000:0000:0000:0000:0000:0000:0005");
	conf_member(conf, name);
	assert_string_equal(name, "5");
	snprintf(conf->controller.member, sizeof(conf->controller.member), "rack-1");
	conf_member(conf, name);
	assert_string_equal(name, "rack-1");
	conf->tunnel[conf_standby(conf)].standby = false;
	conf_member(conf, name);
	assert_string_equal(name, "");
}

/* The two files differ in the cable and in the member's name, and in nothing else. */
static void test_digest(void **state)
{
	const unsigned pair = (unsigned)conf_standby(conf), n = conf->tunnels;
	const uint64_t h = ctrl_pair_digest(conf, conf->tunnel, n);

	conf->tunnel[pair].local.b[15] = 2;
	conf->tunnel[pair].remote.b[15] = 1;
	conf->port[2].addr[0].addr.b[15] = 2;
	snprintf(conf->controller.member, sizeof(conf->controller.member), "rack-2");
	assert_true(ctrl_pair_digest(conf, conf->tunnel, n) == h);
#define DIFFERS(field)                                                                                       \
	(field)++;                                                                                           \
	assert_true(ctrl_pair_digest(conf, conf->tunnel, n) != h);                                           \
	(field)--;                                                                                           \
	assert_true(ctrl_pair_digest(conf, conf->tunnel, n) == h)
	DIFFERS(conf->port[0].mac[5]);
	DIFFERS(conf->port[0].mtu);
	DIFFERS(conf->port[1].addr[0].addr.b[15]);
	DIFFERS(conf->tunnel[0].remote.b[15]);
	DIFFERS(conf->tunnel[0].prefix[0].len);
	DIFFERS(conf->tunnel[0].rate_Bps);
	DIFFERS(conf->name[0]);
	conf->ack_mode = CONF_ACK_NEAR;
	assert_true(ctrl_pair_digest(conf, conf->tunnel, n) != h);
}

static void test_says(void **state)
{
	json_t *j;

	info.since = now - 2 * RWY_SEC;
	j = ctrl_pair(&ctrl);
	assert_string_equal(json_string_value(json_object_get(j, "member")), "169.254.77.1");
	assert_string_equal(json_string_value(json_object_get(j, "state")), "ready");
	assert_string_equal(json_string_value(json_object_get(j, "other")), "paired");
	assert_int_equal(json_integer_value(json_object_get(j, "epoch")), 3);
	assert_int_equal(json_integer_value(json_object_get(j, "age_ms")), 2000);
	assert_int_equal(json_string_length(json_object_get(j, "configuration")), 16);
	assert_null(json_object_get(j, "served"));
	json_decref(j);
	assert_false(ctrl_pair_news(&ctrl));
	info = (struct eng_standby_info){.state = "alone",
	    .other = "",
	    .serves = true,
	    .term = 4,
	    .took_by = "silent",
	    .took_at = now - RWY_SEC,
	    .lost_by = "stuck",
	    .lost_at = now - RWY_MS};
	assert_true(ctrl_pair_news(&ctrl));
	assert_int_equal(resyncs, 1); /* its connections are told by this process now */
	j = ctrl_pair(&ctrl);
	assert_null(json_object_get(j, "other"));
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "served"), "by")), "silent");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "served"), "age_ms")), 1000);
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "lost"), "by")), "stuck");
	json_decref(j);
	assert_false(ctrl_pair_news(&ctrl));
	assert_int_equal(resyncs, 1);
	info.lost_at = now;
	assert_true(ctrl_pair_news(&ctrl));
}

/* A worker that does not answer is not asked again and again: what it said last is said. */
static void test_worker_hangs(void **state)
{
	json_t *j;

	hangs = true;
	assert_null(ctrl_pair(&ctrl));
	assert_false(ctrl_pair_news(&ctrl));
	hangs = false;
	json_decref(ctrl_pair(&ctrl));
	hangs = true;
	info.state = "alone";
	j = ctrl_pair(&ctrl);
	assert_string_equal(json_string_value(json_object_get(j, "state")), "ready");
	json_decref(j);
	assert_false(ctrl_pair_news(&ctrl));
	*ctrl.member = 0;
	assert_null(ctrl_pair(&ctrl));
	assert_false(ctrl_pair_news(&ctrl));
}

#define T(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {T(test_name), T(test_digest), T(test_says), T(test_worker_hangs)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
