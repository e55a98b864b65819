/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine from inside. A connection between a local host L and a remote host R has two sides
 * here, one for each direction of its requests:
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
 * The layers of files: a file calls files of its own row or of a row below, and never in a circle.
 *
 *   engine  tunnel                                 creation, one turn, tunnels
 *   port  lan  info                                callbacks of wan/, packets of local hosts
 *   cm  expire  restore  tenant_set  settle        CM, sweep, journal, tenants, before the end
 *   responder_states       |  requester_states     tables: state and event -> function
 *   answer  request        |  deliver  response    the functions of the tables
 *   ack_policy  reuse      |  recover
 *   read_wait              |
 *   replay  cnp  uncarried |
 *   responder              |  requester            creation, start, end
 *   causal                 |                       order between connections
 *   admission              |                       who may begin a connection
 *   tenants  steer  mgmt   |  turns  send          which tunnel, when to send
 *   pair  hostrate  drain                          which QPNs, which rate
 *   emit  session  host  route  kept  journal      output and memory
 *   table  wheel  states  vni  msg                indices and messages
 *   carrier  config  timers                        calls passed to wan/, defaults, patience
 *
 * Thread: one engine belongs to one worker, as engine.h says.
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

#define ENG_RPS_MAX 1024 /* local hosts with a reaction point at once; others are not paced */
/* Packets of an unpaired flow in custody: more than Soft-RoCE sends unacknowledged, 129. */
#define ENG_UNPAIRED_MAX 160
#define ENG_PARKED_MAX   256 /* requests of a connection behind a READ of unknown response count */

struct eng_requester;
struct eng_pair;
struct eng_causal;

/*
 * The source of both QPNs: not known yet, CM messages, the host's first response, the far gateway.
 */
enum eng_learned { ENG_BY_NOBODY, ENG_BY_CM, ENG_BY_PROBE, ENG_BY_PEER };

/* The first member of either side, so that the table and the sweep treat both alike. */
struct eng_side {
	struct eng_key key;
	uint32_t hash;
	bool is_requester;
	uint8_t tunnel;
	uint8_t state;               /* enum eng_responder_state or eng_requester_state */
	uint8_t learned;             /* enum eng_learned */
	struct eng_side *chain;      /* in its bucket of the table */
	struct eng_side *dirty_next; /* in the list of sides with work at the end of the turn */
	bool dirty;                  /* it is in that list */
	rwy_time last;               /* last packet */
	rwy_time close_at;           /* disconnected: when it is forgotten; else RWY_NEVER */
	const char *error;           /* why it failed, or ""; static text */
	struct eng *e;               /* NULL: freed while in the dirty list */
	struct eng_tenant *tenant;   /* of key.tenant; it outlives its sides */
	struct eng_host *host;       /* the local host; it outlives its sides, too */
	uint64_t most;               /* most bytes that it ever held (memory.h) */
	/* In the ring of sides that wait for memory; NULL: not in it. */
	struct eng_side *wait_next, *wait_prev;
};

#define ENG_READS 4
#define ENG_EARLY 32 /* PSNs; bits of early_known */

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
	uint64_t Bps;   /* 0: not measured */
	uint64_t bytes; /* delivered since */
	rwy_time since; /* begin of the measurement; 0: none */
	bool impatient; /* the host repeats READs or ATOMICs before their answer can be here */
};

