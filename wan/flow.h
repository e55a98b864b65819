/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flows of a tunnel: their custody and order, the tables that find them by id, and the lists of
 * flows with something to report. Private to wan/ and its tests.
 */
#ifndef WAN_FLOW_H
#define WAN_FLOW_H

#include <stddef.h>

#include "rwy/slab.h"
#include "wan/wire/pkt.h"
#include "wan/wan.h"

struct wan_sent;

/* A flow id consists of a slot of the receiver's table and the slot's use count: a late datagram of
 * an ended flow carries an old use count. */
#define WAN_SLOT_BITS 20
#define WAN_SLOTS_MAX (1u << WAN_SLOT_BITS)
#define WAN_SLOT(id)  ((id) & (WAN_SLOTS_MAX - 1))
#define WAN_USE(id)   ((id) >> WAN_SLOT_BITS)
#define WAN_USE_MASK  0xfffu

#define WAN_DRR_QUANTUM 16384
/*
 * The quantum when flows wait for each other at the peer (ack mode causal). It is about a packet,
 * so packets leave in the order in which they came, and none waits for one that is a whole round of
 * turns behind.
 */
#define WAN_DRR_ORDERED 4096

/* A fragment to retransmit, or buffers seq to seq + more. */
struct wan_tx_item {
	uint32_t flow, seq;
	uint8_t frag, more;
	uint8_t losses; /* how often it was declared lost, up to 255 */
	bool moved;     /* true: the path or carrier changed; false: declared lost */
	rwy_time due;
};
/* A ring of fragments that grows; cap is a power of two. */
struct wan_itemq {
	struct wan_tx_item *v;
	uint32_t cap, head, n;
};
/*
 * Lost fragments, in turn by the classes of their flows: what one tenant lost, all at once where it
 * overran a queue, does not delay a small loss of another. Classes share a ring by the low bits of
 * their numbers.
 */
#define WAN_AGAIN_RINGS 16
struct wan_againq {
	struct wan_itemq ring[WAN_AGAIN_RINGS];
	uint32_t n;     /* of all rings */
	uint32_t busy;  /* bit i: ring i is not empty */
	unsigned first; /* the ring whose turn is next, if it is busy */
};

/* --- flows ------------------------------------------------------------------------------------ */
/* places of a small ring, a cache line; a larger one is malloced while it is needed */
#define WAN_RING_SMALL 8

/*
 * A packet touches nearly all of it, and a line of its ring: with many flows they come from memory.
 * A flow that is quiet has no ring (flow_ring.c): then mask is 0, and the one place is empty.
 */
struct wan_txflow {
	struct wan_tunnel *t;
	void *user; /* passed to callbacks; a muted flow gets none but tx_ahead */
	uint32_t id;
	uint32_t mask; /* ring size - 1 */
	struct rwy_buf **ring;
	uint64_t base;      /* first buffer in custody */
	uint64_t next_send; /* first buffer never sent */
	uint64_t end;       /* sequence of the next buffer that wan_tx_send gets */
	uint64_t acked;     /* the peer gateway has everything below */
	bool open_acked;    /* line 1: the peer knows the flow */
	bool active;        /* the flow is on the list of flows with data to send */
	bool aborted;       /* custody is freed; waits for the acknowledgement of ABORT; muted */
	bool dead;          /* retired: out of the table, freed when no list holds it */
	/* no memory for its ring: the flow ends by tx_broken at the next tick */
	bool broken;
	bool bulk;  /* leaves a part of the tunnel's credit to others (wan_tx_bulk) */
	bool ahead; /* on the list of flows that are not bulk */
	bool ends;  /* the newest buffer ended a message (wan/fec/fec.h) */
	bool order; /* an order flow (order.h): without a user; muted */
	bool named; /* the peer may wait for this flow: it must hear of an ABORT */
	bool ctl_dirty;
	/* no memory for its open information: nothing is sent until a tick finds some */
	bool unnamed;
	uint8_t info_len;
	uint8_t next_frag; /* next fragment of the buffer next_send */
	int32_t deficit;
	uint32_t peak; /* most buffers waiting since the flow last became busy; decays slowly */
	struct wan_class *class;
	struct wan_txflow *next; /* link of the active list */
	uint64_t bytes;          /* bytes in custody */
	uint64_t out;            /* bytes sent in this session; a partly sent buffer counts whole */
	uint64_t window;         /* bound on `out` set by the peer; 0: none */
	uint64_t run;            /* line 2: bytes sent since the flow last became busy */
	/* No buffer from here on is acknowledged: they need not be looked at, for they are cold. */
	uint64_t acked_end;
	/* rate of the far host, bytes a second, reported by the peer; 0: unknown */
	uint64_t drain_Bps;
	struct rwy_after sent_after; /* of the latest buffer sent that named something */
	struct wan_txflow *ctl_next; /* link of the control list */
	union {
		struct wan_txflow *ahead_next;
		struct wan_txflow *retired_next; /* when it is dead */
	};
	struct wan_txflow *ahead_prev;
	/* Open information, room for WAN_OPEN_MAX; NULL: the peer has it; the flow was quiet. */
	uint8_t *info;
};
static_assert(offsetof(struct wan_txflow, open_acked) == RWY_CACHE_LINE &&
                  offsetof(struct wan_txflow, run) == 2 * RWY_CACHE_LINE &&
                  sizeof(struct wan_txflow) == WAN_TX_LINES * RWY_CACHE_LINE,
    "a packet touches nearly all of it");
