/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel, and a datagram under construction. Private to wan/ and its tests. Paths are in path.h,
 * flows in flow.h. Functions are grouped by their .c file.
 */
#ifndef WAN_TUNNEL_H
#define WAN_TUNNEL_H

#include "rwy/hash.h"
#include "wan/flow.h"
#include "wan/claim.h"
#include "wan/keys.h"
#include "wan/couple.h"
#include "wan/path.h"
#include "wan/sched.h"
#include "wan/states.h"

/* Most header bytes in front of a payload when control frames are added: they fit the headroom. */
#define WAN_PIGGY_MAX   72
#define WAN_DGRAMS_MAX  512 /* best-effort packets waiting */
#define WAN_RESETS_MAX  256 /* RESETs that wait to be sent */
#define WAN_DGRAM_PARTS 64  /* best-effort packets being reassembled */

/* Control frames in flight are logged, so that lost ones can be repeated. */
enum wan_log_kind { WAN_LOG_DELIVERED, WAN_LOG_ABORT, WAN_LOG_RESET, WAN_LOG_CREDIT, WAN_LOG_RATE };
struct wan_log {
	uint32_t id;
	uint32_t count; /* DELIVERED: low bits of the reported count; RATE, CREDIT: its number */
	uint8_t kind;
};

struct wan_hs {
	enum wan_hs_state state;
	uint64_t nonce;                  /* our nonce, until a HELLO echoes it */
	uint64_t counter;                /* number of nonces made */
	uint64_t peer_nonce, peer_epoch; /* values of the newest HELLO that wants an answer */
	/* Nonce of the peer that nobody has echoed yet; 0: none is known. */
	uint64_t spare;
	bool reply;
	uint8_t tries;   /* HELLOs left to challenge an unknown epoch */
	uint8_t repeats; /* repetitions left of the answer to a peer that may not believe us yet */
	rwy_time next;   /* RWY_NEVER: nothing to do */
	rwy_dur interval;
	rwy_time sent_at;  /* of the last HELLO */
	rwy_time first_at; /* of the first HELLO with the present nonce */
	uint32_t sent_n;   /* HELLOs with this nonce */
};

/* Claims of a pair of gateways, ours and the peer's: claim.c. */
#define WAN_GONE_MAX 16
struct wan_claims {
	enum wan_claim own;
	rwy_time since; /* of `own` */
	uint8_t n;      /* its number in HELLOs; 0: none was ever made */
	bool granted;
	bool doubt;    /* it may be granted no longer: the next HELLO asks */
	rwy_time next; /* when it is repeated; RWY_NEVER: it need not be */
	rwy_time asked;
	rwy_dur interval;

	/* The HELLO to answer: the number of its claim; and an unknown gateway sent it natively,
	 * which perhaps cannot be reached by the reliable carrier. */
	uint8_t reply_n;
	bool native;
	/* An answer that refuses is due. It has the nonce and epoch of the HELLO that it refuses:
	 * no other answer may echo these. A nonce of 0: it answers a datagram that is no HELLO. */
	bool refuse, refuse_native;
	bool refuse_over; /* for good */
	bool question;    /* wan_claim_question */
	/* wan_claim_led: another tunnel decides, for this process; a HELLO of another one waits. */
	bool led;
	uint64_t lead;
	bool waits;
	uint8_t waits_path;
	struct wan_f_hello waiting;
	bool over; /* the witness refused this process for good */
	uint8_t refuse_path;
	uint64_t refuse_nonce, refuse_epoch;
	rwy_time hinted; /* time of the latest answer to such a datagram */
	/* Epochs that lost the tunnel for good; of more than these the oldest is forgotten. */
	uint64_t gone[WAN_GONE_MAX];
	uint32_t gone_n; /* how many there ever were */
};

struct wan_peer {
	uint64_t epoch;
	uint8_t claim, claim_n; /* enum wan_hello_claim, and its number */
	uint32_t index, rx_window, rx_cost;
	uint64_t rx_bytes;
	rwy_dur ack_delay;
	uint32_t mtu;
	bool pcp;         /* it reads the PCP of packets; older gateways do not */
	bool order;       /* it understands order between flows */
	bool run, bundle; /* it reads RUN; and BUNDLE */
};

