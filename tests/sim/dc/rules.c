/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/dc/dc.h"

void dc_rules_init(struct dc *dc)
{
	(void)dc;
}
void dc_rules_fini(struct dc *dc)
{
	(void)dc;
}
