/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two gateways in one process, each with two ports made of rings (net_ring), and their
 * surroundings: the hosts and the wire. bench_fastpath.c and tests/component/ use it. To the
 * gateway a ring port is like a NIC: bursts of mbufs come in and go out, and whoever takes one out
 * frees it after reading, without writing to it.
 */
#ifndef TESTS_BENCH_FP_LAB_H
#define TESTS_BENCH_FP_LAB_H

#include <rte_ring.h>

#include "gateway/control/tenants.h"
#include "gateway/gw.h"
#include "gateway/port/mbuf.h"
#include "gateway/port/neigh.h"
#include "roce/parse.h"

#define FP_RING   4096 /* entries of a port's ring */
#define FP_QUEUES 4    /* most queues of a port */

struct fp_port {
	struct rte_ring *rx[FP_QUEUES], *tx[FP_QUEUES]; /* from the gateway's point of view */
	unsigned queues;
	bool by_port; /* a frame's queue is that of its UDP destination port, not of its RSS hash */
	/* a frame's queue, if a test says so; NULL: none does */
	unsigned (*queue_of)(const struct fp_port *p, const struct rte_mbuf *m);
	uint16_t id; /* DPDK's */
	uint8_t mac[6];
};

enum fp_site { FP_A, FP_B, FP_SITES };
enum { FP_LAN, FP_WAN, FP_PORTS };

struct fp_gw {
	struct conf conf;
	struct gw_app app;
	struct gw_worker *w; /* the first of app.workers */
	struct fp_port port[FP_PORTS];
};

/* How the hosts of both sides are attached. */
enum fp_overlay { FP_PLAIN, FP_VXLAN, FP_VXLAN6, FP_VLAN };

struct fp_cfg {
	enum fp_overlay overlay; /* fp_overlay_conf() makes its tenant */
	uint32_t payload;        /* bytes of a packet's payload */
	unsigned qps;
	unsigned message; /* packets per message */
	unsigned batch;   /* packets that wait at a port */
	bool hostile;     /* a host harms, too (fp_hostile.c) */
	bool keys;        /* the tunnel is sealed */
	bool relay;       /* relays for hosts of FP_PLAIN (fp_relay.c) */
	unsigned delay;   /* batches that a datagram is on its way */
	unsigned workers; /* per gateway; 0: one */
	unsigned queues;  /* per port, by RSS; 0: one. FP_PLAIN only */
	bool steered;     /* the WAN port gives each worker its datagrams, as a NIC with rules does */
	const struct gw_pools *pools;                 /* of another lab of the process; NULL: its own */
	void (*conf)(struct conf *c, enum fp_site s); /* changes the configuration; may be NULL */
	/* adds next hops by fp_neighbour(); may be NULL */
	void (*hops)(struct fp_gw *g, enum fp_site s);
};

struct fp_lab {
	struct fp_cfg cfg;
	struct gw_pools pools;
	struct fp_gw gw[FP_SITES];
};

/* Makes the lab. On an error it prints it and ends the process. */
void fp_lab_new(struct fp_lab *l, const struct fp_cfg *cfg);
void fp_die(const char *what) __attribute__((noreturn));
/*
 * For main(): starts the log and the EAL. Returns how many arguments the EAL took, and getopt()
 * begins behind them. Errors end the process.
 */
int fp_begin(int argc, char **argv, int log_level);
/* An option's number in lo..hi. Anything else ends the process. */
uint32_t fp_number(const char *s, uint32_t lo, uint32_t hi);

/* Adds a resolved next hop, before the gateway runs. */
void fp_neighbour(struct fp_gw *g, unsigned port, struct rwy_ip addr, const uint8_t *mac);

/* A new buffer with these bytes, as received by a port. */
struct rte_mbuf *fp_copy(struct fp_lab *l, const void *bytes, uint32_t len);
/* The frame's queue at a port with several: the RSS hash of its IPv4 addresses and UDP ports. */
unsigned fp_queue_of(const struct fp_port *p, const struct rte_mbuf *m);
/* Frames wait for the gateway at this port. */
bool fp_port_waits(const struct fp_port *p);
/* Every queue takes another frame. */
bool fp_port_room(const struct fp_port *p);
/* Takes up to n frames that the gateway sent, of all queues. Returns how many, 0: there are none. */
unsigned fp_sent(struct fp_port *p, struct rte_mbuf **m, unsigned n);
/* Copies a frame that a gateway sent into a buffer of the receiver, and frees it: as two NICs and a
 * fibre do. */
