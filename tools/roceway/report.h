/* SPDX-License-Identifier: Apache-2.0 */
/* The file of `roceway report`: its parts in one archive. */
#ifndef TOOLS_ROCEWAY_REPORT_H
#define TOOLS_ROCEWAY_REPORT_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "rwy/err.h"

/* An interrupt: the report is not made, and nothing is left behind. */
extern volatile sig_atomic_t report_stopped;

/*
 * Starts a program that is looked for in PATH. Its output, with `errors` also what it says of
 * errors, is read from *from, which the caller closes. 0 or an errno.
 */
RWY_MUST_CHECK int report_start(const char *const *argv, bool errors, int *from, pid_t *pid);
/* Copies to the end, or until report_stopped: EINTR. 0 or an errno. */
RWY_MUST_CHECK int report_copy(int from, int to);
/* Waits for the program's end. Its status as of waitpid(2); -1: there is none. */
int report_wait(pid_t pid);

/*
 * Packs the folder into the file `output`, readable for its owner alone. A file of that name, or
 * the one that a symbolic link leads to, is replaced when the new one is whole; after a failure it
 * is as it was. An exit code; errors are said.
 */
int report_pack(const char *dir, const char *output);

#endif
