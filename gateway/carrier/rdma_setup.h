/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an RDMA connection of a tunnel comes up and ends: one table, state x event -> next state and
 * what is to be done. Sans-I/O; rdma_port.c does it.
 */
#ifndef GATEWAY_CARRIER_RDMA_SETUP_H
#define GATEWAY_CARRIER_RDMA_SETUP_H

/* X(state) */
#define GW_RDMA_STATES(X)                                                                                    \
	X(ADDRESS)   /* ours: the peer's address is being resolved */                                        \
	X(ROUTE)     /* ours: the route to it */                                                             \
	X(REQUESTED) /* ours: the REQ went out */                                                            \
	X(ACCEPTED)  /* the peer's: the REP went out */                                                      \
	X(UP)        /* messages may be sent */                                                              \
	X(ENDED)
enum gw_rdma_state {
#define X(s) GW_RDMA_##s,
	GW_RDMA_STATES(X)
#undef X
	    GW_RDMA_STATE_COUNT
};

/* X(event): what the connection manager tells */
#define GW_RDMA_EVENTS(X)                                                                                    \
	X(RESOLVED)                                                                                          \
	X(ROUTED)                                                                                            \
	X(ESTABLISHED) /* REP at the end that asked, RTU at the other one */                                 \
	X(FAILED)      /* no address, no route, no answer, or a REJ */                                       \
	X(DISCONNECTED)
enum gw_rdma_event {
#define X(e) GW_RDMA_EV_##e,
	GW_RDMA_EVENTS(X)
#undef X
	    GW_RDMA_EVENT_COUNT
};

enum gw_rdma_do {
	GW_RDMA_DO_NOTHING,
	GW_RDMA_DO_ROUTE,   /* make the queue pair, resolve the route */
	GW_RDMA_DO_CONNECT, /* send the REQ */
	GW_RDMA_DO_OPEN,    /* read the greeting; the handshake of the carriers begins */
	GW_RDMA_DO_LOSE     /* the connection has ended: tell its set */
};

struct gw_rdma_step {
	enum gw_rdma_state next;
	enum gw_rdma_do what;
};
struct gw_rdma_step gw_rdma_step(enum gw_rdma_state s, enum gw_rdma_event e);
const char *gw_rdma_state_name(enum gw_rdma_state s);

#endif
