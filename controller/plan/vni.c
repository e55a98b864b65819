/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/plan/vni.h"

#include <stdlib.h>

static int cmp_number(const void *va, const void *vb)
{
	const uint32_t *a = va, *b = vb;

	return *a < *b ? -1 : *a > *b;
}

uint32_t plan_vni_free(uint32_t *used, unsigned n, uint32_t first, uint32_t last)
{
	uint32_t free_one = first;

	if (n)
		qsort(used, n, sizeof(*used), cmp_number);
	for (unsigned i = 0; i < n && used[i] <= free_one; i++)
		if (used[i] == free_one)
			free_one++;
	return free_one <= last ? free_one : 0;
}
