/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entry of the folder: takes a file or text, returns struct conf or one message. YAML is in
 * tree.c, keys are in schema.c, key.c and fill.c, rules between keys in check.c.
 */
#include "conf/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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
	if (!rc) {
		conf_finish_keys(c);
		conf_finish_standby(c, &tree);
		conf_finish_api(c);
		conf_finish_tenants(c, &tree);
	}
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

FILE *conf_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *f = fd < 0 || fcntl(fd, F_SETFL, 0) ? NULL : fdopen(fd, "r");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

int conf_reload(struct conf **out, const char *path, const struct conf *running, struct conf_error *err)
{
	FILE *f = conf_open(path);
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
