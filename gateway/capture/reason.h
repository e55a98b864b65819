/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reasons in a capture: names of counters, by a number of one list over all groups of counters.
 * A reason of the same name may be in several groups. Pure: any thread.
 */
#ifndef GATEWAY_CAPTURE_REASON_H
#define GATEWAY_CAPTURE_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "gateway/counters.h"
#include "proxy/edge.h"
#include "wan/wan.h"

/* The number of the first counter of each group; 0 is "no reason". */
enum gw_cap_group {
	GW_CAP_OF_GATEWAY = 1,
	GW_CAP_OF_OVERLAY = GW_CAP_OF_GATEWAY + sizeof(struct gw_counters) / 8,
	GW_CAP_OF_ENGINE = GW_CAP_OF_OVERLAY + GW_OVERLAY_COUNTERS,
	GW_CAP_OF_RELAY = GW_CAP_OF_ENGINE + sizeof(struct eng_counters) / 8,
	GW_CAP_OF_TUNNEL = GW_CAP_OF_RELAY + sizeof(struct proxy_counters) / 8,
	GW_CAP_REASONS = GW_CAP_OF_TUNNEL + sizeof(struct wan_counters) / 8,
};
/* A counter of struct gw_counters. */
#define GW_CAP_REASON(field) ((uint16_t)(GW_CAP_OF_GATEWAY + offsetof(struct gw_counters, field) / 8))

/* "" for 0. */
const char *gw_cap_reason_name(unsigned reason);
/* A counter that says why a packet was dropped, or what the engine saw in it. Others only count. */
enum gw_cap_says { GW_CAP_SAYS_NOTHING, GW_CAP_SAYS_DROP, GW_CAP_SAYS_MORE };
enum gw_cap_says gw_cap_reason_says(unsigned reason);

#endif
