/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue rules (gateway/offload/queues.h) of gateways with two workers on ports made of rings, with a device
 * that has rte_flow: the functions of rte_flow are the test's. What it is asked, what it refuses, what it
 * loses; and that datagrams come to their worker's queue by the rules that it was given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <string.h>

#include "gateway/datapath/notes.h"
#include "gateway/datapath/pkt.h"
#include "gateway/offload/queues.h"
#include "rwy/endian.h"
#include "tests/bench/fp_run.h"
#include "tests/component/queues/device.h"

#define WORKERS  2
#define QPS      16
#define UDP_PORT 4793
#define RETRY    10 /* ticks */
#define WAIT     20 /* s */

static struct fp_run run;

/* --- gateway A ---------------------------------------------------------------------------------------- */

static struct gw_app *app(void)
{
	return &run.lab.gw[FP_A].app;
}

static struct conf *conf(void)
{
	return &run.lab.gw[FP_A].conf;
}

static struct gw_port *wan(void)
{
	return app()->port[FP_WAN];
}

static void begin(void)
{
	assert_int_equal(gw_queue_rules_new(app()), 0);
}

static void ticks(unsigned n)
{
	while (n--)
		gw_queue_rules_tick(app());
}

static int queue_of(const struct gw_port *p, const struct rwy_ip *dst, uint16_t udp_port)
{
	return device_queue(p->id, dst, udp_port);
}

static void shows(unsigned rules, unsigned installed, const char *why)
{
	struct gw_queue_rules_info q;

	assert_true(gw_queue_rules_get(app(), FP_WAN, &q));
	assert_int_equal(q.rules, rules);
	assert_int_equal(q.installed, installed);
	assert_string_equal(q.why, why);
	assert_int_equal(device_flows(), installed);
	assert_false(gw_queue_rules_get(app(), FP_LAN, &q));
}

static int setup(void **state)
{
	device = (struct device){.room = DEVICE_FLOWS};
	return 0;
}

static int teardown(void **state)
{
	struct conf *c = conf();

	gw_queue_rules_free(app());
	assert_int_equal(device_flows(), 0);
	for (unsigned i = 0; i < RTE_DIM(device.watch); i++)
		assert_null(device.watch[i].fn);
	memset(&c->tunnel[1], 0, sizeof(c->tunnel[1]));
	c->tunnel[0].paths = 0;
	c->tunnels = 1;
	c->port[FP_WAN].queue_rules = true;
	wan()->vlan = 0;
	atomic_store(&wan()->up, true);
	return 0;
}

static struct conf_tunnel *second_tunnel(void)
{
	struct conf *c = conf();

	c->tunnel[1] = c->tunnel[0];
	snprintf(c->tunnel[1].name, sizeof(c->tunnel[1].name), "u");
	c->tunnel[1].remote.b[15] = 77;
	c->tunnels = 2;
	return &c->tunnel[1];
}

/* --- tests -------------------------------------------------------------------------------------------- */

static void test_each_worker_has_a_rule(void **state)
{
	struct conf_tunnel *u = second_tunnel();

	u->local = (struct rwy_ip){{0xfd, 0, 0, 1, [15] = 9}};
	u->udp_port = 5000;
	begin();
	shows(4, 4, "");
	for (unsigned k = 0; k < WORKERS; k++) {
		const uint16_t worker = (uint16_t)k;

		assert_int_equal(queue_of(wan(), &conf()->tunnel[0].local, UDP_PORT + worker), k);
		assert_int_equal(queue_of(wan(), &u->local, 5000 + worker), k);
		assert_int_equal(queue_of(wan(), &u->local, UDP_PORT + worker), -1);
	}
	assert_int_equal(device.asked, 4);
}

static void test_any_tag_where_the_port_has_a_vlan(void **state)
{
	wan()->vlan = 1000;
	begin();
	shows(2, 2, "");
	assert_true(device.flow[0].vlan && device.flow[1].vlan);
}

static void test_tunnels_of_one_address_share_rules(void **state)
{
	second_tunnel();
	begin();
	shows(2, 2, "");
}

/* The UDP port between them is worker 1's of one tunnel and worker 0's of the other. */
static void test_no_rule_for_a_port_of_two_workers(void **state)
{
	struct conf_tunnel *u = second_tunnel();

	u->udp_port = UDP_PORT + 1;
	begin();
	shows(3, 2, "tunnels to several peers use one UDP port for two workers");
	assert_int_equal(queue_of(wan(), &u->local, UDP_PORT), 0);
	assert_int_equal(queue_of(wan(), &u->local, UDP_PORT + 1), -1);
	assert_int_equal(queue_of(wan(), &u->local, UDP_PORT + 2), 1);
	/* At an address of its own it is told apart. */
	u->local.b[15] = 99;
	gw_queue_rules_follow(app());
	shows(4, 4, "");
	assert_int_equal(queue_of(wan(), &u->local, UDP_PORT + 1), 0);
	assert_int_equal(queue_of(wan(), &conf()->tunnel[0].local, UDP_PORT + 1), 1);
}

