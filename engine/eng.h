/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's inside. A connection between local host L and remote host R has two sides here:
 *
 *   near: L's requests. Key (L, R, R's QPN), as L's packets carry it. We are its responder; packets go into
 * the WAN flow `req`, the answers come back on the WAN flow `rsp`. far:  R's requests. Key (R, L, L's QPN).
 * We are the requester towards L; requests come from the WAN flow `req`, the answers go out on `rsp`.
 *
 * L's *responses* carry the key of the responder side too, so one lookup serves all packets from the LAN;
 * near->far leads on. The two sides find each other when the connection is paired (pair.c).
 */
#ifndef ENGINE_ENG_H
#define ENGINE_ENG_H

#include "cc/drain.h"
#include "engine/engine.h"
#include "engine/msg.h"
#include "engine/states.h"
#include "roce/build.h"
#include "roce/cm.h"
#include "roce/parse.h"
#include "roce/reqr.h"
#include "roce/resp.h"

#define ENG_RPS_MAX      1024 /* hosts with a reaction point at once; more than these get what they take */
#define ENG_UNPAIRED_MAX 512  /* packets of an unpaired flow in custody */
#define ENG_PARKED_MAX   256

struct eng_requester;
struct eng_pair;

enum eng_learned { ENG_BY_NOBODY, ENG_BY_CM, ENG_BY_PROBE, ENG_BY_PEER };

/* What both sides have. The first member of each, so that the tables and the sweep treat them alike. */
struct eng_side {
	struct eng_key key;
	uint32_t hash;
	bool is_requester;
	uint8_t tunnel;
	uint8_t state;          /* enum eng_responder_state, enum eng_requester_state */
	uint8_t learned;        /* enum eng_learned */
	struct eng_side *chain; /* table bucket */
	struct eng_side *dirty_next;
	bool dirty;
	rwy_time last;     /* last packet */
	rwy_time close_at; /* RWY_NEVER, or when to forget it (disconnected) */
	const char *error;
	struct eng *e;
	struct eng_tenant *tenant; /* of key.tenant; stays while a side is in it */
};

#define ENG_READS 4

/* A READ that the local host asked. */
struct eng_read {
	roce_psn psn;
	uint32_t rkey, len;
	uint64_t va;
};

/*
 * An answer that was served, for a host that lost it. Of a READ it is the packet; of an ATOMIC what it found.
 */
struct eng_kept {
	uint64_t serial; /* roce_resp_serial of its PSN */
	union {
		struct rwy_buf *buf; /* its msn: n->answered when it was kept */
		uint64_t original;
	};
};

/* By serial. A power of two, grows; no memory before the first. */
struct eng_keptq {
	struct eng_kept *at;
	uint32_t head, n, cap;
};

struct eng_responder {
	struct eng_side side;
	struct eng_requester *requester; /* NULL until paired */
	uint64_t session;                /* its number, 0: none yet */
	uint32_t local_qpn;              /* L's QPN: where ACKs go; 0: not known */
	uint32_t
	    local_qpn_before; /* of the life before this one: who is told when the far host never answers */
	uint32_t incarnation;
	bool ack_blocked; /* acknowledging is held back for lack of memory */
	bool migreq;
	uint8_t tos, ttl;
	uint16_t pkey, sport;
	uint8_t rnr_retry, retry; /* of L's QP from CM, 255 unknown */
	struct roce_resp resp;
	struct wan_txflow *requests;
	struct wan_rxflow *responses;
	struct rwy_bufq parked; /* requests behind a READ of unknown response count */
	struct eng_nexthop nh;
	struct eng_journal_entry *journal; /* NULL: nothing promised yet */
	rwy_time cnp_at;
	uint64_t np_low; /* shortest queue since the last CNP for it, bytes */
	rwy_time np_at;  /* when np_bytes was n->bytes */
	uint64_t np_bytes;
	rwy_time single_ack_at; /* held: not another acknowledge before */
	rwy_time acked_at;      /* the host was last told that more has arrived */
	rwy_time asked_at; /* the host last sent a request or got an answer. Not what it answers: that may
	                      already be of a new connection whose own requests were lost */
	rwy_time suppress_until; /* what it sends until then is not looked at; 0: it is, see near_req.c */
	bool gap_seen;
	rwy_time served_at; /* the last answer to a READ or ATOMIC went to the host */
	roce_psn nak_psn;
	roce_psn gap_low;                /* lowest PSN beyond the gap that the host sent since */
	uint32_t naks;                   /* of nak_psn, without the host going back to it */
	struct eng_read read[ENG_READS]; /* the latest READs asked, a ring */
	uint32_t reads_asked;
	uint64_t custody; /* buffer memory of what the far host has not acknowledged */
	uint64_t packets, bytes;
	struct eng_keptq reads, atomics; /* answers served, for replays */
	uint64_t kept;                   /* what the buffers of `reads` take */
	uint32_t answered;               /* READs and ATOMICs */
	struct eng_responder *kept_next,
	    *kept_prev; /* ring of those that keep READ responses; NULL: not in it */
};

