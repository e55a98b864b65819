/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of a captured packet: where it was seen, what became of it, whose it is. They are read from
 * the packet's bytes; a packet that cannot be read has fewer facts. No DPDK. Any thread.
 */
#ifndef GATEWAY_CAPTURE_FACTS_H
#define GATEWAY_CAPTURE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/ip.h"

/* X(enumerator, name): where, seen from the gateway. WAN stages are before encryption and after
 * decryption. */
#define GW_CAP_STAGES(X)                                                                                     \
	X(GW_CAP_LAN_IN, "lan-in")                                                                           \
	X(GW_CAP_WAN_OUT, "wan-out")                                                                         \
	X(GW_CAP_WAN_IN, "wan-in")                                                                           \
	X(GW_CAP_LAN_OUT, "lan-out")
/* X(enumerator, name): what the gateway did with it. */
#define GW_CAP_DECISIONS(X)                                                                                  \
	X(GW_CAP_TAKE, "take")       /* the engine has it */                                                 \
	X(GW_CAP_DROP, "drop")       /* the reason is the counter */                                         \
	X(GW_CAP_KERNEL, "kernel")   /* for the gateway itself */                                            \
	X(GW_CAP_FORWARD, "forward") /* to a sibling, or a host of this site */                              \
	X(GW_CAP_SEND, "send")       /* given to the port, or to the reliable carrier */
#define X(e, n) e,
enum gw_cap_stage { GW_CAP_STAGES(X) GW_CAP_STAGE_COUNT };
enum gw_cap_decision { GW_CAP_DECISIONS(X) GW_CAP_DECISION_COUNT };
#undef X
extern const char *const gw_cap_stage_name[GW_CAP_STAGE_COUNT];
extern const char *const gw_cap_decision_name[GW_CAP_DECISION_COUNT];

struct gw_cap_facts {
	/* The same in all stages and at both gateways; 0: none, or gw_cap_id() computes it. */
	uint64_t id;
	struct rwy_ip src, dst; /* of the host's packet; with `ip` */
	uint32_t vni;           /* of its tenant; 0: none */
	uint32_t dqpn, psn;     /* with `roce` */
	uint32_t sqpn;          /* the sender's QPN; 0: not known */
	uint16_t reason;        /* gateway/capture/reason.h; 0: none */
	uint8_t stage, decision;
	uint8_t opcode, syndrome; /* with `roce`; with `aeth` */
	bool ip, roce, aeth;
	bool unread; /* only the stage is known yet */
	bool later;  /* a later fragment of the WAN: the facts are those of the first one */
};

/* A packet's id, 0: none. A RoCE packet's is computed here, so that a worker need not. */
uint64_t gw_cap_id(const struct gw_cap_facts *f);

/* Adds what an IP packet says, `len` bytes from its IP header on; fewer are there if it is a first
 * fragment of the WAN, or cut. f->vni is set before. */
void gw_cap_facts_ip(struct gw_cap_facts *f, const uint8_t *ip, uint32_t len);
/* The same of an Ethernet frame of a LAN. `overlay`: look into VXLAN; then f->vni is set. */
void gw_cap_facts_frame(struct gw_cap_facts *f, const uint8_t *frame, uint32_t len, bool overlay);

/* Offset of the payload of an Ethernet frame; 0: too short. *type: its EtherType; *vid: its VLAN,
 * 0: none. */
uint32_t gw_cap_l2(const uint8_t *frame, uint32_t len, uint16_t *type, uint16_t *vid);
/* Offset of the UDP payload of an Ethernet frame; 0: it has none. Ports and addresses if so. */
struct gw_cap_udp {
	struct rwy_ip src, dst;
	uint16_t sport, dport;
};
uint32_t gw_cap_udp(const uint8_t *frame, uint32_t len, struct gw_cap_udp *u);

/*
 * First fragments seen of late, by flow and sequence: a later fragment has no header of the host's
 * packet. A newer one takes the place of an older one. Zeroed memory is empty.
 */
#define GW_CAP_FRAGS 256
struct gw_cap_frag {
	uint32_t flow, seq;
	uint8_t stage;
	bool used;
	struct gw_cap_facts facts;
};
struct gw_cap_frags {
	struct gw_cap_frag v[GW_CAP_FRAGS];
};
/* Adds what a WAN datagram in the clear says of the host's packet in it, `len` bytes from its
 * header on. f->stage is set before. False: it carries none. */
bool gw_cap_facts_wan(struct gw_cap_facts *f, struct gw_cap_frags *frags, const uint8_t *d, uint32_t len);

/* Whether a datagram is sealed with keys. */
bool gw_cap_wan_sealed(const uint8_t *d, uint32_t len);

/* Bits of what a packet says is wrong (IBA 9.7.5.1); see docs/capture.md. */
enum gw_cap_event {
	GW_CAP_NAK = 1,
	GW_CAP_RNR = 2,
	GW_CAP_ERROR = 4, /* a NAK that ends the queue pair */
	GW_CAP_DROPPED = 8,
	GW_CAP_AGAIN = 16, /* the same packet passed the same stage before */
};
/* All but GW_CAP_AGAIN, which needs memory of other packets. */
unsigned gw_cap_events(const struct gw_cap_facts *f);

#endif
