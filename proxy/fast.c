/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/fast.h"

#include "proxy/rewrite.h"
#include "roce/wire.h"
#include "rwy/checksum.h"

enum { IP4_FRAG = 6, IP4_PROTO = 9, IP4_SRC = 12, IP4_DST = 16, IP6_NEXT = 6, IP6_SRC = 8, IP6_DST = 24 };
enum {
	IP4_LEN = sizeof(struct roce_ip4),
	IP6_LEN = sizeof(struct roce_ip6),
	UDP_LEN = sizeof(struct roce_udp)
};

/* The places of an RC packet's fields. */
struct view {
	uint8_t *ip, *bth;
	uint32_t len; /* of the IP packet */
	struct rwy_ip src, dst;
	uint32_t dqpn;
	bool is6;
};

/* Whether it is RC over UDP without IP options and UDP checksum; then *v is filled. */
static inline bool view(uint8_t *ip, uint32_t len, struct view *v)
{
	uint8_t *udp;
	uint32_t hlen;

	if (len < IP6_LEN + UDP_LEN)
		return false;
	if (ip[0] == 0x45) {
		hlen = IP4_LEN;
		v->len = rwy_get16(ip + 2);
		if (ip[IP4_PROTO] != ROCE_IPPROTO_UDP ||
		    rwy_get16(ip + IP4_FRAG) & (ROCE_IP4_MF | ROCE_IP4_OFFMASK))
			return false;
		v->src = rwy_ip_from4(ip + IP4_SRC);
		v->dst = rwy_ip_from4(ip + IP4_DST);
	} else if (ip[0] >> 4 == 6 && ip[IP6_NEXT] == ROCE_IPPROTO_UDP) {
		hlen = IP6_LEN;
		v->len = IP6_LEN + rwy_get16(ip + 4);
		memcpy(v->src.b, ip + IP6_SRC, 16);
		memcpy(v->dst.b, ip + IP6_DST, 16);
	} else {
		return false;
	}
	udp = ip + hlen;
	v->bth = udp + UDP_LEN;
	if (v->len > len || v->len > UINT16_MAX || v->len < hlen + UDP_LEN + ROCE_BTH_LEN + ROCE_ICRC_LEN ||
	    rwy_get16(udp + 2) != ROCE_UDP_PORT || rwy_get16(udp + 4) != v->len - hlen ||
	    rwy_get16(udp + 6) || v->bth[0] >> 5 != ROCE_RC)
		return false;
	v->ip = ip;
	v->is6 = hlen == IP6_LEN;
	v->dqpn = rwy_get24(((const struct roce_bth *)v->bth)->dqpn);
	return true;
}

static inline bool is_open(const struct proxy_link *l)
{
	return l->rqpn && l->lqpn && l->state != PROXY_REQ_SEEN;
}

static inline struct proxy_patch *patch_of(struct proxy_patch p[PROXY_PATCHES], uint32_t len)
{
	return &p[(len >> 4 ^ len >> 2) & (PROXY_PATCHES - 1)];
}

static inline uint32_t icrc_of(const struct view *v)
{
	uint32_t crc;

	memcpy(&crc, v->ip + v->len - ROCE_ICRC_LEN, 4);
	return crc;
}

/* The sum of the words of an IPv4 address. */
static uint32_t sum_of(const struct rwy_ip *a)
{
	return (uint32_t)rwy_get16(a->b + 12) + rwy_get16(a->b + 14);
}

/* Rewrites it as the packets of proxy/edge.h, and remembers what became of its checksums. */
static __attribute__((noinline)) void rewrite_first(
    const struct view *v, const struct proxy_link *l, bool in, struct proxy_patch *p)
{
	const struct rwy_ip *was = in ? &l->relay : &l->remote, *is = in ? &l->remote : &l->relay;
	uint32_t before = icrc_of(v);
	struct roce_pkt pkt;

	roce_parse_offsets(v->ip, &pkt);
	if (in) {
		proxy_rewrite_dst(&pkt, &l->remote);
		proxy_rewrite_dqpn(&pkt, l->rqpn);
	} else {
		proxy_rewrite_src(&pkt, &l->relay);
	}
	/* RFC 1624, equation 3 */
	*p = (struct proxy_patch){(uint16_t)v->len,
	    rwy_csum_fold((uint64_t)(2 * 0xffff - sum_of(was)) + sum_of(is)), before ^ icrc_of(v)};
}

/*
 * Fields are written as the words that the engine reads right afterwards: a load that spans a
 * recent store has to wait for it.
 */
static inline void rewrite(
    const struct view *v, unsigned at4, unsigned at6, const struct rwy_ip *a, const struct proxy_patch *p)
{
	uint32_t crc = icrc_of(v) ^ p->icrc, sum, word;

	memcpy(v->ip + v->len - ROCE_ICRC_LEN, &crc, 4);
	if (v->is6) {
		memcpy(v->ip + at6, a->b, 16);
		return;
	}
	memcpy(v->ip + at4, a->b + 12, 4);
	memcpy(&word, v->ip + RWY_IP4_CSUM - 2, 4);
	sum = (uint32_t)(uint16_t)~__builtin_bswap16((uint16_t)(word >> 16)) + p->sum;
	sum = (uint16_t) ~(sum + (sum >> 16));
	word = (word & 0xffff) | (uint32_t)__builtin_bswap16((uint16_t)sum) << 16;
	memcpy(v->ip + RWY_IP4_CSUM - 2, &word, 4);
}

/* The destination QPN, and the byte before it as it is. */
static inline void put_dqpn(const struct view *v, uint32_t qpn)
{
	uint8_t *at = ((struct roce_bth *)v->bth)->dqpn - 1;
	uint32_t word;

	memcpy(&word, at, 4);
	word = (word & 0xff) | (__builtin_bswap32(qpn) & 0xffffff00);
	memcpy(at, &word, 4);
}

const struct proxy_link *proxy_fast_in(struct proxy_edge *e, uint8_t *ip, uint32_t len, rwy_time now)
{
	struct proxy_patch *p;
	struct proxy_link *l;
	struct view v;

	if (!view(ip, len, &v))
		return NULL;
	l = proxy_map_in(e->map, &v.dst, v.dqpn);
	if (!l || !is_open(l) || !rwy_ip_eq(&l->local, &v.src))
		return NULL;
	p = patch_of(l->patch_in, v.len);
	if (p->len == v.len) {
		rewrite(&v, IP4_DST, IP6_DST, &l->remote, p);
		put_dqpn(&v, l->rqpn);
	} else {
		rewrite_first(&v, l, true, p);
	}
	l->touched = now;
	l->in_packets++;
	l->in_bytes += v.len;
	e->c.relay_in_packets++;
	e->c.relay_in_bytes += v.len;
	return l;
}

const struct proxy_link *proxy_fast_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, rwy_time now)
{
	struct proxy_patch *p;
	struct proxy_link *l;
	struct view v;

	if (!view(ip, len, &v))
		return NULL;
	l = hint ? proxy_map_out_hint(e->map, hint, &v.src, &v.dst, v.dqpn)
	         : proxy_map_out(e->map, &v.src, &v.dst, v.dqpn);
	if (!l || !is_open(l))
		return NULL;
	p = patch_of(l->patch_out, v.len);
	if (p->len == v.len)
		rewrite(&v, IP4_SRC, IP6_SRC, &l->relay, p);
	else
		rewrite_first(&v, l, false, p);
	l->touched = now;
	l->out_packets++;
	l->out_bytes += v.len;
	e->c.relay_out_packets++;
	e->c.relay_out_bytes += v.len;
	return l;
}
