/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a packet for captures. Every length is checked: the bytes may be anybody's. */
#include "gateway/capture/facts.h"

#include <netinet/in.h>
#include <string.h>

#include "base/siphash.h"
#include "roce/opcode.h"
#include "roce/parse.h"
#include "roce/wire.h"
#include "rwy/endian.h"
#include "rwy/ether.h"
#include "vxlan/vxlan.h"
#include "wan/wire/pkt.h"

#define ETH     14
#define IP4     20
#define IP6     40
#define UDP     8
#define VLAN    4
#define ID_BODY 32 /* bytes behind the IP header that tell packets without a PSN apart */

#define X(e, n) n,
const char *const gw_cap_stage_name[GW_CAP_STAGE_COUNT] = {GW_CAP_STAGES(X)};
const char *const gw_cap_decision_name[GW_CAP_DECISION_COUNT] = {GW_CAP_DECISIONS(X)};
#undef X

/* --- IP and RoCE ------------------------------------------------------------------------------ */

struct l3 {
	uint32_t hdr; /* bytes of the IP header */
	uint8_t proto;
	bool later; /* a fragment of IP, but the first one */
	struct rwy_ip src, dst;
};

static bool l3_read(struct l3 *k, const uint8_t *ip, uint32_t len)
{
	if (len >= IP4 && ip[0] >> 4 == 4) {
		k->hdr = (ip[0] & 15u) * 4;
		k->proto = ip[9];
		k->later = (rwy_get16(ip + 6) & ROCE_IP4_OFFMASK) != 0;
		k->src = rwy_ip_from4(ip + 12);
		k->dst = rwy_ip_from4(ip + 16);
		return k->hdr >= IP4 && k->hdr <= len;
	}
	if (len < IP6 || ip[0] >> 4 != 6)
		return false;
	k->hdr = IP6;
	k->proto = ip[6];
	k->later = false;
	memcpy(k->src.b, ip + 8, 16);
	memcpy(k->dst.b, ip + 24, 16);
	return true;
}

/* docs/capture.md tells the bytes: others may compute it, too. */
static uint64_t id_of(const struct gw_cap_facts *f, uint8_t proto, const uint8_t *body, uint32_t len)
{
	static const uint8_t key[BASE_SIPHASH_KEY] = {0};
	uint8_t in[4 + 16 + 16 + 1 + ID_BODY];
	uint32_t n = 37;
	uint64_t id;

	rwy_put32(in, f->vni);
	memcpy(in + 4, f->src.b, 16);
	memcpy(in + 20, f->dst.b, 16);
	in[36] = proto;
	if (f->roce) {
		in[n] = f->opcode;
		rwy_put32(in + n + 1, f->dqpn);
		rwy_put32(in + n + 5, f->psn);
		n += 9;
	} else {
		len = len < ID_BODY ? len : ID_BODY;
		memcpy(in + n, body, len);
		n += len;
	}
	id = base_siphash(key, in, n);
	return id ? id : 1;
}

static void roce_read(struct gw_cap_facts *f, const uint8_t *bth, uint32_t len)
{
	const struct roce_opinfo *o = roce_op(bth[0]);

	f->roce = true;
	f->opcode = bth[0];
	f->dqpn = rwy_get24(bth + offsetof(struct roce_bth, dqpn));
	f->psn = rwy_get24(bth + offsetof(struct roce_bth, psn));
	if (!roce_op_is_valid(o))
		return;
	if (o->flags & ROCE_F_AETH && o->transport == ROCE_RC && len > ROCE_BTH_LEN) {
		f->aeth = true;
		f->syndrome = bth[ROCE_BTH_LEN];
	}
	if (o->flags & ROCE_F_DETH && o->transport == ROCE_UD && len >= ROCE_BTH_LEN + 8)
		f->sqpn = rwy_get24(bth + ROCE_BTH_LEN + 5);
}

