/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's inside. A connection between local host L and remote host R has two halves here:
 *
 *   near: L's requests. Key (L, R, R's QPN), as L's packets carry it. We are its responder; packets go into
 * the WAN flow `req`, the answers come back on the WAN flow `rsp`. far:  R's requests. Key (R, L, L's QPN).
 * We are the requester towards L; requests come from the WAN flow `req`, the answers go out on `rsp`.
 *
 * L's *responses* carry the key of the near half too, so one lookup serves all packets from the LAN;
 * near->far leads on. The two halves find each other when the connection is paired (learn.c).
 */
#ifndef ENGINE_ENG_H
#define ENGINE_ENG_H

#include "cc/drain.h"
#include "engine/engine.h"
#include "engine/msg.h"
#include "roce/build.h"
#include "roce/cm.h"
#include "roce/parse.h"
#include "roce/reqr.h"
#include "roce/resp.h"

#define ENG_RPS_MAX      1024 /* hosts with a reaction point at once; more than these get what they take */
#define ENG_UNPAIRED_MAX 512  /* packets of an unpaired flow in custody */
#define ENG_PARKED_MAX   256

struct eng_far;
struct eng_pair;

enum eng_state { ENG_LEARNING, ENG_PAIRED, ENG_FAILED };
enum eng_learned { ENG_BY_NOBODY, ENG_BY_CM, ENG_BY_PROBE, ENG_BY_PEER };

