/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's configuration: a table of keys over the gateway's YAML reader. */
#include "controller/conf/conf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "conf/schema.h"
#include "controller/plan/vni.h"

enum kind { K_TEXT, K_NAME, K_WORD, K_INT, K_SIZE, K_DUR, K_PPM, K_LISTEN, K_LOOPBACK };

struct key {
	const char *group, *name;
	enum kind kind;
	size_t offset;
	uint64_t min, max;
	const char *words;
	bool required;
};

#define AT(m) offsetof(struct ctlr_conf, m)
static const struct key keys[] = {
    {"controller", "name", K_NAME, .offset = AT(name), .required = true},
    {"controller", "log_level", K_WORD, .offset = AT(log_level), .words = "error warning notice info debug"},
    {"controller", "sandbox", K_WORD, .offset = AT(sandbox), .words = "off on"},
    {"listen", "address", K_LISTEN, .offset = AT(address), .required = true},
    {"listen", "page", K_LOOPBACK, .offset = AT(page)},
    {"listen", "threads", K_INT, .offset = AT(threads), .min = 1, .max = 64},
    {"tls", "ca", K_TEXT, .offset = AT(ca), .required = true},
    {"tls", "certificate", K_TEXT, .offset = AT(cert), .required = true},
    {"tls", "key", K_TEXT, .offset = AT(key), .required = true},
    {"tls", "crl", K_TEXT, .offset = AT(crl)},
    {"store", "kind", K_WORD, .offset = AT(store), .words = "sqlite etcd"},
    {"store", "path", K_TEXT, .offset = AT(path)},
    {"store", "max_size", K_SIZE, .offset = AT(max_size), .min = 1 << 20, .max = UINT64_MAX},
    {"store", "prefix", K_TEXT, .offset = AT(prefix)},
    {"store", "ca", K_TEXT, .offset = AT(etcd_ca)},
    {"store", "certificate", K_TEXT, .offset = AT(etcd_cert)},
    {"store", "key", K_TEXT, .offset = AT(etcd_key)},
    {"store", "user", K_TEXT, .offset = AT(user)},
    {"store", "password", K_TEXT, .offset = AT(password)},
    {"gateways", "lease", K_DUR, .offset = AT(lease), .min = 200 * RWY_MS, .max = 3600 * RWY_SEC},
    {"gateways", "grace", K_DUR, .offset = AT(grace), .min = 0, .max = 3600 * RWY_SEC},
    {"gateways", "heartbeats", K_INT, .offset = AT(heartbeats), .min = 1, .max = 1000000},
    {"gateways", "security", K_WORD, .offset = AT(security), .words = "none keys"},
    {"tenants", "first_vni", K_INT, .offset = AT(vni_first), .min = 1, .max = PLAN_VNI_LAST},
    {"tenants", "last_vni", K_INT, .offset = AT(vni_last), .min = 1, .max = PLAN_VNI_LAST},
    {"limits", "body", K_SIZE, .offset = AT(body), .min = 4096, .max = 64 << 20},
    {"limits", "request", K_DUR, .offset = AT(request), .min = RWY_SEC / 10, .max = 600 * RWY_SEC},
    {"limits", "connections", K_INT, .offset = AT(connections), .min = 4, .max = 1000000},
    {"limits", "sessions", K_INT, .offset = AT(sessions), .min = 1, .max = 100000000},
    {"policy", "gain", K_PPM, .offset = AT(policy.gain_ppm)},
    {"policy", "confirm", K_DUR, .offset = AT(policy.confirm), .min = 0, .max = 3600 * RWY_SEC},
    {"policy", "hold", K_DUR, .offset = AT(policy.hold), .min = 0, .max = 86400 * RWY_SEC},
    {"policy", "ask_networks", K_DUR, .offset = AT(ask_networks), .min = 100 * RWY_MS, .max = 3600 * RWY_SEC},
    {"policy", "wan_efficiency", K_PPM, .offset = AT(policy.wan_ppm)},
    {"policy", "native_efficiency", K_PPM, .offset = AT(policy.gateway_ppm[PLAN_NATIVE])},
    {"policy", "tcp_efficiency", K_PPM, .offset = AT(policy.gateway_ppm[PLAN_TCP])},
    {"policy", "quic_efficiency", K_PPM, .offset = AT(policy.gateway_ppm[PLAN_QUIC])},
    {"policy", "rdma_efficiency", K_PPM, .offset = AT(policy.gateway_ppm[PLAN_RDMA])},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

bool ctlr_address(const char *text, struct sockaddr_storage *out, unsigned *len)
{
	const char *colon = strrchr(text, ':');
	const bool six = *text == '[';
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	char ip[64];
	uint64_t port;

	if (!colon || (size_t)(colon - text) >= sizeof(ip) || !conf_scan_int(colon + 1, &port) ||
	    port > 65535)
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(ip, text + six, (size_t)(colon - text) - six);
	ip[colon - text - six] = 0;
	if (six && *ip && ip[strlen(ip) - 1] == ']')
		ip[strlen(ip) - 1] = 0;
	if (six) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		*len = sizeof(*in6);
		return inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1;
	}
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	*len = sizeof(*in);
	return inet_pton(AF_INET, ip, &in->sin_addr) == 1;
}

