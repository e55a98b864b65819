/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two complete gateways (tests/bench/fp_lab.h), hosts that write all the time, and the TCP carrier
 * between them over real sockets of the loopback interface: moves to TCP and back, connections that
 * die, unknown peers, invalid data, a WAN that drops all UDP, detours where it drops much; the same
 * by QUIC, and by RDMA over a made-up device. The responder checks that every byte arrives once and
 * in order; no host ever gets an error. With one worker and with two.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/carrier/internal.h"
#include "gateway/carrier/rdma_flow.h"
#include "gateway/setup.h"
#include "tests/component/ov_lab.h"
#include "tests/lib/cert/cert.h"
#include "tests/lib/rdma/fake.h"
#include "tests/lib/rng.h"

#define WAIT  (20 * RWY_SEC) /* limit for expected events */
#define UNDER 512            /* most packets in flight */
#define FIRST 64             /* of them, before the hosts have answered so many */
#define LO(n) rwy_ip_from4((uint8_t[4]){127, 88, 0, n})

static struct fp_lab lab;
static struct fp_hosts *hosts;
static bool no_udp;
static unsigned dropped_of_8; /* of eight native datagrams, by chance */
static uint64_t dice = 1;
static uint64_t udp[FP_SITES]; /* datagrams that a site sent natively */
static uint16_t port;
static char certs[64]; /* directory */

/* --- the lab ------------------------------------------------------------------------------------------- */
static void conf(struct conf *c, enum fp_site s)
{
	struct conf_tunnel *t = &c->tunnel[0];

	t->tcp_port = port;
	t->tcp_connections = 3;
	snprintf(t->tcp_cc, sizeof(t->tcp_cc), "auto");
	t->tcp_local = LO((uint8_t)(1 + s));
	t->tcp_remote = LO((uint8_t)(2 - s));
	t->quic_port = port;
	t->rdma_port = port;
	t->rdma_buffers = 50; /* 64 */
	snprintf(t->peer_name, sizeof(t->peer_name), "%s", s == FP_A ? "site-b" : "site-a");
	snprintf(c->keys.certificate, sizeof(c->keys.certificate), "%s/%c.pem", certs, 'a' + s);
	snprintf(c->keys.key, sizeof(c->keys.key), "%s/%c.key", certs, 'a' + s);
	snprintf(c->keys.ca, sizeof(c->keys.ca), "%s/ca.pem", certs);
	c->quic.window = 8u << 20;
}

static void certificates_make(void)
{
	struct cert_ca *ca;

	snprintf(certs, sizeof(certs), "/tmp/rwy-carrier-XXXXXX");
	if (!mkdtemp(certs))
		fp_die("no directory");
	ca = cert_ca_new(certs, "ca");
	cert_make(ca, &(struct cert_spec){.file = "a", .name = "site-a"});
	cert_make(ca, &(struct cert_spec){.file = "b", .name = "site-b"});
	cert_ca_free(ca);
}

static struct gw_app *app(enum fp_site s)
{
	return &lab.gw[s].app;
}

static void wan(enum fp_site from)
{
	struct rte_mbuf *m, *c;

	while (rte_ring_dequeue(lab.gw[from].port[FP_WAN].tx, (void **)&m) == 0) {
		udp[from]++;
		if (!no_udp && rng_below(&dice, 8) >= dropped_of_8) {
			c = fp_copy(&lab, rte_pktmbuf_mtod(m, void *), m->data_len);
			for (struct rte_mbuf *x = m->next; x; x = x->next)
				memcpy(rte_pktmbuf_append(c, x->data_len), rte_pktmbuf_mtod(x, void *),
				    x->data_len);
			fp_arrive(&lab.gw[1 - from].port[FP_WAN], c);
		}
		rte_pktmbuf_free(m);
	}
}

static void turn(bool send)
{
	const struct fp_stats *st = fp_hosts_stats(hosts);

	/* These hosts never retransmit, and memory for flows that nobody has answered is small. */
	if (send && st->sent < st->received + (st->received < FIRST ? FIRST : UNDER))
		fp_hosts_send(hosts, 32);
	for (unsigned s = 0; s < FP_SITES; s++) {
		for (unsigned i = 0; i < app(s)->workers; i++)
			gw_worker_turn(app(s)->worker[i]);
		wan((enum fp_site)s);
		fp_hosts_read(hosts, (enum fp_site)s);
	}
	if (!send)
		usleep(50); /* the carriers' threads share two CPUs with other processes */
}

