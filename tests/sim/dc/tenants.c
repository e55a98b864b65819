/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants: turns the scenario's lists into the engines' configuration; see tenants.h. */
#include "tests/sim/dc/tenants.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/dc/bytes.h"
#include "tests/sim/dc/words.h"

#define L(f, key, unit, min, max)                                                                            \
	{                                                                                                    \
		{key, unit, offsetof(struct dc_tenant, f), min, max, NULL}, offsetof(struct scen, t_##f)     \
	}

static const struct {
	struct word word;
	size_t list; /* offset of the list in the scenario */
} lists[] = {
    L(guarantee, "guarantee", W_BITS, 0, 1e12),
    L(limit, "limit", W_BITS, 0, 1e12),
    L(weight, "weight", W_WHOLE, 1, 1000),
    L(priority, "priority", W_WHOLE, 0, 7),
    L(custody, "tcustody", W_BYTES, 0, 1e12),
    L(reserve, "treserve", W_SHARE, 0, 1),
    L(flows, "tflows", W_WHOLE, 0, 4096),
    L(start, "tstart", W_TIME, 0, 864e11),
};

/* Reads tenant i's value: the i-th of the list, or its only one. */
static bool read_one(
    const struct word *w, const char *list, unsigned i, struct dc_tenant *t, char *err, size_t size)
{
	const struct words one = {w, 1};
	const char *v = list;
	char word[96];

	for (unsigned k = 1; k < i && strchr(list, ','); k++) {
		v = strchr(v, ',');
		if (!v) {
			snprintf(err, size, "scenario: %s: fewer values than tenants", w->name);
			return false;
		}
		v++;
	}
	snprintf(word, sizeof(word), "%s=%.*s", w->name, (int)strcspn(v, ","), v);
	return words_set(&one, t, word, "scenario", err, size);
}

bool dc_tenants_read(const struct scen *s, struct dc_tenant t[DC_TENANTS_MAX + 1], char *err, size_t size)
{
	for (unsigned i = 0; i <= (unsigned)s->tenants; i++) {
		t[i] = (struct dc_tenant){.weight = 1};
		for (unsigned k = 0; i && k < sizeof(lists) / sizeof(*lists); k++) {
			const char *list = (const char *)s + lists[k].list;

			if (*list && !read_one(&lists[k].word, list, i, &t[i], err, size))
				return false;
		}
		if (t[i].limit > 0 && t[i].limit < t[i].guarantee) {
			snprintf(err, size, "scenario: tenant %u: its limit is below its guarantee", i);
			return false;
		}
	}
	return true;
}

struct eng_tenant_cfg dc_tenant_cfg(
    const struct dc_tenant *t, unsigned i, unsigned site, uint64_t custody, struct eng_prefix *prefix)
{
	*prefix = (struct eng_prefix){.addr = dc_site_net(!site), .len = 112};
	return (struct eng_tenant_cfg){.vni = 1000 + i,
	    .custody = t->custody > 0 ? (uint64_t)t->custody : custody,
	    .reserve = (uint64_t)(t->reserve * (double)custody),
	    .share = {.guarantee_Bps = (uint64_t)(t->guarantee / 8),
	        .limit_Bps = (uint64_t)(t->limit / 8),
	        .weight = (uint32_t)t->weight,
	        .priority = (uint8_t)t->priority},
	    .prefix = prefix,
	    .prefixes = 1};
}
