/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of the reasons for which a connection failed. */
#include "engine/why.h"

#include <assert.h>

static_assert((int)ENG_ENDS < ENG_CAUSE_FIRST, "one range of numbers");

static const char *const causes[] = {
#define X(e, text) text,
    ENG_CAUSES(X)
#undef X
};

const char *eng_why_text(unsigned why, uint8_t syndrome, bool beside)
{
	if (why < ENG_ENDS)
		return eng_end_text((enum eng_end)why, syndrome, beside);
	if (why >= ENG_CAUSE_FIRST && why < ENG_CAUSE_END)
		return causes[why - ENG_CAUSE_FIRST];
	return "unknown";
}
