/* SPDX-License-Identifier: Apache-2.0 */
/* The words for the explorer's faults (explore.h), on the command line and in reports. */
#ifndef RWY_TESTS_SIM_WORDS_H
#define RWY_TESTS_SIM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_WORDS_MAX 512 /* bytes for the words of any mask */

/* Reads words with commas between them, "none", or a number that is their sum. False: a word is not
 * known. */
bool sim_words_parse(const char *text, uint64_t *faults);
/* Writes the words of a mask; "none" if it is 0. */
void sim_words_of(uint64_t faults, char out[SIM_WORDS_MAX]);
/* Prints each word and what it means, for --help. */
void sim_words_help(void);

#endif
