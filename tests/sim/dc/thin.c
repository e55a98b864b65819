/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces roce/'s ICRC in a thin run (linker option --wrap): packets whose payload does not exist
 * have none. Small packets, and all packets of a full run, use roce/'s own.
 */
#include "roce/icrc.h"
#include "tests/sim/dc/bytes.h"

bool __real_roce_icrc_ok(const struct roce_pkt *pkt);
bool __wrap_roce_icrc_ok(const struct roce_pkt *pkt);
uint32_t __real_roce_content_crc(const struct roce_pkt *pkt);
uint32_t __wrap_roce_content_crc(const struct roce_pkt *pkt);
uint32_t __real_roce_icrc_extend(uint32_t crc, const struct roce_pkt *pkt);
uint32_t __wrap_roce_icrc_extend(uint32_t crc, const struct roce_pkt *pkt);
void __real_roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req);
void __wrap_roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req);

bool __wrap_roce_icrc_ok(const struct roce_pkt *pkt)
{
	return (dc_thin && pkt->len > DC_THIN_BYTES) || __real_roce_icrc_ok(pkt);
}

void __wrap_roce_icrc_set_ackreq(struct roce_pkt *pkt, bool ack_req)
{
	if (!dc_thin || pkt->len <= DC_THIN_BYTES) {
		__real_roce_icrc_set_ackreq(pkt, ack_req);
		return;
	}
	pkt->bth[8] = (uint8_t)((pkt->bth[8] & 0x7f) | (ack_req ? 0x80 : 0));
	pkt->ack_req = ack_req;
}

/* It covers the bytes that exist. */
uint32_t __wrap_roce_content_crc(const struct roce_pkt *pkt)
{
	struct roce_pkt p = *pkt;

	if (dc_thin && pkt->len > DC_THIN_BYTES) {
		p.icrc = p.payload + DC_THIN_TAG;
		p.payload_len = DC_THIN_TAG;
	}
	return __real_roce_content_crc(&p);
}

/* A thin datagram's checksum covers its header only (tests/sim/wan/seal.c). */
uint32_t __wrap_roce_icrc_extend(uint32_t crc, const struct roce_pkt *pkt)
{
	return dc_thin ? crc : __real_roce_icrc_extend(crc, pkt);
}
