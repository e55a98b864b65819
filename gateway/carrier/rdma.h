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
#include "gateway/carrier/rdma_seal.h"
#include "gateway/carrier/rdma_setup.h"

/* Retry count and acknowledgement timeout (4.096 us * 2^17): a NIC gives up after about 4 s. Not 7,
 * which Soft-RoCE takes for no limit. */
#define GW_RDMA_RETRIES 6
#define GW_RDMA_TIMEOUT 17

/* Bytes of a buffer. */
#define GW_RDMA_SLOT (WAN_REC_HDR + WAN_REC_MAX + GW_RDMA_EXTRA)

/* A message that was received. */
struct gw_rdma_got {
	uint32_t len;       /* of the record in it, once it is opened; before: of itself */
	uint32_t immediate; /* its immediate data */
};

struct gw_rdma_conn {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel; /* epoll waits for it */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;         /* `slots` buffers for receiving, as many for sending */
	struct gw_rdma_got *got; /* the messages in the former */
	uint32_t slots;          /* a power of two: counts wrap */
	uint32_t inline_max;     /* bytes that the device takes from a request itself */
	/* messages, modulo 2^32: those that have come, of them those that were opened, and of them
	 * those that no worker has to wait for any more */
	uint32_t arrived, opened, taken;
	enum gw_rdma_state state;
	struct gw_rdma_seal *seal; /* NULL: no keys, or TLS is not over */
	uint64_t updates;          /* of its keys, that were counted */
	bool ending;               /* it ends when what was sent is acknowledged: TLS's alert */
	char why[256];             /* why TLS ended, here or at the peer; "": it did not */
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
/* Processes what came, until the workers have to take it. NULL, or why the connection must end. */
const char *gw_rdma_conn_take(struct gw_carriers *cs, struct gw_conn *c, rwy_time now);

/* rdma_send.c */
/* SENDs that are posted together. */
struct gw_rdma_batch {
	struct ibv_send_wr wr[GW_CONN_RUN];
	struct ibv_sge sge[GW_CONN_RUN];
	unsigned n;
};
/* Adds a message: sealed if the connection has keys. The caller has asked for room. NULL, or why
 * the connection must end. */
const char *gw_rdma_message_add(
    struct gw_rdma_batch *b, struct gw_conn *c, const struct aead_in *in, rwy_time now);
/* Sends them; returns as before. */
const char *gw_rdma_batch_post(struct gw_carriers *cs, struct gw_conn *c, struct gw_rdma_batch *b);

/* rdma_tls.c: the messages of a connection with keys */
/* The cipher of the tunnel's connections, as a greeting says it. */
uint8_t gw_rdma_cipher(const struct gw_carriers *cs, const struct gw_carrier_tun *t);
/* TLS begins, once messages may be sent. name: the peer's; NULL: the peer has yet to name its
 * tunnel. NULL, or why the connection must end. */
const char *gw_rdma_tls_begin(struct gw_carriers *cs, struct gw_conn *c, const char *name, rwy_time now);
/* Opens the message of n bytes at p, which has a head. Returns as before; *len: bytes of the record
 * in it, which is at p + GW_RDMA_HEAD. */
const char *gw_rdma_tls_open(struct gw_carriers *cs, struct gw_conn *c, uint8_t *p, uint32_t n,
    uint32_t immediate, uint32_t *len, rwy_time now);

/* rdma_listen.c: the device of this listener is gone. Its connections are told of it, too. */
void gw_rdma_port_gone(struct gw_carriers *cs, const struct rdma_cm_id *id, rwy_time now);

#endif
