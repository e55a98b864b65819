/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's NIC: one port, and queue pairs that take turns on it, each paced by DCQCN. One record
 * holds the requester and the responder of a connection; packets touch a half only at their own
 * host. Sequence numbers have 64 bits inside and 24 in packets.
 */
#ifndef SIM_DC_NIC_H
#define SIM_DC_NIC_H

#include "cc/guard.h"
#include "tests/sim/dc/dc.h"

enum qp_turn { QP_IDLE, QP_READY, QP_PACED };

struct sr; /* selective repeat, sr.c */

struct qp {
	struct dc *dc;
	uint32_t id;
	uint16_t src, dst, tenant;
	uint8_t gen;
	/* once: freed when it has nothing left to do; deaf: see hostile.h */
	bool inter, failed, once, deaf;
	uint32_t hash;
	/* The requester's messages in order: oldest kept, oldest not completed, newest, and the one
	 * that contains `nxt` (NULL: search). */
	struct dc_msg *head, *open, *tail, *cur;
	/* Oldest unacknowledged, next to send, end of what was sent, end of what was posted. */
	uint64_t una, nxt, high, end;
	uint64_t window;  /* most packets in flight; 0: no limit */
	uint64_t req_end; /* end of the last packet sent with AckReq */
	unsigned since_req, retries;
	rwy_dur rto, rto_least;
	rwy_time rto_at;
	struct ev rto_ev, pace_ev, cc_ev;
	uint8_t turn; /* enum qp_turn */
	struct qp *ready_next;
	rwy_time sent_at; /* of the last data packet; the rate decides when the next may go */
	uint32_t sent_wire;
	uint64_t rate; /* bytes per second; 0: line rate */
	rwy_time ticked;
	/* The responder. */
	struct dc_msg *rx; /* the message whose packet is expected */
	uint64_t epsn, msn, rx_bytes;
	bool nak_sent;
	rwy_time cnp_at;
	struct sr *sr;
	/* Counts of this connection; bytes of payload, also of what is sent again. */
	uint64_t tx_bytes, tx_resent, tx_timeouts, tx_cnps;
	_Alignas(64) uint8_t cc[CC_STATE_SIZE];
};

struct host {
	struct node n; /* first member */
	struct qp *ready, *ready_tail;
	/* A NIC that receives at a limited rate: slow=nic. */
	struct dc_pktq rxq;
	struct ev rx_ev;
	uint64_t rx_ns_byte;
	bool rx_xoff;
};

/* qp.c: the requester. */
/* The next data packet in the port's turn; NULL: none. */
struct dc_pkt *qp_pull(struct host *h, rwy_time now);
void qp_wake(struct qp *qp, rwy_time now); /* it may have something to send */
void qp_acked(struct qp *qp, uint32_t psn24, uint32_t msn, bool nak, rwy_time now);
void qp_cnp(struct qp *qp, rwy_time now);
void qp_fail(struct qp *qp, rwy_time now);
void qp_progress(struct qp *qp, uint64_t una, rwy_time now); /* all before una is acknowledged */
void qp_release(struct qp *qp); /* frees messages that are delivered and completed */
/* resp.c: the responder. */
/* Reads the packet; the caller frees it. */
void qp_data(struct qp *qp, struct dc_pkt *p, rwy_time now);
void qp_deliver(struct qp *qp, const struct dc_pkt *p, rwy_time now);
void qp_answer(struct qp *qp, enum dc_kind kind, uint32_t psn24, uint32_t aux, rwy_time now);
/* sr.c: selective repeat. */
void sr_new(struct qp *qp);
void sr_free(struct qp *qp);
bool sr_next(const struct qp *qp, uint64_t *psn); /* the packet to send now */
void sr_sent(struct qp *qp, uint64_t psn);        /* called before nxt moves */
void sr_acked(struct qp *qp, const struct dc_pkt *p, rwy_time now);
void sr_data(struct qp *qp, struct dc_pkt *p, rwy_time now);
void sr_timeout(struct qp *qp, rwy_time now);

static inline uint64_t psn_full(uint64_t near, uint32_t psn24)
{
	int32_t d = (int32_t)((psn24 - (uint32_t)near) << 8) >> 8;

	return near + (uint64_t)(int64_t)d;
}

#endif
