/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the schema: groups, names and words of keys, and the description of a key's values. */
#include "conf/schema.h"

#include <assert.h>

/* The part of a key's path after its group, if it is in it: "ports[].name" is "name" in
 * "ports[]". */
const char *conf_key_in_group(const struct conf_key *k, const char *group)
{
	const size_t n = strlen(group);

	if (!n)
		return strchr(k->path, '.') ? NULL : k->path;
	if (strncmp(k->path, group, n) != 0 || k->path[n] != '.' || strchr(k->path + n + 1, '.'))
		return NULL;
	return k->path + n + 1;
}

struct conf_group conf_group_find(const char *path)
{
	struct conf_group g = {conf_keys, 0};

	while (g.first < conf_keys + conf_keys_count && !conf_key_in_group(g.first, path))
		g.first++;
	while (g.first + g.count < conf_keys + conf_keys_count && conf_key_in_group(&g.first[g.count], path))
		g.count++;
	assert(g.count <= CONF_GROUP_KEYS_MAX);
	return g;
}

bool conf_word_at(const char *words, unsigned idx, char out[CONF_NAME])
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

const char *conf_key_name(const struct conf_key *k)
{
	const char *dot = strrchr(k->path, '.');

	return dot ? dot + 1 : k->path;
}

int conf_word_find(const struct conf_key *k, const char *text)
{
	char word[CONF_NAME];

	for (unsigned i = 0; conf_word_at(k->words, i, word); i++)
		if (!strcmp(word, text))
			return (int)i;
	return -1;
}

static void describe_words(const char *before, const char *words, char *out, size_t size)
{
	char word[CONF_NAME];
	size_t used = (size_t)snprintf(out, size, "%s", before);

	for (unsigned i = 0; conf_word_at(words, i, word) && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s`%s`",
		    i                     ? ", "
		    : words[strlen(word)] ? "one of "
		                          : "",
		    word);
}

static void describe_number(const struct conf_key *k, char *out, size_t size)
{
	static const char *const what[] = {[CONF_T_INT] = "an integer",
	    [CONF_T_PERCENT] = "a percentage",
	    [CONF_T_SIZE] = "a size",
	    [CONF_T_DURATION] = "a duration",
	    [CONF_T_RATE] = "a rate"};
	char lo[32], hi[32];

	conf_print_value(k->type, k->min, lo, sizeof(lo));
	conf_print_value(k->type, k->max, hi, sizeof(hi));
	snprintf(out, size, "%s from %s to %s%s%s%s", what[k->type], lo, hi, k->words ? ", or `" : "",
	    k->words ? k->words : "", k->words ? "`" : "");
}

void conf_key_describe(const struct conf_key *k, char *out, size_t size)
{
	const unsigned min = (unsigned)k->min, max = (unsigned)k->max;

	switch (k->type) {
	case CONF_T_INT:
	case CONF_T_PERCENT:
	case CONF_T_SIZE:
	case CONF_T_DURATION:
	case CONF_T_RATE:
		describe_number(k, out, size);
		return;
	case CONF_T_ENUM:
		describe_words("", k->words, out, size);
		return;
	case CONF_T_GROUP:
		snprintf(out, size, "a mapping of keys");
		return;
	case CONF_T_GROUPS:
		snprintf(out, size, "a list of %u to %u mappings", min, max);
		return;
	case CONF_T_NAME:
		snprintf(out, size, "a name of at most %u letters, digits, `.`, `_`, `-`", max);
		return;
	case CONF_T_STRING:
		snprintf(out, size, "a text of %u to %u printable ASCII characters", min, max);
		return;
	case CONF_T_PATH:
		snprintf(out, size, "an absolute path of at most %u characters", max);
		return;
	case CONF_T_CPUS:
		snprintf(out, size, "CPU numbers in ascending order such as `1-2` or `0,4-7`");
		return;
	case CONF_T_IP:
		snprintf(out, size, "an IPv4 or IPv6 unicast address");
		return;
	case CONF_T_MAC:
		snprintf(out, size, "a station's MAC address such as `02:00:00:00:00:01`");
		return;
	case CONF_T_PREFIX:
		snprintf(out, size, "a prefix such as `10.2.0.0/24` or `fd00:2::/64`%s",
		    k->words ? ", or `any`" : "");
		return;
	case CONF_T_UDP:
		snprintf(out, size, "a UDP port or a range such as `49152-65535`");
		return;
	case CONF_T_DSCP:
		snprintf(out, size, "an integer from %u to %u, or `keep`", min, max);
		return;
	case CONF_T_PLACE:
		snprintf(out, size, "`vtep`, `vlan` or a tunnel's name");
		return;
	case CONF_T_ADDRS:
		snprintf(
		    out, size, "a list of %u to %u addresses with length such as `10.1.0.1/24`", min, max);
		return;
	case CONF_T_PREFIXES:
		snprintf(out, size, "a list of %u to %u prefixes such as `10.2.0.0/24`", min, max);
		return;
	case CONF_T_STRINGS:
		snprintf(out, size, "a list of at most %u texts", max);
		return;
	case CONF_T_WORDS:
		describe_words("a list of ", k->words, out, size);
		return;
	case CONF_T_IPS:
		snprintf(out, size, "a list of at most %u IPv4 or IPv6 unicast addresses", max);
		return;
	case CONF_T_IP_EACH:
		snprintf(out, size, "a list of at most one IPv4 and one IPv6 unicast address");
		return;
	}
	rwy_unreachable();
}

int conf_fail_type(struct conf_error *err, const struct conf_key *k, const struct conf_node *n)
{
	char want[160], found[64];

	conf_key_describe(k, want, sizeof(want));
	conf_node_found(n, found, sizeof(found));
	return conf_fail_at(err, n, "expected %s for `%s`, found %s", want, conf_key_name(k), found);
}

int conf_fail_few(
    struct conf_error *err, const struct conf_key *k, const struct conf_node *list, unsigned count)
{
	char want[160];

	conf_key_describe(k, want, sizeof(want));
	return conf_fail_at(err, list, "expected %s for `%s`, found %u", want, conf_key_name(k), count);
}

bool conf_key_is_list(const struct conf_key *k)
{
	switch (k->type) {
	case CONF_T_ADDRS:
	case CONF_T_PREFIXES:
	case CONF_T_STRINGS:
	case CONF_T_WORDS:
	case CONF_T_IPS:
	case CONF_T_IP_EACH:
		return true;
	case CONF_T_GROUP:
	case CONF_T_GROUPS:
	case CONF_T_INT:
	case CONF_T_PERCENT:
	case CONF_T_ENUM:
	case CONF_T_NAME:
	case CONF_T_STRING:
	case CONF_T_PATH:
	case CONF_T_CPUS:
	case CONF_T_SIZE:
	case CONF_T_DURATION:
	case CONF_T_RATE:
	case CONF_T_IP:
	case CONF_T_MAC:
	case CONF_T_PREFIX:
	case CONF_T_UDP:
	case CONF_T_DSCP:
	case CONF_T_PLACE:
		return false;
	}
	rwy_unreachable();
}
