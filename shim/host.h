/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts that both libraries share: policy, messages, the functions that they stand before.
 */
#ifndef SHIM_HOST_H
#define SHIM_HOST_H

#include "shim/policy.h"

/*
 * The policy of this process, until shim_host_policy_end(). A file that changed since the last call
 * is read again; if it is wrong then, the policy before it counts. What was learned of relays that
 * are down stays. NULL: it is wrong; a line on standard error said so. Any thread.
 */
struct shim_policy *shim_host_policy(void);
void shim_host_policy_end(struct shim_policy *p); /* NULL is allowed */
/* The file that the policy is of. NULL: there is none, or relays are given without one. */
const char *shim_host_file(void);

/* One line on standard error: `roceway: ...`. Leaves errno. Any thread. */
__attribute__((format(printf, 1, 2))) void shim_say(const char *fmt, ...);

/* The address as text, in one of eight buffers of the thread in turn. */
const char *shim_ip_text(const struct rwy_ip *a);

/*
 * The function of that name and version in the library, which is opened if it is not yet. It ends
 * the process when there is none: the caller has been called in its place.
 */
void *shim_next(const char *library, const char *name, const char *version);

#endif
