/* SPDX-License-Identifier: Apache-2.0 */
/* Changes one line of a configuration, to make faulty ones for tests. */
#ifndef TESTS_LIB_CONF_CHANGE_H
#define TESTS_LIB_CONF_CHANGE_H

/* The text with line `line` (from 1) replaced; 0: `with` appended. "" leaves the line empty. The
 * caller frees it. */
char *conf_change(const char *text, unsigned line, const char *with);

#endif
