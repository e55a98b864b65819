/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the running gateway's configuration run one at a time: a thread that reads something,
 * changes it and writes it back holds this lock meanwhile. Any thread except a worker's. */
#ifndef GATEWAY_CONTROL_CHANGE_LOCK_H
#define GATEWAY_CONTROL_CHANGE_LOCK_H

#include <stdbool.h>

/* Waits for its turn. Not recursive: a caller that holds it would wait for ever. */
void gw_change_lock(void);
/* True: the caller holds the lock. False: another thread does; does not wait. */
bool gw_change_trylock(void);
/* Gives the lock back: by the thread that holds it. */
void gw_change_unlock(void);

#endif
