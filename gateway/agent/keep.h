/* SPDX-License-Identifier: Apache-2.0 */
/* The last document on disk: it runs after a start while no controller answers. */
#ifndef GATEWAY_AGENT_KEEP_H
#define GATEWAY_AGENT_KEEP_H

#include <jansson.h>
#include <stddef.h>

#include "rwy/err.h"

/* Replaces the file atomically and creates its directory if needed. Returns a negative errno on
 * failure. */
RWY_MUST_CHECK int keep_write(const char *path, const char *text);
/* RWY_ENOENT: there is none; RWY_EINVAL: it is not a JSON object, with a sentence in why. */
RWY_MUST_CHECK int keep_read(const char *path, json_t **out, char *why, size_t size);

#endif