#define ENG_NO_SEQ                                                                                           \
	UINT64_MAX /* a request that the present flow has no number for: of an earlier one, or ours */

/* A READ or ATOMIC the host has answered, waiting until the answer is in the near gateway's hands. */
struct eng_response_wait {
	uint64_t seq; /* flow sequence of the request */
	uint64_t idx; /* count of answers sent on rsp when its last one was */
};

/* A local host that we ask. All requester sides towards it share the record, and it goes with the last of
 * them. */
struct eng_host {
	struct rwy_ip addr;
	uint32_t tenant;
	uint32_t refs;
	struct eng_host *chain;
	struct roce_reqr_host reqr;
};

/* The flow of requests from the near gateway. */
enum eng_flow {
	ENG_FLOW_NONE,
	ENG_FLOW_FIRST, /* opened; its first message decides how to go on */
	ENG_FLOW_OPEN,
	ENG_FLOW_DISCARD, /* rewound: its messages are dropped until it is opened anew */
	ENG_FLOW_LEFT,    /* the near gateway itself ended it: it waits for nothing that came by it */
};

/* Of an unpaired flow: may its first packet go to the host (pair.c)? */
enum eng_turn { ENG_TURN_NONE, ENG_TURN_WAITING, ENG_TURN_OUT };

struct eng_requester {
	struct eng_side side;
	struct eng_responder *responder; /* NULL until paired */
	struct eng_host *host;           /* NULL: there was no memory */
	uint32_t remote_qpn;             /* R's QPN: what L's answers carry; 0: not known */
	uint32_t incarnation;
	uint8_t flow;       /* enum eng_flow */
	uint8_t turn;       /* enum eng_turn */
	uint8_t questions;  /* LOCATING: how often the host was asked which PSN it expects */
	bool peer_named;    /* the near gateway named R's QPN when it opened the flow */
	uint16_t open_pmtu; /* what the near gateway knew when it opened the flow */
	uint8_t rnr_retry, retry;
	uint64_t resume_seq; /* flow sequence of the near gateway's RESUME */
	roce_psn promised;   /* LOCATING: the near gateway's host was acknowledged up to here */
	struct eng_rp *rp;   /* it waits for its turn there; NULL: it does not */
	struct eng_requester *rp_next;
	struct cc_drain drain; /* end to end: what the near gateway may have under way */
	struct roce_reqr reqr;
	struct wan_rxflow *requests;
	struct wan_txflow *responses;
	struct eng_pair *pair;
	struct eng_requester *pair_next;
	struct eng_requester *wheel_next, *wheel_prev;
	rwy_time wheel_at; /* 0: not in the wheel */
	struct eng_nexthop nh;
	rwy_time last_tx;      /* something was sent to L */
	uint64_t acked_seq;    /* one more than the last request the host acknowledged */
	uint64_t reported_seq; /* one more than the last reported delivered */
	uint64_t responses_sent, responses_taken;
	struct eng_response_wait *wait; /* ring, power of two, grows */
	uint32_t wait_head, wait_n, wait_cap;
	uint64_t packets, bytes;
};

