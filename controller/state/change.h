/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to the store. A change is made, filled and submitted; it takes effect only when the watch brings it
 * back. Any thread; callbacks come locked, from the writer or the watcher.
 */
#ifndef CONTROLLER_STATE_CHANGE_H
#define CONTROLLER_STATE_CHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

struct ctlr;
struct change;
/* Told once, locked, when the store has taken it and it is applied (0), or with the store's error. */
typedef void change_cb(void *ctx, int rc, uint64_t rev);
struct change *change_new(change_cb *cb, void *ctx);
void change_set(struct change *ch, change_cb *cb, void *ctx);
/* Of two for one key the later one counts. */
void change_put(struct change *ch, const char *key, json_t *value); /* its reference is taken */
void change_put_leased(struct change *ch, const char *key, const char *value, uint64_t lease);
void change_del(struct change *ch, const char *key);
void change_cmp(struct change *ch, const char *key, uint64_t mod_rev);
unsigned change_ops(const struct change *ch);
/* Takes ch. false: out of memory, or no place in the queue: cb is not called, ch is gone. */
bool change_submit(struct ctlr *c, struct change *ch);
void change_cancel(struct change *ch);

#endif