/* Sending by the reliable carrier: stream.c. */
struct wan_stream_tx {
	bool on;
	/* memory was short for retransmitting what was lost: try at the next tick */
	bool again;
	uint32_t room;  /* datagrams that may still be handed over, */
	uint64_t bytes; /* bytes that may still be handed over */
	rwy_time since; /* time of the last change of `on` */
	rwy_time check_at;
	uint64_t rate_Bps, acked; /* measured rate; bytes acknowledged since rate_from */
	rwy_time rate_from;
};

/* Datagrams that the native path lost repeatedly go by the reliable carrier: detour.c. */
struct wan_detour {
	bool used;     /* it was on at some time */
	uint8_t after; /* after so many losses; 0: it is off */
	bool proven;   /* the carrier answers in time; else nothing goes by it but a question */
	rwy_time ask_at;
	rwy_time since;      /* what was sent by the carrier from then on took the detour */
	rwy_time last;       /* when something took it; 0: never */
	rwy_time not_before; /* memory was short: try again then */
	struct wan_itemq q;  /* emptied by each wan_poll: what finds no room goes natively */
};

/* A best-effort packet being reassembled. */
struct wan_part {
	struct rwy_buf *b;
	uint32_t id;
};

struct wan_tunnel {
	struct wan_cfg cfg;
	rwy_time since; /* time of the last up/down change; before the first: creation */
	bool broken;    /* a tx flow is broken */
	bool unnamed;   /* a tx flow is unnamed */
	bool dgram_turn;
	bool credit_dirty;
	bool stirred;   /* a function of wan.h was called since wan_note_quiet */
	uint32_t index; /* index that the present peer writes into its datagrams */
	struct wan_peer peer;
	struct wan_hs hs;
	struct wan_claims claim;
	struct wan_keys *keys; /* NULL: datagrams go in the clear */
	rwy_time last_rx;
	struct wan_path *path; /* [WAN_PATHS_MAX]: the reliable carrier's */
	unsigned paths;        /* it never becomes less: packet numbers go on (use.c) */
	/* several paths: the one by which a datagram arrives earliest; else the only one */
	struct wan_path *first;
	const struct wan_path *last; /* several paths: where new data went last */
	rwy_time polled;             /* time of the last wan_poll */
	rwy_time parts;              /* granted paths: the furthest of their `part` */
	bool first_only;             /* then nothing was left for the other paths */
	struct wan_couple couple;    /* several paths: which share a bottleneck */
	uint32_t share;              /* of new data that goes by the path in use, in 1/65536 */
	uint32_t mtu_own, mtu_min;   /* smallest MTU of our paths; of both sides */
	uint8_t hs_path;

	/* Sending. */
	struct wan_txslot *tx;
	uint32_t tx_cap, tx_free, tx_flows;
	struct wan_sched sched;                 /* flows with data to send */
	struct wan_txflow *ctl_head, *ctl_tail; /* flows with ABORT to report */
	struct rwy_slab tx_slab, rx_slab;       /* flows */
	struct rwy_slab ring_slab;              /* their small rings */
	struct wan_txflow *tx_retired;          /* flows that ended; freed when no list has them */

	struct wan_againq again;   /* lost fragments to retransmit */
	struct wan_itemq copies;   /* second copies due */
	uint64_t tx_bytes, tx_out; /* bytes in custody; those of them sent in this session */
	uint64_t tx_sent;          /* the latter, without what a buffer costs the peer */
	/* after.c: */
	bool ordered;   /* a buffer waits for others, or did */
	bool room_left; /* a flow left room for those that wait */
	bool room_made; /* custody has ended since */
	struct rwy_bufq dgrams;
	/* state of the first packet of `dgrams` while it is being fragmented */
	uint32_t dgram_off, dgram_id;
	uint8_t dgram_frag;

