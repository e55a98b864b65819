/* SPDX-License-Identifier: Apache-2.0 */
/* Which two flows are one connection (pair.c), and CM messages that say so (cm.c). */
#ifndef ENGINE_PAIR_H
#define ENGINE_PAIR_H

#include "engine/eng.h"

/* A flow from `remote` to `local` waits for the host's first answer. */
bool eng_learn_waits(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local);
void eng_unpair(struct eng_far *f); /* f->near is set */
void eng_pair_halves(struct eng_near *n, struct eng_far *f, enum eng_learned how);
void eng_learn_wait(
    struct eng_far *f, rwy_time now); /* an unpaired flow has its first packet: queue it for its turn */
void eng_learn_leave(struct eng_far *f, rwy_time now); /* paired, failed or freed */
struct eng_far *eng_learn_owner(struct eng *e, uint32_t tenant, const struct eng_near *n,
    const struct roce_pkt *pkt, rwy_time now); /* whose answer this response must be, or NULL */
void eng_learn_tick(struct eng *e, rwy_time now);
rwy_time eng_learn_next(const struct eng *e);
bool eng_learn_cm(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt,
    rwy_time now); /* false: malformed, counted; do not carry it */

#endif
