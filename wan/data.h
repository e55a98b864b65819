/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces that data.c (data that is sent again), data_new.c (data that is sent first) and
 * bundle_tx.c share. Private to wan/.
 */
#ifndef WAN_DATA_H
#define WAN_DATA_H

#include "wan/tunnel.h"

/* --- data.c --- */
/* Puts a buffer, or a fragment of it, into the datagram. */
void wan_data_put(struct wan_txflow *f, struct wan_out *o, uint64_t seq, uint32_t frag, rwy_time now);
/* Puts a run, whose first buffer is `seq`, into the datagram. */
void wan_data_put_run(
    struct wan_txflow *f, struct wan_out *o, uint64_t seq, const struct wan_run *r, rwy_time now);

/* --- bundle_tx.c --- */
struct wan_bundle {
	struct rwy_buf *b;             /* the packets, as they are in the datagram */
	const struct wan_class *class; /* of all of them */
	uint32_t left;                 /* bytes that still fit */
	struct wan_f_data first;       /* the frame, with the first packet's fields */
};
/* b, the flow's next buffer, may be in a bundle. */
bool wan_bundle_may(const struct wan_txflow *f, const struct rwy_buf *b);
/*
 * Begins a bundle with b, which another one shall follow. False: they do not go together, the path
 * has no place to note it, or there is no buffer for the bundle.
 */
bool wan_bundle_begin(struct wan_bundle *u, const struct wan_path *p, const struct wan_txflow *f,
    const struct rwy_buf *b, const struct rwy_buf *second);
/* b, the flow's next buffer, may be in this bundle. */
bool wan_bundle_fits(const struct wan_bundle *u, const struct wan_txflow *f, const struct rwy_buf *b);
/* Adds b, which fits, and notes it with the datagram that the path sends next. */
void wan_bundle_add(
    struct wan_bundle *u, const struct wan_path *p, const struct wan_txflow *f, const struct rwy_buf *b);
/* Puts the bundle into the datagram, which owns u->b from then on. */
void wan_bundle_put(const struct wan_bundle *u, struct wan_out *o, struct wan_tunnel *t, rwy_time now);

/* --- FEC --- */
/* Whether this datagram, with `len` bytes of buffers, is to be protected by FEC. `waiting`: buffers
 * never sent, its own included; `size`: bytes of one. */
static inline bool wan_data_wants_fec(struct wan_path *p, const struct wan_txflow *f, uint64_t waiting,
    uint32_t size, uint32_t len, rwy_time now)
{
	const struct wan_fec_flow y = {.waiting = waiting,
	    .size = size,
	    .sent = f->run,
	    .peak = f->peak,
	    .ends = f->ends,
	    .part = p->t->share};

	return !wan_fec_idle(&p->fec) && wan_path_has_rtt(p) && !wan_path_is_stream(p) &&
	       wan_fec_wants(&p->fec, &y, len, now);
}

/* `left`: buffers never sent before, the datagram's own included; `size`: bytes of one. */
static inline void wan_data_earn_fec(
    struct wan_path *p, struct wan_txflow *f, uint32_t left, uint32_t size, uint32_t len)
{
	f->run += len;
	if (f->peak > left)
		f->peak -= (f->peak - left) >> 14;
	if (!wan_path_is_stream(p))
		wan_fec_earn(&p->fec, f->run + (uint64_t)left * size, len);
}

#endif
