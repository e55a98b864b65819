/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <rte_eal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/component/carrier/lab.h"
#include "tests/lib/cert/cert.h"
#include "tests/lib/rdma/fake.h"
#include "tests/lib/rng.h"

#define WAIT  (20 * RWY_SEC) /* limit for expected events */
#define UNDER 512            /* most packets in flight */
#define FIRST 64             /* of them, until each queue pair has had answers */

struct carrier_lab cl;
static uint64_t dice = 1;

static void conf(struct conf *c, enum fp_site s)
{
	struct conf_tunnel *t = &c->tunnel[0];

	t->tcp_port = cl.port;
	t->tcp_connections = 3;
	snprintf(t->tcp_cc, sizeof(t->tcp_cc), "auto");
	t->tcp_local = CL_LO((uint8_t)(1 + s));
	t->tcp_remote = CL_LO((uint8_t)(2 - s));
	t->quic_port = cl.port;
	t->rdma_local = CL_RDMA(1 + s);
	t->rdma_remote = CL_RDMA(2 - s);
	t->rdma_port = cl.port;
	t->rdma_buffers = 50; /* 64 */
	snprintf(t->peer_name, sizeof(t->peer_name), "%s", s == FP_A ? "site-b" : "site-a");
	snprintf(c->keys.certificate, sizeof(c->keys.certificate), "%s/%c.pem", cl.certs, 'a' + s);
	snprintf(c->keys.key, sizeof(c->keys.key), "%s/%c.key", cl.certs, 'a' + s);
	snprintf(c->keys.ca, sizeof(c->keys.ca), "%s/ca.pem", cl.certs);
	c->quic.window = 8u << 20;
}

static void certificates_make(void)
{
	struct cert_ca *ca;

	snprintf(cl.certs, sizeof(cl.certs), "/tmp/rwy-carrier-XXXXXX");
	if (!mkdtemp(cl.certs))
		fp_die("no directory");
	ca = cert_ca_new(cl.certs, "ca");
	cert_make(ca, &(struct cert_spec){.file = "a", .name = "site-a"});
	cert_make(ca, &(struct cert_spec){.file = "b", .name = "site-b"});
	cert_ca_free(ca);
	ca = cert_ca_new(cl.certs, "other");
	cert_make(ca, &(struct cert_spec){.file = "x", .name = "site-a"});
	cert_ca_free(ca);
}

struct gw_app *cl_app(enum fp_site s)
{
	return &cl.fp.gw[s].app;
}

static void wan(enum fp_site from)
{
	struct rte_mbuf *m, *c;

	while (fp_sent(&cl.fp.gw[from].port[FP_WAN], &m, 1)) {
		cl.udp[from]++;
		if (!cl.no_udp && rng_below(&dice, 8) >= cl.dropped_of_8) {
			c = fp_copy(&cl.fp, rte_pktmbuf_mtod(m, void *), m->data_len);
			for (struct rte_mbuf *x = m->next; x; x = x->next)
				memcpy(rte_pktmbuf_append(c, x->data_len), rte_pktmbuf_mtod(x, void *),
				    x->data_len);
			fp_arrive(&cl.fp.gw[1 - from].port[FP_WAN], c);
		}
		rte_pktmbuf_free(m);
	}
}

void cl_turn(bool send)
{
	const struct fp_stats *st = fp_hosts_stats(cl.hosts);

	/* These hosts never retransmit, and memory for flows that nobody has answered is small. */
	if (send && st->sent < st->received + (st->received < UNDER ? FIRST : UNDER))
		fp_hosts_send(cl.hosts, 32);
	for (unsigned s = 0; s < FP_SITES; s++) {
		for (unsigned i = 0; i < cl_app(s)->workers; i++)
			gw_worker_turn(cl_app(s)->worker[i]);
		wan((enum fp_site)s);
		fp_hosts_read(cl.hosts, (enum fp_site)s);
	}
	if (!send)
		usleep(50); /* the carriers' threads share two CPUs with other processes */
}

struct gw_carrier_info cl_info(enum fp_site s)
{
	struct gw_carrier_info i;

	gw_carrier_info(cl_app(s), 0, &i);
	return i;
}

