/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/fast.h"

#include <stddef.h>

#include "proxy/edge_int.h"
#include "proxy/rewrite.h"
#include "roce/wire.h"
#include "rwy/checksum.h"

enum { IP4_ID = 4, IP4_SRC = 12, IP4_DST = 16, IP6_NEXT = 6, IP6_SRC = 8, IP6_DST = 24 };
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

/* Of an IPv4 header: no fragment, and UDP. */
static inline bool is_whole_udp(const uint8_t *ip)
{
	/* identification, fragment, time to live, protocol, checksum */
	const uint64_t which = (uint64_t)(ROCE_IP4_MF | ROCE_IP4_OFFMASK) << 32 | 0xff0000;

	return (rwy_get64(ip + IP4_ID) & which) == (uint64_t)ROCE_IPPROTO_UDP << 16;
}

/* The UDP header of a datagram of this length to RoCE's port, without a checksum. */
static inline bool is_roce(const uint8_t *udp, uint32_t len)
{
	return (rwy_get64(udp) & 0xffffffffffff) == ((uint64_t)ROCE_UDP_PORT << 32 | (uint64_t)len << 16);
}

/* Whether it is RC over UDP without IP options and UDP checksum; then *v is filled. */
static inline bool view(uint8_t *ip, uint32_t len, struct view *v)
{
	uint32_t hlen;

	if (len < IP6_LEN + UDP_LEN)
		return false;
	if (ip[0] == 0x45 && is_whole_udp(ip)) {
		hlen = IP4_LEN;
		v->len = rwy_get16(ip + 2);
		v->src = rwy_ip_from4(ip + IP4_SRC);
		v->dst = rwy_ip_from4(ip + IP4_DST);
	} else if (ip[0] >> 4 == 6 && ip[IP6_NEXT] == ROCE_IPPROTO_UDP) {
		hlen = IP6_LEN;
		v->len = IP6_LEN + rwy_get16(ip + 4);
		memcpy(v->src.b, ip + IP6_SRC, 16);
		memcpy(v->dst.b, ip + IP6_DST, 16);
		if (rwy_ip_is4(&v->src)) /* an IPv4 link's: its patches are of IPv4 packets */
			return false;
	} else {
		return false;
	}
	v->bth = ip + hlen + UDP_LEN;
	if (v->len > len || v->len > UINT16_MAX || v->len < hlen + UDP_LEN + ROCE_BTH_LEN + ROCE_ICRC_LEN ||
	    !is_roce(ip + hlen, v->len - hlen) || v->bth[0] >> 5 != ROCE_RC)
		return false;
	v->ip = ip;
	v->is6 = hlen == IP6_LEN;
	v->dqpn = rwy_get24(((const struct roce_bth *)v->bth)->dqpn);
	return true;
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
	uint8_t sum[2];
	struct roce_pkt pkt;

	roce_parse_offsets(v->ip, &pkt);
	if (in) {
		proxy_rewrite_dst(&pkt, &l->remote);
		proxy_rewrite_dqpn(&pkt, l->rqpn);
	} else {
		proxy_rewrite_src(&pkt, &l->relay);
	}
	/* RFC 1624, equation 3 */
	rwy_put16(sum, rwy_csum_fold((uint64_t)(2 * 0xffff - sum_of(was)) + sum_of(is)));
	*p = (struct proxy_patch){.len = (uint16_t)v->len, .icrc = before ^ icrc_of(v)};
	memcpy(&p->sum, sum, sizeof(sum));
}

/*
 * Fields are written as the words that the engine reads right afterwards: a load that spans a
 * recent store has to wait for it.
 */
static inline void icrc_add(uint8_t *ip, uint32_t len, uint32_t icrc)
{
	uint32_t crc;

	memcpy(&crc, ip + len - ROCE_ICRC_LEN, 4);
	crc ^= icrc;
	memcpy(ip + len - ROCE_ICRC_LEN, &crc, 4);
}

/* An IPv4 address at `at`, and what it does to both checksums. */
static inline void rewrite4(
    uint8_t *ip, uint32_t len, unsigned at, const struct rwy_ip *a, const struct proxy_patch *p)
{
	uint32_t sum, word;

	icrc_add(ip, len, p->icrc);
	memcpy(ip + at, a->b + 12, 4);
	memcpy(&word, ip + RWY_IP4_CSUM - 2, 4);
	sum = (~word >> 16) + p->sum; /* in the order of memory: RFC 1071, 2 (B) */
	sum = ~(sum + (sum >> 16));
	word = (word & 0xffff) | sum << 16;
	memcpy(ip + RWY_IP4_CSUM - 2, &word, 4);
}

static inline void rewrite(
    const struct view *v, unsigned at4, unsigned at6, const struct rwy_ip *a, const struct proxy_patch *p)
{
	if (!v->is6) {
		rewrite4(v->ip, v->len, at4, a, p);
		return;
	}
	icrc_add(v->ip, v->len, p->icrc);
	memcpy(v->ip + at6, a->b, 16);
}

/* The destination QPN, and the byte before it as it is. */
static inline void put_dqpn(uint8_t *bth, uint32_t qpn)
{
	uint8_t *at = ((struct roce_bth *)bth)->dqpn - 1;
	uint32_t word;

	memcpy(&word, at, 4);
	word = (word & 0xff) | (__builtin_bswap32(qpn) & 0xffffff00);
	memcpy(at, &word, 4);
}

