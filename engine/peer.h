/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways tell each other of their processes, beside connections: by one flow in each
 * direction of a tunnel, opened with the first message (ENG_OPEN_PEER, msg.h).
 *
 * A gateway that dies takes with it what its hosts have ACKs for. The journal tells the next
 * process which connections to ask about (restore.c). But the journal dies with the machine, and a
 * standby has copies in ack mode `site` only. Then two idle hosts would never learn that a request
 * between them is missing. So the far gateway tells the new process of each connection that nobody
 * has claimed five seconds after the restart, by its host's requests or by RESUME: LOST. A process
 * answers KNOWN if it has a whole journal, knows the connection, or promises nothing early. So does
 * a standby that had everything when it took over: it knows each connection of mode `site` whose
 * host has an ACK. Any other one cannot know what its host has ACKs for, and ends the connection at
 * both hosts. Without an answer the far gateway tells again, for a minute.
 *
 * A process that was drained owes nothing when it ends, and its hosts go on with the next one. It
 * tells that first: SETTLED. If it serves again after all, it promises nothing to hosts until the
 * far gateway of their tunnel knows that: SERVING.
 *
 * Thread: the engine's worker.
 */
#ifndef ENGINE_PEER_H
#define ENGINE_PEER_H

#include "engine/eng.h"

/*
 * The other gateway of the tunnel restarted, or another one took its place. All flows of the
 * process before have ended by now (wan_ops.state).
 */
void eng_peer_restarted(struct eng_tunnel *t, rwy_time now);
/* The tunnel is up: what waits for it goes on. */
void eng_peer_up(struct eng_tunnel *t, rwy_time now);
/*
 * Tells each far gateway that this process owes nothing when it ends, or that it serves again,
 * instead of what was to be told before. One that is silent, or for which there is no buffer, is
 * told later.
 */
void eng_peer_tell(struct eng *e, bool settled, rwy_time now);
/* Each far gateway that answers has what it was told. Silent ones do not count. */
bool eng_peer_told(const struct eng *e);
/* Logs each tunnel whose far gateway does not have what it was told. */
void eng_peer_log_untold(struct eng *e);
/* A message of the other gateway. Takes b. */
void eng_peer_message(struct eng_tunnel *t, struct rwy_buf *b, rwy_time now);
/*
 * pkt is a CM message of a remote host, which the other gateway's process `epoch` carried, perhaps
 * to another worker; `tenant` is an index. True: a DREQ of a connection that may be lost, which
 * must not pass for a good end: the caller drops it. The near gateway is told at once, and again
 * until it answers, for a minute. True also while the worker here knows another process than
 * `epoch`: what the one before had acknowledged may be lost.
 */
bool eng_peer_holds_dreq(
    struct eng_tunnel *t, uint32_t tenant, const struct roce_pkt *pkt, uint64_t epoch, rwy_time now);
/* Tells what is owed, and of some connections that are lost. At e->peer_at. */
void eng_peer_step(struct eng *e, rwy_time now);

/* --- the two flows --- */
/* The open information of ours: at most WAN_OPEN_MAX bytes. Returns their number. */
size_t eng_peer_open_info(uint8_t *out);
/* The other gateway has opened its flow. It replaces an earlier one. */
void eng_peer_opened(struct eng_tunnel *t, struct wan_rxflow *rx, rwy_time now);
/* The other gateway has a message of ours. */
void eng_peer_delivered(struct eng_tunnel *t);
/* Our flow is gone: memory was short here, or the other gateway refused it: it has none, or is too
 * old to know the flow. */
void eng_peer_reset(struct eng_tunnel *t, bool refused, rwy_time now);
/* Ends both flows, if they are there. The tunnel is being removed. */
void eng_peer_end(struct eng_tunnel *t, rwy_time now);

#endif