static bool cl_all_there(void)
{
	const struct fp_stats *st = fp_hosts_stats(cl.hosts);

	return st->received == st->sent;
}

bool cl_both_tcp(void)
{
	return cl_info(FP_A).sending == WAN_CARRIER_TCP && cl_info(FP_B).sending == WAN_CARRIER_TCP;
}

bool cl_both_quic(void)
{
	return cl_info(FP_A).sending == WAN_CARRIER_QUIC && cl_info(FP_B).sending == WAN_CARRIER_QUIC;
}

bool cl_both_rdma(void)
{
	return cl_info(FP_A).sending == WAN_CARRIER_RDMA && cl_info(FP_B).sending == WAN_CARRIER_RDMA;
}

bool cl_both_native(void)
{
	return cl_info(FP_A).sending == WAN_CARRIER_NATIVE && cl_info(FP_B).sending == WAN_CARRIER_NATIVE;
}

bool cl_both_want(enum wan_carrier c)
{
	return cl_info(FP_A).wanted == c && cl_info(FP_B).wanted == c;
}

bool cl_both_closed(void)
{
	return !cl_info(FP_A).connections && !cl_info(FP_B).connections;
}

bool cl_measured(void)
{
	return cl_info(FP_A).path.at && cl_info(FP_B).path.at;
}

void cl_until(bool (*fn)(void), bool send)
{
	rwy_time end = gw_now() + WAIT;

	while (!fn()) {
		if (gw_now() > end)
			fail_msg(
			    "it does not happen: A %s/%s %u `%s`, B %s/%s %u `%s`, sent %lu received %lu",
			    wan_carrier_name(cl_info(FP_A).sending), wan_carrier_name(cl_info(FP_A).wanted),
			    cl_info(FP_A).connections, cl_info(FP_A).problem,
			    wan_carrier_name(cl_info(FP_B).sending), wan_carrier_name(cl_info(FP_B).wanted),
			    cl_info(FP_B).connections, cl_info(FP_B).problem,
			    (unsigned long)fp_hosts_stats(cl.hosts)->sent,
			    (unsigned long)fp_hosts_stats(cl.hosts)->received);
		cl_turn(send);
	}
}

void cl_carry(uint64_t packets)
{
	uint64_t to = fp_hosts_stats(cl.hosts)->received + packets;
	rwy_time end = gw_now() + WAIT;

	while (fp_hosts_stats(cl.hosts)->received < to) {
		assert_true(gw_now() < end);
		cl_turn(true);
	}
}

void cl_ask(enum fp_site s, enum wan_carrier c)
{
	char why[160] = "";

	if (gw_carrier_set(cl_app(s), 0, c, why, sizeof(why)) != 0)
		fail_msg("refused: %s", why);
}

void cl_check_hosts(void)
{
	const struct fp_stats *st = fp_hosts_stats(cl.hosts);

	cl_until(cl_all_there, false);
	assert_int_equal(st->wrong, 0);
	assert_int_equal(st->nak, 0);
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < cl_app(s)->workers; i++)
			assert_int_equal(eng_counters(cl_app(s)->worker[i]->eng)->conns_failed, 0);
}

void cl_hurry(void)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		struct gw_carriers *cs = cl_app((enum fp_site)s)->carriers;

		gw_carriers_lock(cs);
		cs->tun[0].retry_at = cs->tun[0].backoff = 0;
		pthread_mutex_unlock(&cs->lock);
	}
}

struct wan_counters cl_wan_sum(enum fp_site s)
{
	struct wan_counters c = {0};

	for (unsigned i = 0; i < cl_app(s)->workers; i++) {
		struct wan_stats st;

		eng_tunnel_stats(cl_app(s)->worker[i]->eng, 0, &st);
		c.stream_sent += st.c.stream_sent;
		c.stream_received += st.c.stream_received;
		c.stream_lost += st.c.stream_lost;
		c.stream_breaks += st.c.stream_breaks;
		c.went_down += st.c.went_down;
		c.retransmit_detour += st.c.retransmit_detour;
	}
	return c;
}

