/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles per packet of a tenant's packets between the two parts of one site
 * (gateway/datapath/hairpin.c): VXLAN to VLAN and back, in one gateway on memory-only ports
 * (fp_lab.h). RC does not take part, so this is the cost of VXLAN, admission, ACL and headers,
 * beside testpmd's forwarding on the same kind of port. Prints one line of JSON; run-fastpath makes
 * the table. bench_fastpath.c says how cycles are counted.
 *
 * The tenant is fp_overlay.c's, with a VLAN beside its VTEP, an ACL of 10 rules that are all
 * examined, and a host on each side. Packets are RC WRITE ONLY of FLOWS connections in turn, each
 * with a UDP source port of its own.
 */
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "roce/parse.h"
#include "rwy/endian.h"
#include "tests/bench/fp_lab.h"

#define BATCH       512
#define BURST       32
#define PAYLOAD     1024
#define SLICES_MAX  16384
#define IP_LEN      (20 + 8 + 12 + 16 + PAYLOAD + 4)
#define FRAME_MAX   (96 + IP_LEN)
#define FIRST_SPORT 0xc000

static struct fp_lab lab;
static const uint8_t vlan_mac[6] = {0x02, 0xaa, 0, 0, 0, 3};
static unsigned flows;

/* The host of fp_lab behind the VTEP; on the VLAN 192.168.3.2. */
static struct rwy_ip host(bool vlan)
{
	return vlan ? rwy_ip_from4((uint8_t[4]){192, 168, 3, 2}) : fp_host_ip(&lab.cfg, FP_A);
}

static void both_sides(struct conf *c, enum fp_site s)
{
	struct tenant_cfg *t = &c->tenant[0].cfg;
	struct tenant_prefix *p = calloc(t->prefixes + 1, sizeof(*p));
	struct tenant_host *h = calloc(t->hosts + 1, sizeof(*h));

	if (!p || !h)
		fp_die("no memory");
	memcpy(p, t->prefix, t->prefixes * sizeof(*p));
	memcpy(h, t->host, t->hosts * sizeof(*h));
	p[t->prefixes].p =
	    (struct prefix){.addr = rwy_ip_from4((uint8_t[4]){192, 168, 3, 0}), .len = 96 + 24};
	p[t->prefixes].at.side = TENANT_LAN;
	h[t->hosts].addr = host(true);
	memcpy(h[t->hosts].mac, vlan_mac, 6);
	t->prefix = p;
	t->prefixes++;
	t->host = h;
	t->hosts++;
	t->vlan = FP_VTAG;
}

/* Writes a host's packet, from its IP header on. */
static void write_only(uint8_t *ip, bool from_vlan)
{
	struct rwy_ip src = host(from_vlan), dst = host(!from_vlan);
	uint32_t sum = 0;
	struct roce_pkt pkt;

	memset(ip, 0x5a, IP_LEN);
	memset(ip, 0, 20 + 8 + 12 + 16);
	ip[0] = 0x45;
	ip[1] = 0x02;
	rwy_put16(ip + 2, IP_LEN);
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, src.b + 12, 4);
	memcpy(ip + 16, dst.b + 12, 4);
	for (unsigned i = 0; i < 20; i += 2)
		sum += rwy_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
	rwy_put16(ip + 22, 4791);
	rwy_put16(ip + 24, IP_LEN - 20);
	ip[28] = 0x0a; /* RDMA WRITE Only */
	rwy_put16(ip + 30, 0xffff);
	rwy_put32(ip + 28 + 12 + 12, PAYLOAD);
	if (roce_parse(ip, IP_LEN, &pkt) != ROCE_PARSE_OK)
		fp_die("the benchmark's packet is wrong");
}

/* Writes a frame from one side to the gateway, with source port 0. Returns its length and where IP
 * is. */
static uint32_t frame(uint8_t *out, bool from_vlan, uint32_t *ip_at)
{
	struct fp_lab as = {.cfg = lab.cfg};
	uint32_t n;

	as.cfg.overlay = from_vlan ? FP_VLAN : FP_VXLAN;
	as.gw[FP_A] = lab.gw[FP_A];
	n = fp_front(&as, FP_A, IP_LEN, out);
	if (from_vlan)
		memcpy(out + 6, vlan_mac, 6);
	*ip_at = n;
	write_only(out + n, from_vlan);
	return n + IP_LEN;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw + u.ru_nvcsw;
}

