/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a controller's document: see document_fields.h. */
#include "gateway/agent/document_fields.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int document_fail(struct conf_error *err, const char *fmt, ...)
{
	va_list ap;

	*err = (struct conf_error){0};
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

int document_keys(const json_t *o, const char *what, const char *keys, struct conf_error *err)
{
	const char *key;
	json_t *v;

	if (!json_is_object(o))
		return document_fail(err, "%s: expected an object", what);
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		const char *at = strstr(keys, key);
		const size_t n = strlen(key);

		while (at && !((at == keys || at[-1] == ' ') && (at[n] == ' ' || !at[n])))
			at = strstr(at + 1, key);
		if (!n || !at)
			return document_fail(err, "%s: unknown field `%.40s`", what, key);
	}
	for (const char *at = keys; *at && *at != '|';) {
		const size_t n = strcspn(at, " ");
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		if (!json_object_get(o, name))
			return document_fail(err, "%s: expected `%s`, found nothing", what, name);
		at += n + strspn(at + n, " ");
	}
	return 0;
}

int document_text(
    const json_t *o, const char *what, const char *key, const char **out, struct conf_error *err)
{
	*out = json_string_value(json_object_get(o, key));
	if (*out && json_string_length(json_object_get(o, key)) == strlen(*out))
		return 0;
	return document_fail(err, "%s: expected text for `%s`", what, key);
}

int document_number(const json_t *o, const char *what, const char *key, uint64_t lo, uint64_t hi,
    uint64_t *out, struct conf_error *err)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t)json_integer_value(v) < lo ||
	    (uint64_t)json_integer_value(v) > hi)
		return document_fail(
		    err, "%s: expected a number from %" PRIu64 " to %" PRIu64 " for `%s`", what, lo, hi, key);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

bool document_ip(const char *text, struct rwy_ip *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*out = rwy_ip_from4(v4);
		return true;
	}
	return inet_pton(AF_INET6, text, out->b) == 1;
}
