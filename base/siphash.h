/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash-2-4 (Aumasson, Bernstein 2012): a tag of 64 bits that nobody can make without the key.
 * For short messages. Pure: any thread.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define BASE_SIPHASH_KEY 16 /* bytes */

/* The tag of len bytes, 0 or more, in host order. */
uint64_t base_siphash(const uint8_t key[BASE_SIPHASH_KEY], const void *data, size_t len);

#endif
