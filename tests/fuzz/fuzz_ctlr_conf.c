/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the controller's configuration: the result is valid, or one message with a line of
 * the text. */
#include <stdlib.h>
#include <string.h>

#include "controller/conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ctlr_conf c;
	struct conf_error err;
	unsigned lines = 2; /* the end of the text may be a line of its own */

	if (ctlr_conf_parse(&c, (const char *)data, size, "fuzz", &err)) {
		for (size_t i = 0; i < size; i++)
			lines += data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 ||
			         data[i] >= 0xa8; /* YAML's line breaks */
		if (!*err.msg || !err.line || err.line > lines || strcmp(err.file, "fuzz") != 0)
			abort();
		for (const char *m = err.msg; *m; m++)
			if ((uint8_t)*m < 0x20)
				abort();
		return 0;
	}
	if (!*c.name || !*c.address || !*c.ca || !*c.cert || !*c.key || c.threads < 1 || c.threads > 64 ||
	    c.lease < 200 * RWY_MS || c.body < 4096 || c.connections < 4 || plan_policy_check(&c.policy) ||
	    (c.store == CTLR_SQLITE ? !*c.path : !c.endpoints))
		abort();
	return 0;
}
