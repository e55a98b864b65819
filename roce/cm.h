/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication management as a bystander: reads the CM messages that two hosts exchange (IBA 12.6)
 * and finds out which queue pairs belong together. It answers nothing and changes nothing; the MADs
 * are carried like any other packet.
 *
 * Sides: a is the active side (it sent the REQ), b the passive one (it sent the REP).
 */
#ifndef ROCE_CM_H
#define ROCE_CM_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/parse.h"
#include "rwy/ip.h"
#include "rwy/time.h"

#define ROCE_GSI_QPN 1 /* general services interface, the destination of CM MADs (IBA 13.5.1) */

/* CM attribute IDs (IBA table 105). Other values are carried through and are no errors. */
enum roce_cm_attr {
	ROCE_CM_REQ = 0x0010,
	ROCE_CM_MRA = 0x0011,
	ROCE_CM_REJ = 0x0012,
	ROCE_CM_REP = 0x0013,
	ROCE_CM_RTU = 0x0014,
	ROCE_CM_DREQ = 0x0015,
	ROCE_CM_DREP = 0x0016,
	ROCE_CM_SIDR_REQ = 0x0017, /* of UD: service ID resolution (IBA 12.11) */
	ROCE_CM_SIDR_REP = 0x0018,
};

/*
 * One CM message, in host order. Fields that the attribute does not have are 0. "local" is the
 * sender of the message.
 *
 * IBA 12.7 lets a sender choose what its *peer* uses. starting_psn: first PSN that the receiver of
 * the message sends (the sender's expected PSN, 12.7.31); rnr_retry: the receiver's RNR retry count
 * (12.7.38); local_ack_timeout: the receiver's transport timeout (12.7.34). responder_resources and
 * initiator_depth are the sender's own.
 */
struct roce_cm_msg {
	uint64_t tid;                        /* MAD transaction ID */
	uint64_t service_id;                 /* REQ */
	struct rwy_ip local_gid, remote_gid; /* REQ: primary path; all zero otherwise */
	uint32_t local_comm_id;
	uint32_t remote_comm_id; /* 0 in a REQ */
	/* REQ, REP: of the sender; DREQ: of the receiver ("remote QPN") */
	uint32_t qpn;
	uint32_t eecn;         /* REQ, REP: EE context; an XRC REP has its target QP here */
	roce_psn starting_psn; /* REQ, REP */
	uint32_t flow_label;   /* REQ: hosts derive UDP source ports from it */
	uint16_t attr;         /* enum roce_cm_attr or any other value */
	uint16_t pkey;         /* REQ */
	uint16_t path_mtu;     /* REQ: bytes, 256..4096; 0 when the code is reserved */
	uint16_t rej_reason;   /* REJ (IBA 12.6.7.2) */
	/* REJ, MRA: the message that it answers: 0 REQ, 1 REP, 2 other */
	uint8_t msg;
	/* REQ: enum roce_transport: ROCE_RC, ROCE_UC, ROCE_RD or ROCE_XRC */
	uint8_t transport;
	uint8_t retry_count;       /* REQ: 0..7, both sides */
	uint8_t rnr_retry;         /* REQ, REP: 0..7, 7 = no limit */
	uint8_t local_ack_timeout; /* REQ: 4.096 us * 2^n, 0 = none */
	uint8_t ack_delay;         /* REP: target ACK delay, same unit */
	uint8_t service_timeout;   /* MRA: same unit */
	/* REQ, REP: READs and ATOMICs that the sender answers at a time */
	uint8_t responder_resources;
	uint8_t initiator_depth; /* REQ, REP: READs and ATOMICs that the sender has outstanding */
	bool flow_control;       /* REQ, REP: end-to-end credits */
	bool srq;                /* REQ, REP */
};

/* Whether a packet goes to the general services interface (CM and other management). */
static inline bool roce_is_gsi(const struct roce_pkt *pkt)
{
	return pkt->opcode == ROCE_UD_SEND_ONLY && pkt->dqpn == ROCE_GSI_QPN;
}

/*
 * Reads the CM message in a packet that roce_parse() accepted and whose ICRC is good. Returns 0 and
 * fills *msg (any attribute, also those not listed above); RWY_ENOENT: the packet is not a CM MAD
 * (not from QP1 to QP1 with the GSI's Q_Key, which a host drops (IBA 10.2.4), another class or
 * version, or not a Send); RWY_EMALFORMED: it is a CM MAD whose length is not that of a MAD (256
 * bytes, IBA 13.4.2).
 */
int roce_cm_parse(const struct roce_pkt *pkt, struct roce_cm_msg *msg);

/* --- tracker ---------------------------------------------------------------------------------- */

/* One side of a connection. All values concern what this side *sends*. */
struct roce_cm_side {
	struct rwy_ip ip;
	uint32_t qpn;
	roce_psn psn;                /* first PSN that it sends, from its peer's REQ or REP */
	uint8_t rnr_retry;           /* 0..7: RNR retry count; 7 = no limit */
	uint8_t responder_resources; /* as in its own REQ or REP */
	uint8_t initiator_depth;
	/*
	 * Transport timeout, 4.096 us * 2^n, 0..31; 0: none. b's is the REQ's. a's is its own
	 * choice: at most one more than the longer of that and the REP's ACK delay.
	 */
	uint8_t ack_timeout;
};

