/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the flight recorder: of a running gateway, or of the file of one that is gone. */
#ifndef TOOLS_ROCEWAY_RECORDER_H
#define TOOLS_ROCEWAY_RECORDER_H

#include "tools/roceway/roceway.h"

struct rwy_ip;

#define RECORDER_LIMIT 10000 /* entries of one answer of the API, at most */

struct recorder_filter {
	const char *local, *remote, *kind, *worker, *qpn, *vni; /* as typed; NULL: any */
	unsigned long limit;                                    /* the newest so many */
};

/* False, after cli_error(): it is no address. */
bool recorder_read_ip(const char *option, const char *text, struct rwy_ip *out);

/*
 * recorder_file.c: {"entries": [...]} as the API's /v1/recorder has them, the caller's; "time" is
 * UTC, "ago_seconds" is before the last sign of life of the process. NULL, after cli_error(); *rc
 * gets the exit code.
 */
json_t *recorder_file_read(const char *path, const struct recorder_filter *f, int *rc);

/* recorder.c: prints {"entries": [...]} as a table; nothing but a line when it is empty. */
void recorder_print(const json_t *j);

#endif
