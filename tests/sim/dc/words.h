/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenario words: `key=value` on the command line or `key value` lines in a file, stored in a
 * struct by a table. Numbers are doubles, choices unsigned ints, names char arrays. A fault gives
 * one line with its place and reason.
 */
#ifndef SIM_DC_WORDS_H
#define SIM_DC_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum word_unit { W_NUMBER, W_WHOLE, W_SHARE, W_BITS, W_TIME, W_BYTES, W_CHOICE, W_NAME };

struct word {
	const char *name;
	enum word_unit unit;
	size_t at;           /* offset in the struct */
	double min, max;     /* of numbers; max of a W_NAME: size of the array */
	const char *choices; /* separated by spaces, in the order of the enum */
};

struct words {
	const struct word *tab;
	unsigned n;
};

/* Each returns false after writing one line into err. `where` names the origin of the word. */
bool words_set(const struct words *w, void *to, const char *word, const char *where, char *err, size_t size);
bool words_file(const struct words *w, void *to, const char *path, char *err, size_t size);
/* Prints the words in which `of` differs from `base`, separated by spaces. */
void words_print(const struct words *w, const void *of, const void *base, char *out, size_t size);
/* Prints the usage of a program that takes nothing but words, with their names. what: a sentence. */
void words_help(const struct words *w, const char *program, const char *what);

#endif
