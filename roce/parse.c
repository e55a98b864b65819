/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of roce/parse.h: IP, UDP, BTH, in that order, each length checked before use. It
 * checks neither the ICRC nor what depends on the connection (PSN, P_Key, path MTU).
 */
#include "roce/parse.h"

#include "roce/wire.h"

#define IP6_HOPOPTS  0
#define IP6_ROUTING  43
#define IP6_FRAGMENT 44
#define IP6_DSTOPTS  60
#define IP6_MAX_EXT  8

#define MAX_PAYLOAD 4096 /* the largest path MTU (IBA 9.2, "PMTU") */
#define MAX_HEADERS 64   /* of an unknown operation: more than any known one has behind the BTH */

/* Ones' complement sum of an IPv4 header of `words` 32-bit words; 0xffff when its checksum is right
 * (RFC 791 3.1). */
static uint32_t ip4_sum(const uint8_t *p, size_t words)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < words; i++) {
		uint32_t w;

		memcpy(&w, p + 4 * i, 4);
		sum += w;
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)((sum & 0xffff) + (sum >> 16));
}

static inline bool dport_is_roce(const uint8_t *udp)
{
	return rwy_get16(udp + 2) == ROCE_UDP_PORT;
}

/*
 * Parses IPv4 up to UDP. On ROCE_PARSE_OK, pkt->ip_hlen and pkt->len are set and the rest of the
 * packet is UDP. Only a first fragment with port 4791 counts as RoCEv2: other fragments are other
 * IP traffic.
 */
static enum roce_parse_reason parse_ip4(uint8_t *ip, uint32_t len, struct roce_pkt *pkt)
{
	const struct roce_ip4 *h = (const struct roce_ip4 *)ip;
	uint32_t hlen, tot;
	uint16_t frag;

	if (len < sizeof(*h))
		return ROCE_PARSE_TRUNCATED;
	hlen = (h->ver_ihl & 0xfu) * 4;
	tot = rwy_get16(h->tot_len);
	if (hlen < sizeof(*h) || tot < hlen)
		return ROCE_PARSE_BAD_IP;
	if (tot > len)
		return ROCE_PARSE_TRUNCATED;
	if ((hlen == sizeof(*h) ? ip4_sum(ip, 5) : ip4_sum(ip, hlen / 4)) != 0xffff)
		return ROCE_PARSE_BAD_IP;

	pkt->src = rwy_ip_from4(h->src);
	pkt->dst = rwy_ip_from4(h->dst);
	pkt->is6 = false;
	pkt->ip_hlen = (uint8_t)hlen;
	pkt->ecn = h->tos & 3;
	pkt->len = tot;
	if (h->proto != ROCE_IPPROTO_UDP)
		return ROCE_PARSE_NOT_ROCE;
	frag = rwy_get16(h->frag);
	if (frag & (ROCE_IP4_MF | ROCE_IP4_OFFMASK)) {
		bool first = (frag & ROCE_IP4_OFFMASK) == 0;

		return first && tot >= hlen + 4 && dport_is_roce(ip + hlen) ? ROCE_PARSE_FRAGMENT
		                                                            : ROCE_PARSE_NOT_ROCE;
	}
	return ROCE_PARSE_OK;
}

/*
 * Walks IPv6 extension headers. RoCEv2 has none (IBA A17.3.2: Next Header is UDP), so nothing
 * behind them counts as RoCEv2; but UDP port 4791 behind them must not pass as other traffic around
 * the session check either, and is BAD_IP. So is a chain that does not fit its packet, and a first
 * fragment that leaves the UDP header to the next one (RFC 7112).
 */
static enum roce_parse_reason parse_ip6_ext(const uint8_t *ip, uint32_t tot)
{
	uint32_t at = sizeof(struct roce_ip6);
	uint8_t next = ((const struct roce_ip6 *)ip)->next;
	enum roce_parse_reason found = ROCE_PARSE_BAD_IP;

