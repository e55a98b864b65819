/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that several requesters ask. Its queue pairs share one machine and one link: it answers 16 READs
 * of 1 MiB one packet after the other, and meanwhile nothing is lost. This record tells how much it still has
 * to answer, how fast it does, and when it was last heard; the requesters' timers (reqr.c) go by it.
 *
 * The caller owns the record and gives it to each requester of that host. Every function takes NULL: no
 * record, no host to share. One thread a record.
 */
#ifndef ROCE_REQR_HOST_H
#define ROCE_REQR_HOST_H

#include <stdint.h>

#include "rwy/time.h"

struct roce_reqr_host {
	uint64_t owed;    /* bytes of READ responses that are asked for and not here yet, of all requesters */
	rwy_time heard;   /* the last answer of any kind, to any of them; 0: none */
	rwy_time read_at; /* the last READ response */
	rwy_time since;   /* the measured unit began; moves on while nothing is owed */
	uint32_t got;     /* bytes of that unit */
	rwy_dur pace;     /* smoothed time for one unit of READ responses; 0: not measured */
};

void roce_reqr_host_heard(struct roce_reqr_host *h, rwy_time now);
/* So many bytes of READ responses are asked for. */
void roce_reqr_host_asked(struct roce_reqr_host *h, uint32_t bytes, rwy_time now);
/* A READ response of `bytes` came, also one that is of no use: the host spent its time on it. */
void roce_reqr_host_read(struct roce_reqr_host *h, uint32_t bytes, rwy_time now);
/* So many of the bytes asked for are here, or nobody waits for them any more. */
void roce_reqr_host_settled(struct roce_reqr_host *h, uint64_t bytes);
/* How long it needs for `bytes`, or for what it owes if that is more, as far as its pace is known. */
rwy_dur roce_reqr_host_busy(const struct roce_reqr_host *h, uint64_t bytes);

#endif
