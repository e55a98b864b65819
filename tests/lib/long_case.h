/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case that takes long, or minutes under AddressSanitizer. `make check` (ROCEWAY_QUICK=1) leaves
 * it out, `make check-ci` runs it without sanitizers only, `make check-long` (ROCEWAY_LONG=1) both
 * ways. The same for the greater part of many rounds. See tests/run-unit, and PLAIN_TESTS in the
 * Makefile.
 */
#pragma once
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#define LONG_CASE_SKIPS (getenv("ROCEWAY_LONG") == NULL)
#else
#define LONG_CASE_SKIPS (getenv("ROCEWAY_QUICK") != NULL)
#endif

/* The first statement of such a case, in a file that includes cmocka.h. */
#define long_case()                                                                                          \
	do {                                                                                                 \
		if (LONG_CASE_SKIPS)                                                                         \
			skip();                                                                              \
	} while (0)

/*
 * How many of n rounds, each with its seed, a case runs: all; where a long case is left out the
 * first quarter.
 */
#define long_rounds(n) (LONG_CASE_SKIPS ? ((n) + 3u) / 4 : (n) + 0u)
