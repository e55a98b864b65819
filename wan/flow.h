/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows of a tunnel: custody and order of each, the tables that find them by id, the lists of those with
 * something to tell. Shared by the files of wan/; nobody else includes it (tests may).
 */
#ifndef WAN_FLOW_H
#define WAN_FLOW_H

#include "wan/wire/pkt.h"
#include "wan/wan.h"

struct wan_sent;

/* A flow id names a slot of the receiver's table and how often the slot was used: a late datagram of an ended
 * flow finds another use. */
#define WAN_SLOT_BITS 20
#define WAN_SLOTS_MAX (1u << WAN_SLOT_BITS)
#define WAN_SLOT(id)  ((id) & (WAN_SLOTS_MAX - 1))
#define WAN_USE(id)   ((id) >> WAN_SLOT_BITS)
#define WAN_USE_MASK  0xfffu

#define WAN_DRR_QUANTUM 16384

/* Growing ring of fixed-size items, power of two. */
struct wan_tx_item {
	uint32_t flow, seq;
	uint8_t frag;
	bool moved; /* its path or carrier is another now; else it was declared lost */
	rwy_time due;
};
struct wan_itemq {
	struct wan_tx_item *v;
	uint32_t cap, head, n;
};

/* --- flows ------------------------------------------------------------------------------------ */
struct wan_txflow {
	struct wan_tunnel *t;
	void *user; /* NULL callbacks when muted */
	uint32_t id;
	bool open_acked; /* the peer knows the flow */
	bool active;     /* on the list of flows with something to send */
	bool closing;    /* ends after what was sent; muted */
	bool aborted;    /* custody is freed; waits for the peer to acknowledge ABORT; muted */
	bool dead;       /* retired: out of the table, freed when no list has it */
	bool broken;     /* no memory for its ring: ends by tx_reset at the next tick */
	bool ctl_dirty, close_sent, close_acked;
	uint8_t info_len;
	uint8_t next_frag; /* of the buffer next_send */
	int32_t deficit;
	struct wan_class *class;
	uint32_t mask; /* ring size - 1 */
	struct rwy_buf **ring;
	uint64_t base;      /* first in custody */
	uint64_t acked;     /* everything below is at the peer gateway */
	uint64_t next_send; /* first never sent */
	uint64_t end;       /* sequence of the next buffer from above */
	uint64_t bytes;
	uint64_t out;    /* of them sent in this session, the first parts of a buffer count for all of it */
	uint64_t window; /* the peer's bound on `out`, 0: none */
	uint64_t drain_Bps;          /* what its host takes, as the peer says; 0: not known */
	uint64_t run;                /* bytes sent since the flow began to have something to send */
	uint32_t peak;               /* most buffers waiting meanwhile, forgetting slowly */
	struct wan_txflow *next;     /* active list */
	struct wan_txflow *ctl_next; /* control list */
	struct wan_txflow *retired_next;
	uint8_t info[WAN_OPEN_MAX];
};

/* A buffer in custody: rwy_buf.w0 fragments acknowledged, w1 fragments of which one of two copies is lost, w2
 * as follows. */
#define WAN_W2(fsize, n) ((uint64_t)(fsize) | (uint64_t)(n) << 16)
#define WAN_W2_FSIZE(w2) ((uint32_t)((w2)&0xffff))       /* payload of each fragment but the last */
#define WAN_W2_FRAGS(w2) ((uint32_t)((w2) >> 16 & 0xff)) /* 0: not cut yet */

struct wan_rxflow {
	struct wan_tunnel *t;
	void *user;
	uint32_t id;
	bool dirty; /* on the delivered list */
	bool ended; /* the engine does not know it any more; waits until the peer knows the last count */
	bool dead;  /* retired, as of wan_txflow */
	bool has_final, closing; /* closing: on the list of flows whose rx_close is due */
	uint32_t mask;
	uintptr_t *ring;    /* [delivered, next): bytes; above: buffer or buffer | 1 while in parts; 0 none */
	uint64_t next;      /* first not handed over */
	uint64_t delivered; /* first not delivered */
	uint64_t reported, confirmed; /* the count last sent, the count the peer has acknowledged */
	uint64_t final;
	uint64_t bytes;             /* held: received, not delivered */
	uint64_t window, drain_Bps; /* as wan_rx_window set them */
	uint64_t window_reported;   /* the last one reported */
	bool rate_dirty;            /* on the list of flows with RATE to tell */
	struct wan_rxflow *rate_next;
	struct wan_rxflow *dirty_next;
	struct wan_rxflow *close_next, *retired_next;
};

/* The receiver's table, by slot. */
enum wan_slot_state { WAN_SLOT_NEW, WAN_SLOT_LIVE, WAN_SLOT_ENDED };
struct wan_rxslot {
	struct wan_rxflow *f;
	uint16_t use;
	uint8_t state;
	bool refused;   /* tell the peer RESET when data comes */
	bool reset_due; /* in the queue of RESETs */
};
struct wan_txslot {
	struct wan_txflow *f;
	uint16_t use;
	uint32_t next_free;
};

/* itemq.c */
/* false: no memory */
bool wan_itemq_push(struct wan_itemq *q, const struct wan_tx_item *i);
bool wan_itemq_pop(struct wan_itemq *q, struct wan_tx_item *i);

/* flow_tx.c */
void wan_tx_on_acked(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now);
/* False: no memory, ask again. moved: given up for its path or carrier, not for itself. */
bool wan_tx_on_lost(struct wan_tunnel *t, const struct wan_sent *s, bool moved);
void wan_tx_on_rate(struct wan_tunnel *t, uint32_t id, uint64_t window, uint64_t drain_Bps);
bool wan_tx_on_delivered(struct wan_tunnel *t, uint32_t id, uint32_t count, rwy_time now);
void wan_tx_on_reset(struct wan_tunnel *t, uint32_t id, rwy_time now);
void wan_tx_on_ctl_acked(struct wan_txflow *f, bool abort);
void wan_tx_broken(struct wan_tunnel *t, rwy_time now);
void wan_tx_wake_all(struct wan_tunnel *t);
void wan_tx_restart(struct wan_tunnel *t, rwy_time now);
void wan_tx_reap(struct wan_tunnel *t);
void wan_tx_free_all(struct wan_tunnel *t);

/* flow_rx.c */
enum wan_accept { WAN_ACCEPT, WAN_ACCEPT_RETRY /* do not acknowledge: the peer shall send it again */ };
enum wan_accept wan_rx_data(
    struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now); /* takes b */
void wan_rx_on_close(struct wan_tunnel *t, uint32_t id, uint64_t final, rwy_time now);
void wan_rx_on_abort(struct wan_tunnel *t, uint32_t id, rwy_time now);
void wan_rx_end(struct wan_rxflow *f);
void wan_rx_confirmed(struct wan_rxflow *f, uint32_t count);
void wan_rx_closings(struct wan_tunnel *t, rwy_time now); /* rx_close of flows that ended */
void wan_rx_end_all(struct wan_tunnel *t, enum wan_close_reason why, rwy_time now);
void wan_rx_reap(struct wan_tunnel *t);

#endif