struct roce_cm_conn {
	struct roce_cm_side a, b;
	uint64_t service_id;
	uint32_t comm_a, comm_b; /* communication IDs */
	uint32_t flow_label;
	uint16_t pkey;
	uint16_t path_mtu;   /* bytes, from the REQ; the REP cannot change it */
	uint8_t transport;   /* enum roce_transport */
	uint8_t retry_count; /* 0..7, both sides */
	uint8_t ack_timeout; /* b's transport timeout, 4.096 us * 2^n; a's is similar */
	bool srq_a, srq_b;
};

enum roce_cm_event_kind {
	ROCE_CM_NONE, /* nothing to do */
	/* REQ and REP were seen: conn is complete, though a REJ may still come in place of the
	 * RTU */
	ROCE_CM_ESTABLISHED,
	ROCE_CM_CLOSED, /* DREQ, DREP or REJ was seen: conn is the established connection */
};

struct roce_cm_event {
	enum roce_cm_event_kind kind;
	struct roce_cm_conn conn; /* valid unless NONE */
	/*
	 * ESTABLISHED only: older connections that used one of conn's two (IP, QPN) or
	 * communication IDs and whose close was never seen. They are over: a reused QPN inherits
	 * nothing.
	 */
	unsigned superseded_count;
	struct roce_cm_conn superseded[4];
};

struct roce_cm_cfg {
	uint32_t capacity;      /* most connections remembered, 1..2^24 */
	uint32_t half_open_max; /* most of them with only a REQ or only a REP, 1..capacity */
	rwy_dur half_open_ttl;  /* time since the last message */
	/* a closed connection is remembered this long, so that replayed messages do not revive
	 * it */
	rwy_dur closed_ttl;
	rwy_dur established_ttl; /* time since the last message; RWY_NEVER: only a close ends it */
	uint64_t seed;           /* seed of the hash: a number that hosts cannot guess */
};

/* Events of the tracker, including everything dropped or not understood. X(field, sentence) */
#define ROCE_CM_COUNTERS(X)                                                                                  \
	X(established, "connections learned from a REQ and its REP")                                         \
	X(closed, "connections closed by DREQ, DREP or REJ")                                                 \
	X(rejected, "connection attempts rejected before they were established")                             \
	X(superseded, "connections whose QPN or ID was used again before a close was seen")                  \
	X(duplicate, "messages that said nothing new")                                                       \
	X(unknown, "messages that name no connection we know")                                               \
	X(mismatch, "messages that name a connection but contradict it")                                     \
	X(foreign, "REQs that speak for other hosts than their packets' addresses")                          \
	X(evicted_half_open, "half-open connections forgotten for lack of room")                             \
	X(evicted_established, "established connections forgotten for lack of room")                         \
	X(expired, "half-open or established connections forgotten for their age")

struct roce_cm_stats {
#define X(f, s) uint64_t f;
	ROCE_CM_COUNTERS(X)
#undef X
	uint32_t half_open_now, established_now, closed_now;
};

/* One table per tenant, because addresses of two tenants may overlap. One thread. */
struct roce_cm_tab;

/* The defaults: 1024 connections, 256 half-open, 70 s half-open (a CM retries a REQ for about 64
 * s), 60 s closed, established without limit. */
void roce_cm_cfg_default(struct roce_cm_cfg *cfg);

/* Allocates all memory of the table. Returns 0, RWY_EINVAL (a value out of its range),
 * RWY_ENOMEM. */
RWY_MUST_CHECK int roce_cm_tab_new(struct roce_cm_tab **out, const struct roce_cm_cfg *cfg);
void roce_cm_tab_free(struct roce_cm_tab *tab); /* NULL is allowed */

/*
 * A REQ whose GIDs are set and are not the addresses of the packet that carries it, from src to
 * dst. Hosts send no such over RoCE; who believed one would let two hosts end the connections of
 * others.
 */
bool roce_cm_is_foreign(const struct roce_cm_msg *msg, const struct rwy_ip *src, const struct rwy_ip *dst);

/*
 * Takes in one message, seen in a packet from src to dst, and says in *ev what it means; a foreign
 * one means nothing. Order, duplicates and replays do not matter: each connection is reported
 * ESTABLISHED once and CLOSED at most once. Also forgets what is too old. When there is no room the
 * oldest closed entry goes first, then the oldest half-open one, then the oldest established one;
 * none of these is an event.
 */
void roce_cm_track(struct roce_cm_tab *tab, const struct roce_cm_msg *msg, const struct rwy_ip *src,
    const struct rwy_ip *dst, struct roce_cm_event *ev, rwy_time now);

/*
 * The caller has not opened the connection `conn`, which roce_cm_track() has just reported
 * ESTABLISHED, and does not send on the message that told so, of `attr` REQ or REP. When that
 * message is tracked again, it reports the connection again. Those that it superseded stay closed.
 */
void roce_cm_not_taken(
    struct roce_cm_tab *tab, const struct roce_cm_conn *conn, enum roce_cm_attr attr, rwy_time now);

/* Returns the established connection of this queue pair; NULL: none. Valid until the next call on
 * the table. */
const struct roce_cm_conn *roce_cm_find(const struct roce_cm_tab *tab, const struct rwy_ip *ip, uint32_t qpn);

/* Removes expired entries; roce_cm_track() does the same. */
void roce_cm_expire(struct roce_cm_tab *tab, rwy_time now);

/* Copies the counters, which are monotonic, and the entries that there are now. */
void roce_cm_stats_get(const struct roce_cm_tab *tab, struct roce_cm_stats *out);

#endif
