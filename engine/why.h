/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the responder side of a connection failed: for a reason of this gateway (enum eng_cause), or
 * of the far one, which its FAIL names (enum eng_end, msg.h). Both have numbers of one range.
 */
#ifndef ENGINE_WHY_H
#define ENGINE_WHY_H

#include "engine/msg.h"

#define ENG_CAUSE_FIRST 64 /* above all of enum eng_end */

/* X(enumerator, text for the log) */
#define ENG_CAUSES(X)                                                                                        \
	X(ENG_CAUSE_NO_FLOW, "no memory for a flow")                                                         \
	X(ENG_CAUSE_LOST, "requests were lost in a gateway restart")                                         \
	X(ENG_CAUSE_NO_TUNNEL, "its tunnel was removed")                                                     \
	X(ENG_CAUSE_REFUSED, "the far gateway refused the flow")                                             \
	X(ENG_CAUSE_BEFORE, "it had failed before the gateway restarted")                                    \
	X(ENG_CAUSE_DAMAGED, "a response was damaged")                                                       \
	X(ENG_CAUSE_READ_DAMAGED, "a READ response was damaged")                                             \
	X(ENG_CAUSE_READ_GONE, "a READ response was lost and is no longer kept")                             \
	X(ENG_CAUSE_ATOMIC_GONE, "an ATOMIC's answer was lost and is no longer kept")                        \
	X(ENG_CAUSE_STORED, "what the standby gateway stored does not fit together")

enum eng_cause {
	ENG_CAUSE_BELOW = ENG_CAUSE_FIRST - 1,
#define X(e, text) e,
	ENG_CAUSES(X)
#undef X
	    ENG_CAUSE_END
};

/*
 * Static text for the log. why: an enum eng_cause, or an enum eng_end with its syndrome; beside: as
 * in eng_end_text. Any thread. A number of neither: "unknown".
 */
const char *eng_why_text(unsigned why, uint8_t syndrome, bool beside);

#endif
