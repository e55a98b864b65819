/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagram checksum of a thin run, put in place of wan/'s own by the linker (--wrap): over the header
 * alone, because that is all a thin datagram carries for certain. A full run uses wan/'s own.
 */
#include "tests/sim/wan/run.h"
#include "wan/wan_pkt.h"

bool seal_thin;
uint16_t seal_hdr_len;

void __real_wan_pkt_seal(uint8_t *hdr, size_t hdr_len, const uint8_t *payload, size_t len);
bool __real_wan_pkt_open(uint8_t *p, size_t len);
void __wrap_wan_pkt_seal(uint8_t *hdr, size_t hdr_len, const uint8_t *payload, size_t len);
bool __wrap_wan_pkt_open(uint8_t *p, size_t len);

void __wrap_wan_pkt_seal(uint8_t *hdr, size_t hdr_len, const uint8_t *payload, size_t len)
{
	__real_wan_pkt_seal(hdr, hdr_len, payload, seal_thin ? 0 : len);
}

bool __wrap_wan_pkt_open(uint8_t *p, size_t len)
{
	return __real_wan_pkt_open(p, seal_thin ? seal_hdr_len : len);
}
