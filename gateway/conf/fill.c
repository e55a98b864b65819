/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From tree to struct conf by the schema: known keys, types, ranges, defaults, what is required. One message
 * for the first fault. Not here: rules about more than one key (check.c).
 */
#include "gateway/conf/schema.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define GROUP_KEYS_MAX 16 /* keys of one group, bounded by the seen array below */

static const char *last_part(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

/* The idx-th word, 0 terminated, false when there are fewer. */
static bool word_at(const char *words, unsigned idx, char out[CONF_NAME])
{
	size_t n;

	while (idx--) {
		words += strcspn(words, " ");
		words += *words == ' ';
	}
	n = strcspn(words, " ");
	memcpy(out, words, n);
	out[n] = 0;
	return n;
}

static void describe_words(const char *words, char *out, size_t size)
{
	char word[CONF_NAME];
	size_t used = 0;

	for (unsigned i = 0; word_at(words, i, word) && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s`%s`",
		    i                     ? ", "
		    : words[strlen(word)] ? "one of "
		                          : "",
		    word);
}

void conf_key_describe(const struct conf_key *k, char *out, size_t size)
{
	static const char *const what[] = {[CONF_T_INT] = "an integer",
	    [CONF_T_SIZE] = "a size",
	    [CONF_T_DURATION] = "a duration",
	    [CONF_T_RATE] = "a rate"};
	char lo[32], hi[32];

	switch (k->type) {
	case CONF_T_INT:
	case CONF_T_SIZE:
	case CONF_T_DURATION:
	case CONF_T_RATE:
		conf_print_value(k->type, k->min, lo, sizeof(lo));
		conf_print_value(k->type, k->max, hi, sizeof(hi));
		snprintf(out, size, "%s from %s to %s", what[k->type], lo, hi);
		return;
	case CONF_T_ENUM:
		describe_words(k->words, out, size);
		return;
	case CONF_T_GROUP:
		snprintf(out, size, "a mapping of keys");
		return;
	case CONF_T_GROUPS:
		snprintf(out, size, "a list of %u to %u mappings", (unsigned)k->min, (unsigned)k->max);
		return;
	case CONF_T_NAME:
		snprintf(out, size, "a name of at most %u letters, digits, `.`, `_`, `-`", (unsigned)k->max);
		return;
	case CONF_T_STRING:
		snprintf(out, size, "a text of %u to %u printable ASCII characters", (unsigned)k->min,
		    (unsigned)k->max);
		return;
	case CONF_T_PATH:
		snprintf(out, size, "an absolute path of at most %u characters", (unsigned)k->max);
		return;
	case CONF_T_CPUS:
		snprintf(out, size, "CPU numbers in ascending order such as `1-2` or `0,4-7`");
		return;
	case CONF_T_IP:
		snprintf(out, size, "an IPv4 or IPv6 unicast address");
		return;
	case CONF_T_ADDRS:
		snprintf(out, size, "a list of %u to %u addresses with length such as `10.1.0.1/24`",
		    (unsigned)k->min, (unsigned)k->max);
		return;
	case CONF_T_PREFIXES:
		snprintf(out, size, "a list of %u to %u prefixes such as `10.2.0.0/24`", (unsigned)k->min,
		    (unsigned)k->max);
		return;
	case CONF_T_STRINGS:
		snprintf(out, size, "a list of at most %u texts", (unsigned)k->max);
		return;
	}
	rwy_unreachable();
}

static int fail_type(struct conf_error *err, const struct conf_key *k, const struct conf_node *n)
{
	char want[160], found[64];

	conf_key_describe(k, want, sizeof(want));
	conf_node_found(n, found, sizeof(found));
	return conf_fail_at(err, n, "expected %s for `%s`, found %s", want, last_part(k->path), found);
}

static void store(void *base, const struct conf_key *k, uint64_t v)
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
	char word[CONF_NAME];

	for (unsigned i = 0; word_at(k->words, i, word); i++) {
		if (strcmp(word, text) != 0)
			continue;
		if (k->size == CONF_NAME)
			memcpy((char *)base + k->offset, word, strlen(word) + 1);
		else
			store(base, k, i);
		return true;
	}
	return false;
}

