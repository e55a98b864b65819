/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random ACLs and packets from a stream of bytes. They are close to each other on purpose: few
 * networks and ports, so that rules overlap and packets meet their edges. The unit test passes a
 * generator, the fuzzer its input.
 */
#ifndef TESTS_LIB_ACL_RAND_H
#define TESTS_LIB_ACL_RAND_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tenant/acl.h"

struct acl_src {
	uint8_t (*byte)(void *ctx);
	void *ctx;
};

static inline void acl_rand_ip(const struct acl_src *s, struct rwy_ip *a)
{
	uint8_t kind = s->byte(s->ctx);
	const uint8_t v4[4] = {10, kind >> 4 & 1, s->byte(s->ctx) & 7, s->byte(s->ctx)};

	if (kind & 1) {
		*a = rwy_ip_from4(v4);
		if (kind >> 5 == 7)
			memset(a->b + 12, 0xff, 4);
		else if (kind >> 5 == 6)
			memset(a->b + 12, 0, 4);
		return;
	}
	*a = (struct rwy_ip){{0xfd}};
	a->b[7] = v4[1];
	a->b[8] = v4[2];
	a->b[15] = v4[3];
	if (kind >> 5 == 7)
		memset(a->b, 0xff, 16);
	else if (kind >> 5 == 6)
		memset(a->b, 0, 16);
}

/* Makes a prefix valid by clearing bits, if that is possible. */
static inline void acl_rand_prefix(const struct acl_src *s, struct prefix *p)
{
	uint8_t k = s->byte(s->ctx);
	bool is4;

	acl_rand_ip(s, &p->addr);
	is4 = rwy_ip_is4(&p->addr);
	if (k < 40)
		p->len = 0;
	else if (is4)
		p->len = (uint8_t)(96 + k % 33);
	else
		p->len = (uint8_t)(k % 129);
	for (unsigned bit = p->len; bit < 128; bit++)
		p->addr.b[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static inline uint16_t acl_rand_port(const struct acl_src *s)
{
	static const uint16_t edge[8] = {0, 1, 49152, 65534, 65535, 32768, 255, 256};
	uint8_t k = s->byte(s->ctx);

	return k < 64 ? edge[k & 7] : (uint16_t)(49152 + (k & 31));
}

static inline void acl_rand_rule(const struct acl_src *s, struct acl_rule *r)
{
	uint8_t k = s->byte(s->ctx);

	acl_rand_prefix(s, &r->src);
	acl_rand_prefix(s, &r->dst);
	if (r->src.len && r->dst.len && prefix_is4(&r->src) != prefix_is4(&r->dst)) {
		r->dst = (struct prefix){.len = 0}; /* otherwise nothing would compile */
	}
	r->sport_lo = acl_rand_port(s);
	r->sport_hi = acl_rand_port(s);
	if (r->sport_lo > r->sport_hi) {
		uint16_t t = r->sport_lo;

		r->sport_lo = r->sport_hi;
		r->sport_hi = t;
	}
	if (k & 2) {
		r->sport_lo = 0;
		r->sport_hi = UINT16_MAX;
	}
	r->allow = k & 1;
	r->classes = k & 4 ? ACL_ALL : (uint16_t)(s->byte(s->ctx) << 1 | k >> 7);
	if (!r->classes)
		r->classes = 1;
}

/* Makes a packet; with rules it is often at the edge of one of them. */
static inline void acl_rand_key(
    const struct acl_src *s, const struct acl_rule *rules, unsigned n, struct acl_key *k)
{
	uint8_t how = s->byte(s->ctx);

	acl_rand_ip(s, &k->src);
	acl_rand_ip(s, &k->dst);
	k->sport = acl_rand_port(s);
	k->cls = s->byte(s->ctx) % ACL_CLASS_COUNT;
	if (!n || !(how & 1))
		return;
	rules += ((unsigned)s->byte(s->ctx) << 8 | s->byte(s->ctx)) % n;
	k->src = rules->src.addr;
	k->dst = rules->dst.addr;
	if (how & 2) /* the last address instead of the first */
		for (unsigned bit = rules->src.len; bit < 128; bit++)
			k->src.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	if (how & 4) /* the address before, mostly outside */
		k->dst.b[15]--;
	k->sport = how & 8 ? rules->sport_lo : how & 16 ? rules->sport_hi : (uint16_t)(rules->sport_hi + 1);
}

#endif
