/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of a direction as text: the table of keys, their units, reading and printing. Used by
 * the command line and by the control socket alike. Applies nothing.
 */
#ifndef WANEM_SET_H
#define WANEM_SET_H

#include "tools/wanem/link.h"

#include <stdio.h>

struct wanem_err {
	char text[200];
};

struct wanem_key {
	const char *name;
	const char *arg;  /* form of the value, for the help */
	const char *help; /* one line */
};

/* The keys; a NULL name ends them. */
const struct wanem_key *wanem_set_keys(void);

/* Sets one key. 0, or -1 with a sentence in *err. wanem_cfg_check() checks relations between
 * keys. */
int wanem_set_key(struct wanem_cfg *cfg, const char *key, const char *value, struct wanem_err *err);

/* Sets "key=value,key=value", separated by commas or blanks, and checks the result. cfg changes
 * only on success. */
int wanem_set_list(struct wanem_cfg *cfg, const char *list, struct wanem_err *err);

/* Reads a duration: a number with ns, us, ms or s, or 0; at most max ns. 0 or -1. */
int wanem_set_time(const char *text, uint64_t max, uint64_t *out, struct wanem_err *err);

/* Prints cfg as the members of a JSON object, without its braces. */
void wanem_set_json(FILE *f, const struct wanem_cfg *cfg);

/* Prints "delay=.. loss=..": the delay, and all that is switched on. */
void wanem_set_text(FILE *f, const struct wanem_cfg *cfg);

#endif
