/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of connections. A gateway whose workers share address pairs by queue pair
 * (`gateway.steering`) keeps a connection at one worker for all its life, and neither QPN of a
 * packet tells which one that is. So all workers share this table: it names the worker of each side
 * of each connection. What is not in it belongs to the home worker of its address pair.
 *
 * It also has the turns of pairing (pair.h): one worker at a time may have an unpaired flow of an
 * address pair out.
 *
 * Thread: any; every entry is one atomic word. An entry is 56 bits of a hash with a secret seed and
 * the worker's number: two keys may share an entry, so the worker checks what it gets.
 */
#ifndef ENGINE_DIRECTORY_H
#define ENGINE_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/msg.h"
#include "rwy/err.h"

#define ENG_WORKERS_MAX 64 /* of a gateway */

struct eng_directory;

/*
 * sides: most entries, 1 .. 2^26. seed: a number that hosts cannot guess. RWY_EINVAL, RWY_ENOMEM:
 * *out is not set.
 */
RWY_MUST_CHECK int eng_directory_new(struct eng_directory **out, uint32_t sides, uint64_t seed);
/* No engine has it any longer. NULL allowed. */
void eng_directory_free(struct eng_directory *d);

/*
 * The hash of a key by which all other functions name it. vni: of the tenant, whatever k->tenant
 * is. requester: of the requester side of that key, else of the responder side.
 */
uint64_t eng_directory_hash(
    const struct eng_directory *d, const struct eng_key *k, uint32_t vni, bool requester);
/* The worker that has it; -1: none has. */
int eng_directory_find(const struct eng_directory *d, uint64_t hash);
/* Enters it. False: another worker has it, or there is no room. True also if it was there. */
bool eng_directory_add(struct eng_directory *d, uint64_t hash, unsigned worker);
/* Takes it out, if that worker has it. */
void eng_directory_remove(struct eng_directory *d, uint64_t hash, unsigned worker);
/* Entries now; exact when nobody writes. */
uint32_t eng_directory_entries(const struct eng_directory *d);

/*
 * The turn of k's address pair in a tenant, by which the functions below name it: the same for both
 * directions, whatever k's QPN. vni: of the tenant.
 */
uint32_t eng_directory_turn(const struct eng_key *k, uint32_t vni);
/* Takes it. False: another worker has it. A worker that has it may take it again. */
bool eng_directory_turn_take(struct eng_directory *d, uint32_t pair, unsigned worker);
/* Two pairs have the same turn, for there are fewer turns than pairs. */
bool eng_directory_turn_same(uint32_t pair_a, uint32_t pair_b);
/* Gives it back, if that worker has it. */
void eng_directory_turn_give(struct eng_directory *d, uint32_t pair, unsigned worker);
/*
 * A host of the pair may still answer what some worker asked before, and no worker will know which
 * flow that is for: the first response in a turn proves nothing. Any worker may say so.
 */
void eng_directory_turn_doubt(struct eng_directory *d, uint32_t pair);
/* Whether that was said since the last call. */
bool eng_directory_turn_doubted(struct eng_directory *d, uint32_t pair);
/* The worker that has it; -1: nobody. */
int eng_directory_turn_of(const struct eng_directory *d, uint32_t pair);

#endif
