/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds-first parser of a RoCEv2 packet, from the IP header to the ICRC. One pass, no copy;
 * afterwards every offset has been checked against the length, and the accessors below need no
 * checks.
 */
#ifndef ROCE_PARSE_H
#define ROCE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/opcode.h"
#include "roce/psn.h"
#include "rwy/err.h"
#include "rwy/ip.h"

#define ROCE_UDP_PORT 4791
#define ROCE_BTH_LEN  12
#define ROCE_ICRC_LEN 4

/* Reasons why a packet does not parse. X(enumerator, counter name, sentence) */
#define ROCE_PARSE_REASONS(X)                                                                                \
	X(ROCE_PARSE_OK, "ok", "parsed")                                                                     \
	X(ROCE_PARSE_NOT_ROCE, "not_roce", "an IP packet that is not UDP port 4791; not an error")           \
	X(ROCE_PARSE_TRUNCATED, "truncated", "shorter than its headers say")                                 \
	X(ROCE_PARSE_BAD_IP, "bad_ip",                                                                       \
	    "IP version, header length, total length or header checksum is wrong; an IPv6 packet has an "    \
	    "IPv4-mapped address, or RoCEv2 behind extension headers")                                       \
	X(ROCE_PARSE_FRAGMENT, "ip_fragment",                                                                \
	    "the first fragment of a RoCEv2 packet: RoCEv2 is never fragmented")                             \
	X(ROCE_PARSE_BAD_UDP, "bad_udp_length", "the UDP length does not match the IP length")               \
	X(ROCE_PARSE_BAD_BTH, "bad_bth", "BTH transport header version is not 0 (IBA C9-6)")                 \
	X(ROCE_PARSE_UNKNOWN_OPCODE, "unknown_opcode", "BTH opcode is not in the table (IBA table 38)")      \
	X(ROCE_PARSE_BAD_LENGTH, "bad_length", "payload or pad count does not fit the opcode")

enum roce_parse_reason {
#define X(e, n, s) e,
	ROCE_PARSE_REASONS(X)
#undef X
	    ROCE_PARSE_REASON_COUNT
};

struct roce_pkt {
	uint8_t *ip;      /* start of the IP header */
	uint8_t *bth;     /* start of the BTH */
	uint8_t *ext;     /* extension headers, bth + 12 */
	uint8_t *payload; /* after the extension headers */
	uint8_t *icrc;    /* 4 bytes, little-endian CRC */
	const struct roce_opinfo *info;
	struct rwy_ip src, dst;
	uint32_t len;         /* whole packet from the IP header to the end of the ICRC */
	uint32_t payload_len; /* without pad */
	uint32_t dqpn;
	roce_psn psn;
	uint16_t pkey;
	uint16_t sport; /* UDP source port */
	uint8_t opcode;
	uint8_t ip_hlen; /* 20 (+options) or 40 */
	uint8_t ecn;     /* IP ECN bits, 0..3 */
	uint8_t pad;     /* 0..3 */
	bool is6;
	bool ack_req;
	bool solicited;
	bool migreq;
	bool fecn, becn;
};

/*
 * Parses `len` bytes at `ip`. Bytes behind the IP total length (Ethernet padding) are ignored;
 * pkt->len is the IP length. Returns ROCE_PARSE_OK and fills *pkt, or the reason; *pkt's addresses
 * are valid for every reason except TRUNCATED and BAD_IP. With UNKNOWN_OPCODE *pkt is filled, too:
 * the extension headers count as payload, whose length is not checked, and info is the opcode's
 * empty row. Does not check the ICRC (roce/icrc.h). Checks the IPv4 header checksum.
 */
enum roce_parse_reason roce_parse(uint8_t *ip, uint32_t len, struct roce_pkt *pkt);

/* The IPv4 TOS or IPv6 traffic class of a parsed packet, ECN bits included. */
static inline uint8_t roce_pkt_tos(const struct roce_pkt *pkt)
{
	return pkt->is6 ? (uint8_t)(pkt->ip[0] << 4 | pkt->ip[1] >> 4) : pkt->ip[1];
}

/*
 * Finds the parts of a packet that roce_parse() accepted before and that has not changed since.
 * Sets ip, bth, ext, icrc, len, ip_hlen and is6, nothing else, and checks nothing.
 */
void roce_parse_offsets(uint8_t *ip, struct roce_pkt *pkt);

/*
 * Accessors of extension headers; each asserts nothing and is valid only when pkt->info->flags says
 * the header is there.
 */
uint64_t roce_reth_va(const struct roce_pkt *p);
uint32_t roce_reth_rkey(const struct roce_pkt *p);
uint32_t roce_reth_len(const struct roce_pkt *p); /* DMA length in bytes */
uint8_t roce_aeth_syndrome(const struct roce_pkt *p);
roce_msn roce_aeth_msn(const struct roce_pkt *p);
/* ATOMIC ACK: the value before the operation. */
uint64_t roce_atomic_original(const struct roce_pkt *p);

/* AETH syndrome (IBA 9.7.5.1, tables 44-46): type in bits 6:5, value in bits 4:0. */
enum roce_aeth_type { ROCE_AETH_ACK = 0, ROCE_AETH_RNR = 1, ROCE_AETH_RSVD = 2, ROCE_AETH_NAK = 3 };
enum roce_nak {
	ROCE_NAK_PSN_SEQ = 0,    /* PSN sequence error */
	ROCE_NAK_INV_REQ = 1,    /* invalid request */
	ROCE_NAK_REM_ACCESS = 2, /* remote access error */
	ROCE_NAK_REM_OP = 3,     /* remote operational error */
	ROCE_NAK_INV_RD = 4,     /* invalid RD request */
};
#define ROCE_AETH_CREDIT_INVALID 31 /* no end-to-end credits (IBA 9.7.7.2.4) */

static inline enum roce_aeth_type roce_aeth_type(uint8_t syndrome)
{
	return (enum roce_aeth_type)((syndrome >> 5) & 3);
}
static inline uint8_t roce_aeth_value(uint8_t syndrome)
{
	return syndrome & 0x1f;
}
static inline uint8_t roce_aeth_make(enum roce_aeth_type type, uint8_t value)
{
	return (uint8_t)(type << 5 | value);
}

/* Returns the number of response packets of a READ of `len` bytes at path MTU `pmtu` (256..4096); a
 * READ of length 0 has one. */
static inline uint32_t roce_read_packets(uint32_t len, uint32_t pmtu)
{
	uint32_t shift = 31u - (uint32_t)__builtin_clz(pmtu);

	return len ? (uint32_t)(((uint64_t)len + pmtu - 1) >> shift) : 1;
}

/* Returns the time of an RNR NAK's timer value (IBA table 45), ns: 0 -> 655.36 ms, 1 -> 10 us, ...
 * 31 -> 491.52 ms. */
uint64_t roce_rnr_time(uint8_t value);

#endif
