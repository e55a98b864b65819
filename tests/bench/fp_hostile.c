/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of the plain LAN that harms the tenant's hosts, which are behind a VTEP: WRITEs to queue
 * pairs that nobody has, some of which get many; or CM REQs, each for another queue pair. It is the
 * VTEP's machine: 10.1.0.2.
 */
#include <string.h>

#include "roce/icrc.h"
#include "roce/wire.h"
#include "rwy/endian.h"
#include "rwy/hash.h"
#include "tests/bench/fp_lab.h"
#include "tests/lib/roce_cm_mad.h"

#define ETH      14
#define IP4      20
#define BOGUS    0x800000u
#define FEW      8u /* half of the packets are for so few queue pairs */
#define GSI_QKEY 0x80010000u

static const uint8_t src[4] = {10, 1, 0, 2}, dst[4] = {10, 2, 0, 2};

static void ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IP4; i += 2)
		sum += rwy_get16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	rwy_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

/* The headers up to the BTH, around `body` bytes from the extension header to the end of the payload. */
static uint8_t *headers(
    struct fp_lab *l, uint8_t *frame, uint8_t opcode, uint32_t qpn, roce_psn psn, uint32_t body)
{
	uint8_t *ip = frame + ETH, *udp = ip + IP4, *bth = udp + 8;
	uint32_t udp_len = 8 + ROCE_BTH_LEN + body + ROCE_ICRC_LEN;

	memset(frame, 0, ETH + IP4 + 8 + ROCE_BTH_LEN);
	memcpy(frame, l->gw[FP_A].port[FP_LAN].mac, 6);
	memcpy(frame + 6, fp_host_mac, 6);
	rwy_put16(frame + 12, 0x0800);
	ip[0] = 0x45;
	ip[1] = 0x02;
	rwy_put16(ip + 2, (uint16_t)(IP4 + udp_len));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 17;
	memcpy(ip + 12, src, 4);
	memcpy(ip + 16, dst, 4);
	ip_checksum(ip);
	rwy_put16(udp, (uint16_t)(0xc000 | (qpn & 0x3fff)));
	rwy_put16(udp + 2, ROCE_UDP_PORT);
	rwy_put16(udp + 4, (uint16_t)udp_len);
	bth[0] = opcode;
	bth[1] = ROCE_BTH_MIGREQ;
	rwy_put16(bth + 2, 0xffff);
	rwy_put24(bth + 5, qpn);
	bth[8] = ROCE_BTH_ACKREQ;
	rwy_put24(bth + 9, psn);
	return bth + ROCE_BTH_LEN;
}

static uint32_t write_only(struct fp_lab *l, uint8_t *frame, uint32_t qpn, roce_psn psn)
{
	uint8_t *d = headers(l, frame, ROCE_RC_WRITE_ONLY, qpn, psn, 16 + l->cfg.payload);

	rwy_put64(d, 0x7f0000000000);
	rwy_put32(d + 8, 0x1234);
	rwy_put32(d + 12, l->cfg.payload);
	memset(d + 16, 0x5a, l->cfg.payload);
	return (uint32_t)(d - frame) + 16 + l->cfg.payload + ROCE_ICRC_LEN;
}

static uint32_t cm_req(struct fp_lab *l, uint8_t *frame, uint32_t n)
{
	struct cp_req req = {.tid = n,
	    .comm = n,
	    .qpn = BOGUS | (n & 0x7fffff),
	    .psn = 1,
	    .mtu = 3,
	    .retry = 7,
	    .local_gid = {[10] = 0xff, 0xff},
	    .remote_gid = {[10] = 0xff, 0xff}};
	uint8_t *d = headers(l, frame, ROCE_UD_SEND_ONLY, 1, n & 0xffffff, 8 + 256);

	memcpy(req.local_gid + 12, src, 4);
	memcpy(req.remote_gid + 12, dst, 4);
	rwy_put32(d, GSI_QKEY);
	rwy_put32(d + 4, 1);
	cp_make_req(d + 8, &req);
	return (uint32_t)(d - frame) + 8 + 256 + ROCE_ICRC_LEN;
}

void fp_hostile_send(struct fp_lab *l, enum fp_hostile way, unsigned n)
{
	static uint8_t frame[ETH + 96 + 4200];
	static uint32_t sent;
	uint64_t r;
	uint32_t len, qpn;

	for (; n; n--) {
		struct roce_pkt pkt;

		r = rwy_mix64(++sent);
		qpn = BOGUS + (uint32_t)(r >> 20) % (r >> 63 ? FEW : BOGUS);
		len =
		    way == FP_CM_FLOOD ? cm_req(l, frame, sent) : write_only(l, frame, qpn, sent & 0xffffff);
		if (roce_parse(frame + ETH, len - ETH, &pkt) != ROCE_PARSE_OK)
			fp_die("the hostile packet does not parse");
		roce_icrc_store(&pkt);
		fp_arrive(&l->gw[FP_A].port[FP_LAN], fp_copy(l, frame, len));
	}
}

bool fp_is_hostile(const uint8_t *frame)
{
	return rwy_get16(frame + 12) == 0x0800 && rwy_get16(frame + ETH + IP4 + 2) == ROCE_UDP_PORT;
}
