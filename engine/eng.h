/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine from inside: the engine itself, its tenants, local hosts, tunnels. connection.h has
 * connections.
 *
 * The layers of files: a file calls files of its own row or of a row below, and never in a circle.
 *
 *   engine  tunnel                                 creation, one turn, tunnels
 *   port  standby_port  note  lan  info            callbacks of wan/, packets of local hosts
 *   standby                                        one of a pair: who serves, who stores
 *   takeover                                       what is stored becomes connections
 *   cm  expire  restore  tenant_set  settle  peer  CM, sweep, journal, tenants, ends of processes
 *   responder_states       |  requester_states     tables: state and event -> function
 *   answer  request        |  deliver  response    the functions of the tables
 *   ack_policy  reuse      |  recover
 *   read_wait              |
 *   replay  cnp  uncarried |
 *   responder              |  requester            creation, start, end
 *                          |  reported            what the near gateway is told
 *   causal                 |                       order between connections
 *   admission              |                       who may begin a connection
 *   tenants  steer  mgmt   |  turns  send          which tunnel, when to send
 *   pair  hostrate  drain                          which QPNs, which rate
 *   emit  session  host  route  kept  journal      output and memory
 *   table  wheel  states  vni  msg  place          indices and messages
 *   board  lanes                                   what several workers share
 *   carrier  config  timers  open_info             calls passed to wan/, defaults, patience
 *   recorder  why                                  the flight recorder
 *
 * Thread: one engine belongs to one worker, as engine.h says.
 */
#ifndef ENGINE_ENG_H
#define ENGINE_ENG_H

#include "engine/board.h"
#include "engine/connection.h"
#include "engine/engine.h"
#include "engine/lanes.h"
#include "engine/msg.h"
#include "engine/states.h"
#include "roce/build.h"
#include "roce/cm.h"
#include "roce/parse.h"
#include "roce/reqr.h"
#include "rwy/slab.h"
#include "wan/claim.h"

#define ENG_RPS_MAX 1024 /* local hosts with a reaction point at once; others are not paced */

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
	rwy_time shared_at;         /* when the other workers were last told of it (hosts.h) */
};

/* Unpaired flows that wait for their turn. */
struct eng_turns {
	struct eng_requester *head, *tail;
};

/* Pairing of the flows between two hosts: one unpaired flow at a time has its turn (pair.c). */
struct eng_pair {
	struct eng *e;
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
	rwy_time turn_end; /* its end without a response, if the host had no READs to answer */
	/* Flows whose turn nobody answered, while the host answered nothing at all. */
	uint32_t silent;
	/* Its host may still answer what a gateway before asked: it was not heard since. */
	bool before;
	rwy_dur doubt; /* these answer now: quiet_until moves so far with each answer; 0: no */
	bool own_turn; /* the directory's turn `right` is this engine's */
	/* The turn of its addresses in its tenant. The tenant may be gone when it is given back. */
	uint32_t right;
	struct eng_pair *all_next;
};

#define ENG_CM_HOSTS   512 /* a power of two */
#define ENG_CM_TENANTS 64  /* likewise */

/* CM messages of a tunnel that wait, by hash of their host, and of their tenant (mgmt.c). */
struct eng_cm_waiting {
	uint16_t host[ENG_CM_HOSTS], tenant[ENG_CM_TENANTS];
};

/* Messages about processes (peer.h). */
struct eng_peer {
	struct wan_txflow *tx;
	struct wan_rxflow *rx;
	bool settled;    /* the other gateway's process owes nothing when it ends */
	bool unheard;    /* it does not know yet that this one serves again */
	bool unanswered; /* in the present walk, or the last one, some LOST had no answer */
	/* SETTLED or SERVING: what it was told last, and what it is to be told; 0: nothing */
	uint8_t word, owed;
	uint8_t resets;   /* flows that it reset since its start */
	rwy_time lost_at; /* when a process of it ended that had not settled; 0: none did */
	/* When it is told of the next connections that it lost; RWY_NEVER: of none. */
	rwy_time at;
	uint32_t cursor; /* the table slot of these */
};