static struct gw_carrier_info info(enum fp_site s)
{
	struct gw_carrier_info i;

	gw_carrier_info(app(s), 0, &i);
	return i;
}

static bool all_there(void)
{
	const struct fp_stats *st = fp_hosts_stats(hosts);

	return st->received == st->sent;
}

static bool both_tcp(void)
{
	return info(FP_A).sending == WAN_CARRIER_TCP && info(FP_B).sending == WAN_CARRIER_TCP;
}

static bool both_quic(void)
{
	return info(FP_A).sending == WAN_CARRIER_QUIC && info(FP_B).sending == WAN_CARRIER_QUIC;
}

static bool both_rdma(void)
{
	return info(FP_A).sending == WAN_CARRIER_RDMA && info(FP_B).sending == WAN_CARRIER_RDMA;
}

static bool both_native(void)
{
	return info(FP_A).sending == WAN_CARRIER_NATIVE && info(FP_B).sending == WAN_CARRIER_NATIVE;
}

static bool both_want(enum wan_carrier c)
{
	return info(FP_A).wanted == c && info(FP_B).wanted == c;
}

static bool both_closed(void)
{
	return !info(FP_A).connections && !info(FP_B).connections;
}

static bool measured(void)
{
	return info(FP_A).path.at && info(FP_B).path.at;
}

static void until(bool (*fn)(void), bool send)
{
	rwy_time end = gw_now() + WAIT;

	while (!fn()) {
		if (gw_now() > end)
			fail_msg(
			    "it does not happen: A %s/%s %u `%s`, B %s/%s %u `%s`, sent %lu received %lu",
			    wan_carrier_name(info(FP_A).sending), wan_carrier_name(info(FP_A).wanted),
			    info(FP_A).connections, info(FP_A).problem, wan_carrier_name(info(FP_B).sending),
			    wan_carrier_name(info(FP_B).wanted), info(FP_B).connections, info(FP_B).problem,
			    (unsigned long)fp_hosts_stats(hosts)->sent,
			    (unsigned long)fp_hosts_stats(hosts)->received);
		turn(send);
	}
}

/* Runs until this many more packets have arrived. */
static void carry(uint64_t packets)
{
	uint64_t to = fp_hosts_stats(hosts)->received + packets;
	rwy_time end = gw_now() + WAIT;

	while (fp_hosts_stats(hosts)->received < to) {
		assert_true(gw_now() < end);
		turn(true);
	}
}

static void ask(enum fp_site s, enum wan_carrier c)
{
	char why[160] = "";

	if (gw_carrier_set(app(s), 0, c, why, sizeof(why)) != 0)
		fail_msg("refused: %s", why);
}

/* All packets have arrived once, and no host got an error. */
static void check_hosts(void)
{
	const struct fp_stats *st = fp_hosts_stats(hosts);

	until(all_there, false);
	assert_int_equal(st->wrong, 0);
	assert_int_equal(st->nak, 0);
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < app(s)->workers; i++)
			assert_int_equal(eng_counters(app(s)->worker[i]->eng)->conns_failed, 0);
}

static struct wan_counters wan_sum(enum fp_site s)
{
	struct wan_counters c = {0};

	for (unsigned i = 0; i < app(s)->workers; i++) {
		struct wan_stats st;

		eng_tunnel_stats(app(s)->worker[i]->eng, 0, &st);
		c.stream_sent += st.c.stream_sent;
		c.stream_received += st.c.stream_received;
		c.stream_lost += st.c.stream_lost;
		c.stream_breaks += st.c.stream_breaks;
		c.went_down += st.c.went_down;
		c.retransmit_detour += st.c.retransmit_detour;
	}
	return c;
}

