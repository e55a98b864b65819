/* SPDX-License-Identifier: Apache-2.0 */
/* The last document on disk: what runs after a start while no controller answers. */
#ifndef GATEWAY_AGENT_KEEP_H
#define GATEWAY_AGENT_KEEP_H

#include <jansson.h>
#include <stddef.h>

#include "rwy/err.h"

/* Replaces the file in one step, and makes its folder if it is not there. A negative errno. */
RWY_MUST_CHECK int keep_write(const char *path, const char *text);
/* RWY_ENOENT: there is none; RWY_EINVAL: it is no JSON object (why, a sentence). */
RWY_MUST_CHECK int keep_read(const char *path, json_t **out, char *why, size_t size);

#endif