struct eng_tunnel {
	struct wan_tunnel *wan; /* NULL: this number is free */
	struct wan_txflow *mgmt;
	struct eng_cm_waiting cm; /* what is in mgmt */
	struct wan_rxflow *mgmt_rx;
	struct eng_peer peer;
	rwy_dur min_rtt;   /* smallest round trip of late, as of the last sweep */
	rwy_dur least_rtt; /* smallest ever, by any carrier: two hosts cannot connect in less */
	struct eng *e;
	unsigned idx;
	uint32_t sides;       /* connection sides in it */
	uint8_t peer_workers; /* eng_open.workers of the other gateway */
	bool up;              /* the gateway at the other end answers */
	bool met;             /* it has answered (eng_lanes_missed_restart) */
	bool removing;        /* it takes no new side, and goes with its last one */
	bool leaves;          /* the same, and it is not the witness's of a pair */
	rwy_time remove_at;   /* since when it is `removing` */
};

struct eng_stored;

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
	uint32_t kept, kept_left; /* eng_settle_info.kept */
	uint32_t own;             /* connections; in a pair those that the standby does not have */
	bool told;                /* far gateways were told that nothing is owed */
	uint32_t unheard;         /* tunnels with eng_peer.unheard */
	uint64_t bytes, bytes_left;
};

/* One of a pair of gateways (standby.h). */
struct eng_sb {
	/* enum eng_sb_state; other: as the other one said, NONE: it is silent */
	uint8_t state, other;
	uint8_t said;        /* the state that it was told, plus 1; 0: nothing */
	rwy_time said_at;    /* last try to tell; in ASKING it is told again `silence` later */
	rwy_time deaf_until; /* ASKING: before this, messages of the other one may be old */
	/*
	 * A proof of the witness's, with which a claim is believed at once: the one that the other
	 * gateway told us, and the one that it was told.
	 */
	struct wan_proof proof, told;
	/* Terms: of this gateway and of the other one; 0: it did not serve. */
	uint64_t term, other_term;
	rwy_time paths_at; /* PAIRED: when the standby is told again what paths carry */
	bool stuck;        /* a copy could not be made */
	bool whole;        /* PAIRING: the standby has everything */
	uint32_t round;    /* how often copies have begun */
	rwy_time copy_at;  /* after that: no copies before this */
	/*
	 * eng.modes_set when this standby had everything (READY), and it has taken that over or
	 * would; 0: not so. Modes that are set later may have promised what it does not know.
	 */
	uint32_t complete;
	/*
	 * after a takeover: when hosts are asked again, RWY_NEVER: no more; and how long until then
	 */
	rwy_time ask_at;
	rwy_dur ask_wait;
	bool asked;         /* that was done for the first time */
	rwy_time since, at; /* the latest change; the timer of the state, or RWY_NEVER */
	rwy_dur silence;    /* after which the standby takes over, at the earliest */
	bool still;         /* it serves, and stood still for so long (eng_sb_stood_still) */
	uint8_t still_from; /* enum eng_sb_state: the first one in which that is noticed */
	uint32_t cursor;    /* a walk over all connections: the next table slot */
	/*
	 * Several workers (board.h). The leader: its state as others follow it. A follower: that of
	 * the leader which it follows; the standby may lack copies of it until they begin anew.
	 */
	struct eng_board_lead lead;
	bool broken;
	/* tunnels that are still to be taken from the other gateway, a bit each */
	uint64_t taking;
	uint8_t pinned; /* the witness's tunnel, plus 1, while it is asked who serves; else 0 */
	/*
	 * For reports. The event at work; plus 1, those that made it take over, serve, and lose its
	 * standby; when.
	 */
	uint8_t event, taken, took_by, lost_by;
	rwy_time took_at, lost_at;
	struct eng_stored *stored;
	uint32_t stored_n;
	struct eng_responder *copies;   /* all with copies */
	struct eng_responder *releases; /* those that have something to release */
	rwy_time beat_at;               /* the next beat of these; RWY_NEVER: there are none */
};

