/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a network's paths, from a file or an http answer: paths within their ranges, or one
 * message. Then a demand is placed on them: the shares must add up to it, within each path's
 * bandwidth. The first byte says which fields are required. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/path.h"
#include "controller/provider/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void place(const struct provider_path *p, unsigned n, uint64_t demand)
{
	static struct plan_route r[PLAN_ROUTES_MAX];
	static struct plan_placement pl;
	const struct plan_want want = {demand, 0, 0, 0};
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < n; i++)
		r[i] = p[i].route;
	if (plan_place(&pl, &want, r, n))
		abort();
	for (i = 0; i < pl.n; i++) {
		if (pl.leg[i].route >= n || pl.leg[i].bps == 0 || pl.leg[i].bps > r[pl.leg[i].route].free_bps)
			abort();
		sum += pl.leg[i].bps;
	}
	if (sum != (pl.fail == PLAN_PLACED ? demand : 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct provider_err err = {""};
	struct provider_path *p;
	int i, n;

	if (size == 0)
		return 0;
	n = provider_json_paths(&p, (const char *)data + 1, size - 1, data[0] & 3, "fuzz", &err);
	if (n < 0) {
		if (p || !err.text[0] || memchr(err.text, 0, sizeof(err.text)) == NULL)
			abort();
		return 0;
	}
	for (i = 0; i < n; i++) {
		const struct plan_route *r = &p[i].route;

		if (!r->edge[0] || !r->name[0] || strlen(r->edge) >= PLAN_NAME_MAX ||
		    r->free_bps > PLAN_RATE_MAX || r->delay_us > PLAN_US_MAX || r->jitter_us > PLAN_US_MAX ||
		    r->loss_ppm > PLAN_PPM)
			abort();
		if ((data[0] & PROVIDER_JSON_SITES) && strcmp(p[i].first, p[i].second) >= 0)
			abort();
	}
	if (n <= PLAN_ROUTES_MAX)
		place(p, (unsigned)n, 1 + (uint64_t)size * size * size * 7919);
	free(p);
	return 0;
}