/* --- moves --------------------------------------------------------------------------------------------- */
static void test_move(void **state)
{
	carry(2000);
	assert_true(both_native());
	ask(FP_A, WAN_CARRIER_TCP);
	until(both_tcp, true);
	carry(500); /* packets natively in flight */
	uint64_t before[2] = {udp[0], udp[1]}, sent = wan_sum(FP_A).stream_sent;

	carry(20000);
	assert_true(wan_sum(FP_A).stream_sent > sent + 19000);
	assert_true(wan_sum(FP_B).stream_sent > 0); /* the other direction moved with it */
	assert_true(udp[0] == before[0] && udp[1] == before[1]);
	assert_true(info(FP_B).by_peer && !info(FP_A).by_peer);
	assert_true(info(FP_A).congestion[0]);
	/* The connections measure the path: nothing is sent natively that could measure it. */
	until(measured, true);
	assert_in_range(info(FP_A).path.srtt, info(FP_A).path.min_rtt, RWY_SEC);
	assert_true(info(FP_A).path.min_rtt > 0 && info(FP_A).path.loss_ppm <= 1000000);
	/* Back, on request of the other end. */
	ask(FP_B, WAN_CARRIER_NATIVE);
	until(both_native, true);
	carry(5000);
	assert_true(info(FP_A).by_peer);
	until(both_closed, true);
	check_hosts();
	for (unsigned s = 0; s < FP_SITES; s++) {
		assert_int_equal(info(s).c.moves_to_tcp, 1);
		assert_int_equal(info(s).c.moves_to_native, 1);
		assert_int_equal(info(s).c.fallbacks, 0);
		assert_int_equal(wan_sum(s).stream_lost, 0); /* nothing was sent again */
		assert_int_equal(wan_sum(s).stream_breaks, 0);
		assert_int_equal(wan_sum(s).went_down, 0);
	}
}

/* Many moves, by either end, some before the last one is complete. */
static void test_many_moves(void **state)
{
	for (unsigned i = 0; i < 30; i++) {
		ask((enum fp_site)(i * 7 / 3 % 2), i % 2 ? WAN_CARRIER_NATIVE : WAN_CARRIER_TCP);
		carry(i % 3 ? 300 : 3000);
	}
	/* The other end's last request may still be in flight, and win. */
	for (unsigned i = 0; i < 20 && (!i || !both_want(WAN_CARRIER_TCP)); i++) {
		ask(FP_A, WAN_CARRIER_TCP);
		carry(3000);
	}
	until(both_tcp, true);
	/* Both ends at once: they agree in the end. */
	ask(FP_A, WAN_CARRIER_NATIVE);
	ask(FP_B, WAN_CARRIER_TCP);
	carry(3000);
	assert_int_equal(info(FP_A).wanted, info(FP_B).wanted);
	check_hosts();
}

/* --- failures --------------------------------------------------------------------------------- */
/* A site's connection dies as in a network failure: no warning, data in flight. */
static void kill_one(enum fp_site s)
{
	struct gw_carriers *cs = app(s)->carriers;

	pthread_mutex_lock(&cs->lock);
	for (unsigned i = 0; i < cs->top; i++)
		if (cs->conn[i].state == GW_CONN_OPEN) {
			struct linger now = {.l_onoff = 1};

			setsockopt(cs->conn[i].fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
			shutdown(cs->conn[i].fd, SHUT_RDWR);
			break;
		}
	pthread_mutex_unlock(&cs->lock);
}

static uint64_t fallbacks_before[FP_SITES];

static bool both_fell(void)
{
	return info(FP_A).c.fallbacks > fallbacks_before[FP_A] &&
	       info(FP_B).c.fallbacks > fallbacks_before[FP_B];
}

static void test_die(void **state)
{
	ask(FP_B, WAN_CARRIER_TCP);
	for (unsigned i = 0; i < 5; i++) {
		until(both_tcp, true);
		carry(1000);
		for (unsigned s = 0; s < FP_SITES; s++)
			fallbacks_before[s] = info(s).c.fallbacks;
		kill_one((enum fp_site)(i % 2));
		until(both_fell, true); /* counted, and */
		carry(1000);            /* traffic continues, */
	}
	until(both_tcp, true); /* and returns to TCP as soon as possible */
	check_hosts();
}

/* All UDP is dropped: TCP works. */
static void test_no_udp(void **state)
{
	ask(FP_A, WAN_CARRIER_TCP);
	until(both_tcp, true);
	no_udp = true;
	carry(20000);
	no_udp = false;
	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	/* It dies while traffic is native: data in flight goes by TCP. */
	carry(1000);
	no_udp = true;
	ask(FP_A, WAN_CARRIER_TCP);
	until(both_tcp, true);
	carry(5000);
	no_udp = false;
	check_hosts();
}

/* --- detours ---------------------------------------------------------------------------------- */
static void detour(enum fp_site s, enum wan_carrier by, unsigned after)
{
	char why[160] = "";

	if (gw_carrier_detour(app(s), 0, by, after, why, sizeof(why)) != 0)
		fail_msg("refused: %s", why);
}

/* The carrier answers each worker of the site in time. */
static bool ready(enum fp_site s)
{
	for (unsigned i = 0; i < app(s)->workers; i++) {
		struct wan_stats st;

		eng_tunnel_stats(app(s)->worker[i]->eng, 0, &st);
		if (!st.detour_proven)
			return false;
	}
	return info(s).detouring;
}

static bool a_ready(void)
{
	return ready(FP_A);
}

static bool both_ready(void)
{
	return ready(FP_A) && ready(FP_B);
}

static uint64_t detoured[FP_SITES];

static bool more_by_a(void)
{
	return wan_sum(FP_A).retransmit_detour > detoured[FP_A] + 20;
}

static void note_detours(void)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		detoured[s] = wan_sum(s).retransmit_detour;
}

