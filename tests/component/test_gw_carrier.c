/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TCP carrier between two gateways (carrier/lab.h): moves to TCP and back, connections that die,
 * unknown peers, invalid data, a WAN that drops all UDP. With one worker and with two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/component/carrier/lab.h"

static void test_move(void **state)
{
	assert_true(cl_both_native());
	cl_moves_there_and_back(WAN_CARRIER_TCP, cl_both_tcp);
	assert_true(cl_info(FP_A).by_peer);
	for (unsigned s = 0; s < FP_SITES; s++) {
		assert_int_equal(cl_info(s).c.moves_to_tcp, 1);
		assert_int_equal(cl_info(s).c.moves_to_native, 1);
		assert_int_equal(cl_wan_sum(s).stream_breaks, 0);
		assert_int_equal(cl_wan_sum(s).went_down, 0);
	}
	cl_ask(FP_A, WAN_CARRIER_TCP);
	cl_until(cl_both_tcp, true);
	assert_true(cl_info(FP_B).by_peer && !cl_info(FP_A).by_peer);
	assert_true(cl_info(FP_A).congestion[0]);
	/* The connections measure the path: nothing is sent natively that could measure it. */
	cl_until(cl_measured, true);
	assert_in_range(cl_info(FP_A).path.srtt, cl_info(FP_A).path.min_rtt, RWY_SEC);
	assert_true(cl_info(FP_A).path.min_rtt > 0 && cl_info(FP_A).path.loss_ppm <= 1000000);
	assert_true(cl_wan_sum(FP_B).stream_sent > 0); /* the other direction moved with it */
}

/* Many moves, by either end, some before the last one is complete. */
static void test_many_moves(void **state)
{
	for (unsigned i = 0; i < 30; i++) {
		cl_ask((enum fp_site)(i * 7 / 3 % 2), i % 2 ? WAN_CARRIER_NATIVE : WAN_CARRIER_TCP);
		cl_carry(i % 3 ? 300 : 3000);
	}
	/* The other end's last request may still be in flight, and win. */
	for (unsigned i = 0; i < 20 && (!i || !cl_both_want(WAN_CARRIER_TCP)); i++) {
		cl_ask(FP_A, WAN_CARRIER_TCP);
		cl_carry(3000);
	}
	cl_until(cl_both_tcp, true);
	/* Both ends at once: they agree in the end. */
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_ask(FP_B, WAN_CARRIER_TCP);
	cl_carry(3000);
	assert_int_equal(cl_info(FP_A).wanted, cl_info(FP_B).wanted);
	cl_check_hosts();
}

static void test_die(void **state)
{
	cl_ask(FP_B, WAN_CARRIER_TCP);
	for (unsigned i = 0; i < 5; i++) {
		cl_until(cl_both_tcp, true);
		cl_carry(1000);
		for (unsigned s = 0; s < FP_SITES; s++)
			cl.fallbacks[s] = cl_info(s).c.fallbacks;
		cl_kill_one((enum fp_site)(i % 2));
		cl_until(cl_both_fell, true); /* counted, and */
		cl_carry(1000);               /* traffic continues, */
	}
	cl_until(cl_both_tcp, true); /* and returns to TCP as soon as possible */
	cl_check_hosts();
}

/* All UDP is dropped: TCP works. */
static void test_no_udp(void **state)
{
	cl_ask(FP_A, WAN_CARRIER_TCP);
	cl_until(cl_both_tcp, true);
	cl.no_udp = true;
	cl_carry(20000);
	cl.no_udp = false;
	cl_ask(FP_A, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	/* It dies while traffic is native: data in flight goes by TCP. */
	cl_carry(1000);
	cl.no_udp = true;
	cl_ask(FP_A, WAN_CARRIER_TCP);
	cl_until(cl_both_tcp, true);
	cl_carry(5000);
	cl.no_udp = false;
	cl_check_hosts();
}

static int dial(uint8_t from, enum fp_site to)
{
	struct base_sockaddr a;
	struct rwy_ip src = CL_LO(from), dst = CL_LO((uint8_t)(1 + to));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval patience = {.tv_sec = 10};

	base_sockaddr_make(&a, &src, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a.ss, a.len), 0);
	base_sockaddr_make(&a, &dst, cl.port);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	assert_int_equal(connect(fd, (struct sockaddr *)&a.ss, a.len), 0);
	return fd;
}

/* The gateway closes it without an answer. */
static void check_closed(int fd)
{
	uint8_t b[256];
	ssize_t n;

	while ((n = recv(fd, b, sizeof(b), 0)) > 0)
		;
	assert_true(n == 0 || errno == ECONNRESET);
	close(fd);
}

