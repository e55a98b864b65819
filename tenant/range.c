/* SPDX-License-Identifier: Apache-2.0 */
/* Prefixes and elementary ranges. */
#include "tenant/range.h"

#include <stdlib.h>

#include "rwy/prefix.h"

typedef unsigned __int128 u128;

static u128 ip_num(const struct rwy_ip *a)
{
	return (u128)rwy_get64(a->b) << 64 | rwy_get64(a->b + 8);
}

/* Returns the bits behind the length. */
static u128 host_mask(uint8_t len)
{
	return len >= 128 ? 0 : ~(u128)0 >> len;
}

bool prefix_ok(const struct prefix *p)
{
	u128 mapped = (u128)0xffff << 32;

	if (p->len > 128 || ip_num(&p->addr) & host_mask(p->len))
		return false;
	return p->len == 0 || p->len >= 96 || (mapped & ~host_mask(p->len)) != ip_num(&p->addr);
}

bool prefix_has(const struct prefix *p, const struct rwy_ip *a)
{
	return rwy_prefix_match(&p->addr, p->len, a);
}

bool prefix_meets(const struct prefix *a, const struct prefix *b)
{
	return a->len <= b->len ? prefix_has(a, &b->addr) : prefix_has(b, &a->addr);
}

/* Insertion sort for short arrays, which nearly all are; qsort for long ones. */
#define SHORT 48
#define SORT(type)                                                                                           \
	static int cmp_##type(const void *a, const void *b)                                                  \
	{                                                                                                    \
		type x = *(const type *)a, y = *(const type *)b;                                             \
                                                                                                             \
		return (x > y) - (x < y);                                                                    \
	}                                                                                                    \
	/* Sorts and removes duplicates. Returns the new length. */                                          \
	static uint32_t sort_##type(type *v, uint32_t n)                                                     \
	{                                                                                                    \
		uint32_t out = 1;                                                                            \
                                                                                                             \
		if (n > SHORT)                                                                               \
			qsort(v, n, sizeof(*v), cmp_##type);                                                 \
		for (uint32_t i = 1; n <= SHORT && i < n; i++) {                                             \
			type x = v[i];                                                                       \
			uint32_t j = i;                                                                      \
                                                                                                             \
			for (; j && v[j - 1] > x; j--)                                                       \
				v[j] = v[j - 1];                                                             \
			v[j] = x;                                                                            \
		}                                                                                            \
		for (uint32_t i = 1; i < n; i++)                                                             \
			if (v[i] != v[out - 1])                                                              \
				v[out++] = v[i];                                                             \
		return out;                                                                                  \
	}
SORT(uint16_t)
SORT(uint32_t)
SORT(u128)

uint32_t range_sort16(uint16_t *v, uint32_t n)
{
	return sort_uint16_t(v, n);
}

int range_init(struct range_map *m, const struct prefix *p, unsigned n)
{
	uint32_t n4 = 1, n6 = 1;

	for (unsigned i = 0; i < n; i++) {
		n4 += prefix_is4(&p[i]) ? 2 : 0;
		n6 += prefix_is4(&p[i]) ? 0 : 2;
	}
	m->lo6 = malloc(n6 * sizeof(*m->lo6) + n4 * sizeof(*m->lo4));
	if (!m->lo6)
		return RWY_ENOMEM;
	m->lo4 = (uint32_t *)(void *)(m->lo6 + n6);
	m->lo4[0] = 0;
	m->lo6[0] = 0;
	n4 = n6 = 1;
	for (unsigned i = 0; i < n; i++) {
		u128 lo = ip_num(&p[i].addr), end = lo + host_mask(p[i].len) + 1;

		if (prefix_is4(&p[i])) {
			m->lo4[n4++] = (uint32_t)lo;
			if ((uint32_t)end) /* otherwise it ends where the address space ends */
				m->lo4[n4++] = (uint32_t)end;
		} else {
			m->lo6[n6++] = lo;
			if (end && p[i].len)
				m->lo6[n6++] = end;
		}
	}
	m->n4 = sort_uint32_t(m->lo4, n4);
	m->n6 = sort_u128(m->lo6, n6);
	return 0;
}

void range_fini(struct range_map *m)
{
	free(m->lo6);
	*m = (struct range_map){0};
}

void range_of_prefix(const struct range_map *m, const struct prefix *p, uint32_t at[4])
{
	u128 lo = ip_num(&p->addr), last = lo + host_mask(p->len);
	uint32_t k;

	at[0] = at[1] = 0;
	at[2] = at[3] = m->n4;
	if (p->len == 0) {
		at[1] = m->n4;
		at[3] = m->n4 + m->n6;
	} else if (prefix_is4(p)) {
		/* The prefix's end is close to its beginning, or the caller has much to do
		 * anyway. */
		for (k = at[0] = range_find4(m, (uint32_t)lo); k < m->n4 && m->lo4[k] <= (uint32_t)last;)
			k++;
		at[1] = k;
	} else {
		for (k = range_find6(m, lo), at[2] += k; k < m->n6 && m->lo6[k] <= last;)
			k++;
		at[3] += k;
	}
}
