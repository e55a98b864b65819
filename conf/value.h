/* SPDX-License-Identifier: Apache-2.0 */
/* Between value.c and list.c only: what lists need of scalars, and the reverse. */
#ifndef CONF_VALUE_H
#define CONF_VALUE_H

#include "conf/schema.h"

/* A number to the key's place, as wide as that is. */
void conf_store(void *base, const struct conf_key *k, uint64_t v);
/* The number of a word of k->words; -1. */
int conf_word_find(const struct conf_key *k, const char *text);
RWY_MUST_CHECK int conf_fill_prefix(struct conf_prefix *p, const struct conf_node *n, struct conf_error *err);

bool conf_key_is_list(const struct conf_key *k); /* of scalars */
RWY_MUST_CHECK int conf_fill_list(
    void *base, const struct conf_key *k, const struct conf_node *list, struct conf_error *err);

#endif
