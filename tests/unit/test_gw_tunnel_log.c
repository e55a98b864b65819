/* SPDX-License-Identifier: Apache-2.0 */
/* What the control thread reads of tunnels once a second (gateway/control/tunnel_log.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/engine.h"
#include "gateway/gw.h"
#include "gateway/port/neigh.h"
#include "gateway/control/tunnels.h"
#include "gateway/setup.h"

#define WORKERS 2

static struct gw_app app;
static struct conf conf;
static struct gw_port port;
static rwy_time now;
static uint64_t datagrams; /* sent and received by each worker's part of each tunnel */
static char said[1024];    /* the last line */

rwy_time gw_now(void)
{
	return now;
}

void gw_log(int level, const char *module, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
}

void gw_tunnels_read(struct gw_app *a)
{
}

void gw_tunnels_read_end(struct gw_app *a)
{
}

void gw_counters_get(const struct gw_app *a, unsigned worker, struct gw_counters *out)
{
	*out = (struct gw_counters){0};
}

int gw_call(struct gw_app *a, unsigned worker, void (*fn)(struct eng *e, void *arg), void *arg)
{
	fn(NULL, arg);
	return 0;
}

void eng_tunnel_stats(const struct eng *e, unsigned tunnel, struct wan_stats *out)
{
	*out = (struct wan_stats){.c = {.tx_datagrams = datagrams, .rx_datagrams = datagrams}};
}

const struct gw_nh *gw_nt_find(const struct gw_nt *t, const struct gw_app *a, const struct rwy_ip *dst,
    int wan_port, enum gw_nh_miss *miss, struct rwy_ip *addr, uint16_t *at)
{
	return NULL;
}

static int set_up(void **state)
{
	conf = (struct conf){.tunnels = 3};
	strcpy(conf.tunnel[0].name, "b");
	strcpy(conf.tunnel[2].name, "c"); /* nothing has the number 1 */
	app = (struct gw_app){.conf = &conf, .workers = WORKERS, .port = {&port}};
	for (unsigned i = 0; i < WORKERS; i++) {
		app.worker[i] = calloc(1, sizeof(*app.worker[i]));
		if (!app.worker[i])
			return -1;
	}
	now = 1000 * RWY_SEC;
	return 0;
}

static int tear_down(void **state)
{
	gw_tunnels_log_end(&app);
	for (unsigned i = 0; i < WORKERS; i++)
		free(app.worker[i]);
	return 0;
}

static void worker_says(unsigned worker, unsigned tunnel, bool up)
{
	atomic_store(&app.worker[worker]->tun_state[tunnel], now << 1 | up);
}

static void says(unsigned tunnel, bool up)
{
	for (unsigned i = 0; i < WORKERS; i++)
		worker_says(i, tunnel, up);
}

static void run(rwy_dur d)
{
	for (const rwy_time end = now + d; now < end; now += RWY_SEC)
		gw_tunnels_log(&app);
}

/* A far gateway has told when its tunnel was up for long enough at a time, at every worker. */
static void test_told(void **state)
{
	assert_false(gw_tunnels_told(&app));
	says(2, true); /* by a tunnel that had this number before */
	now += 2 * ENG_TELLS_FOR;
	says(0, true);
	run(ENG_TELLS_FOR);
	assert_false(gw_tunnels_told(&app));
	says(2, false);
	says(2, true); /* within a second */
	run(ENG_TELLS_FOR);
	assert_false(gw_tunnels_told(&app));
	worker_says(0, 2, false);
	run(ENG_TELLS_FOR);
	assert_false(gw_tunnels_told(&app));
	worker_says(0, 2, true);
	run(ENG_TELLS_FOR);
	assert_false(gw_tunnels_told(&app));
	run(2 * RWY_SEC);
	assert_true(gw_tunnels_told(&app));
	says(0, false); /* it has told */
	run(RWY_SEC);
	assert_true(gw_tunnels_told(&app));
	strcpy(conf.tunnel[1].name, "d");
	run(RWY_SEC);
	assert_false(gw_tunnels_told(&app));
	*conf.tunnel[1].name = 0;
	run(RWY_SEC);
	assert_true(gw_tunnels_told(&app));
}

/* A tunnel takes the place of one of its name and number: it begins to count anew. */
static void test_counts(void **state)
{
	conf.tunnels = 1;
	datagrams = 1000;
	says(0, true);
	run(2 * RWY_SEC);
	assert_non_null(strstr(said, "sent=2000 received=2000"));
	datagrams = 1100;
	says(0, false);
	run(2 * RWY_SEC);
	assert_non_null(strstr(said, "sent=200 received=200"));
	datagrams = 10;
	says(0, true);
	run(2 * RWY_SEC);
	assert_non_null(strstr(said, "sent=0 received=0"));
	datagrams = 15;
	says(0, false);
	run(2 * RWY_SEC);
	assert_non_null(strstr(said, "sent=10 received=10"));
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(test_told),
	    CASE(test_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
