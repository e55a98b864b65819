/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
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
#include "tools/replay/live/neigh.h"

#define ETH_LEN     14
#define ASK_TRIES   10
#define ASK_WAIT_MS 300
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

static void text_of(const struct rwy_ip *ip, char out[INET6_ADDRSTRLEN])
{
	const bool v4 = rwy_ip_is4(ip);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? ip->b + 12 : ip->b, out, INET6_ADDRSTRLEN);
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

static bool hop_find(struct rp_lan *l, const struct rwy_ip *hop)
{
	uint8_t buf[2048];
	uint32_t n;

	for (unsigned i = 0; i < ASK_TRIES; i++) {
		struct pollfd p = {.fd = l->fd, .events = POLLIN};

		rp_neigh_ask(l, hop);
		while (poll(&p, 1, ASK_WAIT_MS) > 0)
			while ((n = frame(l, buf, sizeof(buf))))
				if (rp_neigh_take(l, buf, n, hop))
					return true;
	}
	return false;
}

/* --- the socket ----------------------------------------------------------------------------- */

static bool is_link_local(const struct rwy_ip *ip)
{
	return ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

static struct rwy_ip ip_of(const struct sockaddr *sa)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	struct rwy_ip ip;

	if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		return rwy_ip_from4((const uint8_t *)&in.sin_addr);
	}
	memcpy(&in6, sa, sizeof(in6));
	memcpy(ip.b, &in6.sin6_addr, 16);
	return ip;
}

/* The first address of the interface that is of the peer's family, and as local as that: l->ip. */
static bool first_address(struct rp_lan *l)
{
	const int family = rwy_ip_is4(&l->peer) ? AF_INET : AF_INET6;
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != family || strcmp(a->ifa_name, l->name) != 0)
			continue;
		l->ip = ip_of(a->ifa_addr);
		found = is_link_local(&l->ip) == is_link_local(&l->peer);
	}
	freeifaddrs(all);
	return found;
}

/* Finds index, MAC address and MTU of the interface. */
static int describe(struct rp_lan *l, const char *interface, const struct rwy_ip *own, struct rp_error *err)
{
	struct ifreq r = {0};

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
	if (own)
		l->ip = *own;
	else if (!first_address(l))
		return rp_fail(err, "%s: has no %s address: name one with --address", interface,
		    rwy_ip_is4(&l->peer) ? "IPv4" : "IPv6");
	if (rwy_ip_is4(&l->ip) != rwy_ip_is4(&l->peer))
		return rp_fail(err, "%s: --address and --to are of two families", interface);
	return 0;
}

static int bind_to(struct rp_lan *l, struct rp_error *err)
{
	struct sockaddr_ll sa = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq groups = {.mr_type = PACKET_MR_ALLMULTI};
	int buf = SOCKET_BUF;

	sa.sll_ifindex = groups.mr_ifindex = (int)if_nametoindex(l->name);
	if (bind(l->fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		return rp_fail(err, "%s: %s", l->name, strerror(errno));
	/* The kernel did not join the group of an address that it does not have. */
	(void)setsockopt(l->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &groups, sizeof(groups));
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
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_UDP_PORT)};
	const bool v4 = rwy_ip_is4(&l->ip);
	char text[INET6_ADDRSTRLEN];
	int rc;

	memcpy(&in.sin_addr, l->ip.b + 12, 4);
	memcpy(&in6.sin6_addr, l->ip.b, 16);
	in6.sin6_scope_id = is_link_local(&l->ip) ? if_nametoindex(l->name) : 0;
	text_of(&l->ip, text);
	l->sink = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (l->sink < 0)
		return rp_fail(err, "UDP: %s", strerror(errno));
	(void)setsockopt(l->sink, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog));
	rc = v4 ? bind(l->sink, (struct sockaddr *)&in, sizeof(in))
	        : bind(l->sink, (struct sockaddr *)&in6, sizeof(in6));
	if (rc == 0) {
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
	char text[INET6_ADDRSTRLEN];
	struct rwy_ip hop;

	memset(l, 0, sizeof(*l));
	l->sink = -1;
	l->peer = *peer;
	l->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->fd < 0)
		return rp_fail(err, "no raw socket: %s%s", strerror(errno),
		    errno == EPERM ? " (it needs root, or CAP_NET_RAW)" : "");
	if (describe(l, interface, own, err) != 0 || bind_to(l, err) != 0 || hold_port(l, err) != 0) {
		rp_lan_close(l);
		return -1;
	}
	hop = via ? *via : rp_route(l->name, peer);
	if (rwy_ip_is4(&hop) == rwy_ip_is4(&l->ip) && hop_find(l, &hop))
		return 0;
	text_of(&hop, text);
	rp_lan_close(l);
	return rp_fail(err, "%s: %s does not answer %s; --via names another router", l->name, text,
	    rwy_ip_is4(peer) ? "ARP" : "neighbour solicitations");
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
	rwy_put16(f + 12, rwy_ip_is4(&l->ip) ? RWY_ETHER_IP4 : RWY_ETHER_IP6);
	memcpy(f + ETH_LEN, ip, len);
	l->stats.sent++;
	if (send(l->fd, f, ETH_LEN + len, 0) < 0)
		l->stats.not_sent++; /* as a loss: it is sent again */
}

static bool is_ours(const struct rp_lan *l, const uint8_t *f, uint32_t len)
{
	const uint8_t *ip = f + ETH_LEN;

	if (rwy_ip_is4(&l->ip))
		return rwy_get16(f + 12) == RWY_ETHER_IP4 && len >= ETH_LEN + 20 &&
		       !memcmp(ip + 16, l->ip.b + 12, 4);
	return rwy_get16(f + 12) == RWY_ETHER_IP6 && len >= ETH_LEN + 40 && !memcmp(ip + 24, l->ip.b, 16);
}

uint32_t rp_lan_recv(struct rp_lan *l, uint8_t *buf, uint32_t size, uint8_t **ip)
{
	uint32_t n;

	while ((n = frame(l, buf, size))) {
		rp_neigh_take(l, buf, n, NULL);
		if (!is_ours(l, buf, n))
			continue;
		l->stats.received++;
		*ip = buf + ETH_LEN;
		return n - ETH_LEN;
	}
	return 0;
}
