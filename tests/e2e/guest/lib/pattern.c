/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include <endian.h>
#include <string.h>

static uint8_t byte_at(uint64_t seed, size_t i)
{
	return (uint8_t)((seed + (i / 8) * 0x9e3779b97f4a7c15u) >> (8 * (i % 8)));
}

void pattern_fill(uint8_t *to, uint64_t seed, uint32_t size)
{
	uint64_t word = seed;
	uint32_t i = 0;

	for (; i + 8 <= size; i += 8, word += 0x9e3779b97f4a7c15u) {
		uint64_t le = htole64(word);

		memcpy(to + i, &le, 8);
	}
	for (; i < size; i++)
		to[i] = byte_at(seed, i);
}

uint64_t pattern_check(const uint8_t *at, uint64_t seed, uint32_t size, size_t slot)
{
	uint64_t word = seed, bad = 0;
	uint32_t i = 0;

	for (; i + 8 <= size; i += 8, word += 0x9e3779b97f4a7c15u) {
		uint64_t le = htole64(word);

		if (memcmp(at + i, &le, 8) != 0)
			for (uint32_t k = i; k < i + 8; k++)
				bad += at[k] != byte_at(seed, k);
	}
	for (; i < size; i++)
		bad += at[i] != byte_at(seed, i);
	for (size_t k = size; k < slot; k++)
		bad += at[k] != PATTERN_POISON;
	return bad;
}
