/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that a program keeps once it is set up (seccomp(2), by libseccomp). Calls that
 * it needs are listed; those that only somebody who took the program over would make (start a
 * program, look into another, mount, load code into the kernel) end it, and the kernel's log says
 * so; any other call fails with ENOSYS, as on a kernel without it.
 */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include <stddef.h>

#include "rwy/err.h"

enum base_sandbox {
	BASE_SANDBOX_GATEWAY, /* and the relay: network devices, shared memory */
	/* the same, with ports that have a BPF program to take off at the end */
	BASE_SANDBOX_AF_XDP,
	BASE_SANDBOX_CONTROLLER, /* files and TCP */
};

/*
 * Applies for ever to all threads, also to those that are started later. Call it after everything
 * that needs other calls, such as opening devices. No program can be started any more, and no new
 * privilege got. RWY_EINVAL: the kernel does not do it, and nothing has changed; why says what
 * failed. Not while another thread may be in fork().
 */
RWY_MUST_CHECK int base_sandbox_enter(enum base_sandbox kind, char *why, size_t size);

#endif
