/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills one scalar from the tree into its field, by its key's type. scan.c turns text into numbers
 * and addresses, list.c has lists, fill.c groups of keys.
 */
#include "conf/value.h"

void conf_store(void *base, const struct conf_key *k, uint64_t v)
{
	void *at = (char *)base + k->offset;

	switch (k->size) {
	case 1:
		*(uint8_t *)at = (uint8_t)v;
		return;
	case 2:
		*(uint16_t *)at = (uint16_t)v;
		return;
	case 4:
		*(uint32_t *)at = (uint32_t)v;
		return;
	default:
		memcpy(at, &v, sizeof(v));
	}
}

static bool scan_enum(void *base, const struct conf_key *k, const char *text)
{
	const int i = conf_word_find(k, text);

	if (i >= 0 && k->size == CONF_NAME)
		memcpy((char *)base + k->offset, text, strlen(text) + 1);
	else if (i >= 0)
		conf_store(base, k, (unsigned)i);
	return i >= 0;
}

static bool scan_number(void *base, const struct conf_key *k, const char *text)
{
	uint64_t v = 0;
	bool ok;

	if (k->words && !strcmp(k->words, text)) {
		conf_store(base, k, 0);
		return true;
	}
	ok = k->type == CONF_T_INT        ? conf_scan_int(text, &v)
	     : k->type == CONF_T_PERCENT  ? conf_scan_percent(text, &v)
	     : k->type == CONF_T_SIZE     ? conf_scan_size(text, &v)
	     : k->type == CONF_T_DURATION ? conf_scan_duration(text, &v)
	                                  : conf_scan_rate(text, &v);
	if (!ok || v < k->min || v > k->max)
		return false;
	conf_store(base, k, k->type == CONF_T_RATE ? v / 8 : v);
	return true;
}

static bool scan_text(void *base, const struct conf_key *k, const char *text)
{
	const size_t len = strlen(text);
	unsigned cpus;
	bool ok = len < k->size;

	if (k->type == CONF_T_NAME)
		ok = ok && conf_scan_name(text, k->max);
	else if (k->type == CONF_T_CPUS)
		ok = ok && conf_scan_cpus(text, &cpus);
	else
		ok = ok && conf_scan_printable(text) && len >= k->min && len <= k->max;
	if (k->type == CONF_T_PATH)
		ok = ok && *text == '/' && text[len - 1] != '/';
	if (ok)
		memcpy((char *)base + k->offset, text, len + 1);
	return ok;
}

static bool scan_dscp(uint8_t map[64], const char *text)
{
	bool keep = !strcmp(text, "keep");
	uint64_t v = 0;

	if (!keep && (!conf_scan_int(text, &v) || v > 63))
		return false;
	for (unsigned i = 0; i < 64; i++)
		map[i] = (uint8_t)(keep ? i : v);
	return true;
}

static bool scan_one(void *base, const struct conf_key *k, const char *text)
{
	void *at = (char *)base + k->offset;
	struct rwy_ip ip;

	switch (k->type) {
	case CONF_T_INT:
	case CONF_T_PERCENT:
	case CONF_T_SIZE:
	case CONF_T_DURATION:
	case CONF_T_RATE:
		return scan_number(base, k, text);
	case CONF_T_ENUM:
		return scan_enum(base, k, text);
	case CONF_T_NAME:
	case CONF_T_STRING:
	case CONF_T_PATH:
	case CONF_T_CPUS:
		return scan_text(base, k, text);
	case CONF_T_IP:
		if (!conf_scan_ip(text, &ip) || !conf_ip_unicast(&ip))
			return false;
		memcpy(at, &ip, sizeof(ip));
		return true;
	case CONF_T_MAC:
		return conf_scan_mac(text, at);
	case CONF_T_UDP:
		return conf_scan_ports(text, at);
	case CONF_T_DSCP:
		return scan_dscp(at, text);
	case CONF_T_PREFIX: /* a default is the word */
		memset(at, 0, k->size);
		return k->words && !strcmp(text, k->words);
	case CONF_T_WORDS: /* a default is the set of all words */
		conf_store(base, k, (UINT64_C(1) << k->max) - 1);
		return true;
	case CONF_T_GROUP:
	case CONF_T_GROUPS:
	case CONF_T_PLACE:
	case CONF_T_ADDRS:
	case CONF_T_PREFIXES:
	case CONF_T_STRINGS:
	case CONF_T_IPS:
	case CONF_T_IP_EACH:
		return false;
	}
	rwy_unreachable();
}

