/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words separated by blanks. */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stdbool.h>

/* Returns whether `word` is one of `words`. False for an empty word and for one with a blank. Any
 * thread. */
bool base_word_in(const char *word, const char *words);

#endif
