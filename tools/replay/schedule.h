/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a capture's hosts, as messages that hosts can send again: for each RC connection and
 * side the messages in PSN order with their packets, when they were posted, what they waited for,
 * and what the READs and ATOMICs among them brought.
 *
 * A message that was not captured whole is left out, and the PSNs behind it close up. What a snap
 * length cut off is zero.
 *
 * Sans-I/O: an_frame() puts packets in (tools/analyze/), rp_schedule_end() makes the schedule. One
 * thread. Times are nanoseconds, sizes bytes.
 */
#ifndef TOOLS_REPLAY_SCHEDULE_H
#define TOOLS_REPLAY_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "roce/psn.h"
#include "rwy/err.h"
#include "rwy/ip.h"
#include "rwy/time.h"
#include "tools/analyze/analyze.h"

#define RP_BYTES_MAX ((uint64_t)2 << 30) /* of packets that a schedule keeps */

struct rp_pkt {
	uint64_t off;      /* of its IP header in rp_schedule.bytes */
	uint16_t len;      /* from the IP header to the end of the ICRC; 0: it was not captured */
	uint16_t captured; /* bytes of them that are known */
};

struct rp_msg {
	rwy_time at;      /* its first packet was sent */
	rwy_time arrived; /* its last packet was seen, and those of all messages before it */
	rwy_time served;  /* READ, ATOMIC: likewise the last response; RWY_NEVER: not seen */
	/* The same moments as places in the capture: times may be equal. UINT64_MAX: not seen. */
	uint64_t at_seq, arrived_seq, served_seq;
	uint64_t psn;  /* PSNs of its side before it */
	uint32_t psns; /* PSNs that it takes */
	uint32_t pkt, pkts;
	uint32_t answer; /* READ, ATOMIC: the first of `psns` responses in rp_side.answer */
	uint32_t len;    /* bytes of payload, sent or asked for */
	/* It was posted after its host had so many messages of the peer, and so many answers of its
	 * own READs and ATOMICs. */
	uint32_t peers, answers;
	uint8_t op; /* enum roce_op */
};

/* X(field, sentence): what of a side's traffic no message was made of. */
#define RP_LOSSES(X)                                                                                         \
	X(partial, "packets of messages that began before the capture, or lack a packet")                    \
	X(missing, "PSNs that were not captured")                                                            \
	X(reused, "packets of a later connection on the same queue pair numbers")                            \
	X(unanswered, "READs and ATOMICs whose answers were not captured: zeros instead")

struct rp_losses {
#define X(f, s) uint64_t f;
	RP_LOSSES(X)
#undef X
};

/* One side of a connection: the requests of one host to the other. */
struct rp_side {
	struct rwy_ip ip;
	uint32_t qpn;
	roce_psn first; /* PSN of its first message in the capture */
	/* From the place of the capture to this host and back: what the host did about a message of
	 * its peer was seen so much later than it took. */
	rwy_dur away;
	struct rp_pkt *pkt, *answer;
	struct rp_msg *msg;
	uint32_t *rd; /* its READs and ATOMICs, as indices of msg */
	uint32_t pkts, msgs, rds, answers;
	uint64_t bytes; /* payload of messages, READs too */
	struct rp_losses lost;
	const struct an_flow *flow; /* its requests */
};

struct rp_conn {
	struct rp_side side[2]; /* 0: whose first packet the capture has first */
	uint32_t vni, pmtu;
	uint8_t read_depth[2]; /* READs and ATOMICs that a side has outstanding at most */
	rwy_time first, last;  /* of its messages */
};

/* A CM message of the capture, RWY_EMALFORMED and others excepted. */
struct rp_cm {
	struct rp_pkt pkt;
	rwy_time at;
	uint32_t vni;
};

struct rp_schedule {
	struct an *an;
	uint8_t *bytes;
	uint64_t used, room;
	struct rp_conn *conn;
	uint32_t conns;
	struct rp_cm *cm;
	uint32_t cms, cm_room;
	rwy_time first, last; /* of all messages */
	uint64_t unpaired;    /* flows with requests whose other direction the capture has not */
	uint64_t cut;         /* RC packets that the snap length shortened */
	uint64_t headless;    /* those of them that lack headers */
	uint64_t seq;         /* RC packets so far */
	bool too_large;       /* RP_BYTES_MAX: the reading ended with RWY_ENOMEM */
};

/* NULL: no memory. Frames go into s->an. */
struct rp_schedule *rp_schedule_new(void);
void rp_schedule_free(struct rp_schedule *s); /* NULL allowed */
/* After the last frame: fills conn. RWY_ENOMEM. */
RWY_MUST_CHECK int rp_schedule_end(struct rp_schedule *s);

/* How long the host of a side took from something of its peer, seen at `cause`, to what it sent at
 * `at`. */
static inline rwy_dur rp_reaction(const struct rp_side *d, rwy_time cause, rwy_time at)
{
	return rwy_since(cause + d->away, at);
}

/* Sets rp_side.away of all sides of this host. False: it has none. */
bool rp_schedule_away(struct rp_schedule *s, const struct rwy_ip *ip, rwy_dur away);

/* The messages of all connections. */
uint64_t rp_schedule_messages(const struct rp_schedule *s);

/* The packet parsed; the bytes are the schedule's. p->len is not 0. */
void rp_packet_get(const struct rp_schedule *s, const struct rp_pkt *p, struct roce_pkt *out);

#endif