static bool loopback(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)a;
	const struct sockaddr_in *in = (const struct sockaddr_in *)a;

	return a->ss_family == AF_INET ? ntohl(in->sin_addr.s_addr) >> 24 == 127
	                               : IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

static int wrong(struct conf_error *err, const struct conf_node *n, const struct key *k, const char *expected)
{
	char found[96];

	conf_node_found(n, found, sizeof(found));
	return conf_fail_at(err, n, "expected %s for `%s.%s`, found %s", expected, k->group, k->name, found);
}

static int number(void *at, const struct conf_node *n, const struct key *k, struct conf_error *err)
{
	uint64_t v = 0;
	bool ok = k->kind == K_INT    ? conf_scan_int(n->text, &v)
	          : k->kind == K_SIZE ? conf_scan_size(n->text, &v)
	          : k->kind == K_DUR  ? conf_scan_duration(n->text, &v)
	                              : conf_scan_percent(n->text, &v);
	char text[160], lo[64], hi[64];

	if (k->kind == K_PPM && ok && v <= 1000000) {
		*(uint32_t *)at = (uint32_t)v;
		return 0;
	}
	if (k->kind == K_PPM)
		return wrong(err, n, k, "a share in percent");
	if (ok && v >= k->min && v <= k->max) {
		if (k->kind == K_INT)
			*(unsigned *)at = (unsigned)v;
		else
			*(uint64_t *)at = v;
		return 0;
	}
	conf_print_value(k->kind == K_INT    ? CONF_T_INT
	                 : k->kind == K_SIZE ? CONF_T_SIZE
	                                     : CONF_T_DURATION,
	    k->min, lo, sizeof(lo));
	conf_print_value(k->kind == K_INT    ? CONF_T_INT
	                 : k->kind == K_SIZE ? CONF_T_SIZE
	                                     : CONF_T_DURATION,
	    k->max, hi, sizeof(hi));
	snprintf(text, sizeof(text), "%s from %s to %s",
	    k->kind == K_INT    ? "a number"
	    : k->kind == K_SIZE ? "a size"
	                        : "a duration",
	    lo, hi);
	return wrong(err, n, k, text);
}

static int word(int *at, const struct conf_node *n, const struct key *k, struct conf_error *err)
{
	char w[CONF_NAME], text[128];

	for (unsigned i = 0; conf_word_at(k->words, i, w); i++)
		if (!strcmp(w, n->text)) {
			*at = (int)i;
			return 0;
		}
	snprintf(text, sizeof(text), "one of %s", k->words);
	return wrong(err, n, k, text);
}

static int fill_key(
    struct ctlr_conf *c, const struct conf_node *n, const struct key *k, struct conf_error *err)
{
	void *at = (char *)c + k->offset;
	struct sockaddr_storage a;
	unsigned len;

