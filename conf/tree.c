/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns YAML into a tree of nodes with lines and columns. It accepts what a configuration needs:
 * mappings, lists and scalars in one document. Aliases, anchors and tags are refused, so nothing
 * can multiply. fill.c knows the keys.
 */
#include "conf/schema.h"

#include <stdlib.h>
#include <yaml.h>

struct build {
	struct conf_tree *tree;
	struct conf_error *err;
	struct conf_node *open[CONF_DEPTH_MAX]; /* the open maps and lists, outermost first */
	unsigned depth;
	char *key; /* a key that waits for its value */
	unsigned key_line, key_column;
};

static int fail_mark(struct build *b, const yaml_mark_t *m, const char *what)
{
	return conf_fail(b->err, (unsigned)m->line + 1, (unsigned)m->column + 1, "%s", what);
}

static struct conf_node *node_new(struct build *b, enum conf_kind kind, const yaml_mark_t *m)
{
	struct conf_node *n;

	if (b->tree->nodes++ >= CONF_NODES_MAX)
		return NULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->kind = kind;
	n->line = (unsigned)m->line + 1;
	n->column = (unsigned)m->column + 1;
	return n;
}

/* Appends n to the innermost open map or list. */
static int node_add(struct build *b, struct conf_node *n)
{
	struct conf_node *up = b->depth ? b->open[b->depth - 1] : NULL;

	if (!up) {
		b->tree->root = n;
	} else {
		if (up->kind == CONF_MAP) {
			n->key = b->key;
			n->key_line = b->key_line;
			n->key_column = b->key_column;
			b->key = NULL;
		}
		if (up->last)
			up->last->next = n;
		else
			up->child = n;
		up->last = n;
	}
	if (n->kind == CONF_SCALAR)
		return 0;
	if (b->depth == CONF_DEPTH_MAX)
		return conf_fail_at(
		    b->err, n, "expected at most %d levels of nesting, found more", CONF_DEPTH_MAX);
	b->open[b->depth++] = n;
	return 0;
}

static bool wants_key(const struct build *b)
{
	const struct conf_node *in = b->depth ? b->open[b->depth - 1] : NULL;

	return in && in->kind == CONF_MAP && !b->key;
}

static int on_scalar(struct build *b, const yaml_event_t *ev)
{
	const char *text = (const char *)ev->data.scalar.value;
	const size_t len = ev->data.scalar.length;
	struct conf_node *n;

	if (memchr(text, 0, len))
		return fail_mark(b, &ev->start_mark, "expected text, found a zero byte in it");
	if (wants_key(b)) {
		b->key = strdup(text);
		b->key_line = (unsigned)ev->start_mark.line + 1;
		b->key_column = (unsigned)ev->start_mark.column + 1;
		return b->key ? 0 : fail_mark(b, &ev->start_mark, "out of memory");
	}
	n = node_new(b, CONF_SCALAR, &ev->start_mark);
	if (!n)
		return fail_mark(b, &ev->start_mark, "expected a configuration, found too many values");
	n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->len = len;
	n->text = strdup(text);
	return node_add(b, n) ? RWY_EINVAL : n->text ? 0 : fail_mark(b, &ev->start_mark, "out of memory");
}

static int on_open(struct build *b, const yaml_event_t *ev, enum conf_kind kind)
{
	struct conf_node *n;

	if (wants_key(b))
		return fail_mark(b, &ev->start_mark, "expected a key, found a list or a mapping");
	n = node_new(b, kind, &ev->start_mark);
	if (!n)
		return fail_mark(b, &ev->start_mark, "expected a configuration, found too many values");
	return node_add(b, n);
}

