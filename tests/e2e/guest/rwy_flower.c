/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tc flower on a real kernel: the gateway's own rules (offload/) and backend (gateway/offload/tc.c,
 * gateway/offload/flower.c, gateway/offload/vxlan.c) on one end of a veth pair, and hosts' packets
 * sent from the other. Each case says where its packets must come out. Packet sockets show what
 * came out, and the backend reads the kernel's counters. tests/e2e/test_offload.py makes the
 * devices, and compares the filters that `tc` prints with the expected ones.
 *
 *   rwy_flower PORT PEER DUMPDIR      PORT has 192.0.2.1, PEER is its other end; the output of `tc`
 *                                     goes to DUMPDIR/NAME.json
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/offload/tc.h"

#define COUNT   10
#define WAIT_MS 300
#define BIG     2048

static unsigned failures;
static const char *port_name, *peer_name, *dump_dir;
static uint8_t port_mac[6];
static const uint8_t gw_mac[6] = {2, 0, 0, 0, 0, 0xfe}, mac_a[6] = {2, 0, 0, 0, 0, 0xa},
                     mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t mac_x[6] = {2, 0, 0, 0, 0, 0x99};

static void die(const char *what)
{
	fprintf(stderr, "rwy_flower: %s: %s\n", what, strerror(errno));
	exit(2);
}

static struct rwy_ip ip(const char *s)
{
	struct rwy_ip a;
	uint8_t v4[4];

	if (inet_pton(AF_INET, s, v4) == 1)
		return rwy_ip_from4(v4);
	if (inet_pton(AF_INET6, s, a.b) != 1)
		die(s);
	return a;
}

static struct prefix net(const char *s, unsigned len)
{
	struct prefix p = {.addr = ip(s)};

	p.len = (uint8_t)(rwy_ip_is4(&p.addr) ? 96 + len : len);
	return p;
}

/* --- tenants ---------------------------------------------------------------------------------------- */

#define RULES 5

static void rules(struct acl_rule r[RULES])
{
	for (unsigned i = 0; i < RULES; i++)
		r[i] = (struct acl_rule){.sport_hi = 65535, .classes = ACL_ALL};
	r[0].src = net("10.1.0.66", 32);
	r[1] = (struct acl_rule){net("10.1.0.0", 24), net("10.9.1.0", 24), 50000, 50003, ACL_ALL, true};
	r[2] = (struct acl_rule){{.len = 0}, net("10.9.0.0", 16), 49152, 65535, ACL_ALL, false};
	r[3].dst = net("10.8.0.0", 16);
	r[3].classes = 1 << ACL_WRITE;
	r[4].src = net("fd00:1::66", 128);
}

/* Two tenants with the same addresses; only red has an ACL. */
static const struct tenant_set *set_new(struct tenant_db **db)
{
	static const struct tenant_limits lim = {.tenants = 2, .tunnels = 1};
	struct acl_rule r[RULES];
	struct tenant_prefix p[5] = {{net("10.1.0.0", 24), {TENANT_VTEP, 0}},
	    {net("10.3.0.0", 24), {TENANT_LAN, 0}}, {net("10.8.0.0", 16), {TENANT_TUNNEL, 0}},
	    {net("10.9.0.0", 16), {TENANT_TUNNEL, 0}}, {net("fd00:1::", 64), {TENANT_VTEP, 0}}};
	struct rwy_ip vtep = ip("192.0.2.11");
	struct tenant_host host[2] = {{.addr = ip("10.1.0.5"), .vtep = vtep}, {.addr = ip("10.3.0.7")}};
	struct tenant_cfg c;
	const struct tenant_set *s;
	struct tenant_err err;
	struct tenant_txn *x;

	memcpy(host[0].mac, mac_a, 6);
	memcpy(host[1].mac, mac_b, 6);
	rules(r);
	tenant_cfg_default(&c);
	snprintf(c.name, sizeof(c.name), "red");
	c.vni = 5001;
	c.vlan = 101;
	c.prefix = p;
	c.prefixes = 5;
	c.vtep = &vtep;
	c.vteps = 1;
	c.host = host;
	c.hosts = 2;
	c.rule = r;
	c.rules = RULES;
	memcpy(c.gw_mac, gw_mac, 6);
	if (tenant_db_new(db, &lim) || tenant_txn_begin(&x, *db) || tenant_txn_add(x, &c, &err))
		die("tenant red");
	snprintf(c.name, sizeof(c.name), "blue");
	c.vni = 5002;
	c.vlan = 102;
	c.rules = c.hosts = 0;
	if (tenant_txn_add(x, &c, &err) || tenant_txn_commit(x, &s, &err))
		die("tenant blue");
	return s;
}

