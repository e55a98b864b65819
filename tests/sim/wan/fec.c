/* SPDX-License-Identifier: Apache-2.0 */
/* The only file here that knows which settings of forward error correction wan/ has. */
#include <string.h>

#include "tests/sim/wan/fec.h"

bool fec_configure(struct wan_cfg *c, const char *word)
{
	return strcmp(word, "default") == 0 || strcmp(word, "off") == 0;
}
