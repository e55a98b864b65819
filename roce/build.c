/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the few packets that a gateway makes itself. Each is a header skeleton, one extension
 * header and the ICRC. UDP checksum 0 (IBA A17.3.1 allows it for both families; the ICRC protects
 * more), DF set, identification 0 (RFC 6864).
 */
#include "roce/build.h"

#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/checksum.h"

static_assert(ROCE_BUILD_MAX >= sizeof(struct roce_ip6) + sizeof(struct roce_udp) + sizeof(struct roce_bth) +
                                    sizeof(struct roce_reth) + ROCE_ICRC_LEN,
    "ROCE_BUILD_MAX");

static void put_ip4(uint8_t *out, const struct roce_addr *a, uint32_t tot)
{
	struct roce_ip4 *h = (struct roce_ip4 *)out;
	uint32_t src = rwy_get32(a->src.b + 12), dst = rwy_get32(a->dst.b + 12);
	uint32_t vtos = 0x4500u | a->tos, hop = (uint32_t)a->ttl << 8 | ROCE_IPPROTO_UDP;

	rwy_put32(out, vtos << 16 | tot);
	rwy_put16(h->id, 0);
	rwy_put16(h->frag, ROCE_IP4_DF);
	rwy_put16(&h->ttl, (uint16_t)hop);
	/* From the values: the bytes would have to be read before they are in the cache. */
	rwy_put16(h->csum, (uint16_t)~rwy_csum_fold((uint64_t)vtos + tot + ROCE_IP4_DF + hop + src + dst));
	rwy_put32(h->src, src);
	rwy_put32(h->dst, dst);
}

static void put_ip6(uint8_t *out, const struct roce_addr *a, uint32_t tot)
{
	struct roce_ip6 *h = (struct roce_ip6 *)out;

	rwy_put32(h->vtf, 6u << 28 | (uint32_t)a->tos << 20);
	rwy_put16(h->plen, (uint16_t)(tot - sizeof(*h)));
	h->next = ROCE_IPPROTO_UDP;
	h->hlim = a->ttl;
	memcpy(h->src, a->src.b, 16);
	memcpy(h->dst, a->dst.b, 16);
}

/* The headers of a packet except its addresses. */
struct shape {
	uint8_t opcode;
	bool ack_req;
	bool becn;
	roce_psn psn;
	uint32_t body; /* bytes of payload and pad */
	uint8_t flags; /* of the BTH, besides MigReq: SE, pad count */
};

/*
 * Writes IP, UDP and BTH of a packet; the opcode gives the length of its extension headers. Fills
 * *pkt as far as the ICRC needs it; the caller writes pkt->ext and calls finish().
 */
static void start(uint8_t *out, const struct roce_addr *a, const struct shape *s, struct roce_pkt *pkt)
{
	const struct roce_opinfo *info = roce_op(s->opcode);
	bool is6 = !rwy_ip_is4(&a->dst);
	uint32_t hlen = is6 ? sizeof(struct roce_ip6) : sizeof(struct roce_ip4);
	uint32_t tot =
	    hlen + (uint32_t)sizeof(struct roce_udp) + ROCE_BTH_LEN + info->ext_len + s->body + ROCE_ICRC_LEN;
	struct roce_udp *udp = (struct roce_udp *)(out + hlen);
	struct roce_bth *bth = (struct roce_bth *)(out + hlen + sizeof(*udp));

	if (is6)
		put_ip6(out, a, tot);
	else
		put_ip4(out, a, tot);
	rwy_put16(udp->sport, a->sport);
	rwy_put16(udp->dport, ROCE_UDP_PORT);
	rwy_put16(udp->len, (uint16_t)(tot - hlen));
	rwy_put16(udp->csum, 0);

	bth->opcode = s->opcode;
	bth->flags = s->flags | (a->migreq ? ROCE_BTH_MIGREQ : 0);
	rwy_put16(bth->pkey, a->pkey);
	bth->fb = s->becn ? ROCE_BTH_BECN : 0;
	rwy_put24(bth->dqpn, a->dqpn);
	bth->areq = s->ack_req ? ROCE_BTH_ACKREQ : 0;
	rwy_put24(bth->psn, s->psn);

	*pkt = (struct roce_pkt){
	    .ip = out,
	    .bth = (uint8_t *)bth,
	    .ext = (uint8_t *)bth + ROCE_BTH_LEN,
	    .payload = (uint8_t *)bth + ROCE_BTH_LEN + info->ext_len,
	    .icrc = out + tot - ROCE_ICRC_LEN,
	    .info = info,
	    .len = tot,
	    .ip_hlen = (uint8_t)hlen,
	    .is6 = is6,
	};
}

static uint32_t finish(const struct roce_pkt *pkt)
{
	roce_icrc_store(pkt);
	return pkt->len;
}

static void put_aeth(uint8_t *p, uint8_t syndrome, roce_msn msn)
{
	struct roce_aeth *h = (struct roce_aeth *)p;

	h->syndrome = syndrome;
	rwy_put24(h->msn, msn);
}

/*
 * ACKs and NAKs, the most frequent ones: one for each request where many queue pairs send single
 * packets. UDP, BTH and AETH are three words of 64 bits here, as struct roce_udp, roce_bth and
 * roce_aeth have them.
 */
