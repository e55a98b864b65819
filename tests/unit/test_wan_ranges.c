/* SPDX-License-Identifier: Apache-2.0 */
/* The set of packet numbers against a plain bitmap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/wan_link.h"
#include "wan/wire/ranges.h"

#define SPAN 4096

static void sane(const struct wan_ranges *s)
{
	assert_true(wan_ranges_count(s) <= WAN_RANGES_KEEP);
	for (uint32_t i = s->first; i < s->end; i++) {
		assert_true(s->r[i].lo <= s->r[i].hi);
		if (i > s->first)
			assert_true(s->r[i - 1].hi + 1 < s->r[i].lo);
	}
	assert_true(s->first == s->end || s->r[s->first].lo >= s->floor);
}

static void mark(void *ctx, uint64_t lo, uint64_t hi)
{
	uint8_t *seen = ctx;

	for (uint64_t pn = lo; pn <= hi; pn++) {
		assert_false(seen[pn]);
		seen[pn] = 1;
	}
}

static void test_random(void **state)
{
	struct wan_ranges *s = malloc(sizeof(*s));

	for (uint64_t seed = 0; seed < 200; seed++) {
		uint64_t rng = seed;
		uint8_t seen[SPAN] = {0};
		uint32_t window = 1 + wan_rng_below(&rng, 300);

		wan_ranges_reset(s);
		for (uint32_t i = 0; i < SPAN - 310; i++) {
			uint64_t pn = i + wan_rng_below(&rng, window);

			if (wan_rng_below(&rng, 4)) {
				bool fresh = pn >= s->floor && !seen[pn];

				assert_int_equal(wan_ranges_has(s, pn), !fresh);
				assert_int_equal(wan_ranges_add(s, pn), fresh);
				seen[pn] = 1;
			} else {
				/* Numbers below the floor count as seen. */
				memset(seen, 1, s->floor);
				wan_ranges_add_range(s, pn, pn + wan_rng_below(&rng, 10), mark, seen);
			}
			sane(s);
		}
		for (uint64_t pn = s->floor; pn < SPAN; pn++)
			assert_int_equal(wan_ranges_has(s, pn), seen[pn]);
	}
	free(s);
}

/* Every other one arrives: the set stays limited and forgets the oldest. */
static void test_bounded(void **state)
{
	struct wan_ranges *s = malloc(sizeof(*s));

	wan_ranges_reset(s);
	for (uint64_t pn = 0; pn < 100000; pn += 2) {
		assert_true(wan_ranges_add(s, pn));
		sane(s);
	}
	assert_int_equal(wan_ranges_count(s), WAN_RANGES_KEEP);
	assert_true(wan_ranges_has(s, 1)); /* forgotten: counts as seen */
	assert_false(wan_ranges_has(s, 99997));
	assert_false(wan_ranges_add(s, 1));
	/* The rest in one piece. */
	for (uint64_t pn = 1; pn < 100000; pn += 2)
		wan_ranges_add(s, pn);
	assert_int_equal(wan_ranges_count(s), 1);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_bounded)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
