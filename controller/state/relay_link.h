/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link is a connection of two hosts through relays (docs/proxy.md). Each relay of it reports a
 * session with the link's identifier, and a link is there as long as one of them. All locked.
 */
#ifndef CONTROLLER_STATE_RELAY_LINK_H
#define CONTROLLER_STATE_RELAY_LINK_H

#include "controller/state/ctlr.h"

/* The session, which is of no link, is one of this link now. RWY_ENOMEM. */
RWY_MUST_CHECK int ctlr_relay_link_join(struct ctlr *c, struct ctlr_session *s, uint64_t id);
/* No effect if it is of none. */
void ctlr_relay_link_leave(struct ctlr *c, struct ctlr_session *s);

#endif
