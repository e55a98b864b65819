/* SPDX-License-Identifier: Apache-2.0 */
/* The one message about a faulty file: its place and text, and the word that was probably meant. */
#include "conf/schema.h"

#include <stdarg.h>

#include "base/word.h"

int conf_fail(struct conf_error *err, unsigned line, unsigned column, const char *fmt, ...)
{
	va_list ap;

	err->line = line;
	err->column = column;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

int conf_fail_at(struct conf_error *err, const struct conf_node *n, const char *fmt, ...)
{
	va_list ap;

	/* people look for "ports:", not for the place where its list begins */
	bool by_key = n && n->key && n->kind != CONF_SCALAR;

	err->line = by_key ? n->key_line : n ? n->line : 0;
	err->column = by_key ? n->key_column : n ? n->column : 0;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

const char *conf_nearest(const char *word, const char *const *words)
{
	const char *near = NULL;
	unsigned best = (unsigned)strlen(word) / 2 + 1; /* half of it must be right */

	for (; *words; words++) {
		const unsigned d = base_word_distance(word, *words);

		if (d < best) {
			best = d;
			near = *words;
		}
	}
	return near;
}

void conf_error_print(FILE *f, const struct conf_error *err)
{
	if (err->line)
		fprintf(f, "%s:%u:%u: %s\n", err->file, err->line, err->column, err->msg);
	else
		fprintf(f, "%s: %s\n", err->file, err->msg);
}
