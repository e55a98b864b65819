/* SPDX-License-Identifier: Apache-2.0 */
/* systemd's notification protocol (sd_notify(3)): one datagram to $NOTIFY_SOCKET. Nothing happens when there
 * is none. */
#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

#include "rwy/time.h"

void gw_notify(const char *state); /* "READY=1\nSTATUS=..." */
rwy_dur gw_notify_watchdog(void);  /* how often systemd wants to hear WATCHDOG=1, 0: never */

#endif
