/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RDMA carrier between two gateways (carrier/lab.h), over a made-up device: moves from and to the
 * others, connections that die, a device that goes, REQs that are refused. With one worker and two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/component/carrier/lab.h"
#include "gateway/carrier/rdma_flow.h"
#include "tests/lib/rdma/fake.h"

static void test_rdma(void **state)
{
	struct gw_carrier_info was[2] = {cl_info(FP_A), cl_info(FP_B)};

	cl_moves_there_and_back(WAN_CARRIER_RDMA, cl_both_rdma);
	for (unsigned s = 0; s < FP_SITES; s++)
		assert_int_equal(cl_info(s).c.moves_to_rdma, was[s].c.moves_to_rdma + 1);
	assert_true(rdma_fake_count().inlined > 0);
	/* Hosts write from A to B: B has less to send than credits to give. */
	assert_true(cl_info(FP_B).c.tx_credits > was[FP_B].c.tx_credits);
}

/* From and to each other carrier, by either end, and without UDP natively. */
static void test_rdma_others(void **state)
{
	static const enum wan_carrier other[] = {WAN_CARRIER_TCP, WAN_CARRIER_QUIC, WAN_CARRIER_NATIVE};
	static bool (*const there[])(void) = {cl_both_tcp, cl_both_quic, cl_both_native};

	for (unsigned i = 0; i < 6; i++) {
		cl_ask((enum fp_site)(i % 2), WAN_CARRIER_RDMA);
		cl_until(cl_both_rdma, true);
		cl.no_udp = i == 1;
		cl_carry(3000);
		cl.no_udp = false;
		cl_ask((enum fp_site)((i + 1) % 2), other[i % 3]);
		cl_until(there[i % 3], true);
		cl_carry(1000);
	}
	cl_check_hosts();
}

static bool says(const char *what)
{
	return strstr(cl_info(FP_A).problem, what) || strstr(cl_info(FP_B).problem, what);
}

/* A completion with an error; a line that is cut, where nothing tells but time. */
static void test_rdma_dies(void **state)
{
	static const struct {
		enum rdma_fake_fault fault;
		const char *what;
	} row[] = {{RDMA_FAKE_ERROR, "transport retry counter exceeded"},
	    {RDMA_FAKE_CUT, "no acknowledgement for 4 s"},
	    {RDMA_FAKE_ERROR, "transport retry counter exceeded"}};

	gw_log_set(-1);
	cl_ask(FP_B, WAN_CARRIER_RDMA);
	for (unsigned i = 0; i < 3; i++) {
		cl_until(cl_both_rdma, true);
		cl_carry(1000);
		for (unsigned s = 0; s < FP_SITES; s++)
			cl.fallbacks[s] = cl_info(s).c.fallbacks;
		rdma_fake_fault(row[i].fault);
		cl_until(cl_both_fell, true);
		cl_carry(1000); /* natively */
		if (row[i].fault == RDMA_FAKE_CUT) {
			assert_true(cl_both_native());
			assert_int_equal(cl_info(FP_A).wanted, WAN_CARRIER_RDMA);
		}
		rdma_fake_fault(RDMA_FAKE_NONE);
		if (!says(row[i].what) && !cl_both_rdma())
			fail_msg("`%s`, `%s`", cl_info(FP_A).problem, cl_info(FP_B).problem);
	}
	cl_until(cl_both_rdma, true);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
}

/* The device is removed while it carries all, and comes back: its port listens again. */
static void test_rdma_removed(void **state)
{
	gw_log_set(-1);
	cl_ask(FP_A, WAN_CARRIER_RDMA);
	cl_until(cl_both_rdma, true);
	cl_carry(1000);
	rdma_fake_remove();
	cl_until(cl_both_native, true);
	cl_carry(1000);
	rdma_fake_net(127);
	cl_until(cl_both_rdma, true);
	cl_carry(1000);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
}

/* --- what the device tells -------------------------------------------------------------------- */
static char folder[] = "/tmp/rwy-rdma-XXXXXX";

/* The device has counted so many NAKs for a sequence error. */
static void naks_put(unsigned n)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/ports/1/hw_counters/rcvd_seq_err", folder);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "%u\n", n) > 0);
	assert_int_equal(fclose(f), 0);
}

