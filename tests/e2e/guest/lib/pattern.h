/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that say whose they are, for the lab's programs: a slot of memory is filled from a seed, and
 * checked at the other end. What a message leaves of its slot has a poison, which must stay.
 */
#ifndef RWY_GUEST_PATTERN_H
#define RWY_GUEST_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#define PATTERN_POISON 0xa7

void pattern_fill(uint8_t *to, uint64_t seed, uint32_t size);
/* Counts the bytes of the slot that differ from the pattern of `size` bytes, or from the poison
 * after it. */
uint64_t pattern_check(const uint8_t *at, uint64_t seed, uint32_t size, size_t slot);

#endif
