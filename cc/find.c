/* SPDX-License-Identifier: Apache-2.0 */
/* The list of algorithms, by name. */
#include <string.h>

#include "cc/cc.h"

const struct cc_ops *cc_find(const char *name)
{
	static const struct cc_ops *const all[] = {
	    &cc_auto, &cc_fixed, &cc_bbr, &cc_swift, &cc_dcqcn, &cc_cubic};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
