/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to offload/: priorities, and how a rule gets into a list. */
#ifndef OFFLOAD_INTERNAL_H
#define OFFLOAD_INTERNAL_H

#include "offload/offload.h"

#define OFFLOAD_PASS_MASKS 8 /* of source ports, before a pass takes all of them */

static inline bool offload_behind_vteps(const struct tenant *t)
{
	return t->cfg.vteps || t->cfg.vtep_learn;
}

/* All 0 but what is said. */
void offload_rule_init(struct offload_rule *r, enum offload_what what, enum offload_act act, unsigned prio);
/* A copy, with its id. RWY_ENOMEM. */
RWY_MUST_CHECK int offload_list_add(struct offload_list *l, const struct offload_rule *r);
/* Lists what stays in software, for people to see. */
RWY_MUST_CHECK int offload_list_left(
    struct offload_list *l, const struct tenant *t, enum offload_what what, int item, enum offload_left left);

/* forward.c */
RWY_MUST_CHECK int offload_forward(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant *t);
RWY_MUST_CHECK int offload_forward_common(
    struct offload_list *l, const struct offload_cfg *cfg, const struct tenant_set *s);

#endif