	/* Receiving. */
	struct wan_rxslot *rx;
	uint32_t rx_cap, rx_flows;
	uint64_t rx_held;     /* as cfg.rx_cost counts */
	uint32_t rx_waiting;  /* buffers in flows' rings */
	uint32_t order_bufs;  /* buffers of order flows in custody */
	uint64_t bytes_limit; /* the most credit ever advertised: what the peer may use */
	uint32_t window_limit;
	uint32_t credit_no; /* of the present credit: what is acknowledged may be an older one */
	struct wan_rxflow *dirty_head, *dirty_tail;
	uint32_t dirty_n;
	rwy_time dirty_at;            /* time when DELIVERED must be sent */
	struct wan_rxflow *rate_head; /* flows with RATE to report */
	/* Flows that wait for one that is not open yet; those that need not wait any longer. */
	struct wan_rxflow *strangers, *woken;
	struct wan_rxflow *rx_retired;
	uint32_t resets[WAN_RESETS_MAX];
	uint32_t resets_n;
	bool resets_left; /* some found no room there: a search finds them */
	/* the slot where that goes on, and when; RESETs found since then */
	uint32_t resets_from, resets_round;
	rwy_time resets_at;
	struct wan_part part[WAN_DGRAM_PARTS];

	struct wan_stream_tx st;
	struct wan_detour detour;
	struct wan_log *log;
	uint32_t log_mask, log_at;
	struct wan_fec fec;
	/* log entries of a lost datagram were overwritten: report every flow again */
	bool rescan;
	rwy_time quiet_until; /* wan_next() at wan_note_quiet */

	struct wan_counters c;
};

/* True if the peer is known. */
static inline bool wan_hs_session(const struct wan_tunnel *t)
{
	return t->hs.state != WAN_HS_ASKING;
}

/* The peer is known and answers. */
static inline bool wan_hs_up(const struct wan_tunnel *t)
{
	return t->hs.state >= WAN_HS_UP;
}

/* The smoothed round trip; before the first sample the configured initial RTT. */
static inline rwy_dur wan_rtt_base(const struct wan_path *p)
{
	return wan_path_has_rtt(p) ? p->srtt : p->t->cfg.cc_cfg.initial_rtt;
}

/* Each function of wan.h and stream.h that changes something begins with it (wan_quiet). */
static inline void wan_stir(struct wan_tunnel *t)
{
	t->stirred = true;
}

/* Returns the flow of an id, or NULL. */
static inline struct wan_txflow *wan_tx_find(const struct wan_tunnel *t, uint32_t id)
{
	struct wan_txflow *f = WAN_SLOT(id) < t->tx_cap ? t->tx[WAN_SLOT(id)].f : NULL;

	return f && f->id == id ? f : NULL;
}

static inline struct wan_rxflow *wan_rx_find(const struct wan_tunnel *t, uint32_t id)
{
	struct wan_rxflow *f = WAN_SLOT(id) < t->rx_cap ? t->rx[WAN_SLOT(id)].f : NULL;

	return f && f->id == id ? f : NULL;
}

/* Fragment `frag` of the buffer `seq`, which is in custody, is acknowledged. */
static inline bool wan_tx_has_acked(const struct wan_txflow *f, uint64_t seq, uint8_t frag)
{
	return seq < f->acked || f->ring[seq & f->mask]->w0 & 1u << frag;
}

/* Credit that the buffer takes at the peer: its length, at least the peer's rx_cost. */
static inline uint64_t wan_tx_credit(const struct wan_tunnel *t, const struct rwy_buf *b)
{
	return b->len > t->peer.rx_cost ? b->len : t->peer.rx_cost;
}

/* The buffers of a datagram that are still in custody: [*seq, *end). False: none. */
static inline bool wan_tx_in_custody(
    const struct wan_txflow *f, const struct wan_sent *s, uint64_t *seq, uint64_t *end)
{
	*seq = wan_expand(f->base, s->seq);
	*end = *seq + s->more + 1;
	if ((int64_t)(*seq - f->base) < 0)
		*seq = f->base;
	if ((int64_t)(*end - f->end) > 0)
		*end = f->end;
	return (int64_t)(*end - *seq) > 0;
}