/*
 * A buffer in custody uses three words of rwy_buf. w0: bitmap of acknowledged fragments, not kept
 * for buffers before wan_txflow.acked, which are acknowledged whole; w1: bitmap of fragments of
 * which one of two copies was lost; w2: the fields below.
 */
#define WAN_W2(fsize, n) ((uint64_t)(fsize) | (uint64_t)(n) << 16)
/* payload bytes of each fragment except the last */
#define WAN_W2_FSIZE(w2) ((uint32_t)((w2)&0xffff))
/* number of fragments; 0: not fragmented yet */
#define WAN_W2_FRAGS(w2) ((uint32_t)((w2) >> 16 & 0xff))

struct wan_rxflow {
	struct wan_tunnel *t;
	void *user;
	uint32_t id;
	uint32_t mask;
	/* [delivered, next): credit used; above: buffer or buffer | 1 while in parts; 0: none */
	uintptr_t *ring;
	uint64_t next;                /* first not handed over */
	uint64_t delivered;           /* first not delivered */
	struct wan_rxflow **wait_at;  /* order_rx.c: its place where it waits itself */
	bool dirty;                   /* the flow is on the delivered list */
	bool dead;                    /* retired, see wan_txflow.dead */
	bool order;                   /* an order flow (order.h): the engine does not know it */
	bool rate_dirty;              /* the flow is on the list of flows with a RATE to report */
	bool rate_known;              /* the last RATE was acknowledged */
	uint64_t bytes;               /* line 1: bytes held: received and not delivered */
	uint64_t reported, confirmed; /* the count last sent, the count the peer has acknowledged */
	struct wan_rxflow *dirty_next;
	struct wan_rxflow *waiters; /* order_rx.c: flows that wait for this one */
	uint64_t window, drain_Bps; /* set by wan_rx_window */
	uint32_t rate_no;           /* of what wan_rx_window last set; 0: nothing yet */
	/* an earlier RATE was acknowledged after the last one was sent */
	bool rate_doubt;
	struct wan_rxflow *rate_next; /* line 2 */
	struct wan_rxflow *retired_next;
	struct wan_rxflow *wait_next;
	uint32_t wait_count;
	uint32_t order_at; /* an order flow: offset of the entry that it waits for */
};
static_assert(offsetof(struct wan_rxflow, bytes) == RWY_CACHE_LINE &&
                  offsetof(struct wan_rxflow, rate_next) == 2 * RWY_CACHE_LINE,
    "a packet touches two lines, and one of the ring");
#define WAN_RXFLOW_LINES 2

/* A row of the receiver's table. */
enum wan_slot_state { WAN_SLOT_NEW, WAN_SLOT_LIVE, WAN_SLOT_ENDED };
struct wan_rxslot {
	struct wan_rxflow *f;
	uint16_t use;
	uint8_t state;
	bool refused;    /* answer data with RESET */
	bool reset_due;  /* the slot is in the queue of RESETs */
	bool reset_told; /* the peer has acknowledged one */
};
struct wan_txslot {
	struct wan_txflow *f;
	uint16_t use;
	uint32_t next_free;
};

/* Whether use count a of a slot is later than b. The counts wrap. */
static inline bool wan_use_later(uint32_t a, uint32_t b)
{
	uint32_t d = (a - b) & WAN_USE_MASK;

	return d != 0 && d <= WAN_USE_MASK / 2;
}

/* after.c */
/*
 * f's next buffer waits at the receiver, or is behind one that does, and credit is short. Such
 * buffers leave a part of it: what they wait for may not be sent yet, and must find room.
 */
bool wan_after_leaves_room(const struct wan_txflow *f);