static const struct tenant_set *set_acl(struct tenant_db *db, const struct acl_rule *r, unsigned n)
{
	struct tenant_cfg c = tenant_by_name(tenant_db_current(db), "red")->cfg;
	const struct tenant_set *s;
	struct tenant_err err;
	struct tenant_txn *x;

	c.rule = r;
	c.rules = n;
	c.allow_default = true;
	if (tenant_txn_begin(&x, db) || tenant_txn_set(x, &c, &err) || tenant_txn_commit(x, &s, &err))
		die("change");
	return s;
}

/* --- packets ---------------------------------------------------------------------------------------- */

enum outcome { PASS, DROP, TO_VLAN, TO_VXLAN };
static const char *const outcomes[] = {"pass", "drop", "to-vlan", "to-vxlan"};

struct packet {
	const char *name;
	uint32_t vni; /* 0: on the VLAN */
	uint16_t vlan;
	const char *vtep, *src, *dst;
	uint16_t sport, dport;
	enum outcome outcome;
	uint8_t opcode, ttl;
	bool fragment;
	const uint8_t *src_mac;
};

static size_t put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return 2;
}

static uint16_t sum16(const uint8_t *p, size_t n)
{
	uint32_t s = 0;

	for (size_t i = 0; i < n; i += 2)
		s += (uint32_t)p[i] << 8 | p[i + 1];
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static size_t put_ip(
    uint8_t *p, const char *src, const char *dst, size_t payload, unsigned ttl, bool fragment)
{
	struct rwy_ip s = ip(src), d = ip(dst);

	if (!rwy_ip_is4(&s)) {
		memset(p, 0, 8);
		p[0] = 0x60;
		put16(p + 4, (unsigned)payload);
		p[6] = 17;
		p[7] = (uint8_t)ttl;
		memcpy(p + 8, s.b, 16);
		memcpy(p + 24, d.b, 16);
		return 40;
	}
	memset(p, 0, 20);
	p[0] = 0x45;
	put16(p + 2, (unsigned)(20 + payload));
	put16(p + 6, fragment ? 0x2000 : 0x4000);
	p[8] = (uint8_t)ttl;
	p[9] = 17;
	memcpy(p + 12, s.b + 12, 4);
	memcpy(p + 16, d.b + 12, 4);
	put16(p + 10, sum16(p, 20));
	return 20;
}

static size_t put_udp(uint8_t *p, unsigned sport, unsigned dport, size_t payload)
{
	put16(p, sport);
	put16(p + 2, dport);
	put16(p + 4, (unsigned)(8 + payload));
	put16(p + 6, 0);
	return 8;
}

/* IP, UDP, BTH with the marker as its PSN, and the marker again: 16 bytes of UDP payload. */
#define PAYLOAD 16
static size_t inner_make(uint8_t *p, const struct packet *k, uint32_t marker)
{
	size_t n = put_ip(p, k->src, k->dst, 8 + PAYLOAD, k->ttl ? k->ttl : 64, k->fragment);

	n += put_udp(p + n, k->sport, k->dport ? k->dport : 4791, PAYLOAD);
	memset(p + n, 0, PAYLOAD);
	p[n] = k->opcode;
	memcpy(p + n + 12, &marker, 4);
	return n + PAYLOAD;
}

static size_t ether(uint8_t *p, const uint8_t *dst, const uint8_t *src, unsigned vlan, unsigned type)
{
	size_t n = 12;

	memcpy(p, dst, 6);
	memcpy(p + 6, src, 6);
	if (vlan) {
		n += put16(p + n, ETH_P_8021Q);
		n += put16(p + n, vlan);
	}
	return n + put16(p + n, type);
}

static size_t frame_make(uint8_t *f, const struct packet *k, uint32_t marker)
{
	uint8_t in[BIG];
	struct rwy_ip s = ip(k->src);
	size_t n, len = inner_make(in + 14, k, marker);
	const unsigned type = rwy_ip_is4(&s) ? ETH_P_IP : ETH_P_IPV6;

	if (!k->vni) {
		n = ether(f, port_mac, k->src_mac ? k->src_mac : mac_b, k->vlan, type);
		memcpy(f + n, in + 14, len);
		return n + len;
	}
	len += ether(in, gw_mac, k->src_mac ? k->src_mac : mac_a, 0, type);
	n = ether(f, port_mac, mac_x, 0, ETH_P_IP);
	n += put_ip(f + n, k->vtep ? k->vtep : "192.0.2.11", "192.0.2.1", 16 + len, 64, false);
	n += put_udp(f + n, 50123, 4789, 8 + len);
	memcpy(f + n,
	    (const uint8_t[8]){
	        8, 0, 0, 0, (uint8_t)(k->vni >> 16), (uint8_t)(k->vni >> 8), (uint8_t)k->vni, 0},
	    8);
	memcpy(f + n + 8, in, len);
	return n + 8 + len;
}

/* --- where packets come out ------------------------------------------------------------------- */

static int sock_on(const char *dev, int kind, int proto)
{
	struct sockaddr_ll a = {.sll_family = AF_PACKET,
	    .sll_protocol = htons((uint16_t)proto),
	    .sll_ifindex = (int)if_nametoindex(dev)};
	int s = socket(AF_PACKET, kind | SOCK_CLOEXEC, 0), on = 1;

	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) ||
	    setsockopt(s, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)))
		die(dev);
	return s;
}

