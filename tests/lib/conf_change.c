/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/conf_change.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"

/* Line numbers matter to the tests. */
const char conf_small[] = "gateway:\n"                      /* 1 */
                          "  name: a\n"                     /* 2 */
                          "ports:\n"                        /* 3 */
                          "  - name: lan\n"                 /* 4 */
                          "    device: net_null0\n"         /* 5 */
                          "    role: lan\n"                 /* 6 */
                          "    addresses: [10.1.0.1/24]\n"  /* 7 */
                          "  - name: wan\n"                 /* 8 */
                          "    device: net_null1\n"         /* 9 */
                          "    role: wan\n"                 /* 10 */
                          "    addresses: [192.0.2.1/24]\n" /* 11 */
                          "tunnels:\n"                      /* 12 */
                          "  - name: b\n"                   /* 13 */
                          "    port: wan\n"                 /* 14 */
                          "    local: 192.0.2.1\n"          /* 15 */
                          "    remote: 192.0.2.2\n"         /* 16 */
                          "    security: none\n"            /* 17 */
                          "    prefixes: [10.2.0.0/24]\n";  /* 18 */

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

void conf_expect_bad(const char *text, size_t len, unsigned line, const char *want)
{
	struct conf *c = NULL;
	struct conf_error err;
	int rc = conf_parse(&c, text, len, "x.yaml", &err);

	if (rc != RWY_EINVAL || err.line != line || !err.column != !line || !strstr(err.msg, want))
		fail_msg(
		    "line %u `%s` wanted; got %d, line %u: %s\n%s", line, want, rc, err.line, err.msg, text);
	assert_null(c);
	assert_string_equal(err.file, "x.yaml");
}

void conf_check_bad(const char *text, const struct conf_bad *bad, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char *changed = conf_change(text, bad[i].line, bad[i].with);

		conf_expect_bad(changed, strlen(changed), bad[i].at ? bad[i].at : bad[i].line, bad[i].want);
		free(changed);
	}
}
