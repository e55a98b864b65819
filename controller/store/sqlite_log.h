/* SPDX-License-Identifier: Apache-2.0 */
/* The last changes of a SQLite store, in memory, for those who watch. Any thread. */
#ifndef CONTROLLER_STORE_SQLITE_LOG_H
#define CONTROLLER_STORE_SQLITE_LOG_H

#include "controller/store/store.h"

#define SQLITE_LOG_EVENTS 65536u
#define SQLITE_LOG_BYTES  (64u << 20)

struct store_sqlite_log;
RWY_MUST_CHECK int store_sqlite_log_new(
    struct store_sqlite_log **out, uint64_t rev); /* nothing is known up to rev */
void store_sqlite_log_free(struct store_sqlite_log *l);
/* Copies; not told before it is published, and gone when it is undone. */
RWY_MUST_CHECK int store_sqlite_log_add(struct store_sqlite_log *l, const struct store_kv *kv);
void store_sqlite_log_publish(struct store_sqlite_log *l, uint64_t rev);
void store_sqlite_log_undo(struct store_sqlite_log *l);
/* Tells what was published after *from, waits a moment when there is nothing; moves *from. As store_watch. */
RWY_MUST_CHECK int store_sqlite_log_tell(
    struct store_sqlite_log *l, const char *prefix, uint64_t *from, store_watch_cb *cb, void *ctx);

#endif
