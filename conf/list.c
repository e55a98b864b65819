/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of scalars: from the tree into arrays and sets. Lists of groups are in fill.c.
 */
#include "conf/value.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* A gateway's own address: a host's, not the subnet's or its broadcast address. */
static int fill_addr(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err)
{
	char found[64];
	uint32_t host, mask;

	conf_node_found(n, found, sizeof(found));
	if (!conf_scan_prefix(n->text, p) || !conf_ip_unicast(&p->addr))
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

static int fill_ip(
    struct rwy_ip *ip, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	if (!conf_scan_ip(n->text, ip) || !conf_ip_unicast(ip))
		return conf_fail_type(err, k, n);
	return 0;
}

/* Stores the address in one of two places by its family. */
static int fill_ip_each(
    struct rwy_ip two[2], const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	static const struct rwy_ip none;
	struct rwy_ip ip;
	int rc = fill_ip(&ip, k, n, err);

	if (rc)
		return rc;
	if (!rwy_ip_eq(&two[!rwy_ip_is4(&ip)], &none))
		return conf_fail_type(err, k, n);
	two[!rwy_ip_is4(&ip)] = ip;
	return 0;
}

static int fill_word(
    uint64_t *bits, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	const int i = conf_word_find(k, n->text);

	if (i < 0)
		return conf_fail_type(err, k, n);
	if (*bits & UINT64_C(1) << i)
		return conf_fail_at(
		    err, n, "expected each word once in `%s`, found `%s` again", conf_key_name(k), n->text);
	*bits |= UINT64_C(1) << i;
	return 0;
}

/* Fills one entry; at: its place in the array. */
static int fill_entry(void *at, const struct conf_key *k, const struct conf_node *n, struct conf_error *err)
{
	char *s;

	if (k->type == CONF_T_ADDRS)
		return fill_addr(at, n, err);
	if (k->type == CONF_T_PREFIXES)
		return conf_fill_prefix(at, n, err);
	if (k->type == CONF_T_IPS)
		return fill_ip(at, k, n, err);
	if (!conf_scan_printable(n->text) || n->len >= CONF_STR)
		return conf_fail_type(err, k, n);
	s = strdup(n->text);
	memcpy(at, &s, sizeof(s));
	return s ? 0 : conf_fail(err, 0, 0, "out of memory");
}

int conf_list_alloc(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	unsigned *count = (unsigned *)(void *)((char *)base + k->count);
	void **at = (void **)(void *)((char *)base + k->offset);
	size_t n = 0;

	for (const struct conf_node *e = list->child; e; e = e->next)
		n++;
	*count = 0;
	free(*at);
	*at = NULL;
	if (n > k->max)
		n = k->max; /* one entry too many is enough; it is refused where it comes */
	if (!n)
		return 0;
	*at = calloc(n, k->size);
	return *at ? 0 : conf_fail(err, 0, 0, "out of memory");
}

static int fill_array(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	unsigned *count = (unsigned *)(void *)((char *)base + k->count);
	char *at = (char *)base + k->offset;
	int rc = k->malloced ? conf_list_alloc(base, k, list, err) : 0;

	if (!rc && k->malloced)
		memcpy(&at, (char *)base + k->offset, sizeof(at));
	for (const struct conf_node *n = list->child; n && !rc; n = n->next, at += k->size) {
		if (n->kind != CONF_SCALAR || conf_node_is_null(n))
			return conf_fail_type(err, k, n);
		if (*count == k->max)
			return conf_fail_at(err, n, "expected at most %u entries in `%s`, found more",
			    (unsigned)k->max, conf_key_name(k));
		rc = fill_entry(at, k, n, err);
		*count += !rc;
	}
	return rc || *count >= k->min ? rc : conf_fail_few(err, k, list, *count);
}

/* Lists without a count: a set of words, or one address of each family. */
static int fill_set(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	struct rwy_ip two[2] = {{{0}}};
	uint64_t bits = 0;

	for (const struct conf_node *n = list->child; n; n = n->next) {
		int rc;

		if (n->kind != CONF_SCALAR || conf_node_is_null(n))
			return conf_fail_type(err, k, n);
		rc = k->type == CONF_T_WORDS ? fill_word(&bits, k, n, err) : fill_ip_each(two, k, n, err);
		if (rc)
			return rc;
	}
	if (k->type == CONF_T_IP_EACH)
		memcpy((char *)base + k->offset, two, sizeof(two));
	else if (bits)
		conf_store(base, k, bits);
	else
		return conf_fail_few(err, k, list, 0);
	return 0;
}

int conf_fill_list(void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err)
{
	if (list->kind != CONF_SEQ)
		return conf_fail_type(err, k, list);
	if (k->type == CONF_T_WORDS || k->type == CONF_T_IP_EACH)
		return fill_set(base, k, list, err);
	return fill_array(base, k, list, err);
}
