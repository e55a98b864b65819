/* SPDX-License-Identifier: Apache-2.0 */
/* Inside conf/ only: scalars and lists of scalars, for groups of keys (fill.c) and lists (list.c).
 * All return 0, RWY_EINVAL with *err, or RWY_ENOMEM. */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/schema.h"

/* Stores a number in the key's field, whose size it has. */
void conf_store(void *base, const struct conf_key *k, uint64_t v);
/* Fills one scalar; c has the names of tunnels. */
RWY_MUST_CHECK int conf_fill_scalar(const struct conf *c, void *base, const struct conf_key *k,
    const struct conf_node *n, struct conf_error *err);
/* Fills the key's default. */
RWY_MUST_CHECK int conf_fill_default(void *base, const struct conf_key *k, struct conf_error *err);
/* Fills an address prefix without host bits. */
RWY_MUST_CHECK int conf_fill_prefix(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err);

/* Allocates an array for all entries of a list, in place of the present one. */
RWY_MUST_CHECK int conf_list_alloc(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err);
/* Fills a list of scalars. */
RWY_MUST_CHECK int conf_fill_list(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err);

#endif
