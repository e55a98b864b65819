/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/conf_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"

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

struct conf *conf_good(const char *text)
{
	struct conf_error err;
	struct conf *c = NULL;

	if (conf_parse(&c, text, strlen(text), "x.yaml", &err))
		fail_msg("line %u: %s\n%s", err.line, err.msg, text);
	return c;
}
