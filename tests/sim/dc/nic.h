/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's NIC: one port, queue pairs that take turns on it, each paced by DCQCN. Requester and responder of
 * a connection are one record here for ease of looking after it; each half is touched only by packets that
 * reach its host.
 *
 * Sequence numbers are 64 bits inside, 24 in packets.
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
	bool inter, failed, once; /* once: to be freed when it has nothing to do */
	uint32_t hash;
	/* requester: its messages in order: oldest kept, oldest not completed, newest; the one that holds
	 * `nxt` (NULL: look for it) */
	struct dc_msg *head, *open, *tail, *cur;
	/* oldest unacknowledged, next to send, end of what was sent, end of what was posted */
	uint64_t una, nxt, high, end;
	uint64_t window;  /* packets in flight at most, 0: no bound */
	uint64_t req_end; /* end of what was sent with AckReq */
	unsigned since_req, retries;
	rwy_dur rto, rto_least;
	rwy_time rto_at;
	struct ev rto_ev, pace_ev, cc_ev;
	uint8_t turn; /* enum qp_turn */
	struct qp *ready_next;
	rwy_time sent_at; /* of the last data packet: the next may go when the rate allows */
	uint32_t sent_wire;
	uint64_t rate; /* bytes a second; 0: the line's */
	rwy_time ticked;
	/* responder */
	struct dc_msg *rx; /* message whose packet is expected */
	uint64_t epsn, msn, rx_bytes;
	bool nak_sent;
	rwy_time cnp_at;
	struct sr *sr;
	/* counts of this connection; bytes: payload, also what is sent again */
	uint64_t tx_bytes, tx_resent, tx_timeouts, tx_cnps;
	_Alignas(64) uint8_t cc[CC_STATE_SIZE];
};

struct host {
	struct node n; /* first */
	struct qp *ready, *ready_tail;
	/* a NIC that takes only so much: slow=nic */
	struct dc_pktq rxq;
	struct ev rx_ev;
	uint64_t rx_ns_byte;
	bool rx_xoff;
};

/* qp.c: the requester */
struct dc_pkt *qp_pull(struct host *h, rwy_time now); /* the next data packet of the port's turn, or NULL */
void qp_wake(struct qp *qp, rwy_time now);            /* it may have something to send */
void qp_acked(struct qp *qp, uint32_t psn24, uint32_t msn, bool nak, rwy_time now);
void qp_cnp(struct qp *qp, rwy_time now);
void qp_fail(struct qp *qp, rwy_time now);
void qp_progress(struct qp *qp, uint64_t una, rwy_time now); /* all before una is acknowledged */
void qp_release(struct qp *qp); /* messages that are both delivered and completed */
/* resp.c: the responder */
void qp_data(struct qp *qp, struct dc_pkt *p, rwy_time now); /* reads the packet; the caller frees it */
void qp_deliver(struct qp *qp, const struct dc_pkt *p, rwy_time now);
void qp_answer(struct qp *qp, enum dc_kind kind, uint32_t psn24, uint32_t aux, rwy_time now);
/* sr.c */
void sr_new(struct qp *qp);
void sr_free(struct qp *qp);
bool sr_next(const struct qp *qp, uint64_t *psn); /* which to send now */
void sr_sent(struct qp *qp, uint64_t psn);        /* it is being sent; before nxt moves */
void sr_acked(struct qp *qp, const struct dc_pkt *p, rwy_time now);
void sr_data(struct qp *qp, struct dc_pkt *p, rwy_time now);
void sr_timeout(struct qp *qp, rwy_time now);

static inline uint64_t psn_full(uint64_t near, uint32_t psn24)
{
	int32_t d = (int32_t)((psn24 - (uint32_t)near) << 8) >> 8;

	return near + (uint64_t)(int64_t)d;
}

#endif
