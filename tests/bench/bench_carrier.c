/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel over the native carrier, TCP and QUIC, with keys and without (tests/bench/run-carriers).
 * Two whole gateways run in this process (fp_lab.h), with hosts that always have data. Prints one
 * JSON object on standard output.
 *
 * Rates: between the gateways are two network namespaces with a device each, and wanem between the
 * devices. Native datagrams go through packet sockets; TCP and QUIC have the kernel's sockets, in
 * those namespaces.
 *
 * CPU (--cpu): what the gateways take (fp_cpu.h) when nothing but the CPU holds them up. Native
 * datagrams pass in memory between DPDK ports; TCP and QUIC go over the loopback interface of the
 * caller's namespace.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <rte_eal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/carrier/carrier.h"
#include "tests/bench/fp_cpu.h"
#include "tests/bench/fp_lab.h"

#define FRAME   9216
#define BACKLOG 6000 /* most packets on the way: always more than the path holds */
#define BURST   64

static struct {
	const char *netns[FP_SITES], *dev[FP_SITES], *cc, *certs;
	enum conf_carrier by;
	bool keys, cpu;
	unsigned connections, seconds, warm, payload;
} opt = {.cc = "auto", .connections = 4, .seconds = 10, .warm = 3, .payload = 1024};

static struct fp_lab lab;
static int wire[FP_SITES];
/* With --cpu: what is on its way, and how much is before the first of it arrives: about what waits
 * in sockets with the other carriers, so that custody is as large and memory as cold. */
#define ON_THE_WAY 1024
static struct rte_ring *way[FP_SITES];
static struct sockaddr_ll to[FP_SITES];
static struct fp_cpu cpu;

/* The address of a site's sockets. */
static struct rwy_ip kernel_ip(uint8_t site)
{
	return opt.cpu ? rwy_ip_from4((uint8_t[4]){127, 88, 0, site})
	               : rwy_ip_from4((uint8_t[4]){10, 99, 0, site});
}

static void conf(struct conf *c, enum fp_site s)
{
	struct conf_tunnel *t = &c->tunnel[0];

	if (!opt.cpu) {
		snprintf(t->cc, sizeof(t->cc), "auto");
		t->rate_Bps = 1250000000 / 10; /* 1 Gbit/s, an upper limit */
	}
	t->tcp_port = t->quic_port = 4793;
	t->tcp_connections = (uint16_t)opt.connections;
	snprintf(t->tcp_cc, sizeof(t->tcp_cc), "%s", opt.by == CONF_CARRIER_TCP ? opt.cc : "auto");
	t->tcp_local = kernel_ip((uint8_t)(1 + s));
	t->tcp_remote = kernel_ip((uint8_t)(2 - s));
	t->carrier = opt.by;
	wan_congest_cfg_default(&t->congest);
	c->quic.cc = strcmp(opt.cc, "cubic") == 0 ? CONF_QUIC_CUBIC : CONF_QUIC_BBR2;
	c->quic.window = 32u << 20;
	if (!opt.certs)
		return;
	snprintf(t->peer_name, sizeof(t->peer_name), "%s", s == FP_A ? "site-b" : "site-a");
	snprintf(c->keys.certificate, sizeof(c->keys.certificate), "%s/site-%c.pem", opt.certs, 'a' + s);
	snprintf(c->keys.key, sizeof(c->keys.key), "%s/site-%c.key", opt.certs, 'a' + s);
	snprintf(c->keys.ca, sizeof(c->keys.ca), "%s/ca.pem", opt.certs);
}

/* --- the wire -------------------------------------------------------------------------------------- */
static void enter(enum fp_site s)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", opt.netns[s]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
		fp_die("no such namespace");
	close(fd);
}

