/* SPDX-License-Identifier: Apache-2.0 */
/* cc_cubic as a part of another algorithm, which knows more than the ACKs tell. */
#ifndef CC_CUBIC_H
#define CC_CUBIC_H

#include "cc/cc.h"

#define CC_CUBIC_SIZE 192 /* bytes of its state, 16-aligned */

/* Continues with this window in bytes: in slow start, or in congestion avoidance as if a plateau
 * were reached there. state: of cc_cubic, initialized. */
void cc_cubic_window_set(void *state, uint64_t window, bool slow_start);

/* Reduces the window of the present recovery to `keep`/1024 of it (1 .. 1024) and lowers the
 * plateau to half way. Call once per recovery, right after the congestion event. */
void cc_cubic_yield(void *state, unsigned keep);

#endif