static void none_left(void)
{
	for (unsigned s = 0; s < FP_SITES; s++)
		detour(s, WAN_CARRIER_NATIVE, 0);
	until(both_closed, true);
}

/* Much is lost: what is lost again goes by the carrier, all else stays native. */
static void detours_by(enum wan_carrier by)
{
	struct gw_carrier_info was[2] = {info(FP_A), info(FP_B)};

	if (!both_native()) {
		ask(FP_A, WAN_CARRIER_NATIVE);
		until(both_native, true);
	}
	until(both_closed, true);
	/* One end alone: the other one keeps the connections for it, and lets nothing go by them. */
	detour(FP_A, by, 1);
	until(a_ready, true);
	assert_int_equal(info(FP_A).detour, by);
	assert_int_equal(info(FP_A).via, by);
	carry(2000);
	note_detours();
	dropped_of_8 = 2;
	until(more_by_a, true);
	assert_int_equal(wan_sum(FP_B).retransmit_detour, detoured[FP_B]);
	assert_false(info(FP_B).detouring);
	/* Both (B's hosts only answer, so it has no data to lose). */
	detour(FP_B, by, 1);
	until(both_ready, true);
	note_detours();
	until(more_by_a, true);
	assert_true(both_native());
	assert_int_equal(info(FP_A).c.detours_began, was[FP_A].c.detours_began + 1);
	assert_int_equal(info(FP_A).c.fallbacks, was[FP_A].c.fallbacks);
	dropped_of_8 = 0;
	check_hosts();
}

static uint64_t opened_before;

static bool opened_anew(void)
{
	return info(FP_A).c.detours_began > opened_before && both_ready();
}

static void test_detour(void **state)
{
	detours_by(WAN_CARRIER_TCP);
	/* A connection dies with what took the detour: traffic goes on, and new ones are opened. */
	dropped_of_8 = 2;
	for (unsigned i = 0; i < 3; i++) {
		opened_before = info(FP_A).c.detours_began;
		kill_one((enum fp_site)(i % 2));
		until(opened_anew, true);
		note_detours();
		until(more_by_a, true);
	}
	/* Everything by TCP, and back: then detours again. */
	opened_before = info(FP_A).c.detours_began;
	ask(FP_A, WAN_CARRIER_TCP);
	until(both_tcp, true);
	assert_false(info(FP_A).detouring);
	ask(FP_B, WAN_CARRIER_NATIVE);
	until(both_native, true);
	until(opened_anew, true);
	dropped_of_8 = 0;
	none_left();
	check_hosts();
}

static void test_detour_quic(void **state)
{
	detours_by(WAN_CARRIER_QUIC);
	none_left();
	check_hosts();
}

/* --- QUIC ------------------------------------------------------------------------------------- */
static void test_quic(void **state)
{
	struct gw_carrier_info was[2] = {info(FP_A), info(FP_B)};
	uint64_t sent, lost[2] = {wan_sum(FP_A).stream_lost, wan_sum(FP_B).stream_lost};

	if (!both_native()) {
		ask(FP_A, WAN_CARRIER_NATIVE);
		until(both_native, true);
	}
	until(both_closed, true);
	ask(FP_A, WAN_CARRIER_QUIC);
	until(both_quic, true);
	carry(500);
	sent = wan_sum(FP_A).stream_sent;
	uint64_t before[2] = {udp[0], udp[1]};

	carry(20000);
	assert_true(wan_sum(FP_A).stream_sent > sent + 19000);
	assert_true(udp[0] == before[0] && udp[1] == before[1]);
	until(measured, true);
	assert_true(info(FP_A).path.min_rtt > 0);
	ask(FP_B, WAN_CARRIER_NATIVE);
	until(both_native, true);
	carry(5000);
	until(both_closed, true);
	check_hosts();
	for (unsigned s = 0; s < FP_SITES; s++) {
		assert_int_equal(info(s).c.moves_to_quic, was[s].c.moves_to_quic + 1);
		assert_int_equal(info(s).c.fallbacks, was[s].c.fallbacks);
		assert_int_equal(wan_sum(s).stream_lost, lost[s]); /* nothing was sent again */
	}
}