struct seen {
	unsigned pass, vlan, vxlan, wrong;
};

static bool has_marker(const uint8_t *p, size_t n, uint32_t marker)
{
	return n >= 4 && !memcmp(p + n - 4, &marker, 4);
}

/* True if the inner packet is right after forwarding: TTL one less, header checksum correct. */
static bool inner_good(const uint8_t *p, const struct packet *k)
{
	return p[8] == 63 && sum16(p, 20) == 0 && !memcmp(p + 12, ip(k->src).b + 12, 4) &&
	       !memcmp(p + 16, ip(k->dst).b + 12, 4);
}

/* A frame at the other end of the port, where forwarded packets come out. */
static void peer_frame(const uint8_t *f, size_t n, unsigned tci, const struct packet *k, struct seen *seen)
{
	if (tci) {
		bool good = (tci & 0xfff) == 101 && !memcmp(f, mac_b, 6) && !memcmp(f + 6, port_mac, 6) &&
		            f[12] == 8 && inner_good(f + 14, k);

		seen->vlan += good;
		seen->wrong += !good;
	} else if (n > 64 && f[23] == 17 && f[36] == 4789 >> 8 && f[37] == (4789 & 0xff)) {
		const uint8_t *v = f + 42;
		bool good = v[0] == 8 && v[4] == 0 && v[5] == 5001 >> 8 && v[6] == (5001 & 0xff) &&
		            !memcmp(f + 26, ip("192.0.2.1").b + 12, 4) &&
		            !memcmp(f + 30, ip("192.0.2.11").b + 12, 4) && !memcmp(v + 8, mac_a, 6) &&
		            !memcmp(v + 14, gw_mac, 6) && inner_good(v + 22, k);

		seen->vxlan += good;
		seen->wrong += !good;
	} else {
		seen->wrong++;
	}
}

enum { SOCK_PEER, SOCK_PORT4, SOCK_PORT6, SOCK_VX4, SOCK_VX6, SOCKS };
static struct pollfd socks[SOCKS];

