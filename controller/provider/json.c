/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and tunnels in JSON. A table is the schema, and the reader follows it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/path.h"
#include "controller/plan/spread.h"
#include "controller/provider/json.h"

#define FILE_MAX (8u << 20)

enum kind { NAME, WORD, RATE, US, PPM, STEER };

struct field {
	const char *name;
	enum kind kind;
	/* allowed only with the first PROVIDER_JSON_ flags, and not with the second */
	unsigned have, without;
	bool optional;
	size_t at;
};

#define AT(f) offsetof(struct provider_path, f)

static const struct field fields[] = {
    {"first", NAME, PROVIDER_JSON_SITES, 0, false, AT(first)},
    {"second", NAME, PROVIDER_JSON_SITES, 0, false, AT(second)},
    {"edge", NAME, 0, 0, false, AT(route.edge)},
    {"name", NAME, 0, 0, false, AT(route.name)},
    {"bandwidth_bps", RATE, PROVIDER_JSON_SITES, 0, false, AT(route.free_bps)},
    {"free_bps", RATE, 0, PROVIDER_JSON_SITES, false, AT(route.free_bps)},
    {"delay_us", US, 0, 0, false, AT(route.delay_us)},
    {"jitter_us", US, 0, 0, true, AT(route.jitter_us)},
    {"loss_ppm", PPM, 0, 0, true, AT(route.loss_ppm)},
    {"steer", STEER, 0, 0, true, AT(route.steer)},
    {"interface", WORD, PROVIDER_JSON_LINUX, 0, false, AT(interface)},
    {"remote", WORD, PROVIDER_JSON_LINUX, 0, false, AT(remote)},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static bool applies(const struct field *f, unsigned have)
{
	return (f->have & have) == f->have && !(f->without & have);
}

/* Names consist of the API's characters: letters, digits and -_. */
static bool name_ok(const char *s, size_t len)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	return len > 0 && len < PLAN_NAME_MAX && strspn(s, ok) == len;
}

static const char *read_text(char *out, const json_t *v, enum kind kind)
{
	const char *s = json_string_value(v);
	size_t len = s ? json_string_length(v) : 0;

	if (!s)
		return "is no string";
	if (kind == NAME ? !name_ok(s, len) : len == 0 || len >= PLAN_NAME_MAX || strlen(s) != len)
		return "is no name of 1 to 63 letters, digits, '-', '_' and '.'";
	memcpy(out, s, len + 1);
	return NULL;
}

static const char *read_field(struct provider_path *p, const struct field *f, const json_t *v)
{
	char *at = (char *)p + f->at;
	json_int_t n, most = 0;
	uint64_t rate;
	uint32_t small;

	switch (f->kind) {
	case NAME:
	case WORD:
		return read_text(at, v, f->kind);
	case RATE:
		most = (json_int_t)PLAN_RATE_MAX;
		break;
	case US:
		most = PLAN_US_MAX;
		break;
	case PPM:
		most = PLAN_PPM;
		break;
	case STEER: /* read_path() */
		return NULL;
	}
	if (!json_is_integer(v))
		return "is no integer";
	n = json_integer_value(v);
	if (n < 0)
		return "is negative";
	if (n > most)
		return "is too large";
	if (f->kind == RATE) {
		rate = (uint64_t)n;
		memcpy(at, &rate, sizeof(rate));
	} else {
		small = (uint32_t)n;
		memcpy(at, &small, sizeof(small));
	}
	return NULL;
}

