/* SPDX-License-Identifier: Apache-2.0 */
/* One path of a tunnel without a peer: the test sends datagrams on it and acknowledges them. */
#ifndef TESTS_WAN_ONE_PATH_H
#define TESTS_WAN_ONE_PATH_H

#include "wan/tunnel.h"

/* Makes a path as after the handshake, with room for so many datagrams in flight (a power of two).
 * wan_free(p->t) frees it. */
struct wan_path *wan_one_path(uint32_t tx_pkts_max, rwy_time now);
/* Sends 1000 bytes that elicit an ACK. Returns the packet number. */
uint64_t wan_one_send(struct wan_path *p, rwy_time now);
/* Acknowledges [lo, hi]. */
void wan_one_ack(struct wan_path *p, uint64_t lo, uint64_t hi, rwy_time now);
enum wan_sent_state wan_one_state(const struct wan_path *p, uint64_t pn);

#endif
