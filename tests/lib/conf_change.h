/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of tests: a good one, and one with a line changed. */
#ifndef TESTS_LIB_CONF_CHANGE_H
#define TESTS_LIB_CONF_CHANGE_H

struct conf;

/* The text with its line-th line (from 1) replaced; 0: `with` behind it. "" leaves the line empty. Malloced.
 */
char *conf_change(const char *text, unsigned line, const char *with);

/* Parses the text; fails the test when it is refused. conf_free() the result. */
struct conf *conf_good(const char *text);

#endif
