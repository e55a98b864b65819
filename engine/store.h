/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standby's store: for each connection of the active gateway that has copies, the requests that
 * the far host may not have yet (copy.h has the other end). Buffers count as ENG_MEM_STORED,
 * bounded by eng_cfg.memory_total: beyond it a flow is refused, and the active gateway knows that
 * it has no standby.
 *
 * Thread: the engine's.
 */
#ifndef ENGINE_STORE_H
#define ENGINE_STORE_H

#include "engine/standby.h"

struct eng_stored {
	struct eng *e;
	struct eng_stored *next, **at; /* in the list of all, the newest first */
	struct wan_rxflow *flow;       /* NULL: the active gateway is gone */
	struct eng_open open;
	bool based;     /* its first message came */
	bool rewound;   /* eng_copy_msg.rewound, and nothing was delivered since */
	uint16_t pmtu;  /* bytes; 0: not known */
	roce_psn first; /* PSN of the first request in `q`, or of the next one */
	roce_msn msn;   /* before that request */
	/* nothing before it is needed; within the first request if that is a READ */
	roce_psn released;
	struct rwy_bufq q;
};

/* The active gateway began copies of a connection; NULL: no memory, or this gateway stores none. */
struct eng_stored *eng_store_open(struct eng *e, struct wan_rxflow *f, const struct eng_open *o);
/* A message of its flow. Takes b. */
void eng_store_message(struct eng_stored *s, struct rwy_buf *b, rwy_time now);
/* Forgets the connection, with its flow. */
void eng_store_free(struct eng_stored *s, rwy_time now);
/* Forgets all. */
void eng_store_clear(struct eng *e, rwy_time now);
/* The oldest request, the caller's now; NULL: none is left. */
struct rwy_buf *eng_store_pop(struct eng_stored *s);

#endif
