/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tunnels that come, change and go at two whole gateways (ov_lab.h), with one and with two workers, while
 * blue's connection goes through another one and notices nothing. Red's moves over, by its prefix and by
 * assignment. And who owns what: a reload leaves what the control center named, and the other way round.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/directory.h"
#include "engine/steering.h"
#include "gateway/control/change_lock.h"
#include "gateway/control/tunnels.h"
#include "rwy/endian.h"
#include "tests/component/ov_lab.h"

#define WAIT          5000     /* ms, limit for expected frames */
#define RESERVED      80000000 /* bit/s */
#define RESERVED_DSCP 44       /* of nothing else here */
#define SPORT         0xc123

static struct ov_lab lab;
static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* --- changes while the gateways run ----------------------------------------------------------- */

struct job {
	int (*fn)(struct gw_app *app, enum fp_site s, struct conf_error *err);
	struct conf_error err;
	int rc[FP_SITES];
	_Atomic bool done;
};

static void *work(void *arg)
{
	struct job *j = arg;

	gw_change_lock();
	for (unsigned s = 0; s < FP_SITES; s++)
		j->rc[s] = j->fn(&lab.fp.gw[s].app, (enum fp_site)s, &j->err);
	gw_change_unlock();
	atomic_store(&j->done, true);
	return NULL;
}

static void run(struct job *j)
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, work, j), 0);
	while (!atomic_load(&j->done))
		ov_wait(&lab);
	pthread_join(t, NULL);
}

static void good(int (*fn)(struct gw_app *app, enum fp_site s, struct conf_error *err))
{
	struct job j = {.fn = fn};

	run(&j);
	for (unsigned s = 0; s < FP_SITES; s++)
		if (j.rc[s])
			fail_msg("site %u: %d %s", s, j.rc[s], j.err.msg);
}

static void refused(int (*fn)(struct gw_app *app, enum fp_site s, struct conf_error *err), const char *want)
{
	struct job j = {.fn = fn};

	run(&j);
	if (!j.rc[0] || !j.rc[1] || !strstr(j.err.msg, want))
		fail_msg("wanted `%s`, got %d %d %s", want, j.rc[0], j.rc[1], j.err.msg);
}

/* --- hosts --------------------------------------------------------------------------------------------- */

static void announce(enum fp_site s, enum ov_tenant t)
{
	struct rwy_ip ip = ov_host(s, 1);
	uint8_t eth[64], p[28], zero[6] = {0};

	fr_arp(p, 1, ov_host_mac(s, 1), &ip, zero, &ip);
	ov_send(&lab, s, t, eth, fr_eth(eth, all, ov_host_mac(s, 1), 0, 0x0806, p, 28));
	ov_turn(&lab);
}

/* Receives a tenant's RoCE packet with that PSN at a site's LAN; false: none. */
static bool next_psn(enum fp_site s, enum ov_tenant t, uint32_t psn)
{
	uint8_t buf[FR_MAX];
	struct fr_seen f;
	uint32_t len;

	while (ov_receive(&lab, s, buf, &len, WAIT)) {
		assert_true(fr_read(buf, len, &f));
		if (f.type == 0x0800 && (f.vxlan ? f.vni == ov_vni[t] : f.vid == ov_vlan(t)) &&
		    f.net_len >= 40 && rwy_get16(f.net + 22) == 4791 && rwy_get24(f.net + 37) == psn)
			return true;
	}
	return false;
}

/* A WRITE from A, and B's ACK at A's host. */
static void exchange(enum ov_tenant t, uint32_t qpn, uint32_t psn)
{
	struct fr_roce r = {.src = ov_host(FP_A, 1),
	    .dst = ov_host(FP_B, 1),
	    .sport = SPORT,
	    .dqpn = qpn,
	    .psn = psn,
	    .payload = 256};
	uint8_t ip[FR_MAX];

	ov_send_ip(&lab, FP_A, t, 1, ip, fr_write(ip, &r));
	assert_true(next_psn(FP_B, t, psn));
	r.src = ov_host(FP_B, 1);
	r.dst = ov_host(FP_A, 1);
	r.dqpn = qpn + 1;
	ov_send_ip(&lab, FP_B, t, 1, ip, fr_ack(ip, &r, psn));
	assert_true(next_psn(FP_A, t, psn));
}

