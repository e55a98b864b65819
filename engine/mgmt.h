/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CM messages over the WAN: the management flow of a tunnel, and the DREQ that waits behind the
 * requests of its connection.
 */
#ifndef ENGINE_MGMT_H
#define ENGINE_MGMT_H

#include "engine/responder.h"

/* Whether one more CM message of this local host may wait for the tunnel. */
bool eng_mgmt_room(const struct eng *e, unsigned tunnel, uint32_t tenant, const struct rwy_ip *host);
/*
 * Sends the CM message in b, of this local host, in the tunnel's management flow. The caller has
 * asked eng_mgmt_room. Takes b.
 */
void eng_mgmt_send(struct eng *e, unsigned tunnel, uint32_t tenant, const struct rwy_ip *host,
    struct rwy_buf *b, rwy_time now);
/*
 * The open information of that flow: at most WAN_OPEN_MAX bytes. workers: eng_open.workers. Returns
 * their number.
 */
size_t eng_mgmt_open_info(uint8_t workers, uint8_t *out);
/* b has left the management flow: the far gateway has delivered it. */
void eng_mgmt_delivered(struct eng_tunnel *t, const struct rwy_buf *b);
/* The management flow is gone, with all that was in it. */
void eng_mgmt_ended(struct eng_tunnel *t);
/*
 * b is a DREQ of the host of rs, whose requests are in custody: it waits. A repeated one is
 * dropped. Takes b.
 */
void eng_dreq_hold(struct eng_responder *rs, struct rwy_buf *b, rwy_time now);
/* Sends the DREQ in b, of host k->src, in the management flow, or drops it for want of room. */
void eng_dreq_send(struct eng *e, const struct eng_key *k, struct rwy_buf *b, rwy_time now);
/* Sends the DREQ that waits if nothing keeps it. At the end of a turn. */
void eng_dreq_pass(struct eng_responder *rs, rwy_time now);
/*
 * Sends a DREQ whose far host takes nothing, although the tunnel is up: it may wait for just this
 * DREQ. Call for each DREQ that waits, some times a second.
 */
void eng_dreq_look(struct eng_responder *rs, rwy_time now);
/* Drops the DREQ that waits, if there is one: its connection ends. */
void eng_dreq_drop(struct eng_responder *rs);

#endif
