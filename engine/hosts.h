/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of a gateway share what they know of local hosts. A host has queue pairs at several
 * workers and answers them in turn, so that one worker may hear nothing while the host serves the
 * others. Each worker tells until when the host is busy with READs that it asked for, and the
 * others' requesters wait for so long (roce/reqr_host.h).
 *
 * A host has the entry of its hash; hosts that share one wait for each other. Thread: each engine
 * writes its own row, and reads all.
 */
#ifndef ENGINE_HOSTS_H
#define ENGINE_HOSTS_H

#include <stdatomic.h>

#include "engine/directory.h"
#include "rwy/time.h"

#define ENG_HOSTS_SHARED 256 /* entries: values of eng_host_hash() */

struct eng;
struct eng_host;

/* A host, as a worker knows it. */
struct eng_host_shared {
	_Atomic uint64_t heard;         /* its latest response; 0: none */
	_Atomic uint64_t until;         /* it is busy with READs for so long */
	_Atomic uint64_t late, late_at; /* of struct roce_reqr_host */
};

struct eng_hosts {
	struct eng_host_shared of[ENG_WORKERS_MAX][ENG_HOSTS_SHARED];
};

/* h has answered. Tells the other workers, about once in a millisecond. Only with e->cfg.hosts. */
void eng_host_answered(const struct eng *e, struct eng_host *h, rwy_time now);
/* Learns what the other workers know of h; before a look at its timers. */
void eng_host_ask_others(const struct eng *e, struct eng_host *h, rwy_time now);

#endif
