/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of the engine: packets to the LAN, freed buffers, work for the end of the turn, log lines.
 */
#ifndef ENGINE_EMIT_H
#define ENGINE_EMIT_H

#include "engine/eng.h"

/* Puts the side into the list that eng_poll() flushes at the end of the turn. */
void eng_dirty(struct eng_side *side);
/*
 * Sends the packet in b, from its IP header on, to the local host dst. own: b moves to the gateway;
 * else it stays in custody. nh: the side's cache of the next hop, or NULL.
 */
void eng_lan_send(struct eng *e, uint32_t tenant, struct rwy_buf *b, bool own, const struct rwy_ip *dst,
    struct eng_nexthop *nh);
/* Sends a packet that the engine made (ACK, NAK, CNP); the bytes are copied. */
void eng_lan_made(struct eng *e, uint32_t tenant, const uint8_t *bytes, uint32_t len,
    const struct rwy_ip *dst, struct eng_nexthop *nh);
/* A control message in a buffer, the caller's. NULL: no buffer; counted. */
struct rwy_buf *eng_ctrl_buf(struct eng *e, const struct eng_ctrl *c);
/* Frees b and adds 1 to its drop counter. */
void eng_drop(struct eng *e, struct rwy_buf *b, uint64_t *counter);
/* A log line by eng_ops.log; level 0 (error) .. 4 (debug); cut at 255 bytes. */
void eng_log(struct eng *e, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/*
 * Error line of a side that failed, with its error and the command that says what came before: only
 * of a connection that had work, so not often.
 */
void eng_log_failure(struct eng_side *side);
/* Records that the side is forgotten. */
void eng_record_forget(struct eng_side *side, rwy_time now);
/* A log line about a side, with its key and the event `what`. */
void eng_log_side(struct eng *e, int level, const struct eng_side *side, const char *what);

#endif
