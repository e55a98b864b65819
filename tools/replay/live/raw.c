/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "roce/parse.h"
#include "rwy/endian.h"
#include "rwy/ether.h"
#include "rwy/prefix.h"

#define ETH_LEN     14
#define ARP_LEN     28
#define ARP_TRIES   10
#define ARP_WAIT_MS 300
#define SOCKET_BUF  (16 << 20)

int rp_fail(struct rp_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -1;
}

bool rp_is_lab(const struct rwy_ip *ip)
{
	static const struct {
		uint8_t b[16], len;
	} lab[] = {
	    {{[10] = 0xff, 0xff, 10}, 104},
	    {{[10] = 0xff, 0xff, 172, 16}, 108},
	    {{[10] = 0xff, 0xff, 192, 168}, 112},
	    {{[10] = 0xff, 0xff, 169, 254}, 112},
	    {{[10] = 0xff, 0xff, 100, 64}, 106},
	    {{[10] = 0xff, 0xff, 198, 18}, 111},
	    {{[10] = 0xff, 0xff, 127}, 104},
	    {{0xfc}, 7},
	    {{0xfe, 0x80}, 10},
	    {{0x20, 0x01, 0x0d, 0xb8}, 32},
	};

	for (unsigned i = 0; i < sizeof(lab) / sizeof(lab[0]); i++) {
		struct rwy_ip p;

		memcpy(p.b, lab[i].b, 16);
		if (rwy_prefix_match(&p, lab[i].len, ip))
			return true;
	}
	return false;
}

/* --- ARP (RFC 826) ------------------------------------------------------------------------- */

static void arp_send(struct rp_lan *l, uint16_t op, const uint8_t to_mac[6], const uint8_t to_ip[4])
{
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t f[ETH_LEN + ARP_LEN] = {0}, *a = f + ETH_LEN;

	memcpy(f, op == ARPOP_REQUEST ? all : to_mac, 6);
	memcpy(f + 6, l->mac, 6);
	rwy_put16(f + 12, RWY_ETHER_ARP);
	rwy_put16(a, ARPHRD_ETHER);
	rwy_put16(a + 2, RWY_ETHER_IP4);
	a[4] = 6;
	a[5] = 4;
	rwy_put16(a + 6, op);
	memcpy(a + 8, l->mac, 6);
	memcpy(a + 14, l->ip, 4);
	if (op == ARPOP_REPLY)
		memcpy(a + 18, to_mac, 6);
	memcpy(a + 24, to_ip, 4);
	(void)!send(l->fd, f, sizeof(f), 0);
}

/*
 * An ARP packet: answers who asks for an address that the kernel does not answer for. True: it
 * names the MAC of `wanted`, which is then in l->next_hop.
 */
static bool arp_take(struct rp_lan *l, const uint8_t *a, const uint8_t *wanted)
{
	if (rwy_get16(a) != ARPHRD_ETHER || rwy_get16(a + 2) != RWY_ETHER_IP4 || a[4] != 6 || a[5] != 4)
		return false;
	if (rwy_get16(a + 6) == ARPOP_REQUEST && !l->kernels && !memcmp(a + 24, l->ip, 4))
		arp_send(l, ARPOP_REPLY, a + 8, a + 14);
	if (!wanted || memcmp(a + 14, wanted, 4) != 0)
		return false;
	memcpy(l->next_hop, a + 8, 6);
	return true;
}

/* A frame that is not our own; its length, 0: none is here. */
static uint32_t frame(struct rp_lan *l, uint8_t *buf, uint32_t size)
{
	struct sockaddr_ll from = {0};
	socklen_t len = sizeof(from);
	ssize_t n;

	while ((n = recvfrom(l->fd, buf, size, MSG_TRUNC, (struct sockaddr *)&from, &len)) > 0)
		if (from.sll_pkttype != PACKET_OUTGOING && n <= (ssize_t)size && n >= ETH_LEN)
			return (uint32_t)n;
	return 0;
}

static bool arp_find(struct rp_lan *l, const uint8_t hop[4])
{
	uint8_t buf[2048];
	uint32_t n;

	for (unsigned i = 0; i < ARP_TRIES; i++) {
		struct pollfd p = {.fd = l->fd, .events = POLLIN};

		arp_send(l, ARPOP_REQUEST, NULL, hop);
		while (poll(&p, 1, ARP_WAIT_MS) > 0)
			while ((n = frame(l, buf, sizeof(buf))))
				if (rwy_get16(buf + 12) == RWY_ETHER_ARP && n >= ETH_LEN + ARP_LEN &&
				    arp_take(l, buf + ETH_LEN, hop))
					return true;
	}
	return false;
}

/* --- the socket ----------------------------------------------------------------------------- */