/*
 * Returns the patch of an IPv4 packet that has these addresses and this QPN, and a length that the
 * link knows; else NULL. A packet of this length was checked before, so five words hold everything
 * that view() and the search for the link would check.
 */
static inline const struct proxy_patch *known4(struct proxy_patch patch[PROXY_PATCHES],
    const struct rwy_ip *src, const struct rwy_ip *dst, uint32_t qpn, const uint8_t *ip, uint32_t len)
{
	const uint64_t n = rwy_get16(ip + 2);
	const struct proxy_patch *p = patch_of(patch, (uint32_t)n);
	/* version, header length, total length, fragment */
	bool same = (rwy_get64(ip) & 0xff00ffff00003fff) == ((uint64_t)0x45 << 56 | n << 32);

	static_assert(ROCE_RC == 0, "the transport is 0");
	/* protocol and source; destination and UDP port; UDP length, checksum and transport; QPN */
	same = same && (rwy_get64(ip + 8) & 0xff0000ffffffff) ==
	                   ((uint64_t)ROCE_IPPROTO_UDP << 48 | rwy_get32(src->b + 12));
	same = same && (rwy_get64(ip + 16) & 0xffffffff0000ffff) ==
	                   ((uint64_t)rwy_get32(dst->b + 12) << 32 | ROCE_UDP_PORT);
	same = same && (rwy_get64(ip + 24) & 0xffffffffe0000000) == (n - IP4_LEN) << 48;
	same = same && (rwy_get32(ip + IP4_LEN + UDP_LEN + 4) & 0xffffff) == qpn;
	return same && n && p->len == n && n <= len && rwy_ip_is4(src) ? p : NULL;
}

static __attribute__((noinline)) const struct proxy_link *search_in(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, rwy_time now)
{
	struct proxy_patch *p;
	struct proxy_link *l;
	struct view v;

	if (!view(ip, len, &v))
		return NULL;
	l = proxy_map_in(e->map, &v.dst, v.dqpn);
	if (!l || !proxy_is_open(l) || !rwy_ip_eq(&l->local, &v.src))
		return NULL;
	p = patch_of(l->patch_in, v.len);
	if (p->len == v.len) {
		rewrite(&v, IP4_DST, IP6_DST, &l->remote, p);
		put_dqpn(v.bth, l->rqpn);
	} else {
		rewrite_first(&v, l, true, p);
	}
	proxy_count_in(e, l, v.len, now);
	return l;
}

const struct proxy_link *proxy_fast_in(struct proxy_edge *e, uint8_t *ip, uint32_t len, rwy_time now)
{
	const struct proxy_patch *p;
	struct proxy_link *l;
	uint32_t dqpn, i;

	if (len < IP6_LEN + UDP_LEN)
		return NULL;
	dqpn = rwy_get24(ip + IP4_LEN + UDP_LEN + offsetof(struct roce_bth, dqpn));
	i = e->view.in[dqpn & e->view.in_mask];
	if (i >= e->view.links_max)
		return search_in(e, ip, len, now);
	l = &e->view.links[i];
	p = known4(l->patch_in, &l->local, &l->relay, l->alias, ip, len);
	if (!p || !proxy_is_open(l))
		return search_in(e, ip, len, now);
	rewrite4(ip, p->len, IP4_DST, &l->remote, p);
	put_dqpn(ip + IP4_LEN + UDP_LEN, l->rqpn);
	proxy_count_in(e, l, p->len, now);
	return l;
}

static __attribute__((noinline)) const struct proxy_link *search_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, rwy_time now)
{
	struct proxy_patch *p;
	struct proxy_link *l;
	struct view v;

	if (!view(ip, len, &v))
		return NULL;
	l = hint ? proxy_map_out_hint(e->map, hint, &v.src, &v.dst, v.dqpn)
	         : proxy_map_out(e->map, &v.src, &v.dst, v.dqpn);
	if (!l || !proxy_is_open(l))
		return NULL;
	p = patch_of(l->patch_out, v.len);
	if (p->len == v.len)
		rewrite(&v, IP4_SRC, IP6_SRC, &l->relay, p);
	else
		rewrite_first(&v, l, false, p);
	proxy_count_out(e, l, v.len, now);
	return l;
}

const struct proxy_link *proxy_fast_out(
    struct proxy_edge *e, uint8_t *ip, uint32_t len, uint64_t *hint, rwy_time now)
{
	const struct proxy_patch *p;
	struct proxy_link *l;

	if (!hint || *hint - 1 >= e->view.links_max || len < IP6_LEN + UDP_LEN)
		return search_out(e, ip, len, hint, now);
	l = &e->view.links[*hint - 1];
	p = known4(l->patch_out, &l->remote, &l->local, l->lqpn, ip, len);
	/* A closed link's queue pair may be that of a newer one. */
	if (!p || !l->out_hashed || !proxy_is_open(l) || l->state == PROXY_CLOSED)
		return search_out(e, ip, len, hint, now);
	rewrite4(ip, p->len, IP4_SRC, &l->relay, p);
	proxy_count_out(e, l, p->len, now);
	return l;
}
