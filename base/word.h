/* SPDX-License-Identifier: Apache-2.0 */
/* Words: lists of them separated by blanks, and mistyped ones. */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stdbool.h>

/* Returns whether `word` is one of `words`. False for an empty word and for one with a blank. Any
 * thread. */
bool base_word_in(const char *word, const char *words);

/* The edits (insert, delete, replace a character) that turn a into b, to find the word that was
 * meant. Of words above BASE_WORD_MAX bytes always BASE_WORD_MAX. Any thread. */
#define BASE_WORD_MAX 40u
unsigned base_word_distance(const char *a, const char *b);

#endif
