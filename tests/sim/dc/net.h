/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of the data-center simulator: packets, links, switches. A packet is a small record
 * without bytes; the gateway's edge (gw.c) makes real RoCEv2 bytes of it and reads them back.
 *
 * Switches are store-and-forward and output-queued, with a shared buffer. Without PFC an egress
 * queue may hold alpha times the free buffer. RED marks by the egress queue. PFC pauses an ingress
 * port that holds more than pfc_alpha times the free buffer. ACKs, NAKs and CNPs have a queue of
 * their own that goes first and is never paused.
 */
#ifndef SIM_DC_NET_H
#define SIM_DC_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/dc/ev.h"

struct dc;
struct node;

/* Bytes of a packet besides its payload: preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4,
 * FCS 4, gap 12. */
#define DC_OVERHEAD 82
#define DC_ACK_WIRE 90 /* with AETH, rounded up to the smallest frame */

enum dc_kind { DC_DATA, DC_ACK, DC_NAK, DC_CNP, DC_PFC };
enum dc_ecn { DC_ECT = 2, DC_CE = 3 };

struct dc_pkt {
	struct dc_pkt *next;
	rwy_time at;   /* on a wire: time of arrival */
	uint32_t wire; /* bytes on the wire, with all overhead */
	uint32_t dqpn, psn;
	/* DATA: the message's DMA length in its first packet, else 0; ACK, NAK: MSN; SR: see sr.c;
	 * PFC: 1 pauses */
	uint32_t aux;
	uint16_t len;      /* payload */
	uint16_t in;       /* ingress port of the switch that holds it */
	uint16_t src, dst; /* host numbers across both sites */
	uint8_t kind, ecn;
	/* generation of the queue pair: tells a late packet of an earlier connection */
	uint8_t gen;
	bool first, last, ackreq;
	uint32_t hash; /* for ECMP */
};

/* Both QPNs of a connection, from its number. QPNs 0 and 1 are not for data (IBA 10.2.4), so the
 * first few are left out. */
#define DC_QPN_FIRST 16

static inline uint32_t dc_qpn(uint32_t id, bool responder)
{
	return (id + DC_QPN_FIRST) << 1 | responder;
}

static inline uint32_t dc_qp_id(uint32_t qpn)
{
	return (qpn >> 1) - DC_QPN_FIRST; /* a wrong QPN gives a large number */
}

struct dc_pktq {
	struct dc_pkt *head, *tail;
	uint32_t n;
	uint64_t bytes;
};

static inline void dc_pktq_push(struct dc_pktq *q, struct dc_pkt *p)
{
	p->next = NULL;
	if (q->tail)
		q->tail->next = p;
	else
		q->head = p;
	q->tail = p;
	q->n++;
	q->bytes += p->wire;
}

static inline struct dc_pkt *dc_pktq_pop(struct dc_pktq *q)
{
	struct dc_pkt *p = q->head;

	if (!p)
		return NULL;
	q->head = p->next;
	if (!q->head)
		q->tail = NULL;
	q->n--;
	q->bytes -= p->wire;
	return p;
}

/* One end of a link; it sends to its peer. */
struct port {
	struct ev wire_ev, free_ev;
	struct dc *dc;
	struct node *node;
	struct port *peer;
	unsigned idx;
	uint64_t ns_byte; /* ns per byte, 24 fraction bits */
	uint64_t frac;
	rwy_dur delay, jitter;
	double loss;
	bool wan; /* an outage cuts it */
	rwy_time free_at;
	struct dc_pktq q[2]; /* 0: control, 1: data */
	struct dc_pktq wire;
	bool paused; /* by the peer */
	rwy_time paused_at;
	uint64_t kmin, kmax; /* 0: no marking */
	bool pfc;            /* pauses its peer when packets from it pile up */
	bool xoff;           /* has paused its peer */
	uint64_t held;       /* bytes that came in here and are still in the switch */
	/* Counts. */
	uint64_t packets, bytes, marked, dropped, lost, pauses, peak, held_peak;
	rwy_dur paused_for;
};

struct node_ops {
	/* takes over the packet */
	void (*rx)(struct node *n, struct port *in, struct dc_pkt *p, rwy_time now);
	/* Called when the port is free and its queues are empty: returns a packet to send now, or
	 * NULL. May be NULL. */
	struct dc_pkt *(*pull)(struct node *n, struct port *p, rwy_time now);
	/* Called when a data packet has left the node's queue. May be NULL. */
	void (*sent)(struct node *n, struct port *p, struct dc_pkt *pkt, rwy_time now);
};

struct node {
	struct dc *dc;
	const struct node_ops *ops;
	struct port *port;
	unsigned ports;
	unsigned site, id;
};

void dc_node_init(
    struct node *n, struct dc *dc, const struct node_ops *ops, unsigned site, unsigned id, unsigned ports);
void dc_node_fini(struct node *n);
void dc_link(struct port *a, struct port *b, double bits, rwy_dur delay);
void dc_port_rate(struct port *p, double bits);
void dc_port_send(struct port *p, struct dc_pkt *pkt, rwy_time now); /* queues it */
void dc_port_kick(struct port *p, rwy_time now);                     /* sends what may go */

enum sw_kind { SW_LEAF, SW_SPINE, SW_BORDER };

struct sw {
	struct node n; /* first member */
	enum sw_kind kind;
	uint64_t buf, headroom, used, peak, dropped;
	bool ruled; /* a baseline's rule sees each packet */
};

void dc_sw_init(
    struct sw *s, struct dc *dc, enum sw_kind kind, unsigned site, unsigned id, unsigned ports, uint64_t buf);
void dc_sw_ready(struct sw *s); /* called when all its links exist */
/* For rules: marks by RED on the port's queue; passes an accepted or new packet to its port. */
void dc_sw_mark(struct port *out, struct dc_pkt *p);
void dc_sw_enqueue(struct sw *s, struct dc_pkt *p, rwy_time now);

struct dc_pkt *dc_pkt_get(struct dc *dc);
void dc_pkt_put(struct dc *dc, struct dc_pkt *p);

#endif
