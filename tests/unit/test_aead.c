/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aead/: the vectors of the GCM specification, the tables against each other, and the key schedule
 * against values of another implementation of RFC 5869 and RFC 8446.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aead/schedule.h"
#include "rwy/endian.h"
#include "tests/lib/aead_test.h"
#include "tests/lib/rng.h"

#define LEN_MAX 9000

static const struct aead_ops *tables[3];
static unsigned n_tables;

static int find_tables(void **state)
{
	tables[n_tables++] = &aead_gnutls;
	if (aead_ipsec_mb())
		tables[n_tables++] = aead_ipsec_mb();
	tables[n_tables++] = &aead_test;
	assert_ptr_equal(aead_best(), n_tables == 3 ? tables[1] : tables[0]);
	return 0;
}

static size_t hex(uint8_t *out, const char *s)
{
	size_t n = 0;

	for (; *s; s += 2) {
		char two[3] = {s[0], s[1], 0};

		out[n++] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static void assert_bytes(const uint8_t *got, const char *want)
{
	uint8_t w[512];
	size_t n = hex(w, want);

	assert_memory_equal(got, w, n);
}

/* --- vectors -------------------------------------------------------------------------------------- */
/* McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 4 and 16 */
static const struct vector {
	enum aead_alg alg;
	const char *key, *out, *tag;
} vectors[] = {
    {AEAD_AES_128_GCM, "feffe9928665731c6d6a8f9467308308",
        "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
        "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
        "5bc94fbc3221a5db94fae95ae7121a47"},
    {AEAD_AES_256_GCM, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
        "76fc6ece0f4e1768cddf8853bb2d551b"},
};
#define PLAIN                                                                                                \
	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"                                   \
	"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define AAD   "feedfacedeadbeeffeedfacedeadbeefabaddad2"
#define NONCE "cafebabefacedbaddecaf888"

static void test_vectors(void **state)
{
	uint8_t key[AEAD_KEY_MAX], plain[64], aad[20], nonce[AEAD_NONCE], out[64 + AEAD_TAG];
	size_t n = hex(plain, PLAIN);
	struct aead_key k = {0};

	hex(aad, AAD);
	hex(nonce, NONCE);
	for (unsigned t = 0; t < n_tables; t++)
		for (unsigned v = 0; v < 2 && tables[t] != &aead_test; v++)
			for (size_t cut = 0; cut <= n; cut++) {
				struct aead_in in = {plain, plain + cut, cut, n - cut};

				hex(key, vectors[v].key);
				assert_int_equal(tables[t]->key_init(&k, vectors[v].alg, key), 0);
				tables[t]->seal(&k, nonce, aad, sizeof(aad), out, &in);
				assert_bytes(out, vectors[v].out);
				assert_bytes(out + n, vectors[v].tag);
				assert_true(tables[t]->unseal(&k, nonce, aad, sizeof(aad), out, n));
				assert_memory_equal(out, plain, n);
				tables[t]->key_wipe(&k);
			}
}

/* --- properties of each table --------------------------------------------------------------------- */
struct datagram {
	uint8_t bytes[LEN_MAX + 64 + AEAD_TAG];
};

static void random_bytes(uint64_t *r, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rng_next(r);
}

/* Any length, alignment and division; what was sealed comes back. */
static void test_lengths(void **state)
{
	static struct datagram plain, a, b;
	uint8_t key[AEAD_KEY_MAX], nonce[AEAD_NONCE], aad[16];
	uint64_t r = 5;

	for (unsigned i = 0; i < 400; i++) {
		size_t n = i < 100 ? i : rng_below(&r, LEN_MAX + 1), cut = n ? rng_below(&r, (uint32_t)n) : 0;
		unsigned at = rng_below(&r, 16);
		enum aead_alg alg = i & 1 ? AEAD_AES_256_GCM : AEAD_AES_128_GCM;
		struct aead_in in = {plain.bytes + at, plain.bytes + at + cut, cut, n - cut};

		random_bytes(&r, key, sizeof(key));
		random_bytes(&r, nonce, sizeof(nonce));
		random_bytes(&r, aad, sizeof(aad));
		random_bytes(&r, plain.bytes, n + 64);
		for (unsigned t = 0; t < n_tables; t++) {
			uint8_t *out = t ? b.bytes + at : a.bytes;
			struct aead_key k = {0};

			assert_int_equal(tables[t]->key_init(&k, alg, key), 0);
			tables[t]->seal(&k, nonce, aad, sizeof(aad), out, &in);
			if (t && tables[t] != &aead_test)
				assert_memory_equal(out, a.bytes, n + AEAD_TAG);
			if (n >= 16)
				assert_memory_not_equal(out, plain.bytes + at, n);
			if (t) {
				assert_true(tables[t]->unseal(&k, nonce, aad, sizeof(aad), out, n));
				assert_memory_equal(out, plain.bytes + at, n);
			}
			tables[t]->key_wipe(&k);
		}
	}
}

/* Each bit counts: of the ciphertext, the tag, the additional data, the nonce and the key. */
static void test_each_bit(void **state)
{
	enum { N = 40, AAD_LEN = 16 };
	uint8_t all[AEAD_KEY_MAX + AEAD_NONCE + AAD_LEN + N + AEAD_TAG], plain[N], now[sizeof(all)];
	uint64_t r = 6;

	random_bytes(&r, all, sizeof(all));
	random_bytes(&r, plain, N);
	for (unsigned t = 0; t < n_tables; t++)
		for (unsigned bit = 0; bit <= sizeof(all) * 8; bit++) {
			uint8_t *nonce = all + AEAD_KEY_MAX, *aad = nonce + AEAD_NONCE, *c = aad + AAD_LEN;
			struct aead_in in = {plain, NULL, N, 0};
			struct aead_key k = {0};
			bool same;

			if (bit / 8 >= 16 && bit / 8 < AEAD_KEY_MAX)
				continue; /* the key has 16 bytes */
			assert_int_equal(tables[t]->key_init(&k, AEAD_AES_128_GCM, all), 0);
			tables[t]->seal(&k, nonce, aad, AAD_LEN, c, &in);
			tables[t]->key_wipe(&k);
			memcpy(now, all, sizeof(all));
			same = bit == sizeof(all) * 8;
			if (!same)
				now[bit / 8] ^= (uint8_t)(1u << bit % 8);
			assert_int_equal(tables[t]->key_init(&k, AEAD_AES_128_GCM, now), 0);
			nonce = now + AEAD_KEY_MAX;
			aad = nonce + AEAD_NONCE;
			assert_int_equal(tables[t]->unseal(&k, nonce, aad, AAD_LEN, aad + AAD_LEN, N), same);
			tables[t]->key_wipe(&k);
		}
}

/* A key that was wiped opens nothing, and nothing leaves in the clear. */
static void test_wiped(void **state)
{
	static const uint8_t zero[AEAD_KEY_STATE];
	uint8_t key[AEAD_KEY_MAX] = {1}, nonce[AEAD_NONCE] = {0}, plain[32] = "what nobody else may read now",
	        out[32 + AEAD_TAG];
	struct aead_in in = {plain, NULL, sizeof(plain), 0};

	for (unsigned t = 0; t < n_tables; t++) {
		struct aead_key k = {0};

		assert_int_equal(tables[t]->key_init(&k, AEAD_AES_128_GCM, key), 0);
		tables[t]->seal(&k, nonce, "", 0, out, &in);
		tables[t]->key_wipe(&k);
		assert_memory_equal(k.state, zero, sizeof(zero));
		tables[t]->key_wipe(&k);
		assert_false(tables[t]->unseal(&k, nonce, "", 0, out, sizeof(plain)));
		tables[t]->seal(&k, nonce, "", 0, out, &in);
		if (tables[t] != &aead_test)
			assert_memory_not_equal(out, plain, sizeof(plain));
	}
}

/* --- schedule ------------------------------------------------------------------------------------- */
static void test_schedule(void **state)
{
	struct aead_secret s, next;
	struct aead_key k = {0};
	uint8_t out[AEAD_SECRET], iv[AEAD_NONCE];

	for (unsigned i = 0; i < AEAD_SECRET; i++)
		s.b[i] = (uint8_t)i;
	aead_expand_label(out, 16, &s, "key", NULL, 0);
	assert_bytes(out, "ccc3468f6d11ea7d7dd41d70e4d869da");
	assert_int_equal(aead_key_from(&k, iv, &aead_gnutls, AEAD_AES_128_GCM, &s), 0);
	assert_bytes(iv, "bab38d34a43febc655ece396");
	aead_gnutls.key_wipe(&k);
	aead_secret_next(&next, &s);
	assert_bytes(next.b, "de4b0b8f231c5ab2c6708a4c84703f72d5d89f83ed9b7d5e40f6e32f53bfdc79");
	assert_int_equal(aead_secret_id(&s), 0x86);
	aead_secret_of(&next, &s, 0x1122334455667788, 3);
	assert_bytes(next.b, "8bafb687b55f15abbabedbd9198402989a6580962ac731db304aeea532570f9c");
	aead_secret_next(&s, &s); /* in place */
	assert_bytes(s.b, "de4b0b8f231c5ab2c6708a4c84703f72d5d89f83ed9b7d5e40f6e32f53bfdc79");
}

static void test_nonce(void **state)
{
	uint8_t iv[AEAD_NONCE], out[AEAD_NONCE];

	hex(iv, "0102030405060708090a0b0c");
	aead_nonce(out, iv, 0, 0);
	assert_memory_equal(out, iv, AEAD_NONCE);
	aead_nonce(out, iv, 0x0f, 0x8000000000000001);
	assert_bytes(out, "0102030b85060708090a0b0d");
}

static void test_memory(void **state)
{
	uint8_t *p = aead_mem_alloc(10000);

	assert_non_null(p);
	assert_int_equal((uintptr_t)p & 63, 0);
	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(p[i], 0);
	memset(p, 1, 10000);
	aead_mem_free(p, 10000);
	aead_mem_free(NULL, 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_lengths),
	    cmocka_unit_test(test_each_bit),
	    cmocka_unit_test(test_wiped),
	    cmocka_unit_test(test_schedule),
	    cmocka_unit_test(test_nonce),
	    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, find_tables, NULL);
}