struct eng_responder {
	struct eng_side side;
	struct eng_requester *requester; /* the same connection's; NULL: not paired */
	uint64_t session;                /* number of its session, 0: none yet */
	uint32_t local_qpn;              /* QPN of the local host, where ACKs go; 0: not known */
	/*
	 * local_qpn of the incarnation before. When the far host gives up without an answer, the
	 * QPN is unknown, and the error goes to this one.
	 */
	uint32_t local_qpn_before;
	uint32_t incarnation; /* random; changes each time the connection begins again */
	/* ACKs are withheld because custody memory is short, or for a READ (read_wait.c) */
	bool ack_blocked;
	bool reads_expected; /* CM says that the local host may send READs and ATOMICs */
	/*
	 * Failed: requests that the host has ACKs for are lost, and no NAK can tell an idle host.
	 */
	bool untold;
	bool dreq_waits;  /* `dreq` has one */
	bool nak_refused; /* the request of nak_psn came, and was dropped for lack of memory */
	/* BTH MigReq of the local host's requests, copied into its responses */
	bool migreq;
	uint8_t custody_kind; /* enum eng_mem_kind: the kind that `custody` counts as */
	uint8_t tos, ttl;
	uint16_t pkey, sport;
	/* Retry counts and ACK timeout of the local host's QP, from CM (struct eng_open). */
	uint8_t rnr_retry, retry, ack_timeout;
	bool ack_too_late; /* it gives up before an ACK of the far site can come */
	uint8_t mode;      /* enum eng_ack_mode, valid while mode_set is tenant->modes_set */
	uint32_t mode_set;
	struct roce_resp resp;
	struct wan_txflow *requests;
	struct wan_rxflow *responses;
	struct rwy_bufq parked; /* requests behind a READ of unknown response count */
	struct eng_nexthop nh;
	struct eng_journal_entry *journal; /* NULL: nothing was acknowledged yet */
	rwy_time cnp_at;                   /* no CNP before this */
	uint64_t np_low;                   /* shortest queue since the last CNP, bytes */
	rwy_time np_at;                    /* when np_bytes was equal to `bytes` */
	uint64_t np_bytes;
	rwy_time single_ack_at; /* ACKs withheld: no single ACK before this */
	rwy_time acked_at;      /* the latest ACK or NAK that told the host of progress */
	/*
	 * The latest request of the host, or response to it. Its own responses do not count: they
	 * may belong to a new connection whose requests were lost.
	 */
	rwy_time asked_at;
	/* Duplicates are dropped until then (reuse.c); 0: none are. */
	rwy_time suppress_until;
	bool gap_seen; /* since the NAK of nak_psn the host sent a later PSN */
	/* The latest response to a READ or ATOMIC that went to the host. */
	rwy_time served_at;
	roce_psn nak_psn;                /* of the latest PSN sequence NAK */
	roce_psn gap_low;                /* lowest PSN after nak_psn that the host sent since */
	uint32_t naks;                   /* sent for nak_psn while the host did not go back to it */
	struct eng_read read[ENG_READS]; /* ring of the host's latest READs */
	uint32_t reads_asked;            /* READs of this incarnation */
	/* Bytes of buffers that the far host has not acknowledged, and how many. */
	uint64_t custody;
	uint32_t custody_bufs;
	/* Unpaired only: links of its host's list, the oldest first, and when the flow began. */
	struct eng_responder *half_next, *half_prev;
	rwy_time half_since;
	struct eng_leaving leaving;
	/* mode `end`: sequence of the first request not acknowledged early */
	uint64_t early_seq;
	uint64_t packets, bytes;         /* requests taken into custody */
	struct eng_keptq reads, atomics; /* responses kept for replays */
	uint64_t kept;                   /* bytes of the buffers of `reads` */
	uint32_t answered;               /* READs and ATOMICs of this incarnation */
	roce_psn settle_psn;             /* settling: its host had ACKs up to here at the begin */
	/* Ring of the connections that keep READ responses; NULL: not in it. */
	struct eng_responder *kept_next, *kept_prev;
	/*
	 * roce_content_crc of the requests at the first PSNs from resp.start on, and a bit for each
	 * that came.
	 */
	uint32_t early_crc[ENG_EARLY], early_known;
	struct eng_dreq dreq;
	/*
	 * Mode `causal` (causal.c): the record of its two hosts, NULL: not a member; its places in
	 * the record's lists: something in custody; acknowledged since the last list; ACKs wait for
	 * a beat.
	 */
	struct eng_causal *causal;
	bool causal_busy, causal_acked, causal_owed;
	bool marked; /* the next beat acknowledges what is before this PSN */
	roce_psn mark_psn;
	roce_msn mark_msn;
	struct eng_responder *busy_next, *busy_prev, *acked_next, *owed_next;
};