/* The flight recorder. */
struct eng_rec {
	struct eng_recorder_ring *ring; /* NULL: not made yet, or freed */
	uint32_t newest;
	rwy_time at;                        /* of the newest */
	struct eng_record_window strangers; /* of what has no connection */
	uint8_t reuse;                      /* the case that decided last (reuse.c) */
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
	uint32_t steering_gen;               /* changes with each set */
	struct eng_side **table;             /* hash table of both sides */
	/* a bit for each slot in use: the sweep skips empty ones */
	uint64_t *occupied;
	uint32_t table_mask;
	uint64_t hash_seed;        /* of eng_key_hash */
	uint32_t sides, half_open; /* all sides; unpaired responder sides */
	uint32_t paired;           /* connections with both sides here */
	uint64_t sessions;         /* opened since the start */
	struct eng_side *dirty_head, *dirty_tail;
	struct rwy_slab responder_slab, requester_slab, pair_slab, host_slab, copy_slab, stored_slab;
	struct eng_sb sb;
	uint32_t lanes_seen; /* eng_lanes.changes */
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
	rwy_time journal_until;     /* cfg.journal_for is over */
	struct eng_orphan *orphans; /* entries of an earlier process, by VNI and key */
	uint32_t orphans_n;
	rwy_time restore_at; /* some wait: they are tried then; else RWY_NEVER */
	struct eng_restore {
		uint32_t cursor;  /* orphan that is tried next */
		uint32_t left;    /* orphans that are not yet tried in this pass; 0: none goes on */
		uint32_t wanted;  /* one more than the orphan whose host sends; 0: none */
		bool took, waits; /* in this pass: one was taken up; one waits still */
		rwy_dur wait;     /* between the last two passes */
	} restore;
	/* eng_free runs: journal entries stay for the next process, unless settled */
	bool closing;
	struct eng_settle settle;
	rwy_time peer_at; /* the first of eng_tunnel.peer.at */
	/* Number of requester sides that wait for the turn of pairing, or have it. */
	uint32_t learning;
	rwy_time started;
	rwy_time now;
	struct eng_rec rec;
	struct eng_uncarried_log uncarried[ENG_UNCARRIED_LOGS]; /* by the hash of the host */
};

/* NULL: no such tenant, or it is being removed. */
static inline struct eng_tenant *eng_tenant(const struct eng *e, uint32_t tenant)
{
	struct eng_tenant *t = tenant < e->tenant_slots ? e->tenant[tenant] : NULL;

	return t && !t->removing ? t : NULL;
}

/* Neither the engine nor the tenant may have one more side. */
static inline bool eng_is_full(const struct eng *e, const struct eng_tenant *t)
{
	return e->sides >= e->cfg.conns_max || (t->cfg.flows_max && t->sides >= t->cfg.flows_max);
}

/* Bucket, 0..255, of the tables by local host. */
static inline uint8_t eng_host_hash(const struct rwy_ip *host)
{
	return (uint8_t)(host->b[15] ^ host->b[14] << 3 ^ host->b[13]);
}

/* Bytes that a packet counts: a small one still takes a whole buffer. */
static inline uint64_t eng_buf_cost(const struct eng *e, const struct rwy_buf *b)
{
	return b->len > e->cfg.buf_cost ? b->len : e->cfg.buf_cost;
}

/* --- recorder.c (recorder.h) --- */
/* Takes or makes the ring of e->cfg. RWY_ENOMEM; RWY_EINVAL: its entries are no power of two. */
int eng_recorder_init(struct eng *e);
void eng_recorder_fini(struct eng *e);
/*
 * Records a decision about the side: kind, from, to, psn and value of `what`. The rest is filled
 * in. Nothing while the engine ends.
 */
void eng_record_side(struct eng_side *side, const struct eng_record *what, rwy_time now);
/* The same without a side. requester: k is of requests that come over the WAN. */
void eng_record_key(
    struct eng *e, const struct eng_key *k, bool requester, const struct eng_record *what, rwy_time now);
/* The same about the engine, or a tunnel with that name; NULL: none. */
void eng_record_engine(struct eng *e, const struct eng_record *what, const char *tunnel, rwy_time now);
/* Number of a counter of e->c, for `value`. */
static inline uint32_t eng_counter_number(const struct eng *e, const uint64_t *counter)
{
	return (uint32_t)(counter - (const uint64_t *)(const void *)&e->c);
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

/* --- lanes.c, if there are several workers --- */
/* Worker 0: the tunnel's peer may be another process. */
void eng_lanes_tell(struct eng_tunnel *t);
/* Another worker, once a turn: its tunnels go with those of worker 0. */
void eng_lanes_look(struct eng *e, rwy_time now);
/* The lane is up. True: for the first time, and another lane had an earlier process of the peer. */
bool eng_lanes_missed_restart(struct eng_tunnel *t);

#endif
