/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ARP (RFC 826, 5227) and neighbor discovery (RFC 4861) inside a tenant's overlay. The gateway
 * answers for its own inner address and, where the tenant asks for it (proxy_arp), for addresses
 * behind a tunnel or on the tenant's other side. It never answers for an address on the asking
 * side: that host answers. It also asks, at a bounded rate, for hosts that it does not know. A
 * frame goes in, a record and perhaps a frame come out; the caller sends and learns
 * (tenant/vtep.h).
 *
 * Frames begin at the inner Ethernet header; net_off is 14, or 18 behind a VLAN tag, as set by
 * vxlan_decap.
 */
#ifndef TENANT_ARP_H
#define TENANT_ARP_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "tenant/tenant.h"

#define ARP_FRAME_MAX 96 /* room for any frame that is made here */

/* The verdict on a frame. X(enumerator, counter name, sentence) */
#define ARP_WHATS(X)                                                                                         \
	X(ARP_OTHER, "not_arp", "neither ARP nor neighbour discovery: not ours")                             \
	X(ARP_ANSWER_OWN, "arp_answered", "asked for the gateway's own address: answered")                   \
	X(ARP_ANSWER_PROXY, "arp_proxied", "asked for an address elsewhere: answered for it")                \
	X(ARP_HEARD, "arp_heard", "an answer, or an announcement")                                           \
	X(ARP_LOCAL, "arp_local", "asked for an address of the side that asks: its host answers")            \
	X(ARP_NO_PROXY, "arp_no_proxy", "asked for an address elsewhere; the tenant has no proxy")           \
	X(ARP_NOWHERE, "arp_nowhere", "asked for an address in none of the tenant's prefixes")               \
	X(ARP_PROBE, "arp_probe", "duplicate address detection for an address that is not the gateway's")    \
	X(ARP_NOT_US, "arp_not_ours", "sent to another station")                                             \
	X(ARP_CONFLICT, "arp_conflict", "another host claims the gateway's own address")                     \
	X(ARP_FORGED, "arp_forged", "sender's address is not one of the tenant's on that side")              \
	X(ARP_MALFORMED, "arp_malformed",                                                                    \
	    "too short, wrong types, lengths, checksum, hop limit or options (RFC 826, RFC 4861 7.1)")       \
	X(ARP_BAD_MAC, "arp_bad_mac", "sender's MAC address is multicast, 0, or not the frame's")            \
	X(ARP_BAD_TARGET, "arp_bad_target", "asks for an address that no single host can have")
enum arp_what {
#define X(e, n, s) e,
	ARP_WHATS(X)
#undef X
	    ARP_WHAT_COUNT
};

struct arp_msg {
	/* address of the sender; all 0 (IPv4: 0.0.0.0): a probe. Advertisement: the address that it
	 * is about */
	struct rwy_ip sender;
	struct rwy_ip target;
	uint8_t mac[6]; /* MAC address of the sender */
	bool is6, request;
	bool learn; /* sender and mac are valid: vtep_learn may learn them */
};

/*
 * Decides on a frame of tenant t that came in on `side` (TENANT_LAN, TENANT_VTEP). `mac` is the
 * gateway's MAC address there: cfg.gw_mac behind VTEPs, the port's on a VLAN (which also takes
 * frames to cfg.gw_mac). ARP_ANSWER_*: out[0..*out_len) is the answer, an Ethernet frame to m->mac
 * with the same VLAN tag; else *out_len is 0. *m is filled except for OTHER, MALFORMED, BAD_MAC.
 * Accepts any frame.
 */
enum arp_what arp_rx(const struct tenant *t, enum tenant_side side, const uint8_t mac[6], const uint8_t *eth,
    uint32_t net_off, uint32_t len, struct arp_msg *m, uint8_t out[ARP_FRAME_MAX], uint32_t *out_len);

/* Makes the frame that asks for `target` from `mac` (see arp_rx): broadcast, or to the
 * solicited-node group. tci: VLAN tag, 0: none. Returns its length; 0: the tenant has no gateway
 * address of that family. */
uint32_t arp_ask(const struct tenant *t, const uint8_t mac[6], const struct rwy_ip *target, uint16_t tci,
    uint8_t out[ARP_FRAME_MAX]);

/* --- rate of asking --------------------------------------------------------------------------- */

struct arp_rate_cfg {
	uint32_t slots;   /* remembered targets, a power of two, 1 .. 2^20 */
	uint32_t tenants; /* bound of tenant indices, 1 .. 65536 */
	rwy_dur again;    /* least time between two requests for one target */
	uint32_t burst;   /* requests that a tenant may make at once, 1 .. 65535, */
	rwy_dur every;    /* and time after which it gets one more, > 0 */
};
/* Defaults: 4096 slots, 16384 tenants, 1 s, 16, 10 ms. */
void arp_rate_cfg_default(struct arp_rate_cfg *cfg);

/* Thread: owned by one worker. */
struct arp_rate;
/* Errors: RWY_EINVAL, RWY_ENOMEM. */
RWY_MUST_CHECK int arp_rate_new(struct arp_rate **out, const struct arp_rate_cfg *cfg);
void arp_rate_free(struct arp_rate *r); /* NULL is allowed */
/* Returns whether to ask now for an unknown host that a packet waits for. True at most `burst` +
 * elapsed / `every` times per tenant, whatever the targets are. */
bool arp_rate_ask(struct arp_rate *r, uint32_t tenant, const struct rwy_ip *target, rwy_time now);

#endif
