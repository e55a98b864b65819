/* SPDX-License-Identifier: Apache-2.0
 * Settings of a direction as text: the table of keys, their units, reading and printing. Used by the command
 * line and by the control socket alike. Applies nothing.
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
	const char *arg;  /* what the value looks like, for the help */
	const char *help; /* one line */
};

/* The keys, ended by a NULL name. */
const struct wanem_key *wanem_set_keys(void);

/* Sets one key. 0, or -1 and a sentence in *err. Relations between keys: wanem_cfg_check. */
int wanem_set_key(struct wanem_cfg *cfg, const char *key, const char *value, struct wanem_err *err);

/* "key=value,key=value", separated by commas or blanks; then checks the whole. cfg is changed only on
 * success. */
int wanem_set_list(struct wanem_cfg *cfg, const char *list, struct wanem_err *err);

/* Durations: a number with ns, us, ms or s; 0 alone too. At most max ns. 0 or -1. */
int wanem_set_time(const char *text, uint64_t max, uint64_t *out, struct wanem_err *err);

/* Prints cfg as the members of a JSON object, without the braces. */
void wanem_set_json(FILE *f, const struct wanem_cfg *cfg);

/* Prints "delay=.. loss=..": the delay, and what is switched on. */
void wanem_set_text(FILE *f, const struct wanem_cfg *cfg);

#endif