static void test_tunnels_and_paths_come_and_go(void **state)
{
	struct conf_tunnel *u;
	unsigned made;

	begin();
	made = device.made;
	conf()->tunnel[0].path[0] = (struct conf_path){.udp_port = 4900};
	conf()->tunnel[0].paths = 1;
	u = second_tunnel();
	u->paths = 0;
	u->udp_port = 5000;
	gw_queue_rules_follow(app());
	shows(6, 6, "");
	assert_int_equal(device.made, made + 4);
	assert_int_equal(device.removed, 0); /* those that stay are not touched */
	assert_int_equal(queue_of(wan(), &u->local, 4901), 1);
	conf()->tunnel[0].paths = 0;
	u->name[0] = 0; /* a free number */
	gw_queue_rules_follow(app());
	shows(2, 2, "");
	assert_int_equal(device.removed, 4);
}

static void test_a_refusal_is_of_the_family(void **state)
{
	struct conf_tunnel *u = second_tunnel();

	u->local = (struct rwy_ip){{0xfd, 0, 0, 1, [15] = 9}};
	device.no6 = true;
	begin();
	shows(4, 2, "no such pattern");
	assert_int_equal(device.asked, 3); /* the second one of IPv6 is not tried */
	ticks(3 * RETRY);
	assert_int_equal(device.asked, 3);
	device.no6 = false;
	gw_queue_rules_follow(app());
	shows(4, 4, "");
}

static void test_retries_for_want_of_room(void **state)
{
	device.room = 1;
	begin();
	shows(2, 1, "table full");
	device.room = DEVICE_FLOWS;
	device.busy = true;
	ticks(RETRY);
	shows(2, 1, "busy");
	device.busy = false;
	ticks(2 * RETRY - 1);
	shows(2, 1, "busy");
	ticks(1);
	shows(2, 2, "");
}

static void test_resets(void **state)
{
	begin();
	device_event(wan()->id, RTE_ETH_EVENT_RECOVERY_SUCCESS, true);
	assert_int_equal(device_flows(), 0);
	ticks(1);
	shows(2, 2, "");
	assert_int_equal(device.removed, 0); /* handles that are void are not used */
	device_event(app()->port[FP_LAN]->id, RTE_ETH_EVENT_RECOVERY_SUCCESS, true);
	ticks(1);
	assert_int_equal(device.made, 4);
	gw_queue_rules_free(app());
	device.keeps = true;
	begin();
	device_event(wan()->id, RTE_ETH_EVENT_RECOVERY_SUCCESS, false);
	ticks(1);
	shows(2, 2, "");
	assert_int_equal(device.made, 6);
}

static void test_link(void **state)
{
	begin();
	atomic_store(&wan()->up, false);
	ticks(2);
	assert_int_equal(device.removed, 0);
	atomic_store(&wan()->up, true);
	ticks(2);
	shows(2, 2, "");
	assert_int_equal(device.removed, 2);
	assert_int_equal(device.made, 4);
}

static void test_ports_without_rules(void **state)
{
	const unsigned rxqs = wan()->rxqs;
	struct gw_queue_rules_info q;

	conf()->port[FP_WAN].queue_rules = false;
	begin();
	shows(0, 0, "`queue_rules` is off");
	gw_queue_rules_follow(app());
	ticks(RETRY);
	shows(0, 0, "`queue_rules` is off");
	gw_queue_rules_free(app());
	conf()->port[FP_WAN].queue_rules = true;
	wan()->rxqs = 1;
	begin();
	shows(0, 0, "the device has fewer receive queues than there are workers");
	gw_queue_rules_free(app());
	wan()->rxqs = rxqs;
	app()->workers = 1;
	begin();
	assert_false(gw_queue_rules_get(app(), FP_WAN, &q));
	gw_queue_rules_follow(app());
	ticks(1);
	app()->workers = WORKERS;
	assert_int_equal(device.asked, 0);
}

/* --- datagrams ---------------------------------------------------------------------------------------- */

/* Hosts' packets come to their owner. A datagram comes where a rule says, else to the wrong worker. */
static unsigned arrives_at(const struct fp_port *p, const struct rte_mbuf *m)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, GW_ETH);
	const struct rwy_ip dst = rwy_ip_from4(ip + 16);
	const uint16_t udp_port = rwy_get16(ip + 22);

	for (unsigned s = 0; s < FP_SITES; s++) {
		const struct fp_gw *g = &run.lab.gw[s];
		struct gw_pkt k = {.off = GW_ETH};
		int q;

		if (p == &g->port[FP_LAN]) {
			assert_int_equal(gw_pkt_ip(m, RWY_ETHER_IP4, &k), GW_PKT_OK);
			return gw_worker_of(&g->app, 0, m, &k);
		}
		if (p != &g->port[FP_WAN])
			continue;
		q = queue_of(g->app.port[FP_WAN], &dst, udp_port);
		return q >= 0 ? (unsigned)q : (unsigned)(udp_port - UDP_PORT + 1) % WORKERS;
	}
	fail_msg("no port");
	return 0;
}

