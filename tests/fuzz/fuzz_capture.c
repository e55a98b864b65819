/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a filter of captures: a good table, or one message with a place inside the text. Any
 * bytes as a frame and as a datagram: facts, and what the filter says of them; nothing is read
 * beyond the end.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/capture/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool tenant_any(void *ctx, const char *name, uint32_t *vni)
{
	*vni = (uint32_t)strlen(name);
	return *vni & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gw_cap_filter f;
	static struct gw_cap_frags frags;
	struct gw_cap_facts lan = {0}, wan = {.stage = GW_CAP_WAN_IN};
	struct gw_cap_fault fault = {0};
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	gw_cap_facts_frame(&lan, data, (uint32_t)size, true);
	gw_cap_facts_wan(&wan, &frags, data, (uint32_t)size);
	if (gw_cap_filter_parse(&f, text, tenant_any, NULL, &fault)) {
		if (!*fault.text || fault.at > strlen(text))
			abort();
	} else if (f.n > GW_CAP_STEPS) {
		abort();
	} else {
		(void)gw_cap_filter_takes(&f, &lan);
		(void)gw_cap_filter_takes(&f, &wan);
	}
	free(text);
	return 0;
}
