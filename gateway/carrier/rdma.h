/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to gateway/carrier/: tunnels' RDMA connections, by librdmacm and libibverbs. One queue
 * pair a connection; rdma_flow.h has its credits, rdma_setup.h its states. Carrier thread, or with
 * its lock.
 */
#ifndef GATEWAY_CARRIER_RDMA_H
#define GATEWAY_CARRIER_RDMA_H

#include <rdma/rdma_cma.h>

#include "gateway/carrier/internal.h"
#include "gateway/carrier/rdma_flow.h"
#include "gateway/carrier/rdma_setup.h"

/* Retry count and acknowledgement timeout (4.096 us * 2^17): a NIC gives up after about 4 s. Not 7,
 * which Soft-RoCE takes for no limit. */
#define GW_RDMA_RETRIES 6
#define GW_RDMA_TIMEOUT 17

struct gw_rdma_conn {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel; /* epoll waits for it */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;         /* `slots` buffers for receiving, as many for sending */
	uint32_t *len;           /* of the messages in the former */
	uint32_t slots;          /* a power of two: counts wrap */
	uint32_t inline_max;     /* bytes that the device takes from a request itself */
	uint32_t arrived, taken; /* messages, modulo 2^32: those between wait for a worker */
	enum gw_rdma_state state;
	struct gw_rdma_flow flow;
};

/* An address and port at which tunnels' connections arrive. */
struct gw_rdma_port {
	struct rdma_cm_id *id; /* NULL: its device is gone */
	struct rwy_ip addr;
	uint16_t port;
	unsigned users;    /* 0: free */
	rwy_time retry_at; /* without a device: when it is looked for again */
};

/* NULL in gw_carriers until a tunnel wants RDMA. */
struct gw_rdma {
	struct rdma_event_channel *events;
	struct gw_rdma_port port[CONF_TUNNELS_MAX];
};

/* rdma_conn.c */
/* Takes ownership of id, whose context it becomes; NULL: no room, the id is left to the caller. */
struct gw_conn *gw_rdma_conn_new(
    struct gw_carriers *cs, struct rdma_cm_id *id, bool accepted, uint32_t slots);
/* Makes the queue pair and its memory, and posts the receives, once the id has its device. Returns
 * NULL, or what failed; then errno says why. */
const char *gw_rdma_conn_qp(struct gw_carriers *cs, struct gw_conn *c);
/* The peer keeps so many receives posted: messages may be sent when its state says so. */
void gw_rdma_conn_start(struct gw_conn *c, uint32_t peer_slots);

#endif
