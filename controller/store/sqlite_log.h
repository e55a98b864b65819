/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last changes of a SQLite store, in memory, for its watches.
 * Thread: any.
 */
#ifndef CONTROLLER_STORE_SQLITE_LOG_H
#define CONTROLLER_STORE_SQLITE_LOG_H

#include "controller/store/store.h"

#define SQLITE_LOG_EVENTS 65536u
#define SQLITE_LOG_BYTES  (64u << 20)

struct store_sqlite_log;
/* An empty ring: changes up to rev cannot be reported. RWY_ENOMEM. */
RWY_MUST_CHECK int store_sqlite_log_new(struct store_sqlite_log **out, uint64_t rev);
/* NULL is allowed; no watch may be running. */
void store_sqlite_log_free(struct store_sqlite_log *l);
/* Adds a copy of a change. Watches see it after store_sqlite_log_publish(); store_sqlite_log_undo()
 * removes it. */
RWY_MUST_CHECK int store_sqlite_log_add(struct store_sqlite_log *l, const struct store_kv *kv);
/* Publishes what was added, up to revision rev. */
void store_sqlite_log_publish(struct store_sqlite_log *l, uint64_t rev);
void store_sqlite_log_undo(struct store_sqlite_log *l);
/* Reports to `cb` what was published after *from, and advances *from. If there is nothing it waits
 * 0.1 s. Callback and errors as store_watch(). */
RWY_MUST_CHECK int store_sqlite_log_tell(
    struct store_sqlite_log *l, const char *prefix, uint64_t *from, store_watch_cb *cb, void *ctx);

#endif
