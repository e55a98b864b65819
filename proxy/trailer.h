/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private data of a REQ from rdma_cm: the IP-CM header (IBA annex A11), the program's own bytes,
 * and, when librwyredirect made the REQ, a trailer with the target at the very end. The relay
 * clears the trailer, so that the target finds what the program sent, padded with zeros as always.
 *
 * Trailer, big endian; the last 16 (IPv4) or 28 (IPv6) of the 92 bytes:
 *
 *   0 |                     magic "RwyT" (4)                          |
 *   4 | version 1     | family 4 or 6 |             port              |
 *   8 |                     address (4 or 16)                         |
 *     |        CRC-32 of the bytes before, from the magic on (4)      |
 *
 * It is no credential: the access list of the relay decides.
 */
#ifndef PROXY_TRAILER_H
#define PROXY_TRAILER_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"

#define PROXY_PRIVATE_LEN 92 /* of a REQ (IBA 12.7.35) */
#define PROXY_IPCM_LEN    36
#define PROXY_TRAILER4    16
#define PROXY_TRAILER6    28

struct proxy_target {
	struct rwy_ip addr;
	uint16_t port;
};

/* Length of the trailer for this target. */
unsigned proxy_trailer_len(const struct proxy_target *t);
/* Writes it to out[PROXY_TRAILER6]. Returns its length. */
unsigned proxy_trailer_write(uint8_t *out, const struct proxy_target *t);
/*
 * Reads the trailer at the end of private_data[PROXY_PRIVATE_LEN]. Returns its length; 0: there is
 * none, or it is malformed.
 */
unsigned proxy_trailer_read(const uint8_t *private_data, struct proxy_target *t);

/* Whether the service ID is one of RDMA's IP port space (annex A11.4). */
static inline bool proxy_service_is_ip(uint64_t service_id)
{
	return service_id >> 24 == 1;
}

/* Whether the private data begin with an IP-CM header of this family. */
bool proxy_ipcm_is(const uint8_t *private_data, bool is6);
/* Offsets of the addresses in it; IPv4 takes the last 4 of 16 bytes. */
#define PROXY_IPCM_PORT 2
#define PROXY_IPCM_SRC  4
#define PROXY_IPCM_DST  20

#endif
