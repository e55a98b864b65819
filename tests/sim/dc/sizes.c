/* SPDX-License-Identifier: Apache-2.0 */
/* Message sizes: the web-search distribution of DCTCP (Alizadeh et al., SIGCOMM 2010), linear between its
 * points, as the DCQCN and HPCC papers use it. */
#include "tests/sim/dc/work.h"

static const struct {
	double bytes, cdf;
} websearch[] = {{1, 0}, {10e3, .15}, {20e3, .2}, {30e3, .3}, {50e3, .4}, {80e3, .53}, {200e3, .6}, {1e6, .7},
    {2e6, .8}, {5e6, .9}, {10e6, .97}, {30e6, 1}};
#define POINTS (sizeof(websearch) / sizeof(websearch[0]))

uint64_t size_draw(unsigned sizes, double fixed, uint64_t *rng)
{
	double u = rng_unit(rng), size = fixed;
	unsigned i = 1;

	if (sizes == SIZES_WEBSEARCH) {
		while (i + 1 < POINTS && u > websearch[i].cdf)
			i++;
		size = websearch[i - 1].bytes + (websearch[i].bytes - websearch[i - 1].bytes) *
		                                    (u - websearch[i - 1].cdf) /
		                                    (websearch[i].cdf - websearch[i - 1].cdf);
	}
	return size < 1 ? 1 : (uint64_t)size;
}

double size_mean(unsigned sizes, double fixed)
{
	double sum = 0;

	if (sizes != SIZES_WEBSEARCH)
		return fixed;
	for (unsigned i = 1; i < POINTS; i++)
		sum += (websearch[i].cdf - websearch[i - 1].cdf) *
		       (websearch[i].bytes + websearch[i - 1].bytes) / 2;
	return sum;
}
