/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one packet anonymous in place. What is not understood is not let through. One thread. */
#ifndef TOOLS_ANONYMISE_PACKET_H
#define TOOLS_ANONYMISE_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/anonymise/map.h"

/*
 * `len` bytes from the IP header on, as on the wire; of these the first `captured` are known and
 * the rest is zero. True: it is a RoCEv2 packet, and addresses, source port, QPNs, R_Keys, virtual
 * addresses and CM's identifiers are replaced; payload, immediate and atomic data, Q_Keys, IP
 * options, flow label and CM private data are gone; checksum and ICRC are made anew (a wrong ICRC
 * stays wrong). False: it is none or does not parse; the bytes must not be used.
 */
bool anon_packet(const struct anon_key *key, uint8_t *ip, uint32_t len, uint32_t captured);

#endif
