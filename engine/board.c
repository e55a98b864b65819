/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/board.h"

#include <stdlib.h>

#include "engine/states.h"

/* Serial in the upper half of each word. */
#define SERIAL  32
#define CLEARED 16 /* of the leader's word: 16 bits; below it the state, and a flag */
#define STATE   8
#define WHOLE   1
#define WALKED  1 /* of a follower's word */
#define LINKED  2
#define SERVES  4

int eng_board_new(struct eng_board **out)
{
	struct eng_board *b = aligned_alloc(ENG_BOARD_LINE, sizeof(*b));

	if (!b)
		return RWY_ENOMEM;
	*b = (struct eng_board){0};
	eng_board_say(b, &(struct eng_board_lead){.state = ENG_SB_ASKING});
	*out = b;
	return 0;
}

void eng_board_free(struct eng_board *b)
{
	free(b);
}

void eng_board_say(struct eng_board *b, const struct eng_board_lead *l)
{
	atomic_store_explicit(&b->lead,
	    (uint64_t)l->serial << SERIAL | (uint64_t)l->cleared << CLEARED | (uint64_t)l->state << STATE |
	        (l->whole ? WHOLE : 0),
	    memory_order_release);
}

struct eng_board_lead eng_board_hear(const struct eng_board *b)
{
	const uint64_t v = atomic_load_explicit(&b->lead, memory_order_acquire);

	return (struct eng_board_lead){.serial = (uint32_t)(v >> SERIAL),
	    .cleared = (uint16_t)(v >> CLEARED),
	    .state = (uint8_t)(v >> STATE),
	    .whole = v & WHOLE};
}

bool eng_board_report(struct eng_board *b, unsigned worker, const struct eng_board_follow *f)
{
	const uint64_t v = (uint64_t)f->serial << SERIAL | (f->walked ? WALKED : 0) |
	                   (f->linked ? LINKED : 0) | (f->serves ? SERVES : 0);

	if (atomic_load_explicit(&b->of[worker].follow, memory_order_relaxed) == v)
		return false;
	atomic_store_explicit(&b->of[worker].follow, v, memory_order_release);
	return true;
}

struct eng_board_follow eng_board_reported(const struct eng_board *b, unsigned worker)
{
	const uint64_t v = atomic_load_explicit(&b->of[worker].follow, memory_order_acquire);

	return (struct eng_board_follow){.serial = (uint32_t)(v >> SERIAL),
	    .walked = v & WALKED,
	    .linked = v & LINKED,
	    .serves = v & SERVES};
}
