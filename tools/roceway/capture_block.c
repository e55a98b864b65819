/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng, block by block. Lengths are checked: the bytes come from another program. */
#include "tools/roceway/capture.h"

#include <stdlib.h>
#include <string.h>

#include "rwy/err.h"

#define BLOCK_MAX   (2u << 20) /* the gateway's longest has the tables in its comments */
#define PACKET_HEAD 28u        /* bytes before a packet */
#define STATS_HEAD  20u        /* bytes before the options of statistics */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, 2);
	return v;
}

uint32_t cap_block_type(const uint8_t *block)
{
	return get32(block);
}

uint32_t cap_block_len(const uint8_t *block)
{
	return get32(block + 4);
}

uint32_t cap_block_interface(const uint8_t *block)
{
	return get32(block + 8);
}

/* Length of the block at the beginning of data; 0: not all of it is there. */
static int block_len(const uint8_t *data, size_t have, size_t *len)
{
	*len = 0;
	if (have < 8)
		return 0;
	if (get32(data + 4) < CAP_BLOCK_MIN || get32(data + 4) > BLOCK_MAX || get32(data + 4) % 4)
		return RWY_EINVAL;
	if (have >= get32(data + 4))
		*len = get32(data + 4);
	return *len && get32(data + *len - 4) != *len ? RWY_EINVAL : 0;
}

static bool grow(struct cap_blocks *b, size_t more)
{
	uint8_t *data;
	size_t max = b->max ? b->max : 65536;

	if (b->len + more <= b->max)
		return true;
	while (max < b->len + more)
		max *= 2;
	data = realloc(b->data, max);
	if (!data)
		return false;
	b->data = data;
	b->max = max;
	return true;
}

/* Blocks are long, and another processor has written them: fetches the end of the block behind this
 * one, at `next`, while this one is handled. */
static void fetch(const uint8_t *data, size_t next, size_t len)
{
	const size_t end = next + 8 <= len ? next + get32(data + next + 4) : len;

	if (end < len)
		__builtin_prefetch(data + end);
}

/* Hands over the whole blocks of data. *used: their bytes. */
static int blocks_pass(const uint8_t *data, size_t len, size_t *used,
    bool (*block)(void *ctx, const uint8_t *block, size_t len), void *ctx)
{
	size_t n;
	int rc;

	*used = 0;
	while (!(rc = block_len(data + *used, len - *used, &n)) && n) {
		fetch(data, *used + n, len);
		if (!block(ctx, data + *used, n))
			return RWY_EAGAIN;
		*used += n;
	}
	return rc;
}

/* How many of the next bytes complete the block that has begun; at most len. */
static size_t missing(const struct cap_blocks *b, size_t len)
{
	const size_t all = b->len < 8 ? 8 : get32(b->data + 4);
	const size_t n = all > b->len ? all - b->len : 0;

	return n < len ? n : len;
}

int cap_blocks_add(struct cap_blocks *b, const void *data, size_t len,
    bool (*block)(void *ctx, const uint8_t *block, size_t len), void *ctx)
{
	const uint8_t *at = data;
	size_t used;
	int rc;

	/* Only a block that comes in pieces is copied: first its length, then the rest. */
	while (b->len && len) {
		const size_t n = missing(b, len);

		if (!grow(b, n))
			return RWY_ENOMEM;
		memcpy(b->data + b->len, at, n);
		b->len += n;
		at += n;
		len -= n;
		rc = blocks_pass(b->data, b->len, &used, block, ctx);
		if (rc)
			return rc;
		b->len -= used;
	}
	rc = blocks_pass(at, len, &used, block, ctx);
	if (rc)
		return rc;
	if (!grow(b, len - used))
		return RWY_ENOMEM;
	if (len > used)
		memcpy(b->data + b->len, at + used, len - used);
	b->len += len - used;
	return 0;
}

int cap_blocks_whole(
    const uint8_t *data, size_t len, bool (*block)(void *ctx, const uint8_t *block, size_t len), void *ctx)
{
	size_t used;
	const int rc = blocks_pass(data, len, &used, block, ctx);

	return rc || used == len ? rc : RWY_EINVAL;
}

const uint8_t *cap_block_option(const uint8_t *block, size_t len, unsigned code, size_t *opt_len)
{
	const bool packet = cap_block_type(block) == CAP_PACKET;
	size_t at = packet ? PACKET_HEAD : STATS_HEAD;
	const size_t end = len - 4;

	if (packet && len >= PACKET_HEAD + 4)
		at += ((size_t)get32(block + 20) + 3) & ~(size_t)3;
	while (at + 4 <= end) {
		const size_t n = get16(block + at + 2);

		if (at + 4 + n > end || (!get16(block + at) && !n))
			return NULL;
		if (get16(block + at) == code) {
			*opt_len = n;
			return block + at + 4;
		}
		at += 4 + ((n + 3) & ~(size_t)3);
	}
	return NULL;
}
