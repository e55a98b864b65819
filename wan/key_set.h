/* SPDX-License-Identifier: Apache-2.0 */
/* Key sets of a tunnel, for keys_dgram.c. */
#ifndef WAN_KEY_SET_H
#define WAN_KEY_SET_H

#include "rwy/buf.h"
#include "wan/keys.h"

/* The set that a process with this epoch has. NULL: none that is known. The newest is the used one,
 * or else the last one that was put aside. */
struct wan_key_set *wan_key_set_for(struct wan_keys *k, uint64_t epoch);
/*
 * The peer has sealed datagram b with the set; b is open, h is its header. It changes nothing for
 * the set that both use, unless that is reserved or its process is not known yet.
 */
void wan_key_set_heard(struct wan_tunnel *t, struct wan_key_set *s, const struct rwy_buf *b,
    const struct wan_pkt *h, rwy_time now);

#endif