void gw_cap_facts_ip(struct gw_cap_facts *f, const uint8_t *ip, uint32_t len)
{
	const uint8_t *body;
	struct l3 k;

	if (!l3_read(&k, ip, len))
		return;
	body = ip + k.hdr;
	len -= k.hdr;
	f->ip = true;
	f->src = k.src;
	f->dst = k.dst;
	if (k.proto == IPPROTO_UDP && !k.later && len >= UDP + ROCE_BTH_LEN &&
	    rwy_get16(body + 2) == ROCE_UDP_PORT)
		roce_read(f, body + UDP, len - UDP);
	if (!f->roce)
		f->id = id_of(f, k.proto, body, len);
}

uint64_t gw_cap_id(const struct gw_cap_facts *f)
{
	return f->id || !f->roce ? f->id : id_of(f, IPPROTO_UDP, NULL, 0);
}

/* --- frames ----------------------------------------------------------------------------------- */

uint32_t gw_cap_l2(const uint8_t *frame, uint32_t len, uint16_t *type, uint16_t *vid)
{
	*vid = 0;
	if (len < ETH)
		return 0;
	*type = rwy_get16(frame + 12);
	if (*type != RWY_ETHER_VLAN || len < ETH + VLAN)
		return ETH;
	*vid = rwy_get16(frame + 14) & 0xfff;
	*type = rwy_get16(frame + 16);
	return ETH + VLAN;
}

static bool is_ip(uint16_t type)
{
	return type == RWY_ETHER_IP4 || type == RWY_ETHER_IP6;
}

uint32_t gw_cap_udp(const uint8_t *frame, uint32_t len, struct gw_cap_udp *u)
{
	uint16_t type, vid;
	const uint32_t off = gw_cap_l2(frame, len, &type, &vid);
	const uint8_t *udp;
	struct l3 k;

	if (!off || !is_ip(type) || !l3_read(&k, frame + off, len - off) || k.proto != IPPROTO_UDP ||
	    k.later || len - off - k.hdr < UDP)
		return 0;
	udp = frame + off + k.hdr;
	*u = (struct gw_cap_udp){
	    .src = k.src, .dst = k.dst, .sport = rwy_get16(udp), .dport = rwy_get16(udp + 2)};
	return off + k.hdr + UDP;
}

void gw_cap_facts_frame(struct gw_cap_facts *f, const uint8_t *frame, uint32_t len, bool overlay)
{
	struct gw_cap_udp u;
	uint16_t type, vid;
	uint32_t off = overlay ? gw_cap_udp(frame, len, &u) : 0, in;

	if (off && u.dport == VXLAN_UDP_PORT && len - off > VXLAN_HLEN) {
		f->vni = rwy_get24(frame + off + 4);
		frame += off + VXLAN_HLEN;
		len -= off + VXLAN_HLEN;
	}
	in = gw_cap_l2(frame, len, &type, &vid);
	if (in && is_ip(type))
		gw_cap_facts_ip(f, frame + in, len - in);
}

/* --- the WAN ---------------------------------------------------------------------------------- */

