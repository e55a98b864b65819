/* SPDX-License-Identifier: Apache-2.0 */
/* For an owner of a cc_cubic that knows more than its ACKs. */
#ifndef CC_CUBIC_H
#define CC_CUBIC_H

#include "cc/cc.h"

#define CC_CUBIC_SIZE 192 /* of its state, 16-aligned: for one inside another algorithm */

/* Goes on with this window, bytes: in slow start, or in congestion avoidance as if a plateau had been reached
 * there. state: of cc_cubic, initialized. */
void cc_cubic_window_set(void *state, uint64_t window, bool slow_start);

/* The present recovery leaves `keep`/1024 of the window it has, 1 to 1024, and the way back ends half way.
 * Once a recovery: when congestion has just been told. */
void cc_cubic_yield(void *state, unsigned keep);

#endif
