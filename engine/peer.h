/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two gateways tell each other of their processes, beside connections: one flow in each
 * direction of a tunnel, opened with the first message.
 *
 * A gateway that dies takes with it what its hosts have ACKs for. The journal tells the next
 * process which connections to ask about (restore.c). But the journal dies with the machine, and a
 * standby has copies in ack mode `site` only. Then two idle hosts would never learn that a request
 * between them is missing. So the far gateway tells the new process of each connection that nobody
 * has claimed GRACE after the restart, by its host's requests or by RESUME: LOST. The new process
 * cannot know what its host has ACKs for, so it ends the connection at both hosts.
 *
 * A process that was drained owes nothing when it ends, and its hosts go on with the next one. It
 * tells that first: SETTLED. If it serves again after all, it promises nothing to hosts until the
 * far gateways know that: SERVING.
 *
 * Thread: the engine's worker.
 */
#ifndef ENGINE_PEER_H
#define ENGINE_PEER_H

#include "engine/eng.h"

/* The other gateway of the tunnel restarted, or another one took its place. */
void eng_peer_restarted(struct eng_tunnel *t, rwy_time now);
/* Tells each far gateway that this process owes nothing when it ends, or that it serves again. */
void eng_peer_tell(struct eng *e, bool settled, rwy_time now);
/* Each far gateway that answers has all that it was told. */
bool eng_peer_told(const struct eng *e);
/* A message of the other gateway. Takes b. */
void eng_peer_message(struct eng_tunnel *t, struct rwy_buf *b, rwy_time now);
/*
 * pkt is a CM message of a remote host. True: a DREQ of a connection that is lost, which must not
 * pass for a good end. The near gateway is told at once, and has some seconds to answer by RESUME.
 */
bool eng_peer_holds_dreq(struct eng_tunnel *t, uint32_t tenant, const struct roce_pkt *pkt, rwy_time now);
/* Opens and closes of the two flows, by wan/ or for a tunnel that is removed. */
size_t eng_peer_open_info(uint8_t *out);
void eng_peer_opened(struct eng_tunnel *t, struct wan_rxflow *rx, rwy_time now);
void eng_peer_end(struct eng_tunnel *t, rwy_time now);
/* Tells what is owed, and of some connections that are LOST. At e->peer_at. */
void eng_peer_step(struct eng *e, rwy_time now);

#endif
