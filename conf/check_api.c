/* SPDX-License-Identifier: Apache-2.0 */
/* The API: the groups that may use it, and the address of the metrics: ADDRESS:PORT, [IPv6]:PORT or
 * unix:/PATH. */
#include "conf/schema.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#define UNIX_MAX  107       /* bytes of a Unix socket's path */
#define GROUP_MAX (1 << 20) /* bytes of a group's entry: some have thousands of members */
#define OVERFLOW  65534u    /* the kernel's word for a group that this namespace does not have */

/* The number of a group that has a name here; CONF_NO_GID: there is none, or no memory. */
static uint32_t gid_of_name(const char *name)
{
	struct group entry, *found = NULL;
	char *buf = NULL;
	uint32_t gid;
	int rc = ERANGE;

	for (size_t size = 1024; rc == ERANGE && size <= GROUP_MAX; size *= 4) {
		free(buf);
		buf = malloc(size);
		rc = buf ? getgrnam_r(name, &entry, buf, size, &found) : ENOMEM;
	}
	gid = !rc && found ? found->gr_gid : CONF_NO_GID;
	free(buf);
	return gid;
}

static uint32_t gid_of(const char *text)
{
	uint64_t v;

	if (!*text)
		return CONF_NO_GID;
	if (conf_scan_int(text, &v))
		return v < CONF_NO_GID ? (uint32_t)v : CONF_NO_GID;
	return gid_of_name(text);
}

void conf_finish_api(struct conf *c)
{
	c->api_read_gid = gid_of(c->api_read_group);
	c->api_operator_gid = gid_of(c->api_operator_group);
}

static int check_group(
    const struct conf_node *api, const char *key, const char *text, uint32_t gid, struct conf_error *err)
{
	const struct conf_node *n = conf_node_get(api, key);

	if (*text && gid == CONF_NO_GID)
		return conf_fail_at(err, n,
		    "expected the name or number of a group of this machine for `%s`, found `%s`", key, text);
	if (gid == OVERFLOW)
		return conf_fail_at(err, n,
		    "expected a group other than %u for `%s`, found `%s`: users of other namespaces seem to "
		    "be in it",
		    OVERFLOW, key, text);
	return 0;
}

bool conf_listen_parse(const char *s, struct conf_listen *out)
{
	const char *colon = strrchr(s, ':');
	const bool six = *s == '[';
	char host[64];
	uint64_t port;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (!strncmp(s, "unix:", 5)) {
		out->path = s + 5;
		return s[5] == '/' && s[6] && strlen(s + 5) <= UNIX_MAX;
	}
	if (!colon || !conf_scan_int(colon + 1, &port) || !port || port > 65535)
		return false;
	n = (size_t)(colon - s);
	if (n >= sizeof(host) || (six && (n < 3 || s[n - 1] != ']')))
		return false;
	memcpy(host, s + six, n - 2 * six);
	host[n - 2 * six] = 0;
	out->port = (uint16_t)port;
	return conf_scan_ip(host, &out->addr) && rwy_ip_is4(&out->addr) == !six;
}

int conf_check_api(const struct conf *c, const struct conf_node *root, struct conf_error *err)
{
	const struct conf_node *api = conf_node_get(root, "api");
	struct conf_listen l;
	int rc = check_group(api, "read_group", c->api_read_group, c->api_read_gid, err);

	if (!rc)
		rc = check_group(api, "operator_group", c->api_operator_group, c->api_operator_gid, err);
	if (rc)
		return rc;
	if (!*c->api_metrics ||
	    (conf_listen_parse(c->api_metrics, &l) && (!l.path || strcmp(l.path, c->api_socket) != 0)))
		return 0;
	return conf_fail_at(err, api ? conf_node_get(api, "metrics") : NULL,
	    "expected an address and port such as `127.0.0.1:9464` or `[::1]:9464`, or `unix:` and a path "
	    "that is "
	    "not `socket`, for `metrics`, found `%s`",
	    c->api_metrics);
}
