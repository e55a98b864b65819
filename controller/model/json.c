/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON into structs by a table, writes structs as JSON, and frees what a struct owns. Scalars
 * are in scalar.c. */
#include "controller/model/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *at(const void *base, size_t offset)
{
	return (char *)(uintptr_t)base + offset;
}

__attribute__((format(printf, 2, 3))) static void fail_whole(struct mdl_error *err, const char *fmt, ...)
{
	va_list ap;

	err->field[0] = 0;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

const char *mdl_word(const char *words, unsigned i, char out[MDL_NAME])
{
	*out = 0;
	for (const char *w = words; w && *w; w += strspn(w, " ")) {
		const size_t n = strcspn(w, " ");

		if (!i--) {
			snprintf(out, MDL_NAME, "%.*s", (int)n, w);
			break;
		}
		w += n;
	}
	return out;
}

static bool word_find(const char *words, const char *s, uint8_t *out)
{
	char w[MDL_NAME];

	for (unsigned i = 0; *mdl_word(words, i, w); i++)
		if (!strcmp(w, s)) {
			*out = (uint8_t)i;
			return true;
		}
	return false;
}

static const char *found(const json_t *j)
{
	if (!j)
		return "nothing";
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	return "something else";
}

/* The place in the document, for messages. */
struct where {
	const struct where *up;
	const char *name; /* NULL: an entry of a list */
	size_t index;
};

static size_t where_text(const struct where *w, char *out, size_t size)
{
	size_t n = w->up ? where_text(w->up, out, size) : 0;

	if (n >= size)
		n = size - 1;
	if (w->name && *w->name)
		n += (size_t)snprintf(out + n, size - n, "%s%s", n ? "." : "", w->name);
	else if (!w->name)
		n += (size_t)snprintf(out + n, size - n, "[%zu]", w->index);
	return n;
}

__attribute__((format(printf, 3, 4))) static int fail(
    struct mdl_error *err, const struct where *w, const char *fmt, ...)
{
	va_list ap;

	*err->field = 0;
	where_text(w, err->field, sizeof(err->field));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

/* --- scalars ---------------------------------------------------------------------------------- */

static int read_int(
    const json_t *j, const struct mdl_field *f, void *out, const struct where *w, struct mdl_error *err)
{
	const bool sign = f->flags & MDL_SIGNED;
	int64_t v;

	if (!json_is_integer(j))
		return fail(err, w, "expected an integer, found %s", found(j));
	v = json_integer_value(j);
	if (!sign && v < 0)
		return fail(err, w, "expected a number that is not negative, found %lld", (long long)v);
	if (sign ? v < (int64_t)f->min || v > (int64_t)f->max : (uint64_t)v < f->min || (uint64_t)v > f->max)
		return fail(err, w, "expected %lld to %lld, found %lld", (long long)f->min, (long long)f->max,
		    (long long)v);
	memcpy(out, &v, sizeof(v));
	return 0;
}

static int read_text(
    const json_t *j, const struct mdl_field *f, char **out, const struct where *w, struct mdl_error *err)
{
	const char *s = json_string_value(j);
	const size_t n = json_string_length(j);

	if (n < f->min || n > f->max)
		return fail(err, w, "expected a string of %llu to %llu bytes, found %zu",
		    (unsigned long long)f->min, (unsigned long long)f->max, n);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 127)
			return fail(err, w, "expected a string without control characters");
	*out = strdup(s);
	return *out ? 0 : RWY_ENOMEM;
}

static int read_hex(const char *s, uint64_t *out, const struct where *w, struct mdl_error *err)
{
	if (strlen(s) != 16 || strspn(s, "0123456789abcdef") != 16)
		return fail(err, w, "expected 16 hexadecimal digits, found `%.32s`", s);
	*out = strtoull(s, NULL, 16);
	return 0;
}

static int read_string(const json_t *j, const struct mdl_field *f, enum mdl_type type, void *out,
    const struct where *w, struct mdl_error *err)
{
	const char *s = json_string_value(j);

	if (!s)
		return fail(err, w, "expected a string, found %s", found(j));
	if (type != MDL_TEXT && strlen(s) != json_string_length(j))
		return fail(err, w, "expected a string without control characters");
	switch (type) {
	case MDL_TEXT:
		return read_text(j, f, out, w, err);
	case MDL_NAMED:
		if (!mdl_is_name(s))
			return fail(err, w, "expected a name of 1 to %u letters, digits, `.`, `_`, `-`",
			    MDL_NAME - 1);
		memcpy(out, s, strlen(s) + 1);
		return 0;
	case MDL_IDENT:
		if (!mdl_is_ident(s))
			return fail(
			    err, w, "expected an id of 1 to %u letters, digits, `.`, `_`, `-`", MDL_ID - 1);
		memcpy(out, s, strlen(s) + 1);
		return 0;
	case MDL_HEX:
		return read_hex(s, out, w, err);
	case MDL_WORD:
		return word_find(f->words, s, out)
		           ? 0
		           : fail(err, w, "expected one of %s, found `%.32s`", f->words, s);
	case MDL_IP:
		return mdl_ip(s, out) ? 0 : fail(err, w, "expected an address, found `%.64s`", s);
	case MDL_IP_PORT:
		return mdl_ip_port(s, out) ? 0 : fail(err, w, "expected ADDRESS:PORT, found `%.64s`", s);
	case MDL_PREFIX:
		return mdl_prefix(s, out) ? 0
		                          : fail(err, w,
		                                "expected a prefix without host bits, and without "
		                                "::ffff:0:0/96, found `%.64s`",
		                                s);
	case MDL_INT:
	case MDL_BOOL:
	case MDL_OBJECT:
	case MDL_LIST:
	case MDL_RAW:
		break;
	}
	rwy_unreachable();
}

/* --- objects ---------------------------------------------------------------------------------- */

static int read_object(
    const json_t *j, const struct mdl_table *t, void *out, const struct where *w, struct mdl_error *err);

static size_t item_size(enum mdl_type type)
{
	return type == MDL_NAMED   ? MDL_NAME
	       : type == MDL_IDENT ? MDL_ID
	       : type == MDL_INT   ? sizeof(uint64_t)
	                           : MDL_ADDR;
}

static int read_list(const json_t *j, const struct mdl_field *f, struct mdl_list *out, const struct where *w,
    struct mdl_error *err)
{
	const size_t n = json_array_size(j), size = f->of ? f->of->size : item_size(f->item);
	int rc = 0;

	if (!json_is_array(j))
		return fail(err, w, "expected an array, found %s", found(j));
	if (n < f->min || n > f->max)
		return fail(err, w, "expected %llu to %llu entries, found %zu", (unsigned long long)f->min,
		    (unsigned long long)f->max, n);
	out->at = n ? calloc(n, size) : NULL;
	if (n && !out->at)
		return RWY_ENOMEM;
	out->n = (unsigned)n;
	for (size_t i = 0; !rc && i < n; i++) {
		const struct where here = {w, NULL, i};
		const json_t *e = json_array_get(j, i);

		rc = f->of ? read_object(e, f->of, at(out->at, i * size), &here, err)
		           : read_string(e, f, f->item, at(out->at, i * size), &here, err);
	}
	return rc;
}

static int read_field(
    const json_t *j, const struct mdl_field *f, void *base, const struct where *w, struct mdl_error *err)
{
	void *out = at(base, f->offset);

	if (f->flags & MDL_PRESENCE)
		*(bool *)at(base, f->aux) = true;
	switch (f->type) {
	case MDL_INT:
		return read_int(j, f, out, w, err);
	case MDL_BOOL:
		if (!json_is_boolean(j))
			return fail(err, w, "expected true or false, found %s", found(j));
		*(bool *)out = json_is_true(j);
		return 0;
	case MDL_OBJECT:
		return read_object(j, f->of, out, w, err);
	case MDL_LIST:
		return read_list(j, f, out, w, err);
	case MDL_RAW:
		if (json_typeof(j) != (json_type)f->min)
			return fail(err, w, "expected another type, found %s", found(j));
		*(json_t **)out = json_incref((json_t *)(uintptr_t)j);
		return 0;
	case MDL_TEXT:
	case MDL_NAMED:
	case MDL_IDENT:
	case MDL_HEX:
	case MDL_WORD:
	case MDL_IP:
	case MDL_IP_PORT:
	case MDL_PREFIX:
		return read_string(j, f, f->type, out, w, err);
	}
	rwy_unreachable();
}

static bool field_known(const struct mdl_table *t, const char *key)
{
	for (unsigned i = 0; i < t->fields; i++)
		if (!strcmp(t->field[i].name, key))
			return true;
	return false;
}

static int read_object(
    const json_t *j, const struct mdl_table *t, void *out, const struct where *w, struct mdl_error *err)
{
	const char *key;
	json_t *value;
	int rc;

	if (!json_is_object(j))
		return fail(err, w, "expected an object, found %s", found(j));
	json_object_foreach((json_t *)(uintptr_t)j, key, value)
	{
		const struct where here = {w, key, 0};

		if (!field_known(t, key))
			return fail(err, &here, "unknown field in %s", t->what);
	}
	for (unsigned i = 0; i < t->fields; i++) {
		const struct mdl_field *f = &t->field[i];
		const struct where here = {w, f->name, 0};

		value = json_object_get(j, f->name);
		if (!value && (f->flags & MDL_REQUIRED))
			return fail(err, &here, "missing");
		rc = value ? read_field(value, f, out, &here, err) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Jansson has a depth limit of its own, but it is chosen for the stack, not for this API. */
static bool too_deep(const char *s, size_t len)
{
	unsigned depth = 0;
	bool text = false;

	for (size_t i = 0; i < len; i++) {
		if (text && s[i] == '\\')
			i++;
		else if (s[i] == '"')
			text = !text;
		else if (!text && (s[i] == '[' || s[i] == '{') && ++depth > MDL_DEPTH)
			return true;
		else if (!text && (s[i] == ']' || s[i] == '}') && depth)
			depth--;
	}
	return false;
}

json_t *mdl_parse(const char *text, size_t len, struct mdl_error *err)
{
	json_error_t e;
	json_t *j;

	memset(err, 0, sizeof(*err));
	if (too_deep(text, len)) {
		fail_whole(err, "expected JSON at most %u deep", MDL_DEPTH);
		return NULL;
	}
	j = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!j)
		fail_whole(err, "expected JSON: line %d, column %d: %s", e.line, e.column, e.text);
	if (j && !json_is_object(j)) {
		fail_whole(err, "expected an object, found %s", found(j));
		json_decref(j);
		j = NULL;
	}
	return j;
}

int mdl_read(const json_t *j, const struct mdl_table *t, void *out, struct mdl_error *err)
{
	const struct where top = {NULL, "", 0};
	int rc;

	memset(out, 0, t->size);
	memset(err, 0, sizeof(*err));
	rc = read_object(j, t, out, &top, err);
	if (rc)
		mdl_free(t, out);
	if (rc == RWY_ENOMEM)
		fail_whole(err, "out of memory");
	return rc;
}

void mdl_free(const struct mdl_table *t, void *s)
{
	for (unsigned i = 0; i < t->fields; i++) {
		const struct mdl_field *f = &t->field[i];
		void *p = at(s, f->offset);
		struct mdl_list *list = p;

		if (f->type == MDL_TEXT) {
			free(*(char **)p);
		} else if (f->type == MDL_RAW) {
			json_decref(*(json_t **)p);
		} else if (f->type == MDL_OBJECT) {
			mdl_free(f->of, p);
		} else if (f->type == MDL_LIST) {
			for (unsigned k = 0; f->of && k < list->n; k++)
				mdl_free(f->of, at(list->at, k * f->of->size));
			free(list->at);
		}
	}
	memset(s, 0, t->size);
}

/* --- structs to JSON -------------------------------------------------------------------------- */

static json_t *write_scalar(const struct mdl_field *f, enum mdl_type type, const void *p)
{
	char text[MDL_NAME];
	uint64_t v;

	switch (type) {
	case MDL_INT:
		memcpy(&v, p, sizeof(v));
		return json_integer((json_int_t)v);
	case MDL_BOOL:
		return json_boolean(*(const bool *)p);
	case MDL_TEXT:
		return json_string(*(char *const *)p);
	case MDL_WORD:
		return json_string(mdl_word(f->words, *(const uint8_t *)p, text));
	case MDL_HEX:
		memcpy(&v, p, sizeof(v));
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)v);
		return json_string(text);
	case MDL_NAMED:
	case MDL_IDENT:
	case MDL_IP:
	case MDL_IP_PORT:
	case MDL_PREFIX:
		return json_string(p);
	case MDL_RAW:
		return json_incref(*(json_t *const *)p);
	case MDL_OBJECT:
	case MDL_LIST:
		break;
	}
	rwy_unreachable();
}

