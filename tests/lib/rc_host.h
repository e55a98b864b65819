/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model host: one RC queue pair with memory, packets in, packets out. Its requester behaves like
 * Soft-RoCE's: a window of 128 PSNs, go-back-N from the oldest unacknowledged PSN, one retry until
 * progress, partial READ after a loss. Its responder executes on a byte array and remembers READs
 * and ATOMICs. Sans-I/O: no socket, no clock. It is no reference of the standard, but stands for a
 * real host and counts what could hurt one (struct rc_host_bad).
 */
#ifndef TESTS_LIB_RC_HOST_H
#define TESTS_LIB_RC_HOST_H

#include <string.h>

#include "roce/parse.h"
#include "rwy/time.h"
#include "tests/lib/rc_pkt.h"

enum rc_wr_op {
	RC_WRITE,
	RC_WRITE_IMM,
	RC_SEND,
	RC_SEND_IMM,
	RC_SEND_INV,
	RC_READ,
	RC_CAS,
	RC_FAA,
	RC_UNCARRIED, /* FLUSH, or ATOMIC WRITE if imm is odd: gateways refuse it, hosts here do not know it */
};
enum rc_status {
	RC_OK,
	RC_REM_INV,
	RC_REM_ACCESS,
	RC_REM_OP,
	RC_RETRY_EXC,
	RC_RNR_EXC,
	RC_BAD_RESP,
	RC_FLUSHED
};

struct rc_wr {
	uint64_t id;
	enum rc_wr_op op;
	/* offset in this host's memory: the source, or the destination of a READ and of an ATOMIC's
	 * 8 bytes */
	uint32_t local;
	uint32_t len;
	uint64_t remote; /* offset in the other host's memory */
	uint32_t rkey;
	uint32_t imm;
	uint64_t swap_add, compare;
};

struct rc_comp {
	uint64_t id;
	enum rc_status status;
	bool recv; /* a receive was consumed: */
	uint32_t len;
	uint32_t imm;
	bool with_imm;
};

struct rc_host_cfg {
	uint8_t ip[4], peer_ip[4];
	uint32_t peer_qpn;
	uint32_t mtu;
	roce_psn sq_psn, rq_psn;
	uint32_t rkey;      /* of the whole memory */
	uint32_t window;    /* PSNs, 128 */
	uint32_t rd_max;    /* READs and ATOMICs outstanding, <= RC_HOST_RES */
	uint32_t ack_every; /* AckReq at least once in so many packets */
	rwy_dur timeout;
	uint32_t resources; /* READs and ATOMICs remembered for duplicates, <= RC_HOST_RES */
	/* The rest of a READ is answered as middle and end of the first answer, as Soft-RoCE does,
	 * not as a READ of its own. */
	bool continues;
	uint8_t retry, rnr_retry; /* 7: without limit, as Soft-RoCE has it */
	/* What NICs do besides, all off by default (rc_host_nic): */
	rwy_dur timeout_max; /* each expiry in a row doubles the timer up to this; 0: none does */
	bool seven;          /* retry 7 is a number, not without limit */
	bool whole;          /* an error of one half ends both (IBA 10.3.1: the state Error) */
	bool lazy_ackreq;    /* AckReq only for each ack_every packets, at a full window, and at the end */
	uint32_t coalesce;   /* one ACK for so many requests with AckReq, .. */
	rwy_dur ack_delay;   /* .. or so long after the first of them */
	bool credits;        /* end-to-end credits (IBA 9.7.7.2): given, and heeded where they are given */
	uint8_t rnr_timer;   /* AETH timer value in RNR NAKs sent */
	void (*done)(void *ctx, const struct rc_comp *c);
	void *ctx;
};

/* Events that a correct peer does not cause. */
struct rc_host_bad {
	unsigned ghost;  /* ACK or response of a PSN that was never sent */
	unsigned ack;    /* plain ACK of a READ's or ATOMIC's own PSN */
	unsigned opcode; /* READ RESPONSE with the wrong position */
	unsigned msn;    /* MSN lower than the one that the PSN completes */
	unsigned length; /* READ RESPONSE of wrong length */
};