/* From one carrier to another, by either end, and without UDP natively. */
static void test_quic_tcp(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		ask((enum fp_site)(i % 2), WAN_CARRIER_TCP);
		until(both_tcp, true);
		carry(3000);
		ask((enum fp_site)((i + 1) % 2), WAN_CARRIER_QUIC);
		until(both_quic, true);
		no_udp = i == 1; /* of the native carrier: QUIC has a socket of its own */
		carry(3000);
		no_udp = false;
	}
	check_hosts();
}

static bool a_refused(void)
{
	return strstr(info(FP_A).problem, "certificate") != NULL;
}

/* The peer's certificate has another name than this end expects. */
static void test_quic_refused(void **state)
{
	struct conf_tunnel t = lab.gw[FP_A].conf.tunnel[0];
	char why[192];

	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	until(both_closed, true);
	snprintf(t.peer_name, sizeof(t.peer_name), "site-x");
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &t), 0);
	ask(FP_A, WAN_CARRIER_QUIC);
	until(a_refused, true);
	assert_string_equal(info(FP_A).problem, "the peer's certificate is not for the name `site-x`");
	assert_int_equal(info(FP_A).sending, WAN_CARRIER_NATIVE);
	assert_true(info(FP_A).c.connect_failed > 0);
	t.peer_name[0] = 0; /* without a name it does not begin */
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(app(FP_A), 0, WAN_CARRIER_QUIC, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "peer_name"));
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &lab.gw[FP_A].conf.tunnel[0]), 0);
	gw_log_set(GW_LOG_WARNING);
	ask(FP_B, WAN_CARRIER_QUIC); /* the peer's count of wishes is higher now */
	until(both_quic, true);
	carry(2000);
	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	check_hosts();
}

/* --- RDMA, over the device of tests/lib/rdma/fake.h ------------------------------------------ */
static void test_rdma(void **state)
{
	struct gw_carrier_info was[2] = {info(FP_A), info(FP_B)};
	uint64_t sent, lost[2] = {wan_sum(FP_A).stream_lost, wan_sum(FP_B).stream_lost};

	if (!both_native()) {
		ask(FP_A, WAN_CARRIER_NATIVE);
		until(both_native, true);
	}
	until(both_closed, true);
	ask(FP_A, WAN_CARRIER_RDMA);
	until(both_rdma, true);
	carry(500);
	sent = wan_sum(FP_A).stream_sent;
	uint64_t before[2] = {udp[0], udp[1]};

	carry(20000);
	assert_true(wan_sum(FP_A).stream_sent > sent + 19000);
	assert_true(udp[0] == before[0] && udp[1] == before[1]);
	assert_in_range(info(FP_A).connections, 3, 6);
	assert_int_equal(info(FP_A).via, WAN_CARRIER_RDMA);
	ask(FP_B, WAN_CARRIER_NATIVE);
	until(both_native, true);
	carry(5000);
	until(both_closed, true);
	check_hosts();
	for (unsigned s = 0; s < FP_SITES; s++) {
		assert_int_equal(info(s).c.moves_to_rdma, was[s].c.moves_to_rdma + 1);
		assert_int_equal(info(s).c.fallbacks, was[s].c.fallbacks);
		assert_true(info(s).c.rx_datagrams > was[s].c.rx_datagrams);
		assert_int_equal(wan_sum(s).stream_lost, lost[s]); /* nothing was sent again */
	}
	assert_true(rdma_fake_count().inlined > 0);
	/* Hosts write from A to B: B has less to send than credits to give. */
	assert_true(info(FP_B).c.tx_credits > was[FP_B].c.tx_credits);
}