/* Makes frames as they are on a wire: no segments above its MTU, no checksum left to the device. */
static void plain(const char *dev)
{
	static const uint32_t off[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	for (unsigned i = 0; i < 4; i++) {
		struct ethtool_value v = {.cmd = off[i]};
		struct ifreq r = {.ifr_data = (void *)&v};

		snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", dev);
		if (ioctl(fd, SIOCETHTOOL, &r) != 0 && off[i] != ETHTOOL_SGRO)
			fp_die("a device does not turn its offloads off");
	}
	close(fd);
}

static void wire_open(enum fp_site s)
{
	int big = 8 << 20;
	char name[16];

	snprintf(name, sizeof(name), "way%u", s);
	way[s] = rte_ring_create(name, FP_RING, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!way[s])
		fp_die("no memory");
	if (opt.cpu)
		return;
	enter(s);
	plain(opt.dev[s]);
	wire[s] = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(0x0800));
	to[s] = (struct sockaddr_ll){.sll_family = AF_PACKET,
	    .sll_protocol = htons(0x0800),
	    .sll_ifindex = (int)if_nametoindex(opt.dev[s])};
	if (wire[s] < 0 || bind(wire[s], (struct sockaddr *)&to[s], sizeof(to[s])) != 0)
		fp_die("no packet socket");
	setsockopt(wire[s], SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
	setsockopt(wire[s], SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof(big));
}

/* In memory: what A sent arrives at B behind so much; unless nothing more comes. */
static void pass_on(enum fp_site s, bool idle)
{
	struct rte_mbuf *m;

	while ((idle || rte_ring_count(way[s]) > (s == FP_A ? ON_THE_WAY : 0)) &&
	       rte_ring_dequeue(way[s], (void **)&m) == 0)
		fp_arrive(&lab.gw[1 - s].port[FP_WAN], m);
}

static unsigned wire_out(enum fp_site s)
{
	uint8_t frame[FRAME];
	struct rte_mbuf *m;
	unsigned n = 0;

	for (; fp_sent(&lab.gw[s].port[FP_WAN], &m, 1); n++) {
		uint32_t len = 0;

		for (struct rte_mbuf *x = m; x; x = x->next) {
			memcpy(frame + len, rte_pktmbuf_mtod(x, void *), x->data_len);
			len += x->data_len;
		}
		rte_pktmbuf_free(m);
		if (!opt.cpu)
			sendto(wire[s], frame, len, 0, (struct sockaddr *)&to[s], sizeof(to[s]));
		else if (rte_ring_enqueue(way[s], fp_copy(&lab, frame, len)) != 0)
			fp_die("too much on the way");
	}
	if (opt.cpu)
		pass_on(s, n == 0);
	return n;
}

static unsigned wire_in(enum fp_site s)
{
	uint8_t frame[FRAME];
	struct sockaddr_ll from;
	socklen_t len = sizeof(from);
	unsigned n = 0;
	ssize_t got;

	while (!opt.cpu && n < BURST &&
	       (got = recvfrom(wire[s], frame, sizeof(frame), 0, (struct sockaddr *)&from, &len)) > 0) {
		n++;
		if (from.sll_pkttype == PACKET_OUTGOING || got < 34 || frame[23] != 17)
			continue; /* our own frames, and TCP */
		fp_arrive(&lab.gw[s].port[FP_WAN], fp_copy(&lab, frame, (uint32_t)got));
	}
	return n;
}

/* More waits for the gateway than it takes in a turn. */
static bool behind(enum fp_site s)
{
	return opt.cpu && rte_ring_count(lab.gw[s].port[FP_WAN].rx[0]) >= BURST;
}

/* --- the run --------------------------------------------------------------------------------------- */
static void run_for(struct fp_hosts *h, rwy_dur d)
{
	const struct fp_stats *st = fp_hosts_stats(h);
	rwy_time end = gw_now() + d;

	while (gw_now() < end) {
		unsigned work = 0;

		if (st->sent < st->received + BACKLOG)
			fp_hosts_send(h, 32);
		for (unsigned s = 0; s < FP_SITES; s++) {
			do
				work += fp_cpu_turn(&cpu, &lab, (enum fp_site)s);
			while (behind((enum fp_site)s)); /* as with a CPU of its own */
			work += wire_out((enum fp_site)s);
			work += wire_in((enum fp_site)s);
			fp_hosts_read(h, (enum fp_site)s);
		}
		if (!work)
			usleep(30);
	}
}

static void wait_for(struct fp_hosts *h)
{
	static const enum wan_carrier of[] = {[CONF_CARRIER_NATIVE] = WAN_CARRIER_NATIVE,
	    [CONF_CARRIER_TCP] = WAN_CARRIER_TCP,
	    [CONF_CARRIER_QUIC] = WAN_CARRIER_QUIC};
	struct gw_carrier_info a, b;

	for (unsigned i = 0; i < 200; i++) {
		run_for(h, 50 * RWY_MS);
		gw_carrier_info(&lab.gw[FP_A].app, 0, &a);
		gw_carrier_info(&lab.gw[FP_B].app, 0, &b);
		if (fp_hosts_stats(h)->received && a.sending == of[opt.by] && b.sending == of[opt.by])
			return;
	}
	fprintf(stderr, "A: %s, B: %s\n", a.problem, b.problem);
	fp_die("nothing gets through");
}

static void report(const struct fp_stats *st, uint64_t packets, rwy_dur took)
{
	static const char *const name[] = {"native", "tcp", "quic"};
	const double bytes = (double)packets * lab.cfg.payload;
	struct gw_carrier_info i;
	struct wan_stats w;

	eng_tunnel_stats(lab.gw[FP_A].w->eng, 0, &w);
	gw_carrier_info(&lab.gw[FP_A].app, 0, &i);
	printf("{\"carrier\": \"%s\", \"keys\": %s, \"congestion\": \"%s\", \"connections\": %u, "
	       "\"goodput_bps\": %.0f, \"rtt_ms\": %.2f, \"min_rtt_ms\": %.2f, \"lost\": %lu, "
	       "\"retransmitted\": %lu, \"fallbacks\": %lu, \"wrong\": %lu, \"nak\": %lu, "
	       "\"tx_full\": %lu",
	    name[opt.by], opt.keys ? "true" : "false", opt.by == CONF_CARRIER_TCP ? i.congestion : opt.cc,
	    opt.by ? i.connections : 0, bytes * 8e9 / (double)took, (double)w.srtt / 1e6,
	    (double)w.min_rtt / 1e6, (unsigned long)w.c.lost, (unsigned long)w.c.tx_retransmit,
	    (unsigned long)i.c.fallbacks, (unsigned long)st->wrong, (unsigned long)st->nak,
	    (unsigned long)(lab.gw[FP_A].w->c.drop_tx_full + lab.gw[FP_B].w->c.drop_tx_full));
	for (unsigned s = 0; s < FP_SITES; s++)
		printf(", \"worker_%c_ns\": %.4f, \"carrier_%c_ns\": %.4f, \"packets_a_turn_%c\": %.1f",
		    'a' + s, (double)cpu.worker[s] / bytes, 'a' + s, (double)cpu.carrier[s] / bytes, 'a' + s,
		    (double)packets / (double)(cpu.turns[s] ? cpu.turns[s] : 1));
	printf(", \"bytes\": %.0f}\n", bytes);
}

static int run(void)
{
	struct fp_hosts *h = fp_hosts_new(&lab);
	const struct fp_stats *st = fp_hosts_stats(h);
	uint64_t from;
	rwy_time began;

	fp_hosts_verify(h, !opt.cpu); /* it would take half of this thread's time */
	fp_hosts_window(h, 128);      /* as Soft-RoCE has it */
	wait_for(h);
	run_for(h, opt.warm * RWY_SEC);
	from = st->received;
	began = gw_now();
	fp_cpu_begin(&cpu, &lab);
	run_for(h, opt.seconds * RWY_SEC);
	fp_cpu_end(&cpu, &lab);
	report(st, st->received - from, gw_now() - began);
	for (unsigned s = 0; s < FP_SITES; s++)
		gw_carriers_stop(&lab.gw[s].app);
	return st->wrong || st->nak;
}

static const struct option opts[] = {{"netns-a", 1, NULL, 'a'}, {"netns-b", 1, NULL, 'b'},
    {"dev-a", 1, NULL, 'A'}, {"dev-b", 1, NULL, 'B'}, {"tcp", 1, NULL, 't'}, {"quic", 1, NULL, 'q'},
    {"payload", 1, NULL, 'p'}, {"keys", 0, NULL, 'k'}, {"cpu", 0, NULL, 'c'}, {"certs", 1, NULL, 'C'},
    {"connections", 1, NULL, 'n'}, {"seconds", 1, NULL, 's'}, {"warm", 1, NULL, 'w'}, {0}};

static void option(int o)
{
	if (o == 'a' || o == 'b')
		opt.netns[o == 'b'] = optarg;
	else if (o == 'A' || o == 'B')
		opt.dev[o == 'B'] = optarg;
	else if (o == 't' || o == 'q') {
		opt.by = o == 't' ? CONF_CARRIER_TCP : CONF_CARRIER_QUIC;
		opt.cc = optarg;
	} else if (o == 'k')
		opt.keys = true;
	else if (o == 'c')
		opt.cpu = true;
	else if (o == 'C')
		opt.certs = optarg;
	else if (o == 'n')
		opt.connections = (unsigned)atoi(optarg);
	else if (o == 'p')
		opt.payload = (unsigned)atoi(optarg);
	else if (o == 's')
		opt.seconds = (unsigned)atoi(optarg);
	else if (o == 'w')
		opt.warm = (unsigned)atoi(optarg);
	else
		fp_die("unknown option");
}

int main(int argc, char **argv)
{
	char *eal[] = {"bench", "--no-huge", "--no-shconf", "-m", "400", "--no-pci", "--no-telemetry",
	    "--log-level", "error", NULL};
	struct fp_cfg cfg = {.qps = 16, .message = 8, .batch = 32, .workers = 1, .conf = conf};
	int o;

	while ((o = getopt_long(argc, argv, "", opts, NULL)) != -1)
		option(o);
	if (!opt.cpu && (!opt.netns[0] || !opt.netns[1] || !opt.dev[0] || !opt.dev[1]))
		fp_die("run by tests/bench/run-carriers");
	gw_log_init(GW_LOG_ERROR);
	if (rte_eal_init(9, eal) < 0)
		fp_die("EAL does not start");
	cfg.keys = opt.keys;
	cfg.payload = opt.payload;
	fp_lab_new(&lab, &cfg);
	for (unsigned s = 0; s < FP_SITES; s++) {
		wire_open((enum fp_site)s);
		/* its thread stays in the namespace */
		if (gw_carriers_start(&lab.gw[s].app, &lab.pools) != 0)
			fp_die("no carrier");
	}
	return run();
}
