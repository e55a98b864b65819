/* SPDX-License-Identifier: Apache-2.0 */
/* CM packets of hosts for tests of the relay, IPv4 and IPv6, with the addresses where rdma_cm puts
 * them. */
#ifndef TESTS_LIB_PROXY_CM_H
#define TESTS_LIB_PROXY_CM_H

#include "rwy/ip.h"
#include "tests/lib/roce_cm_pkt.h"

#define PX_BODY(ip) ((ip) + ((ip)[0] >> 4 == 6 ? 40 : 20) + 8 + 12 + 8 + 24)
#define PX_PRIVATE  140 /* of a REQ, in the body */

/* Corrects both checksums after the test has written into a packet. */
static inline void px_seal(uint8_t *ip, uint32_t len)
{
	uint32_t crc;

	if (ip[0] >> 4 == 4)
		tp_fix_csum(ip);
	crc = tp_icrc(ip, len);
	for (unsigned i = 0; i < 4; i++)
		ip[len - 4 + i] = (uint8_t)(crc >> 8 * i);
}

static inline uint32_t px_packet(
    uint8_t *out, const uint8_t *mad, const struct rwy_ip *src, const struct rwy_ip *dst)
{
	bool is6 = !rwy_ip_is4(src);
	uint32_t len = cp_packet(out, mad, is6, 256);

	memcpy(out + (is6 ? 8 : 12), src->b + (is6 ? 0 : 12), is6 ? 16 : 4);
	memcpy(out + (is6 ? 24 : 16), dst->b + (is6 ? 0 : 12), is6 ? 16 : 4);
	px_seal(out, len);
	return len;
}

struct px_req {
	struct rwy_ip src, dst;
	uint32_t comm, qpn, psn;
	uint64_t tid;
	uint16_t port;
	uint8_t transport;
	const uint8_t *private_data; /* 56 bytes; NULL: zeros */
};

static inline uint32_t px_make_req(uint8_t *out, const struct px_req *r)
{
	struct cp_req q = {.tid = r->tid,
	    .comm = r->comm,
	    .qpn = r->qpn,
	    .psn = r->psn,
	    .mtu = 3,
	    .retry = 7,
	    .rnr = 7,
	    .timeout = 18,
	    .resp_res = 8,
	    .init_depth = 8,
	    .transport = r->transport};
	bool is6 = !rwy_ip_is4(&r->src);
	uint8_t mad[256], *b = mad + 24, *ipcm = b + PX_PRIVATE;

	memcpy(q.local_gid, r->src.b, 16);
	memcpy(q.remote_gid, r->dst.b, 16);
	cp_make_req(mad, &q);
	cp_be(b + 8, 0x0000000001060000 | r->port, 8);
	ipcm[1] = is6 ? 0x60 : 0x40;
	cp_be(ipcm + 2, 40000, 2);
	memcpy(ipcm + 4 + (is6 ? 0 : 12), r->src.b + (is6 ? 0 : 12), is6 ? 16 : 4);
	memcpy(ipcm + 20 + (is6 ? 0 : 12), r->dst.b + (is6 ? 0 : 12), is6 ? 16 : 4);
	if (r->private_data)
		memcpy(ipcm + 36, r->private_data, 56);
	return px_packet(out, mad, &r->src, &r->dst);
}

#endif