#define WAN_CREDIT_LEFT 3 /* bulk flows leave 1/2^this of the credit */

/* The tunnel's credit is enough for the flow's next buffer, of which nothing was sent. */
static inline bool wan_tx_has_credit(const struct wan_txflow *f)
{
	const struct wan_tunnel *t = f->t;
	uint64_t all = t->peer.rx_bytes, most = f->bulk ? all - (all >> WAN_CREDIT_LEFT) : all;

	return t->tx_out + wan_tx_credit(t, f->ring[f->next_send & f->mask]) <= most;
}

/* A buffer waits, and the peer has room for it in this flow. */
static inline bool wan_tx_sendable(const struct wan_txflow *f)
{
	if (f->dead || f->unnamed || f->next_send >= f->end || f->next_send - f->base >= f->t->peer.rx_window)
		return false;
	if (f->t->ordered && !f->next_frag && wan_after_leaves_room(f))
		return false;
	/* All fragments of a buffer that has begun may go. One buffer may always be in flight. */
	return !f->window || f->next_frag || f->out < f->window;
}

/* A datagram under construction. */
struct wan_out {
	struct wan_tx *tx;
	struct wan_path *p;
	uint8_t *at;       /* place of the next frame in tx->hdr */
	uint32_t limit;    /* largest number of header bytes */
	struct wan_sent s; /* becomes the sent-map entry */
	bool eliciting, has_ack;
	bool fec; /* the datagram is to be protected by FEC */
};

/* ctl.c: sends DELIVERED, ABORT, RESET, CREDIT and repeats lost ones */
/* Returns when the next control frame must be sent. */
rwy_time wan_ctl_next(const struct wan_tunnel *t);
void wan_ctl_put(struct wan_tunnel *t, struct wan_out *o);
/* The control frames of a datagram were acknowledged, or are lost and due again. */
void wan_ctl_on_acked(struct wan_tunnel *t, const struct wan_sent *s);
void wan_ctl_on_lost(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now);
/* The log was shorter than the data in flight: all unconfirmed state is due again. */
void wan_ctl_rescan(struct wan_tunnel *t, rwy_time now);

/* ctl_list.c: lists of flows that ctl.c reports with the next datagram */
void wan_ctl_rx_dirty(struct wan_rxflow *f, rwy_time now);
void wan_ctl_tx_dirty(struct wan_txflow *f);
void wan_ctl_rate_dirty(struct wan_rxflow *f);
/* A RESET of this flow number is due. */
void wan_ctl_reset(struct wan_tunnel *t, uint32_t id);
/* Begins a search, from the first slot on, for RESETs that peers may not know of. */
void wan_ctl_resets_begin(struct wan_tunnel *t);
/* Fills the queue of RESETs, which is empty, with the next ones that the search finds. */
void wan_ctl_resets_find(struct wan_tunnel *t);

/* reasm.c: reassembles fragments into one buffer */
struct rwy_buf *wan_reasm_new(struct wan_tunnel *t, const struct wan_f_data *d);
/* Adds a fragment's bytes. Returns false: it does not belong to this buffer, or is a duplicate. */
bool wan_reasm_add(struct rwy_buf *part, const struct wan_f_data *d, const uint8_t *bytes, size_t len);
/* True if all bytes are there. */
bool wan_reasm_done(const struct rwy_buf *part);

/* dgram.c: best-effort packets. Takes a received frame and its buffer; writes the next packet,
 * false if there is none; forgets the parts of packets that the peer's last process sent or got;
 * frees the queue. */
