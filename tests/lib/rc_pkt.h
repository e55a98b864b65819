/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RC packets for tests and model hosts: IPv4, UDP, BTH, extension headers, payload, pad, ICRC. It
 * makes whatever the caller asks for, also packets that no host sends.
 */
#ifndef TESTS_LIB_RC_PKT_H
#define TESTS_LIB_RC_PKT_H

#include "roce/parse.h"

#define RC_PKT_MAX 4224

struct rc_mk {
	uint8_t opcode;
	roce_psn psn;
	bool ack_req;
	uint8_t src[4], dst[4]; /* zero: 10.0.0.1 -> 10.0.0.2 */
	uint32_t dqpn;
	uint32_t qkey, src_qpn; /* DETH */
	uint64_t va;            /* RETH, AtomicETH */
	uint32_t rkey, len;
	uint64_t swap_add, compare;
	uint8_t syndrome; /* AETH */
	roce_msn msn;
	uint64_t original; /* AtomicAckETH */
	uint32_t imm;      /* ImmDt, IETH */
	const uint8_t *payload;
	uint32_t payload_len; /* payload NULL: so many zero bytes */
};

/* Writes the packet to out[RC_PKT_MAX]. Returns its length. */
uint32_t rc_pkt_make(uint8_t *out, const struct rc_mk *m);

/* Parses a packet; true if it is RoCE with a good ICRC. */
bool rc_pkt_read(uint8_t *bytes, uint32_t len, struct roce_pkt *pkt);

/* Prints opcode, PSN, payload length and AETH on standard error, without a newline. */
void rc_pkt_print(const uint8_t *bytes, uint32_t len);

#endif
