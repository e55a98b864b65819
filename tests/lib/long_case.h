/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case that takes minutes under AddressSanitizer. `make check` runs it without sanitizers only;
 * `make check-long` (ROCEWAY_LONG=1) runs it both ways. The same for the greater part of many
 * rounds. See tests/run-unit, and PLAIN_TESTS in the Makefile.
 */
#pragma once
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#define LONG_CASE_SKIPS (getenv("ROCEWAY_LONG") == NULL)
#else
#define LONG_CASE_SKIPS 0
#endif

/* The first statement of such a case, in a file that includes cmocka.h. */
#define long_case()                                                                                          \
	do {                                                                                                 \
		if (LONG_CASE_SKIPS)                                                                         \
			skip();                                                                              \
	} while (0)

/*
 * How many of n rounds, each with its seed, a case runs: all; under AddressSanitizer the first
 * quarter.
 */
#define long_rounds(n) (LONG_CASE_SKIPS ? ((n) + 3u) / 4 : (n) + 0u)
