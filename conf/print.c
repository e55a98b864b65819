/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a tenant by the schema, as YAML for the file or as JSON, so that parsing gives the same
 * tenant. JSON for other objects is in gateway/api/.
 */
#include "conf/schema.h"

#include <inttypes.h>

#define TEXT CONF_TEXT

struct print {
	FILE *f;
	const struct conf *c;
	const struct conf_tenant *t;
	bool json;
};

static uint64_t load(const void *at, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, at, size < sizeof(v) ? size : sizeof(v)); /* little-endian */
	return v;
}

static void dscp_text(const uint8_t map[64], char *out)
{
	if (map[0] == 0 && map[63] == 63)
		snprintf(out, TEXT, "keep");
	else
		snprintf(out, TEXT, "%u", map[0]);
}

static void place_text(const struct conf *c, const struct tenant_at *at, char *out)
{
	snprintf(out, TEXT, "%s",
	    at->side == TENANT_VTEP  ? "vtep"
	    : at->side == TENANT_LAN ? "vlan"
	                             : c->tunnel[at->tunnel].name);
}

static void prefix_text(const struct prefix *p, char *out)
{
	if (p->len)
		conf_print_prefix(&(struct conf_prefix){p->addr, p->len}, out, TEXT);
	else
		snprintf(out, TEXT, "any");
}

static void number_text(const struct conf_key *k, uint64_t v, char *out)
{
	if (!v && k->words)
		snprintf(out, TEXT, "%s", k->words);
	else
		conf_print_value(k->type, k->type == CONF_T_RATE ? v * 8 : v, out, TEXT);
}

