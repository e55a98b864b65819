/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's knowledge of tenants' networks besides the set of tenants: the places of hosts,
 * decisions about flows, adjacencies. Each worker has its own; nothing here is shared.
 *
 *   hosts.c       places of hosts: learning, asking, answering ARP and ND
 *   rx_overlay.c  frames of tenants' hosts, by VXLAN or VLAN, to the engine
 *   hairpin.c     packets between a local host behind a VTEP and a local host on the VLAN
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

#define GW_BINDINGS    1024 /* power of two */
#define GW_ADMISSIONS  4096 /* power of two */
#define GW_ADJACENCIES 2048 /* power of two */
/* a cached place of a host is valid this long; well below vtep_cfg.hold */
#define GW_RECHECK   (10 * RWY_MS)
#define GW_ENCAP_TTL 64

/*
 * The cached decision about packets of one source, destination and UDP source port of a tenant,
 * from one binding: a packet like the last one costs a compare and a bit test. Valid while the
 * tenant is unchanged (tenant.changed); the source's place is checked every GW_RECHECK. One cache
 * line.
 */
struct gw_admission {
	_Alignas(64) struct rwy_ip src;
	struct rwy_ip dst;
	uint64_t changed; /* 0: empty */
	rwy_time learned; /* time when the host table last learned from the source */
	uint16_t tenant, sport;
	uint16_t tag;     /* inner VLAN ID; on a VLAN: 0 */
	uint16_t allowed; /* set of 1 << enum acl_class */
	/* the destination is a local host on the tenant's other side: not for the engine */
	bool local;
	uint16_t binding; /* index in gw_overlay.binding[] of its source, */
	uint32_t serial;  /* valid while that entry has this serial */
};
static_assert(sizeof(struct gw_admission) == 64, "one cache line");

/* The source binding of a host's packets, shared by many flows and therefore usually in the
 * cache. */
struct gw_binding {
	_Alignas(32) struct rwy_ip at; /* the VTEP, or gw_host_on_port() */
	uint8_t mac[6];                /* MAC address of the host */
	uint8_t link[6];               /* outer source MAC address of the frame; VLAN: 0 */
	/* unique per content: flows of the slot's former content see that it changed */
	uint32_t serial;
};

/* The cached way to one host of a tenant. Valid for GW_RECHECK, while the tenant and the next-hop
 * table are unchanged. */
struct gw_adjacency {
	_Alignas(64) struct rwy_ip host;
	uint64_t changed; /* 0: empty */
	uint64_t nt_gen;
	rwy_time again; /* time of the next lookup */
	struct gw_port *port;
	uint32_t tenant;
	int nh;         /* gw_nh.id of the VTEP; -1: on a VLAN */
	uint8_t mac[6]; /* MAC address of the host */
	bool vxlan;
	uint8_t l2_len;
	uint8_t l2[GW_L2_MAX]; /* outer Ethernet header including the EtherType */
	struct vxlan_tmpl tmpl;
};

struct gw_overlay {
	struct vxlan_cfg vxlan;
	struct vtep_tab *hosts;
	struct arp_rate *asks;   /* rate of asking for a host */
	struct arp_rate *spread; /* rate of telling other workers a host's place */
	struct gw_admission *admission;
	struct gw_binding *binding;
	uint32_t serial; /* serial of the newest binding */
	struct gw_adjacency *adjacency;
	rwy_time age_at;
	struct gw_overlay_counters c; /* `host`: counts beyond those of the host table */
};

/* Creates and frees a worker's tables, w->ov. RWY_ENOMEM. */
RWY_MUST_CHECK int gw_overlay_new(struct gw_worker *w);
void gw_overlay_free(struct gw_worker *w);
/* Called once a turn. */
void gw_overlay_turn(struct gw_worker *w);

static inline uint32_t gw_overlay_hash(uint32_t tenant, const struct rwy_ip *a)
{
	return gw_neigh_hash((uint16_t)tenant, a);
}

/* Counts a drop. Before the tenant is known the index is 0. */
static inline void gw_overlay_drop(struct gw_worker *w, uint32_t tenant, enum tenant_admit why)
{
	w->ov->c.admit[why]++;
	w->tenants[tenant].drop[why]++;
}

/* --- hosts.c --------------------------------------------------------------------------------- */

/* Stands for a VTEP's address: the host is on a VLAN of this port. It is a group address, which no
 * VTEP can have (vxlan_decap). */
static inline struct rwy_ip gw_host_on_port(unsigned port)
{
	return (struct rwy_ip){{0xff, [15] = (uint8_t)port}};
}

/* The source of a tenant's frame. */
struct gw_from {
	const struct tenant *t;
	struct gw_port *port;
	struct rwy_ip at;    /* VTEP, or gw_host_on_port() */
	struct rwy_ip local; /* VXLAN: destination address, one of ours */
	uint8_t side;        /* enum tenant_side */
	uint16_t tag;        /* VXLAN: VLAN ID of the inner tag */
	const uint8_t *link; /* VXLAN: outer source MAC address */
};

/* Learns from a packet of `host`. False: it contradicts what is known and must be dropped. */
bool gw_host_learn(
    struct gw_worker *w, const struct gw_from *f, const struct rwy_ip *host, const uint8_t mac[6]);
/* Processes ARP or ND in m, whose Ethernet header is at `eth`: learns and answers. Takes m. False:
 * it is neither, and not taken. */
bool gw_host_arp(struct gw_worker *w, const struct gw_from *f, struct rte_mbuf *m, uint32_t eth, uint32_t net,
    uint32_t end, bool owned);
/* Returns the place of a host. False: unknown, and asked for if the rate allows. */
bool gw_host_find(struct gw_worker *w, const struct tenant *t, enum tenant_side side,
    const struct rwy_ip *host, struct vtep_host *out);

/* --- hairpin.c ------------------------------------------------------------------------------- */

struct gw_pkt;
/* Forwards an admitted packet of a tenant's host, k->ip_len bytes at k->off, to a local host on the
 * tenant's other side. Takes m: sent, or dropped and counted. */
void gw_hairpin_forward(
    struct gw_worker *w, const struct tenant *t, struct rte_mbuf *m, const struct gw_pkt *k);

#endif
