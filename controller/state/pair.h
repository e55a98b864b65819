/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of gateways: two *members* that are one gateway to everybody else (docs/standby.md). The
 * record "pair/GATEWAY" has each member's registration, lease and last word, and which one serves.
 * The record "gateway/GATEWAY" has what documents need: the registration of the one that serves. So
 * a takeover changes no document.
 *
 * All locked.
 */
#ifndef CONTROLLER_STATE_PAIR_H
#define CONTROLLER_STATE_PAIR_H

#include "controller/plan/standby.h"
#include "controller/state/ctlr.h"

struct ctlr_member {
	struct model_registration reg;
	uint64_t lease;
	char owner[MDL_NAME];  /* the replica that it talks to */
	char was_boot[MDL_ID]; /* the process that this one took the place of */
	/* The rest is not stored. */
	rwy_time heard, expires;
	uint64_t running, refused;
	char refusal[256];
	struct model_load load;
	bool wants; /* it said `want`, which is not stored yet */
	struct plan_standby_status want;
};

struct ctlr_pair {
	struct ctlr_map_node node;
	char name[MDL_NAME]; /* the gateway's */
	uint64_t mod_rev;
	struct plan_standby p;
	struct ctlr_member member[PLAN_MEMBERS]; /* of p.m */
	/* The rest is not stored. */
	bool changing;  /* a change of the record is submitted and not yet applied */
	rwy_time again; /* after one failed: not before this */
	struct plan_standby_verdict verdict;
	char differ[96]; /* in what the members differ; "": in nothing */
};

/* NULL: the gateway is not known as a pair. */
struct ctlr_pair *ctlr_pair_of(const struct ctlr *c, const char *gateway);
/* The member's index, -1: there is none. By lease: only of members that are up. */
int ctlr_pair_member(const struct ctlr_pair *p, const char *member);
int ctlr_pair_by_lease(const struct ctlr_pair *p, uint64_t lease);
/* The member that says that it serves, and is believed; -1: none. */
int ctlr_pair_serving(const struct ctlr_pair *p);
/* The part of a member's registration that documents and plans need, and that the other member has
 * too: without boot_id, version and member, and without the bandwidth of QUIC, which each process
 * measures for itself. The caller owns it; NULL: no memory. */
json_t *ctlr_pair_common(const struct model_registration *reg);
/* The pair as its record has it; the caller owns it. */
json_t *ctlr_pair_json(const struct ctlr_pair *p);
/* Applies a record; kv->value NULL: it was deleted. */
void ctlr_pair_apply(struct ctlr *c, const struct store_kv *kv, const char *name);
/* Its owner is gone: its gateways have a term to find another replica. */
void ctlr_pair_owner_gone(struct ctlr *c, const char *owner);
/* Pairs that are not protected, with the reason: at most 16. The caller owns it. */
json_t *ctlr_pairs_problems(struct ctlr *c);
void ctlr_pairs_free(struct ctlr *c);

#endif
