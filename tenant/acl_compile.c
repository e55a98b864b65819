/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled ACL. The values of each field fall into ranges within which the same rules match; a
 * range has a bitmap of those rules, lowest bit first. The AND of a packet's four bitmaps gives the
 * rules that match it, and its lowest bit the first of them. A summary word in front of each bitmap
 * marks its words that are not 0, so that most words are skipped. Equal bitmaps are stored once.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tenant/acl.h"
#include "rwy/hash.h"

#define FIELDS 4 /* source, destination, source port, class */
static_assert(ACL_RULES_MAX <= 64 * 64, "the summary is one word");

struct acl {
	struct range_map src, dst;
	uint32_t nports;
	uint32_t words; /* words of a bitmap without its summary */
	bool allow_default;
	/* Per range: offset of its bitmap in `bits`. */
	uint32_t *src_at, *dst_at, *port_at;
	uint16_t *port_lo;
	uint32_t class_at[ACL_CLASS_COUNT];
	uint64_t *bits;  /* bitmaps: summary, then `words` words */
	uint64_t *allow; /* per rule */
	uint64_t bytes;
};

/* --- building --------------------------------------------------------------------------------- */

struct build {
	struct acl *a;
	const struct acl_rule *rules;
	unsigned n;
	uint64_t *raw; /* bitmaps of all ranges of all fields, before equal ones are merged */
	uint32_t stride, ranges, kept;
	uint32_t *table, table_mask; /* stored bitmaps by hash: 1 + number */
};

static void bit_set(uint64_t *map, unsigned i)
{
	map[0] |= (uint64_t)1 << i / 64;
	map[1 + i / 64] |= (uint64_t)1 << i % 64;
}

static uint32_t port_find(const struct acl *a, uint16_t port)
{
	const uint16_t *base = a->port_lo;

	for (uint32_t n = a->nports; n > 1;) {
		uint32_t half = n / 2;

		base += half & -(uint32_t)(base[half] <= port);
		n -= half;
	}
	return (uint32_t)(base - a->port_lo);
}

static int ports_init(struct acl *a, const struct acl_rule *rules, unsigned n)
{
	uint32_t k = 1;

	a->port_lo = malloc((1 + 2 * (size_t)n) * sizeof(*a->port_lo));
	if (!a->port_lo)
		return RWY_ENOMEM;
	a->port_lo[0] = 0;
	for (unsigned i = 0; i < n; i++) {
		if (rules[i].sport_lo)
			a->port_lo[k++] = rules[i].sport_lo;
		if (rules[i].sport_hi != UINT16_MAX)
			a->port_lo[k++] = (uint16_t)(rules[i].sport_hi + 1);
	}
	a->nports = range_sort16(a->port_lo, k);
	return 0;
}

static int fields_init(struct acl *a, const struct acl_rule *rules, unsigned n)
{
	struct prefix *p = malloc((n ? n : 1) * sizeof(*p));
	int r;

	if (!p)
		return RWY_ENOMEM;
	for (unsigned i = 0; i < n; i++)
		p[i] = rules[i].src;
	r = range_init(&a->src, p, n);
	for (unsigned i = 0; i < n; i++)
		p[i] = rules[i].dst;
	if (!r)
		r = range_init(&a->dst, p, n);
	free(p);
	return r ? r : ports_init(a, rules, n);
}

static void prefix_bits(
    struct build *b, const struct range_map *m, uint32_t first, const struct prefix *p, unsigned i)
{
	uint32_t at[4];

	range_of_prefix(m, p, at);
	for (uint32_t k = at[0]; k < at[1]; k++)
		bit_set(b->raw + (size_t)(first + k) * b->stride, i);
	for (uint32_t k = at[2]; k < at[3]; k++)
		bit_set(b->raw + (size_t)(first + k) * b->stride, i);
}

/* raw: the bitmaps of source, destination, port ranges and classes, in this order. */
static void bits_fill(struct build *b, const uint32_t first[FIELDS])
{
	struct acl *a = b->a;

	for (unsigned i = 0; i < b->n; i++) {
		const struct acl_rule *r = &b->rules[i];
		uint32_t from = port_find(a, r->sport_lo), to = port_find(a, r->sport_hi);

		prefix_bits(b, &a->src, first[0], &r->src, i);
		prefix_bits(b, &a->dst, first[1], &r->dst, i);
		for (uint32_t k = from; k <= to; k++)
			bit_set(b->raw + (size_t)(first[2] + k) * b->stride, i);
		for (uint32_t c = 0; c < ACL_CLASS_COUNT; c++)
			if (r->classes >> c & 1)
				bit_set(b->raw + (size_t)(first[3] + c) * b->stride, i);
		if (r->allow)
			a->allow[i / 64] |= (uint64_t)1 << i % 64;
	}
}

/* Returns the offset of the stored copy of raw bitmap `k`. */
static uint32_t bits_keep(struct build *b, uint32_t k)
{
	const uint64_t *map = b->raw + (size_t)k * b->stride;
	uint64_t *kept;
	uint64_t h = 0;
	uint32_t at;

	for (uint32_t i = 0; i < b->stride; i++)
		h = rwy_hash(h, map[i]);
	for (at = (uint32_t)h & b->table_mask; b->table[at]; at = (at + 1) & b->table_mask) {
		kept = b->raw + (size_t)(b->table[at] - 1) * b->stride;
		if (!memcmp(kept, map, b->stride * sizeof(*map)))
			return (b->table[at] - 1) * b->stride;
	}
	kept = b->raw + (size_t)b->kept * b->stride; /* in place, since kept <= k */
	if (kept != map)
		memcpy(kept, map, b->stride * sizeof(*map));
	b->table[at] = ++b->kept;
	return (b->kept - 1) * b->stride;
}

