/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/capture/reason.h"

#include <string.h>

#include "base/word.h"

#define X(f, s) #f,
static const char *const of_gateway[] = {GW_COUNTERS(X)};
static const char *const of_engine[] = {ENG_COUNTERS(X)};
static const char *const of_relay[] = {PROXY_COUNTERS(X)};
static const char *const of_tunnel[] = {WAN_COUNTERS(X)};
#undef X

/* Counters that are no drops, and yet say what became of the packet. */
static const char more[] =
    "accepted duplicate_request duplicate_read out_of_sequence parked packet_seq_err rnr_nak_received "
    "implied_nak_seq_err rp_cnp_handled cm_messages cm_held dgrams rx_data rx_duplicate rx_held_back "
    "dgram_received relay_cm_repeated";

const char *gw_cap_reason_name(unsigned reason)
{
	if (!reason || reason >= GW_CAP_REASONS)
		return "";
	if (reason >= GW_CAP_OF_TUNNEL)
		return of_tunnel[reason - GW_CAP_OF_TUNNEL];
	if (reason >= GW_CAP_OF_RELAY)
		return of_relay[reason - GW_CAP_OF_RELAY];
	if (reason >= GW_CAP_OF_ENGINE)
		return of_engine[reason - GW_CAP_OF_ENGINE];
	if (reason >= GW_CAP_OF_OVERLAY)
		return gw_overlay_names[reason - GW_CAP_OF_OVERLAY].name;
	return of_gateway[reason - GW_CAP_OF_GATEWAY];
}

enum gw_cap_says gw_cap_reason_says(unsigned reason)
{
	const char *name = gw_cap_reason_name(reason);

	if (!strncmp(name, "drop_", 5) || !strncmp(name, "refused_", 8))
		return GW_CAP_SAYS_DROP;
	return base_word_in(name, more) ? GW_CAP_SAYS_MORE : GW_CAP_SAYS_NOTHING;
}
