/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel on a reliable carrier: TCP or QUIC connections, or RDMA queue pairs. Session, custody
 * and flows stay the same; only the transport of datagrams changes, invisibly to the engine.
 * wan_poll returns such datagrams with wan_tx.stream set; record.h has their framing in the byte
 * stream.
 *
 * The carrier repairs losses and finds its rate by itself. Therefore:
 * - The window is the carrier's room (wan_stream_room); there is no pacing. Congestion control and
 *   the path's RTT, loss and ECN state are frozen meanwhile.
 * - A later arrival or a silence is no sign of loss: several connections overtake each other, and a
 *   stalled one resumes. A datagram counts as lost only if it was in transit when the carrier broke
 *   (wan_stream_lost), or is unacknowledged for ten seconds, so that its entry becomes free.
 * - There are no FEC repairs, no second copies, no ECN.
 * - Its datagrams have packet numbers of their own (path 15): a sequence without losses, of which
 *   all is acknowledged eventually.
 * - A gap in these numbers triggers no immediate ACK, and a datagram far behind is not taken for a
 *   duplicate.
 *
 * The receiver takes datagrams from both carriers at any time: each end changes on its own, and
 * during the change both are in use. Datagrams sent natively before the change are acknowledged
 * natively; their losses are retransmitted by the carrier.
 *
 * Thread: the tunnel's (wan.h).
 */
#ifndef WAN_STREAM_H
#define WAN_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/buf.h"
#include "rwy/err.h"
#include "rwy/time.h"

struct wan_tunnel;

/* Sends by the carrier from now on, or natively again. The first datagram waits for room. What the
 * carrier already has must still be delivered, or wan_stream_lost called. RWY_ENOMEM: nothing
 * changed; possible at the first call only. */
RWY_MUST_CHECK int wan_stream_use(struct wan_tunnel *t, bool on, rwy_time now);
/* Sets the carrier's room in datagrams and bytes; replaces the former value. wan_poll subtracts
 * what it returns, so the carrier never drops any. One datagram may exceed the bytes. */
void wan_stream_room(struct wan_tunnel *t, uint32_t datagrams, uint64_t bytes);
/* The carrier broke: sends natively from now on, and retransmits what the carrier had and nobody
 * acknowledged. */
void wan_stream_lost(struct wan_tunnel *t, rwy_time now);
/* It sends by the carrier at present (wan_stream_use); detours do not count. */
bool wan_stream_on(const struct wan_tunnel *t);
/*
 * Retransmission detour: while the tunnel sends natively, what the native path has lost `after`
 * times goes by the carrier, which the tunnel must be told the room of; new data and earlier
 * repeats stay native. 0: off. What finds no room goes natively, and so does what is not
 * acknowledged within about four native probe timeouts, at least 20 ms; then the carrier is asked
 * once a second, and carries no data until it answers in time. Has no effect while wan_stream_use
 * is on, and ends with wan_stream_lost. RWY_EINVAL: more than WAN_DETOUR_AFTER_MAX; RWY_ENOMEM:
 * nothing changed; possible at the first call only.
 */
#define WAN_DETOUR_AFTER_MAX 8
RWY_MUST_CHECK int wan_stream_detour(struct wan_tunnel *t, unsigned after, rwy_time now);
unsigned wan_stream_detours(const struct wan_tunnel *t); /* the present `after` */
/* Bytes given to the carrier and not acknowledged by the peer. */
uint64_t wan_stream_inflight(const struct wan_tunnel *t);
/* The recent rate of acknowledged bytes a second; 0: unknown. */
uint64_t wan_stream_rate(const struct wan_tunnel *t);
/* Processes one datagram that the tunnel's peer sent by the carrier. Takes ownership of b. */
void wan_recv_stream(struct wan_tunnel *t, struct rwy_buf *b, rwy_time now);

#endif