static int compile(struct acl *a, const struct acl_rule *rules, unsigned n)
{
	struct build b = {.a = a, .rules = rules, .n = n, .stride = 1 + a->words};
	uint32_t ns = a->src.n4 + a->src.n6, nd = a->dst.n4 + a->dst.n6;
	uint32_t first[FIELDS] = {0, ns, ns + nd, ns + nd + a->nports};
	uint32_t k = 0;
	void *fit;

	b.ranges = first[3] + ACL_CLASS_COUNT;
	for (b.table_mask = 15; b.table_mask < 2 * b.ranges;)
		b.table_mask = 2 * b.table_mask + 1;
	b.raw = calloc((size_t)b.ranges * b.stride, sizeof(*b.raw));
	b.table = calloc((size_t)b.table_mask + 1, sizeof(*b.table));
	a->src_at = malloc(((size_t)ns + nd + a->nports) * sizeof(*a->src_at));
	if (!b.raw || !b.table || !a->src_at) {
		free(b.raw);
		free(b.table);
		return RWY_ENOMEM;
	}
	a->dst_at = a->src_at + ns;
	a->port_at = a->dst_at + nd;
	bits_fill(&b, first);
	for (; k < first[3]; k++)
		a->src_at[k] = bits_keep(&b, k);
	for (uint32_t c = 0; c < ACL_CLASS_COUNT; c++)
		a->class_at[c] = bits_keep(&b, k++);
	free(b.table);
	fit = realloc(b.raw, (size_t)b.kept * b.stride * sizeof(*b.raw));
	a->bits = fit ? fit : b.raw;
	a->bytes += (uint64_t)b.kept * b.stride * 8 + (uint64_t)first[3] * 4 + 2 * (uint64_t)a->nports +
	            16 * ((uint64_t)a->src.n6 + a->dst.n6) + 4 * ((uint64_t)a->src.n4 + a->dst.n4);
	return 0;
}

int acl_new(
    struct acl **out, const struct acl_rule *rules, unsigned n, bool allow_default, struct acl_err *err)
{
	struct acl *a;
	uint32_t words = n > 64 ? (n + 63) / 64 : 1;
	int r = acl_check(rules, n, err);

	if (r)
		return r;
	a = calloc(1, sizeof(*a) + words * sizeof(*a->allow));
	if (a) {
		a->words = words;
		a->allow = (uint64_t *)(void *)(a + 1);
		a->allow_default = allow_default;
		a->bytes = sizeof(*a) + words * sizeof(*a->allow);
	}
	if (!a || fields_init(a, rules, n) || compile(a, rules, n)) {
		acl_free(a);
		*err = (struct acl_err){ACL_E_MEMORY, 0};
		return RWY_ENOMEM;
	}
	*out = a;
	return 0;
}

void acl_free(struct acl *a)
{
	if (!a)
		return;
	range_fini(&a->src);
	range_fini(&a->dst);
	free(a->port_lo);
	free(a->src_at);
	free(a->bits);
	free(a);
}

uint64_t acl_bytes(const struct acl *a)
{
	return a->bytes;
}

/* --- lookup ----------------------------------------------------------------------------------- */

struct acl_verdict acl_lookup(const struct acl *a, const struct acl_key *k)
{
	const uint64_t *s = a->bits + a->src_at[range_find(&a->src, &k->src)];
	const uint64_t *d = a->bits + a->dst_at[range_find(&a->dst, &k->dst)];
	const uint64_t *p = a->bits + a->port_at[port_find(a, k->sport)];
	const uint64_t *c = a->bits + a->class_at[k->cls];

	for (uint64_t some = s[0] & d[0] & p[0] & c[0]; some; some &= some - 1) {
		uint32_t w = (uint32_t)__builtin_ctzll(some);
		uint64_t m = s[1 + w] & d[1 + w] & p[1 + w] & c[1 + w];

		if (m) {
			uint32_t bit = (uint32_t)__builtin_ctzll(m);

			return (struct acl_verdict){(uint16_t)(w * 64 + bit), a->allow[w] >> bit & 1};
		}
	}
	return (struct acl_verdict){ACL_DEFAULT, a->allow_default};
}

uint16_t acl_allowed(const struct acl *a, const struct acl_key *k)
{
	const uint64_t *s = a->bits + a->src_at[range_find(&a->src, &k->src)];
	const uint64_t *d = a->bits + a->dst_at[range_find(&a->dst, &k->dst)];
	const uint64_t *p = a->bits + a->port_at[port_find(a, k->sport)];
	uint16_t open = ACL_ALL, allowed = 0; /* open: undecided classes */

	for (uint64_t some = s[0] & d[0] & p[0]; some && open; some &= some - 1) {
		uint32_t w = (uint32_t)__builtin_ctzll(some);
		uint64_t m = s[1 + w] & d[1 + w] & p[1 + w];

		for (uint16_t left = m ? open : 0; left; left &= (uint16_t)(left - 1)) {
			unsigned c = (unsigned)__builtin_ctz(left);
			uint64_t hit = m & a->bits[a->class_at[c] + 1 + w];

			if (!hit)
				continue;
			open &= (uint16_t) ~(1u << c);
			if (a->allow[w] >> __builtin_ctzll(hit) & 1)
				allowed |= (uint16_t)(1u << c);
		}
	}
	return a->allow_default ? allowed | open : allowed;
}
