/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection between a local host L and a remote host R has two sides here, one for each
 * direction of its requests:
 *
 *                       this gateway                                  WAN
 *           +------------------------------------+
 *   request |  struct eng_responder              |  flow of requests
 *  -------->|  answers L in R's name             |~~~~~~~~~~~~~~~~~~>   to R's gateway,
 *  <--------|  key (L, R, R's QPN)               |<~~~~~~~~~~~~~~~~~~   its requester side
 *  response |    |               ^               |  flow of responses
 *  L        |    | requester     | responder     |
 *           |    v               |               |
 *   request |  struct eng_requester              |  flow of requests
 *  <--------|  asks L in R's name                |<~~~~~~~~~~~~~~~~~~   from R's gateway,
 *  -------->|  key (R, L, L's QPN)               |~~~~~~~~~~~~~~~~~~>   its responder side
 *  response +------------------------------------+  flow of responses
 *
 * A key is (source, destination, destination QPN, tenant) of the requests. L's own responses name
 * R's QPN as well, so one look-up, of the responder side, serves every packet of the LAN; its
 * `requester` leads on. Pairing (pair.c) sets both pointers.
 *
 * Thread: the engine's worker, as engine.h says.
 */
#ifndef ENGINE_CONNECTION_H
#define ENGINE_CONNECTION_H

#include "cc/drain.h"
#include "engine/engine.h"
#include "engine/msg.h"
#include "engine/recorder.h"
#include "engine/states.h"
#include "roce/reqr.h"
#include "roce/resp.h"
#include "rwy/prefetch.h"

struct eng_causal;
struct eng_copy;
struct eng_host;
struct eng_pair;
struct eng_requester;
struct eng_rp;
struct eng_tenant;

/* Packets of an unpaired flow in custody: more than Soft-RoCE sends unacknowledged, 129. */
#define ENG_UNPAIRED_MAX 160
#define ENG_PARKED_MAX   256 /* requests of a connection behind a READ of unknown response count */

/*
 * The source of both QPNs: not known yet, CM messages, the host's first response, the far gateway.
 */
enum eng_learned { ENG_BY_NOBODY, ENG_BY_CM, ENG_BY_PROBE, ENG_BY_PEER };

/* Entries of ENG_RECORD_OFTEN in a short time, of one connection (recorder.c). */
struct eng_record_window {
	uint8_t window; /* the time, modulo 256 windows */
	uint8_t n;      /* stops at 255 */
};

/*
 * The first member of either side, so that the table and the sweep treat both alike. A packet
 * touches all of it: with many queue pairs a gateway waits for memory most. What no packet needs is
 * in struct eng_side_cold.
 */
struct eng_side {
	struct eng_key key;
	uint32_t hash;
	bool is_requester : 1;
	bool dirty : 1; /* it is in the list of `dirty_next` */
	uint8_t tunnel;
	uint8_t state;          /* enum eng_responder_state or eng_requester_state */
	uint8_t learned;        /* enum eng_learned */
	struct eng_side *chain; /* in its bucket of the table */
	rwy_time last;          /* last packet */
	/* --- line 1 --- */
	struct eng *e;               /* NULL: freed while in the dirty list */
	struct eng_tenant *tenant;   /* of key.tenant; it outlives its sides */
	struct eng_host *host;       /* the local host; it outlives its sides, too */
	struct eng_side *dirty_next; /* in the list of sides with work at the end of the turn */
	uint64_t most;               /* most bytes that it ever held (memory.h) */
};
static_assert(offsetof(struct eng_side, e) == RWY_CACHE_LINE, "line 0 is what a look-up needs");

/* The part of either side that no packet needs: eng_side_cold() of a side. */
struct eng_side_cold {
	rwy_time close_at; /* disconnected: when it is forgotten; else RWY_NEVER */
	const char *error; /* why it failed, or ""; static text */
	uint64_t entry;    /* its hash in the directory */
	/* In the ring of sides that wait for memory; NULL: not in it. */
	struct eng_side *wait_next, *wait_prev;
	uint32_t steering_gen; /* of the set that its class was chosen by (reservation.c) */
	struct eng_record_window recorded;
};

/*
 * Cache lines of a side that a packet touches. A request, its delivery and its ACK touch
 * ENG_RESPONDER_LINES of a responder side or ENG_REQUESTER_LINES of a requester side. An ACK of the
 * host touches ENG_SIDE_LINES of its responder side, which points to the requester side.
 */
#define ENG_SIDE_LINES      2
#define ENG_RESPONDER_LINES 6
#define ENG_REQUESTER_LINES 9

/* Prefetches the first `lines` of a side, which may be freed, or NULL. */
RWY_PREFETCHER void eng_prefetch_side(const void *side, unsigned lines)
{
	rwy_prefetch(side, lines);
}

#define ENG_READS 4
#define ENG_EARLY 30 /* PSNs; bits of early_known. With them a side is a line less than with 32 */

/* A READ that the local host requested, as its RETH has it (IBA 9.3). */
struct eng_read {
	roce_psn psn;
	uint32_t rkey, len;
	uint64_t va;
};

/* A response that was sent to the host, kept in case the host lost it. */
struct eng_kept {
	uint64_t serial; /* roce_resp_serial of its PSN */
	union {
		struct rwy_buf *buf; /* READ: the packet; its msn is `answered` at that time */
		uint64_t original;   /* ATOMIC: the value before the operation */
	};
};

/* A ring ordered by serial. Its capacity is a power of two and grows; 0 before the first entry. */
struct eng_keptq {
	struct eng_kept *at;
	uint32_t head, n, cap;
};

/* A DREQ of the local host that waits until its requests are delivered (mgmt.c). */
struct eng_dreq {
	struct rwy_buf *b;
	uint32_t queued; /* buffers in custody when it was looked at last */
	rwy_time since;  /* the latest change of `queued`, or time without a tunnel */
};

/* The rate at which requests leave custody, and what may be in it (read_wait.c). Bytes. */
struct eng_leaving {
	uint64_t limit; /* above it ACKs are held back; UINT64_MAX: none */
	uint64_t bytes; /* delivered since */
	rwy_time since; /* begin of the measurement; 0: none */
	uint64_t Bps;   /* 0: not measured */
	bool impatient; /* the host repeats READs or ATOMICs before their answer can be here */
};

/*
 * The part of a responder side that is seldom needed: its connection began a moment ago, or its
 * host READs, or is behind in some way. It is taken when it is needed, and given back when the
 * connection is quiet (rare.c). Without one `rare` of a side is eng_rare_none, and nothing of this
 * is there.
 */
struct eng_rare {
	uint32_t reads_asked;            /* READs of this incarnation */
	uint32_t answered;               /* READs and ATOMICs of this incarnation */
	struct eng_read read[ENG_READS]; /* ring of the host's latest READs */
	struct eng_keptq reads, atomics; /* responses kept for replays */
	uint64_t kept;                   /* bytes of the buffers of `reads` */
	/* Ring of the connections that keep READ responses; NULL: not in it. */
	struct eng_responder *kept_next, *kept_prev;
	/* The latest response to a READ or ATOMIC that went to the host. */
	rwy_time served_at;
	/* Copies of the first request, a READ, before its answer: the latest, and the longest time
	 * between two. */
	rwy_time copy_at;
	rwy_dur copy_gap;
	struct rwy_bufq parked; /* requests behind a READ of unknown response count */
	struct rwy_bufq ahead;  /* ahead.c: responses to requests that the host repeats, and more */
	struct eng_dreq dreq;
	/* Mode `causal`: links of its record's lists; what the next beat acknowledges, or not. */
	struct eng_responder *busy_next, *busy_prev, *acked_next, *owed_next;
	roce_psn mark_psn;
	roce_msn mark_msn;
	/* Unpaired only: links of its host's list, the oldest first, and when the flow began. */
	struct eng_responder *half_next, *half_prev;
	rwy_time half_since;
	/* mode `end`: sequence of the first request not acknowledged early */
	uint64_t early_seq;
	/* `ack_blocked`: since when, and the same for the latest that was recorded; 0: never. */
	rwy_time withheld_at, withheld_told;
	rwy_time np_at; /* when np_bytes was equal to `bytes` of the side */
	uint64_t np_bytes;
};
extern const struct eng_rare eng_rare_none;

struct eng_responder {
	struct eng_side side;
	/* --- what each request, its delivery and its ACK touch (ENG_RESPONDER_LINES) --- */
	struct eng_requester *requester; /* the same connection's; NULL: not paired */
	struct wan_txflow *requests;
	struct eng_journal_entry *journal; /* NULL: nothing was acknowledged yet */
	struct eng_nexthop nh;             /* line 2 */
	/*
	 * Mode `causal` (causal.c): the record of its two hosts, NULL: not a member. `rare` has its
	 * places in the record's lists.
	 */
	struct eng_causal *causal;
	/* mode `site`: copies for the standby gateway (copy.h); NULL: none */
	struct eng_copy *copy;
	/* Bytes of buffers that the far host has not acknowledged, and how many. */
	uint64_t custody;
	uint32_t custody_bufs;
	uint32_t naks;      /* sent for nak_psn while the host did not go back to it */
	roce_psn nak_psn;   /* line 3: of the latest PSN sequence NAK */
	uint32_t local_qpn; /* QPN of the local host, where ACKs go; 0: not known */
	uint32_t mode_set;
	uint16_t pkey, sport;
	uint8_t tos, ttl;
	uint8_t mode;         /* enum eng_ack_mode, valid while mode_set is tenant->modes_set */
	uint8_t custody_kind; /* enum eng_mem_kind: the kind that `custody` counts as */
	/* ACKs are withheld because custody memory is short, or for a READ (read_wait.c) */
	bool ack_blocked;
	bool has_ahead;      /* `ahead` is not empty */
	bool reads_expected; /* CM says that the local host may send READs and ATOMICs */
	/*
	 * Failed: requests that the host has ACKs for are lost, and no NAK can tell an idle host.
	 */
	bool untold;
	bool dreq_waits; /* `dreq` has one */
	/* BTH MigReq of the local host's requests, copied into its responses */
	bool migreq;
	bool gap_seen;           /* since the NAK of nak_psn the host sent a later PSN */
	bool rewound;            /* after REWIND: the far host has executed nothing since */
	bool silent;             /* a standby took over, and the host has sent no request since */
	uint64_t packets, bytes; /* requests taken into custody */
	uint64_t np_low;         /* shortest queue since the last CNP, bytes */
	/*
	 * The latest request of the host, or response to it. Its own responses do not count: they
	 * may belong to a new connection whose requests were lost.
	 */
	rwy_time asked_at;
	/* Line 4. Packets are dropped until then (reuse.c); 0: none are; RWY_NEVER: until the host
	 * goes back (dropped_psn). */
	rwy_time suppress_until;
	rwy_time acked_at; /* the latest ACK or NAK that told the host of progress */
	struct eng_leaving leaving;
	rwy_time cnp_at;       /* no CNP before this */
	struct roce_resp resp; /* line 5: its packet-path part */
	/* --- the rest --- */
	struct eng_side_cold cold;
	rwy_time refused_at; /* nak_psn was dropped for lack of memory then; 0: it was not */
	uint64_t session;    /* number of its session, 0: none yet */
	/*
	 * local_qpn of the incarnation before. When the far host gives up without an answer, the
	 * QPN is unknown, and the error goes to this one.
	 */
	uint32_t local_qpn_before;
	uint32_t incarnation; /* random; changes each time the connection begins again */
	/* Retry counts and ACK timeout of the local host's QP, from CM (struct eng_open). */
	uint8_t rnr_retry, retry, ack_timeout;
	bool ack_too_late; /* it gives up before an ACK of the far site can come */
	/* Mode `causal`: custody is not empty; an ACK came since the last list; ACKs wait. */
	bool causal_busy, causal_acked, causal_owed;
	bool marked; /* the next beat acknowledges what is before mark_psn */
	struct wan_rxflow *responses;
	const struct eng_rare *rare; /* rare.c sets it; changed by eng_rare_of() and _take() only */
	rwy_time single_ack_at;      /* ACKs withheld: no single ACK before this */
	roce_psn gap_low;            /* lowest PSN after nak_psn that the host sent since */
	roce_psn settle_psn;         /* settling: its host had ACKs up to here at the begin */
	roce_psn taken_epsn;         /* taken over: the PSN expected then */
	roce_psn dropped_psn;        /* suppress_until is RWY_NEVER: of the last packet dropped */
	/*
	 * Taken over by a standby: epoch of the far gateway then, which says again what it said to
	 * the gateway before; 0: not taken over.
	 */
	uint64_t taken_over;
	rwy_time taken_at;
	rwy_dur withheld; /* how long `ack_blocked` was set in all, without the present time */
	uint32_t withheld_times, naks_sent;
	/*
	 * roce_content_crc of the requests at the first PSNs from resp.start on, and a bit for each
	 * that came. A quiet connection keeps them: its queue pair may begin again at any time.
	 */
	uint32_t early_crc[ENG_EARLY], early_known;
};
static_assert(sizeof(struct eng_responder) <= 11 * RWY_CACHE_LINE, "many are quiet");
static_assert(
    offsetof(struct eng_responder, nh) == 2 * RWY_CACHE_LINE &&
        offsetof(struct eng_responder, nak_psn) == 3 * RWY_CACHE_LINE &&
        offsetof(struct eng_responder, suppress_until) == 4 * RWY_CACHE_LINE &&
        offsetof(struct eng_responder, resp) + ROCE_RESP_HOT == ENG_RESPONDER_LINES * RWY_CACHE_LINE,
    "what a packet touches is in the lines that are prefetched");

/* Sequence of a request that came by an earlier flow, or that this gateway made itself. */
#define ENG_NO_SEQ UINT64_MAX

/*
 * A READ or ATOMIC that the local host has answered. It counts as delivered when the near gateway
 * has its responses.
 */
struct eng_response_wait {
	/* flow sequence of the request; ENG_NO_SEQ: it did not come by this flow yet */
	uint64_t seq;
	uint64_t idx; /* responses_sent after its last response */
	roce_psn psn; /* its PSN; ENG_NO_PSN: of no READ or ATOMIC */
};

/* The flow of requests from the near gateway. */
enum eng_flow {
	ENG_FLOW_NONE,
	ENG_FLOW_FIRST,   /* opened; its first message decides how to go on */
	ENG_FLOW_OPEN,    /* its messages are requests */
	ENG_FLOW_DISCARD, /* rewound: messages are dropped until the flow is opened again */
	ENG_FLOW_LEFT,    /* ended by the near gateway, which expects nothing more from it */
	ENG_FLOW_LOST,    /* its near gateway's process ended, which had not settled (peer.h) */
	ENG_FLOW_TOLD,    /* the next process was told so */
	ENG_FLOW_MOVED,   /* the near gateway was told to open it at another worker (place.h) */
};

/* Whether the first packet of an unpaired flow may go to the host (pair.c). */
enum eng_turn {
	ENG_TURN_NONE,
	ENG_TURN_UNQUEUED, /* there was no memory to queue it: it is tried again at a tick */
	ENG_TURN_WAITING,
	ENG_TURN_OUT,
};

struct eng_requester {
	struct eng_side side;
	/* --- what each request and its ACK touch (ENG_REQUESTER_LINES) --- */
	struct wan_rxflow *requests;
	uint64_t received; /* bytes of buffers in reqr's queue */
	uint8_t flow;      /* enum eng_flow */
	/* the flow was opened again for the incarnation that was here before */
	bool continued;
	bool reads;            /* a READ came once */
	bool owes_control;     /* `owed` waits for a buffer */
	uint32_t wait_n;       /* length of the ring `wait` */
	rwy_time last_tx;      /* line 2: the latest packet to the local host, of any incarnation */
	uint64_t acked_seq;    /* one more than the last request that the host acknowledged */
	uint64_t reported_seq; /* one more than the last that was reported delivered */
	/* The PSN behind the last request that it acknowledged, and behind the last of those that
	 * was no READ, if done_known. They outlive a beginning anew. */
	roce_psn done_end, plain_end;
	struct eng_nexthop nh;
	uint64_t packets, bytes; /* line 3: requests that the local host acknowledged */
	struct eng_requester *wheel_next, *wheel_prev;
	rwy_time wheel_at; /* 0: not in the wheel */
	bool done_known;
	uint8_t turn;         /* enum eng_turn */
	uint8_t near_workers; /* eng_open.workers of its flow */
	bool tried;           /* it had a turn, and nobody answered */
	/* state LOCATING: questions sent to the host */
	uint8_t questions;
	/* the last of them was with a PSN ahead of what the host expects */
	bool asked_ahead;
	/* states END_OWED, ENDING, LOCATING_LOST: enum eng_end, why the host's QP ends */
	uint8_t end;
	struct eng_responder *responder; /* the same connection's; NULL: not paired */
	struct eng_rp *rp;               /* reaction point in whose queue it waits; NULL: none */
	struct roce_reqr reqr;           /* line 4 */
	/* Line 8. End to end: bytes that the near gateway may have under way. */
	struct cc_drain drain;
	/* --- the rest --- */
	struct eng_side_cold cold;
	/* QPN of the remote host, named by responses; 0: not known */
	uint32_t remote_qpn;
	/* The latest one that was known before. When the host answers nothing any more, the error
	 * goes to it. */
	uint32_t remote_qpn_before;
	/* The one that the near gateway named when it opened the flow, and that may have ACKs; 0:
	 * none. */
	uint32_t near_qpn;
	uint32_t incarnation; /* as the near gateway's responder side has it */
	/* Retry counts and ACK timeout of the remote host's QP (struct eng_open). */
	uint8_t rnr_retry, retry, ack_timeout;
	/* state FAILED: the host's QP refused a request, or got the fatal one */
	bool host_ended;
	uint16_t open_pmtu; /* path MTU that was named then; 0: not known */
	/* The near gateway named remote_qpn when it opened the flow. */
	bool peer_named;
	/* The same, and the sides are not paired: another worker has one, or memory was short. */
	bool owes_pair;
	roce_psn promised;   /* state LOCATING: the remote host has ACKs up to here */
	uint64_t resume_seq; /* flow sequence of the near gateway's RESUME */
	/*
	 * State LOCATING_LOST: the host expects one of so many PSNs after search_from; 0: there is
	 * no search.
	 */
	uint32_t search;
	roce_psn search_from;
	/* State PROBING: its host acknowledged an earlier PSN then; 0: it did not. */
	rwy_time doubted;
	struct eng_requester *rp_next;
	struct wan_txflow *responses;
	struct eng_pair *pair;
	struct eng_requester *pair_next;
	uint64_t responses_sent, responses_taken;
	uint64_t answering; /* bytes of buffers in the flow of responses, and how many */
	uint32_t answering_bufs;
	/* Ring of answered READs and ATOMICs whose responses the near gateway does not have yet:
	 * its oldest entry, its capacity, a power of two that grows. */
	uint32_t wait_head, wait_cap;
	/*
	 * A message for the near gateway that found no buffer: it is sent as soon as one is free.
	 */
	struct eng_ctrl owed;
	struct eng_response_wait *wait;
	struct eng_response_wait wait_one; /* the first ring: there is always memory for one */
};

static_assert(
    offsetof(struct eng_requester, last_tx) == 2 * RWY_CACHE_LINE &&
        offsetof(struct eng_requester, reqr) == 4 * RWY_CACHE_LINE &&
        offsetof(struct eng_requester, drain) + CC_DRAIN_HOT == ENG_REQUESTER_LINES * RWY_CACHE_LINE,
    "what a packet touches is in the lines that are prefetched");

/* Its rare part; NULL: it has none. */
static inline struct eng_rare *eng_rare_of(struct eng_responder *rs)
{
	return rs->rare == &eng_rare_none ? NULL : (struct eng_rare *)(uintptr_t)rs->rare;
}

static inline struct eng_side_cold *eng_side_cold(struct eng_side *side)
{
	return side->is_requester ? &((struct eng_requester *)side)->cold
	                          : &((struct eng_responder *)side)->cold;
}

static inline const struct eng_side_cold *eng_side_cold_of(const struct eng_side *side)
{
	return side->is_requester ? &((const struct eng_requester *)side)->cold
	                          : &((const struct eng_responder *)side)->cold;
}

/* --- states.c: the only ways to change a state. Both assert that states.h lists the change. --- */
void eng_requester_enter(struct eng_requester *rq, enum eng_requester_state to);
void eng_responder_enter(struct eng_responder *rs, enum eng_responder_state to);

/* The connection ended with an error. */
static inline bool eng_failed(const struct eng_side *side)
{
	return side->state == (side->is_requester ? ENG_Q_FAILED : ENG_R_FAILED);
}

/* True while the QPN at the other end is unknown. */
static inline bool eng_unpaired(const struct eng_side *side)
{
	return side->learned == ENG_BY_NOBODY && !eng_failed(side);
}

/* rq->reqr is in use. */
static inline bool eng_requester_active(const struct eng_requester *rq)
{
	return rq->side.state != ENG_Q_IDLE && rq->side.state != ENG_Q_FAILED;
}

/* Requests are lost, and the PSN is known at which the host's QP ends. */
static inline bool eng_requester_ends(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_END_OWED || rq->side.state == ENG_Q_ENDING;
}

/* The local host has answered in this incarnation. */
static inline bool eng_requester_answered(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_RUNNING || eng_requester_ends(rq);
}

/* The local host is being asked which PSN it expects. */
static inline bool eng_requester_locating(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_LOCATING || rq->side.state == ENG_Q_LOCATING_LOST;
}

/* There was no memory for the question, or for the request that ends the QP. */
static inline bool eng_requester_owes_request(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_END_OWED || (eng_requester_locating(rq) && !rq->reqr.q.n);
}

/* Something of it found no memory, and is tried again at each tick. */
static inline bool eng_requester_tries(const struct eng_requester *rq)
{
	return rq->owes_control || rq->turn == ENG_TURN_UNQUEUED || eng_requester_owes_request(rq);
}

/* Nothing goes to the host before the flow has its turn (pair.c). */
static inline bool eng_requester_waits_turn(const struct eng_requester *rq)
{
	return !eng_requester_answered(rq) && !rq->responder && rq->turn != ENG_TURN_OUT;
}

#endif
