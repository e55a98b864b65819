/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the frames of arp.h, and bounds the rate of asking. */
#include <stdlib.h>
#include <string.h>

#include "roce/wire.h"
#include "rwy/checksum.h"
#include "rwy/hash.h"
#include "tenant/arp_int.h"

#define NA_ROUTER    0x80
#define NA_SOLICITED 0x40
#define NA_OVERRIDE  0x20

bool arp_ip_none(const struct rwy_ip *a)
{
	static const struct rwy_ip none6;
	static const uint8_t none4[4];

	return rwy_ip_is4(a) ? !memcmp(a->b + 12, none4, 4) : rwy_ip_eq(a, &none6);
}

void arp_group_of(const struct rwy_ip *a, struct rwy_ip *group, uint8_t mac[6])
{
	static const uint8_t first[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};

	memcpy(group->b, first, 13);
	memcpy(group->b + 13, a->b + 13, 3);
	mac[0] = mac[1] = 0x33;
	memcpy(mac + 2, group->b + 12, 4);
}

static uint8_t *ether(uint8_t *o, const uint8_t dst[6], const uint8_t src[6], uint16_t tci, uint16_t type)
{
	memcpy(o, dst, 6);
	memcpy(o + 6, src, 6);
	o += 12;
	if (tci) {
		rwy_put16(o, RWY_ETHER_VLAN);
		rwy_put16(o + 2, tci);
		o += 4;
	}
	rwy_put16(o, type);
	return o + 2;
}

static uint8_t *arp(uint8_t *p, uint8_t op, const uint8_t smac[6], const struct rwy_ip *sender,
    const uint8_t tmac[6], const struct rwy_ip *target)
{
	static const uint8_t head[7] = {0, 1, 8, 0, 6, 4, 0};

	memcpy(p, head, 7);
	p[7] = op;
	memcpy(p + 8, smac, 6);
	memcpy(p + 14, sender->b + 12, 4);
	memcpy(p + 18, tmac, 6);
	memcpy(p + 24, target->b + 12, 4);
	return p + ARP_LEN;
}

/* Writes a solicitation or an advertisement with its one option. */
static uint8_t *nd(uint8_t *p, const struct rwy_ip *src, const struct rwy_ip *dst, uint8_t type,
    uint8_t flags, const struct rwy_ip *target, const uint8_t mac[6])
{
	struct roce_ip6 *h = (struct roce_ip6 *)p;
	uint8_t *icmp = p + sizeof(*h);
	uint32_t n = ND_LEN + 8;

	memset(p, 0, sizeof(*h) + n);
	h->vtf[0] = 0x60;
	rwy_put16(h->plen, (uint16_t)n);
	h->next = ND_ICMP6;
	h->hlim = 255;
	memcpy(h->src, src->b, 16);
	memcpy(h->dst, dst->b, 16);
	icmp[0] = type;
	icmp[4] = flags;
	memcpy(icmp + 8, target->b, 16);
	icmp[ND_LEN] = type == ND_SOLICIT ? 1 : 2;
	icmp[ND_LEN + 1] = 1;
	memcpy(icmp + ND_LEN + 2, mac, 6);
	rwy_put16(icmp + 2,
	    (uint16_t)~rwy_csum_fold((uint64_t)rwy_csum(h->src, 32) + n + ND_ICMP6 + rwy_csum(icmp, n)));
	return icmp + n;
}

uint32_t arp_make_answer(const uint8_t mac[6], const struct arp_msg *m, bool own, uint16_t tci, uint8_t *out)
{
	static const struct rwy_ip all_nodes = {{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
	static const uint8_t all_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
	bool probe = arp_ip_none(&m->sender);
	uint8_t flags = NA_ROUTER, *p;

	if (!m->is6) {
		p = ether(out, m->mac, mac, tci, RWY_ETHER_ARP);
		return (uint32_t)(arp(p, 2, mac, &m->target, m->mac, &m->sender) - out);
	}
	/* RFC 4861 7.2.4; a proxy does not override what the host may say itself (7.2.8). */
	flags |= (uint8_t)((probe ? 0 : NA_SOLICITED) | (own ? NA_OVERRIDE : 0));
	p = ether(out, probe ? all_mac : m->mac, mac, tci, RWY_ETHER_IP6);
	return (
	    uint32_t)(nd(p, &m->target, probe ? &all_nodes : &m->sender, ND_ADVERT, flags, &m->target, mac) -
	              out);
}

uint32_t arp_ask(const struct tenant *t, const uint8_t mac[6], const struct rwy_ip *target, uint16_t tci,
    uint8_t out[ARP_FRAME_MAX])
{
	static const uint8_t zero[6], broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	bool is6 = !rwy_ip_is4(target);
	const struct rwy_ip *from = &t->cfg.gw_ip[is6];
	struct rwy_ip group;
	uint8_t to[6], *p;

	if (arp_ip_none(from))
		return 0;
	if (!is6) {
		p = ether(out, broadcast, mac, tci, RWY_ETHER_ARP);
		return (uint32_t)(arp(p, 1, mac, from, zero, target) - out);
	}
	arp_group_of(target, &group, to);
	p = ether(out, to, mac, tci, RWY_ETHER_IP6);
	return (uint32_t)(nd(p, from, &group, ND_SOLICIT, 0, target, mac) - out);
}

/* --- rate ------------------------------------------------------------------------------------- */

struct asked {
	struct rwy_ip target;
	uint32_t tenant; /* 1 + index; 0: empty */
	rwy_time at;
};

struct arp_rate {
	struct arp_rate_cfg cfg;
	struct asked *slot;
	/* Per tenant: time when its token bucket is full, which stands for level and clock. */
	rwy_time *full_at;
};

void arp_rate_cfg_default(struct arp_rate_cfg *cfg)
{
	*cfg = (struct arp_rate_cfg){
	    .slots = 4096, .tenants = 16384, .again = RWY_SEC, .burst = 16, .every = 10 * RWY_MS};
}

int arp_rate_new(struct arp_rate **out, const struct arp_rate_cfg *cfg)
{
	struct arp_rate *r;

	if (!cfg->slots || cfg->slots > 1u << 20 || cfg->slots & (cfg->slots - 1) || !cfg->tenants ||
	    cfg->tenants > 65536 || !cfg->burst || cfg->burst > 65535 || !cfg->every)
		return RWY_EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return RWY_ENOMEM;
	r->cfg = *cfg;
	r->slot = calloc(cfg->slots, sizeof(*r->slot));
	r->full_at = calloc(cfg->tenants, sizeof(*r->full_at));
	if (!r->slot || !r->full_at) {
		arp_rate_free(r);
		return RWY_ENOMEM;
	}
	*out = r;
	return 0;
}

void arp_rate_free(struct arp_rate *r)
{
	if (!r)
		return;
	free(r->slot);
	free(r->full_at);
	free(r);
}

bool arp_rate_ask(struct arp_rate *r, uint32_t tenant, const struct rwy_ip *target, rwy_time now)
{
	rwy_time full = rwy_time_max(r->full_at[tenant], now);
	struct asked *a;

	a = &r->slot[rwy_hash_ip(tenant * RWY_HASH_MUL, target) & (r->cfg.slots - 1)];
	if (a->tenant == tenant + 1 && rwy_ip_eq(&a->target, target) && rwy_since(a->at, now) < r->cfg.again)
		return false;
	if (full - now > (r->cfg.burst - 1) * r->cfg.every)
		return false;
	r->full_at[tenant] = full + r->cfg.every;
	*a = (struct asked){*target, tenant + 1, now};
	return true;
}
