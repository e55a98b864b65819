/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's notification protocol (sd_notify(3)): one datagram to $NOTIFY_SOCKET. Does nothing when
 * the variable is unset. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include "rwy/time.h"

/* state: "READY=1\nSTATUS=..." */
void gw_notify(const char *state);
/* Returns how often systemd wants to receive WATCHDOG=1; 0: never. */
rwy_dur gw_notify_watchdog(void);

#endif
