/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list `providers:` of the configuration: networks' controllers, the options of their kinds,
 * their sites and edges. controller/provider/ knows the meaning of the options.
 */
#include <string.h>

#include "controller/conf/conf.h"
#include "controller/provider/provider.h"
#include "conf/schema.h"

static int wrong(struct conf_error *err, const struct conf_node *n, const char *key, const char *expected)
{
	char found[96];

	conf_node_found(n, found, sizeof(found));
	return conf_fail_at(err, n, "expected %s for `providers[].%.64s`, found %s", expected, key, found);
}

static bool is_name(const struct conf_node *n)
{
	return n->kind == CONF_SCALAR && !conf_node_is_null(n) && strlen(n->text) == n->len &&
	       n->len < CONF_NAME && conf_scan_name(n->text, CONF_NAME - 1);
}

static int fill_name(char out[CONF_NAME], const struct conf_node *n, struct conf_error *err)
{
	if (!is_name(n))
		return wrong(err, n, "name", "a name of letters, digits, `.`, `_`, `-`");
	memcpy(out, n->text, n->len + 1);
	return 0;
}

static int fill_names(
    char (*out)[CONF_NAME], unsigned *count, const struct conf_node *list, struct conf_error *err)
{
	if (list->kind != CONF_SEQ || !list->child)
		return wrong(err, list, list->key, "a list of names");
	for (const struct conf_node *n = list->child; n; n = n->next) {
		if (!is_name(n))
			return wrong(err, n, list->key, "names of letters, digits, `.`, `_`, `-`");
		for (unsigned i = 0; i < *count; i++)
			if (!strcmp(out[i], n->text))
				return wrong(err, n, list->key, "each name once");
		if (*count == CTLR_PROVIDER_NAMES_MAX)
			return conf_fail_at(err, n, "expected at most %u names for `providers[].%s`",
			    CTLR_PROVIDER_NAMES_MAX, list->key);
		memcpy(out[(*count)++], n->text, n->len + 1);
	}
	return 0;
}

static int fill_kind(char out[CONF_NAME], const struct conf_node *n, struct conf_error *err)
{
	char words[128] = "one of";

	for (unsigned i = 0; provider_at(i); i++) {
		const size_t at = strlen(words);

		snprintf(words + at, sizeof(words) - at, " %s", provider_at(i)->name);
	}
	if (!is_name(n) || !provider_find(n->text))
		return wrong(err, n, "kind", words);
	memcpy(out, n->text, n->len + 1);
	return 0;
}

static bool has_option(const struct provider_ops *ops, const char *name)
{
	const size_t n = strlen(name);

	for (unsigned i = 0; ops->options[i]; i++)
		if (!strncmp(ops->options[i], name, n) && ops->options[i][n] == ':')
			return true;
	return false;
}

static int fill_option(struct ctlr_provider *p, const struct conf_node *n, struct conf_error *err)
{
	if (!has_option(provider_find(p->kind), n->key))
		return conf_fail(err, n->key_line, n->key_column,
		    "unknown key `providers[].%.64s` of kind %s", n->key, p->kind);
	if (n->kind != CONF_SCALAR || conf_node_is_null(n) || !n->len || n->len >= CTLR_TEXT ||
	    strlen(n->text) != n->len)
		return wrong(err, n, n->key, "a text that is not empty and not long");
	if (p->options == CTLR_OPTIONS_MAX)
		return conf_fail_at(err, n, "expected at most %u options", CTLR_OPTIONS_MAX);
	snprintf(p->option[p->options].name, CONF_NAME, "%s", n->key);
	memcpy(p->option[p->options++].value, n->text, n->len + 1);
	return 0;
}

static int fill_one(struct ctlr_provider *p, const struct conf_node *map, struct conf_error *err)
{
	const struct conf_node *kind, *name;
	int rc;

	if (map->kind != CONF_MAP)
		return conf_fail_at(err, map, "expected keys for each of `providers`");
	p->line = map->line;
	kind = conf_node_get(map, "kind");
	name = conf_node_get(map, "name");
	if (!kind || !name)
		return conf_fail_at(err, map, "`providers[].%s` is missing", name ? "kind" : "name");
	rc = fill_name(p->name, name, err);
	rc = rc ? rc : fill_kind(p->kind, kind, err);
	for (const struct conf_node *n = map->child; n && !rc; n = n->next) {
		rc = conf_node_once(map, n, err);
		if (rc || n == kind || n == name)
			continue;
		if (!strcmp(n->key, "sites"))
			rc = fill_names(p->site, &p->sites, n, err);
		else if (!strcmp(n->key, "edges"))
			rc = fill_names(p->edge, &p->edges, n, err);
		else
			rc = fill_option(p, n, err);
	}
	if (!rc && p->sites == 1)
		return wrong(err, conf_node_get(map, "sites"), "sites", "at least two sites");
	return rc;
}

int ctlr_conf_providers(struct ctlr_conf *c, const struct conf_node *list, struct conf_error *err)
{
	if (list->kind != CONF_SEQ)
		return conf_fail_at(err, list, "expected a list for `providers`");
	for (const struct conf_node *n = list->child; n; n = n->next) {
		int rc;

		if (c->providers == CTLR_PROVIDERS_MAX)
			return conf_fail_at(err, n, "expected at most %u providers", CTLR_PROVIDERS_MAX);
		rc = fill_one(&c->provider[c->providers], n, err);
		if (rc)
			return rc;
		for (unsigned i = 0; i < c->providers; i++)
			if (!strcmp(c->provider[i].name, c->provider[c->providers].name))
				return wrong(err, conf_node_get(n, "name"), "name", "another name for each");
		c->providers++;
	}
	return 0;
}

unsigned ctlr_provider_options(const struct ctlr_provider *p, struct provider_option *out)
{
	for (unsigned i = 0; i < p->options; i++)
		out[i] = (struct provider_option){p->option[i].name, p->option[i].value};
	return p->options;
}

int ctlr_conf_providers_check(const struct ctlr_conf *c, const char *file, struct conf_error *err)
{
	for (unsigned i = 0; i < c->providers; i++) {
		const struct ctlr_provider *p = &c->provider[i];
		struct provider_option o[CTLR_OPTIONS_MAX];
		struct provider_err why = {""};

		memset(err, 0, sizeof(*err));
		snprintf(err->file, sizeof(err->file), "%s", file);
		if (provider_check(provider_find(p->kind), o, ctlr_provider_options(p, o), &why))
			return conf_fail(err, p->line, 0, "provider %s: %s", p->name, why.text);
	}
	return 0;
}