/* From and to each other carrier, by either end, and without UDP natively. */
static void test_rdma_others(void **state)
{
	static const enum wan_carrier other[] = {WAN_CARRIER_TCP, WAN_CARRIER_QUIC, WAN_CARRIER_NATIVE};
	static bool (*const there[])(void) = {both_tcp, both_quic, both_native};

	for (unsigned i = 0; i < 6; i++) {
		ask((enum fp_site)(i % 2), WAN_CARRIER_RDMA);
		until(both_rdma, true);
		no_udp = i == 1;
		carry(3000);
		no_udp = false;
		ask((enum fp_site)((i + 1) % 2), other[i % 3]);
		until(there[i % 3], true);
		carry(1000);
	}
	check_hosts();
}

static bool says(const char *what)
{
	return strstr(info(FP_A).problem, what) || strstr(info(FP_B).problem, what);
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
	ask(FP_B, WAN_CARRIER_RDMA);
	for (unsigned i = 0; i < 3; i++) {
		until(both_rdma, true);
		carry(1000);
		for (unsigned s = 0; s < FP_SITES; s++)
			fallbacks_before[s] = info(s).c.fallbacks;
		rdma_fake_fault(row[i].fault);
		until(both_fell, true);
		carry(1000); /* natively */
		if (row[i].fault == RDMA_FAKE_CUT) {
			assert_true(both_native());
			assert_int_equal(info(FP_A).wanted, WAN_CARRIER_RDMA);
		}
		rdma_fake_fault(RDMA_FAKE_NONE);
		if (!says(row[i].what) && !both_rdma())
			fail_msg("`%s`, `%s`", info(FP_A).problem, info(FP_B).problem);
	}
	until(both_rdma, true);
	gw_log_set(GW_LOG_WARNING);
	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	until(both_closed, true);
	check_hosts();
}

/* The device is removed while it carries all, and comes back: its port listens again. */
static void test_rdma_removed(void **state)
{
	gw_log_set(-1);
	ask(FP_A, WAN_CARRIER_RDMA);
	until(both_rdma, true);
	carry(1000);
	rdma_fake_remove();
	until(both_native, true);
	carry(1000);
	rdma_fake_net(127);
	until(both_rdma, true);
	carry(1000);
	gw_log_set(GW_LOG_WARNING);
	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	until(both_closed, true);
	check_hosts();
}

/* A REQ from an address of the fake's network to site A. */
static struct rdma_cm_id *rdma_dial(
    struct rdma_event_channel *ch, uint8_t from, const uint8_t *said, uint8_t n, enum rdma_cm_event_type want)
{
	struct rdma_conn_param param = {.private_data = said, .private_data_len = n};
	struct base_sockaddr src, dst;
	struct rwy_ip a = LO(from), b = LO(1 + FP_A);
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	base_sockaddr_make(&src, &a, 0);
	base_sockaddr_make(&dst, &b, port);
	assert_int_equal(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_resolve_addr(id, (struct sockaddr *)&src.ss, (struct sockaddr *)&dst.ss, 0), 0);
	assert_int_equal(rdma_get_cm_event(ch, &ev), 0); /* its address is resolved */
	rdma_ack_cm_event(ev);
	assert_int_equal(rdma_connect(id, &param), 0);
	while (rdma_get_cm_event(ch, &ev) != 0)
		turn(false);
	assert_int_equal(ev->event, want);
	rdma_ack_cm_event(ev);
	return id;
}

static void test_rdma_refused(void **state)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct gw_carrier_info was = info(FP_A);
	uint8_t said[GW_RDMA_GREETING];
	struct rdma_cm_id *id[7];

	gw_rdma_greeting_put(said, 64);
	/* An address that is no peer's; a peer without a greeting, and with one of another version. */
	rdma_destroy_id(rdma_dial(ch, 9, said, sizeof(said), RDMA_CM_EVENT_REJECTED));
	assert_int_equal(info(FP_A).strangers, was.strangers + 1);
	rdma_destroy_id(rdma_dial(ch, 2, said, 0, RDMA_CM_EVENT_REJECTED));
	said[4]++;
	rdma_destroy_id(rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_REJECTED));
	assert_int_equal(info(FP_A).early, was.early + 2);
	/* So many that say nothing, and no more; each ends in time, or with its peer. */
	said[4]--;
	for (unsigned i = 0; i < 6; i++)
		id[i] = rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_ESTABLISHED);
	id[6] = rdma_dial(ch, 2, said, sizeof(said), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(info(FP_A).many, was.many + 1);
	for (unsigned i = 5; i < 7; i++)
		rdma_destroy_id(id[i]);
	for (unsigned end = 0; end < 5;) {
		struct rdma_cm_event *ev;

		if (rdma_get_cm_event(ch, &ev) == 0) {
			assert_int_equal(ev->event, RDMA_CM_EVENT_DISCONNECTED);
			rdma_ack_cm_event(ev);
			end++;
		}
		turn(false);
	}
	assert_int_equal(info(FP_A).slow, was.slow + 5);
	for (unsigned i = 0; i < 5; i++)
		rdma_destroy_id(id[i]);
	rdma_destroy_event_channel(ch);
}