/* itemq.c */
/* Returns false when memory is short. */
bool wan_itemq_push(struct wan_itemq *q, const struct wan_tx_item *i);
bool wan_itemq_pop(struct wan_itemq *q, struct wan_tx_item *i);
/* Puts i at the head, in the place of the one that was just popped. */
void wan_itemq_back(struct wan_itemq *q, struct wan_tx_item i);
/* The same; `class_id`: of the fragment's flow. */
bool wan_again_push(struct wan_againq *q, uint32_t class_id, const struct wan_tx_item *i);
bool wan_again_pop(struct wan_againq *q, struct wan_tx_item *i);
void wan_again_back(struct wan_againq *q, struct wan_tx_item i);
/* Forgets all, and keeps the memory. */
void wan_again_clear(struct wan_againq *q);
void wan_again_fini(struct wan_againq *q);

/* flow_ring.c */
/* Doubles the ring, or takes a small one. False: no memory, nothing has changed. */
RWY_MUST_CHECK bool wan_tx_ring_grow(struct wan_txflow *f);
/* Makes the ring reach buffer `seq`, not before `delivered`. False: likewise. */
RWY_MUST_CHECK bool wan_rx_ring_reach(struct wan_rxflow *f, uint64_t seq);
/* New flows without a buffer and without a ring; NULL: no memory. Free returns them. */
struct wan_txflow *wan_tx_flow_new(struct wan_tunnel *t);
struct wan_rxflow *wan_rx_flow_new(struct wan_tunnel *t);
/* There is room in the ring for one buffer more. False: no memory. */
static inline bool wan_tx_ring_room(struct wan_txflow *f)
{
	return (f->mask && f->end - f->base <= f->mask) || wan_tx_ring_grow(f);
}
/* There is room for open information. False: no memory. */
RWY_MUST_CHECK bool wan_tx_info_room(struct wan_txflow *f);
void wan_tx_flow_free(struct wan_txflow *f);
void wan_rx_flow_free(struct wan_rxflow *f);

/* flow_tx.c */
/* A DATA frame was acknowledged: tells the engine how far the peer has everything. */
void wan_tx_on_acked(struct wan_tunnel *t, const struct wan_sent *s, rwy_time now);
/* Returns false when memory is short: call again. moved: true: the path or carrier changed; false:
 * declared lost. What was lost often enough goes by the reliable carrier (detour.c). */
bool wan_tx_on_lost(struct wan_tunnel *t, const struct wan_sent *s, bool moved);
/* Frames of the receiver. RATE: its limit of undelivered bytes and the host's rate.
 * DELIVERED: `count` is the low 32 bits of the buffers delivered; false: more than were sent.
 * RESET: ends the flow and tells the engine. */
void wan_tx_on_rate(struct wan_tunnel *t, uint32_t id, uint64_t window, uint64_t drain_Bps);
bool wan_tx_on_delivered(struct wan_tunnel *t, uint32_t id, uint32_t count, rwy_time now);
void wan_tx_on_reset(struct wan_tunnel *t, uint32_t id, rwy_time now);
/* ABORT was acknowledged: the flow is freed. */
void wan_tx_on_abort_acked(struct wan_txflow *f);
/* Looks again for memory for flows marked unnamed. */
void wan_tx_name(struct wan_tunnel *t, rwy_time now);
/* Resets all flows marked broken. */
void wan_tx_broken(struct wan_tunnel *t, rwy_time now);
/* The credit of the tunnel has grown: schedules all flows that can send. */
void wan_tx_wake_all(struct wan_tunnel *t);
/* New epoch of the peer: all undelivered data is sent again, after new open information. */
void wan_tx_restart(struct wan_tunnel *t, rwy_time now);
/* Frees dead flows that no list holds any longer. */
void wan_tx_reap(struct wan_tunnel *t);
/* Frees all flows with their custody, without callbacks. */
void wan_tx_free_all(struct wan_tunnel *t);

/* flow_rx.c */
enum wan_accept {
	WAN_ACCEPT,
	WAN_ACCEPT_RETRY, /* do not acknowledge: the peer shall send it again */
};
/* Takes ownership of b. */
enum wan_accept wan_rx_data(
    struct wan_tunnel *t, const struct wan_f_data *d, struct rwy_buf *b, rwy_time now);
/* ABORT: the flow ends now. False: there is no memory to note it; do not acknowledge it. */
bool wan_rx_on_abort(struct wan_tunnel *t, uint32_t id, rwy_time now);
/* The peer has the report that `count` buffers (its low 32 bits) are delivered. */
void wan_rx_confirmed(struct wan_rxflow *f, uint32_t count);
/* Goes on with flows that had to wait for others. */
void wan_rx_go_on(struct wan_tunnel *t, rwy_time now);
void wan_rx_end_all(struct wan_tunnel *t, enum wan_close_reason why, rwy_time now);
/* Frees dead flows that no list holds any longer. */
void wan_rx_reap(struct wan_tunnel *t);

#endif
