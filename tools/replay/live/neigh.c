/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/replay/live/neigh.h"

#include <linux/if_arp.h>
#include <string.h>
#include <sys/socket.h>

#include "rwy/checksum.h"
#include "rwy/endian.h"
#include "rwy/ether.h"

#define ETH_LEN    14
#define ARP_LEN    28
#define IP6_LEN    40
#define ND_LEN     24 /* without options */
#define ND_OPT     8
#define ICMP6      58
#define ND_HOPS    255
#define SOLICIT    135
#define ADVERTISE  136
#define SOLICITED  0x60 /* an answer, and it replaces what was known */
#define UNASKED    0x20
#define OPT_SOURCE 1
#define OPT_TARGET 2

/* --- ARP -------------------------------------------------------------------------------------- */

static void arp_send(const struct rp_lan *l, uint16_t op, const uint8_t to_mac[6], const uint8_t to_ip[4])
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
	memcpy(a + 14, l->ip.b + 12, 4);
	if (op == ARPOP_REPLY)
		memcpy(a + 18, to_mac, 6);
	memcpy(a + 24, to_ip, 4);
	(void)!send(l->fd, f, sizeof(f), 0);
}

static bool arp_take(struct rp_lan *l, const uint8_t *a, const struct rwy_ip *hop)
{
	if (rwy_get16(a) != ARPHRD_ETHER || rwy_get16(a + 2) != RWY_ETHER_IP4 || a[4] != 6 || a[5] != 4)
		return false;
	if (rwy_get16(a + 6) == ARPOP_REQUEST && !l->kernels && !memcmp(a + 24, l->ip.b + 12, 4))
		arp_send(l, ARPOP_REPLY, a + 8, a + 14);
	if (!hop || memcmp(a + 14, hop->b + 12, 4) != 0)
		return false;
	memcpy(l->next_hop, a + 8, 6);
	return true;
}

/* --- neighbour discovery ---------------------------------------------------------------------- */

static uint16_t icmp6_sum(const uint8_t *ip, uint32_t len)
{
	uint8_t pseudo[IP6_LEN + ND_LEN + ND_OPT] = {0};

	memcpy(pseudo, ip + 8, 32);
	rwy_put32(pseudo + 32, len);
	pseudo[39] = ICMP6;
	memcpy(pseudo + IP6_LEN, ip + IP6_LEN, len);
	return (uint16_t)~rwy_csum(pseudo, IP6_LEN + len);
}

/* type: SOLICIT or ADVERTISE. target: the address that is asked for, or answered. */
static void nd_send(const struct rp_lan *l, uint8_t type, const uint8_t to_mac[6], const uint8_t to[16],
    uint8_t flags, const uint8_t target[16])
{
	uint8_t f[ETH_LEN + IP6_LEN + ND_LEN + ND_OPT] = {0}, *ip = f + ETH_LEN, *nd = ip + IP6_LEN;

	memcpy(f, to_mac, 6);
	memcpy(f + 6, l->mac, 6);
	rwy_put16(f + 12, RWY_ETHER_IP6);
	ip[0] = 6 << 4;
	rwy_put16(ip + 4, ND_LEN + ND_OPT);
	ip[6] = ICMP6;
	ip[7] = ND_HOPS;
	memcpy(ip + 8, l->ip.b, 16);
	memcpy(ip + 24, to, 16);
	nd[0] = type;
	nd[4] = flags;
	memcpy(nd + 8, target, 16);
	nd[ND_LEN] = type == SOLICIT ? OPT_SOURCE : OPT_TARGET;
	nd[ND_LEN + 1] = 1;
	memcpy(nd + ND_LEN + 2, l->mac, 6);
	rwy_put16(nd + 2, icmp6_sum(ip, ND_LEN + ND_OPT));
	(void)!send(l->fd, f, sizeof(f), 0);
}

static void nd_ask(const struct rp_lan *l, const struct rwy_ip *hop)
{
	/* The group of all whose address ends so: RFC 4291 2.7.1, RFC 2464 7. */
	uint8_t group[16] = {0xff, 0x02, [11] = 1, [12] = 0xff}, mac[6] = {0x33, 0x33, 0xff};

	memcpy(group + 13, hop->b + 13, 3);
	memcpy(mac + 3, hop->b + 13, 3);
	nd_send(l, SOLICIT, mac, group, 0, hop->b);
}

static void nd_answer(const struct rp_lan *l, const uint8_t *frame, const uint8_t *ip)
{
	static const uint8_t everybody[16] = {0xff, 0x02, [15] = 1}, all[6] = {0x33, 0x33, [5] = 1}, none[16];

	/* A host without an address asks whether this one is taken (RFC 4862, 5.4). */
	if (!memcmp(ip + 8, none, 16))
		nd_send(l, ADVERTISE, all, everybody, UNASKED, l->ip.b);
	else
		nd_send(l, ADVERTISE, frame + 6, ip + 8, SOLICITED, l->ip.b);
}

/* The MAC address in an option of this type; NULL: there is none. */
static const uint8_t *nd_option(const uint8_t *nd, uint32_t len, uint8_t type)
{
	for (uint32_t at = ND_LEN; at + ND_OPT <= len && nd[at + 1]; at += nd[at + 1] * 8u)
		if (nd[at] == type)
			return nd + at + 2;
	return NULL;
}

static bool nd_take(struct rp_lan *l, const uint8_t *frame, uint32_t len, const struct rwy_ip *hop)
{
	const uint8_t *ip = frame + ETH_LEN, *nd = ip + IP6_LEN, *mac;
	uint32_t body = len - ETH_LEN - IP6_LEN;

	if (ip[6] != ICMP6 || ip[7] != ND_HOPS || body < ND_LEN)
		return false;
	if (rwy_get16(ip + 4) < body) /* padding of a short frame */
		body = rwy_get16(ip + 4);
	if (nd[0] == SOLICIT && !l->kernels && !memcmp(nd + 8, l->ip.b, 16))
		nd_answer(l, frame, ip);
	/* A solicitation has its sender's address, too: of two replays that begin, one may ask
	 * before the other one listens. */
	if (!hop || (nd[0] == ADVERTISE ? memcmp(nd + 8, hop->b, 16) != 0
	                                : nd[0] != SOLICIT || memcmp(ip + 8, hop->b, 16) != 0))
		return false;
	mac = nd_option(nd, body, nd[0] == ADVERTISE ? OPT_TARGET : OPT_SOURCE);
	memcpy(l->next_hop, mac ? mac : frame + 6, 6);
	return true;
}

void rp_neigh_ask(const struct rp_lan *l, const struct rwy_ip *hop)
{
	if (rwy_ip_is4(hop))
		arp_send(l, ARPOP_REQUEST, NULL, hop->b + 12);
	else
		nd_ask(l, hop);
}

bool rp_neigh_take(struct rp_lan *l, const uint8_t *frame, uint32_t len, const struct rwy_ip *hop)
{
	const uint16_t type = rwy_get16(frame + 12);
	const bool v4 = rwy_ip_is4(&l->ip);

	if (v4)
		return type == RWY_ETHER_ARP && len >= ETH_LEN + ARP_LEN && arp_take(l, frame + ETH_LEN, hop);
	return type == RWY_ETHER_IP6 && len >= ETH_LEN + IP6_LEN && nd_take(l, frame, len, hop);
}