/* A tunnel whose address no RDMA device has. */
static void test_rdma_nowhere(void **state)
{
	struct conf_tunnel t = lab.gw[FP_A].conf.tunnel[0];
	char why[192];

	rdma_fake_net(10);
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(app(FP_A), 0, WAN_CARRIER_RDMA, why, sizeof(why)), RWY_EINVAL);
	assert_string_equal(why, "no RDMA: no RDMA device has the address 127.88.0.1");
	assert_string_equal(info(FP_A).problem, why);
	t.carrier = CONF_CARRIER_RDMA; /* then it must not begin */
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &t), RWY_EINVAL);
	t = lab.gw[FP_A].conf.tunnel[0];
	t.rdma_port = 0;
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &t), 0);
	assert_int_equal(gw_carrier_set(app(FP_A), 0, WAN_CARRIER_RDMA, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "has `rdma_port: 0` in the configuration: no RDMA"));
	rdma_fake_net(127);
	assert_int_equal(gw_carrier_tunnel(app(FP_A), 0, &lab.gw[FP_A].conf.tunnel[0]), 0);
	gw_log_set(GW_LOG_WARNING);
	ask(FP_B, WAN_CARRIER_RDMA); /* the peer's count of wishes is higher now */
	until(both_rdma, true);
	carry(1000);
	ask(FP_A, WAN_CARRIER_NATIVE);
	until(both_native, true);
	check_hosts();
}

/* --- refused connections ---------------------------------------------------------------------- */
static int dial(uint8_t from, enum fp_site to)
{
	struct base_sockaddr a;
	struct rwy_ip src = LO(from), dst = LO((uint8_t)(1 + to));
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval patience = {.tv_sec = 10};

	base_sockaddr_make(&a, &src, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a.ss, a.len), 0);
	base_sockaddr_make(&a, &dst, port);
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
	struct gw_carrier_info was = info(FP_A);
	struct wan_conn c;
	int fd, idle[100];

	/* an address that is no peer's */
	check_closed(dial(9, FP_A));
	assert_int_equal(info(FP_A).strangers, was.strangers + 1);
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
	wan_conn_init(&c, conf_tunnel_id(&lab.gw[FP_A].conf.tunnel[0], 0), 1, 2, true);
	assert_int_equal(wan_conn_put(&c, bytes), WAN_REC_HELLO_LEN);
	assert_int_equal(send(fd, bytes, WAN_REC_HELLO_LEN, MSG_NOSIGNAL), WAN_REC_HELLO_LEN);
	assert_int_equal(recv(fd, bytes, WAN_REC_HELLO_LEN, MSG_WAITALL), WAN_REC_HELLO_LEN);
	wan_conn_init(&c, conf_tunnel_id(&lab.gw[FP_A].conf.tunnel[0], 0), 1, 2, true);
	c.known = true;
	c.peer_nonce = 4711;
	c.peer_epoch = 1;
	wan_conn_put(&c, bytes);
	send(fd, bytes, WAN_REC_HELLO_LEN, MSG_NOSIGNAL);
	check_closed(fd);
	assert_true(info(FP_A).c.refused_tunnel > was.c.refused_tunnel);
	/* Many silent connections: limited, closed in time, and the tunnel still moves. */
	for (unsigned i = 0; i < 100; i++)
		idle[i] = dial(2, FP_A);
	turn(true);
	assert_true(app(FP_A)->carriers->unknown <= GW_CONNS_UNKNOWN);
	ask(FP_A, WAN_CARRIER_TCP);
	until(both_tcp, true);
	carry(2000);
	for (unsigned i = 0; i < 100; i++)
		check_closed(idle[i]);
	assert_true(info(FP_A).slow > was.slow);
	assert_int_equal(app(FP_A)->carriers->unknown, 0);
	assert_int_equal(info(FP_A).c.fallbacks, was.c.fallbacks);
	check_hosts();
}

