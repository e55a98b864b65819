/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's redirects (controller/openapi.yaml) as the text of a redirect.conf. */
#ifndef SHIM_AGENT_REDIRECTS_H
#define SHIM_AGENT_REDIRECTS_H

#include <jansson.h>
#include <stddef.h>

/*
 * answer: of GET /v1/redirects. NULL, with why: it is not what the file says, or memory is short.
 * Whether the text is a policy, shim_policy_parse() says. The caller frees it.
 */
char *hagent_redirects_text(const json_t *answer, char *why, size_t size);

#endif
