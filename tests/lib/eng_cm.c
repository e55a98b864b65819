/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/eng_cm.h"

#include "tests/lib/roce_cm_pkt.h"
#include "tests/lib/eng_pair.h"
#include "tests/lib/heap_buf.h"

#define ROOM 320

static void cm_sends(unsigned from, uint16_t tenant, const uint8_t *mad)
{
	struct rwy_buf *b = heap_buf_alloc(&site[from].bufs, ROOM, TP_MAX);
	uint32_t crc;

	b->len = cp_packet(b->data, mad, false, 256);
	tp_be(b->data + 12, from ? 0x0a020003 : 0x0a010003, 4);
	tp_be(b->data + 16, from ? 0x0a010003 : 0x0a020003, 4);
	tp_fix_csum(b->data);
	crc = tp_icrc(b->data, b->len);
	for (unsigned i = 0; i < 4; i++)
		b->data[b->len - 4 + i] = (uint8_t)(crc >> (8 * i));
	eng_tenant_rx(site[from].e, &b, &tenant, 1, eng_now);
}

void eng_cm_req(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout)
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
	cm_sends(0, tenant, mad);
}

void eng_cm_rep(uint16_t tenant, uint8_t rnr_retry)
{
	const struct cp_rep r = {.tid = 7,
	    .comm = CM_COMM_B,
	    .remote = CM_COMM_A,
	    .qpn = CM_QPN_B,
	    .psn = CM_PSN_A,
	    .rnr = rnr_retry};
	uint8_t mad[256];

	cp_make_rep(mad, &r);
	cm_sends(1, tenant, mad);
}

void eng_cm_dreq(uint16_t tenant)
{
	uint8_t mad[256];

	cp_make_dreq(mad, 9, CM_COMM_A, CM_COMM_B, CM_QPN_B);
	cm_sends(0, tenant, mad);
}

void eng_cm_connect(uint16_t tenant, uint8_t retry, uint8_t rnr_retry, uint8_t timeout)
{
	eng_cm_req(tenant, retry, rnr_retry, timeout);
	eng_pair_run(5 * RWY_MS);
	eng_cm_rep(tenant, rnr_retry);
	eng_pair_run(5 * RWY_MS);
}
