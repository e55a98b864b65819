/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sealing for simulators and tests: fast, the same on each machine, and no cipher. It changes every
 * byte, depends on key, nonce and additional data, and notices a change of any bit; nobody has
 * shown that it keeps a secret.
 */
#ifndef TESTS_LIB_AEAD_TEST_H
#define TESTS_LIB_AEAD_TEST_H

#include "aead/aead.h"

extern const struct aead_ops aead_test;

#endif