	if (n->kind != CONF_SCALAR || conf_node_is_null(n))
		return wrong(err, n, k, "a value");
	switch (k->kind) {
	case K_NAME:
		if (!conf_scan_name(n->text, CONF_NAME - 1))
			return wrong(err, n, k, "a name of letters, digits, `.`, `_`, `-`");
		break;
	case K_LISTEN:
		if (!ctlr_address(n->text, &a, &len))
			return wrong(err, n, k, "ADDRESS:PORT");
		break;
	case K_LOOPBACK:
		if (!ctlr_address(n->text, &a, &len) || !loopback(&a))
			return wrong(err, n, k, "ADDRESS:PORT of the loopback (it has no certificates)");
		break;
	case K_TEXT:
		break;
	case K_WORD:
		return word(at, n, k, err);
	case K_INT:
	case K_SIZE:
	case K_DUR:
	case K_PPM:
		return number(at, n, k, err);
	}
	if (n->len >= (k->kind == K_NAME ? CONF_NAME : CTLR_TEXT) || strlen(n->text) != n->len || !n->len)
		return wrong(err, n, k, "a shorter text that is not empty");
	memcpy(at, n->text, n->len + 1);
	return 0;
}

static const struct key *key_find(const char *group, const char *name)
{
	for (unsigned i = 0; i < KEYS; i++)
		if (!strcmp(keys[i].group, group) && (!name || !strcmp(keys[i].name, name)))
			return &keys[i];
	return NULL;
}

static int fill_endpoints(struct ctlr_conf *c, const struct conf_node *list, struct conf_error *err)
{
	if (list->kind != CONF_SEQ)
		return conf_fail_at(err, list, "expected a list of URLs for `store.endpoints`");
	for (const struct conf_node *n = list->child; n; n = n->next) {
		if (n->kind != CONF_SCALAR || n->len >= CTLR_TEXT ||
		    (strncmp(n->text, "http://", 7) != 0 && strncmp(n->text, "https://", 8) != 0))
			return conf_fail_at(err, n, "expected a URL for `store.endpoints`");
		if (c->endpoints == CTLR_ENDPOINTS_MAX)
			return conf_fail_at(err, n, "expected at most %u endpoints", CTLR_ENDPOINTS_MAX);
		memcpy(c->endpoint[c->endpoints++], n->text, n->len + 1);
	}
	return 0;
}

static int fail_unknown(struct conf_error *err, const char *group, const struct conf_node *n)
{
	const char *words[KEYS + 3], *near;
	unsigned count = 0;

	for (unsigned i = 0; i < KEYS; i++)
		if (group && !strcmp(keys[i].group, group))
			words[count++] = keys[i].name;
		else if (!group && (!i || strcmp(keys[i].group, keys[i - 1].group) != 0))
			words[count++] = keys[i].group;
	if (!group)
		words[count++] = "providers";
	else if (!strcmp(group, "store"))
		words[count++] = "endpoints";
	words[count] = NULL;
	near = conf_nearest(n->key, words);
	return conf_fail(err, n->key_line, n->key_column, "expected %s%s%s%s known key%s%s, found `%.64s`",
	    near ? "`" : "", near ? near : "", near ? "` or " : "", near ? "another" : "a",
	    group ? " of " : "", group ? group : "", n->key);
}