/* Sequence of a request that came by an earlier flow, or that this gateway made itself. */
#define ENG_NO_SEQ UINT64_MAX

/*
 * A READ or ATOMIC that the local host has answered. It counts as delivered when the near gateway
 * has its responses.
 */
struct eng_response_wait {
	uint64_t seq; /* flow sequence of the request */
	uint64_t idx; /* responses_sent after its last response */
};

/* Buffers held, by somebody (memory.h). Bytes. */
struct eng_mem {
	uint64_t held, most; /* of the kinds that are bounded together: now, and most ever */
	uint64_t kind[ENG_MEM_N];
};

/* A local host. Its sides share the record; it goes with the last of them. */
struct eng_host {
	struct eng_mem mem;
	uint32_t half_open;
	struct eng_responder *half_head, *half_tail; /* its unpaired flows, the oldest first */
	struct eng_tenant *tenant;
	uint32_t index; /* of the tenant */
	/* when people were last told that it wants more than its share; 0: never */
	rwy_time told_at;
	struct rwy_ip addr;
	uint32_t refs; /* sides */
	struct eng_host *chain;
	struct roce_reqr_host reqr; /* shared by the requester sides */
};

/* The flow of requests from the near gateway. */
enum eng_flow {
	ENG_FLOW_NONE,
	ENG_FLOW_FIRST,   /* opened; its first message decides how to go on */
	ENG_FLOW_OPEN,    /* its messages are requests */
	ENG_FLOW_DISCARD, /* rewound: messages are dropped until the flow is opened again */
	ENG_FLOW_LEFT,    /* ended by the near gateway, which expects nothing more from it */
};

/* Whether the first packet of an unpaired flow may go to the host (pair.c). */
enum eng_turn { ENG_TURN_NONE, ENG_TURN_WAITING, ENG_TURN_OUT };

struct eng_requester {
	struct eng_side side;
	struct eng_responder *responder; /* the same connection's; NULL: not paired */
	/* QPN of the remote host, named by responses; 0: not known */
	uint32_t remote_qpn;
	uint32_t incarnation; /* as the near gateway's responder side has it */
	uint8_t flow;         /* enum eng_flow */
	uint8_t turn;         /* enum eng_turn */
	bool tried;           /* it had a turn, and nobody answered */
	bool reads;           /* a READ came once */
	uint8_t questions;    /* state LOCATING: questions sent to the host */
	bool owes_control;    /* `owed` waits for a buffer */
	/* states ENDING and LOCATING_LOST: enum eng_end, why the host's QP ends */
	uint8_t end;
	/* The near gateway named remote_qpn when it opened the flow. */
	bool peer_named;
	uint16_t open_pmtu; /* path MTU that was named then; 0: not known */
	/* Retry counts and ACK timeout of the remote host's QP (struct eng_open). */
	uint8_t rnr_retry, retry, ack_timeout;
	uint64_t resume_seq; /* flow sequence of the near gateway's RESUME */
	roce_psn promised;   /* state LOCATING: the remote host has ACKs up to here */
	struct eng_rp *rp;   /* reaction point in whose queue it waits; NULL: none */
	struct eng_requester *rp_next;
	struct cc_drain drain; /* end to end: bytes that the near gateway may have under way */
	struct roce_reqr reqr;
	struct wan_rxflow *requests;
	struct wan_txflow *responses;
	struct eng_pair *pair;
	struct eng_requester *pair_next;
	struct eng_requester *wheel_next, *wheel_prev;
	rwy_time wheel_at; /* 0: not in the wheel */
	struct eng_nexthop nh;
	rwy_time last_tx;      /* the latest packet to the local host */
	uint64_t acked_seq;    /* one more than the last request that the local host acknowledged */
	uint64_t reported_seq; /* one more than the last request that was reported delivered */
	uint64_t responses_sent, responses_taken;
	uint64_t answering; /* bytes of buffers in the flow of responses, and how many */
	uint32_t answering_bufs;
	uint64_t received; /* bytes of buffers in reqr's queue */
	/* Ring of answered READs and ATOMICs whose responses the near gateway does not have yet. */
	struct eng_response_wait *wait;
	/* Its oldest entry, its length, its capacity: a power of two that grows. */
	uint32_t wait_head, wait_n, wait_cap;
	uint64_t packets, bytes; /* requests that the local host acknowledged */
	/*
	 * A message for the near gateway that found no buffer: it is sent as soon as one is free.
	 */
	struct eng_ctrl owed;
};

