/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of a tunnel in a controller's document, as a network's controller granted them: see
 * document_fields.h. Elsewhere: what paths may be (conf/check_path.c). */
#include "gateway/agent/document_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wan/wan.h"

#define RATE_LEAST 1000000u /* bit/s of a worker: conf/check_path.c */

const char *document_port(const struct conf *c, const char *local)
{
	struct rwy_ip ip;

	if (!document_ip(local, &ip))
		return NULL;
	for (unsigned p = 0; p < c->ports; p++)
		for (unsigned a = 0; c->port[p].role == CONF_ROLE_WAN && a < c->port[p].addrs; a++)
			if (rwy_ip_eq(&c->port[p].addr[a].addr, &ip))
				return c->port[p].name;
	return NULL;
}

void document_rate(uint64_t bps, char out[32])
{
	/* A bound that no tunnel reaches: gateways may offer more together, or at the edge. */
	if (bps > CONF_TUNNEL_BPS_MAX)
		bps = CONF_TUNNEL_BPS_MAX;
	snprintf(out, 32, "%" PRIu64 ".%06" PRIu64 "Mbps", bps / 1000000, bps % 1000000);
}

/* Optional numbers of a path, with their names in the file. */
static int numbers(const json_t *p, const char *what, json_t *to, struct conf_error *err)
{
	static const struct {
		const char *key;
		unsigned lo, hi;
	} field[] = {{"source_port", 1024, 65535}, {"dscp", 1, WAN_DSCP_MAX}};
	uint64_t v;
	int rc = 0;

	for (unsigned i = 0; i < sizeof(field) / sizeof(*field) && !rc; i++) {
		if (!json_object_get(p, field[i].key))
			continue;
		rc = document_number(p, what, field[i].key, field[i].lo, field[i].hi, &v, err);
		if (!rc)
			json_object_set_new(to, field[i].key, json_integer((json_int_t)v));
	}
	return rc;
}

/* Optional addresses. The port of ours follows from it. */
static int addresses(
    const struct conf *base, const json_t *p, const char *what, json_t *to, struct conf_error *err)
{
	const char *local, *remote, *port;
	struct rwy_ip ip;
	int rc = 0;

	if (json_object_get(p, "local")) {
		rc = document_text(p, what, "local", &local, err);
		port = rc ? NULL : document_port(base, local);
		if (!rc && !port)
			rc = document_fail(err,
			    "%s: expected an address of a port of role `wan` for `local`, found `%.60s`",
			    what, local);
		if (!rc) {
			json_object_set_new(to, "local", json_string(local));
			json_object_set_new(to, "port", json_string(port));
		}
	}
	if (rc || !json_object_get(p, "remote"))
		return rc;
	rc = document_text(p, what, "remote", &remote, err);
	if (!rc && !document_ip(remote, &ip))
		rc = document_fail(err, "%s: expected an address for `remote`, found `%.60s`", what, remote);
	if (!rc)
		json_object_set_new(to, "remote", json_string(remote));
	return rc;
}

static int word(const json_t *o, const char *what, const char *key, json_t *to, struct conf_error *err)
{
	const char *text = NULL;
	int rc = 0;

	if (json_object_get(o, key))
		rc = document_text(o, what, key, &text, err);
	if (!rc && json_object_get(o, key))
		json_object_set_new(to, key, json_string(text));
	return rc;
}

static int path(
    const struct conf *base, const json_t *p, const char *what, json_t *list, struct conf_error *err)
{
	const uint64_t least = (uint64_t)RATE_LEAST * base->workers;
	json_t *to = json_object();
	uint64_t udp = 0, bps = 0;
	char rate[32];
	int rc = document_keys(p, what, "label udp_port rate_bps | local remote source_port dscp use", err);

	rc = rc ? rc : document_number(p, what, "udp_port", 1024, UINT16_MAX, &udp, err);
	rc = rc ? rc : document_number(p, what, "rate_bps", 0, DOCUMENT_BPS_MAX, &bps, err);
	rc = rc ? rc : addresses(base, p, what, to, err);
	rc = rc ? rc : numbers(p, what, to, err);
	rc = rc ? rc : word(p, what, "label", to, err);
	rc = rc ? rc : word(p, what, "use", to, err);
	if (rc) {
		json_decref(to);
		return rc;
	}
	json_object_set_new(to, "udp_port", json_integer((json_int_t)udp));
	/* The network holds the path to what it granted, however little a worker can send. */
	document_rate(bps < least ? least : bps, rate);
	json_object_set_new(to, "rate", json_string(rate));
	return json_array_append_new(list, to) ? document_fail(err, "out of memory") : 0;
}

int document_paths(
    const struct conf *base, const json_t *t, const char *what, json_t *to, struct conf_error *err)
{
	const json_t *from = json_object_get(t, "paths");
	const size_t n = json_array_size(from);
	json_t *list;
	char one[96];
	int rc = word(t, what, "own_path", to, err);

	if (rc || !from)
		return rc;
	if (!json_is_array(from) || n > CONF_PATHS_MAX)
		return document_fail(
		    err, "%s: expected a list of at most %d for `paths`", what, CONF_PATHS_MAX);
	list = json_array();
	for (size_t i = 0; i < n && !rc; i++) {
		snprintf(one, sizeof(one), "%s: paths[%zu]", what, i);
		rc = path(base, json_array_get(from, i), one, list, err);
	}
	json_object_set_new(to, "paths", list);
	return rc;
}
