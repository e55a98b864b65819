/* SPDX-License-Identifier: Apache-2.0 */
/* CM messages for tests, with each field at its offset of IBA 12.6 as a number: independent of
 * roce/wire.h. */
#ifndef TESTS_LIB_ROCE_CM_PKT_H
#define TESTS_LIB_ROCE_CM_PKT_H

#include "tests/lib/roce_cm_mad.h"
#include "tests/lib/roce_pkt.h"

/* The MAD as a packet: UD SEND ONLY to QP1, DETH, ICRC. Returns its length. */
static inline uint32_t cp_packet(uint8_t *out, const uint8_t *mad, bool is6, uint32_t mad_len)
{
	static const uint8_t deth[8] = {0x80, 0x01, 0, 0, 0, 0, 0, 1};
	struct tp t = {.opcode = 0x64, .is6 = is6, .ttl = 64, .ext = deth, .ext_len = 8, .dqpn = 1};
	uint32_t len, crc;

	t.payload_len = mad_len;
	len = tp_make(out, &t);
	memcpy(out + len - 4 - mad_len, mad, mad_len);
	crc = tp_icrc(out, len);
	for (unsigned i = 0; i < 4; i++)
		out[len - 4 + i] = (uint8_t)(crc >> (8 * i));
	return len;
}

#endif
