/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to offload/: priorities, and adding rules to a list. */
#ifndef OFFLOAD_INTERNAL_H
#define OFFLOAD_INTERNAL_H

#include "offload/offload.h"

#define OFFLOAD_PASS_MASKS 8 /* port masks of a pass before it takes all source ports */

static inline bool offload_behind_vteps(const struct tenant *t)
{
	return t->cfg.vteps || t->cfg.vtep_learn;
}

/* Sets all fields to 0 except those given. */
void offload_rule_init(struct offload_rule *r, enum offload_what what, enum offload_act act, unsigned prio);
/* Appends a copy of r and sets its id. RWY_ENOMEM. */
RWY_MUST_CHECK int offload_list_add(struct offload_list *l, const struct offload_rule *r);
/* Lists something that stays in software, for the operator. */
RWY_MUST_CHECK int offload_list_left(
    struct offload_list *l, const struct tenant *t, enum offload_what what, int item, enum offload_left left);

/* forward.c: append a tenant's forwarding rules; and, if any tenant forwards, the rules for all
 * that keep packets without hops left in software. RWY_ENOMEM. */
RWY_MUST_CHECK int offload_forward(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t);
RWY_MUST_CHECK int offload_forward_common(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s);

#endif