static uint64_t sum(enum fp_site s, unsigned tunnel, size_t counter)
{
	const struct gw_app *app = &lab.fp.gw[s].app;
	uint64_t n = 0;

	for (unsigned w = 0; w < app->workers; w++) {
		struct wan_stats st;

		eng_tunnel_stats(app->worker[w]->eng, tunnel, &st);
		n += *(const uint64_t *)(const void *)((const char *)&st.c + counter);
	}
	return n;
}
#define SUM(s, tunnel, f) sum(s, tunnel, offsetof(struct wan_counters, f))

/* --- one tunnel more ------------------------------------------------------------------------------------ */

static struct conf_tunnel tunnel_u(enum fp_site s)
{
	struct conf_tunnel u = lab.fp.gw[s].conf.tunnel[0];

	snprintf(u.name, sizeof(u.name), "u");
	u.udp_port = 4900;
	u.prefixes = 0;
	return u;
}

static int add_u(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct conf_tunnel u = tunnel_u(s);
	struct gw_network_done done;

	return gw_tunnel_add(app, &u, &done, err);
}

static int add_clash(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct conf_tunnel u = tunnel_u(s);
	struct gw_network_done done;

	snprintf(u.name, sizeof(u.name), "v");
	return gw_tunnel_add(app, &u, &done, err);
}

static int slow_u(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct conf_tunnel u = tunnel_u(s);
	struct gw_network_done done;

	u.rate_Bps = 12500000;
	memset(u.dscp.map, 33, sizeof(u.dscp.map));
	return gw_tunnel_set(app, &u, &done, err);
}

static int ends_u(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct conf_tunnel u = tunnel_u(s);
	struct gw_network_done done;

	u.udp_port = 5000;
	return gw_tunnel_set(app, &u, &done, err);
}

static int del_u(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct gw_network_done done;

	return gw_tunnel_del(app, "u", &done, err);
}

static int red_to(struct gw_app *app, unsigned tunnel, struct conf_error *err)
{
	struct gw_tenants_done done;
	struct conf_tenant t;
	struct tenant_prefix *p;
	int rc = gw_tenant_get(app, "red", &t);

	if (rc)
		return rc;
	p = (struct tenant_prefix *)(uintptr_t)t.cfg.prefix;
	p[1].at.tunnel = (uint8_t)tunnel;
	rc = gw_tenant_set(app, &t, &done, err);
	conf_tenant_fini(&t);
	return rc;
}

static int red_to_u(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	return red_to(app, 1, err);
}

static int red_to_t(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	return red_to(app, 0, err);
}

/* The control thread's tick, while the workers run. */
static int tick(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	gw_change_unlock();
	gw_tunnels_tick(app);
	gw_change_lock();
	return 0;
}

static void until_gone(void)
{
	rwy_time end = gw_now() + 20 * RWY_SEC;

	while (gw_tunnels_removing(&lab.fp.gw[0].app) + gw_tunnels_removing(&lab.fp.gw[1].app)) {
		ov_settle(&lab, 20);
		good(tick);
		assert_true(gw_now() < end);
	}
}

