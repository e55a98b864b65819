/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host of the plain LAN that harms the tenant's hosts, which are behind a VTEP: WRITEs to queue
 * pairs that nobody has, some of which get many; or CM REQs, each for another queue pair. It is the
 * VTEP's machine: 10.1.0.2.
 */
#include <string.h>

#include "rwy/endian.h"
#include "rwy/hash.h"
#include "tests/bench/fp_lab.h"
#include "tests/lib/rc_pkt.h"
#include "tests/lib/roce_cm_mad.h"

#define ETH      14
#define UDP_DST  (ETH + 20 + 2)
#define BOGUS    0x800000u
#define FEW      8u /* half of the packets are for so few queue pairs */
#define GSI_QKEY 0x80010000u

static const struct rc_mk host = {.src = {10, 1, 0, 2}, .dst = {10, 2, 0, 2}, .ack_req = true};

static uint32_t write_only(uint8_t *ip, uint32_t payload, uint32_t qpn, uint32_t n)
{
	struct rc_mk m = host;

	m.opcode = ROCE_RC_WRITE_ONLY;
	m.dqpn = qpn;
	m.psn = n & ROCE_PSN_MASK;
	m.len = m.payload_len = payload;
	return rc_pkt_make(ip, &m);
}

static uint32_t cm_req(uint8_t *ip, uint32_t n)
{
	struct cp_req req = {.tid = n,
	    .comm = n,
	    .qpn = BOGUS | (n & 0x7fffff),
	    .psn = 1,
	    .mtu = 3,
	    .retry = 7,
	    .local_gid = {[10] = 0xff, 0xff},
	    .remote_gid = {[10] = 0xff, 0xff}};
	struct rc_mk m = host;
	uint8_t mad[256];

	memcpy(req.local_gid + 12, m.src, 4);
	memcpy(req.remote_gid + 12, m.dst, 4);
	cp_make_req(mad, &req);
	m.opcode = ROCE_UD_SEND_ONLY;
	m.dqpn = m.src_qpn = 1;
	m.qkey = GSI_QKEY;
	m.psn = n & ROCE_PSN_MASK;
	m.payload = mad;
	m.payload_len = sizeof(mad);
	return rc_pkt_make(ip, &m);
}

void fp_hostile_send(struct fp_lab *l, enum fp_hostile way, unsigned n)
{
	static uint8_t frame[ETH + RC_PKT_MAX];
	static uint32_t sent;

	memcpy(frame, l->gw[FP_A].port[FP_LAN].mac, 6);
	memcpy(frame + 6, fp_host_mac, 6);
	rwy_put16(frame + 12, 0x0800);
	for (; n; n--) {
		uint64_t r = rwy_mix64(++sent);
		uint32_t qpn = BOGUS + (uint32_t)(r >> 20) % (r >> 63 ? FEW : BOGUS);
		uint32_t len = way == FP_CM_FLOOD ? cm_req(frame + ETH, sent)
		                                  : write_only(frame + ETH, l->cfg.payload, qpn, sent);

		fp_arrive(&l->gw[FP_A].port[FP_LAN], fp_copy(l, frame, ETH + len));
	}
}

bool fp_is_hostile(const uint8_t *frame)
{
	return rwy_get16(frame + 12) == 0x0800 && rwy_get16(frame + UDP_DST) == ROCE_UDP_PORT;
}