static bool scan_number(void *base, const struct conf_key *k, const char *text)
{
	uint64_t v = 0;
	bool ok = k->type == CONF_T_INT        ? conf_scan_int(text, &v)
	          : k->type == CONF_T_SIZE     ? conf_scan_size(text, &v)
	          : k->type == CONF_T_DURATION ? conf_scan_duration(text, &v)
	                                       : conf_scan_rate(text, &v);

	if (!ok || v < k->min || v > k->max)
		return false;
	store(base, k, k->type == CONF_T_RATE ? v / 8 : v);
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

/* Can a host or gateway have it? Not unspecified, loopback, multicast, broadcast. */
static bool is_unicast(const struct rwy_ip *a)
{
	static const struct rwy_ip zero;

	if (rwy_ip_is4(a))
		return a->b[12] != 0 && a->b[12] != 127 && a->b[12] < 224;
	return a->b[0] != 0xff && memcmp(a->b, zero.b, 15) != 0;
}

static bool scan_one(void *base, const struct conf_key *k, const char *text)
{
	struct rwy_ip ip;

	switch (k->type) {
	case CONF_T_INT:
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
		if (!conf_scan_ip(text, &ip) || !is_unicast(&ip))
			return false;
		memcpy((char *)base + k->offset, &ip, sizeof(ip));
		return true;
	case CONF_T_GROUP:
	case CONF_T_GROUPS:
	case CONF_T_ADDRS:
	case CONF_T_PREFIXES:
	case CONF_T_STRINGS:
		return false;
	}
	rwy_unreachable();
}

/* The gateway's own address: a host's, not the subnet's or its broadcast address. */
static int fill_addr(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err)
{
	char found[64];
	uint32_t host, mask;

	conf_node_found(n, found, sizeof(found));
	if (!conf_scan_prefix(n->text, p) || !is_unicast(&p->addr))
		return conf_fail_at(err, n,
		    "expected an address with the length of its subnet such as `10.1.0.1/24`, found %s",
		    found);
	if (!rwy_ip_is4(&p->addr) || p->len >= 127)
		return 0;
	memcpy(&host, p->addr.b + 12, 4);
	mask = p->len == 96 ? UINT32_MAX : UINT32_MAX >> (p->len - 96);
	host = ntohl(host) & mask;
	if (host == 0 || host == mask)
		return conf_fail_at(err, n,
		    "expected a host's address, found %s, which is its subnet's %s address", found,
		    host ? "broadcast" : "own");
	return 0;
}

static int fill_prefix(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err)
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

static int fill_list(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	char *at = (char *)base + k->offset;
	unsigned *count = (unsigned *)(void *)((char *)base + k->count);
	int rc = 0;

	if (list->kind != CONF_SEQ)
		return fail_type(err, k, list);
	for (const struct conf_node *n = list->child; n && !rc; n = n->next) {
		if (n->kind != CONF_SCALAR || conf_node_is_null(n))
			return fail_type(err, k, n);
		if (*count == k->max)
			return conf_fail_at(err, n, "expected at most %u entries in `%s`, found more",
			    (unsigned)k->max, last_part(k->path));
		if (k->type == CONF_T_STRINGS) {
			char *s = conf_scan_printable(n->text) && n->len < CONF_STR ? strdup(n->text) : NULL;

			rc = s ? 0 : fail_type(err, k, n);
			memcpy(at, &s, sizeof(s));
			*count += s != NULL;
		} else {
			rc = (k->type == CONF_T_ADDRS ? fill_addr : fill_prefix)(
			    (struct conf_prefix *)(void *)at, n, err);
			++*count;
		}
		at += k->size;
	}
	return rc || *count >= k->min ? rc : fail_type(err, k, list);
}

int conf_fill_value(void *base, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	if (k->type == CONF_T_ADDRS || k->type == CONF_T_PREFIXES || k->type == CONF_T_STRINGS)
		return fill_list(base, k, n, err);
	if (n->kind != CONF_SCALAR || conf_node_is_null(n) || (k->type == CONF_T_INT && !n->plain))
		return fail_type(err, k, n);
	return scan_one(base, k, n->text) ? 0 : fail_type(err, k, n);
}

int conf_fill_default(void *base, const struct conf_key *k, struct conf_error *err)
{
	if (!*k->dflt || scan_one(base, k, k->dflt))
		return 0;
	return conf_fail(err, 0, 0, "the default of %s is wrong: `%s`", k->path, k->dflt);
}

/* The keys of a group: "ports[]" -> "ports[].name" ... */
static bool in_group(const struct conf_key *k, const char *group)
{
	const size_t n = strlen(group);

	return !strncmp(k->path, group, n) && k->path[n] == '.';
}

static int fail_unknown(struct conf_error *err, const char *group, const struct conf_node *n)
{
	const char *words[GROUP_KEYS_MAX + 1];
	struct conf_node key = {.plain = true,
	    .text = n->key,
	    .len = strlen(n->key),
	    .line = n->key_line,
	    .column = n->key_column};
	unsigned count = 0;
	const char *near;
	char found[64];

	for (unsigned i = 0; i < conf_keys_count; i++)
		if (*group ? in_group(&conf_keys[i], group) : !strchr(conf_keys[i].path, '.'))
			words[count++] = last_part(conf_keys[i].path);
	words[count] = NULL;
	near = conf_nearest(n->key, words);
	conf_node_found(&key, found, sizeof(found));
	if (near)
		return conf_fail_at(err, &key, "expected `%s` or another known key%s%s, found %s", near,
		    *group ? " of " : "", group, found);
	return conf_fail_at(
	    err, &key, "expected a known key%s%s, found %s", *group ? " of " : "", group, found);
}

static int fail_twice(struct conf_error *err, const struct conf_node *map, const struct conf_node *n)
{
	const struct conf_node *first = conf_node_get(map, n->key);

	return conf_fail(err, n->key_line, n->key_column,
	    "expected each key once, found `%s` again (first in line %u)", n->key, first->key_line);
}

static int fail_missing(struct conf_error *err, const struct conf_key *k, const struct conf_node *group)
{
	char want[160];

	conf_key_describe(k, want, sizeof(want));
	return conf_fail_at(err, group, "expected `%s`: %s, found nothing", last_part(k->path), want);
}

/* group: "ports[]"; map: NULL when the file has no such group; base: the struct that its keys live in. */
static int fill_group(void *base, const char *group, const struct conf_node *map, struct conf_error *err)
{
	bool seen[GROUP_KEYS_MAX] = {false};
	const struct conf_key *first = conf_keys;
	unsigned count = 0;
	int rc = 0;

	if (map && conf_node_is_null(map))
		map = NULL; /* "connections:" with everything below it commented out */
	while (!in_group(first, group))
		first++;
	while (first + count < conf_keys + conf_keys_count && in_group(&first[count], group))
		count++;
	for (const struct conf_node *n = map ? map->child : NULL; n && !rc; n = n->next) {
		unsigned i = 0;

		while (i < count && strcmp(last_part(first[i].path), n->key) != 0)
			i++;
		if (i == count)
			return fail_unknown(err, group, n);
		if (seen[i])
			return fail_twice(err, map, n);
		seen[i] = true;
		rc = conf_fill_value(base, &first[i], n, err);
	}
	for (unsigned i = 0; i < count && !rc; i++)
		if (!seen[i])
			rc = first[i].dflt ? conf_fill_default(base, &first[i], err)
			                   : fail_missing(err, &first[i], map);
	return rc;
}

static int fill_groups(
    struct conf *c, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	unsigned *count = (unsigned *)(void *)((char *)c + k->count);
	char group[32];

	if (!list)
		return fail_missing(err, k, NULL);
	if (list->kind != CONF_SEQ)
		return fail_type(err, k, list);
	snprintf(group, sizeof(group), "%s[]", k->path);
	for (const struct conf_node *n = list->child; n; n = n->next) {
		int rc;

		if (n->kind != CONF_MAP)
			return fail_type(err, k, n);
		if (*count == k->max)
			return conf_fail_at(err, n, "expected at most %u entries in `%s`, found more",
			    (unsigned)k->max, k->path);
		rc = fill_group((char *)c + k->offset + (size_t)k->size * *count, group, n, err);
		if (rc)
			return rc;
		++*count;
	}
	return *count >= k->min ? 0 : fail_type(err, k, list);
}

static int fill_top(
    struct conf *c, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	if (k->type == CONF_T_GROUPS)
		return fill_groups(c, k, n, err);
	if (n && n->kind != CONF_MAP && !conf_node_is_null(n))
		return fail_type(err, k, n);
	return fill_group(c, k->path, n, err);
}

int conf_fill(struct conf *c, const struct conf_tree *t, struct conf_error *err)
{
	bool seen[GROUP_KEYS_MAX] = {false};

	for (const struct conf_node *n = t->root->child; n; n = n->next) {
		const struct conf_key *k = NULL;
		unsigned group = 0;

		for (unsigned i = 0; i < conf_keys_count && !k; i++) {
			if (strchr(conf_keys[i].path, '.'))
				continue;
			if (!strcmp(conf_keys[i].path, n->key))
				k = &conf_keys[i];
			else
				group++;
		}
		if (!k)
			return fail_unknown(err, "", n);
		if (seen[group])
			return fail_twice(err, t->root, n);
		seen[group] = true;
	}
	for (unsigned i = 0; i < conf_keys_count; i++) {
		int rc = 0;

		if (!strchr(conf_keys[i].path, '.'))
			rc = fill_top(c, &conf_keys[i], conf_node_get(t->root, conf_keys[i].path), err);
		if (rc)
			return rc;
	}
	return 0;
}