static void test_come_and_go(void **state)
{
	uint32_t blue = 100, red = 1000, qpn = 0x31;

	ov_settle(&lab, 300);
	for (unsigned s = 0; s < FP_SITES; s++) {
		announce((enum fp_site)s, OV_BLUE);
		announce((enum fp_site)s, OV_RED);
	}
	exchange(OV_BLUE, 0x21, blue++);
	exchange(OV_RED, qpn, red++);
	for (unsigned round = 0; round < 2; round++) {
		uint64_t sent;

		good(add_u);
		refused(add_u, "there already");
		refused(add_clash, "expected other UDP ports than tunnel `u`");
		refused(ends_u, "can change; for others");
		assert_int_equal(lab.fp.gw[FP_A].conf.tunnels, 2);
		exchange(OV_BLUE, 0x21, blue++);
		ov_settle(&lab, 300); /* its handshake */
		good(red_to_u);
		refused(del_u, "tenant red has prefixes behind it");
		sent = SUM(FP_A, 1, tx_data);
		qpn += 0x10;
		exchange(OV_RED, qpn, red++);
		assert_true(SUM(FP_A, 1, tx_data) > sent);
		good(slow_u);
		lab.wan_dscp[FP_A][33] = 0;
		exchange(OV_RED, qpn, red++);
		exchange(OV_BLUE, 0x21, blue++);
		ov_settle(&lab, 50);
		assert_true(lab.wan_dscp[FP_A][33] > 0); /* its acknowledgements: red has its own */
		good(red_to_t);
		good(del_u);
		assert_int_equal(gw_tunnel_find(&lab.fp.gw[FP_A].app, "u"), -1);
		assert_int_equal(lab.fp.gw[FP_A].conf.tunnels, 1);
		exchange(OV_BLUE, 0x21, blue++);
		until_gone();
		exchange(OV_BLUE, 0x21, blue++);
		qpn += 0x10;
		exchange(OV_RED, qpn, red++);
	}
	for (unsigned w = 0; w < lab.fp.gw[FP_A].app.workers; w++) {
		const struct eng_counters *e = eng_counters(lab.fp.gw[FP_A].app.worker[w]->eng);

		assert_int_equal(e->conns_failed + e->conns_lost + e->naks_sent, 0);
	}
	assert_int_equal(SUM(FP_A, 0, peer_restarts), 0);
}

/* --- assignments ---------------------------------------------------------------------------------------- */

static int assign_red(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	const struct gw_assignment v[] = {{.vni = ov_vni[OV_RED],
	                                      .src = ov_host(s, 1),
	                                      .dst = ov_host(s == FP_A ? FP_B : FP_A, 1),
	                                      .tunnel = "u",
	                                      .job = "j",
	                                      .rate_bps = RESERVED,
	                                      .has_dscp = true,
	                                      .dscp = RESERVED_DSCP},
	    {.vni = ov_vni[OV_BLUE],
	        .src = ov_host(FP_A, 1),
	        .dst = ov_host(FP_B, 1),
	        .tunnel = "no such tunnel"}};

	(void)err;
	return gw_assign(app, v, 2);
}

static unsigned reserved_parts = 1; /* equal ones, one of each worker */

/* Bytes that the only reservation has sent in both workers; 0: there is none. */
static uint64_t reserved_sent(void)
{
	struct gw_app *app = &lab.fp.gw[FP_A].app;
	uint64_t sent = 0;

	for (unsigned w = 0; w < app->workers; w++) {
		struct wan_class_stats st;

		eng_reservation_stats(app->worker[w]->eng, 1, &st);
		sent += st.sent;
		assert_true(!st.cfg.weight || st.cfg.limit_Bps == RESERVED / 8 / reserved_parts);
	}
	return sent;
}

static int assign_none(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	(void)s;
	(void)err;
	return gw_assign(app, NULL, 0);
}

