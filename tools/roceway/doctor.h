/* SPDX-License-Identifier: Apache-2.0 */
/* Inside `roceway doctor` only: findings, and files below /sys and /proc (or another root). */
#ifndef TOOLS_ROCEWAY_DOCTOR_H
#define TOOLS_ROCEWAY_DOCTOR_H

#include "tools/roceway/roceway.h"

enum doctor_verdict { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_BAD };

struct doctor {
	const char *root; /* "": this machine; else a folder with sys/ and proc/ */
	json_t *found;    /* array of {check, verdict, finding, do} */
	bool bad;
};

/* doctor_look.c. Adds a finding; `todo` (NULL: nothing) says what to do about it. */
void doctor_add(struct doctor *d, enum doctor_verdict v, const char *check, const char *todo, const char *fmt,
    ...) __attribute__((format(printf, 5, 6)));
/* Reads a file below the root into out, without its last line end. False: there is none. */
bool doctor_read(const struct doctor *d, char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The number in a file; -1: there is none. */
long long doctor_number(const struct doctor *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Calls f for each entry of a folder below the root, in order of their names. */
void doctor_each(struct doctor *d, const char *dir, void (*f)(struct doctor *d, const char *name));

void doctor_gateway(struct doctor *d); /* doctor_gateway.c */
void doctor_host(struct doctor *d);    /* doctor_host.c */

#endif