struct rte_mbuf *fp_carry(struct fp_lab *l, struct rte_mbuf *m);
void fp_arrive(struct fp_port *p, struct rte_mbuf *m);

/* --- fp_capture.c: a capture at one of the gateways, once in a process ------------------------ */
void fp_capture_begin(struct fp_lab *l, enum fp_site s, uint32_t snap, const char *filter);
/* Between batches: waits until all that the worker copied is read. Nothing without a capture. */
void fp_capture_drain(void);
uint64_t fp_capture_packets(const struct fp_lab *l, enum fp_site s);
uint64_t fp_capture_lost(const struct fp_lab *l, enum fp_site s);

/* --- fp_overlay.c: the hosts' tenant, unless overlay is FP_PLAIN ------------------------------ */
#define FP_VNI  5001
#define FP_VTAG 101
void fp_overlay_conf(struct conf *c, const struct fp_cfg *cfg, enum fp_site s);
struct rwy_ip fp_host_ip(const struct fp_cfg *cfg, enum fp_site s);
/* Inner MAC addresses: the hosts', the gateways'. */
extern const uint8_t fp_host_mac[6], fp_gw_mac[6];
/* Writes the bytes before a host's IP packet of ip_len bytes, from host to gateway. Returns how
 * many. */
uint32_t fp_front(const struct fp_lab *l, enum fp_site s, uint32_t ip_len, uint8_t out[96]);

/* --- fp_relay.c: relays instead of gateways; each host knows its own only ---------------------- */
void fp_relay_conf(struct conf *c, enum fp_site s);
struct rwy_ip fp_relay_ip(enum fp_site s);
/*
 * Tells the relay of site s that its host's queue pair lqpn belongs to rqpn of the other host.
 * Returns the QPN that its host sends to.
 */
uint32_t fp_relay_pair(struct fp_lab *l, enum fp_site s, uint32_t lqpn, uint32_t rqpn);

/* --- fp_hosts.c: the requester behind A, the responder behind B ------------------------------------ */
struct fp_hosts;
struct fp_hosts *fp_hosts_new(struct fp_lab *l);
/* The requester sends the next n packets, of all queue pairs in turn. */
void fp_hosts_send(struct fp_hosts *h, unsigned n);
/* Only queue pairs i with i % fp_cfg.message >= phase send from now on; 0: all. */
void fp_hosts_phase(struct fp_hosts *h, unsigned phase);
/* The requester reads what gateway A sent to it; the responder reads what B sent, and
 * acknowledges. */
void fp_hosts_read(struct fp_hosts *h, enum fp_site site);
/* It sends n packets of its first queue pair again that were acknowledged, as if it heard no ACK. */
void fp_hosts_repeat(struct fp_hosts *h, unsigned n);
struct fp_stats {
	uint64_t sent, received, acks, nak, wrong, again;
	uint64_t cnps;
	uint64_t back;    /* sequence NAKs that a queue pair with a window went back for */
	uint64_t hostile; /* packets of fp_hostile.c that reached a host */
};
const struct fp_stats *fp_hosts_stats(const struct fp_hosts *h);
/* Most packets of a queue pair without an ACK; it goes back for sequence NAKs. 0: neither. */
void fp_hosts_window(struct fp_hosts *h, unsigned packets);
/* The responder checks the ICRC of each packet (on), or not. */
void fp_hosts_verify(struct fp_hosts *h, bool on);

/* --- fp_hostile.c: a host of the plain LAN that harms a tenant's; not with FP_PLAIN -------------- */
enum fp_hostile { FP_BOGUS, FP_CM_FLOOD, FP_REPEATS, FP_HOSTILE_N };
/* It sends its next n packets; FP_REPEATS is fp_hosts_repeat(). */
void fp_hostile_send(struct fp_lab *l, enum fp_hostile way, unsigned n);
/* True for a frame of it, or for it. */
bool fp_is_hostile(const uint8_t *frame);

#endif