/* Pairing of the flows of one (remote, local) address pair: one unpaired flow at a time (pair.c). */
struct eng_pair {
	struct rwy_ip remote, local;
	uint32_t tenant;
	struct eng_pair *chain;
	struct eng_requester *turn;        /* whose first packet is out */
	struct eng_requester *head, *tail; /* waiting */
	rwy_time quiet_until; /* after a turn without an answer: a late answer must not name the wrong flow */
	rwy_time turn_end;
	struct eng_pair *all_next;
};

struct eng_tunnel {
	struct wan_tunnel *wan; /* NULL: this number is free */
	struct wan_txflow *mgmt;
	struct wan_rxflow *mgmt_rx;
	rwy_dur min_rtt;   /* of the WAN, as of the last sweep */
	rwy_dur least_rtt; /* the least it ever was, by any carrier: two hosts cannot agree in less */
	struct eng *e;
	unsigned idx;
	uint32_t sides; /* that are in it */
	bool removing;  /* takes nothing new; gone with its last side */
};

struct eng_slab {
	void *free;
	void *chunks;
	size_t size;
};

#define ENG_WHEEL_BITS  10
#define ENG_WHEEL_SLOTS (1u << ENG_WHEEL_BITS)
#define ENG_WHEEL_SHIFT 20 /* a tick is 2^20 ns, about a millisecond */

/* A tenant of this worker. */
struct eng_tenant {
	struct eng_tenant_cfg cfg;
	struct eng_tenant_stats st;
	struct eng_prefix *prefix; /* its own copy */
	struct roce_cm_tab *cm;    /* NULL until its first CM message */
	uint64_t custody;
	uint64_t kept_share; /* cfg.custody, for each of its connections that keep READ responses */
	uint32_t keepers;    /* these */
	uint32_t sides, half_open;
	bool removing; /* takes nothing new; freed with its last side */
};

struct eng {
	struct eng_cfg cfg;
	const struct eng_ops *ops;
	void *ctx;
	struct rwy_bufs bufs;
	struct eng_counters c;
	struct eng_states_seen seen;
	struct eng_tunnel
	    tunnel[ENG_TUNNELS_MAX + 1]; /* the last: of failed connections whose tunnel is gone */
	struct eng_ways *ways;
	struct eng_side **table; /* hash table of both sides */
	uint64_t *occupied;      /* a bit a slot, for the sweep: most slots have nothing */
	uint32_t table_mask;
	uint32_t sides, half_open;
	uint32_t paired;   /* both sides of connections that belong together */
	uint64_t sessions; /* that ever were */
	struct eng_side *dirty_head, *dirty_tail;
	struct eng_slab responder_slab, requester_slab, pair_slab, host_slab;
	struct eng_pair *pairs[256];
	struct eng_host *hosts[256]; /* as many as there are requester sides, at most */
	struct eng_pair *pair_list;
	struct eng_tenant **tenant;  /* by index, NULL: there is none; [0] is the plain LAN */
	uint32_t tenant_slots;       /* places */
	uint32_t *vni_slot;          /* hash table: 1 + index by VNI, 0: empty */
	uint32_t vni_mask, vni_used; /* slots that are not empty, those of tenants that are gone too */
	struct eng_requester *wheel[ENG_WHEEL_SLOTS];
	uint32_t wheel_n;
	struct eng_rp *rp[256], *rp_list; /* local hosts that have asked for less: by hash, all */
	uint32_t rps;
	uint64_t wheel_tick; /* ticks up to here have fired */
	uint64_t custody;    /* the same, all responder sides */
	uint64_t reserved;   /* of cfg.custody_total, by tenants */
	uint64_t common;     /* of custody, what is above its tenant's reservation */
	uint64_t kept;       /* READ responses kept for replays, of all responder sides */
	uint64_t kept_share; /* cfg.read_cache_total, for each of those that keep some */
	uint32_t kept_bufs, keepers;
	struct eng_responder *kept_hand; /* one of them, NULL: there is none */
	uint64_t kept_atomics;           /* memory of records above the first few of each */
	uint64_t rng;
	uint32_t sweep; /* table slot of the idle sweep */
	rwy_time sweep_at;
	uint32_t *journal_free; /* free entries of the journal */
	uint32_t journal_free_n;
	struct eng_orphan *orphans; /* entries of an earlier process, by VNI */
	uint32_t orphans_n;
	bool closing;      /* eng_free: what was promised stays promised */
	uint32_t learning; /* requester sides that wait for a turn or have one */
	rwy_time started;
	rwy_time now;
};