int conf_fill_default(void *base, const struct conf_key *k, struct conf_error *err)
{
	if (!*k->dflt || scan_one(base, k, k->dflt))
		return 0;
	return conf_fail(err, 0, 0, "the default of %s is wrong: `%s`", k->path, k->dflt);
}

/* --- scalars with messages of their own ------------------------------------------------------- */

int conf_fill_prefix(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err)
{
	static const struct rwy_ip v4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}};
	struct conf_prefix fixed;
	char found[64], want[64];

	conf_node_found(n, found, sizeof(found));
	if (!conf_scan_prefix(n->text, p))
		return conf_fail_at(
		    err, n, "expected a prefix such as `10.2.0.0/24` or `fd00:2::/64`, found %s", found);
	fixed = (struct conf_prefix){conf_prefix_base(p), p->len};
	if (!rwy_ip_eq(&fixed.addr, &p->addr)) {
		conf_print_prefix(&fixed, want, sizeof(want));
		return conf_fail_at(
		    err, n, "expected a prefix without host bits, `%s`, found %s", want, found);
	}
	if (!rwy_ip_is4(&p->addr) && conf_prefix_has(p, &v4))
		return conf_fail_at(err, n,
		    "expected an IPv6 prefix that leaves out ::/96 (all unicast: `2000::/3`), found %s",
		    found);
	return 0;
}

/* Fills a struct prefix (tenant/range.h) from a prefix, or from a word that means any. */
static int fill_prefix_or_word(
    void *base, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	struct prefix *out = (struct prefix *)(void *)((char *)base + k->offset);
	struct conf_prefix p;
	int rc;

	if (k->words && !strcmp(k->words, n->text)) {
		*out = (struct prefix){0};
		return 0;
	}
	rc = conf_fill_prefix(&p, n, err);
	if (!rc)
		*out = (struct prefix){p.addr, p.len};
	return rc;
}

static int fail_place(const struct conf *c, const struct conf_node *n, struct conf_error *err)
{
	const char *words[CONF_TUNNELS_MAX + 3] = {"vtep", "vlan"}, *near;
	char found[64];

	for (unsigned i = 0; i < c->tunnels; i++)
		words[2 + i] = c->tunnel[i].name;
	near = conf_nearest(n->text, words);
	conf_node_found(n, found, sizeof(found));
	if (near)
		return conf_fail_at(err, n,
		    "expected `vtep`, `vlan` or a tunnel's name for `at`, perhaps `%s`, found %s", near,
		    found);
	return conf_fail_at(err, n, "expected `vtep`, `vlan` or a tunnel's name for `at`, found %s", found);
}

static int fill_place(const struct conf *c, void *base, const struct conf_key *k, const struct conf_node *n,
    struct conf_error *err)
{
	struct tenant_at *at = (struct tenant_at *)(void *)((char *)base + k->offset);

	*at = (struct tenant_at){0};
	if (!strcmp(n->text, "vtep"))
		at->side = TENANT_VTEP;
	else if (!strcmp(n->text, "vlan"))
		at->side = TENANT_LAN;
	for (unsigned i = 0; i < c->tunnels && !at->side; i++)
		if (*c->tunnel[i].name && !strcmp(n->text, c->tunnel[i].name))
			*at = (struct tenant_at){TENANT_TUNNEL, (uint8_t)i};
	return at->side ? 0 : fail_place(c, n, err);
}

int conf_fill_scalar(const struct conf *c, void *base, const struct conf_key *k, const struct conf_node *n,
    struct conf_error *err)
{
	if (n->kind != CONF_SCALAR || conf_node_is_null(n) || (k->type == CONF_T_INT && !n->plain))
		return conf_fail_type(err, k, n);
	if (k->type == CONF_T_PREFIX)
		return fill_prefix_or_word(base, k, n, err);
	if (k->type == CONF_T_PLACE)
		return fill_place(c, base, k, n, err);
	return scan_one(base, k, n->text) ? 0 : conf_fail_type(err, k, n);
}
