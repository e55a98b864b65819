/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rte_flow on a driver that has it: the gateway's own backend (gateway/offload_rte.c) and rules on DPDK's
 * net_tap, which makes tc flower filters of flows, so the kernel does the dropping. Packets are sent into the
 * tap by the kernel's side and counted where DPDK receives them. tests/e2e/test_offload.py brings it into a
 * guest.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/offload_rte.h"

#define COUNT 10
#define TAP   "rt0"

static unsigned failures;

static void check(const char *what, bool good)
{
	failures += !good;
	printf("%s %s\n", good ? "ok  " : "FAIL", what);
}

static struct prefix net(uint8_t a, uint8_t b, uint8_t c, uint8_t d, unsigned len)
{
	const uint8_t v4[4] = {a, b, c, d};

	return (struct prefix){rwy_ip_from4(v4), (uint8_t)(96 + len)};
}

static int port_start(uint16_t port)
{
	struct rte_eth_conf conf = {0};
	struct rte_mempool *pool = rte_pktmbuf_pool_create("p", 1023, 0, 0, 2048, SOCKET_ID_ANY);
	int rc = pool ? rte_eth_dev_configure(port, 1, 1, &conf) : -1;

	if (!rc)
		rc = rte_eth_rx_queue_setup(port, 0, 256, SOCKET_ID_ANY, NULL, pool);
	if (!rc)
		rc = rte_eth_tx_queue_setup(port, 0, 256, SOCKET_ID_ANY, NULL);
	return rc ? rc : rte_eth_dev_start(port);
}

/* One tenant on a VLAN: a host that may nothing, and one that may not write. */
static const struct tenant_set *set_new(struct tenant_db **db, unsigned rules)
{
	static const struct tenant_limits lim = {.tenants = 1};
	static struct acl_rule r[2] = {
	    {.sport_hi = 65535, .classes = ACL_ALL}, {.sport_hi = 65535, .classes = 1 << ACL_WRITE}};
	struct tenant_prefix p = {net(10, 3, 0, 0, 24), {TENANT_LAN, 0}};
	const struct tenant_set *s;
	struct tenant_err err;
	struct tenant_txn *x;
	struct tenant_cfg c;

	r[0].src = net(10, 3, 0, 66, 32);
	r[1].src = net(10, 3, 0, 67, 32);
	tenant_cfg_default(&c);
	snprintf(c.name, sizeof(c.name), "red");
	c.vlan = 101;
	c.prefix = &p;
	c.prefixes = 1;
	c.rule = r;
	c.rules = rules;
	if ((!*db && tenant_db_new(db, &lim)) || tenant_txn_begin(&x, *db))
		abort();
	if ((tenant_txn_get(x, "red") ? tenant_txn_set(x, &c, &err) : tenant_txn_add(x, &c, &err)) ||
	    tenant_txn_commit(x, &s, &err))
		abort();
	return s;
}

static size_t frame(uint8_t *f, uint16_t vlan, uint8_t host)
{
	static const uint8_t head[] = {2, 0, 0, 0, 0, 0xfe, 2, 0, 0, 0, 0, 0xb, 0x81, 0, 0, 0, 8,
	    0,                                                                     /* Ethernet, tag */
	    0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 3, 0, 0, 10, 3, 0, 1, /* IPv4 */
	    0xc0, 0, 0x12, 0xb7, 0, 24, 0, 0};                                     /* UDP to 4791 */

	memset(f, 0, sizeof(head) + 16);
	memcpy(f, head, sizeof(head));
	f[14] = (uint8_t)(vlan >> 8);
	f[15] = (uint8_t)vlan;
	f[33] = host;
	f[46] = 0x0a; /* BTH: RC write only */
	return sizeof(head) + 16;
}