/* Sends one batch through. Returns the cycles of the gateway's turns. */
static uint64_t batch(const uint8_t *f, uint32_t len, uint32_t ip_at, unsigned *out)
{
	static uint32_t n;
	struct fp_port *p = &lab.gw[FP_A].port[FP_LAN];
	struct rte_mbuf *m[BURST];
	uint64_t cycles = 0, t;
	unsigned k;

	for (unsigned i = 0; i < BATCH; i++, n++) {
		struct rte_mbuf *c = fp_copy(&lab, f, len);

		rwy_put16(
		    rte_pktmbuf_mtod_offset(c, uint8_t *, ip_at + 20), (uint16_t)(FIRST_SPORT + n % flows));
		fp_arrive(p, c);
	}
	do {
		t = rte_rdtsc_precise();
		gw_worker_turn(lab.gw[FP_A].w);
		cycles += rte_rdtsc_precise() - t;
	} while (fp_port_waits(p));
	while ((k = fp_sent(p, m, BURST)) > 0) {
		*out += k;
		rte_pktmbuf_free_bulk(m, k);
	}
	return cycles;
}

static void direction(const char *name, bool from_vlan, double seconds)
{
	static double v[SLICES_MAX];
	const struct gw_counters *c = &lab.gw[FP_A].w->c;
	uint64_t before = c->tenant_local, end, sent = 0;
	unsigned slices = 0, disturbed = 0, out = 0;
	uint8_t f[FRAME_MAX];
	uint32_t ip_at, len = frame(f, from_vlan, &ip_at);

	for (unsigned i = 0; i < 64; i++, sent += BATCH)
		batch(f, len, ip_at, &out);
	end = rte_rdtsc() + (uint64_t)(seconds * (double)rte_get_tsc_hz());
	while (rte_rdtsc() < end && slices < SLICES_MAX) {
		long was = switches();
		uint64_t cycles = batch(f, len, ip_at, &out);

		sent += BATCH;
		if (switches() != was)
			disturbed++;
		else
			v[slices++] = (double)cycles / BATCH;
	}
	if (!slices || out != sent || c->tenant_local - before != sent || c->tx_payload_copied)
		fp_die("packets were lost, or copied");
	qsort(v, slices, sizeof(v[0]), order);
	printf(", \"%s\": {\"median\": %.2f, \"min\": %.2f, \"p10\": %.2f, \"packets\": %" PRIu64
	       ", \"slices\": %u, \"disturbed\": %u}",
	    name, v[slices / 2], v[0], v[slices / 10], sent, slices, disturbed);
}

/* bench_local [EAL arguments] -- FLOWS MS. */
int main(int argc, char **argv)
{
	static const struct fp_cfg cfg = {.overlay = FP_VXLAN,
	    .payload = PAYLOAD,
	    .qps = 1,
	    .message = 1,
	    .batch = BATCH,
	    .conf = both_sides};
	int n, ms;

	gw_log_init(GW_LOG_WARNING);
	n = rte_eal_init(argc, argv);
	if (n < 0)
		fp_die("EAL does not start");
	flows = argc - n > 1 ? (unsigned)strtoul(argv[n + 1], NULL, 10) : 1;
	ms = argc - n > 2 ? (int)strtol(argv[n + 2], NULL, 10) : 1000;
	if (flows < 1 || flows > 8192 || ms < 10 || ms > 60000)
		fp_die("-- FLOWS (1 to 8192) MS (10 to 60000)");
	lab.cfg = cfg;
	fp_lab_new(&lab, &cfg);
	printf("{\"flows\": %u, \"tsc_hz\": %" PRIu64, flows, rte_get_tsc_hz());
	direction("to_vlan", false, ms / 1000.0);
	direction("to_vxlan", true, ms / 1000.0);
	printf("}\n");
	return 0;
}
