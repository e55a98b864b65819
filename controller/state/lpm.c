/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/state/lpm.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY 48

struct entry {
	struct ctlr_map_node node;
	void *value;
	char key[KEY];
};

bool ctlr_lpm_parse_ip(const char *text, struct rwy_ip *out)
{
	uint8_t v4[4];

	if (inet_pton(AF_INET, text, v4) == 1) {
		*out = rwy_ip_from4(v4);
		return true;
	}
	return inet_pton(AF_INET6, text, out->b) == 1;
}

static bool parse_prefix(const char *text, struct rwy_ip *addr, unsigned *len)
{
	const char *slash = strchr(text, '/');
	char ip[64];

	if (!slash || (size_t)(slash - text) >= sizeof(ip))
		return false;
	memcpy(ip, text, (size_t)(slash - text));
	ip[slash - text] = 0;
	*len = (unsigned)strtoul(slash + 1, NULL, 10) + (strchr(ip, ':') ? 0 : 96);
	return *len <= 128 && ctlr_lpm_parse_ip(ip, addr);
}

static void key_of(char key[KEY], uint32_t vni, const struct rwy_ip *a, unsigned len)
{
	uint8_t b[16] = {0};
	int n;

	memcpy(b, a->b, len / 8);
	if (len % 8)
		b[len / 8] = (uint8_t)(a->b[len / 8] & 0xff00 >> len % 8);
	n = snprintf(key, KEY, "%x/%x/", vni, len);
	for (unsigned i = 0; i < 16; i++) {
		static const char hex[] = "0123456789abcdef";

		key[n++] = hex[b[i] >> 4];
		key[n++] = hex[b[i] & 15];
	}
	key[n] = 0;
}

int ctlr_lpm_add(struct ctlr_lpm *l, uint32_t vni, const char *prefix, void *value)
{
	struct entry *e;
	struct rwy_ip a;
	unsigned len;

	if (!parse_prefix(prefix, &a, &len))
		return RWY_EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return RWY_ENOMEM;
	key_of(e->key, vni, &a, len);
	e->value = value;
	if (ctlr_map_find(&l->map, e->key)) {
		free(e);
		return RWY_EEXIST;
	}
	if (ctlr_map_add(&l->map, &e->node, e->key)) {
		free(e);
		return RWY_ENOMEM;
	}
	l->used[len]++;
	return 0;
}

static struct entry *find_exact(const struct ctlr_lpm *l, uint32_t vni, const char *prefix, unsigned *len)
{
	struct rwy_ip a;
	char key[KEY];

	if (!parse_prefix(prefix, &a, len))
		return NULL;
	key_of(key, vni, &a, *len);
	return ctlr_map_find(&l->map, key);
}

void ctlr_lpm_del(struct ctlr_lpm *l, uint32_t vni, const char *prefix, const void *value)
{
	unsigned len;
	struct entry *e = find_exact(l, vni, prefix, &len);

	if (!e || e->value != value || l->filling)
		return;
	l->used[len]--;
	ctlr_map_del(&l->map, &e->node);
	free(e);
}

void *ctlr_lpm_get(const struct ctlr_lpm *l, uint32_t vni, const char *prefix)
{
	unsigned len;
	const struct entry *e = find_exact(l, vni, prefix, &len);

	return e ? e->value : NULL;
}

void *ctlr_lpm_find(const struct ctlr_lpm *l, uint32_t vni, const struct rwy_ip *a)
{
	const unsigned lowest = rwy_ip_is4(a) ? 96 : 0;

	for (unsigned len = 129; len-- > lowest;) {
		const struct entry *e;
		char key[KEY];

		if (!l->used[len])
			continue;
		key_of(key, vni, a, len);
		e = ctlr_map_find(&l->map, key);
		if (e)
			return e->value;
	}
	return NULL;
}

void ctlr_lpm_free(struct ctlr_lpm *l)
{
	struct entry *e = ctlr_map_next(&l->map, NULL), *next;

	for (; e; e = next) {
		next = ctlr_map_next(&l->map, e);
		free(e);
	}
	ctlr_map_free(&l->map);
	memset(l, 0, sizeof(*l));
}