static void folders_make(void)
{
	static const char *const below[] = {"ports", "ports/1", "ports/1/hw_counters"};
	char path[128];

	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, below[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	naks_put(7);
	rdma_fake_counters(folder);
}

static bool lossy(void)
{
	return cl_info(FP_A).path.loss_ppm > 0;
}

/* Without such a counter nothing is reported; with it round trips and losses are. What the device had
 * counted before is not ours. */
static void test_rdma_measured(void **state)
{
	uint64_t sent;

	cl_ask(FP_A, WAN_CARRIER_RDMA);
	cl_until(cl_both_rdma, true);
	for (rwy_time end = gw_now() + 2 * RWY_SEC; gw_now() < end;)
		cl_turn(true);
	assert_int_equal(cl_info(FP_A).path.at, 0);
	folders_make();
	cl_until(cl_measured, true);
	assert_true(cl_info(FP_A).path.srtt > 0 && cl_info(FP_A).path.srtt < RWY_SEC);
	assert_true(cl_info(FP_A).path.min_rtt > 0);
	assert_int_equal(cl_info(FP_A).path.loss_ppm, 0);
	sent = cl_info(FP_A).c.tx_datagrams;
	naks_put(7 + 655);
	cl_until(lossy, true);
	/* of 65,536 datagrams at least */
	if (cl_info(FP_A).c.tx_datagrams < 65536)
		assert_in_range(cl_info(FP_A).path.loss_ppm, 9900, 10000);
	assert_true(cl_info(FP_A).c.tx_datagrams > sent);
	rdma_fake_counters("");
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
}

/* A REQ from an address of the fake's network to site A. */
static struct rdma_cm_id *rdma_dial(
    struct rdma_event_channel *ch, uint8_t from, const uint8_t *said, uint8_t n, enum rdma_cm_event_type want)
{
	struct rdma_conn_param param = {.private_data = said, .private_data_len = n};
	struct base_sockaddr src, dst;
	struct rwy_ip a = CL_RDMA(from), b = CL_RDMA(1 + FP_A);
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	base_sockaddr_make(&src, &a, 0);
	base_sockaddr_make(&dst, &b, cl.port);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src.ss, (struct sockaddr *)&dst.ss, 0), 0);
	assert_int_equal(rdma_get_cm_event(ch, &ev), 0); /* its address is resolved */
	rdma_ack_cm_event(ev);
	assert_int_equal(rdma_connect(id, &param), 0);
	while (rdma_get_cm_event(ch, &ev) != 0)
		cl_turn(false);
	assert_int_equal(ev->event, want);
	rdma_ack_cm_event(ev);
	return id;
}

static void test_rdma_refused(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct gw_carrier_info was = cl_info(FP_A);
	uint8_t said[GW_RDMA_GREETING];
	struct rdma_cm_id *id[7];

	gw_rdma_greeting_put(said, &(struct gw_rdma_greeting){.slots = 64});
	/* An address that is no peer's; a peer without a greeting, and with one of another version. */
	rdma_destroy_id(rdma_dial(ch, 9, said, sizeof(said), RDMA_CM_EVENT_REJECTED));
	assert_int_equal(cl_info(FP_A).strangers, was.strangers + 1);
	rdma_destroy_id(rdma_dial(ch, 2, said, 0, RDMA_CM_EVENT_REJECTED));
	said[4]++;
	rdma_destroy_id(rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_REJECTED));
	assert_int_equal(cl_info(FP_A).early, was.early + 2);
	/* So many that say nothing, and no more; each ends in time, or with its peer. */
	said[4]--;
	for (unsigned i = 0; i < 6; i++)
		id[i] = rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_ESTABLISHED);
	id[6] = rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(cl_info(FP_A).many, was.many + 1);
	for (unsigned i = 5; i < 7; i++)
		rdma_destroy_id(id[i]);
	for (unsigned end = 0; end < 5;) {
		struct rdma_cm_event *ev;

		if (rdma_get_cm_event(ch, &ev) == 0) {
			assert_int_equal(ev->event, RDMA_CM_EVENT_DISCONNECTED);
			rdma_ack_cm_event(ev);
			end++;
		}
		cl_turn(false);
	}
	assert_int_equal(cl_info(FP_A).slow, was.slow + 5);
	for (unsigned i = 0; i < 5; i++)
		rdma_destroy_id(id[i]);
	rdma_destroy_event_channel(ch);
}

/* A tunnel whose address no RDMA device has. */
static void test_rdma_nowhere(void **state)
{
	struct conf_tunnel t = cl.fp.gw[FP_A].conf.tunnel[0];
	char why[192];

	rdma_fake_net(10);
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(cl_app(FP_A), 0, WAN_CARRIER_RDMA, why, sizeof(why)), RWY_EINVAL);
	assert_string_equal(why, "no RDMA: no RDMA device has the address 127.88.0.101");
	assert_string_equal(cl_info(FP_A).problem, why);
	t.carrier = CONF_CARRIER_RDMA; /* then it must not begin */
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), RWY_EINVAL);
	t = cl.fp.gw[FP_A].conf.tunnel[0];
	t.rdma_port = 0;
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(cl_app(FP_A), 0, WAN_CARRIER_RDMA, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "has `rdma_port: 0` in the configuration: no RDMA"));
	rdma_fake_net(127);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &cl.fp.gw[FP_A].conf.tunnel[0]), 0);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_B, WAN_CARRIER_RDMA); /* the peer's count of wishes is higher now */
	cl_until(cl_both_rdma, true);
	cl_carry(1000);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_check_hosts();
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_rdma),
	    cmocka_unit_test(test_rdma_others),
	    cmocka_unit_test(test_rdma_dies),
	    cmocka_unit_test(test_rdma_removed),
	    cmocka_unit_test(test_rdma_measured),
	    cmocka_unit_test(test_rdma_refused),
	    cmocka_unit_test(test_rdma_nowhere),
	    cmocka_unit_test(cl_test_end),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return cl_main(argc, argv, tests);
}