static unsigned received(uint16_t port, uint8_t host)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 300; i++) {
		struct rte_mbuf *m[32];
		uint16_t k = rte_eth_rx_burst(port, 0, m, 32);

		for (uint16_t j = 0; j < k; j++) {
			const uint8_t *p = rte_pktmbuf_mtod(m[j], const uint8_t *);

			n += m[j]->data_len > 33 && p[12] == 0x81 && p[33] == host;
			rte_pktmbuf_free(m[j]);
		}
		usleep(1000);
	}
	return n;
}

static void sent(int s, uint16_t port, const char *what, uint16_t vlan, uint8_t host, unsigned want)
{
	uint8_t f[128];
	size_t n = frame(f, vlan, host);
	unsigned got;

	for (unsigned i = 0; i < COUNT; i++)
		if (send(s, f, n, 0) < 0)
			perror("send");
	got = received(port, host);
	failures += got != want;
	printf("%s %s: %u of %u came through\n", got == want ? "ok  " : "FAIL", what, got, COUNT);
}

static void print_entry(void *arg, const struct offload_entry *e)
{
	printf("rule %s item=%d %s%s%s\n", offload_act_name(e->rule.act), e->rule.item,
	    offload_where_name(e->where), e->why ? ": " : "", e->why ? e->why : "");
}

static int tap_socket(void)
{
	struct sockaddr_ll a = {.sll_family = AF_PACKET,
	    .sll_protocol = htons(ETH_P_ALL),
	    .sll_ifindex = (int)if_nametoindex(TAP)};
	int s = socket(AF_PACKET, SOCK_RAW, 0);

	if (s < 0 || !a.sll_ifindex || bind(s, (struct sockaddr *)&a, sizeof(a)))
		perror(TAP);
	return s;
}

int main(void)
{
	char *args[] = {"rwy_rteflow", "--no-shconf", "--no-huge", "-m", "64", "--no-pci", "-l", "0",
	    "--no-telemetry", "--vdev=net_tap0,iface=rt0", NULL};
	struct offload_sync *s = NULL;
	struct offload_rte *o = NULL;
	struct tenant_db *db = NULL;
	struct offload_counts c;
	struct offload_cfg cfg;
	uint16_t port = 0;
	int sock;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rte_eal_init(sizeof(args) / sizeof(args[0]) - 1, args) < 0 || port_start(port) != 0) {
		printf("FAIL DPDK does not start\n");
		return 1;
	}
	sock = tap_socket();
	usleep(200000);
	sent(sock, port, "before: host 66", 101, 66, COUNT);
	offload_cfg_default(&cfg);
	check("backend",
	    offload_rte_new(&o, port, 0, 1) == 0 && offload_sync_new(&s, &cfg, &offload_rte_ops, o) == 0);
	check("prepare", offload_sync_prepare(s, set_new(&db, 2)) == 0);
	offload_sync_commit(s);
	offload_sync_each(s, print_entry, NULL);
	offload_sync_count(s, &c);
	check("one rule in hardware, writes in software", c.hardware == 1 && c.software > 0);
	fflush(stdout);
	check("the kernel has the filter",
	    system("/opt/rwy/tc -s filter show dev " TAP " parent 1:; /opt/rwy/tc qdisc show dev " TAP) == 0);
	sent(sock, port, "host 66", 101, 66, 0);
	sent(sock, port, "host 65", 101, 65, COUNT);
	sent(sock, port, "host 67, which may not write: software's", 101, 67, COUNT);
	sent(sock, port, "host 66 on another VLAN", 102, 66, COUNT);
	check("read back", offload_sync_read(s) == 0);
	check("prepare without the ACL", offload_sync_prepare(s, set_new(&db, 0)) == 0);
	sent(sock, port, "host 66, before the change is published", 101, 66, COUNT);
	offload_sync_commit(s);
	offload_sync_count(s, &c);
	check("nothing is left", c.hardware == 0 && offload_sync_free(s) == 0);
	offload_rte_free(o);
	tenant_db_free(db);
	printf("%u failed\n", failures);
	return failures != 0;
}
