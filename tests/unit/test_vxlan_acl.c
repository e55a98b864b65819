/* SPDX-License-Identifier: Apache-2.0 */
/* tenant/acl.h: the compiled form gives the results of the plain matcher, on rules and packets made
 * to collide; each refusal names its rule; opcode classes of all 256 opcodes. Cases by hand check
 * the plain matcher itself. */
#include "tests/lib/roce_pkt.h"

#include "tests/lib/acl_linear.h"
#include "tests/lib/acl_rand.h"

static uint8_t rand_byte(void *ctx)
{
	return (uint8_t)(tp_rand(ctx) >> 11);
}

static struct prefix net4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t len)
{
	const uint8_t v4[4] = {a, b, c, d};

	return (struct prefix){rwy_ip_from4(v4), (uint8_t)(96 + len)};
}

static struct acl_rule rule_any(bool allow)
{
	return (struct acl_rule){.sport_hi = UINT16_MAX, .classes = ACL_ALL, .allow = allow};
}

static struct acl_key key4(uint8_t a, uint8_t b, uint16_t sport, enum acl_class cls)
{
	struct prefix s = net4(10, 0, 0, a, 32), d = net4(10, 0, 1, b, 32);

	return (struct acl_key){s.addr, d.addr, sport, (uint8_t)cls};
}

static void agree(const struct acl *a, const struct acl_rule *r, unsigned n, bool dflt, struct acl_key k)
{
	uint16_t want = 0, got = acl_allowed(a, &k);

	for (k.cls = 0; k.cls < ACL_CLASS_COUNT; k.cls++) {
		struct acl_verdict l = acl_linear(r, n, dflt, &k), c = acl_lookup(a, &k);

		assert_int_equal(c.rule, l.rule);
		assert_int_equal(c.allow, l.allow);
		want |= (uint16_t)(l.allow << k.cls);
	}
	assert_int_equal(got, want);
}

/* By hand: order, default, ranges, classes. */
static void test_meaning(void **state)
{
	struct acl_rule r[4] = {rule_any(false), rule_any(true), rule_any(true), rule_any(false)};
	struct acl_err err;
	struct acl *a;
	struct acl_verdict v;
	struct acl_key k;

	r[0].src = net4(10, 0, 0, 66, 32); /* one host is denied everything */
	r[1].dst = net4(10, 0, 1, 0, 24);  /* writes to this network, from some ports */
	r[1].sport_lo = 49152;
	r[1].sport_hi = 50000;
	r[1].classes = 1 << ACL_WRITE | 1 << ACL_RESPONSE;
	r[2].classes = 1 << ACL_CM;
	r[3].src = net4(10, 0, 0, 0, 8);
	r[3].classes = 1 << ACL_READ;
	assert_int_equal(acl_new(&a, r, 4, true, &err), 0);
#define IS(key, rl, al)                                                                                      \
	k = key;                                                                                             \
	v = acl_linear(r, 4, true, &k);                                                                      \
	assert_int_equal(v.rule, rl);                                                                        \
	assert_int_equal(v.allow, al);                                                                       \
	agree(a, r, 4, true, k)
	IS(key4(66, 1, 49152, ACL_WRITE), 0, false);
	IS(key4(65, 1, 49152, ACL_WRITE), 1, true);
	IS(key4(65, 1, 50000, ACL_RESPONSE), 1, true);
	IS(key4(65, 1, 50001, ACL_WRITE), ACL_DEFAULT, true);
	IS(key4(65, 1, 49151, ACL_READ), 3, false);
	IS(key4(65, 1, 49152, ACL_CM), 2, true);
	IS(key4(65, 1, 49152, ACL_OTHER), ACL_DEFAULT, true);
#undef IS
	acl_free(a);
	acl_free(NULL);
}

static void test_empty(void **state)
{
	for (unsigned dflt = 0; dflt < 2; dflt++) {
		struct acl_err err;
		struct acl *a;

		assert_int_equal(acl_new(&a, NULL, 0, dflt, &err), 0);
		agree(a, NULL, 0, dflt, key4(1, 2, 3, ACL_SEND));
		acl_free(a);
	}
}

static void random_case(unsigned n, uint32_t seed, unsigned packets)
{
	struct acl_src s = {rand_byte, &seed};
	struct acl_rule *r = calloc(n ? n : 1, sizeof(*r));
	bool dflt = rand_byte(&seed) & 1;
	struct acl_err err;
	struct acl *a = NULL;
	unsigned hits = 0;

	for (unsigned i = 0; i < n; i++)
		do
			acl_rand_rule(&s, &r[i]);
		while (acl_check(&r[i], 1, &err));
	assert_int_equal(acl_new(&a, r, n, dflt, &err), 0);
	for (unsigned i = 0; i < packets; i++) {
		struct acl_key k;

		acl_rand_key(&s, r, n, &k);
		agree(a, r, n, dflt, k);
		hits += acl_lookup(a, &k).rule != ACL_DEFAULT;
	}
	if (n >= 10)
		assert_true(hits > packets / 20); /* not all results are defaults */
	acl_free(a);
	free(r);
}

static void test_random(void **state)
{
	for (uint32_t seed = 1; seed <= 400; seed++)
		random_case(seed % 24, seed * 2654435761u | 1, 100);
	/* Around word boundaries, and the largest size. */
	static const unsigned sizes[] = {63, 64, 65, 127, 128, 129, 192, 500, ACL_RULES_MAX};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		random_case(sizes[i], 77 + i, 400);
}