/* The DATA, DGRAM or RUN frame behind the other frames; NULL: there is none. */
static const uint8_t *data_find(const uint8_t *at, const uint8_t *end)
{
	struct wan_f_ack a;

	while (at && at < end && *at < WAN_F_DATA) {
		const uint8_t type = *at;
		const size_t left = (size_t)(end - at);
		size_t n;

		switch (type) {
		case WAN_F_PING:
			n = 1;
			break;
		case WAN_F_ACK:
		case WAN_F_ACK_ECN:
			at = wan_f_ack_get(at + 1, end, type, &a);
			continue;
		case WAN_F_DELIVERED:
			n = left < 2 ? left + 1 : WAN_DELIVERED_HEAD + (size_t)at[1] * WAN_DELIVERED_ENTRY;
			break;
		case WAN_F_RATE:
			n = left < 2 ? left + 1 : 2 + (size_t)at[1] * WAN_RATE_ENTRY;
			break;
		case WAN_F_REBUILT:
			n = left < 3 ? left + 1 : WAN_REBUILT_HEAD + (size_t)at[2] * WAN_REBUILT_ENTRY;
			break;
		case WAN_F_CREDIT:
			n = WAN_CREDIT_LEN;
			break;
		case WAN_F_ABORT:
		case WAN_F_RESET:
			n = WAN_ABORT_LEN;
			break;
		default: /* a byte of the wire */
			return NULL;
		}
		if (n > left)
			return NULL;
		at += n;
	}
	if (!at || at >= end)
		return NULL;
	return *at <= (WAN_F_DGRAM | WAN_DATA_FRAG) || *at == WAN_F_RUN || *at == WAN_F_BUNDLE ? at : NULL;
}

static struct gw_cap_frag *frag_place(struct gw_cap_frags *frags, const struct wan_f_data *d, uint8_t stage)
{
	const uint32_t h = (d->flow * 0x9e3779b1u) ^ (d->seq * 0x85ebca6bu) ^ stage;

	return &frags->v[(h ^ h >> 16) % GW_CAP_FRAGS];
}

static void frag_keep(struct gw_cap_frags *frags, const struct wan_f_data *d, const struct gw_cap_facts *f)
{
	*frag_place(frags, d, f->stage) = (struct gw_cap_frag){
	    .flow = d->flow, .seq = d->seq, .stage = f->stage, .used = true, .facts = *f};
}

static bool frag_find(struct gw_cap_frags *frags, const struct wan_f_data *d, struct gw_cap_facts *f)
{
	const struct gw_cap_frag *g = frag_place(frags, d, f->stage);

	if (!g->used || g->flow != d->flow || g->seq != d->seq || g->stage != f->stage)
		return false;
	*f = g->facts;
	f->later = true;
	return true;
}

bool gw_cap_wan_sealed(const uint8_t *d, uint32_t len)
{
	return len > WAN_PKT_HDR && d[3];
}

bool gw_cap_facts_wan(struct gw_cap_facts *f, struct gw_cap_frags *frags, const uint8_t *d, uint32_t len)
{
	const uint8_t *end = d + len, *at, *in;
	struct wan_f_data data;

	if (len <= WAN_PKT_HDR || d[0] != (WAN_VERSION << 4 | WAN_PKT_FRAMES) || d[3])
		return false;
	at = data_find(d + WAN_PKT_HDR, end);
	in = at ? wan_f_data_get(at, end, &data) : NULL;
	if (!in)
		return false;
	if (data.run) /* the record has one set of facts: the first packet's */
		end = in + data.first;
	if (data.frag && data.index)
		return frag_find(frags, &data, f);
	if (data.kind == RWY_BUF_TENANT && end - in > 4) {
		f->vni = rwy_get32(in);
		in += 4;
	} else if (data.kind != RWY_BUF_PACKET) {
		return false;
	}
	gw_cap_facts_ip(f, in, (uint32_t)(end - in));
	if (f->ip && data.frag)
		frag_keep(frags, &data, f);
	return f->ip;
}

/* --- events ----------------------------------------------------------------------------------- */

unsigned gw_cap_events(const struct gw_cap_facts *f)
{
	unsigned e = f->decision == GW_CAP_DROP ? GW_CAP_DROPPED : 0;

	if (!f->aeth)
		return e;
	switch ((enum roce_aeth_type)(f->syndrome >> 5 & 3)) {
	case ROCE_AETH_NAK:
		return e | GW_CAP_NAK | (f->syndrome & 31 ? GW_CAP_ERROR : 0u);
	case ROCE_AETH_RNR:
		return e | GW_CAP_RNR;
	case ROCE_AETH_ACK:
	case ROCE_AETH_RSVD:
		break;
	}
	return e;
}