void cl_kill_one(enum fp_site s)
{
	struct gw_carriers *cs = cl_app(s)->carriers;

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

bool cl_both_fell(void)
{
	return cl_info(FP_A).c.fallbacks > cl.fallbacks[FP_A] &&
	       cl_info(FP_B).c.fallbacks > cl.fallbacks[FP_B];
}

void cl_moves_there_and_back(enum wan_carrier c, bool (*there)(void))
{
	struct gw_carrier_info was[2] = {cl_info(FP_A), cl_info(FP_B)};
	uint64_t sent, before[2], lost[2] = {cl_wan_sum(FP_A).stream_lost, cl_wan_sum(FP_B).stream_lost};

	if (!cl_both_native()) {
		cl_ask(FP_A, WAN_CARRIER_NATIVE);
		cl_until(cl_both_native, true);
	}
	cl_until(cl_both_closed, true);
	cl_ask(FP_A, c);
	cl_until(there, true);
	cl_carry(500); /* packets natively in flight */
	sent = cl_wan_sum(FP_A).stream_sent;
	memcpy(before, cl.udp, sizeof(before));
	cl_carry(20000);
	assert_true(cl_wan_sum(FP_A).stream_sent > sent + 19000);
	assert_memory_equal(cl.udp, before, sizeof(before));
	assert_int_equal(cl_info(FP_A).via, c);
	cl_ask(FP_B, WAN_CARRIER_NATIVE);
	cl_until(cl_both_native, true);
	cl_carry(5000);
	cl_until(cl_both_closed, true);
	cl_check_hosts();
	for (unsigned s = 0; s < FP_SITES; s++) {
		assert_int_equal(cl_info(s).c.fallbacks, was[s].c.fallbacks);
		assert_true(cl_info(s).c.rx_datagrams > was[s].c.rx_datagrams);
		assert_int_equal(cl_wan_sum(s).stream_lost, lost[s]); /* nothing was sent again */
	}
}

static void set_up(unsigned workers)
{
	char *eal[] = {"test", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--lcores", "0",
	    "--log-level", "error", NULL};
	struct fp_cfg cfg = {.payload = 1024,
	    .qps = 8,
	    .message = 4,
	    .batch = 32,
	    .workers = workers,
	    .conf = conf,
	    .keys = cl.keys};

	gw_log_init(GW_LOG_ERROR);
	rdma_fake_net(127);
	cl.port = (uint16_t)(20000 + getpid() % 10000 * 2); /* this one and the next are ours */
	if (rte_eal_init(10, eal) < 0)
		fp_die("EAL does not start");
	certificates_make();
	fp_lab_new(&cl.fp, &cfg);
	for (unsigned s = 0; s < FP_SITES; s++)
		if (gw_carriers_start(&cl.fp.gw[s].app, &cl.fp.pools) != 0)
			fp_die("no carrier");
	cl.hosts = fp_hosts_new(&cl.fp);
	fp_hosts_verify(cl.hosts, true);
}

void cl_test_end(void **state)
{
	for (unsigned s = 0; s < FP_SITES; s++) {
		gw_carriers_stop(cl_app(s));
		for (unsigned i = 0; i < cl_app(s)->workers; i++)
			gw_worker_free(cl_app(s)->worker[i]);
	}
	/* All packet buffers are free but those in the lab's own rings. */
	for (unsigned s = 0; s < FP_SITES; s++)
		for (unsigned i = 0; i < FP_PORTS; i++) {
			void *m;

			while (rte_ring_dequeue(cl.fp.gw[s].port[i].rx[0], &m) == 0 ||
			       rte_ring_dequeue(cl.fp.gw[s].port[i].tx[0], &m) == 0)
				rte_pktmbuf_free(m);
		}
	assert_int_equal(rte_mempool_in_use_count(cl.fp.pools.big), 0);
	assert_int_equal(rte_mempool_in_use_count(cl.fp.pools.small), 0);
	assert_int_equal(rdma_fake_count().objects, 0);
	assert_int_equal(rdma_fake_count().rnr, 0);
}

int cl_main(int argc, char **argv, int (*tests)(void))
{
	if (argc < 2)
		return ov_both(argv[0]);
	set_up(argv[1][0] == '2' ? 2 : 1);
	return tests();
}