/* What both halves have. The first member of each, so that the tables and the sweep treat them alike. */
struct eng_half {
	struct eng_key key;
	uint32_t hash;
	bool is_far;
	uint8_t tunnel;
	uint8_t state;          /* enum eng_state */
	uint8_t learned;        /* enum eng_learned */
	struct eng_half *chain; /* table bucket */
	struct eng_half *dirty_next;
	bool dirty;
	rwy_time last;     /* last packet */
	rwy_time close_at; /* RWY_NEVER, or when to forget it (disconnected) */
	const char *error;
	struct eng *e;
	struct eng_ten *ten; /* of key.tenant; stays while a half is in it */
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

struct eng_near {
	struct eng_half h;
	struct eng_far *far;  /* NULL until paired */
	uint64_t session;     /* its number, 0: none yet */
	uint32_t lqpn;        /* L's QPN: where ACKs go; 0: not known */
	uint32_t lqpn_before; /* of the life before this one: who is told when the far host never answers */
	uint32_t life;
	bool active; /* L has sent a request: resp is initialised */
	bool held;   /* acknowledging is held back for lack of memory */
	bool migreq;
	bool resume; /* taken up from the journal: the far gateway has not yet said that nothing is lost */
	uint8_t tos, ttl;
	uint16_t pkey, sport;
	uint8_t rnr_retry, retry; /* of L's QP from CM, 255 unknown */
	struct roce_resp resp;
	struct wan_txflow *req;
	struct wan_rxflow *rsp;
	struct rwy_bufq parked; /* requests behind a READ of unknown response count */
	struct eng_nexthop nh;
	struct eng_jent *jent; /* NULL: nothing promised yet */
	rwy_time cnp_at;
	uint64_t np_low; /* shortest queue since the last CNP for it, bytes */
	rwy_time np_at;  /* when np_bytes was n->bytes */
	uint64_t np_bytes;
	rwy_time drip_at;    /* held: not another acknowledge before */
	rwy_time acked_at;   /* the host was last told that more has arrived */
	rwy_time asked_at;   /* the host last sent a request or got an answer. Not what it answers: that may
	                        already be of a new connection whose own requests were lost */
	rwy_time deaf_until; /* what it sends until then is not looked at; 0: it is, see near_req.c */
	bool gap_seen;
	rwy_time served_at; /* the last answer to a READ or ATOMIC went to the host */
	roce_psn nak_psn;
	roce_psn gap_low;                /* lowest PSN beyond the gap that the host sent since */
	uint32_t naks;                   /* of nak_psn, without the host going back to it */
	struct eng_read read[ENG_READS]; /* the latest READs asked, a ring */
	uint32_t reads_asked;
	uint64_t custody; /* buffer memory of what the far host has not acknowledged */
	uint64_t packets, bytes;
	struct eng_keptq reads, atomics;        /* answers served, for replays */
	uint64_t kept;                          /* what the buffers of `reads` take */
	uint32_t answered;                      /* READs and ATOMICs */
	struct eng_near *kept_next, *kept_prev; /* ring of those that keep READ responses; NULL: not in it */
};

#define ENG_NO_SEQ                                                                                           \
	UINT64_MAX /* a request that the present flow has no number for: of an earlier one, or ours */

/* A READ or ATOMIC the host has answered, waiting until the answer is in the near gateway's hands. */
struct eng_rspwait {
	uint64_t seq; /* flow sequence of the request */
	uint64_t idx; /* count of answers sent on rsp when its last one was */
};

/* A local host that we ask. All far halves towards it share the record, and it goes with the last of them. */
struct eng_host {
	struct rwy_ip addr;
	uint32_t tenant;
	uint32_t refs;
	struct eng_host *chain;
	struct roce_reqr_host reqr;
};

struct eng_far {
	struct eng_half h;
	struct eng_near *near; /* NULL until paired */
	struct eng_host *host; /* NULL: there was no memory */
	uint32_t rqpn;         /* R's QPN: what L's answers carry; 0: not known */
	uint32_t life;
	bool active;        /* reqr is initialised */
	bool synced;        /* L has answered in this life */
	uint16_t open_pmtu; /* what the near gateway knew when it opened the flow */
	bool fresh;         /* a flow was opened; its first packet decides how to go on */
	bool told_peer;     /* the near gateway named R's QPN when it opened the flow */
	bool resuming;      /* after both gateways restarted: the host is asked where it is */
	bool asked_back;    /* ... and once more, after silence */
	bool doom_next;     /* as soon as the host has told which PSN it expects, it is told the worst */
	bool doomed;        /* something is lost for good: the host is being told, nothing else counts */
	bool discard;       /* rewound: drop until the near gateway opens the flow anew */
	bool left;          /* the near gateway itself ended the flow: it waits for nothing that came by it */
	bool in_turn;       /* unpaired and its first packet is out */
	bool queued;        /* unpaired and waiting for its turn */
	uint8_t rnr_retry, retry;
	uint64_t resume_seq; /* flow sequence of the near gateway's RESUME */
	roce_psn promised;   /* resuming: the near gateway's host was acknowledged up to here */
	struct eng_rp *rp;   /* it waits for its turn there; NULL: it does not */
	struct eng_far *rp_next;
	struct cc_drain drain; /* end to end: what the near gateway may have under way */
	struct roce_reqr reqr;
	struct wan_rxflow *req;
	struct wan_txflow *rsp;
	struct eng_pair *pair;
	struct eng_far *pair_next;
	struct eng_far *wheel_next, *wheel_prev;
	rwy_time wheel_at; /* 0: not in the wheel */
	struct eng_nexthop nh;
	rwy_time last_tx;  /* something was sent to L */
	uint64_t done_seq; /* one more than the last request the host acknowledged */
	uint64_t told_seq; /* one more than the last reported delivered */
	uint64_t rsp_sent, rsp_done;
	struct eng_rspwait *wait; /* ring, power of two, grows */
	uint32_t wait_head, wait_n, wait_cap;
	uint64_t packets, bytes;
};

/* Pairing of the flows of one (remote, local) address pair: one unpaired flow at a time (learn.c). */
struct eng_pair {
	struct rwy_ip remote, local;
	uint32_t tenant;
	struct eng_pair *chain;
	struct eng_far *turn;        /* whose first packet is out */
	struct eng_far *head, *tail; /* waiting */
	rwy_time quiet_until; /* after a turn without an answer: a late answer must not name the wrong flow */
	rwy_time turn_end;
	struct eng_pair *all_next;
};

struct eng_tun {
	struct wan_tunnel *wan; /* NULL: this number is free */
	struct wan_txflow *mgmt;
	struct wan_rxflow *mgmt_rx;
	rwy_dur min_rtt;   /* of the WAN, as of the last sweep */
	rwy_dur least_rtt; /* the least it ever was, by any carrier: two hosts cannot agree in less */
	struct eng *e;
	unsigned idx;
	uint32_t halves; /* that are in it */
	bool removing;   /* takes nothing new; gone with its last half */
};

struct eng_slab {
	void *free;
	void *chunks;
	size_t size;
};

#define ENG_WHEEL_BITS  10
#define ENG_WHEEL_SLOTS (1u << ENG_WHEEL_BITS)
#define ENG_WHEEL_SHIFT 20 /* a tick is 2^20 ns, about a millisecond */

struct eng {
	struct eng_cfg cfg;
	const struct eng_ops *ops;
	void *ctx;
	struct rwy_bufs bufs;
	struct eng_counters c;
	struct eng_tun tun[ENG_TUNNELS_MAX + 1]; /* the last: of failed connections whose tunnel is gone */
	struct eng_ways *ways;
	struct eng_half **table; /* hash table of both halves */
	uint64_t *occupied;      /* a bit a slot, for the sweep: most slots have nothing */
	uint32_t table_mask;
	uint32_t halves, half_open;
	uint32_t paired;   /* near and far halves that belong together */
	uint64_t sessions; /* that ever were */
	struct eng_half *dirty_head, *dirty_tail;
	struct eng_slab near_slab, far_slab, pair_slab, host_slab;
	struct eng_pair *pairs[256];
	struct eng_host *hosts[256]; /* as many as there are far halves, at most */
	struct eng_pair *pair_list;
	struct eng_ten **ten;        /* by index, NULL: there is none; [0] is the plain LAN */
	uint32_t tens;               /* places */
	uint32_t *vni_slot;          /* hash table: 1 + index by VNI, 0: empty */
	uint32_t vni_mask, vni_used; /* slots that are not empty, those of tenants that are gone too */
	struct eng_far *wheel[ENG_WHEEL_SLOTS];
	uint32_t wheel_n;
	struct eng_rp *rp[256], *rp_list; /* local hosts that have asked for less: by hash, all */
	uint32_t rps;
	uint64_t wheel_tick; /* ticks up to here have fired */
	uint64_t custody;    /* the same, all near halves */
	uint64_t reserved;   /* of cfg.custody_total, by tenants */
	uint64_t common;     /* of custody, what is above its tenant's reservation */
	uint64_t kept;       /* READ responses kept for replays, of all near halves */
	uint64_t kept_share; /* cfg.read_cache_total, for each of those that keep some */
	uint32_t kept_bufs, keepers;
	struct eng_near *kept_hand; /* one of them, NULL: there is none */
	uint64_t kept_atomics;      /* memory of records above the first few of each */
	uint64_t rng;
	uint32_t sweep; /* table slot of the idle sweep */
	rwy_time sweep_at;
	uint32_t *jfree; /* free entries of the journal */
	uint32_t jfree_n;
	struct eng_jold *jold; /* entries of an earlier process, by VNI */
	uint32_t jold_n;
	bool closing;      /* eng_free: what was promised stays promised */
	uint32_t learning; /* far halves that wait for a turn or have one */
	rwy_time started;
	rwy_time now;
};

/* table.c */
struct eng_half *eng_find(const struct eng *e, const struct eng_key *k, bool is_far);
uint32_t eng_key_hash(const struct eng_key *k, bool is_far);
void eng_insert(struct eng *e, struct eng_half *h);
void eng_remove(struct eng *e, struct eng_half *h);
void *eng_slab_get(struct eng_slab *s);
void eng_slab_put(struct eng_slab *s, void *p);
void eng_slab_fini(struct eng_slab *s);
uint64_t eng_random(struct eng *e);

/* near.c, near_req.c, near_answer.c */
/* Find or create; NULL: refused, counted. `stranger`: nothing but the packet speaks for it, so that the bound
 * of unpaired flows holds; else the caller pairs it at once. */
struct eng_near *eng_near_get(struct eng *e, const struct eng_key *k, bool stranger, rwy_time now);
void eng_near_request(struct eng_near *n, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_near_start_cm(struct eng_near *n, uint32_t lqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
void eng_near_answer(struct eng_near *n, struct rwy_buf *b, rwy_time now); /* a buffer from the flow rsp */
void eng_near_flush(struct eng_near *n, rwy_time now);
void eng_near_delivered(struct eng_near *n, const struct rwy_buf *b, rwy_time now);
void eng_near_fail(struct eng_near *n, roce_psn psn, uint8_t syndrome, const char *why, rwy_time now);
void eng_near_free(struct eng_near *n, rwy_time now);
size_t eng_near_open_info(const struct eng_near *n, uint8_t *out);
void eng_near_unhold(struct eng_near *n, rwy_time now);
/* Gives up what is on its way to the far gateway. */
void eng_near_abort(struct eng_near *n, rwy_time now);
bool eng_near_open(struct eng_near *n, rwy_time now); /* the flow of its requests; false: no memory */
/* The connection begins (again) at this PSN. Until the far host has confirmed it nothing is acknowledged. */
void eng_near_start(struct eng_near *n, roce_psn first, uint32_t pmtu, rwy_time now);
/* What waited for the path MTU, again. */
void eng_near_unpark(struct eng_near *n, rwy_time now);
void eng_near_address(
    const struct eng_near *n, struct roce_addr *a); /* of what we say in the far host's name */
#define ENG_NAKS_MAX 5 /* a host that does not go back after so many NAKs of one PSN cannot */

/* A connection of an earlier process; NULL: cannot be taken up. */
struct eng_near *eng_near_resume(struct eng *e, const struct eng_key *k, struct eng_jent *j, rwy_time now);

/* journal.c */
int eng_journal_init(struct eng *e);
void eng_journal_note(struct eng_near *n); /* before an acknowledge leaves */
void eng_journal_forget(struct eng_near *n);
void eng_journal_restore(struct eng *e, uint32_t tenant, rwy_time now); /* what the journal has of it */

/* near_replay.c: a host that lost answers gets them again */
void eng_near_replay(struct eng_near *n, roce_psn psn, uint32_t cnt, rwy_time now);
void eng_near_replay_atomic(struct eng_near *n, roce_psn psn, rwy_time now);
void eng_near_resend(struct eng_near *n, const struct rwy_buf *b, uint8_t opcode);

/* near_kept.c: the answers kept for that. Each is kept after it was served. */
void eng_near_keep_read(struct eng_near *n, roce_psn psn, struct rwy_buf *b); /* takes b */
void eng_near_keep_atomic(struct eng_near *n, roce_psn psn, uint64_t original);
/* The kept answer of this PSN, and the READ response after another; NULL: not kept. */
const struct eng_kept *eng_near_kept(const struct eng_near *n, const struct eng_keptq *q, roce_psn psn);
/* A READ response to this PSN is kept, or comes from the far host yet. */
bool eng_near_has_answer(const struct eng_near *n, roce_psn psn);
const struct eng_kept *eng_near_kept_next(const struct eng_keptq *q, const struct eng_kept *k);
void eng_near_forget_reads(struct eng_near *n); /* the host gave up long ago, if it lost one */
void eng_near_forget_answers(struct eng_near *n);

/* far.c and far_resume.c */
void eng_far_begin(struct eng_far *f, roce_psn first, uint32_t pmtu, bool probe);
void eng_far_tell_start(struct eng_far *f, roce_psn psn, roce_msn msn, uint64_t first_seq, rwy_time now);
/* A RESUME, the first message of a flow: the near gateway restarted; is anything lost that its host was
 * acknowledged? The caller keeps b. False: malformed. */
bool eng_far_resume(struct eng_far *f, const struct rwy_buf *b, rwy_time now);
void eng_far_report(struct eng_far *f, rwy_time now);
/* Requests that `n`'s host was acknowledged are lost, and the other host knows: this one gets its error, too.
 */
void eng_far_lost_reverse(struct eng_near *n, rwy_time now);
/* A doomed host acknowledges what was to end it: it is further than we knew, and it was a duplicate. Then it
 * comes again, after what the host has. */
bool eng_far_doom_again(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now);
/* Whether a packet can be the answer to the question that eng_far_resume asked: not one to a READ, an ATOMIC
 * or a SEND of before. */
bool eng_far_answers(const struct roce_pkt *pkt);
/*
 * It did not answer. It says only once that it expects an earlier packet (roce/resp.h), and may have said so
 * to a gateway that is no more; but a duplicate is acknowledged each time.
 */
void eng_far_ask_back(struct eng_far *f, rwy_time now);
/* The host's answer to the question that eng_far_resume asked: eng_far_answers. */
void eng_far_resumed(struct eng_far *f, const struct roce_pkt *pkt, rwy_time now);
struct eng_far *eng_far_get_at(struct eng *e, const struct eng_key *k, int tunnel, rwy_time now);
struct eng_far *eng_far_get(struct eng *e, const struct eng_key *k, rwy_time now);
void eng_far_open(struct eng_far *f, struct wan_rxflow *rx, const struct eng_open *o, rwy_time now);
void eng_far_data(struct eng_far *f, struct rwy_buf *b, rwy_time now);
void eng_far_response(struct eng_far *f, struct roce_pkt *pkt, struct rwy_buf *b, rwy_time now);
void eng_far_flush(struct eng_far *f, rwy_time now);
/* Puts up to max (<= 64) packets on the LAN; returns their bytes. */
uint32_t eng_far_send(struct eng_far *f, unsigned max, rwy_time now);
void eng_far_tick(struct eng_far *f, rwy_time now);
void eng_far_rsp_delivered(struct eng_far *f, rwy_time now);
void eng_far_start_cm(struct eng_far *f, uint32_t rqpn, roce_psn psn, uint32_t pmtu, rwy_time now);
void eng_far_tell(struct eng_far *f, const struct eng_ctrl *c, rwy_time now);
void eng_far_fail(struct eng_far *f, roce_psn psn, uint8_t syndrome, enum eng_end end, rwy_time now);
void eng_far_free(struct eng_far *f, rwy_time now);
size_t eng_far_open_info(const struct eng_far *f, uint8_t *out);

/* host.c: a hash of a local host's address, and the record that far halves towards it share */
static inline uint8_t eng_host_hash(const struct rwy_ip *host)
{
	return (uint8_t)(host->b[15] ^ host->b[14] << 3 ^ host->b[13]);
}
struct eng_host *eng_host_get(struct eng *e, uint32_t tenant, const struct rwy_ip *addr);
void eng_host_put(struct eng *e, struct eng_host *h);

/* info.c */
/* A connection is one as soon as both its QPNs are known, until its near half goes or fails. */
void eng_session_open(struct eng_near *n);
void eng_session_close(struct eng_near *n);
void eng_session_of(const struct eng_near *n, struct eng_session *out);

/* np.c, rp.c, e2e.c: the congestion loops */
/* Whether this packet must be answered with a CNP; consumes an ECN mark. n->req is open. */
bool eng_np_congested(struct eng_near *n, const struct roce_pkt *pkt, struct rwy_buf *b);
void eng_rp_taken(struct eng_far *f, uint64_t bytes); /* the host acknowledged so much */
void eng_rp_cnp(struct eng_far *f, rwy_time now);     /* the local host asks for less */
/* Sends what its host's rate allows, now or in its turns. False: the host has not asked for less. */
bool eng_rp_send(struct eng_far *f, rwy_time now);
void eng_rp_poll(struct eng *e, rwy_time now);
rwy_time eng_rp_next(const struct eng *e);
void eng_rp_leave(struct eng_far *f);          /* it has nothing to send any more */
uint64_t eng_rp_rate(const struct eng_far *f); /* bytes per second, 0: not bounded */
void eng_rp_fini(struct eng *e);
void eng_drain(struct eng_far *f, rwy_time now); /* after what goes to the host went */

/* learn.c */
/* A flow from `remote` to `local` waits for the host's first answer. */
bool eng_learn_waits(
    const struct eng *e, uint32_t tenant, const struct rwy_ip *remote, const struct rwy_ip *local);
void eng_unpair(struct eng_far *f); /* f->near is set */
void eng_pair_halves(struct eng_near *n, struct eng_far *f, enum eng_learned how);
void eng_learn_wait(
    struct eng_far *f, rwy_time now); /* an unpaired flow has its first packet: queue it for its turn */
void eng_learn_leave(struct eng_far *f, rwy_time now); /* paired, failed or freed */
struct eng_far *eng_learn_owner(struct eng *e, uint32_t tenant, const struct eng_near *n,
    const struct roce_pkt *pkt, rwy_time now); /* whose answer this response must be, or NULL */
void eng_learn_tick(struct eng *e, rwy_time now);
rwy_time eng_learn_next(const struct eng *e);
bool eng_learn_cm(struct eng *e, uint32_t tenant, const struct roce_pkt *pkt,
    rwy_time now); /* false: malformed, counted; do not carry it */

#define ENG_NO_TUNNEL ENG_TUNNELS_MAX

/* way.c */
/* The tunnel for what a local host sends to a remote one, -1: none. */
int eng_way(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    uint32_t dqpn);
/* Whether the peer of a tunnel may speak for that remote host. */
bool eng_behind(const struct eng *e, uint32_t tenant, const struct rwy_ip *local, const struct rwy_ip *remote,
    unsigned tunnel);
void eng_move(struct eng_half *h, unsigned tunnel);
void eng_leave(struct eng_half *h, rwy_time now); /* its tunnel is being removed */
/* route.c: the set of tunnels that the longest prefix of dst is behind */
uint64_t eng_route_set(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);

/* tunnel.c */
int eng_tunnels_init(struct eng *e, rwy_time now);

/* tenant.c */
struct eng_ten {
	struct eng_tenant_cfg cfg;
	struct eng_tenant_stats st;
	struct eng_prefix *prefix; /* its own copy */
	struct roce_cm_tab *cm;    /* NULL until its first CM message */
	uint64_t custody;
	uint64_t kept_share; /* cfg.custody, for each of its connections that keep READ responses */
	uint32_t keepers;    /* these */
	uint32_t halves, half_open;
	bool removing; /* takes nothing new; freed with its last half */
};
int eng_tenants_init(struct eng *e);
void eng_tenants_fini(struct eng *e);
int eng_tenant_by_vni(const struct eng *e, uint32_t vni); /* index, -1: none */
struct roce_cm_tab *eng_tenant_cm(struct eng *e, uint32_t tenant);
int eng_route_of(const struct eng_prefix *prefix, unsigned n, const struct rwy_ip *dst);
int eng_route_in(const struct eng *e, uint32_t tenant, const struct rwy_ip *dst);
/* Best-effort packets and CM messages name their tenant to the peer in front of the packet. False: dropped.
 */
bool eng_tag(struct eng *e, uint32_t tenant, struct rwy_buf *b);
#define ENG_NO_TENANT  (-1)
#define ENG_BAD_PACKET (-2)
int eng_untag(struct eng *e, struct rwy_buf *b); /* index, or one of these */
static inline struct eng_ten *eng_tenant(const struct eng *e, uint32_t tenant)
{
	struct eng_ten *t = tenant < e->tens ? e->ten[tenant] : NULL;

	return t && !t->removing ? t : NULL;
}

/* timer wheel, wheel.c */
void eng_wheel_arm(struct eng_far *f, rwy_time at);
void eng_wheel_disarm(struct eng_far *f);
void eng_wheel_run(struct eng *e, rwy_time now);

/* engine.c */
extern const struct wan_ops eng_wan_ops;
void eng_dirty(struct eng_half *h);
void eng_lan_send(struct eng *e, uint32_t tenant, struct rwy_buf *b, bool own, const struct rwy_ip *dst,
    struct eng_nexthop *nh);
void eng_lan_made(struct eng *e, uint32_t tenant, const uint8_t *bytes, uint32_t len,
    const struct rwy_ip *dst, struct eng_nexthop *nh);
/* A control message ready for a flow; NULL: no buffer, counted. */
struct rwy_buf *eng_ctrl_buf(struct eng *e, const struct eng_ctrl *c);
void eng_drop(struct eng *e, struct rwy_buf *b, uint64_t *counter);
void eng_log(struct eng *e, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void eng_log_half(struct eng *e, int level, const struct eng_half *h, const char *what);

/* What a packet in custody costs: a small one holds a whole buffer. */
static inline uint64_t eng_cost(const struct eng *e, const struct rwy_buf *b)
{
	return b->len > e->cfg.buf_cost ? b->len : e->cfg.buf_cost;
}

/* One unpaired flow more, or less. */
static inline void eng_half_open(struct eng_near *n, int by)
{
	n->h.e->half_open += (uint32_t)by;
	n->h.ten->half_open += (uint32_t)by;
}

/* What a tenant has in custody above its reservation. */
static inline uint64_t eng_over(const struct eng_ten *t)
{
	return t->custody > t->cfg.reserve ? t->custody - t->cfg.reserve : 0;
}

static inline void eng_hold(struct eng_near *n, uint64_t bytes)
{
	uint64_t over = eng_over(n->h.ten);

	n->custody += bytes;
	n->h.ten->custody += bytes;
	n->h.e->custody += bytes;
	n->h.e->common += eng_over(n->h.ten) - over;
}

/* The caller takes it off n->custody. */
static inline void eng_release(struct eng_near *n, uint64_t bytes)
{
	uint64_t over = eng_over(n->h.ten);

	n->h.ten->custody -= bytes;
	n->h.e->custody -= bytes;
	n->h.e->common -= over - eng_over(n->h.ten);
}

/* Whether the packet in the buffer is IPv6. Only for packets that parsed. */
static inline bool rwy_buf_is6(const struct rwy_buf *b)
{
	return b->data[0] >> 4 == 6;
}

static inline struct wan_tunnel *eng_wan(const struct eng_half *h)
{
	return h->e->tun[h->tunnel].wan;
}

#endif
