/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes rules and packets from the input: the compiled ACL must agree with the plain matcher. First
 * byte: number of rules (0..255). Top bit of the second byte: rules are raw bytes, of which most
 * are refused; the refusal must name the first bad one.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/acl_linear.h"
#include "tests/lib/acl_rand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(x) ((x) ? (void)0 : abort())

struct input {
	const uint8_t *p;
	size_t n;
};

static uint8_t next(void *ctx)
{
	struct input *in = ctx;

	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

static void raw_rule(const struct acl_src *s, struct acl_rule *r)
{
	for (unsigned i = 0; i < 16; i++) {
		r->src.addr.b[i] = s->byte(s->ctx);
		r->dst.addr.b[i] = s->byte(s->ctx);
	}
	r->src.len = s->byte(s->ctx);
	r->dst.len = s->byte(s->ctx);
	r->sport_lo = (uint16_t)(s->byte(s->ctx) << 8 | s->byte(s->ctx));
	r->sport_hi = (uint16_t)(s->byte(s->ctx) << 8 | s->byte(s->ctx));
	r->classes = (uint16_t)(s->byte(s->ctx) << 8 | s->byte(s->ctx));
	r->allow = s->byte(s->ctx) & 1;
}

static void refused(const struct acl_rule *r, unsigned n, const struct acl_err *err)
{
	struct acl_err e;

	CHECK(err->why != ACL_E_NONE && err->why != ACL_E_RULES && err->rule < n);
	CHECK(!acl_check(r, err->rule, &e));
	CHECK(acl_check(r + err->rule, 1, &e) && e.why == err->why);
}

static void compare(const struct acl *a, const struct acl_rule *r, unsigned n, bool dflt, struct acl_key k)
{
	uint16_t allowed = acl_allowed(a, &k);

	for (k.cls = 0; k.cls < ACL_CLASS_COUNT; k.cls++) {
		struct acl_verdict l = acl_linear(r, n, dflt, &k), c = acl_lookup(a, &k);

		CHECK(l.rule == c.rule && l.allow == c.allow);
		CHECK((allowed >> k.cls & 1) == l.allow);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct acl_src s = {next, &in};
	unsigned n = next(&in);
	uint8_t how = next(&in);
	struct acl_rule *r = calloc(n ? n : 1, sizeof(*r));
	struct acl_err err;
	struct acl *a = NULL;

	CHECK(r);
	for (unsigned i = 0; i < n; i++) {
		if (how & 0x80)
			raw_rule(&s, &r[i]);
		else
			acl_rand_rule(&s, &r[i]);
	}
	if (acl_new(&a, r, n, how & 1, &err)) {
		CHECK(!a);
		refused(r, n, &err);
	} else {
		for (unsigned i = 0; i < 64 && (in.n || i < 4); i++) {
			struct acl_key k;

			acl_rand_key(&s, r, n, &k);
			compare(a, r, n, how & 1, k);
		}
	}
	acl_free(a);
	free(r);
	return 0;
}
