/* SPDX-License-Identifier: Apache-2.0 */
/* The content of docs/states.md, made from a state table. */
#ifndef TESTS_STATES_PAGE_H
#define TESTS_STATES_PAGE_H

void states_begin(void);
void states_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Fails the test unless the page has what was added, and prints that. Runs in the root of the
 * tree. */
void states_compare(void);
/* The same of another page. */
void states_compare_in(const char *path);
/* An enumerator's word as the page writes it. Valid for the next three calls. */
const char *states_lower(const char *word);

#endif