static void test_refused_set(void **state)
{
	struct conf_tunnel t = lab.gw[FP_A].conf.tunnel[0];
	struct gw_app *a = app(FP_A);
	char why[160];

	assert_int_equal(gw_carrier_set(a, 7, WAN_CARRIER_TCP, why, sizeof(why)), RWY_ENOENT);
	/* A congestion control that no kernel has: the error lists those of the kernel. */
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "nosuch");
	t.tcp_port = (uint16_t)(port + 1);
	gw_log_set(-1);
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), RWY_EINVAL);
	assert_string_not_equal(a->carriers->tun[3].problem, "");
	assert_non_null(
	    strstr(a->carriers->tun[3].problem, "`nosuch` is not in this kernel; the kernel has: "));
	assert_non_null(strstr(a->carriers->tun[3].problem, "cubic"));
	/* No TCP by configuration. */
	snprintf(t.tcp_cc, sizeof(t.tcp_cc), "cubic");
	t.tcp_port = 0;
	assert_int_equal(gw_carrier_tunnel(a, 3, &t), 0);
	assert_int_equal(gw_carrier_set(a, 3, WAN_CARRIER_TCP, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "tcp_port: 0"));
	assert_int_equal(gw_carrier_detour(a, 3, WAN_CARRIER_TCP, 1, why, sizeof(why)), RWY_EINVAL);
	assert_non_null(strstr(why, "tcp_port: 0"));
	assert_int_equal(gw_carrier_detour(a, 7, WAN_CARRIER_TCP, 1, why, sizeof(why)), RWY_ENOENT);
	/* A port in use. */
	t.tcp_port = 22;
	t.tcp_local = LO(1);
	t.tcp_port = (uint16_t)(port + 1);
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
	close(fd);
	assert_int_equal(gw_carrier_tunnel(a, 3, NULL), 0);
	gw_log_set(GW_LOG_WARNING);
	check_hosts();
}

/* --- program ---------------------------------------------------------------------------------- */
static void set_up(unsigned workers)
{
	char *eal[] = {"test", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};
	struct fp_cfg cfg = {
	    .payload = 1024, .qps = 8, .message = 4, .batch = 32, .workers = workers, .conf = conf};

	gw_log_init(GW_LOG_ERROR);
	rdma_fake_net(127);
	port = (uint16_t)(20000 + getpid() % 10000 * 2); /* this one and the next are ours */
	if (rte_eal_init(10, eal) < 0)
		fp_die("EAL does not start");
	certificates_make();
	fp_lab_new(&lab, &cfg);
	for (unsigned s = 0; s < FP_SITES; s++)
		if (gw_carriers_start(&lab.gw[s].app, &lab.pools) != 0)
			fp_die("no carrier");
	hosts = fp_hosts_new(&lab);
	fp_hosts_verify(hosts, true);
}

static void test_end(void **state)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		gw_carriers_stop(app(s));
		for (unsigned i = 0; i < app(s)->workers; i++)
			gw_worker_free(app(s)->worker[i]);
	}
	/* All packet buffers are free but those in the lab's own rings. */
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < FP_PORTS; i++) {
			void *m;

			while (rte_ring_dequeue(lab.gw[s].port[i].rx, &m) == 0 ||
			       rte_ring_dequeue(lab.gw[s].port[i].tx, &m) == 0)
				rte_pktmbuf_free(m);
		}
	assert_int_equal(rte_mempool_in_use_count(lab.pools.big), 0);
	assert_int_equal(rte_mempool_in_use_count(lab.pools.small), 0);
	assert_int_equal(rdma_fake_count().objects, 0);
	assert_int_equal(rdma_fake_count().rnr, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_move),
	    cmocka_unit_test(test_many_moves),
	    cmocka_unit_test(test_die),
	    cmocka_unit_test(test_no_udp),
	    cmocka_unit_test(test_detour),
	    cmocka_unit_test(test_detour_quic),
	    cmocka_unit_test(test_quic),
	    cmocka_unit_test(test_quic_tcp),
	    cmocka_unit_test(test_quic_refused),
	    cmocka_unit_test(test_rdma),
	    cmocka_unit_test(test_rdma_others),
	    cmocka_unit_test(test_rdma_dies),
	    cmocka_unit_test(test_rdma_removed),
	    cmocka_unit_test(test_rdma_refused),
	    cmocka_unit_test(test_rdma_nowhere),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_refused_set),
	    cmocka_unit_test(test_end),
	};

	if (argc < 2)
		return ov_both(argv[0]);
	set_up(argv[1][0] == '2' ? 2 : 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
