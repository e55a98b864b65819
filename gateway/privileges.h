/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process gives up, before it begins, capabilities that it never needs, the way to get new
 * ones, and core dumps; and, when it is set up, system calls. systemd's unit does the first two,
 * too; here they hold however it is started.
 */
#ifndef GATEWAY_PRIVILEGES_H
#define GATEWAY_PRIVILEGES_H

#include "conf/conf.h"
#include "rwy/err.h"

/*
 * Keeps, of the capabilities that the process has, those that a gateway needs, and makes sure that
 * no program that it starts gets more (PR_SET_NO_NEW_PRIVS). Call it before any thread is started,
 * because each has its own. Logs what cannot be given up; never an error: it goes on with what it
 * was started with.
 */
void gw_privileges_drop(void);

/*
 * Gives up system calls that a gateway does not need once ports and workers run, in all threads
 * (base/sandbox.h). If c does not want that, it warns. RWY_EINVAL, logged: the kernel does not do
 * it; the gateway is not to go on then.
 */
RWY_MUST_CHECK int gw_privileges_sandbox(const struct conf *c);

/* From now on the kernel writes no core dump of the process, and only root may look into its
 * memory: the certificate's private key is in it. Any thread. */
void gw_privileges_no_core(void);

#endif
