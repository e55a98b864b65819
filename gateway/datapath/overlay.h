/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's knowledge of tenants' networks beside the set of tenants itself: where their hosts are, what was
 * decided about a flow, how a packet gets to a host. Each worker has its own; nothing here is shared.
 *
 *   hosts.c       where hosts are: learning, asking, answering ARP and ND
 *   rx_overlay.c  frames of tenants' hosts, by VXLAN or VLAN, to the engine
 *   hairpin.c     those between a host behind a VTEP and one on the VLAN, both here
 *   tx_overlay.c  packets of the engine to tenants' hosts
 *   vtep.c        VTEPs: next hops, outer headers
 */
#ifndef GATEWAY_DATAPATH_OVERLAY_H
#define GATEWAY_DATAPATH_OVERLAY_H

#include "gateway/datapath/tenants.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"
#include "tenant/arp.h"
#include "tenant/vtep.h"
#include "vxlan/vxlan.h"

#define GW_BINDINGS    1024          /* power of two */
#define GW_ADMISSIONS  4096          /* power of two */
#define GW_ADJACENCIES 2048          /* power of two */
#define GW_RECHECK     (10 * RWY_MS) /* a cached place of a host holds so long; well below vtep_cfg.hold */
#define GW_ENCAP_TTL   64

/*
 * The decision about packets of one source, destination and UDP source port of a tenant, that came one way: a
 * packet like the last one costs a compare and a bit test. Holds while the tenant is what it was
 * (tenant.changed), and what it says of the source's place for GW_RECHECK. One cache line.
 */
struct gw_admission {
	_Alignas(64) struct rwy_ip src;
	struct rwy_ip dst;
	uint64_t changed; /* 0: empty */
	rwy_time learned; /* when the host table last heard of the source */
	uint16_t tenant, sport;
	uint16_t tag;     /* inner VLAN ID; on a VLAN 0 */
	uint16_t allowed; /* set of 1 << enum acl_class */
	bool local;       /* to a host here, on the tenant's other side: not the engine's */
	uint16_t binding; /* gw_overlay.binding[] that it came from, */
	uint32_t serial;  /*   as long as that says the same */
};
static_assert(sizeof(struct gw_admission) == 64, "one cache line");

/* A way that packets of a host came: many flows', and so in the nearest cache. */
struct gw_binding {
	_Alignas(32) struct rwy_ip at; /* the VTEP, or gw_host_on_port() */
	uint8_t mac[6];                /* of the host */
	uint8_t link[6];               /* of what brought it: outer source MAC address; VLAN: 0 */
	uint32_t serial; /* another one for each content: whoever takes the slot speaks for itself only */
};

/* How packets get to one host of a tenant. Holds for GW_RECHECK, while the tenant and the next-hop table are
 * what they were. */
struct gw_adjacency {
	_Alignas(64) struct rwy_ip host;
	uint64_t changed; /* 0: empty */
	uint64_t nt_gen;
	rwy_time again; /* to be looked up anew */
	struct gw_port *port;
	uint32_t tenant;
	int nh;         /* gw_nh.id of the VTEP; -1: on a VLAN */
	uint8_t mac[6]; /* of the host */
	bool vxlan;
	uint8_t l2_len;
	uint8_t l2[GW_L2_MAX]; /* outer Ethernet header; the EtherType is filled in */
	struct vxlan_tmpl tmpl;
};

struct gw_overlay {
	struct vxlan_cfg vxlan;
	struct vtep_tab *hosts;
	struct arp_rate *asks;   /* how often we ask for a host */
	struct arp_rate *spread; /* how often we tell the other workers where one is */
	struct gw_admission *admission;
	struct gw_binding *binding;
	uint32_t serial; /* the last one of a binding */
	struct gw_adjacency *adjacency;
	rwy_time age_at;
	struct gw_overlay_counters c; /* `host`: what the host table does not count */
};

RWY_MUST_CHECK int gw_overlay_new(struct gw_worker *w);
void gw_overlay_free(struct gw_worker *w);
/* Once a turn. */
void gw_overlay_turn(struct gw_worker *w);

static inline uint32_t gw_overlay_hash(uint32_t tenant, const struct rwy_ip *a)
{
	return gw_neigh_hash((uint16_t)tenant, a);
}

/* A drop before the tenant is known has index 0. */
static inline void gw_overlay_drop(struct gw_worker *w, uint32_t tenant, enum tenant_admit why)
{
	w->ov->c.admit[why]++;
	w->tenants[tenant].drop[why]++;
}

/* --- hosts.c --------------------------------------------------------------------------------- */

/* In the place of a VTEP's address: the host is on a VLAN of this port. A group's address, which no VTEP can
 * have (vxlan_decap). */
static inline struct rwy_ip gw_host_on_port(unsigned port)
{
	return (struct rwy_ip){{0xff, [15] = (uint8_t)port}};
}

/* How a frame of a tenant came in. */
struct gw_from {
	const struct tenant *t;
	struct gw_port *port;
	struct rwy_ip at;    /* VTEP, or gw_host_on_port() */
	struct rwy_ip local; /* VXLAN: our address that it was sent to */
	uint8_t side;        /* enum tenant_side */
	uint16_t tag;        /* VXLAN: ID of the inner tag */
	const uint8_t *link; /* VXLAN: outer source MAC address */
};

/* A packet of `host` came that way. False: it contradicts what is known, and is to be dropped. */
bool gw_host_learn(
    struct gw_worker *w, const struct gw_from *f, const struct rwy_ip *host, const uint8_t mac[6]);
/* ARP or ND in m, its Ethernet header at `eth`: learned, answered. Takes m. False: it is neither, not taken.
 */
bool gw_host_arp(struct gw_worker *w, const struct gw_from *f, struct rte_mbuf *m, uint32_t eth, uint32_t net,
    uint32_t end, bool owned);
/* Where a host is. False: not known, and asked for if it may be. */
bool gw_host_find(struct gw_worker *w, const struct tenant *t, enum tenant_side side,
    const struct rwy_ip *host, struct vtep_host *out);

/* --- hairpin.c ------------------------------------------------------------------------------- */

struct gw_pkt;
/* An admitted packet of a tenant's host, k->ip_len bytes at k->off, to a host on the tenant's other side
 * here. Takes m: sent, or dropped and counted. */
void gw_hairpin_forward(
    struct gw_worker *w, const struct tenant *t, struct rte_mbuf *m, const struct gw_pkt *k);

#endif
