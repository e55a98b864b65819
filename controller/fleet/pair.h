/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of gateways at the API: how the two of a pair register under one name, renew a lease each,
 * and are shown. state/pair.h has the objects. All locked.
 */
#ifndef CONTROLLER_FLEET_PAIR_H
#define CONTROLLER_FLEET_PAIR_H

#include "controller/server/req.h"
#include "controller/state/pair.h"

/* One of a pair registers; g: NULL if the gateway is not known. */
enum ctlr_outcome ctlr_pair_register(
    struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, const struct model_registration *reg);
/* False, with a reply: a gateway that is none of a pair wants the name of one that is up. */
bool ctlr_pair_may_end(struct ctlr_req *r, const struct ctlr_pair *p);

/* A lease's body names a member of p, or p is NULL and it names none. Else a reply, and false. */
bool ctlr_pair_lease_fits(struct ctlr_req *r, const struct ctlr_pair *p, const struct model_lease *m);
/* The boot_id that holds the lease: the member's, or with p NULL the gateway's. */
const char *ctlr_pair_boot_of(
    const struct ctlr_pair *p, const struct model_lease *m, const struct ctlr_gateway *g);
/* The member's lease is renewed: takes what it says, and replies. */
void ctlr_pair_lease(struct ctlr *c, struct ctlr_req *r, struct ctlr_gateway *g, struct ctlr_pair *p,
    const struct model_lease *m);
/* The place of the caller's poll, by its parameter `member`. False, with a reply: it names none. */
bool ctlr_pair_poll_of(struct ctlr_req *r, const struct ctlr_gateway *g, unsigned *out);

/* Stores what members said, and ends a member's lease while the other one's runs. */
void ctlr_pair_tick(struct ctlr *c, struct ctlr_gateway *g, rwy_time now);
/* All leases of the pair have run out, and this replica may say so. */
bool ctlr_pair_ran_out(const struct ctlr *c, const struct ctlr_pair *p, rwy_time now);
/* Adds to ch that both members are lost. Does nothing if g is no pair. */
void ctlr_pair_down(struct ctlr *c, struct ctlr_change *ch, const struct ctlr_gateway *g);
/* The change of ctlr_pair_down() failed: the pair may be changed again. */
void ctlr_pair_not_down(struct ctlr *c, const struct ctlr_gateway *g);

/* Adds `pair`, and the version of the one that serves, to a gateway as the API shows it. */
void ctlr_pair_add(struct ctlr *c, const struct ctlr_gateway *g, json_t *j);
#endif