static void test_refused(void **state)
{
	uint8_t bytes[300];
	struct gw_carrier_info was = cl_info(FP_A);
	struct wan_conn c;
	int fd, idle[100];

	/* an address that is no peer's */
	check_closed(dial(9, FP_A));
	assert_int_equal(cl_info(FP_A).strangers, was.strangers + 1);
	/* The peer's address, but no record; a datagram before the handshake; an endless record. */
	fd = dial(2, FP_A);
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	check_closed(fd);
	fd = dial(2, FP_A);
	memset(bytes, 0, sizeof(bytes));
	wan_rec_head(bytes, WAN_REC_DATAGRAM, 0, 100);
	assert_int_equal(send(fd, bytes, 104, MSG_NOSIGNAL), 104);
	check_closed(fd);
	fd = dial(2, FP_A);
	wan_rec_head(bytes, WAN_REC_DATAGRAM, 0, 65535);
	assert_int_equal(send(fd, bytes, 4, MSG_NOSIGNAL), 4);
	check_closed(fd);
	/* Another tunnel's handshake. */
	fd = dial(2, FP_A);
	wan_conn_init(&c, 12345, 1, 2, true);
	assert_int_equal(wan_conn_put(&c, bytes), WAN_REC_HELLO_LEN);
	assert_int_equal(send(fd, bytes, WAN_REC_HELLO_LEN, MSG_NOSIGNAL), WAN_REC_HELLO_LEN);
	check_closed(fd);
	/* The right tunnel, but without the answer that only the peer can give. */
	fd = dial(2, FP_A);
	wan_conn_init(&c, conf_tunnel_id(&cl.fp.gw[FP_A].conf.tunnel[0], 0), 1, 2, true);
	assert_int_equal(wan_conn_put(&c, bytes), WAN_REC_HELLO_LEN);
	assert_int_equal(send(fd, bytes, WAN_REC_HELLO_LEN, MSG_NOSIGNAL), WAN_REC_HELLO_LEN);
	assert_int_equal(recv(fd, bytes, WAN_REC_HELLO_LEN, MSG_WAITALL), WAN_REC_HELLO_LEN);
	wan_conn_init(&c, conf_tunnel_id(&cl.fp.gw[FP_A].conf.tunnel[0], 0), 1, 2, true);
	c.known = true;
	c.peer_nonce = 4711;
	c.peer_epoch = 1;
	wan_conn_put(&c, bytes);
	send(fd, bytes, WAN_REC_HELLO_LEN, MSG_NOSIGNAL);
	check_closed(fd);
	assert_true(cl_info(FP_A).c.refused_tunnel > was.c.refused_tunnel);
	/* Many silent connections: limited, closed in time, and the tunnel still moves. */
	for (unsigned i = 0; i < 100; i++)
		idle[i] = dial(2, FP_A);
	cl_turn(true);
	assert_true(cl_app(FP_A)->carriers->unknown <= GW_CONNS_UNKNOWN);
	cl_ask(FP_A, WAN_CARRIER_TCP);
	cl_until(cl_both_tcp, true);
	cl_carry(2000);
	for (unsigned i = 0; i < 100; i++)
		check_closed(idle[i]);
	assert_true(cl_info(FP_A).slow > was.slow);
	assert_int_equal(cl_app(FP_A)->carriers->unknown, 0);
	assert_int_equal(cl_info(FP_A).c.fallbacks, was.c.fallbacks);
	cl_check_hosts();
}

static void test_refused_set(void **state)
{
	struct conf_tunnel t = cl.fp.gw[FP_A].conf.tunnel[0];
	struct gw_app *a = cl_app(FP_A);
	struct gw_carrier_info i;
	char why[160];

	assert_int_equal(gw_carrier_set(a, 7, WAN_CARRIER_TCP, why, sizeof(why)), RWY_ENOENT);
	/* A congestion control that no kernel has: the error lists those of the kernel. */
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "nosuch");
	t.tcp_port = (uint16_t)(cl.port + 1);
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), RWY_EINVAL);
	assert_string_not_equal(a->carriers->tun[3].problem, "");
	assert_non_null(
	    strstr(a->carriers->tun[3].problem, "`nosuch` is not in this kernel; the kernel has: "));
	assert_non_null(strstr(a->carriers->tun[3].problem, "cubic"));
	/* No TCP by configuration. */
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "cubic");
	t.tcp_port = 0;
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "nosuch"); /* nobody asks for it */
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), 0);
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "cubic");
	assert_int_equal(gw_carrier_set(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "tcp_port: 0"));
	assert_int_equal(gw_carrier_can(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), RWY_EINVAL);
	assert_int_equal(gw_carrier_can(a, 3, WAN_CARRIER_NATIVE, why, sizeof(why)), 0);
	assert_int_equal(gw_carrier_can(a, 7, WAN_CARRIER_NATIVE, why, sizeof(why)), RWY_ENOENT);
	assert_int_equal(gw_carrier_detour(a, 3, WAN_CARRIER_TCP, 1, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "tcp_port: 0"));
	assert_int_equal(gw_carrier_detour(a, 7, WAN_CARRIER_TCP, 1, why, sizeof(why)), RWY_ENOENT);
	/* A port in use. */
	t.tcp_port = 22;
	t.tcp_local = CL_LO(1);
	t.tcp_port = (uint16_t)(cl.port + 1);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct base_sockaddr sa;

	base_sockaddr_make(&sa, &t.tcp_local, t.tcp_port);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa.ss, sa.len), 0);
	assert_int_equal(listen(fd, 1), 0);
	/* Native by configuration: it continues without TCP. */
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), 0);
	assert_int_equal(gw_carrier_set(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "in use"));
	t.carrier = CONF_CARRIER_TCP;
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), RWY_EINVAL);
	/* The tunnel is there, says why, and can have TCP when the port is free. */
	gw_carrier_info(a, 3, &i);
	assert_int_equal(i.wanted, WAN_CARRIER_TCP);
	assert_non_null(strstr(i.problem, "in use"));
	assert_int_equal(gw_carrier_set(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), RWY_EINVAL);
	close(fd);
	assert_int_equal(gw_carrier_set(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), 0);
	gw_carrier_info(a, 3, &i);
	assert_string_equal(i.problem, "");
	assert_int_equal(gw_carrier_can(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), 0);
	assert_int_equal(gw_carrier_tunnel(a, 3, NULL), 0);
	gw_log_set(GW_LOG_WARNING);
	cl_check_hosts();
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
	    cmocka_unit_test(test_move),
	    cmocka_unit_test(test_many_moves),
	    cmocka_unit_test(test_die),
	    cmocka_unit_test(test_no_udp),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_refused_set),
	    cmocka_unit_test(cl_test_end),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return cl_main(argc, argv, tests);
}