static void test_errors(void **state)
{
	static struct acl_rule r[ACL_RULES_MAX + 1];
	struct acl *a = NULL;
	struct acl_err err;
	struct acl_rule was;

	for (unsigned i = 0; i <= ACL_RULES_MAX; i++)
		r[i] = rule_any(true);
	assert_int_equal(acl_new(&a, r, ACL_RULES_MAX + 1, true, &err), RWY_EINVAL);
	assert_int_equal(err.why, ACL_E_RULES);
	assert_int_equal(err.rule, ACL_RULES_MAX + 1);
#define BAD(i, change, reason)                                                                               \
	was = r[i];                                                                                          \
	change;                                                                                              \
	assert_int_equal(acl_new(&a, r, 100, true, &err), RWY_EINVAL);                                       \
	assert_int_equal(err.why, reason);                                                                   \
	assert_int_equal(err.rule, i);                                                                       \
	assert_null(a);                                                                                      \
	r[i] = was
	BAD(0, r[0].src = net4(10, 0, 0, 1, 24), ACL_E_SRC);
	BAD(99, r[99].src.len = 129, ACL_E_SRC);
	BAD(5, r[5].src.len = 80, ACL_E_SRC); /* ::/80 would be all of IPv4 */
	BAD(5, r[5].dst.len = 1, ACL_E_DST);
	BAD(7, r[7].dst = net4(10, 0, 0, 1, 31), ACL_E_DST);
	BAD(9, (r[9].src = net4(10, 0, 0, 0, 8), r[9].dst = (struct prefix){{{0xfd}}, 8}), ACL_E_FAMILY);
	BAD(11, (r[11].sport_lo = 2, r[11].sport_hi = 1), ACL_E_PORTS);
	BAD(13, r[13].classes = 0, ACL_E_CLASSES);
	BAD(13, r[13].classes = 1 << ACL_CLASS_COUNT, ACL_E_CLASSES);
#undef BAD
	for (unsigned e = 0; e < ACL_ERROR_COUNT; e++)
		assert_true(strlen(acl_error_text(e)) > 5);
	assert_int_equal(acl_new(&a, r, ACL_RULES_MAX, true, &err), 0);
	acl_free(a);
}

/* Memory is bounded by rules^2 bits for each of three fields, and small for small ACLs. */
static void test_memory(void **state)
{
	static struct acl_rule r[ACL_RULES_MAX];
	struct acl_err err;
	struct acl *a;

	for (unsigned i = 0; i < ACL_RULES_MAX; i++) {
		r[i] = rule_any(i & 1);
		r[i].src = net4(10, (uint8_t)(i >> 4), (uint8_t)(i << 4), 0, 28);
		r[i].dst = net4(11, (uint8_t)(i >> 4), (uint8_t)(i << 4), 0, 28);
		r[i].sport_lo = (uint16_t)(40000 + 2 * i);
		r[i].sport_hi = (uint16_t)(60000 + i);
	}
	assert_int_equal(acl_new(&a, r, 10, false, &err), 0);
	assert_in_range(acl_bytes(a), 100, 3 * 21 * 16 + 2048);
	acl_free(a);
	assert_int_equal(acl_new(&a, r, ACL_RULES_MAX, false, &err), 0);
	assert_in_range(acl_bytes(a), 1000, 3 * (2 * ACL_RULES_MAX + 1) * (17 * 8 + 20));
	acl_free(a);
}

static void test_classes(void **state)
{
	unsigned seen[ACL_CLASS_COUNT] = {0};

	for (unsigned op = 0; op < 256; op++) {
		enum acl_class c = acl_class_of((uint8_t)op, 17);

		seen[c]++;
		/* IBA table 38: the low five bits name the operation, the upper three the transport. */
		if (op >> 5 == 3)
			assert_int_equal(c, op == 0x64 || op == 0x65 ? ACL_UD : ACL_OTHER);
		else if (op >> 5 == 0 && op <= 5)
			assert_int_equal(c, ACL_SEND);
		else if (op >> 5 == 0 && op >= 6 && op <= 11)
			assert_int_equal(c, ACL_WRITE);
		else if (op >> 5 == 0 && op >= 13 && op <= 18)
			assert_int_equal(c, ACL_RESPONSE);
	}
	assert_int_equal(acl_class_of(ROCE_RC_READ_REQ, 1), ACL_READ);
	assert_int_equal(acl_class_of(ROCE_RC_CMP_SWAP, 1), ACL_ATOMIC);
	assert_int_equal(acl_class_of(ROCE_RC_FETCH_ADD, 1), ACL_ATOMIC);
	assert_int_equal(acl_class_of(ROCE_RC_SEND_ONLY_INV, 1), ACL_SEND);
	assert_int_equal(acl_class_of(ROCE_OPCODE_CNP, 17), ACL_CNP);
	assert_int_equal(acl_class_of(ROCE_UD_SEND_ONLY, 1), ACL_CM);
	assert_int_equal(acl_class_of(0x1f, 1), ACL_OTHER);
	for (unsigned c = 0; c < ACL_CLASS_COUNT; c++)
		assert_true(seen[c] > 0 || c == ACL_CM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_meaning),
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_errors),
	    cmocka_unit_test(test_memory),
	    cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
