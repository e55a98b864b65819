/* SPDX-License-Identifier: Apache-2.0
 * Control of a running emulator: a Unix stream socket, a command a line, see command_help in ctl.c.
 */
#ifndef WANEM_CTL_H
#define WANEM_CTL_H

#include "tools/wanem/run.h"

#include <poll.h>

#define WANEM_CTL_CLIENTS 8
#define WANEM_CTL_FDS     (1 + WANEM_CTL_CLIENTS)

/* Listens on path, replacing a socket on which nobody listens. 0, or -1 with a sentence in *err. */
int wanem_ctl_open(struct wanem_ctl **out, const char *path, struct wanem_err *err);
void wanem_ctl_close(struct wanem_ctl *ctl);

/* Fills fd (WANEM_CTL_FDS entries) and returns how many. After poll() the caller passes the same
 * ones to wanem_ctl_serve(). */
unsigned wanem_ctl_poll(const struct wanem_ctl *ctl, struct pollfd *fd);
/* Accepts clients and executes their commands, after poll(). Slow clients are dropped. */
void wanem_ctl_serve(
    struct wanem_ctl *ctl, struct wanem *w, const struct pollfd *fd, unsigned count, uint64_t now);

/*
 * `wanem ctl PATH COMMAND...`: sends the words as one line, prints the reply. Exit code: 0, 1
 * refused or no connection, 2 usage.
 */
int wanem_ctl_client(int argc, char **argv);

#endif
