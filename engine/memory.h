/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of memory (docs/memory.md): the one place that charges a buffer when the engine begins to
 * hold it, releases it, and says before that whether one more may be held. A buffer counts what it
 * takes in its pool, for its connection, the local host, the tenant and the worker.
 *
 * Memory that several use is divided by dynamic thresholds (Choudhury and Hahne, 1998): each may
 * hold so many times what is still free. One alone gets nearly all, and a newcomer finds its part.
 * That costs a shift and no division.
 *
 * Thread: the engine's. Sizes are bytes of buffers (eng_buf_cost). Nothing here fails.
 */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/eng.h"

/* The side holds one buffer more of this kind. Not for custody and responses. */
void eng_mem_charge(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost);
/* It holds n buffers less, of `cost` bytes together. */
void eng_mem_release(struct eng_side *side, enum eng_mem_kind kind, uint64_t cost, uint32_t n);
/* The same of requests in custody, and of responses on their way. */
void eng_mem_charge_custody(struct eng_responder *rs, uint64_t cost);
void eng_mem_release_custody(struct eng_responder *rs, uint64_t cost, uint32_t n);
void eng_mem_charge_response(struct eng_requester *rq, uint64_t cost);
void eng_mem_release_responses(struct eng_requester *rq, uint64_t cost, uint32_t n);
/* The same of requests in the requester's queue. */
void eng_mem_charge_received(struct eng_requester *rq, uint64_t cost);
void eng_mem_release_received(struct eng_requester *rq, uint64_t cost, uint32_t n);

/*
 * NULL: the host's next request may be held. Else the counter of why not: the packet must be
 * dropped before it is accepted.
 */
uint64_t *eng_mem_refuses_request(const struct eng_responder *rs, uint64_t cost);
/* A READ response of the local host may be held until the near gateway has it. */
bool eng_mem_admits_response(const struct eng_requester *rq, uint64_t cost);
/* Bytes of READ responses that the local host may owe the requester: there is memory for them. */
uint64_t eng_mem_read_room(const struct eng_requester *rq);
/* There is room again for a side that was refused: its host may be asked to go on. */
bool eng_mem_has_room(const struct eng_side *side);
/* The side's host has its fair share or more: its ACKs wait while memory is short. */
bool eng_mem_over_share(const struct eng_side *side);

/* The side was refused: when there is room, eng_mem_wake calls eng_dirty for it. */
void eng_mem_wait(struct eng_side *side);
/* It waits no more. Does nothing when it does not wait. */
void eng_mem_wait_end(struct eng_side *side);
/* Once a turn: looks at some of the sides that wait. */
void eng_mem_wake(struct eng *e);

/* Computes what e->cfg implies; bounds of it that are 0 get their default. */
void eng_mem_init(struct eng *e);
/* t->cfg was changed; old_reserve is the reservation before. */
void eng_mem_tenant_changed(struct eng *e, struct eng_tenant *t, uint64_t old_reserve);
/* One local host with connections more (1) or less (-1). */
void eng_mem_count_host(struct eng *e, struct eng_tenant *t, int by);

/* The host may have one unpaired flow more. */
bool eng_half_open_admits(const struct eng *e, const struct eng_tenant *t, const struct eng_host *h);
/* rs is unpaired from now on (1), or no more (-1); what it holds counts accordingly. */
void eng_count_half_open(struct eng_responder *rs, int by);

#endif
