/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the application around the engine: ports, neighbors, frames for the kernel. Each
 * worker has a set that only it writes. engine/counters.h has the engine's own, wan/wan.h
 * the tunnels'.
 */
#ifndef GATEWAY_COUNTERS_H
#define GATEWAY_COUNTERS_H

#include <stdint.h>

#include "tenant/arp.h"
#include "vxlan/ecn.h"
#include "tenant/tenant.h"
#include "tenant/vtep.h"
#include "vxlan/vxlan.h"

/* X(field, sentence): monotonic counts. */
#define GW_COUNTERS(X)                                                                                       \
	X(rx_packets, "frames taken from ports")                                                             \
	X(tx_packets, "frames given to ports")                                                               \
	X(to_engine_lan, "packets from local hosts given to the engine")                                     \
	X(to_engine_wan, "datagrams from tunnel peers given to the engine")                                  \
	X(to_kernel, "frames for the gateway itself, handed to the kernel (ARP, ND, ICMP)")                  \
	X(from_kernel, "frames of the kernel, sent on a port")                                               \
	X(handoff, "frames passed to the worker that owns them")                                             \
	X(tx_in_place, "packets sent with headers written in front of them")                                 \
	X(tx_chained, "packets sent by reference behind a header of their own")                              \
	X(tx_copied, "packets copied because the port takes no chains or the packet was made here")          \
	X(tx_sealed, "datagrams sealed: the encryption is a copy")                                           \
	X(tx_payload_copied, "of these, packets of hosts: their payload was copied")                         \
	X(capture_packets, "packets copied into a capture")                                                  \
	X(capture_lost, "packets that are missing in a capture: it was read too slowly")                     \
	X(capture_over_rate, "packets that are missing in a capture: more than its rate")                    \
	X(tx_announced, "frames that tell switches where the addresses of a pair of gateways are now")       \
	X(neigh_misses, "first packets of a flow, or after a change, that looked up their next hop")         \
	X(neigh_told, "neighbours of which the active gateway of the pair told this one")                    \
	X(neigh_told_lost, "of these, lost because the control thread was slow: told again later")           \
	X(sibling_tx, "RoCE packets forwarded to the gateway of this site that owns their pair")             \
	X(sibling_kept, "packets that a sibling forwarded but another one owns: accepted")                   \
	X(drop_sibling_forged, "a sibling's MAC address, but not its port or without the site's seal")       \
	X(drop_sibling_unresolved, "MAC address of a sibling not known yet, or it is on none of our LANs")   \
	X(drop_sibling_hops, "packet for a sibling without hops left, while some sibling is unknown")        \
	X(drop_standby_rx, "frame that came while the other gateway of the pair has the addresses")          \
	X(drop_standby_tx, "frame that was to leave meanwhile: of the kernel")                               \
	X(drop_rx_truncated, "frame shorter than its headers say")                                           \
	X(drop_rx_not_ours, "frame for another MAC address")                                                 \
	X(drop_rx_vlan, "frame of another VLAN, or untagged where a tag is expected")                        \
	X(drop_rx_not_ip, "neither ARP nor IP")                                                              \
	X(drop_rx_segments, "frame in several buffers that could not be joined")                             \
	X(drop_bad_ip, "bad IP header, or an IP fragment of a tunnel's datagram")                            \
	X(drop_bad_udp, "tunnel datagram with a wrong UDP length")                                           \
	X(drop_relay_transit, "packet from a local host to an address that is not the relay's")              \
	X(drop_lan_no_route, "packet from a local host that no tunnel leads to")                             \
	X(drop_lan_foreign_source,                                                                           \
	    "packet of a plain LAN whose source is behind a tunnel, or where no LAN port leads")             \
	X(drop_wan_not_ours, "packet from the WAN to an address that is not the gateway's")                  \
	X(drop_wan_stranger, "datagram to a tunnel's port from an address that is no tunnel's peer")         \
	X(drop_low_memory,                                                                                   \
	    "request of a local host while packet buffers were nearly used up: the host sends it again")     \
	X(drop_handoff_full, "the owning worker's ring was full")                                            \
	X(drop_kernel_full, "the ring to the kernel side was full")                                          \
	X(drop_tx_full, "the port's transmit ring stayed full")                                              \
	X(drop_tx_too_long, "packet longer than the port's MTU")                                             \
	X(drop_lan_unresolved, "MAC address of a local host not known yet")                                  \
	X(drop_lan_unreachable, "no LAN port leads to the destination")                                      \
	X(drop_wan_unresolved, "MAC address of a tunnel's next hop not known yet")                           \
	X(tx_vxlan, "packets sent to a host's VTEP in VXLAN")                                                \
	X(tx_vlan, "packets sent to a tenant's VLAN")                                                        \
	X(tx_arp_asks, "ARP requests and neighbour solicitations sent for tenants' hosts")                   \
	X(tx_arp_answers, "ARP and ND answers sent to tenants' hosts")                                       \
	X(host_spread, "locations of tenants' hosts copied to other workers")                                \
	X(drop_tenant_mac, "tenant's frame to a MAC address that is not the gateway's, multicast included")  \
	X(drop_tenant_not_ip, "tenant's frame that is neither ARP nor IP")                                   \
	X(tenant_local, "tenants' packets between a VTEP and a VLAN of this site")                           \
	X(drop_tenant_local,                                                                                 \
	    "tenant's packet to a host on its own side of this site, or to the gateway itself")              \
	X(drop_tenant_bad, "between hosts of one site: damaged, or RoCE in a fragment or behind extensions") \
	X(drop_tenant_hops, "between hosts of one site, without hops left")                                  \
	X(drop_host_forged, "tenant's packet or ARP that contradicts its source's known location")           \
	X(drop_vxlan_ecn, "congestion mark on the outer header of a packet without ECN (RFC 6040)")          \
	X(drop_tenant_gone, "packet from the WAN for a tenant that was removed")                             \
	X(drop_tenant_not_here, "packet from the WAN to an address outside its tenant at this site")         \
	X(drop_tenant_unresolved, "location of the tenant's host not known yet: requested")                  \
	X(drop_vtep_unresolved, "MAC address of a VTEP's next hop not known yet")                            \
	X(drop_vtep_unreachable, "no LAN port leads to the VTEP, or it has no address of its family")        \
	X(drop_vtep_spoofed, "VXLAN in the name of a VTEP, but from another MAC address than the VTEP's")    \
	X(drop_vxlan_transit, "VXLAN of the plain LAN to another address than the gateway's own")            \
	X(drop_port_down, "port without link")                                                               \
	X(drop_session_event, "connections not reported for lack of room: all are read again")               \
	X(drop_no_mbuf, "no packet buffer for a made packet or a header")
struct gw_counters {
#define X(f, s) uint64_t f;
	GW_COUNTERS(X)
#undef X
};

/* Counters of tenants' frames and of the host table, from the lists of vxlan/ and tenant/. Each
 * worker has a set of these as well. */
struct gw_overlay_counters {
	uint64_t vxlan[VXLAN_REASON_COUNT];
	uint64_t admit[TENANT_ADMIT_COUNT];
	uint64_t arp[ARP_WHAT_COUNT];
	struct vxlan_ecn_counters ecn;
	struct vtep_counters host;
};
#define GW_OVERLAY_COUNTERS (sizeof(struct gw_overlay_counters) / sizeof(uint64_t))
/* Names and sentences of these counters, in the order of the struct. */
struct gw_counter_name {
	const char *name, *text;
};
extern const struct gw_counter_name gw_overlay_names[GW_OVERLAY_COUNTERS];

#endif
