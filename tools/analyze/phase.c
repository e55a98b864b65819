/* SPDX-License-Identifier: Apache-2.0 */
/* Names and sentences of the phases. */
#include "tools/analyze/analyze.h"

#define X(e, n, s) n,
static const char *const phase_name[] = {AN_PHASES(X)};
#undef X
#define X(e, n, s) s,
static const char *const phase_text[] = {AN_PHASES(X)};
#undef X

const char *an_phase_name(enum an_phase p)
{
	return phase_name[p];
}

const char *an_phase_text(enum an_phase p)
{
	return phase_text[p];
}