	for (unsigned i = 0; i <= IP6_MAX_EXT; i++) {
		if (next == ROCE_IPPROTO_UDP && found == ROCE_PARSE_FRAGMENT && tot < at + 8)
			return ROCE_PARSE_BAD_IP;
		if (next == ROCE_IPPROTO_UDP)
			return tot >= at + 4 && dport_is_roce(ip + at) ? found : ROCE_PARSE_NOT_ROCE;
		if (next != IP6_HOPOPTS && next != IP6_ROUTING && next != IP6_FRAGMENT && next != IP6_DSTOPTS)
			return ROCE_PARSE_NOT_ROCE;
		if (tot < at + 8)
			return ROCE_PARSE_BAD_IP;
		if (next == IP6_FRAGMENT) {
			uint16_t off_flags = rwy_get16(ip + at + 2);

			if (off_flags & 0xfff8) /* a later fragment has no UDP header */
				return ROCE_PARSE_NOT_ROCE;
			found = ROCE_PARSE_FRAGMENT;
			next = ip[at];
			at += 8;
		} else {
			next = ip[at];
			at += 8u + 8u * ip[at + 1];
		}
		if (at > tot)
			return ROCE_PARSE_BAD_IP;
	}
	return ROCE_PARSE_BAD_IP;
}

static enum roce_parse_reason parse_ip6(uint8_t *ip, uint32_t len, struct roce_pkt *pkt)
{
	const struct roce_ip6 *h = (const struct roce_ip6 *)ip;
	uint32_t tot;

	if (len < sizeof(*h))
		return ROCE_PARSE_TRUNCATED;
	tot = (uint32_t)sizeof(*h) + rwy_get16(h->plen);
	if (tot > len)
		return ROCE_PARSE_TRUNCATED;

	memcpy(pkt->src.b, h->src, 16);
	memcpy(pkt->dst.b, h->dst, 16);
	pkt->is6 = true;
	pkt->ip_hlen = sizeof(*h);
	pkt->ecn = roce_ip6_tclass(h) & 3;
	pkt->len = tot;
	if (rwy_ip_is4(&pkt->src) || rwy_ip_is4(&pkt->dst))
		return ROCE_PARSE_BAD_IP; /* never on the wire (RFC 4291 2.5.5.2) */
	return h->next == ROCE_IPPROTO_UDP ? ROCE_PARSE_OK : parse_ip6_ext(ip, tot);
}

/*
 * Whether the bytes behind the extension headers, `room` bytes of payload and pad, fit the opcode
 * (IBA 9.7.4.1.6 and C9-92, as far as possible without the path MTU).
 */
static bool payload_fits(const struct roce_opinfo *info, uint32_t room, uint32_t pad)
{
	if (room & 3 || pad > room)
		return false;
	if (!(info->flags & ROCE_F_PAYLOAD))
		return room == 0;
	if (room > MAX_PAYLOAD)
		return false;
	if (info->pos == ROCE_POS_ONLY)
		return true;
	if (room == pad) /* only an ONLY packet may be empty */
		return false;
	return pad == 0 || info->pos == ROCE_POS_LAST;
}

enum roce_parse_reason roce_parse(uint8_t *ip, uint32_t len, struct roce_pkt *pkt)
{
	const struct roce_opinfo *info;
	const struct roce_bth *bth;
	enum roce_parse_reason r;
	uint32_t udp_len, room;
	uint8_t *udp;

	if (len < 1)
		return ROCE_PARSE_TRUNCATED;
	if (ip[0] >> 4 == 4)
		r = parse_ip4(ip, len, pkt);
	else if (ip[0] >> 4 == 6)
		r = parse_ip6(ip, len, pkt);
	else
		r = ROCE_PARSE_BAD_IP;
	if (r != ROCE_PARSE_OK)
		return r;

	udp = ip + pkt->ip_hlen;
	udp_len = pkt->len - pkt->ip_hlen;
	if (udp_len < sizeof(struct roce_udp))
		return ROCE_PARSE_BAD_UDP;
	if (!dport_is_roce(udp))
		return ROCE_PARSE_NOT_ROCE;
	if (rwy_get16(udp + 4) != udp_len)
		return ROCE_PARSE_BAD_UDP;
	if (udp_len < sizeof(struct roce_udp) + ROCE_BTH_LEN + ROCE_ICRC_LEN)
		return ROCE_PARSE_BAD_LENGTH;

