/* SPDX-License-Identifier: Apache-2.0 */
/* One line of a configuration changed: what the tests of what is wrong with one are made of. */
#ifndef TESTS_LIB_CONF_CHANGE_H
#define TESTS_LIB_CONF_CHANGE_H

/* The text with its line-th line (from 1) replaced; 0: `with` behind it. "" leaves the line empty. Malloced.
 */
char *conf_change(const char *text, unsigned line, const char *with);

#endif
