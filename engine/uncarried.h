/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCE packets that no gateway carries: FLUSH, ATOMIC WRITE, XRC, RD, a manufacturer's own
 * transport, reserved opcodes. docs/what-crosses.md has the table.
 */
#ifndef ENGINE_UNCARRIED_H
#define ENGINE_UNCARRIED_H

#include "engine/eng.h"

/*
 * Logs the host, the operation and what became of its packet, at most one line a second for a group
 * of hosts. pkt: parsed, also with UNKNOWN_OPCODE. done: static text.
 */
void eng_uncarried_tell(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, const char *done, rwy_time now);
/* Drops b, which is pkt, under the counter of its transport; logs. */
void eng_uncarried_drop(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
/*
 * Takes b, an XRC packet. If CM announced its connection and this is the first request, the host
 * gets NAK invalid request: nothing was accepted before, so no state is needed.
 */
void eng_uncarried_xrc(
    struct eng *e, uint32_t tenant, const struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);

#endif