static json_t *write_list(const struct mdl_field *f, const struct mdl_list *list)
{
	const size_t size = f->of ? f->of->size : item_size(f->item);
	json_t *out = json_array();

	for (unsigned i = 0; i < list->n; i++) {
		const void *e = at(list->at, i * size);

		json_array_append_new(out, f->of ? mdl_write(f->of, e) : write_scalar(f, f->item, e));
	}
	return out;
}

static bool there(const struct mdl_field *f, const void *in)
{
	const void *p = at(in, f->offset);

	if (f->flags & MDL_PRESENCE)
		return *(const bool *)at(in, f->aux);
	if (f->flags & MDL_REQUIRED)
		return true;
	switch (f->type) {
	case MDL_TEXT:
	case MDL_RAW:
		return *(void *const *)p != NULL;
	case MDL_NAMED:
	case MDL_IDENT:
	case MDL_IP:
	case MDL_IP_PORT:
	case MDL_PREFIX:
		return *(const char *)p;
	case MDL_LIST:
		return ((const struct mdl_list *)p)->n;
	case MDL_INT: /* 0, where it is out of range, is what is absent */
		return !f->min || f->flags & MDL_SIGNED || *(const uint64_t *)p;
	case MDL_BOOL:
	case MDL_HEX:
	case MDL_WORD:
	case MDL_OBJECT:
		return true;
	}
	rwy_unreachable();
}

json_t *mdl_write(const struct mdl_table *t, const void *in)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < t->fields; i++) {
		const struct mdl_field *f = &t->field[i];
		const void *p = at(in, f->offset);

		if (!there(f, in))
			continue;
		json_object_set_new(out, f->name,
		    f->type == MDL_OBJECT ? mdl_write(f->of, p)
		    : f->type == MDL_LIST ? write_list(f, p)
		                          : write_scalar(f, f->type, p));
	}
	return out;
}