/* Unpaired flows that wait for their turn. */
struct eng_turns {
	struct eng_requester *head, *tail;
};

/* Pairing of the flows between two hosts: one unpaired flow at a time has its turn (pair.c). */
struct eng_pair {
	struct rwy_ip remote, local;
	uint32_t tenant;
	struct eng_pair *chain;
	struct eng_requester *turn; /* its first packet is out */
	/* These wait: those that had no turn yet, and those whose turn nobody answered. */
	struct eng_turns fresh, tried;
	uint32_t turns;
	/* After a turn without a response: a late one must not be taken for the next flow's. */
	rwy_time quiet_until;
	/* It had that turn; until then a response is its own. NULL: none. */
	struct eng_requester *late;
	rwy_time turn_end; /* from then on the turn may end without a response */
	struct eng_pair *all_next;
};

#define ENG_CM_HOSTS   512 /* a power of two */
#define ENG_CM_TENANTS 64  /* likewise */

/* CM messages of a tunnel that wait, by hash of their host, and of their tenant (mgmt.c). */
struct eng_cm_waiting {
	uint16_t host[ENG_CM_HOSTS], tenant[ENG_CM_TENANTS];
};

struct eng_tunnel {
	struct wan_tunnel *wan; /* NULL: this number is free */
	struct wan_txflow *mgmt;
	struct eng_cm_waiting cm; /* what is in mgmt */
	struct wan_rxflow *mgmt_rx;
	rwy_dur min_rtt;   /* smallest round trip of late, as of the last sweep */
	rwy_dur least_rtt; /* smallest ever, by any carrier: two hosts cannot connect in less */
	struct eng *e;
	unsigned idx;
	uint32_t sides; /* connection sides in it */
	bool up;        /* the gateway at the other end answers */
	bool removing;  /* it takes no new side, and goes with its last one */
};

/* Objects of one size; memory comes in chunks and is not given back before the engine ends. */
struct eng_slab {
	void *free;   /* list of free objects */
	void *chunks; /* list of chunks */
	size_t size;  /* of an object, bytes */
};

#define ENG_PMTUS 5 /* path MTUs: 256, 512 .. 4096 */

#define ENG_WHEEL_BITS  10
#define ENG_WHEEL_SLOTS (1u << ENG_WHEEL_BITS)
#define ENG_WHEEL_SHIFT 20 /* a tick is 2^20 ns, about a millisecond */

/* A tenant, as this worker has it. */
struct eng_tenant {
	struct eng_tenant_cfg cfg;
	struct eng_tenant_stats st;
	struct eng_prefix *prefix; /* its own copy */
	struct eng_mode mode[ENG_MODES_MAX];
	uint32_t modes_set;     /* changes with its modes; never 0 */
	struct roce_cm_tab *cm; /* NULL until its first CM message */
	struct eng_mem mem;
	uint64_t memory_max;       /* bytes that it holds at most */
	uint64_t plenty;           /* memory.c: bytes held of all below which it has room */
	uint64_t host_reserve;     /* cfg.reserve divided by its hosts */
	uint64_t host_share;       /* cfg.custody divided by its hosts */
	uint32_t hosts;            /* its local hosts with connections */
	uint64_t kept_share;       /* cfg.custody divided by keepers, bytes */
	uint32_t keepers;          /* its connections that keep READ responses */
	uint32_t sides, half_open; /* its sides; those responder sides that are unpaired */
	bool removing;             /* it takes no new side, and is freed with its last one */
};

