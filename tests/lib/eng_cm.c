/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eng_cm.h"

#include "tests/lib/roce_cm_pkt.h"
#include "tests/lib/eng_pair.h"
#include "tests/lib/heap_buf.h"

#define ROOM 320

static uint32_t cm_packet(uint8_t *out, unsigned from, const uint8_t *mad)
{
	uint32_t len = cp_packet(out, mad, false, 256), crc;

	tp_be(out + 12, from ? 0x0a020003 : 0x0a010003, 4);
	tp_be(out + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(out);
	crc = tp_icrc(out, len);
	for (unsigned i = 0; i < 4; i++)
		out[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	return len;
}

static void cm_sends(unsigned from, uint16_t tenant, const uint8_t *ip, uint32_t len)
{
	struct rwy_buf *b = heap_buf_alloc(&site[from].bufs, ROOM, TP_MAX);

	b->len = len;
	memcpy(b->data, ip, len);
	eng_tenant_rx(site[from].e, &b, &tenant, 1, eng_now);
}

uint32_t eng_cm_make_req(uint8_t *out, uint8_t retry, uint8_t rnr_retry, uint8_t timeout)
{
	const struct cp_req r = {.tid = 7,
	    .init_depth = 16,
	    .comm = CM_COMM_A,
	    .qpn = CM_QPN_A,
	    .psn = CM_PSN_B,
	    .mtu = 3,
	    .retry = retry,
	    .rnr = rnr_retry,
	    .timeout = timeout};
	uint8_t mad[256];

	cp_make_req(mad, &r);
	return cm_packet(out, 0, mad);
}

uint32_t eng_cm_make_rep(uint8_t *out, uint8_t rnr_retry)
{
	const struct cp_rep r = {.tid = 7,
	    .comm = CM_COMM_B,
	    .remote = CM_COMM_A,
	    .qpn = CM_QPN_B,
	    .psn = CM_PSN_A,
	    .rnr = rnr_retry};
	uint8_t mad[256];

	cp_make_rep(mad, &r);
	return cm_packet(out, 1, mad);
}

uint32_t eng_cm_make_dreq(uint8_t *out)
{
	uint8_t mad[256];

	cp_make_dreq(mad, 9, CM_COMM_A, CM_COMM_B, CM_QPN_B);
	return cm_packet(out, 0, mad);
}

void eng_cm_req(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout)
{
	uint8_t ip[TP_MAX];

	cm_sends(0, tenant, ip, eng_cm_make_req(ip, retry, rnr_retry, timeout));
}

void eng_cm_rep(uint16_t tenant, uint8_t rnr_retry)
{
	uint8_t ip[TP_MAX];

	cm_sends(1, tenant, ip, eng_cm_make_rep(ip, rnr_retry));
}

void eng_cm_dreq(uint16_t tenant)
{
	uint8_t ip[TP_MAX];

	cm_sends(0, tenant, ip, eng_cm_make_dreq(ip));
}

void eng_cm_connect(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout)
{
	eng_cm_req(tenant, retry, rnr_retry, timeout);
	eng_pair_run(5 * RWY_MS);
	eng_cm_rep(tenant, rnr_retry);
	eng_pair_run(5 * RWY_MS);
}
