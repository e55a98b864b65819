/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration: the result is a checked configuration, or one message with a
 * position inside the text; nothing leaks. */
#include <stdint.h>
#include <stdlib.h>

#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *c = NULL;
	struct conf_error err;
	unsigned lines = 2; /* the end of the text may be a line of its own */

	if (conf_parse(&c, (const char *)data, size, "fuzz", &err)) {
		for (size_t i = 0; i < size; i++)
			lines += data[i] == '\n' || data[i] == '\r' || data[i] == 0x85 ||
			         data[i] >= 0xa8; /* YAML's line breaks */
		if (c || !*err.msg || err.line > lines)
			abort();
		for (const char *m = err.msg; *m; m++)
			if ((uint8_t)*m < 0x20)
				abort();
		return 0;
	}
	if (c->ports < 2 || c->ports > CONF_PORTS_MAX || !c->tunnels || c->tunnels > CONF_TUNNELS_MAX ||
	    !c->workers)
		abort();
	for (unsigned i = 0; i < c->tunnels; i++)
		if (c->tunnel[i].port_idx >= c->ports ||
		    c->port[c->tunnel[i].port_idx].role != CONF_ROLE_WAN || !c->tunnel[i].rate_Bps)
			abort();
	for (unsigned i = 0; i < c->tenants; i++)
		if (!c->tenant[i].cfg.vni || !c->tenant[i].cfg.prefixes || !c->tenant[i].line)
			abort();
	conf_free(c);
	return 0;
}
