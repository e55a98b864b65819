/* SPDX-License-Identifier: Apache-2.0 */
/* Inside conf/ only: scalars and lists of them, as groups of keys (fill.c) and lists (list.c) need them. */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/schema.h"

/* A number to the key's place, as wide as that is. */
void conf_store(void *base, const struct conf_key *k, uint64_t v);
/* One scalar; c for the names of tunnels. */
RWY_MUST_CHECK int conf_fill_scalar(const struct conf *c, void *base, const struct conf_key *k,
    const struct conf_node *n, struct conf_error *err);
RWY_MUST_CHECK int conf_fill_default(void *base, const struct conf_key *k, struct conf_error *err);
RWY_MUST_CHECK int conf_fill_prefix(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err);

/* An array for all of a list's entries in place of the one that is there. */
RWY_MUST_CHECK int conf_list_alloc(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err);
RWY_MUST_CHECK int conf_fill_list(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err);

#endif
