/* SPDX-License-Identifier: Apache-2.0 */
/* The file that programs read, written from a policy and what is known of its relays. */
#ifndef SHIM_AGENT_WRITE_H
#define SHIM_AGENT_WRITE_H

#include "shim/agent/probe.h"
#include "shim/policy.h"

/*
 * The policy as text that shim_policy_parse() reads, with `down` where the policy or the probe says
 * so. The caller frees it. NULL: no memory.
 */
char *hagent_write_text(const struct shim_policy *policy, const struct hagent_probe *probe, const char *head);
/* Puts the text in the file's place by renaming. False: the file is as it was. tell: a log line
 * says why. */
bool hagent_write_file(const char *path, const char *text, bool tell);

#endif
