/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder's front: file or text in, struct conf or one message out.
 * Not here: YAML (tree.c), keys (schema.c, fill.c), rules between keys (check.c).
 */
#include "conf/schema.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

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

	bool by_key =
	    n && n->key && n->kind != CONF_SCALAR; /* people see "ports:", not where its list begins */

	err->line = by_key ? n->key_line : n ? n->line : 0;
	err->column = by_key ? n->key_column : n ? n->column : 0;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return RWY_EINVAL;
}

#define WORD_MAX 40

/* Edits (insert, delete, replace) from a to b; long words are never near. */
static unsigned distance(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (n > WORD_MAX || m > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[m];
}

const char *conf_nearest(const char *word, const char *const *words)
{
	const char *near = NULL;
	unsigned best = (unsigned)strlen(word) / 2 + 1; /* half of it must be right */

	for (; *words; words++) {
		unsigned d = distance(word, *words);

		if (d < best) {
			best = d;
			near = *words;
		}
	}
	return near;
}

void conf_resolve_ports(struct conf *c)
{
	for (unsigned i = 0; i < c->tunnels; i++)
		for (unsigned j = 0; j < c->ports; j++)
			if (!strcmp(c->tunnel[i].port, c->port[j].name))
				c->tunnel[i].port_idx = j;
}

void conf_finish_tenants(struct conf *c, const struct conf_tree *t)
{
	const struct conf_node *n = conf_node_at(conf_node_get(t->root, "tenants"), 0);

	for (unsigned i = 0; i < c->tenants; i++, n = n->next)
		conf_tenant_finish(c, &c->tenant[i], n, NULL);
}

static int parse(struct conf **out, const char *text, size_t len, const char *name,
    const struct conf *running, struct conf_error *err)
{
	struct conf_tree tree;
	struct conf *c;
	int rc;

	memset(err, 0, sizeof(*err));
	snprintf(err->file, sizeof(err->file), "%s", name);
	if (len > CONF_FILE_MAX)
		return conf_fail(
		    err, 0, 0, "expected a file of at most %uMiB, found %zu bytes", CONF_FILE_MAX >> 20, len);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc)
		return rc;
	c = calloc(1, sizeof(*c));
	if (!c)
		conf_fail(err, 0, 0, "out of memory");
	rc = c ? conf_fill(c, &tree, err) : RWY_EINVAL;
	if (!rc)
		conf_finish_tenants(c, &tree);
	if (!rc)
		rc = conf_check(c, &tree, err);
	if (!rc && running)
		rc = conf_check_restart(c, running, &tree, err);
	conf_tree_free(&tree);
	if (rc || !c) {
		conf_free(c);
		return rc;
	}
	conf_resolve_ports(c);
	*out = c;
	return 0;
}

int conf_parse(struct conf **out, const char *text, size_t len, const char *name, struct conf_error *err)
{
	return parse(out, text, len, name, NULL, err);
}

int conf_reload(struct conf **out, const char *path, const struct conf *running, struct conf_error *err)
{
	FILE *f = fopen(path, "re");
	char *text = malloc(CONF_FILE_MAX + 1);
	size_t len;
	int rc;

	memset(err, 0, sizeof(*err));
	snprintf(err->file, sizeof(err->file), "%s", path);
	if (!text || !f) {
		rc = conf_fail(err, 0, 0, "cannot read: %s", f ? "out of memory" : strerror(errno));
	} else {
		len = fread(text, 1, CONF_FILE_MAX + 1, f);
		rc = ferror(f) ? conf_fail(err, 0, 0, "cannot read: %s", strerror(errno))
		               : parse(out, text, len, path, running, err);
	}
	if (f)
		fclose(f);
	free(text);
	return rc;
}

int conf_load(struct conf **out, const char *path, struct conf_error *err)
{
	return conf_reload(out, path, NULL, err);
}

void conf_free(struct conf *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->eal_argc; i++)
		free(c->eal_args[i]);
	for (unsigned i = 0; i < c->controller.urls; i++)
		free(c->controller.url[i]);
	for (unsigned i = 0; i < c->tenants; i++)
		conf_tenant_fini(&c->tenant[i]);
	free(c->tenant);
	free(c);
}

void conf_error_print(FILE *f, const struct conf_error *err)
{
	if (err->line)
		fprintf(f, "%s:%u:%u: %s\n", err->file, err->line, err->column, err->msg);
	else
		fprintf(f, "%s: %s\n", err->file, err->msg);
}