static void turns(enum fp_site s)
{
	do {
		for (unsigned k = 0; k < WORKERS; k++)
			gw_worker_turn(run.lab.gw[s].app.worker[k]);
		fp_hosts_read(run.hosts, s);
	} while (fp_waiting(&run.lab.gw[s]));
}

static void batch(unsigned packets)
{
	fp_hosts_send(run.hosts, packets);
	for (unsigned s = 0; s < FP_SITES; s++) {
		fp_run_wire_give(&run, (enum fp_site)s);
		turns((enum fp_site)s);
		fp_run_wire_take(&run, (enum fp_site)s);
	}
	run.batch_no++;
}

static uint64_t handed_over(void)
{
	uint64_t n = 0;

	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned k = 0; k < WORKERS; k++)
			n += run.lab.gw[s].app.worker[k]->c.handoff;
	return n;
}

static uint64_t datagrams(unsigned worker)
{
	return run.lab.gw[FP_B].app.worker[worker]->c.to_engine_wan;
}

/* Packets of all queue pairs that cross; returns the frames that workers handed to each other meanwhile. */
static uint64_t cross(unsigned packets)
{
	const struct fp_stats *st = fp_hosts_stats(run.hosts);
	const uint64_t before = handed_over(), end = rte_rdtsc() + WAIT * rte_get_tsc_hz();

	for (unsigned n = 0; n < packets; n += 16)
		batch(16);
	while (fp_before(end) && st->received < st->sent)
		batch(0);
	assert_int_equal(st->received, st->sent);
	assert_int_equal(st->wrong, 0);
	return handed_over() - before;
}

/* A host is asked again for the first packet of a connection that goes to another worker. */
static void pair_all(void)
{
	const uint64_t end = rte_rdtsc() + WAIT * rte_get_tsc_hz();
	uint64_t paired = 0;

	fp_hosts_window(run.hosts, 1);
	batch(QPS);
	while (fp_before(end) && paired < QPS) {
		batch(1);
		paired = 0;
		for (unsigned k = 0; k < WORKERS; k++)
			paired += eng_counters(run.lab.gw[FP_A].app.worker[k]->eng)->conns_paired;
	}
	assert_int_equal(paired, QPS);
	fp_hosts_window(run.hosts, 64);
}

static void test_datagrams_come_to_their_worker(void **state)
{
	uint64_t was[WORKERS];

	pair_all();
	(void)cross(2000); /* what pairing has left over */
	for (unsigned k = 0; k < WORKERS; k++)
		was[k] = datagrams(k);
	assert_true(cross(2000) > 500);
	for (unsigned k = 0; k < WORKERS; k++)
		assert_true(datagrams(k) > was[k]); /* both workers take part */
	for (unsigned s = 0; s < FP_SITES; s++)
		assert_int_equal(gw_queue_rules_new(&run.lab.gw[s].app), 0);
	assert_int_equal(device_flows(), FP_SITES * WORKERS);
	assert_int_equal(cross(2000), 0);
	gw_queue_rules_free(&run.lab.gw[FP_B].app);
}

static void with_steering(struct conf *c, enum fp_site s)
{
	c->steering = CONF_STEER_QP;
	c->port[FP_WAN].queue_rules = true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_each_worker_has_a_rule, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_any_tag_where_the_port_has_a_vlan, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_tunnels_of_one_address_share_rules, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_no_rule_for_a_port_of_two_workers, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_tunnels_and_paths_come_and_go, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_a_refusal_is_of_the_family, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_retries_for_want_of_room, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_resets, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_link, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_ports_without_rules, setup, teardown),
	    cmocka_unit_test_setup_teardown(test_datagrams_come_to_their_worker, setup, teardown),
	};
	const struct fp_cfg cfg = {.payload = 1024,
	    .qps = QPS,
	    .message = 4,
	    .batch = 16,
	    .workers = WORKERS,
	    .queues = WORKERS,
	    .conf = with_steering};
	char *eal[] = {"test", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};

	fp_begin(10, eal, GW_LOG_ERROR);
	fp_lab_new(&run.lab, &cfg);
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < FP_PORTS; i++)
			run.lab.gw[s].port[i].queue_of = arrives_at;
	run.hosts = fp_hosts_new(&run.lab);
	atomic_store(&wan()->up, true);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
