/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel on a reliable carrier: kernel TCP connections now, QUIC streams later. It is the same tunnel: same
 * session, same custody, same flows; only the way of its datagrams is another one, and nobody above
 * sees when it changes. Datagrams come out of wan_poll with wan_tx.stream set; how they are laid into a byte
 * stream is record.h.
 *
 * Differences, because the carrier repairs losses and finds its rate by itself:
 * - The window is the carrier's: as much as it has room for (wan_stream_room), at once, without pacing.
 *   Congestion control and the path's RTT, loss and ECN state stay as they were; they hear nothing of it.
 * - Nothing is lost because something later arrived, or because nothing came for a while. Several connections
 *   overtake each other, and one that stalls goes on. Lost is what was under way when the carrier broke
 *   (wan_stream_lost), and, so that no place is kept for ever, what was not acknowledged for ten seconds.
 * - No repairs (forward error correction), no second copies, no ECN.
 * - Its datagrams have packet numbers of their own (path 15): a sequence without losses, of which everything
 * is acknowledged sooner or later.
 * - A gap in them hastens no acknowledgement, and a datagram from far behind is no duplicate.
 *
 * Receiving takes datagrams from both at any time: each end changes by itself, and during the change both are
 * in use. What went natively before is repaired natively; what is lost of it goes again by the carrier.
 *
 * Thread: as the tunnel's (wan.h).
 */
#ifndef WAN_STREAM_H
#define WAN_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/time.h"

struct wan_tunnel;

/* From now on datagrams go by the carrier, or natively again. The first goes when there is room. What the
 * carrier already has is still on its way: it must be delivered, or wan_stream_lost called.
 * RWY_ENOMEM: nothing changed; only the first time. */
RWY_MUST_CHECK int wan_stream_use(struct wan_tunnel *t, bool on, rwy_time now);
/* So much may be handed to the carrier now, in place of what was said before: datagrams and bytes. What comes
 * out of wan_poll is taken off; the carrier never has to drop any. Bytes may be exceeded by one datagram. */
void wan_stream_room(struct wan_tunnel *t, uint32_t datagrams, uint64_t bytes);
/* The carrier broke: natively from now on, and what it was given and nobody acknowledged goes again. */
void wan_stream_lost(struct wan_tunnel *t, rwy_time now);
bool wan_stream_on(const struct wan_tunnel *t);
/* Bytes that the carrier was given and the peer has not acknowledged. */
uint64_t wan_stream_inflight(const struct wan_tunnel *t);
/* Bytes a second that the peer acknowledged of it of late; 0: not known. */
uint64_t wan_stream_rate(const struct wan_tunnel *t);
/* One datagram that came by the carrier from the tunnel's peer. Takes ownership of b. */
void wan_recv_stream(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now);

#endif
