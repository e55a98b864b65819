/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the counters that come from the lists of vxlan/ and tenant/. Drops begin with drop_. */
#include "gateway/counters.h"

const struct gw_counter_name gw_overlay_names[GW_OVERLAY_COUNTERS] = {
#define X(e, n, s) {(e) == VXLAN_OK ? "vxlan_decapsulated" : (e) == VXLAN_NOT_VXLAN ? n : "drop_" n, s},
    VXLAN_REASONS(X)
#undef X
#define X(e, n, s) {(e) == TENANT_OK ? "tenant_admitted" : "drop_tenant_" n, s},
        TENANT_ADMIT(X)
#undef X
#define X(e, n, s) {(e) == ARP_NO_PROXY || (e) == ARP_NOWHERE || (e) >= ARP_NOT_US ? "drop_" n : n, s},
            ARP_WHATS(X)
#undef X
#define X(f, s) {"vxlan_" #f, s},
                VXLAN_ECN_COUNTERS(X)
#undef X
#define X(f, s) {"host_" #f, s},
                    VTEP_COUNTERS(X)
#undef X
};