void wan_dgram_rx(struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now);
bool wan_dgram_put(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
void wan_dgram_restart(struct wan_tunnel *t);
void wan_dgram_fini(struct wan_tunnel *t);
uint32_t wan_dgram_bufs(const struct wan_tunnel *t); /* buffers that it holds, both ways */

/* stream.c */
/* entries kept free of data, for acknowledgements and control frames */
#define WAN_STREAM_RESERVE 32
static inline struct wan_path *wan_stream_path(const struct wan_tunnel *t)
{
	return &t->path[WAN_PATHS_MAX];
}
/* The i-th of all paths, with that of the reliable carrier behind them, at t->paths. */
static inline struct wan_path *wan_path_nth(const struct wan_tunnel *t, unsigned i)
{
	return i < t->paths ? &t->path[i] : wan_stream_path(t);
}
/* Returns NULL when there is no such path. */
static inline struct wan_path *wan_path_of(const struct wan_tunnel *t, uint8_t id)
{
	return id < t->paths ? &t->path[id] : id == WAN_PATH_STREAM ? wan_stream_path(t) : NULL;
}
/* Frames may be sent as far as claims go. */
static inline bool wan_claim_speaks(const struct wan_tunnel *t)
{
	return t->claim.own != WAN_CLAIM_SILENT && t->claim.own != WAN_CLAIM_YIELD;
}
/* Frames can be sent: by the reliable carrier, in the clear, or sealed. */
static inline bool wan_may_speak(const struct wan_tunnel *t)
{
	return (t->st.on || !t->keys || wan_keys_ready(t)) && wan_claim_speaks(t);
}
static inline bool wan_stream_open(const struct wan_tunnel *t)
{
	return t->st.room > WAN_STREAM_RESERVE && t->st.bytes && wan_sent_room(wan_stream_path(t));
}
/* Takes back datagrams without an ACK when wan_stream_next() is due. */
void wan_stream_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_stream_next(const struct wan_tunnel *t);

/* stream_rate.c */
#define WAN_STREAM_CHECK RWY_SEC /* how often stream.c looks for unacknowledged datagrams */
void wan_stream_on_sent(struct wan_path *p, uint32_t bytes, bool eliciting, rwy_time now);
void wan_stream_on_acked(struct wan_tunnel *t, uint64_t bytes, rwy_time now);
/* How long an answer by the carrier may take, so that it is worth a detour. */
rwy_dur wan_detour_patience(const struct wan_tunnel *t);
/* The peer acknowledged a datagram that the carrier got at `sent`. */
void wan_detour_on_answer(struct wan_tunnel *t, rwy_time sent, rwy_time now);

/* detour.c */
/* Data that was lost so often goes by the carrier. */
static inline bool wan_detour_takes(const struct wan_tunnel *t, unsigned losses)
{
	return t->detour.after && losses >= t->detour.after && t->detour.proven && !t->st.on;
}
/* The carrier is there for detours, and has room. */
static inline bool wan_detour_open(const struct wan_tunnel *t)
{
	return t->detour.after && !t->st.on && wan_stream_open(t);
}
/* The carrier begins or ends to carry everything, or detours: it must prove itself. */
void wan_detour_restart(struct wan_tunnel *t, rwy_time now);
/* A datagram took the detour. */
void wan_detour_on_sent(struct wan_tunnel *t, rwy_time now);
/* Sends natively what has no room on the carrier. False: no memory, try again later. */
bool wan_detour_leave(struct wan_tunnel *t, rwy_time now);
/* Asks the carrier, and takes back what is late, when wan_detour_next() is due. */
void wan_detour_tick(struct wan_tunnel *t, rwy_time now);
rwy_time wan_detour_next(const struct wan_tunnel *t);

/* rest.c */
/* Several paths: an acknowledgement came; a path fell silent, or a session begins. */
void wan_rest_on_ack(struct wan_path *p, const struct cc_ack *ack, rwy_time now);
void wan_rest_gone(struct wan_path *p, rwy_time now);
/* A path's state or use has changed: finds which spare paths carry. */
void wan_rest_spare(struct wan_tunnel *t, rwy_time now);

/* use.c: what paths are used for */
/* Takes back what is still under way on paths that are used for nothing. */
void wan_use_tick(struct wan_tunnel *t, rwy_time now);

/* send.c */
/* When the tunnel has something to send; 0: now. */
rwy_time wan_send_next(const struct wan_tunnel *t);

/* data.c: chooses what a DATA datagram carries next */
bool wan_data_again(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
bool wan_data_copy(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
bool wan_data_detour(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
/* Data in flight on path p, again. */
bool wan_data_probe(struct wan_tunnel *t, struct wan_path *p, struct wan_out *o, rwy_time now);
bool wan_data_new(struct wan_tunnel *t, struct wan_out *o, rwy_time now);
/* Puts frame d, pending control frames that fit, and the payload into the datagram. */
void wan_data_attach(struct wan_tunnel *t, struct wan_out *o, const struct wan_f_data *d, struct rwy_buf *b,
    uint32_t off, uint32_t len, rwy_time now);
/* The PCP that goes with the packet; older peers take it for a part of the kind. */
static inline uint8_t wan_pcp_for(const struct wan_tunnel *t, const struct rwy_buf *b)
{
	return t->peer.pcp ? b->pcp : 0;
}
/* True if data could be sent now but for pacing and window. */
bool wan_data_waiting(const struct wan_tunnel *t);

/* run_tx.c: several small packets of a flow in one datagram */
/*
 * Longest packet of a run. The work that a run saves on a packet is about a thousand instructions
 * at each end; to copy so many bytes out of the cache costs some tens.
 */
#define WAN_RUN_PACKET 256
struct wan_run {
	struct rwy_buf *b; /* the packets, as they are in the datagram */
	uint32_t left;     /* bytes that still fit */
	uint16_t first;    /* length of the first packet */
	uint8_t n;
};
/* A buffer with room for a datagram's packets, with a copy of the first one; NULL: none is left. */
struct rwy_buf *wan_run_shared(struct wan_tunnel *t, const struct rwy_buf *first, uint32_t room);
/* b, the flow's next buffer or one behind it, may be in a run. */
bool wan_run_may(const struct wan_txflow *f, const struct rwy_buf *b);
/* Begins a run with a buffer, which another one shall follow. False: they do not go together, or
 * there is no buffer for the run. */
bool wan_run_begin(
    struct wan_run *r, const struct wan_txflow *f, const struct rwy_buf *first, const struct rwy_buf *second);
bool wan_run_fits(const struct wan_run *r, const struct rwy_buf *b);
void wan_run_add(struct wan_run *r, const struct rwy_buf *b);
/* A run of n buffers from `seq` on that were in one before. False: no buffer. */
bool wan_run_again(const struct wan_txflow *f, struct wan_run *r, uint64_t seq, uint32_t n);
/* run_rx.c */
/* A buffer for a packet that shared a datagram, copied from p; NULL: none is left. */
struct rwy_buf *wan_run_packet(struct wan_tunnel *t, const uint8_t *p, uint32_t len);
/* A run was received, its packets begin at p. RETRY: a packet could not be kept, and none behind
 * it; those before it are handed over, and are duplicates when the datagram comes again. */
enum wan_accept wan_run_rx(
    struct wan_tunnel *t, const struct wan_f_data *run, const uint8_t *p, rwy_time now);

/* bundle_sent.c: small packets of several flows in one datagram */
/* The packets of the bundle behind its first were acknowledged, or lost; see wan_tx_on_acked and
 * wan_tx_on_lost. After a false, e->queued packets are queued, and a further call goes on. */
void wan_bundle_on_acked(struct wan_path *p, const struct wan_sent *e, rwy_time now);
bool wan_bundle_on_lost(struct wan_path *p, struct wan_sent *e, bool moved);
/* bundle_rx.c */
/* A bundle was received, its first packet is at p. RETRY: a packet could not be kept; the others
 * are handed over, and are duplicates when they come again. */
enum wan_accept wan_bundle_rx(
    struct wan_tunnel *t, const struct wan_f_data *bundle, const uint8_t *p, rwy_time now);

/* recv.c */
extern const struct wan_fec_ops wan_recv_fec_ops; /* ctx: the tunnel */

#endif
