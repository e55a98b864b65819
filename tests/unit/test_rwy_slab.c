/* SPDX-License-Identifier: Apache-2.0 */
/* include/rwy/slab.h: objects are zeroed and apart, also in chunks of huge pages; little is unused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rwy/slab.h"

#define SIZE 576
#define MANY 20000 /* objects: more than a large slab has */

/* Objects are zeroed, at cache lines, apart from each other, and used again when they are given back. */
static void test_objects(void **state)
{
	static uint8_t *v[MANY];
	struct rwy_slab s = {.size = rwy_slab_size(SIZE)};
	size_t held;

	for (unsigned i = 0; i < MANY; i++) {
		v[i] = rwy_slab_get(&s);
		assert_non_null(v[i]);
		assert_int_equal((uintptr_t)v[i] % RWY_CACHE_LINE, 0);
		assert_true(!v[i][0] && memcmp(v[i], v[i] + 1, SIZE - 1) == 0);
		memset(v[i], 1 + (int)(i % 255), SIZE);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_true(v[i][0] == 1 + i % 255 && memcmp(v[i], v[i] + 1, SIZE - 1) == 0);
	held = s.held;
	assert_true(rwy_slab_mapped(&s) > 0 && rwy_slab_mapped(&s) <= held + RWY_HUGE_PAGE);
	for (unsigned i = 0; i < MANY; i++)
		rwy_slab_put(&s, v[i]);
	assert_int_equal(rwy_slab_spare(&s), MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_non_null(rwy_slab_get(&s));
	assert_int_equal(rwy_slab_spare(&s), 0);
	assert_int_equal(s.held, held);
	rwy_slab_fini(&s);
	assert_int_equal(s.held, 0);
	assert_null(s.chunks);
}

/* An eighth is unused at most; of a large slab a sixteenth, or a huge page. */
static void test_unused(void **state)
{
	struct rwy_slab s = {.size = rwy_slab_size(SIZE)};

	for (size_t i = 0, used = 0; i < MANY; i++, used += s.size) {
		const size_t chunk =
		    used >= RWY_SLAB_HUGE && used / 16 < RWY_HUGE_PAGE ? RWY_HUGE_PAGE : used / 8;

		assert_non_null(rwy_slab_get(&s));
		assert_true(s.held - used <= chunk + RWY_SLAB_MIN * (size_t)s.size);
	}
	rwy_slab_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_objects), cmocka_unit_test(test_unused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