/* New connections of an address pair take the tunnel that is assigned to it, as long as it is. */
static void test_assigned(void **state)
{
	uint32_t blue = 300, red = 3000, qpn = 0x101;
	uint64_t sent, reserved, marked;

	(void)state;
	good(add_u);
	ov_settle(&lab, 300); /* its handshake */
	for (unsigned round = 0; round < 3; round++) {
		good(assign_red);
		sent = SUM(FP_A, 1, tx_data);
		qpn += 0x10;
		reserved = reserved_sent();
		marked = lab.wan_dscp[FP_A][RESERVED_DSCP];
		exchange(OV_RED, qpn, red++);
		assert_true(SUM(FP_A, 1, tx_data) > sent);
		assert_true(reserved_sent() > reserved);
		assert_true(lab.wan_dscp[FP_A][RESERVED_DSCP] > marked);
		sent = SUM(FP_A, 1, tx_data);
		marked = lab.wan_dscp[FP_A][RESERVED_DSCP];
		exchange(OV_BLUE, qpn, blue++);
		assert_int_equal(SUM(FP_A, 1, tx_data), sent);
		good(assign_none);
		reserved = reserved_sent();
		qpn += 0x10;
		exchange(OV_RED, qpn, red++);
		assert_int_equal(SUM(FP_A, 1, tx_data), sent);
		assert_int_equal(reserved_sent(), reserved);
		assert_int_equal(lab.wan_dscp[FP_A][RESERVED_DSCP], marked);
	}
	good(del_u);
	until_gone();
}

static struct eng_directory *directory;

/* As if workers steered by queue pair. */
static int assign_red_in_parts(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	int rc;

	app->directory = directory;
	rc = assign_red(app, s, err);
	app->directory = NULL;
	return rc;
}

/* Each worker may send its part only. */
static void test_reserved_in_parts(void **state)
{
	uint32_t red = 4000;

	(void)state;
	assert_int_equal(eng_directory_new(&directory, 64, 1), 0);
	good(add_u);
	ov_settle(&lab, 300); /* its handshake */
	good(assign_red_in_parts);
	reserved_parts = lab.fp.gw[FP_A].app.workers;
	exchange(OV_RED, 0x201, red);
	assert_true(reserved_sent() > 0);
	good(assign_red);
	reserved_parts = 1;
	exchange(OV_RED, 0x211, red + 1);
	assert_true(reserved_sent() > 0);
	good(assign_none);
	good(del_u);
	until_gone();
	eng_directory_free(directory);
}

/* --- two sides ------------------------------------------------------------------------------------------ */

static int controller_says(struct gw_app *app, const char *text, struct conf_error *err)
{
	struct conf_tunnel *own = calloc(CONF_TUNNELS_MAX, sizeof(*own));
	struct gw_network_done done;
	struct conf *c = NULL;
	int rc;

	assert_non_null(own);
	rc = conf_network_parse(&c, app->conf, own, gw_tunnels_own(app, own), text, strlen(text), err);
	if (!rc)
		rc = gw_network_apply(app, c, GW_SIDE_CONTROLLER, NULL, &done, err);
	if (c)
		conf_free(c);
	free(own);
	return rc;
}

static int doc_two(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	char text[800];

	snprintf(text, sizeof(text),
	    "{tunnels: [{name: c1, port: wan, local: 192.0.2.%u, remote: 192.0.2.%u, udp_port: 5001, "
	    "security: none},"
	    " {name: c2, port: wan, local: 192.0.2.%u, remote: 192.0.2.%u, udp_port: 5101, security: none}],"
	    " tenants: [{name: teal, vni: 6001, prefixes: [{prefix: 172.16.0.0/24, at: vtep},"
	    " {prefix: 172.17.0.0/24, at: c2}, {prefix: 172.18.0.0/24, at: t}]}]}",
	    s + 1, 2 - s, s + 1, 2 - s);
	return controller_says(app, text, err);
}

static int doc_one(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	char text[800];

	snprintf(text, sizeof(text),
	    "{tunnels: [{name: c2, port: wan, local: 192.0.2.%u, remote: 192.0.2.%u, udp_port: 5101, "
	    "security: none}],"
	    " tenants: [{name: teal, vni: 6001, prefixes: [{prefix: 172.16.0.0/24, at: vtep},"
	    " {prefix: 172.17.0.0/24, at: c2}]}]}",
	    s + 1, 2 - s);
	return controller_says(app, text, err);
}

static int doc_red(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	return controller_says(
	    app, "{tenants: [{name: red, vni: 6001, prefixes: [{prefix: 172.16.0.0/24, at: vtep}]}]}", err);
}