	bth = (const struct roce_bth *)(udp + sizeof(struct roce_udp));
	if (bth->flags & ROCE_BTH_TVER)
		return ROCE_PARSE_BAD_BTH;
	info = roce_op(bth->opcode);
	room = udp_len - (uint32_t)sizeof(struct roce_udp) - ROCE_BTH_LEN - ROCE_ICRC_LEN;
	pkt->pad = roce_bth_pad(bth);
	if (roce_op_is_valid(info)) {
		if (room < info->ext_len)
			return ROCE_PARSE_BAD_LENGTH;
		room -= info->ext_len;
		if (!payload_fits(info, room, pkt->pad))
			return ROCE_PARSE_BAD_LENGTH;
	} else if (room > MAX_PAYLOAD + MAX_HEADERS) {
		return ROCE_PARSE_BAD_LENGTH;
	} else {
		pkt->pad = 0;
	}

	pkt->ip = ip;
	pkt->bth = udp + sizeof(struct roce_udp);
	pkt->ext = pkt->bth + ROCE_BTH_LEN;
	pkt->payload = pkt->ext + info->ext_len;
	pkt->icrc = pkt->payload + room;
	pkt->info = info;
	pkt->payload_len = room - pkt->pad;
	pkt->dqpn = rwy_get24(bth->dqpn);
	pkt->psn = rwy_get24(bth->psn);
	pkt->pkey = rwy_get16(bth->pkey);
	pkt->sport = rwy_get16(udp);
	pkt->opcode = bth->opcode;
	pkt->ack_req = bth->areq & ROCE_BTH_ACKREQ;
	pkt->solicited = bth->flags & ROCE_BTH_SE;
	pkt->migreq = bth->flags & ROCE_BTH_MIGREQ;
	pkt->fecn = bth->fb & ROCE_BTH_FECN;
	pkt->becn = bth->fb & ROCE_BTH_BECN;
	return roce_op_is_valid(info) ? ROCE_PARSE_OK : ROCE_PARSE_UNKNOWN_OPCODE;
}

void roce_parse_offsets(uint8_t *ip, struct roce_pkt *pkt)
{
	uint8_t *udp;

	pkt->ip = ip;
	pkt->is6 = ip[0] >> 4 == 6;
	pkt->ip_hlen = pkt->is6 ? sizeof(struct roce_ip6) : (uint8_t)((ip[0] & 0xf) * 4);
	udp = ip + pkt->ip_hlen;
	pkt->len = pkt->ip_hlen + (uint32_t)rwy_get16(udp + 4);
	pkt->bth = udp + sizeof(struct roce_udp);
	pkt->ext = pkt->bth + ROCE_BTH_LEN;
	pkt->icrc = ip + pkt->len - ROCE_ICRC_LEN;
}

/* Finds the RETH: RD and XRC requests have headers in front of it. */
static const struct roce_reth *reth(const struct roce_pkt *p)
{
	uint32_t off = 0;

	if (p->info->flags & (ROCE_F_RDETH | ROCE_F_XRCETH))
		off = p->info->flags & ROCE_F_RDETH ? sizeof(struct roce_rdeth) + sizeof(struct roce_deth)
		                                    : sizeof(struct roce_xrceth);
	return (const struct roce_reth *)(p->ext + off);
}

/* Returns the AETH: only RD responses have a header before it. */
static const struct roce_aeth *aeth(const struct roce_pkt *p)
{
	uint32_t off = p->info->flags & ROCE_F_RDETH ? sizeof(struct roce_rdeth) : 0;

	return (const struct roce_aeth *)(p->ext + off);
}

uint64_t roce_reth_va(const struct roce_pkt *p)
{
	return rwy_get64(reth(p)->va);
}

uint32_t roce_reth_rkey(const struct roce_pkt *p)
{
	return rwy_get32(reth(p)->rkey);
}

uint32_t roce_reth_len(const struct roce_pkt *p)
{
	return rwy_get32(reth(p)->len);
}

uint8_t roce_aeth_syndrome(const struct roce_pkt *p)
{
	return aeth(p)->syndrome;
}

roce_msn roce_aeth_msn(const struct roce_pkt *p)
{
	return rwy_get24(aeth(p)->msn);
}

uint64_t roce_atomic_original(const struct roce_pkt *p)
{
	const uint8_t *h = (const uint8_t *)(aeth(p) + 1);

	return rwy_get64(((const struct roce_atomicacketh *)h)->orig);
}