void conf_value_text(const struct conf *c, const struct conf_key *k, const void *at, char out[CONF_TEXT])
{
	static const struct rwy_ip none;
	const uint8_t *b = at;
	uint16_t port[2];

	*out = 0;
	switch (k->type) {
	case CONF_T_INT:
	case CONF_T_PERCENT:
	case CONF_T_SIZE:
	case CONF_T_DURATION:
	case CONF_T_RATE:
		number_text(k, load(at, k->size), out);
		return;
	case CONF_T_ENUM:
		if (k->size == CONF_NAME)
			snprintf(out, TEXT, "%s", (const char *)at);
		else
			(void)conf_word_at(k->words, (unsigned)load(at, k->size), out);
		return;
	case CONF_T_NAME:
	case CONF_T_STRING:
	case CONF_T_PATH:
	case CONF_T_CPUS:
		snprintf(out, TEXT, "%s", (const char *)at);
		return;
	case CONF_T_IP:
		if (memcmp(at, &none, sizeof(none)) != 0)
			conf_print_ip(at, out, TEXT);
		return;
	case CONF_T_MAC:
		snprintf(out, TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
		return;
	case CONF_T_PREFIX:
		prefix_text(at, out);
		return;
	case CONF_T_UDP:
		memcpy(port, at, sizeof(port));
		if (port[0] == port[1])
			snprintf(out, TEXT, "%u", port[0]);
		else
			snprintf(out, TEXT, "%u-%u", port[0], port[1]);
		return;
	case CONF_T_DSCP:
		dscp_text(at, out);
		return;
	case CONF_T_PLACE:
		place_text(c, at, out);
		return;
	case CONF_T_GROUP:
	case CONF_T_GROUPS:
	case CONF_T_ADDRS:
	case CONF_T_PREFIXES:
	case CONF_T_STRINGS:
	case CONF_T_WORDS:
	case CONF_T_IPS:
	case CONF_T_IP_EACH:
		return;
	}
	rwy_unreachable();
}

static void scalar_text(const struct print *x, const struct conf_key *k, const void *at, char out[TEXT])
{
	if (at == &x->t->cfg.dscp_congested && !conf_tenant_own_congested(x->t))
		snprintf(out, TEXT, "keep");
	else
		conf_value_text(x->c, k, at, out);
}

/* Prints numbers, true and false plainly, and texts in quotes where they need them. */
static void put_scalar(const struct print *x, const struct conf_key *k, const char *text)
{
	const bool number = strspn(text, "0123456789.") == strlen(text);
	const bool word = !strcmp(text, "true") || !strcmp(text, "false");
	const bool bare = k->type == CONF_T_INT || k->type == CONF_T_PERCENT ||
	                  (k->type == CONF_T_DSCP && number) || (k->type == CONF_T_ENUM && word);
	const bool quote = x->json ? !bare : strchr(text, ':') || !strcmp(text, "null");

	fprintf(x->f, quote ? "\"%s\"" : "%s", text);
}

/* Prints addresses, or the words of a set. */
static void put_list(const struct print *x, const struct conf_key *k, const void *base)
{
	static const struct rwy_ip none;
	const char *at = (const char *)base + k->offset;
	const struct rwy_ip *ip = k->malloced ? *(const struct rwy_ip *const *)(const void *)at
	                                      : (const struct rwy_ip *)(const void *)at;
	unsigned n = k->malloced ? *(const unsigned *)(const void *)((const char *)base + k->count) : 2;
	const char *comma = "";
	char text[TEXT];

	fputc('[', x->f);
	for (unsigned i = 0; k->type == CONF_T_WORDS && conf_word_at(k->words, i, text); i++)
		if (load(at, k->size) >> i & 1) {
			fputs(comma, x->f);
			put_scalar(x, k, text);
			comma = ", ";
		}
	for (unsigned i = 0; k->type != CONF_T_WORDS && i < n; i++)
		if (!rwy_ip_eq(&ip[i], &none)) {
			conf_print_ip(&ip[i], text, sizeof(text));
			fputs(comma, x->f);
			put_scalar(x, k, text);
			comma = ", ";
		}
	fputc(']', x->f);
}

/* True if YAML can omit the key, because parsing gives the same without it. */
static bool is_default(const struct print *x, const struct conf_key *k, const void *base)
{
	static const struct rwy_ip none[2];
	const char *at = (const char *)base + k->offset;
	char text[TEXT];

	if (k->malloced || k->type == CONF_T_GROUPS)
		return *(const unsigned *)(const void *)((const char *)base + k->count) == 0;
	if (k->type == CONF_T_WORDS)
		return load(at, k->size) == (UINT64_C(1) << k->max) - 1;
	if (k->type == CONF_T_IP_EACH)
		return !memcmp(at, none, sizeof(none));
	if (k->type == CONF_T_MAC && base == x->t)
		return !conf_tenant_own_mac(x->t);
	if (base == x->t && conf_tenant_inherits(k))
		return !memcmp(at, (const char *)x->c + conf_tenant_inherits(k)->offset, k->size);
	scalar_text(x, k, at, text);
	return !strcmp(text, k->dflt ? k->dflt : "\n");
}

static bool is_absent(const struct print *x, const struct conf_key *k, const void *base)
{
	char text[TEXT];

	if (k->type != CONF_T_IP)
		return false;
	scalar_text(x, k, (const char *)base + k->offset, text);
	return !*text;
}

static void put_value(const struct print *x, const struct conf_key *k, const void *base)
{
	char text[TEXT];

	if (k->type == CONF_T_WORDS || k->type == CONF_T_IPS || k->type == CONF_T_IP_EACH) {
		put_list(x, k, base);
	} else {
		scalar_text(x, k, (const char *)base + k->offset, text);
		put_scalar(x, k, text);
	}
}

/* {key: value, ...} */
static void put_flow(const struct print *x, const struct conf_group *g, const void *base)
{
	const char *comma = "";

	fputc('{', x->f);
	for (unsigned i = 0; i < g->count; i++) {
		const struct conf_key *k = &g->first[i];

		if (x->json ? is_absent(x, k, base) : is_default(x, k, base))
			continue;
		fprintf(x->f, x->json ? "%s\"%s\": " : "%s%s: ", comma, conf_key_name(k));
		put_value(x, k, base);
		comma = ", ";
	}
	fputc('}', x->f);
}

static void put_groups(const struct print *x, const struct conf_key *k, const void *base)
{
	const char *at = (const char *)base + k->offset;
	const unsigned n = *(const unsigned *)(const void *)((const char *)base + k->count);
	char path[64];
	struct conf_group g;

	if (k->malloced)
		memcpy(&at, (const void *)at, sizeof(const char *));
	snprintf(path, sizeof(path), "%s[]", k->path);
	g = conf_group_find(path);
	if (x->json)
		fputc('[', x->f);
	for (unsigned i = 0; i < n; i++, at += k->size) {
		fputs(!x->json ? "\n      - " : i ? ", " : "", x->f);
		put_flow(x, &g, at);
	}
	if (x->json)
		fputc(']', x->f);
}

void conf_tenant_print(FILE *f, const struct conf *c, const struct conf_tenant *t, enum conf_format format)
{
	const struct print x = {f, c, t, format == CONF_JSON};
	const struct conf_group g = conf_group_find("tenants[]");

	for (unsigned i = 0; i < g.count; i++) {
		const struct conf_key *k = &g.first[i];

		if (x.json)
			fprintf(f, "%s\"%s\": ", i ? ", " : "{", conf_key_name(k));
		else if (is_default(&x, k, t))
			continue;
		else
			fprintf(f, "%s%s:%s", i ? "    " : "  - ", conf_key_name(k),
			    k->type == CONF_T_GROUPS ? "" : " ");
		if (k->type == CONF_T_GROUPS)
			put_groups(&x, k, t);
		else
			put_value(&x, k, t);
		if (!x.json)
			fputc('\n', f);
	}
	if (x.json)
		fputc('}', f);
}
