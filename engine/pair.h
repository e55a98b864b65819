/* SPDX-License-Identifier: Apache-2.0 */
/* Which two flows are one connection (pair.c), and CM messages that say so (cm.c). */
#ifndef ENGINE_PAIR_H
#define ENGINE_PAIR_H

#include "engine/eng.h"

/* A flow from `remote` to `local` waits for the host's first answer. */
bool eng_pair_waits(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local);
void eng_pair_undo(struct eng_requester *rq); /* f->near is set */
void eng_pair_join(struct eng_responder *rs, struct eng_requester *rq, enum eng_learned how);
void eng_pair_wait(struct eng_requester *rq,
    rwy_time now); /* an unpaired flow has its first packet: queue it for its turn */
void eng_pair_leave(struct eng_requester *rq, rwy_time now); /* paired, failed or freed */
struct eng_requester *eng_pair_owner(struct eng *e, uint32_t tenant, const struct eng_responder *rs,
    const struct roce_pkt *pkt, rwy_time now); /* whose answer this response must be, or NULL */
void eng_pair_tick(struct eng *e, rwy_time now);
rwy_time eng_pair_next(const struct eng *e);
bool eng_cm_learn(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt,
    rwy_time now); /* false: malformed, counted; do not carry it */

#endif
