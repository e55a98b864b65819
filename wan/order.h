/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order between flows (docs/completion.md). A buffer can name a flow and a count: the receiver
 * hands it over only after so many buffers of that flow are delivered. One that must wait for
 * several flows names an *order flow*, whose buffers are lists of flows and counts: the receiver
 * follows the lists in their order, and each is delivered when all that it names is.
 *
 * The sender leaves the name out of datagrams once it knows that nothing must be waited for: then
 * the receiver may have forgotten the other flow. Private to wan/.
 */
#ifndef WAN_ORDER_H
#define WAN_ORDER_H

#include "wan/tunnel.h"

#define WAN_ORDER_ENTRY 8 /* bytes of a list's entry: flow, count; flow RWY_NO_FLOW: nothing */

/* --- after.c --- */
/* The buffers that `a` names are not delivered yet, as far as is known here. */
bool wan_after_pending(const struct wan_tunnel *t, const struct rwy_after *a);

/*
 * The peer began anew, and does not know what it had delivered: lists of the order flow f keep only
 * what is in custody here, which the peer will get again.
 */
void wan_after_restart(struct wan_txflow *f);

/* --- order_rx.c --- */
/*
 * True: f must wait for what `a` names; it is woken when that is delivered, or its flow has ended.
 */
bool wan_order_holds(struct wan_rxflow *f, const struct rwy_after *a);
/* b is the next list of the order flow f. False: f waits for one of its entries. */
bool wan_order_follow(struct wan_rxflow *f, const struct rwy_buf *b);
/* f has delivered more. */
void wan_order_delivered(struct wan_rxflow *f);
/* f has ended: it waits no longer, nor does anybody for it. */
void wan_order_ended(struct wan_rxflow *f);
/*
 * A flow was opened, or one ended that was never open: flows that wait for unknown ones look again.
 */
void wan_order_news(struct wan_tunnel *t);
/* Takes a flow off the list of those that need not wait any longer; NULL: it is empty. */
struct wan_rxflow *wan_order_woken(struct wan_tunnel *t);

#endif
