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
struct ctlr_change;
/* Called once, locked: rc 0 when the change is stored and applied, with its revision, or
 * the store's error. */
typedef void ctlr_change_cb(void *ctx, int rc, uint64_t rev);
struct ctlr_change *ctlr_change_new(ctlr_change_cb *cb, void *ctx);
void ctlr_change_set(struct ctlr_change *ch, ctlr_change_cb *cb, void *ctx);
/* The later one of two for one key counts. */
void ctlr_change_put(struct ctlr_change *ch, const char *key, json_t *value); /* its reference is taken */
void ctlr_change_del(struct ctlr_change *ch, const char *key);
void ctlr_change_cmp(struct ctlr_change *ch, const char *key, uint64_t mod_rev);
unsigned ctlr_change_ops(const struct ctlr_change *ch);
/* Takes ch. false: out of memory or the queue is full; ch is freed and cb is not called. */
bool ctlr_change_submit(struct ctlr *c, struct ctlr_change *ch);
void ctlr_change_cancel(struct ctlr_change *ch);

#endif