/* Log lines about hosts that use what gateways do not carry. */
#define ENG_UNCARRIED_LOGS 16
struct eng_uncarried_log {
	rwy_time next;   /* no line before this */
	uint32_t silent; /* packets since the last line */
};

/* Settling (settle.h): the present pass over all connections, and the result of the last one. */
struct eng_settle {
	uint8_t state;    /* enum eng_settle_state */
	bool marking;     /* the first pass: sets eng_responder.settle_psn */
	uint32_t cursor;  /* table slot that is looked at next */
	rwy_time at;      /* the next step; RWY_NEVER: none */
	rwy_time turn_at; /* CLOSING lasts until then at most, SETTLING at least */
	uint32_t flows, flows_left;
	uint64_t bytes, bytes_left;
};

struct eng {
	struct eng_cfg cfg;
	const struct eng_ops *ops;
	void *ctx;
	struct rwy_bufs bufs;
	struct eng_counters c;
	struct eng_states_seen seen;
	/* The last one is for failed connections of removed tunnels. */
	struct eng_tunnel tunnel[ENG_TUNNELS_MAX + 1];
	struct wan_fec_code *fec_code;       /* shared by its tunnels, see wan_cfg */
	const struct eng_steering *steering; /* the caller's; NULL: none */
	struct eng_side **table;             /* hash table of both sides */
	/* a bit for each slot in use: the sweep skips empty ones */
	uint64_t *occupied;
	uint32_t table_mask;
	uint64_t hash_seed;        /* of eng_key_hash */
	uint32_t sides, half_open; /* all sides; unpaired responder sides */
	uint32_t paired;           /* connections with both sides here */
	uint64_t sessions;         /* opened since the start */
	struct eng_side *dirty_head, *dirty_tail;
	struct eng_slab responder_slab, requester_slab, pair_slab, host_slab;
	struct eng_pair *pairs[256];
	struct eng_host *hosts[256];
	struct eng_pair *pair_list;
	struct eng_tenant **tenant;  /* by index, NULL: there is none; [0] is the plain LAN */
	uint32_t tenant_slots;       /* length of that array */
	uint32_t *vni_slot;          /* hash table by VNI: 1 + index, 0: empty */
	uint32_t vni_mask, vni_used; /* vni_used counts slots of removed tenants, too */
	struct eng_requester *wheel[ENG_WHEEL_SLOTS];
	uint32_t wheel_n;
	struct eng_causal *causal[256], *causal_due; /* by hash; those whose ACKs wait for a beat */
	rwy_time causal_at;                          /* the first of these beats */
	/* reaction points of local hosts: by hash, and all */
	struct eng_rp *rp[256], *rp_list;
	uint32_t rps;
	uint64_t wheel_tick;          /* ticks up to here have fired */
	struct eng_mem mem;           /* of all */
	uint32_t mem_bufs[ENG_MEM_N]; /* the same in buffers */
	uint64_t reserved;            /* bytes of cfg.custody_total that tenants reserved */
	uint64_t plenty;              /* memory.c: bytes held below which every tenant has room */
	uint64_t common;              /* bytes held above the reservations of their tenants */
	uint64_t host_reserve;        /* cfg.reserve divided by its hosts */
	/* cfg.custody_total divided by the local hosts with connections */
	uint64_t host_share;
	uint32_t hosts_n;
	uint32_t payload_part[ENG_PMTUS];
	uint32_t waiting_n;
	struct eng_side *waiting; /* ring of sides that wait for memory, the longest first */
	uint32_t modes_set;       /* the latest number of eng_tenant.modes_set */
	uint64_t kept_share;      /* cfg.read_cache_total divided by keepers */
	uint32_t keepers;         /* connections that keep some READ responses */
	/* The keeper that is looked at next; NULL: there is none. */
	struct eng_responder *kept_hand;
	/* Bytes of ATOMIC records beyond each connection's first few. */
	uint64_t kept_atomics;
	struct {
		rwy_time told_at; /* latest line in the log; 0: none */
		uint64_t untold;  /* packets since */
	} refusals;               /* admission.c */
	uint64_t rng;
	uint32_t sweep; /* table slot that the sweep looks at next */
	rwy_time sweep_at;
	uint32_t *journal_free; /* numbers of free journal entries */
	uint32_t journal_free_n;
	struct eng_orphan *orphans; /* entries of an earlier process, by VNI */
	uint32_t orphans_n;
	bool closing; /* eng_free runs: journal entries stay for the next process, unless settled */
	struct eng_settle settle;
	/* Number of requester sides that wait for the turn of pairing, or have it. */
	uint32_t learning;
	rwy_time started;
	rwy_time now;
	struct eng_uncarried_log uncarried[ENG_UNCARRIED_LOGS]; /* by the hash of the host */
};

