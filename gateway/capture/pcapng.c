/* SPDX-License-Identifier: Apache-2.0 */
/* A block is written behind the others and taken back if it did not fit. The file has the byte
 * order of this machine, which its first block tells. */
#include "gateway/capture/pcapng.h"

#include <string.h>

enum block { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };
enum option {
	OPT_END = 0,
	OPT_COMMENT = 1,
	SHB_USERAPPL = 4,
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_TSRESOL = 9,
	EPB_FLAGS = 2,
	EPB_DROPCOUNT = 4,
	EPB_PACKETID = 5,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
};
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET    1u
#define NANOSECONDS      9u /* if_tsresol: 10^-9 s */

/* A block that is being written; len counts on when there is no more room. */
struct block_out {
	struct gw_cap_out *o;
	size_t len;
};

static void put(struct block_out *b, const void *data, size_t n)
{
	static const uint8_t zero[4];
	const size_t pad = -n & 3, at = b->o->len + b->len;

	b->len += n + pad;
	if (b->o->len + b->len > b->o->max)
		return;
	memcpy(b->o->data + at, data, n);
	memcpy(b->o->data + at + n, zero, pad);
}

static void put32(struct block_out *b, uint32_t v)
{
	put(b, &v, 4);
}

static struct block_out begin(struct gw_cap_out *o, uint32_t type)
{
	struct block_out b = {.o = o};

	put32(&b, type);
	put32(&b, 0); /* the length; end() knows it */
	return b;
}

static void option(struct block_out *b, uint16_t code, const void *data, size_t n)
{
	const uint16_t head[2] = {code, (uint16_t)n};

	put(b, head, 4);
	put(b, data, n);
}

static void text(struct block_out *b, uint16_t code, const char *s)
{
	if (*s)
		option(b, code, s, strnlen(s, UINT16_MAX));
}

static bool end(struct block_out *b)
{
	const uint32_t all = (uint32_t)(b->len + 4);

	put32(b, all);
	if (b->o->len + b->len > b->o->max)
		return false;
	memcpy(b->o->data + b->o->len + 4, &all, 4);
	b->o->len += b->len;
	return true;
}

/* A time is in two halves, the high one first. */
static void put_time(struct block_out *b, uint64_t t)
{
	put32(b, (uint32_t)(t >> 32));
	put32(b, (uint32_t)t);
}

bool gw_cap_put_section(struct gw_cap_out *o, const char *program, const char *const *comment)
{
	struct block_out b = begin(o, BLOCK_SECTION);
	const uint16_t version[2] = {1, 0};
	const uint64_t unknown = UINT64_MAX; /* the section's length */

	put32(&b, BYTE_ORDER_MAGIC);
	put(&b, version, 4);
	put(&b, &unknown, 8);
	for (; *comment; comment++)
		text(&b, OPT_COMMENT, *comment);
	text(&b, SHB_USERAPPL, program);
	option(&b, OPT_END, "", 0);
	return end(&b);
}

bool gw_cap_put_interface(struct gw_cap_out *o, const char *name, const char *description, uint32_t snap)
{
	struct block_out b = begin(o, BLOCK_INTERFACE);
	const uint8_t resolution = NANOSECONDS;

	put32(&b, LINK_ETHERNET);
	put32(&b, snap);
	text(&b, IF_NAME, name);
	text(&b, IF_DESCRIPTION, description);
	option(&b, IF_TSRESOL, &resolution, 1);
	option(&b, OPT_END, "", 0);
	return end(&b);
}

/* Adds n bytes, and zeros up to a multiple of four. */
static uint8_t *add(uint8_t *to, const void *data, size_t n)
{
	memset(to + (n & ~(size_t)3), 0, 4);
	memcpy(to, data, n);
	return to + ((n + 3) & ~(size_t)3);
}

static uint8_t *add_option(uint8_t *to, uint16_t code, const void *data, size_t n)
{
	const uint16_t head[2] = {code, (uint16_t)n};

	memcpy(to, head, 4);
	return add(to + 4, data, n);
}

/* There are many of them: the room is asked for once, not by put(). */
bool gw_cap_put_packet(struct gw_cap_out *o, const struct gw_cap_epb *p)
{
	const uint32_t flags = p->inbound ? 1 : 2;
	uint32_t head[7] = {
	    BLOCK_PACKET, 0, p->interface, (uint32_t)(p->time >> 32), (uint32_t)p->time, p->len, p->wire_len};
	uint8_t *begin = o->data + o->len, *to = begin + sizeof(head);

	if (o->max - o->len < (size_t)GW_CAP_EPB_EXTRA + p->comment_len + p->len)
		return false;
	to = add(to, p->data, p->len);
	if (p->comment_len)
		to = add_option(to, OPT_COMMENT, p->comment, p->comment_len);
	to = add_option(to, EPB_FLAGS, &flags, 4);
	if (p->dropped)
		to = add_option(to, EPB_DROPCOUNT, &p->dropped, 8);
	if (p->id)
		to = add_option(to, EPB_PACKETID, &p->id, 8);
	memset(to, 0, 4); /* OPT_END */
	to += 4;
	head[1] = (uint32_t)(to - begin) + 4;
	memcpy(to, &head[1], 4);
	memcpy(begin, head, sizeof(head));
	o->len += head[1];
	return true;
}

bool gw_cap_put_statistics(
    struct gw_cap_out *o, uint32_t interface, uint64_t time, uint64_t taken, uint64_t lost)
{
	struct block_out b = begin(o, BLOCK_STATISTICS);

	put32(&b, interface);
	put_time(&b, time);
	option(&b, ISB_IFRECV, &taken, 8);
	option(&b, ISB_IFDROP, &lost, 8);
	option(&b, OPT_END, "", 0);
	return end(&b);
}