/* Finds index, MAC address and MTU of the interface. */
static int describe(struct rp_lan *l, const char *interface, const struct rwy_ip *own, struct rp_error *err)
{
	struct ifreq r = {0};
	int rc;

	if (strlen(interface) >= IF_NAMESIZE || !if_nametoindex(interface))
		return rp_fail(err, "%s: there is no such interface", interface);
	snprintf(l->name, sizeof(l->name), "%s", interface);
	memcpy(r.ifr_name, l->name, IF_NAMESIZE);
	if (ioctl(l->fd, SIOCGIFHWADDR, &r) != 0 || r.ifr_hwaddr.sa_family != ARPHRD_ETHER)
		return rp_fail(err, "%s: is no Ethernet interface", interface);
	memcpy(l->mac, r.ifr_hwaddr.sa_data, 6);
	if (ioctl(l->fd, SIOCGIFMTU, &r) != 0)
		return rp_fail(err, "%s: %s", interface, strerror(errno));
	l->mtu = (uint32_t)r.ifr_mtu;
	rc = ioctl(l->fd, SIOCGIFADDR, &r);
	if (rc == 0) {
		struct sockaddr_in in;

		memcpy(&in, &r.ifr_addr, sizeof(in));
		memcpy(l->ip, &in.sin_addr, 4);
	}
	if (own)
		memcpy(l->ip, own->b + 12, 4);
	else if (rc != 0)
		return rp_fail(err, "%s: has no IPv4 address: name one with --address", interface);
	return 0;
}

static int bind_to(struct rp_lan *l, struct rp_error *err)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int buf = SOCKET_BUF;

	sa.sll_ifindex = (int)if_nametoindex(l->name);
	if (bind(l->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		return rp_fail(err, "%s: %s", l->name, strerror(errno));
	/* without the right to force them the kernel's bounds hold, and more is sent again */
	(void)setsockopt(l->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buf, sizeof(buf));
	(void)setsockopt(l->fd, SOL_SOCKET, SO_SNDBUFFORCE, &buf, sizeof(buf));
	return 0;
}

/*
 * The kernel must not answer for UDP port 4791 of its own address: neither Soft-RoCE, nor ICMP
 * "port unreachable". So the port is held here, with a filter that drops everything.
 */
static int hold_port(struct rp_lan *l, struct rp_error *err)
{
	struct sock_filter none = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog prog = {1, &none};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
	char text[INET_ADDRSTRLEN];

	memcpy(&sa.sin_addr, l->ip, 4);
	inet_ntop(AF_INET, l->ip, text, sizeof(text));
	l->sink = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->sink < 0)
		return rp_fail(err, "UDP: %s", strerror(errno));
	(void)setsockopt(l->sink, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
	if (bind(l->sink, (struct sockaddr *)&sa, sizeof(sa)) == 0) {
		l->kernels = true;
		return 0;
	}
	close(l->sink);
	l->sink = -1;
	if (errno == EADDRNOTAVAIL) /* nobody's: ARP is answered here */
		return 0;
	if (errno == EADDRINUSE)
		return rp_fail(err,
		    "%s: UDP port %d is in use: this host has Soft-RoCE, or another replay runs; use "
		    "--address "
		    "with an address that the kernel does not have",
		    text, ROCE_UDP_PORT);
	return rp_fail(err, "%s: UDP port %d: %s", text, ROCE_UDP_PORT, strerror(errno));
}

int rp_lan_open(struct rp_lan *l, const char *interface, const struct rwy_ip *own, const struct rwy_ip *peer,
    const struct rwy_ip *via, struct rp_error *err)
{
	char text[INET_ADDRSTRLEN];
	uint8_t hop[4];

	memset(l, 0, sizeof(*l));
	l->sink = -1;
	memcpy(l->peer, peer->b + 12, 4);
	l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return rp_fail(err, "no raw socket: %s%s", strerror(errno),
		    errno == EPERM ? " (it needs root, or CAP_NET_RAW)" : "");
	if (describe(l, interface, own, err) != 0 || bind_to(l, err) != 0 || hold_port(l, err) != 0) {
		rp_lan_close(l);
		return -1;
	}
	if (via)
		memcpy(hop, via->b + 12, 4);
	else
		rp_route(l->name, l->peer, hop);
	if (arp_find(l, hop))
		return 0;
	inet_ntop(AF_INET, hop, text, sizeof(text));
	rp_lan_close(l);
	return rp_fail(err, "%s: %s does not answer ARP; --via names another router", l->name, text);
}

void rp_lan_close(struct rp_lan *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->sink >= 0)
		close(l->sink);
	l->fd = l->sink = -1;
}

void rp_lan_send(struct rp_lan *l, const uint8_t *ip, uint32_t len)
{
	uint8_t f[ETH_LEN + 9216];

	if (len > sizeof(f) - ETH_LEN)
		return;
	memcpy(f, l->next_hop, 6);
	memcpy(f + 6, l->mac, 6);
	rwy_put16(f + 12, RWY_ETHER_IP4);
	memcpy(f + ETH_LEN, ip, len);
	l->stats.sent++;
	if (send(l->fd, f, ETH_LEN + len, 0) < 0)
		l->stats.not_sent++; /* as a loss: it is sent again */
}

uint32_t rp_lan_recv(struct rp_lan *l, uint8_t *buf, uint32_t size, uint8_t **ip)
{
	uint32_t n;

	while ((n = frame(l, buf, size))) {
		uint16_t type = rwy_get16(buf + 12);

		if (type == RWY_ETHER_ARP && n >= ETH_LEN + ARP_LEN)
			arp_take(l, buf + ETH_LEN, NULL);
		if (type != RWY_ETHER_IP4 || n < ETH_LEN + 20 || memcmp(buf + ETH_LEN + 16, l->ip, 4) != 0)
			continue;
		l->stats.received++;
		*ip = buf + ETH_LEN;
		return n - ETH_LEN;
	}
	return 0;
}
