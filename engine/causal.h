/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ack mode `causal` (docs/completion.md): what was acknowledged to a local host by any queue pair
 * towards a far host is delivered there before a request that came later. The near gateway names,
 * with the first packet of a message, what other flows of the two hosts have acknowledged and not
 * delivered; the far gateway holds it back until that is delivered (wan_tx_send_after).
 *
 * rs is in the table. A connection joins with its first request. While it has not joined, because
 * the far gateway does not understand order or the connection is in another tunnel than the others
 * of its hosts, its mode is `end` (eng_ack_mode).
 */
#ifndef ENGINE_CAUSAL_H
#define ENGINE_CAUSAL_H

#include "engine/eng.h"

/* rs becomes a member, or stays one, or is none, as its mode and its tunnel are now. */
void eng_causal_join(struct eng_responder *rs, rwy_time now);
/*
 * pkt is about to be taken into custody, or refused. False: there is no memory to say what it waits
 * for, so it must not be accepted.
 */
bool eng_causal_ready(struct eng_responder *rs, const struct roce_pkt *pkt, rwy_time now);
/*
 * The flow and count that must be delivered before this request, which is taken now; after
 * eng_causal_ready. RWY_NO_FLOW: none.
 */
struct rwy_after eng_causal_after(struct eng_responder *rs, const struct roce_pkt *pkt);
/* rs has something in custody; it has nothing any longer, or its flow has ended. */
void eng_causal_busy(struct eng_responder *rs);
void eng_causal_idle(struct eng_responder *rs, rwy_time now);
/* Other connections of the two hosts have something in custody: ACKs go out in beats. */
bool eng_causal_shares(const struct eng_responder *rs);
/*
 * Before ACKs of rs go out. True: they wait for a beat, when eng_causal_poll makes rs dirty. False:
 * the ACKs of this beat are allowed. A beat is the turn in which ACKs of all connections of the two
 * hosts go out, at most once in eng_cfg.causal_beat. What comes after it waits at the far end for
 * what it acknowledged, so a stream needs some time between.
 */
bool eng_causal_defers(struct eng_responder *rs, rwy_time now);
/* The host got an ACK that told it of progress. */
void eng_causal_acked(struct eng_responder *rs, rwy_time now);
/* rs is freed, or its mode is another one. */
void eng_causal_leave(struct eng_responder *rs, rwy_time now);
/* The tunnel for a new connection of these hosts: that of the others, else `tunnel`. */
int eng_causal_tunnel(const struct eng *e, const struct eng_key *k, int tunnel);
/* Call when e->causal_at has come: makes dirty whose ACKs waited. */
void eng_causal_poll(struct eng *e, rwy_time now);

#endif
