/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sealing costs: aead/ as wan/ calls it (header and packet in two parts, encrypted into a new
 * buffer), beside intel-ipsec-mb called directly for the same bytes in one piece, in the same run.
 * Cycles are the best of many rounds, so other work on the machine does not count.
 *
 * Arguments: [--json]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "aead/aead.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <intel-ipsec-mb.h>

#define BUFS   256 /* as many packets as are under way: their bytes are in the second cache */
#define ROUNDS 400
#define HEAD   24 /* bytes of frame headers in front of a packet */
#define AAD    16

struct row {
	size_t size;
	double seal, unseal, own_seal, own_unseal; /* cycles */
};

static uint8_t *body[BUFS], *dst[BUFS], *kept[BUFS];
static struct aead_key key;
static struct gcm_key_data own_key;
static IMB_MGR *mgr;
static uint8_t nonce[AEAD_NONCE], head[HEAD], aad[AAD];

static double cycles_per_second(void)
{
	struct timespec a, b;
	uint64_t from, to;

	clock_gettime(CLOCK_MONOTONIC, &a);
	from = __rdtsc();
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while (b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9 < 0.05);
	to = __rdtsc();
	return (double)(to - from) / ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
}

static void one_seal(unsigned i, size_t n)
{
	const struct aead_in in = {.head = head, .head_len = HEAD, .body = body[i], .body_len = n};

	aead_best()->seal(&key, nonce, aad, AAD, dst[i], &in);
}

static void one_unseal(unsigned i, size_t n)
{
	if (!aead_best()->unseal(&key, nonce, aad, AAD, dst[i], n + HEAD))
		abort();
}

static void own_seal(unsigned i, size_t n)
{
	struct gcm_context_data ctx;

	IMB_AES128_GCM_ENC(
	    mgr, &own_key, &ctx, dst[i], body[i], n + HEAD, nonce, aad, AAD, dst[i] + n + HEAD, AEAD_TAG);
}

static void own_unseal(unsigned i, size_t n)
{
	struct gcm_context_data ctx;
	uint8_t tag[AEAD_TAG];

	IMB_AES128_GCM_DEC(mgr, &own_key, &ctx, dst[i], dst[i], n + HEAD, nonce, aad, AAD, tag, AEAD_TAG);
	if (memcmp(tag, dst[i] + n + HEAD, AEAD_TAG) != 0)
		abort();
}

/* Best round of fn over all buffers; unsealing gets back what was sealed before each round. */
static double measure(void (*fn)(unsigned i, size_t n), size_t n, bool again)
{
	double best = 1e30;

	for (unsigned r = 0; r < ROUNDS; r++) {
		uint64_t from, took;

		for (unsigned i = 0; again && i < BUFS; i++)
			memcpy(dst[i], kept[i], n + HEAD + AEAD_TAG);
		from = __rdtsc();
		for (unsigned i = 0; i < BUFS; i++)
			fn(i, n);
		took = __rdtsc() - from;
		if ((double)took / BUFS < best)
			best = (double)took / BUFS;
	}
	return best;
}

static void keep(void (*seal)(unsigned i, size_t n), size_t n)
{
	for (unsigned i = 0; i < BUFS; i++) {
		seal(i, n);
		memcpy(kept[i], dst[i], n + HEAD + AEAD_TAG);
	}
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {64, 256, 1024, 4096};
	static const uint8_t secret[16] = {1, 2, 3};
	bool json = argc > 1 && !strcmp(argv[1], "--json");
	double hz = cycles_per_second();
	IMB_ARCH arch;

	mgr = alloc_mb_mgr(0);
	if (!mgr || !aead_ipsec_mb())
		return 77; /* nothing to compare with on this machine */
	init_mb_mgr_auto(mgr, &arch);
	IMB_AES128_GCM_PRE(mgr, secret, &own_key);
	if (aead_best()->key_init(&key, AEAD_AES_128_GCM, secret) != 0)
		return 1;
	for (unsigned i = 0; i < BUFS; i++) {
		body[i] = aligned_alloc(64, 8192);
		dst[i] = aligned_alloc(64, 8192);
		kept[i] = aligned_alloc(64, 8192);
		if (!body[i] || !dst[i] || !kept[i])
			return 1;
		memset(body[i], (int)i, 8192);
	}
	if (!json)
		printf("%s by %s, bytes of the packet; cycles: ours, ipsec-mb alone, ratio; Gb/s of a core\n",
		    "aes-128-gcm", aead_best()->name);
	for (unsigned i = 0; i < 4; i++) {
		struct row r = {.size = sizes[i]};

		r.own_seal = measure(own_seal, r.size, false);
		r.seal = measure(one_seal, r.size, false);
		keep(one_seal, r.size);
		r.unseal = measure(one_unseal, r.size, true);
		keep(own_seal, r.size);
		r.own_unseal = measure(own_unseal, r.size, true);
		if (json)
			printf(
			    "{\"size\": %zu, \"seal_cycles\": %.0f, \"unseal_cycles\": %.0f, "
			    "\"own_seal_cycles\": %.0f, \"own_unseal_cycles\": %.0f, \"seal_gbps\": %.1f}\n",
			    r.size, r.seal, r.unseal, r.own_seal, r.own_unseal,
			    (double)r.size * 8 * hz / r.seal / 1e9);
		else
			printf("%5zu  seal %6.0f %6.0f %5.2fx   unseal %6.0f %6.0f %5.2fx   %6.1f Gb/s\n",
			    r.size, r.seal, r.own_seal, r.seal / r.own_seal, r.unseal, r.own_unseal,
			    r.unseal / r.own_unseal, (double)r.size * 8 * hz / r.seal / 1e9);
	}
	return 0;
}

#else

int main(void)
{
	return 77; /* nothing to compare with on this machine */
}

#endif
