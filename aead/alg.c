/* SPDX-License-Identifier: Apache-2.0 */
#include "aead/aead.h"

static const struct {
	const char *name;
	size_t key;
} algs[] = {
#define X(e, n, b) [e] = {n, b},
    AEAD_ALGS(X)
#undef X
};

const char *aead_alg_name(enum aead_alg alg)
{
	return algs[alg].name;
}

size_t aead_alg_key(enum aead_alg alg)
{
	return algs[alg].key;
}