static inline struct eng_tenant *eng_tenant(const struct eng *e, uint32_t tenant)
{
	struct eng_tenant *t = tenant < e->tenant_slots ? e->tenant[tenant] : NULL;

	return t && !t->removing ? t : NULL;
}

/* --- states.c: the only ways to another state. Asserts that the state may follow. --- */
void eng_requester_enter(struct eng_requester *rq, enum eng_requester_state to);
void eng_responder_enter(struct eng_responder *rs, enum eng_responder_state to);

/* A bucket of tables by local host. */
static inline uint8_t eng_host_hash(const struct rwy_ip *host)
{
	return (uint8_t)(host->b[15] ^ host->b[14] << 3 ^ host->b[13]);
}

#define ENG_SIDE_LINES 6 /* cache lines of a side that a packet touches */
#define ENG_LINE       64

static inline void eng_fetch(const void *p, unsigned lines)
{
	for (unsigned i = 0; i < lines; i++)
		__builtin_prefetch((const uint8_t *)p + i * ENG_LINE);
}

static inline bool eng_failed(const struct eng_side *side)
{
	return side->state == (side->is_requester ? ENG_Q_FAILED : ENG_R_FAILED);
}

/* Nobody has said yet which QPN is at the other end. */
static inline bool eng_unpaired(const struct eng_side *side)
{
	return side->learned == ENG_BY_NOBODY && !eng_failed(side);
}

/* f->reqr is in use. */
static inline bool eng_requester_active(const struct eng_requester *rq)
{
	return rq->side.state != ENG_Q_IDLE && rq->side.state != ENG_Q_FAILED;
}

/* L has answered in this incarnation. */
static inline bool eng_requester_answered(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_RUNNING || rq->side.state == ENG_Q_ENDING;
}

/* The host is asked which PSN it expects. */
static inline bool eng_requester_locating(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_LOCATING || rq->side.state == ENG_Q_LOCATING_LOST;
}

/* What a packet in custody costs: a small one holds a whole buffer. */
static inline uint64_t eng_buf_cost(const struct eng *e, const struct rwy_buf *b)
{
	return b->len > e->cfg.buf_cost ? b->len : e->cfg.buf_cost;
}

/* One unpaired flow more, or less. */
static inline void eng_count_half_open(struct eng_responder *rs, int by)
{
	rs->side.e->half_open += (uint32_t)by;
	rs->side.tenant->half_open += (uint32_t)by;
}

/* What a tenant has in custody above its reservation. */
static inline uint64_t eng_custody_over(const struct eng_tenant *t)
{
	return t->custody > t->cfg.reserve ? t->custody - t->cfg.reserve : 0;
}

static inline void eng_custody_charge(struct eng_responder *rs, uint64_t bytes)
{
	uint64_t over = eng_custody_over(rs->side.tenant);

	rs->custody += bytes;
	rs->side.tenant->custody += bytes;
	rs->side.e->custody += bytes;
	rs->side.e->common += eng_custody_over(rs->side.tenant) - over;
}

/* The caller takes it off n->custody. */
static inline void eng_custody_release(struct eng_responder *rs, uint64_t bytes)
{
	uint64_t over = eng_custody_over(rs->side.tenant);

	rs->side.tenant->custody -= bytes;
	rs->side.e->custody -= bytes;
	rs->side.e->common -= over - eng_custody_over(rs->side.tenant);
}

/* Whether the packet in the buffer is IPv6. Only for packets that parsed. */
static inline bool rwy_buf_is6(const struct rwy_buf *b)
{
	return b->data[0] >> 4 == 6;
}

static inline struct wan_tunnel *eng_wan(const struct eng_side *side)
{
	return side->e->tunnel[side->tunnel].wan;
}

#endif
