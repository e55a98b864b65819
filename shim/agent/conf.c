/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/agent/conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/policy.h"

#define BLANKS   " \t\r"
#define PROBE_MS 250

/* A line on its way through the parser. */
struct line {
	struct hagent_conf *c;
	const char *path;
	unsigned at;
	char *err;
	size_t size;
};

/* found: "" and NULL are nothing. */
static int fail(const struct line *l, const char *expected, const char *found)
{
	if (found && !*found)
		found = NULL;
	snprintf(l->err, l->size, "%s:%u: expected %s, found %s%.80s%s", l->path, l->at, expected,
	    found ? "`" : "", found ? found : "nothing", found ? "`" : "");
	return RWY_EINVAL;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Takes a value that the word may have once. */
static int once(const struct line *l, char *out, size_t size, const char *v, const char *what)
{
	if (*out)
		return fail(l, "each word once", v);
	if (strlen(v) >= size)
		return fail(l, what, v);
	memcpy(out, v, strlen(v) + 1);
	return 0;
}

/* As names in the controller's API. */
static int name_take(const struct line *l, char *out, const char *v)
{
	static const char what[] = "a name of at most 31 letters, digits, `.`, `_`, `-`";

	for (const char *p = v; *p; p++)
		if (!isalnum((unsigned char)*p) && (p == v || !strchr("._-", *p)))
			return fail(l, what, v);
	return once(l, out, HAGENT_NAME, v, what);
}

static int path_take(const struct line *l, char *out, const char *v)
{
	if (*v != '/')
		return fail(l, "a path from the root", v);
	return once(l, out, HAGENT_PATH, v, "a shorter path");
}

static int url_take(const struct line *l, const char *v)
{
	const size_t n = strlen("https://");

	if (strncmp(v, "https://", n) != 0 || !v[n] || strchr(v + n, '/') || strlen(v) >= HAGENT_PATH)
		return fail(l, "https://HOST:PORT", v);
	if (l->c->urls == HAGENT_URLS)
		return fail(l, "at most 8 controllers", v);
	memcpy(l->c->url[l->c->urls++], v, strlen(v) + 1);
	return 0;
}

static int probe_take(const struct line *l, const char *v)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(v, &end, 10);
	if (errno || !isdigit((unsigned char)*v) || *end || n < 50 || n > 60000)
		return fail(l, "milliseconds from 50 to 60000", v);
	l->c->probe_ms = (uint32_t)n;
	return 0;
}

static int after_take(const struct line *l, const char *v)
{
	if (strcmp(v, "keep") != 0 && strcmp(v, "drop") != 0)
		return fail(l, "`keep` or `drop`", v);
	l->c->drop = *v == 'd';
	return 0;
}

/* --- lines ------------------------------------------------------------------------------------ */

static int value_take(const struct line *l, const char *word, const char *v)
{
	struct hagent_conf *c = l->c;

	if (!strcmp(word, "controller"))
		return url_take(l, v);
	if (!strcmp(word, "ca"))
		return path_take(l, c->ca, v);
	if (!strcmp(word, "certificate"))
		return path_take(l, c->certificate, v);
	if (!strcmp(word, "key"))
		return path_take(l, c->key, v);
	if (!strcmp(word, "name"))
		return name_take(l, c->name, v);
	if (!strcmp(word, "site"))
		return name_take(l, c->site, v);
	if (!strcmp(word, "policy"))
		return path_take(l, c->policy, v);
	if (!strcmp(word, "write"))
		return path_take(l, c->write, v);
	if (!strcmp(word, "probe"))
		return probe_take(l, v);
	if (!strcmp(word, "after-lease"))
		return after_take(l, v);
	return fail(
	    l, "controller, ca, certificate, key, name, site, policy, write, probe or after-lease", word);
}

static int line_take(const struct line *l, char *text)
{
	char *save, *word, *v;
	int rc;

	text[strcspn(text, "#")] = '\0';
	word = strtok_r(text, BLANKS, &save);
	if (!word)
		return 0;
	v = strtok_r(NULL, BLANKS, &save);
	if (!v) {
		/* If the word is unknown, that is the error to tell. */
		rc = value_take(l, word, "");
		return rc ? rc : fail(l, "a value", NULL);
	}
	rc = value_take(l, word, v);
	while (!rc && (v = strtok_r(NULL, BLANKS, &save)))
		rc = strcmp(word, "controller") != 0 ? fail(l, "one value", v) : url_take(l, v);
	return rc;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int missing(const struct line *l, const char *word)
{
	snprintf(l->err, l->size, "%s: expected `%s` beside `controller`, found nothing", l->path, word);
	return RWY_EINVAL;
}

static int whole_check(const struct line *l)
{
	struct hagent_conf *c = l->c;

	if (!c->urls == !*c->policy) {
		snprintf(l->err, l->size, "%s: expected `controller` or `policy`, found %s", l->path,
		    c->urls ? "both" : "none");
		return RWY_EINVAL;
	}
	if (!*c->write)
		snprintf(c->write, sizeof(c->write), "%s", SHIM_AGENT_FILE);
	if (!strcmp(c->write, c->policy) || !strcmp(c->write, SHIM_FILE)) {
		snprintf(l->err, l->size,
		    "%s: expected another file than the operator's for `write`, found `%s`", l->path,
		    c->write);
		return RWY_EINVAL;
	}
	if (!c->urls)
		return 0;
	if (!*c->ca)
		return missing(l, "ca");
	if (!*c->certificate)
		return missing(l, "certificate");
	if (!*c->key)
		return missing(l, "key");
	if (!*c->site)
		return missing(l, "site");
	if (!*c->name && (gethostname(c->name, sizeof(c->name)) != 0 || c->name[HAGENT_NAME - 1])) {
		c->name[0] = '\0';
		return missing(l, "name"); /* this machine's own is too long */
	}
	return 0;
}

int hagent_conf_load(struct hagent_conf *c, const char *path, char *err, size_t size)
{
	struct line l = {.c = c, .path = path, .err = err, .size = size};
	char *all = shim_text_file(path, err, size), *rest = all, *text;
	int rc = all ? 0 : RWY_EINVAL;

	memset(c, 0, sizeof(*c));
	c->probe_ms = PROBE_MS;
	while (!rc && (text = strsep(&rest, "\n"))) {
		l.at++;
		rc = line_take(&l, text);
	}
	free(all);
	return rc ? rc : whole_check(&l);
}
