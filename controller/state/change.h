/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of stored state. A caller makes a change, fills it and submits it; it takes effect when
 * the store's watch reports it.
 *
 * Thread: any. Callbacks run locked, on the writer's or the watcher's thread.
 */
#ifndef CONTROLLER_STATE_CHANGE_H
#define CONTROLLER_STATE_CHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "rwy/err.h"

struct ctlr;
struct ctlr_change;
/* Called once, locked. rc 0: the change is stored at revision rev, and applied unless the watch has
 * reported nothing for long (rev above the state's); else the store's error. */
typedef void ctlr_change_cb(void *ctx, int rc, uint64_t rev);
/* An empty change; cb may be NULL. NULL: out of memory. */
struct ctlr_change *ctlr_change_new(ctlr_change_cb *cb, void *ctx);
/* Replaces the callback. */
void ctlr_change_set(struct ctlr_change *ch, ctlr_change_cb *cb, void *ctx);
/* The later one of two for one key counts. */
/* its reference is taken */
void ctlr_change_put(struct ctlr_change *ch, const char *key, json_t *value);
void ctlr_change_del(struct ctlr_change *ch, const char *key);
/* Adds a condition: the key's revision is mod_rev; 0: the key does not exist. */
void ctlr_change_cmp(struct ctlr_change *ch, const char *key, uint64_t mod_rev);
/* The number of its operations. */
unsigned ctlr_change_ops(const struct ctlr_change *ch);
/* Queues ch and takes it over. false: out of memory, or the queue is full; ch is freed, and the
 * callback is not called. */
bool ctlr_change_submit(struct ctlr *c, struct ctlr_change *ch);
/* Frees a change that is not submitted; the callback is not called. NULL is allowed. */
void ctlr_change_cancel(struct ctlr_change *ch);

#endif
