/* SPDX-License-Identifier: Apache-2.0 */
/* CM messages for tests, each field at its offset of IBA 12.6 as a number: shares nothing with roce/wire.h.
 */
#ifndef TESTS_LIB_ROCE_CM_MAD_H
#define TESTS_LIB_ROCE_CM_MAD_H

#include <stdint.h>
#include <string.h>

static inline void cp_be(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

/* The 256 bytes of a MAD with its header (IBA 13.4.2). */
static inline void cp_mad(uint8_t *m, uint16_t attr, uint64_t tid)
{
	memset(m, 0, 256);
	m[0] = 1;
	m[1] = 0x07;
	m[2] = 2;
	m[3] = 0x03;
	cp_be(m + 8, tid, 8);
	cp_be(m + 16, attr, 2);
}

struct cp_req {
	uint64_t tid;
	uint32_t comm, qpn, psn;
	uint8_t mtu, retry, rnr, timeout, resp_res, init_depth, transport, ext_transport;
	uint8_t local_gid[16], remote_gid[16];
};

static inline void cp_make_req(uint8_t *m, const struct cp_req *r)
{
	uint8_t *b = m + 24;

	cp_mad(m, 0x0010, r->tid);
	cp_be(b + 0, r->comm, 4);
	cp_be(b + 8, 0x0000000001061b58, 8); /* service ID: TCP port space, port 7000 */
	cp_be(b + 16, 0x0011223344556677, 8);
	cp_be(b + 32, r->qpn, 3);
	b[35] = r->resp_res;
	b[39] = r->init_depth;
	b[43] = (uint8_t)(20 << 3 | r->transport << 1 | 1);
	cp_be(b + 44, r->psn, 3);
	b[47] = (uint8_t)(21 << 3 | r->retry);
	cp_be(b + 48, 0xffff, 2);
	b[50] = (uint8_t)(r->mtu << 4 | r->rnr);
	b[51] = (uint8_t)(15 << 4 | 0x08 | r->ext_transport);
	memcpy(b + 56, r->local_gid, 16);
	memcpy(b + 72, r->remote_gid, 16);
	cp_be(b + 88, 0x54321u << 12 | 3, 4);
	b[92] = 0x6a;
	b[93] = 64;
	b[95] = (uint8_t)(r->timeout << 3);
}

struct cp_rep {
	uint64_t tid;
	uint32_t comm, remote, qpn, eecn, psn;
	uint8_t rnr, resp_res, init_depth;
	uint8_t ack_delay; /* 0: 15, 134 ms */
};

static inline void cp_make_rep(uint8_t *m, const struct cp_rep *r)
{
	uint8_t *b = m + 24;

	cp_mad(m, 0x0013, r->tid);
	cp_be(b + 0, r->comm, 4);
	cp_be(b + 4, r->remote, 4);
	cp_be(b + 12, r->qpn, 3);
	cp_be(b + 16, r->eecn, 3);
	cp_be(b + 20, r->psn, 3);
	b[24] = r->resp_res;
	b[25] = r->init_depth;
	b[26] = (uint8_t)((r->ack_delay ? r->ack_delay : 15) << 3 | 1 << 1 | 1);
	b[27] = (uint8_t)(r->rnr << 5 | 1 << 4);
}

/* RTU 0x14, DREP 0x16, and with two bytes more MRA 0x11, REJ 0x12 */
static inline void cp_make_ids(uint8_t *m, uint16_t attr, uint64_t tid, uint32_t local, uint32_t remote)
{
	cp_mad(m, attr, tid);
	cp_be(m + 24, local, 4);
	cp_be(m + 28, remote, 4);
}

static inline void cp_make_dreq(
    uint8_t *m, uint64_t tid, uint32_t local, uint32_t remote, uint32_t remote_qpn)
{
	cp_make_ids(m, 0x0015, tid, local, remote);
	cp_be(m + 32, remote_qpn, 3);
}

static inline void cp_make_rej(
    uint8_t *m, uint64_t tid, uint32_t local, uint32_t remote, uint8_t msg, uint16_t why)
{
	cp_make_ids(m, 0x0012, tid, local, remote);
	m[32] = (uint8_t)(msg << 6);
	cp_be(m + 34, why, 2);
}

#endif