/* NULL: no such tenant, or it is being removed. */
static inline struct eng_tenant *eng_tenant(const struct eng *e, uint32_t tenant)
{
	struct eng_tenant *t = tenant < e->tenant_slots ? e->tenant[tenant] : NULL;

	return t && !t->removing ? t : NULL;
}

/* --- states.c: the only ways to change a state. Both assert that states.h lists the change. --- */
void eng_requester_enter(struct eng_requester *rq, enum eng_requester_state to);
void eng_responder_enter(struct eng_responder *rs, enum eng_responder_state to);

/* Bucket, 0..255, of the tables by local host. */
static inline uint8_t eng_host_hash(const struct rwy_ip *host)
{
	return (uint8_t)(host->b[15] ^ host->b[14] << 3 ^ host->b[13]);
}

#define ENG_SIDE_LINES 6 /* cache lines of a side that a packet touches */

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

/* The local host has answered in this incarnation. */
static inline bool eng_requester_answered(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_RUNNING || rq->side.state == ENG_Q_ENDING;
}

/* The local host is being asked which PSN it expects. */
static inline bool eng_requester_locating(const struct eng_requester *rq)
{
	return rq->side.state == ENG_Q_LOCATING || rq->side.state == ENG_Q_LOCATING_LOST;
}

/* Bytes that a packet counts: a small one still takes a whole buffer. */
static inline uint64_t eng_buf_cost(const struct eng *e, const struct rwy_buf *b)
{
	return b->len > e->cfg.buf_cost ? b->len : e->cfg.buf_cost;
}

/* --- modes.c --- */
/* The mode for the requests of this key. */
enum eng_ack_mode eng_mode_of(const struct eng_tenant *t, const struct eng_key *k);
/* Looks up the mode of the connection's two hosts and keeps it in rs. */
enum eng_ack_mode eng_mode_find(const struct eng_responder *rs);
/* t gets these exceptions (copied) and its present cfg.ack_mode. */
void eng_modes_set(struct eng *e, struct eng_tenant *t, const struct eng_mode *mode, unsigned n);

/* The ack mode that the configuration has for this connection. */
static inline enum eng_ack_mode eng_mode_wanted(const struct eng_responder *rs)
{
	return rs->mode_set == rs->side.tenant->modes_set ? (enum eng_ack_mode)rs->mode : eng_mode_find(rs);
}

/* The ack mode that decides for this connection; `causal` where order can be kept (causal.h). */
static inline enum eng_ack_mode eng_ack_mode(const struct eng_responder *rs)
{
	enum eng_ack_mode m = eng_mode_wanted(rs);

	return m == ENG_ACK_CAUSAL && !rs->causal ? ENG_ACK_END : m;
}

/* The side's tunnel; NULL: it was removed. */
static inline struct wan_tunnel *eng_wan(const struct eng_side *side)
{
	return side->e->tunnel[side->tunnel].wan;
}

#endif
