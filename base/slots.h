/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream of bytes from one process to another in memory that both have: slots, which the writer
 * fills and the reader gives back, in turn. A Unix socket between the two carries the memory once,
 * and a byte where one waits for the other. Nobody copies, and no call is made for what both can
 * see. The writer trusts the reader with nothing: what it needs it keeps for itself, and the memory
 * cannot shrink. One thread on each side.
 */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rwy/err.h"

#define BASE_SLOTS     16u
#define BASE_SLOT_SIZE (256u << 10) /* bytes of each */

/* The first page of the memory; the slots follow. */
struct base_slots_head {
	uint32_t magic, version, slots, slot_size;
	alignas(64) _Atomic uint32_t filled; /* the writer's: slots since the beginning */
	_Atomic uint32_t ended;              /* 1: nothing follows */
	uint32_t len[BASE_SLOTS];            /* bytes in each */
	alignas(64) _Atomic uint32_t freed;  /* the reader's: slots since the beginning */
	_Atomic uint32_t reader_waits;       /* 1: for a filled slot, or the end */
	_Atomic uint32_t writer_waits;       /* 1: for a free slot */
};
#define BASE_SLOTS_AT    4096u
#define BASE_SLOTS_BYTES (BASE_SLOTS_AT + BASE_SLOTS * BASE_SLOT_SIZE)

struct base_slots {
	struct base_slots_head *head; /* NULL: there is none */
	uint32_t turn;                /* slots that this side has filled, or given back */
	int fd;                       /* of the memory; writer */
};

/* --- writer ----------------------------------------------------------------------------------- */

/* RWY_ENOMEM: s is none. */
RWY_MUST_CHECK int base_slots_new(struct base_slots *s);
/* Sends the memory over the socket, with one byte. False: the reader is gone. */
bool base_slots_send(const struct base_slots *s, int socket);
/*
 * The next slot to fill, of BASE_SLOT_SIZE bytes; NULL: the reader has all. Then a byte comes over
 * the socket when it gives one back.
 */
uint8_t *base_slots_room(struct base_slots *s);
/* The reader gets it with len bytes. The caller wakes it afterwards. */
void base_slots_fill(struct base_slots *s, uint32_t len);
/* Nothing follows. */
void base_slots_end(struct base_slots *s);
/* How many slots the reader says that it has given back since the beginning. */
static inline uint32_t base_slots_given_back(const struct base_slots *s)
{
	return atomic_load(&s->head->freed);
}
/* Whether there is something that the reader has not given back. */
static inline bool base_slots_filled(const struct base_slots *s)
{
	return s->turn != base_slots_given_back(s);
}
/* Sends the byte for which a reader waits, if one does. */
void base_slots_wake_reader(const struct base_slots *s, int socket);

/* --- reader ----------------------------------------------------------------------------------- */

/* Takes the memory from the socket, waiting for it. RWY_EINVAL: that is none of this version. */
RWY_MUST_CHECK int base_slots_receive(struct base_slots *s, int socket);
/* The oldest filled slot and its bytes; NULL: there is none now, or (*ended) any more. */
const uint8_t *base_slots_next(const struct base_slots *s, size_t *len, bool *ended);
/* Gives that slot back, and wakes a writer that waits. */
void base_slots_free_slot(struct base_slots *s, int socket);
/* Tells the writer that a byte is to be sent when there is something. False: there is already. */
bool base_slots_wait(const struct base_slots *s);

/* --- both ------------------------------------------------------------------------------------- */

/* Reads the bytes that woke this side. False: the other one is gone. Does not block. */
bool base_slots_woken(int socket);
void base_slots_close(struct base_slots *s); /* one that is none is allowed */

#endif