static uint32_t build_ack(
    uint8_t *out, const struct roce_addr *a, uint8_t opcode, roce_psn psn, uint8_t syndrome, roce_msn msn)
{
	bool is6 = !rwy_ip_is4(&a->dst);
	uint32_t hlen = is6 ? sizeof(struct roce_ip6) : sizeof(struct roce_ip4);
	uint32_t udp_len = (uint32_t)sizeof(struct roce_udp) + ROCE_BTH_LEN +
	                   (uint32_t)sizeof(struct roce_aeth) + ROCE_ICRC_LEN;
	uint8_t flags = a->migreq ? ROCE_BTH_MIGREQ : 0, *at = out + hlen;

	if (is6)
		put_ip6(out, a, hlen + udp_len);
	else
		put_ip4(out, a, hlen + udp_len);
	rwy_put64(at, (uint64_t)a->sport << 48 | (uint64_t)ROCE_UDP_PORT << 32 | udp_len << 16);
	rwy_put64(at + 8, (uint64_t)opcode << 56 | (uint64_t)flags << 48 | (uint64_t)a->pkey << 32 |
	                      (a->dqpn & ROCE_PSN_MASK));
	rwy_put64(at + 16,
	    (uint64_t)(psn & ROCE_PSN_MASK) << 32 | (uint32_t)syndrome << 24 | (msn & ROCE_PSN_MASK));
	roce_icrc_store_ack(out, is6);
	return hlen + udp_len;
}

uint32_t roce_build_ack(uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn)
{
	return build_ack(out, a, ROCE_RC_ACK, psn, syndrome, msn);
}

uint32_t roce_build_xrc_ack(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn)
{
	return build_ack(out, a, ROCE_XRC_ACK, psn, syndrome, msn);
}

uint32_t roce_build_atomic_ack(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint8_t syndrome, roce_msn msn, uint64_t original)
{
	struct roce_pkt pkt;

	start(out, a, &(struct shape){.opcode = ROCE_RC_ATOMIC_ACK, .psn = psn}, &pkt);
	put_aeth(pkt.ext, syndrome, msn);
	rwy_put64(((struct roce_atomicacketh *)(pkt.ext + sizeof(struct roce_aeth)))->orig, original);
	return finish(&pkt);
}

uint32_t roce_build_read_req(
    uint8_t *out, const struct roce_addr *a, roce_psn psn, uint64_t va, uint32_t rkey, uint32_t len)
{
	struct roce_pkt pkt;
	struct roce_reth *reth;

	start(out, a, &(struct shape){.opcode = ROCE_RC_READ_REQ, .ack_req = true, .psn = psn}, &pkt);
	reth = (struct roce_reth *)pkt.ext;
	rwy_put64(reth->va, va);
	rwy_put32(reth->rkey, rkey);
	rwy_put32(reth->len, len);
	return finish(&pkt);
}

uint32_t roce_build_write_only(uint8_t *out, const struct roce_addr *a, roce_psn psn, uint32_t len)
{
	struct roce_pkt pkt;
	struct roce_reth *reth;

	start(out, a, &(struct shape){.opcode = ROCE_RC_WRITE_ONLY, .ack_req = true, .psn = psn}, &pkt);
	reth = (struct roce_reth *)pkt.ext;
	rwy_put64(reth->va, 0);
	rwy_put32(reth->rkey, 0);
	rwy_put32(reth->len, len);
	return finish(&pkt);
}

uint32_t roce_build_cnp(uint8_t *out, const struct roce_addr *a)
{
	struct roce_pkt pkt;

	start(out, a, &(struct shape){.opcode = ROCE_OPCODE_CNP, .becn = true}, &pkt);
	memset(pkt.ext, 0, ROCE_CNP_PAD_LEN);
	return finish(&pkt);
}

uint32_t roce_build_read_resp(uint8_t *out, const struct roce_addr *a, const struct roce_read_resp *r)
{
	uint32_t pad = (0u - r->len) & 3;
	struct roce_pkt pkt;

	start(out, a,
	    &(struct shape){
	        .opcode = r->opcode, .psn = r->psn, .body = r->len + pad, .flags = (uint8_t)(pad << 4)},
	    &pkt);
	if (pkt.info->flags & ROCE_F_AETH)
		put_aeth(pkt.ext, r->syndrome, r->msn);
	memcpy(pkt.payload, r->payload, r->len);
	memset(pkt.payload + r->len, 0, pad);
	return finish(&pkt);
}

uint32_t roce_build_like(uint8_t *out, const struct roce_addr *a, const struct roce_pkt *like, roce_psn psn)
{
	struct roce_pkt pkt;

	start(out, a,
	    &(struct shape){.opcode = like->opcode,
	        .ack_req = like->ack_req,
	        .psn = psn,
	        .body = like->payload_len + like->pad,
	        .flags = (uint8_t)(like->bth[1] & (ROCE_BTH_SE | 3u << 4))},
	    &pkt);
	memcpy(pkt.ext, like->ext, (size_t)(like->icrc - like->ext));
	return finish(&pkt);
}
