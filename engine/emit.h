/* SPDX-License-Identifier: Apache-2.0 */
/* What leaves the engine: packets to the LAN, buffers that go back, work for the end of the turn, log lines.
 */
#ifndef ENGINE_EMIT_H
#define ENGINE_EMIT_H

#include "engine/eng.h"

/* The side is flushed at the end of the turn. */
void eng_dirty(struct eng_side *side);
/* A packet in a buffer; own: its ownership moves. nh: the side's next hop, or NULL. */
void eng_lan_send(struct eng *e, uint32_t tenant, struct rwy_buf *b, bool own, const struct rwy_ip *dst,
    struct eng_nexthop *nh);
/* A packet that was made here; copied. */
void eng_lan_made(struct eng *e, uint32_t tenant, const uint8_t *bytes, uint32_t len,
    const struct rwy_ip *dst, struct eng_nexthop *nh);
/* A control message ready for a flow; NULL: no buffer, counted. */
struct rwy_buf *eng_ctrl_buf(struct eng *e, const struct eng_ctrl *c);
/* Frees b and counts it. */
void eng_drop(struct eng *e, struct rwy_buf *b, uint64_t *counter);
void eng_log(struct eng *e, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void eng_log_side(struct eng *e, int level, const struct eng_side *side, const char *what);

#endif