static void receive(int s, bool peer, const struct packet *k, uint32_t marker, struct seen *seen)
{
	uint8_t buf[BIG];
	char control[256];
	struct sockaddr_ll from;
	struct iovec v = {buf, sizeof(buf)};
	struct msghdr m = {.msg_name = &from,
	    .msg_namelen = sizeof(from),
	    .msg_iov = &v,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(s, &m, MSG_DONTWAIT);
	unsigned tci = 0;

	if (n <= 0 || from.sll_pkttype == PACKET_OUTGOING || !has_marker(buf, (size_t)n, marker))
		return;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_type == PACKET_AUXDATA) {
			struct tpacket_auxdata aux;

			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
			tci = aux.tp_status & TP_STATUS_VLAN_VALID ? aux.tp_vlan_tci : 0;
		}
	if (!peer && s != socks[k->vni ? SOCK_VX4 : SOCK_PORT4].fd &&
	    s != socks[k->vni ? SOCK_VX6 : SOCK_PORT6].fd)
		return; /* the outer packet, which the port also shows */
	if (peer)
		peer_frame(buf, (size_t)n, tci, k, seen);
	else
		seen->pass++;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Sends COUNT packets and waits until all have come out where they belong; if none may come out,
 * waits a while. */
static void packet_case(const struct packet *k)
{
	static uint32_t marker = 0x52570000;
	struct seen seen = {0};
	uint8_t f[BIG];
	size_t n = frame_make(f, k, ++marker);
	uint64_t end = now_ms() + WAIT_MS;
	const unsigned *want = k->outcome == PASS      ? &seen.pass
	                       : k->outcome == TO_VLAN ? &seen.vlan
	                                               : &seen.vxlan;
	bool good;

	for (unsigned i = 0; i < COUNT; i++)
		if (send(socks[SOCK_PEER].fd, f, n, 0) != (ssize_t)n)
			die("send");
	while (now_ms() < end) {
		if (poll(socks, SOCKS, 20) <= 0)
			continue;
		for (unsigned i = 0; i < SOCKS; i++)
			if (socks[i].revents)
				receive(socks[i].fd, i == SOCK_PEER, k, marker, &seen);
		if (k->outcome != DROP && *want < COUNT)
			end = now_ms() + WAIT_MS;
	}
	good = !seen.wrong && seen.pass == (k->outcome == PASS ? COUNT : 0) &&
	       seen.vlan == (k->outcome == TO_VLAN ? COUNT : 0) &&
	       seen.vxlan == (k->outcome == TO_VXLAN ? COUNT : 0);
	failures += !good;
	printf("%s %s: %s wanted; seen: %u passed, %u on the VLAN, %u in VXLAN, %u wrong\n",
	    good ? "ok  " : "FAIL", k->name, outcomes[k->outcome], seen.pass, seen.vlan, seen.vxlan,
	    seen.wrong);
}

static void check(const char *what, bool good)
{
	failures += !good;
	printf("%s %s\n", good ? "ok  " : "FAIL", what);
}

/* --- the cases in order ----------------------------------------------------------------------- */

#define CASE(n, v, l, t, s, d, sp, dp, f, ...)                                                               \
	{                                                                                                    \
		.name = n, .vni = v, .vlan = l, .vtep = t, .src = s, .dst = d, .sport = sp, .dport = dp,     \
		.outcome = f, __VA_ARGS__                                                                    \
	}
static const struct packet cases[] = {
    CASE("red, allowed", 5001, 0, NULL, "10.1.0.5", "10.9.2.1", 100, 0, PASS),
    CASE("red, host 66", 5001, 0, NULL, "10.1.0.66", "10.9.2.1", 100, 0, DROP),
    CASE("blue, the same address", 5002, 0, NULL, "10.1.0.66", "10.9.2.1", 100, 0, PASS),
    CASE("red, port denied", 5001, 0, NULL, "10.1.0.5", "10.9.2.1", 50010, 0, DROP),
    CASE("red, port allowed in front", 5001, 0, NULL, "10.1.0.5", "10.9.1.1", 50001, 0, PASS),
    CASE("red, port beside it", 5001, 0, NULL, "10.1.0.5", "10.9.1.1", 50004, 0, DROP),
    CASE("red, foreign VTEP", 5001, 0, "192.0.2.99", "10.1.0.5", "10.9.2.1", 100, 0, DROP),
    CASE("nobody's VNI", 7777, 0, NULL, "10.1.0.5", "10.9.2.1", 100, 0, DROP),
    CASE("red, a write that software denies", 5001, 0, NULL, "10.1.0.5", "10.8.0.1", 100, 0, PASS,
        .opcode = 0x0a),
    CASE("red, host 66, not RoCE", 5001, 0, NULL, "10.1.0.66", "10.9.2.1", 100, 53, PASS),
    CASE("red, host 66, a fragment", 5001, 0, NULL, "10.1.0.66", "10.9.2.1", 100, 0, PASS, .fragment = true),
    CASE("red, IPv6, allowed", 5001, 0, NULL, "fd00:1::65", "fd00:1::1", 100, 0, PASS),
    CASE("red, IPv6, host 66", 5001, 0, NULL, "fd00:1::66", "fd00:1::1", 100, 0, DROP),
    CASE("VLAN of red, allowed", 0, 101, NULL, "10.3.0.8", "10.9.2.1", 100, 0, PASS),
    CASE("VLAN of red, port denied", 0, 101, NULL, "10.3.0.8", "10.9.2.1", 50010, 0, DROP),
    CASE("VLAN of blue, the same", 0, 102, NULL, "10.3.0.8", "10.9.2.1", 50010, 0, PASS),
    CASE("nobody's VLAN", 0, 103, NULL, "10.3.0.8", "10.9.2.1", 50010, 0, PASS),
    CASE("VXLAN host to VLAN host", 5001, 0, NULL, "10.1.0.5", "10.3.0.7", 100, 0, TO_VLAN),
    CASE("the same at its last hop", 5001, 0, NULL, "10.1.0.5", "10.3.0.7", 100, 0, PASS, .ttl = 1),
    CASE("the same from another MAC address", 5001, 0, NULL, "10.1.0.5", "10.3.0.7", 100, 0, PASS,
        .src_mac = mac_x),
    CASE("the same in blue", 5002, 0, NULL, "10.1.0.5", "10.3.0.7", 100, 0, PASS),
    CASE("VLAN host to VXLAN host", 0, 101, NULL, "10.3.0.7", "10.1.0.5", 100, 0, TO_VXLAN),
};

static void tc_dump(const char *dev, const char *file)
{
	char cmd[256];

	fflush(stdout);
	snprintf(cmd, sizeof(cmd), "/opt/rwy/tc -s -j filter show dev %s ingress >%s/%s.json", dev, dump_dir,
	    file);
	check(cmd, system(cmd) == 0);
}

static void print_entry(void *arg, const struct offload_entry *e)
{
	const struct offload_rule *r = &e->rule;

	printf("rule %u %s %s tenant=%u item=%d prio=%u packets=%llu %s\n", e->handle,
	    offload_where_name(e->where), offload_act_name(r->act), r->tenant, r->item, r->prio,
	    (unsigned long long)e->packets, e->why ? e->why : "");
}

struct find {
	uint32_t tenant;
	int item;
	enum offload_what what;
	uint64_t packets;
	unsigned in;
};

static void find_entry(void *arg, const struct offload_entry *e)
{
	struct find *f = arg;

	if (e->rule.tenant == f->tenant && e->rule.item == f->item && e->rule.what == f->what &&
	    e->rule.act == OFFLOAD_DROP && !e->why) {
		f->in++;
		f->packets += e->packets;
	}
}

static struct find find(struct offload_sync *s, uint32_t tenant, int item, enum offload_what what)
{
	struct find f = {tenant, item, what, 0, 0};

	offload_sync_each(s, find_entry, &f);
	return f;
}

static void counters(struct offload_sync *s)
{
	check("the kernel's counters can be read, nothing vanished", offload_sync_read(s) == 0);
	offload_sync_each(s, print_entry, NULL);
	check("host 66: as many packets as were sent", find(s, 1, 0, OFFLOAD_ACL).packets == COUNT);
	check("ports: as many as were sent, VXLAN and VLAN", find(s, 1, 2, OFFLOAD_ACL).packets == 3 * COUNT);
	check("IPv6 host: as many as were sent", find(s, 1, 4, OFFLOAD_ACL).packets == COUNT);
	check("foreign VTEP: as many as were sent", find(s, 1, -1, OFFLOAD_VTEP).packets == COUNT);
	check("unknown VNI: as many as were sent", find(s, 0, -1, OFFLOAD_VNI).packets == COUNT);
}

static void changes(struct offload_sync *s, struct tenant_db *db)
{
	struct packet p66 = cases[1], p67 = cases[1];
	struct acl_rule r[RULES];
	const struct tenant_set *next;

	p66.outcome = PASS;
	p67.src = "10.1.0.67";
	rules(r);
	r[0].src = net("10.1.0.67", 32);
	next = set_acl(db, r, RULES);
	check("prepare", offload_sync_prepare(s, next) == 0);
	p66.name = "host 66 before the new ACL is published";
	packet_case(&p66);
	p67.outcome = PASS;
	p67.name = "host 67 before the new ACL is published";
	packet_case(&p67);
	offload_sync_commit(s);
	p66.name = "host 66 afterwards";
	packet_case(&p66);
	p67.outcome = DROP;
	p67.name = "host 67 afterwards";
	packet_case(&p67);
	packet_case(&cases[3]); /* the other rules are still there */
	packet_case(&cases[4]);
}

/* Removes all filters of the port, as an operator would by hand. */
static void by_hand(struct offload_sync *s)
{
	struct packet p = cases[14];
	struct offload_counts before, after;
	char cmd[128];

	offload_sync_count(s, &before);
	snprintf(cmd, sizeof(cmd), "/opt/rwy/tc filter del dev %s ingress", port_name);
	check(cmd, system(cmd) == 0);
	p.outcome = PASS;
	p.name = "VLAN of red, port denied, after somebody removed the filters";
	packet_case(&p);
	check("it is noticed", offload_sync_read(s) > 0);
	offload_sync_count(s, &after);
	check("and shown as software", after.software > before.software);
	offload_sync_retry(s, 1000);
	offload_sync_count(s, &after);
	check("and mended", after.software == before.software && after.kernel == before.kernel);
	p.outcome = DROP;
	p.name = "VLAN of red, port denied, after that";
	packet_case(&p);
}

int main(int argc, char **argv)
{
	struct offload_tc_cfg tc = {.skip_hw = false};
	struct offload_tc *t = NULL;
	struct offload_cfg cfg;
	struct offload_counts c;
	struct tenant_db *db;
	struct offload_sync *s;
	const struct tenant_set *set = set_new(&db);
	char why[OFFLOAD_WHY] = "";
	struct ifreq ifr = {0};

	if (argc != 4)
		die("usage: rwy_flower PORT PEER DUMPDIR");
	setvbuf(stdout, NULL, _IOLBF, 0);
	port_name = argv[1];
	peer_name = argv[2];
	dump_dir = argv[3];
	snprintf(tc.port, sizeof(tc.port), "%s", port_name);
	if (offload_tc_new(&t, &tc, why) != 0) {
		printf("FAIL backend: %s\n", why);
		return 1;
	}
	printf("filters on %s and %s %s\n", offload_tc_port(t), offload_tc_vxlan(t), offload_tc_no_vxlan(t));
	socks[SOCK_PEER].fd = sock_on(peer_name, SOCK_RAW, ETH_P_ALL);
	socks[SOCK_PORT4].fd = sock_on(port_name, SOCK_DGRAM, ETH_P_IP);
	socks[SOCK_PORT6].fd = sock_on(port_name, SOCK_DGRAM, ETH_P_IPV6);
	socks[SOCK_VX4].fd = sock_on(offload_tc_vxlan(t), SOCK_DGRAM, ETH_P_IP);
	socks[SOCK_VX6].fd = sock_on(offload_tc_vxlan(t), SOCK_DGRAM, ETH_P_IPV6);
	for (unsigned i = 0; i < SOCKS; i++)
		socks[i].events = POLLIN;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", port_name);
	if (ioctl(socks[0].fd, SIOCGIFHWADDR, &ifr))
		die("mac");
	memcpy(port_mac, ifr.ifr_hwaddr.sa_data, 6);

	offload_cfg_default(&cfg);
	cfg.self[0] = ip("192.0.2.1");
	cfg.selfs = 1;
	cfg.forward = true;
	memcpy(cfg.mac, port_mac, 6);
	check("backend starts, what was left is gone", offload_sync_new(&s, &cfg, &offload_tc_ops, t) == 0);
	check("prepare", offload_sync_prepare(s, set) == 0);
	offload_sync_commit(s);
	offload_sync_each(s, print_entry, NULL);
	offload_sync_count(s, &c);
	printf("%u in hardware, %u in the kernel, %u in software\n", c.hardware, c.kernel, c.software);
	check("filters are in the kernel, writes are left to software",
	    c.kernel > 15 && c.hardware == 0 && c.software > 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		packet_case(&cases[i]);
	counters(s);
	tc_dump(port_name, "port");
	tc_dump(offload_tc_vxlan(t), "vxlan");
	changes(s, db);
	by_hand(s);
	check("all is removed", offload_sync_free(s) == 0);
	tc_dump(port_name, "port-after");
	tc_dump(offload_tc_vxlan(t), "vxlan-after");
	offload_tc_free(t);
	tenant_db_free(db);
	printf("%u failed\n", failures);
	return failures != 0;
}
