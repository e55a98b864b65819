/* SPDX-License-Identifier: Apache-2.0 */
/* Phases of the keys of one direction, for keys.c and keys_dgram.c. */
#ifndef WAN_KEY_PHASE_H
#define WAN_KEY_PHASE_H

#include "wan/keys.h"

#define WAN_KEY_PHASE 1u /* bit of the header's flags */

/* Makes a key and its IV of a secret. RWY_ENOMEM, or what the cipher's table returns. */
RWY_MUST_CHECK int wan_key_make(
    const struct wan_tunnel *t, struct wan_key *key, const struct aead_secret *secret);
/* Notes the packet numbers at which a phase of the sender begins. */
void wan_key_tx_begin(const struct wan_tunnel *t, struct wan_key_tx *x);
/* Forgets the packet numbers of the receiver's phase before: another one begins. */
void wan_key_rx_begin(struct wan_key_rx *x);
/* Makes the receiver's key of the phase after this one. As wan_key_make(). */
RWY_MUST_CHECK int wan_key_rx_next(struct wan_tunnel *t, struct wan_key_rx *x);
/* A datagram of the receiver's next phase came. The key before is kept for `keep`. */
void wan_key_rx_go_on(struct wan_tunnel *t, struct wan_key_rx *x, rwy_dur keep, rwy_time now);
/* Returns for how long a datagram of a measured path may still be under way. */
rwy_dur wan_key_under_way(const struct wan_tunnel *t);
/* A datagram of the sender's phase was acknowledged: the peer has its key. */
bool wan_key_phase_arrived(const struct wan_tunnel *t, const struct wan_key_tx *x);
/* Returns when the sender's phase ends, if it has arrived by then. */
rwy_time wan_key_phase_end(const struct wan_tunnel *t, const struct wan_key_tx *x);
/* Begins the sender's next phase. Without memory the phase goes on, and it is tried again. */
void wan_key_phase_next(struct wan_tunnel *t, struct wan_key_tx *x, rwy_time now);

#endif
