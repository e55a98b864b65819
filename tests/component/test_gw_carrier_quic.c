/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The QUIC carrier between two gateways (carrier/lab.h): moves from and to the others, a certificate
 * of another name; and what QUIC carries here. With one worker and with two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "gateway/carrier/speed.h"
#include "tests/component/carrier/lab.h"

static void test_quic(void **state)
{
	uint64_t moves = cl_info(FP_A).c.moves_to_quic;

	cl_moves_there_and_back(WAN_CARRIER_QUIC, cl_both_quic);
	assert_int_equal(cl_info(FP_A).c.moves_to_quic, moves + 1);
	cl_ask(FP_A, WAN_CARRIER_QUIC);
	cl_until(cl_both_quic, true);
	cl_until(cl_measured, true);
	assert_true(cl_info(FP_A).path.min_rtt > 0);
}

/* From one carrier to another, by either end, and without UDP natively. */
static void test_quic_tcp(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		cl_ask((enum fp_site)(i % 2), WAN_CARRIER_TCP);
		cl_until(cl_both_tcp, true);
		cl_carry(3000);
		cl_ask((enum fp_site)((i + 1) % 2), WAN_CARRIER_QUIC);
		cl_until(cl_both_quic, true);
		cl.no_udp = i == 1; /* of the native carrier: QUIC has a socket of its own */
		cl_carry(3000);
		cl.no_udp = false;
	}
	cl_check_hosts();
}

static bool a_refused(void)
{
	return strstr(cl_info(FP_A).problem, "certificate") != NULL;
}

/* The peer's certificate has another name than this end expects. */
static void test_quic_refused(void **state)
{
	struct conf_tunnel t = cl.fp.gw[FP_A].conf.tunnel[0];
	char why[192];

	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	snprintf(t.peer_name, sizeof(t.peer_name), "site-x");
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	cl_ask(FP_A, WAN_CARRIER_QUIC);
	cl_until(a_refused, true);
	assert_string_equal(cl_info(FP_A).problem, "the peer's certificate is not for the name `site-x`");
	assert_int_equal(cl_info(FP_A).sending, WAN_CARRIER_NATIVE);
	assert_true(cl_info(FP_A).c.connect_failed > 0);
	t.peer_name[0] = 0; /* without a name it does not begin */
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(cl_app(FP_A), 0, WAN_CARRIER_QUIC, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "peer_name"));
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_A), 0, &cl.fp.gw[FP_A].conf.tunnel[0]), 0);
	gw_log_set(GW_LOG_WARNING);
	cl_ask(FP_B, WAN_CARRIER_QUIC); /* the peer's count of wishes is higher now */
	cl_until(cl_both_quic, true);
	cl_carry(2000);
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_check_hosts();
}

/* --- a peer that is authenticated and never says which tunnel it is of ------------------------ */

static struct {
	int fd;
	struct gw_quic_end *end;
	struct gw_quic_conn *conn;
} silent;

static bool silent_output(void *ctx, const struct gw_quic_out *o)
{
	return gw_quic_sock_send(silent.fd, o);
}

static const char *silent_name(void *ctx, const struct gw_quic_addr *remote)
{
	return "site-b";
}

static void silent_opened(void *ctx, struct gw_quic_conn *c, rwy_time now)
{
}

static void silent_received(
    void *ctx, struct gw_quic_conn *c, unsigned stream, const uint8_t *p, size_t n, rwy_time now)
{
	gw_quic_consumed(c, stream, n);
}

static void silent_closed(void *ctx, struct gw_quic_conn *c, const char *why, rwy_time now)
{
	silent.conn = NULL;
}

static const struct gw_quic_ops silent_ops = {
    silent_output, silent_name, silent_opened, silent_received, silent_closed};

static void silent_begin(void)
{
	const struct conf_tunnel_keys *k = &cl.fp.gw[FP_A].conf.keys;
	const struct gw_quic_addr to = {CL_LO(2), cl.port};
	struct gw_quic_tls *tls;
	struct gw_quic_cfg cfg;
	char why[GW_CERT_WHY];

	gw_quic_cfg_default(&cfg);
	cfg.local = (struct gw_quic_addr){CL_LO(1), 0};
	silent.fd = gw_quic_sock_new(&cfg.local, 0);
	assert_true(silent.fd >= 0);
	assert_int_equal(gw_quic_tls_new(&tls, &(struct gw_cert_files){k->certificate, k->key, k->ca, NULL},
	                     why, sizeof(why)),
	    0);
	assert_int_equal(gw_quic_end_new(&silent.end, &cfg, tls, &silent_ops, NULL), 0);
	gw_quic_tls_free(tls);
	assert_int_equal(gw_quic_connect(silent.end, &to, "site-b", NULL, &silent.conn, gw_now()), 0);
}

static unsigned unknown_at_b(void)
{
	struct gw_carriers *cs = cl_app(FP_B)->carriers;
	unsigned n;

	gw_carriers_lock(cs);
	n = cs->unknown;
	pthread_mutex_unlock(&cs->lock);
	return n;
}

static bool b_has_it(void)
{
	gw_quic_write(silent.end, gw_now());
	gw_quic_sock_read(silent.fd, silent.end, gw_now());
	return unknown_at_b() == 1;
}

/* Its connection ends with the last tunnel of its port. */
static void test_quic_silent_peer(void **state)
{
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_until(cl_both_closed, true);
	silent_begin();
	cl_until(b_has_it, true);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_B), 0, NULL), 0);
	assert_int_equal(unknown_at_b(), 0);
	assert_int_equal(gw_carrier_tunnel(cl_app(FP_B), 0, &cl.fp.gw[FP_B].conf.tunnel[0]), 0);
	cl_carry(1000);
	gw_quic_end_free(silent.end);
	close(silent.fd);
	cl_check_hosts();
}

/* The control center is told a rate, measured with our own certificate, or why there is none. */
static void test_quic_speed(void **state)
{
	struct conf_tunnel_keys k = cl.fp.gw[FP_A].conf.keys;
	const struct conf_quic *q = &cl.fp.gw[FP_A].conf.quic;
	char why[GW_CERT_WHY] = "";

	for (unsigned i = 0; i < 3; i++) {
		const uint64_t speed = gw_quic_speed(&k, q, why, sizeof(why));

		if (!speed)
			fail_msg("not measured: %s", why);
		print_message("QUIC measured: %u Mbit/s\n", (unsigned)(speed * 8 / 1000000));
		assert_in_range(speed, 1000000, 20000000000);
	}
	snprintf(k.ca, sizeof(k.ca), "%s/other.pem", cl.certs); /* another CA's than our own */
	assert_int_equal(gw_quic_speed(&k, q, why, sizeof(why)), 0);
	print_message("%s\n", why);
	assert_non_null(strstr(why, "ertificate"));
	snprintf(k.ca, sizeof(k.ca), "%s/none.pem", cl.certs);
	assert_int_equal(gw_quic_speed(&k, q, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "none.pem"));
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_quic),
	    cmocka_unit_test(test_quic_tcp),
	    cmocka_unit_test(test_quic_refused),
	    cmocka_unit_test(test_quic_silent_peer),
	    cmocka_unit_test(test_quic_speed),
	    cmocka_unit_test(cl_test_end),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return cl_main(argc, argv, tests);
}