static int on_event(struct build *b, const yaml_event_t *ev)
{
	const char *decorated =
	    "expected plain values, found an anchor or a tag (`&`, `!`): write the value out";
	bool tagged;

	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		tagged = ev->data.scalar.anchor || ev->data.scalar.tag;
		return tagged ? fail_mark(b, &ev->start_mark, decorated) : on_scalar(b, ev);
	case YAML_SEQUENCE_START_EVENT:
		tagged = ev->data.sequence_start.anchor || ev->data.sequence_start.tag;
		return tagged ? fail_mark(b, &ev->start_mark, decorated) : on_open(b, ev, CONF_SEQ);
	case YAML_MAPPING_START_EVENT:
		tagged = ev->data.mapping_start.anchor || ev->data.mapping_start.tag;
		return tagged ? fail_mark(b, &ev->start_mark, decorated) : on_open(b, ev, CONF_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	case YAML_ALIAS_EVENT:
		return fail_mark(
		    b, &ev->start_mark, "expected plain values, found an alias (`*`): write the value out");
	case YAML_DOCUMENT_START_EVENT:
		if (b->tree->root)
			return fail_mark(b, &ev->start_mark, "expected one document, found a second (`---`)");
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	rwy_unreachable();
}

/* Line and column of a byte, for errors of libyaml that have only an offset. */
static void locate(const char *text, size_t len, size_t offset, unsigned *line, unsigned *column)
{
	*line = *column = 1;
	for (size_t i = 0; i < offset && i < len; i++) {
		++*column;
		if (text[i] == '\n') {
			++*line;
			*column = 1;
		}
	}
}

static int fail_yaml(const yaml_parser_t *p, const char *text, size_t len, struct conf_error *err)
{
	unsigned line = (unsigned)p->problem_mark.line + 1, column = (unsigned)p->problem_mark.column + 1;
	const char *at = text;

	if (p->error == YAML_MEMORY_ERROR)
		return conf_fail(err, 0, 0, "out of memory");
	if (p->error == YAML_READER_ERROR) {
		locate(text, len, p->problem_offset, &line, &column);
		return conf_fail(
		    err, line, column, "expected UTF-8 text, found a byte that is none (%s)", p->problem);
	}
	for (unsigned l = 1; at && l < line; l++) {
		at = memchr(at, '\n', len - (size_t)(at - text));
		at = at ? at + 1 : NULL;
	}
	for (; at && at < text + len && (*at == ' ' || *at == '\t'); at++)
		if (*at == '\t')
			return conf_fail(err, line, column, "expected spaces for indentation, found a tab");
	return conf_fail(err, line, column, "expected YAML, found: %s%s%s",
	    p->problem ? p->problem : "an error", p->context ? " " : "", p->context ? p->context : "");
}

int conf_tree_parse(struct conf_tree *t, const char *text, size_t len, struct conf_error *err)
{
	struct build b = {.tree = t, .err = err};
	yaml_parser_t p;
	bool end = false;
	int rc = 0;

	memset(t, 0, sizeof(*t));
	/* A byte order mark, as some editors write it. libyaml would count it as a column. */
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		len -= 3;
	}
	if (!yaml_parser_initialize(&p))
		return conf_fail(err, 0, 0, "out of memory");
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
	while (!rc && !end) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&p, &ev)) {
			rc = fail_yaml(&p, text, len, err);
			break;
		}
		rc = on_event(&b, &ev);
		end = ev.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&p);
	free(b.key);
	if (!rc && (!t->root || conf_node_is_null(t->root)))
		rc = conf_fail(err, 0, 0, "expected keys and their values, found an empty text");
	else if (!rc && t->root->kind != CONF_MAP)
		rc = conf_fail_at(err, t->root, "expected a mapping of keys (`key: value`), found a %s",
		    t->root->kind == CONF_SEQ ? "list" : "single value");
	if (rc)
		conf_tree_free(t);
	return rc;
}

static void node_free(struct conf_node *n) /* depth is bounded by CONF_DEPTH_MAX */
{
	while (n) {
		struct conf_node *next = n->next;

		node_free(n->child);
		free(n->text);
		free(n->key);
		free(n);
		n = next;
	}
}

void conf_tree_free(struct conf_tree *t)
{
	node_free(t->root);
	t->root = NULL;
}

const struct conf_node *conf_node_get(const struct conf_node *map, const char *key)
{
	if (!map || map->kind != CONF_MAP)
		return NULL;
	for (const struct conf_node *n = map->child; n; n = n->next)
		if (!strcmp(n->key, key))
			return n;
	return NULL;
}

int conf_node_once(const struct conf_node *map, const struct conf_node *n, struct conf_error *err)
{
	const struct conf_node *first = conf_node_get(map, n->key);

	if (first == n)
		return 0;
	return conf_fail(err, n->key_line, n->key_column,
	    "expected each key once, found `%s` again (first in line %u)", n->key, first->key_line);
}

const struct conf_node *conf_node_at(const struct conf_node *seq, unsigned idx)
{
	const struct conf_node *n = seq && seq->kind == CONF_SEQ ? seq->child : NULL;

	while (n && idx--)
		n = n->next;
	return n;
}

bool conf_node_is_null(const struct conf_node *n)
{
	return n->kind == CONF_SCALAR && n->plain &&
	       (!n->len || !strcmp(n->text, "~") || !strcmp(n->text, "null"));
}

void conf_node_found(const struct conf_node *n, char *out, size_t size)
{
	char clean[44];
	size_t i;

	if (n->kind != CONF_SCALAR || conf_node_is_null(n)) {
		snprintf(out, size, "%s",
		    n->kind == CONF_MAP   ? "a mapping"
		    : n->kind == CONF_SEQ ? "a list"
		                          : "nothing");
		return;
	}
	for (i = 0; i < n->len && i < 40; i++)
		clean[i] = n->text[i] >= 0x20 && n->text[i] < 0x7f ? n->text[i] : '?';
	clean[i] = 0;
	snprintf(out, size, n->plain ? "`%s%s`" : "the text \"%s%s\"", clean, i < n->len ? "..." : "");
}
