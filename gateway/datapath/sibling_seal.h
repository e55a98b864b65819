/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seal of a packet that one gateway of a site hands to another: 12 bytes behind the IP packet,
 * where Ethernet has padding, so that whoever does not know it ignores it. Without the site's key
 * nobody can make one. It covers what tells a packet from others: addresses, BTH and ICRC. A copy
 * of a sealed packet is worth no more than the packet.
 */
#ifndef GATEWAY_DATAPATH_SIBLING_SEAL_H
#define GATEWAY_DATAPATH_SIBLING_SEAL_H

#include "base/siphash.h"
#include "gateway/datapath/pkt.h"

#define GW_SEAL_LEN   12u
#define GW_SEAL_MAGIC 0x52575948u /* "RWYH" */

/* ip: the packet of k, whose BTH is bth, with its ICRC at its end. */
static inline void gw_seal_make(uint8_t out[GW_SEAL_LEN], const uint8_t key[BASE_SIPHASH_KEY],
    const struct gw_pkt *k, const uint8_t *ip, const uint8_t *bth)
{
	uint8_t text[32 + ROCE_BTH_LEN + ROCE_ICRC_LEN];

	memcpy(text, k->src.b, 16);
	memcpy(text + 16, k->dst.b, 16);
	memcpy(text + 32, bth, ROCE_BTH_LEN);
	memcpy(text + 32 + ROCE_BTH_LEN, ip + k->ip_len - ROCE_ICRC_LEN, ROCE_ICRC_LEN);
	rwy_put32(out, GW_SEAL_MAGIC);
	rwy_put64(out + 4, base_siphash(key, text, sizeof(text)));
}

/* Appends the seal to the packet in m, over its padding. False: there is no room. */
static inline bool gw_seal_put(
    struct rte_mbuf *m, const struct gw_pkt *k, const uint8_t key[BASE_SIPHASH_KEY], const uint8_t *bth)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(m, uint8_t *, k->off);

	if (k->off + k->ip_len + GW_SEAL_LEN > m->data_len + rte_pktmbuf_tailroom(m))
		return false;
	gw_seal_make(ip + k->ip_len, key, k, ip, bth);
	return true;
}

static inline bool gw_seal_good(
    const struct rte_mbuf *m, const struct gw_pkt *k, const uint8_t key[BASE_SIPHASH_KEY], const uint8_t *bth)
{
	const uint8_t *ip = rte_pktmbuf_mtod_offset(m, const uint8_t *, k->off);
	uint8_t want[GW_SEAL_LEN];

	if (k->off + k->ip_len + GW_SEAL_LEN > m->data_len)
		return false;
	gw_seal_make(want, key, k, ip, bth);
	return !memcmp(ip + k->ip_len, want, GW_SEAL_LEN);
}

#endif
