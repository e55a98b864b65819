/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host that several requesters use. Its queue pairs share one machine and one link: it sends
 * the responses of 16 READs of 1 MiB one after the other without any loss. This record has the
 * bytes that the host still owes, its pace, how late it answers, and the time of its latest
 * response. The requesters' timers (reqr.c) use it.
 *
 * The caller owns the record and gives it to each requester of that host. Every function accepts
 * NULL: then nothing is shared. Thread: one for each record.
 */
#ifndef ROCE_REQR_HOST_H
#define ROCE_REQR_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "rwy/time.h"

struct roce_reqr_host {
	/* Bytes of READ responses requested and not received, of all requesters. */
	uint64_t owed;
	rwy_time heard;   /* latest response of any kind to any of them; 0: none */
	rwy_time read_at; /* latest READ response */
	/* Beginning of the unit being measured, without the time when nothing was owed. */
	rwy_time since;
	uint32_t got; /* bytes of that unit */
	rwy_dur pace; /* smoothed time per unit of READ responses; 0: not measured */
	rwy_dur late; /* longest time that it took to answer a repeat, falling with time */
	rwy_time late_at;
	/* time that it is busy with READs of others, as far as the caller knows */
	rwy_dur others;
};

/* A response of any kind came. */
void roce_reqr_host_heard(struct roce_reqr_host *h, rwy_time now);
/* A READ request for `bytes` was sent. */
void roce_reqr_host_asked(struct roce_reqr_host *h, uint32_t bytes, rwy_time now);
/* A READ response of `bytes` came; a useless one took the host's time as well. */
void roce_reqr_host_read(struct roce_reqr_host *h, uint32_t bytes, rwy_time now);
/* These requested bytes were received, or are no longer expected. */
void roce_reqr_host_settled(struct roce_reqr_host *h, uint64_t bytes);
/*
 * It answered a request again that was repeated at `sent`, after a timeout: so the request was not
 * lost, but the answer late. No other answer to a repeated request tells its age (Karn), and a host
 * with a long queue would be repeated to for ever.
 */
void roce_reqr_host_late(struct roce_reqr_host *h, rwy_time sent, rwy_time now);
/* The same of another record of this host, which learned of the lateness `late` at `at`. */
void roce_reqr_host_late_elsewhere(struct roce_reqr_host *h, rwy_dur late, rwy_time at, rwy_time now);
/* Returns the least time to wait for an answer at present: its lateness, and a quarter more. */
rwy_dur roce_reqr_host_wait(const struct roce_reqr_host *h, rwy_time now);
/* Returns the host's time for `bytes`, or for what it owes if that is more; 0: the pace is
 * unknown. */
rwy_dur roce_reqr_host_busy(const struct roce_reqr_host *h, uint64_t bytes);
/*
 * It owes as much as keeps it busy until more is asked of it: 1 MiB, or 50 ms of its time if that
 * is more. What is asked beyond that would wait in its queue instead of here, and could be lost
 * there.
 */
bool roce_reqr_host_has_enough(const struct roce_reqr_host *h);

#endif
