/* SPDX-License-Identifier: Apache-2.0 */
/* The address of the metrics: ADDRESS:PORT, [IPv6]:PORT or unix:/PATH. */
#include "conf/schema.h"

#include <string.h>

#define UNIX_MAX 107 /* bytes of a Unix socket's path */

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

	if (!*c->api_metrics ||
	    (conf_listen_parse(c->api_metrics, &l) && (!l.path || strcmp(l.path, c->api_socket) != 0)))
		return 0;
	return conf_fail_at(err, api ? conf_node_get(api, "metrics") : NULL,
	    "expected an address and port such as `127.0.0.1:9464` or `[::1]:9464`, or `unix:` and a path "
	    "that is "
	    "not `socket`, for `metrics`, found `%s`",
	    c->api_metrics);
}
