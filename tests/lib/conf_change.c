/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/conf_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

char *conf_change(const char *text, unsigned line, const char *with)
{
	const char *from = text, *to;
	char *out;

	if (!line) {
		assert_true(asprintf(&out, "%s%s", text, with) > 0);
		return out;
	}
	while (--line)
		from = strchr(from, '\n') + 1;
	to = strchr(from, '\n');
	assert_true(asprintf(&out, "%.*s%s%s", (int)(from - text), text, with, to) > 0);
	return out;
}