static int fill_group(struct ctlr_conf *c, const struct conf_node *g, struct conf_error *err)
{
	if (!strcmp(g->key, "providers"))
		return ctlr_conf_providers(c, g, err);
	if (!key_find(g->key, NULL))
		return fail_unknown(err, NULL, g);
	if (g->kind != CONF_MAP)
		return conf_fail_at(err, g, "expected keys below `%s`", g->key);
	for (const struct conf_node *n = g->child; n; n = n->next) {
		const struct key *k = key_find(g->key, n->key);
		const bool endpoints = !strcmp(g->key, "store") && !strcmp(n->key, "endpoints");
		int rc = k || endpoints ? conf_node_once(g, n, err) : fail_unknown(err, g->key, n);

		if (!rc)
			rc = k ? fill_key(c, n, k, err) : fill_endpoints(c, n, err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Reports a missing key at the line of its group, or at the first line. */
__attribute__((format(printf, 4, 0))) static int missing(struct conf_error *err, const struct conf_node *root,
    const char *group, const char *fmt, const char *what)
{
	const struct conf_node *g = root ? conf_node_get(root, group) : NULL;
	char text[96];

	snprintf(text, sizeof(text), fmt, group, what);
	return conf_fail(err, g ? g->key_line : 1, g ? g->key_column : 1, "%s", text);
}

static int check_all(const struct ctlr_conf *c, const struct conf_node *root, struct conf_error *err)
{
	for (unsigned i = 0; i < KEYS; i++) {
		const struct conf_node *g = conf_node_get(root, keys[i].group);

		if (keys[i].required && (!g || !conf_node_get(g, keys[i].name)))
			return missing(err, root, keys[i].group, "`%s.%s` is missing", keys[i].name);
	}
	if (c->store == CTLR_SQLITE && !*c->path)
		return missing(err, root, "store", "`%s.%s` is missing: where SQLite keeps its file", "path");
	if (c->store == CTLR_ETCD && !c->endpoints)
		return missing(err, root, "store", "`%s.%s` is missing: etcd's URLs", "endpoints");
	if (c->vni_first > c->vni_last)
		return missing(err, root, "tenants", "`%s.last_vni` is below %s", "first_vni");
	if (plan_policy_check(&c->policy))
		return missing(err, root, "policy", "an efficiency in `%s` is %s", "0 or above 100 %");
	return 0;
}

static void defaults(struct ctlr_conf *c)
{
	memset(c, 0, sizeof(*c));
	c->log_level = 3;
	c->sandbox = 1;
	c->threads = 2;
	c->lease = 3 * RWY_SEC;
	/* gateways that found no controller try again after at most 30 s */
	c->grace = 35 * RWY_SEC;
	c->heartbeats = 2000;
	c->security = CONF_SEC_KEYS;
	c->vni_first = PLAN_VNI_FIRST;
	c->vni_last = PLAN_VNI_LAST;
	c->body = 1 << 20;
	c->request = 10 * RWY_SEC;
	c->connections = 25000;
	c->sessions = 1000000;
	snprintf(c->prefix, sizeof(c->prefix), "/roceway/");
	plan_policy_default(&c->policy);
	c->ask_networks = 10 * RWY_SEC;
}

int ctlr_conf_parse(
    struct ctlr_conf *out, const char *text, size_t len, const char *name, struct conf_error *err)
{
	struct conf_tree tree;
	int rc;

	memset(err, 0, sizeof(*err));
	snprintf(err->file, sizeof(err->file), "%s", name);
	defaults(out);
	rc = conf_tree_parse(&tree, text, len, err);
	if (rc) {
		if (!err->line)
			err->line = err->column = 1; /* there is nothing in it */
		return rc;
	}
	for (const struct conf_node *g = tree.root ? tree.root->child : NULL; !rc && g; g = g->next) {
		rc = conf_node_once(tree.root, g, err);
		rc = rc ? rc : fill_group(out, g, err);
	}
	if (!rc)
		rc = check_all(out, tree.root, err);
	conf_tree_free(&tree);
	if (rc && !err->line)
		err->line = err->column = 1; /* the error is about the whole file */
	snprintf(err->file, sizeof(err->file), "%s", name);
	return rc;
}

int ctlr_conf_load(struct ctlr_conf *out, const char *path, struct conf_error *err)
{
	static char text[1 << 20];
	FILE *f = conf_open(path);
	size_t n;

	memset(err, 0, sizeof(*err));
	snprintf(err->file, sizeof(err->file), "%s", path);
	if (!f)
		return conf_fail(err, 0, 0, "cannot be read: %s", strerror(errno));
	n = fread(text, 1, sizeof(text), f);
	if (ferror(f)) { /* such as a folder */
		conf_fail(err, 0, 0, "cannot be read: %s", strerror(errno));
		fclose(f);
		return RWY_EINVAL;
	}
	fclose(f);
	if (n == sizeof(text))
		return conf_fail(
		    err, 0, 0, "expected a file of at most %zu bytes, found more", sizeof(text) - 1);
	return ctlr_conf_parse(out, text, n, path, err);
}
