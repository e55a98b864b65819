/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware rules by rte_flow, for a port that a DPDK driver owns: drops, and passes to the port's
 * receive queues. Each rule is validated before it is created; a refusal has the driver's reason.
 * There is no forwarding: outside a switch it would need the next hop of every VTEP.
 *
 * Thread: one at a time.
 */
#ifndef GATEWAY_OFFLOAD_RTE_H
#define GATEWAY_OFFLOAD_RTE_H

#include "offload/sync.h"

struct offload_rte;
/* vlan: of the port itself, on all frames except tenants' VLANs; 0: none. queues: its receive
 * queues. RWY_ENOMEM. */
RWY_MUST_CHECK int offload_rte_new(struct offload_rte **out, uint16_t port, uint16_t vlan, uint16_t queues);
void offload_rte_free(struct offload_rte *o); /* flush first */
/* ctx is struct offload_rte. */
extern const struct offload_ops offload_rte_ops;
/* Returns whether the driver reported a reset of the port since the last call: its rules are
 * gone. */
bool offload_rte_was_reset(struct offload_rte *o);

#endif