static int doc_vni(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	char text[400];

	snprintf(text, sizeof(text),
	    "{tunnels: [{name: c9, port: wan, local: 192.0.2.%u, remote: 192.0.2.9, security: none}], "
	    "tenants: [{name: teal, vni: 5001, prefixes: [{prefix: 172.16.0.0/24, at: vtep}]}]}",
	    s + 1);
	return controller_says(app, text, err);
}

static int doc_empty(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	return controller_says(app, "{tunnels: []}", err);
}

/* The file as it was at the start. */
static int reload(struct gw_app *app, enum fp_site s, struct conf_error *err)
{
	struct gw_network_done done;
	struct conf *c = conf_network_new(app->conf);
	int rc = 0;

	assert_non_null(c);
	c->tunnel[0] = app->conf->tunnel[gw_tunnel_find(app, "t")];
	c->tunnels = 1;
	c->tenant = calloc(OV_TENANTS, sizeof(*c->tenant));
	for (unsigned i = 0; i < OV_TENANTS && !rc; i++, c->tenants++)
		rc = conf_tenant_copy(&c->tenant[i], &lab.fp.gw[s].conf.tenant[i]);
	if (!rc)
		rc = gw_network_apply(app, c, GW_SIDE_OWN, NULL, &done, err);
	conf_free(c);
	return rc;
}

static void there(const char *tunnel, const char *tenant, bool yes)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		struct gw_app *app = &lab.fp.gw[s].app;
		struct gw_tenant_info i;

		if (*tunnel)
			assert_int_equal(gw_tunnel_find(app, tunnel) >= 0, yes);
		if (*tenant)
			assert_int_equal(gw_tenant_info_get(app, tenant, &i) == 0, yes);
	}
}

static void test_sides(void **state)
{
	uint32_t psn = 200;
	uint64_t gen, run;

	exchange(OV_BLUE, 0x21, psn++);
	good(doc_two);
	there("c1", "teal", true);
	there("c2", "red", true);
	there("t", "blue", true);
	assert_int_equal(gw_tunnel_side(&lab.fp.gw[0].app, (unsigned)gw_tunnel_find(&lab.fp.gw[0].app, "c1")),
	    GW_SIDE_CONTROLLER);
	assert_int_equal(gw_tenant_side(&lab.fp.gw[0].app, "teal"), GW_SIDE_CONTROLLER);
	assert_int_equal(gw_tenant_side(&lab.fp.gw[0].app, "blue"), GW_SIDE_OWN);
	refused(doc_red, "there is a tenant of this name already");
	refused(doc_vni, "another tenant has this VNI");
	there("c9", "", false);
	there("c1", "teal", true);
	gw_tenants_generation(&lab.fp.gw[0].app, &gen, &run);
	good(doc_two); /* the same document again: no change */
	uint64_t gen2;

	gw_tenants_generation(&lab.fp.gw[0].app, &gen2, &run);
	assert_int_equal(gen, gen2);
	good(add_u); /* one of the gateway's own */
	good(reload);
	there("u", "", false);
	there("c1", "teal", true);
	there("c2", "red", true);
	exchange(OV_BLUE, 0x21, psn++);
	good(doc_one);
	there("c1", "", false);
	there("c2", "teal", true);
	good(doc_empty);
	there("c2", "teal", false);
	there("t", "red", true);
	exchange(OV_BLUE, 0x21, psn++);
	until_gone();
	exchange(OV_BLUE, 0x21, psn++);
}

static int tests(void)
{
	const struct CMUnitTest t[] = {cmocka_unit_test(test_come_and_go), cmocka_unit_test(test_assigned),
	    cmocka_unit_test(test_reserved_in_parts), cmocka_unit_test(test_sides)};

	return cmocka_run_group_tests(t, NULL, NULL);
}

int main(int argc, char **argv)
{
	return ov_main(argc, argv, &lab, tests);
}