#define RC_HOST_RES 128

struct rc_wqe;
struct rc_out;

struct rc_host {
	struct rc_host_cfg cfg;
	uint8_t *mem;
	uint32_t mem_len;
	struct rc_host_bad bad;
	/* requester */
	struct rc_wqe *sq;
	uint32_t sq_n, sq_cap, comp_i, send_i, send_k;
	roce_psn una, nxt, high, post_psn;
	uint32_t noack, rd_out;
	uint32_t limit; /* credits: requests below this index may take a receive */
	uint8_t retries, rnrs;
	bool retrying, sq_error;
	enum rc_status sq_status;
	rwy_time deadline, rnr_until;
	/* responder */
	roce_psn epsn;
	roce_psn ack_psn; /* PSN after the last request that was no READ; 0: none was */
	roce_msn msn;
	uint8_t msg;
	bool nak_sent, rq_error;
	uint64_t w_off;
	uint32_t w_left, s_got;
	struct {
		uint32_t off, len;
	} * rq;
	uint32_t rq_n, rq_cap, rq_i;
	struct {
		roce_psn psn;
		uint32_t cnt, len;
		uint64_t off, original;
		bool atomic, used;
	} res[RC_HOST_RES];
	uint32_t res_i;
	struct rc_out *out;
	uint32_t out_head, out_n, out_cap;
	/* coalesce: requests with AckReq since the last ACK, the ACK for them, and when it goes */
	uint32_t held_n;
	roce_psn held_psn;
	roce_msn held_msn;
	rwy_time held_until, now;
	/* counters */
	unsigned sends, atomics, rnr_sent, nak_sent_n, resent;
};

void rc_host_cfg_default(struct rc_host_cfg *cfg);
/*
 * The default as a NIC: the deepest window, an adaptive timer of 2 to 16 ms and 7 retries (as ConnectX has
 * it), RNR retry 0, credits, one ACK for 8 requests, AckReq only where it must be.
 */
void rc_host_cfg_nic(struct rc_host_cfg *cfg);
/* How long its requester goes on without an answer. */
rwy_dur rc_host_patience(const struct rc_host_cfg *cfg);
void rc_host_init(struct rc_host *h, const struct rc_host_cfg *cfg, uint8_t *mem, uint32_t mem_len);
void rc_host_fini(struct rc_host *h);

void rc_host_post(struct rc_host *h, const struct rc_wr *wr);
void rc_host_post_recv(struct rc_host *h, uint32_t off, uint32_t len);

/* Takes a packet for this host, from its IP header on. Invalid ones are dropped. */
void rc_host_input(struct rc_host *h, uint8_t *bytes, uint32_t len, rwy_time now);
/* The same with a parsed packet (rc_pkt_read()). */
void rc_host_packet(struct rc_host *h, const struct roce_pkt *pkt, rwy_time now);
/* Writes the next packet into out[RC_PKT_MAX]. Returns its length; 0: there is none now. */
uint32_t rc_host_output(struct rc_host *h, uint8_t *out, rwy_time now);
void rc_host_tick(struct rc_host *h, rwy_time now);
rwy_time rc_host_next(const struct rc_host *h);

/* A packet of this host: m with the host's addresses and QPN. Tests also use it to speak for the
 * host. */
static inline uint32_t rc_host_make(const struct rc_host *h, uint8_t *out, struct rc_mk m)
{
	memcpy(m.src, h->cfg.ip, 4);
	memcpy(m.dst, h->cfg.peer_ip, 4);
	m.dqpn = h->cfg.peer_qpn;
	return rc_pkt_make(out, &m);
}

static inline bool rc_host_idle(const struct rc_host *h)
{
	return h->comp_i == h->sq_n;
}

#endif
