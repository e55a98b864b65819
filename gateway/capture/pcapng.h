/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of pcapng (draft-ietf-opsawg-pcapng), as this gateway writes them, into a buffer. libpcap
 * writes no comments, packet numbers or drop counts; it reads this. No I/O.
 */
#ifndef GATEWAY_CAPTURE_PCAPNG_H
#define GATEWAY_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that wait to be written. A block is added as a whole, or not at all. */
struct gw_cap_out {
	uint8_t *data;
	size_t len, max;
};

/* Most bytes that a packet's block has beside the packet and its comment. */
#define GW_CAP_EPB_EXTRA 96

/* Each returns false if the buffer has no room. Times are UTC in ns. Comments: at most 65535
 * bytes. */

/* Section header. comment: texts up to a NULL. */
bool gw_cap_put_section(struct gw_cap_out *o, const char *program, const char *const *comment);
/* Interface description, Ethernet; interfaces are numbered from 0 in their order. snap: most bytes
 * of a packet. */
bool gw_cap_put_interface(struct gw_cap_out *o, const char *name, const char *text, uint32_t snap);
struct gw_cap_epb {
	uint32_t interface;
	bool inbound;
	uint64_t time;
	uint32_t len, wire_len; /* bytes in the capture, and of the packet */
	uint64_t id;            /* epb_packetid; 0: none */
	uint64_t dropped;       /* packets lost on this interface since its last one */
	const uint8_t *data;
	const char *comment; /* of comment_len bytes; 0: none */
	size_t comment_len;
};
bool gw_cap_put_packet(struct gw_cap_out *o, const struct gw_cap_epb *p);
/* Interface statistics: packets that the filter took, and of these, what is missing. */
bool gw_cap_put_statistics(
    struct gw_cap_out *o, uint32_t interface, uint64_t time, uint64_t taken, uint64_t lost);

#endif