__attribute__((format(printf, 2, 3))) static int refuse(struct provider_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

static const struct field *field_find(const char *name, unsigned have)
{
	unsigned i;

	for (i = 0; i < FIELDS; i++)
		if (applies(&fields[i], have) && strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static void swap_names(char a[PLAN_NAME_MAX], char b[PLAN_NAME_MAX])
{
	char was[PLAN_NAME_MAX];

	memcpy(was, a, sizeof(was));
	memcpy(a, b, sizeof(was));
	memcpy(b, was, sizeof(was));
}

static int read_path(struct provider_path *p, const json_t *o, size_t at, unsigned have, const char *where,
    struct provider_err *err)
{
	const struct field *f;
	const char *key, *bad;
	char why[96];
	json_t *v;
	unsigned i;

	memset(p, 0, sizeof(*p));
	if (!json_is_object(o))
		return refuse(err, "%.100s: paths[%zu] is no object", where, at);
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		f = field_find(key, have);
		bad = f ? read_field(p, f, v) : "is not known";
		if (bad)
			return refuse(err, "%.100s: paths[%zu].%.40s %s", where, at, key, bad);
		if (f->kind == STEER && !provider_json_steer(&p->route.steer, v, why, sizeof(why)))
			return refuse(err, "%.100s: paths[%zu].%s", where, at, why);
	}
	for (i = 0; i < FIELDS; i++)
		if (applies(&fields[i], have) && !fields[i].optional && !json_object_get(o, fields[i].name))
			return refuse(err, "%.100s: paths[%zu].%s is missing", where, at, fields[i].name);
	if ((have & PROVIDER_JSON_SITES) && strcmp(p->first, p->second) == 0)
		return refuse(err, "%.100s: paths[%zu].second is the same site", where, at);
	if ((have & PROVIDER_JSON_SITES) && !plan_first_site(p->first, p->second)) {
		swap_names(p->first, p->second);
		swap_names(p->route.steer.net[0], p->route.steer.net[1]);
	}
	return 0;
}

static int cmp_path(const void *va, const void *vb)
{
	const struct provider_path *a = *(const struct provider_path *const *)va,
	                           *b = *(const struct provider_path *const *)vb;
	int d = strcmp(a->first, b->first);

	d = d ? d : strcmp(a->second, b->second);
	d = d ? d : strcmp(a->route.edge, b->route.edge);
	return d ? d : strcmp(a->route.name, b->route.name);
}

/* A path that is listed twice would count twice. */
static int check_twice(const struct provider_path *p, unsigned n, const char *where, struct provider_err *err)
{
	const struct provider_path **s = calloc(n ? n : 1, sizeof(*s));
	unsigned i;
	int rc = 0;

	if (!s)
		return RWY_ENOMEM;
	for (i = 0; i < n; i++)
		s[i] = &p[i];
	qsort(s, n, sizeof(*s), cmp_path);
	for (i = 1; i < n && rc == 0; i++)
		if (cmp_path(&s[i], &s[i - 1]) == 0)
			rc = refuse(err, "%.100s: path %.63s at edge %.63s is there twice", where,
			    s[i]->route.name, s[i]->route.edge);
	free(s);
	return rc;
}

static int read_paths(
    struct provider_path **out, const json_t *doc, unsigned have, const char *where, struct provider_err *err)
{
	json_t *list = json_object_get(doc, "paths"), *o;
	struct provider_path *p;
	const char *key;
	size_t i, n;
	int rc = 0;

	if (!json_is_object(doc))
		return refuse(err, "%.100s: is no object", where);
	json_object_foreach((json_t *)(uintptr_t)doc, key, o) if (strcmp(key, "paths") != 0) return refuse(
	    err, "%.100s: %.40s is not known", where, key);
	if (!json_is_array(list))
		return refuse(err, "%.100s: paths is missing, or no list", where);
	n = json_array_size(list);
	if (n > PROVIDER_PATHS_MAX)
		return refuse(err, "%.100s: paths has more than %d", where, PROVIDER_PATHS_MAX);
	p = calloc(n ? n : 1, sizeof(*p));
	if (!p)
		return RWY_ENOMEM;
	for (i = 0; i < n && rc == 0; i++)
		rc = read_path(&p[i], json_array_get(list, i), i, have, where, err);
	if (rc == 0)
		rc = check_twice(p, (unsigned)n, where, err);
	if (rc) {
		free(p);
		return rc;
	}
	*out = p;
	return (int)n;
}

int provider_json_paths(struct provider_path **out, const char *text, size_t len, unsigned have,
    const char *where, struct provider_err *err)
{
	json_error_t e;
	json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	int rc;

	*out = NULL;
	if (!doc)
		return refuse(err, "%.80s:%d: %.120s", where, e.line, e.text);
	rc = read_paths(out, doc, have, where, err);
	json_decref(doc);
	return rc;
}

int provider_json_file(struct provider_path **out, const char *file, unsigned have, struct provider_err *err)
{
	FILE *f = fopen(file, "re");
	char *text = malloc(FILE_MAX);
	size_t len = f && text ? fread(text, 1, FILE_MAX, f) : 0;
	int rc = RWY_ENOENT;

	*out = NULL;
	if (!f || !text || ferror(f))
		(void)refuse(err, "%.200s: cannot be read", file);
	else if (len == FILE_MAX)
		rc = refuse(err, "%.200s: is too large", file);
	else
		rc = provider_json_paths(out, text, len, have, file, err);
	if (f)
		(void)fclose(f);
	free(text);
	return rc;
}

char *provider_json_tunnel(
    const char *first, const char *second, const struct plan_route *routes, const struct plan_placement *pl)
{
	json_t *legs = json_array(), *doc;
	const struct plan_route *r;
	char *text;
	unsigned i;

	for (i = 0; i < pl->n; i++) {
		r = &routes[pl->leg[i].route];
		json_array_append_new(legs, json_pack("{s:s, s:s, s:I}", "edge", r->edge, "path", r->name,
		                                "bandwidth_bps", (json_int_t)pl->leg[i].bps));
	}
	doc = json_pack("{s:s, s:s, s:s, s:o}", "first", first, "second", second, "shape",
	    plan_shape_name(pl->shape), "legs", legs);
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	json_decref(doc);
	return text;
}

int provider_json_legs(struct plan_route *out, unsigned max, const char *text, size_t len, const char *where,
    struct provider_err *err)
{
	json_t *doc = len ? json_loadb(text, len, 0, NULL) : NULL, *list = json_object_get(doc, "legs"), *leg;
	int n = list ? 0 : PROVIDER_WHOLE;
	size_t i;

	if (list && !json_is_array(list))
		n = refuse(err, "%.100s: legs is no list", where);
	json_array_foreach(list, i, leg)
	{
		const char *bad;

		if (n < 0 || i >= max)
			break;
		out[i] = (struct plan_route){0};
		bad = read_text(out[i].edge, json_object_get(leg, "edge"), NAME);
		if (bad)
			n = refuse(err, "%.100s: legs[%zu].edge %s", where, i, bad);
		bad = bad ? bad : read_text(out[i].name, json_object_get(leg, "path"), NAME);
		if (bad && n >= 0)
			n = refuse(err, "%.100s: legs[%zu].path %s", where, i, bad);
		n += n >= 0;
	}
	json_decref(doc);
	return n;
}

void provider_json_error(char *out, size_t out_len, const char *text, size_t len, const char *other)
{
	json_t *doc = len ? json_loadb(text, len, 0, NULL) : NULL;
	const char *s = json_string_value(json_object_get(doc, "error"));

	(void)snprintf(out, out_len, "%s", s ? s : other);
	json_decref(doc);
}
