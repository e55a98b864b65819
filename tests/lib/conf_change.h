/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of tests: a small one, one with a line changed, one that is refused. */
#ifndef TESTS_LIB_CONF_CHANGE_H
#define TESTS_LIB_CONF_CHANGE_H

#include <stddef.h>

struct conf;

/* A gateway with two ports and one tunnel. */
extern const char conf_small[];

/* A line that makes a configuration wrong, and what is said of it. */
struct conf_bad {
	unsigned line;    /* replaced; 0: appended */
	const char *with; /* the new line */
	unsigned at;      /* position of the message; 0: at line */
	const char *want; /* part of the message */
};

/* The text with its line-th line (from 1) replaced; 0: `with` behind it. "" leaves the line empty.
 * Malloced. */
char *conf_change(const char *text, unsigned line, const char *with);

/* Parses the text; fails the test when it is refused. conf_free() the result. */
struct conf *conf_good(const char *text);

/* Parses the text; fails the test unless it is refused with `want` in the message, at this line. */
void conf_expect_bad(const char *text, size_t len, unsigned line, const char *want);

/* Does that with n changes of `text`, one after the other. */
void conf_check_bad(const char *text, const struct conf_bad *bad, unsigned n);
#define CONF_CHECK_BAD(text, bad) conf_check_bad(text, bad, sizeof(bad) / sizeof((bad)[0]))

#endif
