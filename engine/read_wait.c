/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A READ or ATOMIC is answered when all requests before it have crossed the WAN, and its host waits
 * for that only as long as its retries last. WRITEs do not wait: they are acknowledged at once. So
 * what is in custody must not take longer to deliver than the host's patience. Above that its ACKs
 * are held back. A host that still gets ACKs for what is before the READ has not begun to wait.
 *
 * The host's patience is what CM says, or that of a NIC if the host repeats a READ before its
 * answer can be here. Other hosts are believed to wait for long.
 */
#include "engine/responder.h"

/* Adaptive retransmission of NICs: 2, 4, 8, 16 ms .., whatever they were told (94 ms in all). */
#define NIC_PATIENCE (94 * RWY_MS)
/* CM's timeout may be so many steps above the host's own (roce/cm.h). */
#define UNSURE       2u
#define WINDOW_MIN   (10 * RWY_MS)         /* of the rate's measurement */
#define WINDOW_STALE 8                     /* windows without an end: it was idle */
#define LEAST        ((uint64_t)256 << 10) /* bytes, also before the rate is known */
#define NO_LIMIT     UINT64_MAX

/* The least time after which the host gives up, if CM says it: its timeout may be shorter. */
static rwy_dur least_patience(const struct eng_responder *rs)
{
	rwy_dur told = eng_patience(rs);

	return told == RWY_NEVER ? told : told >> UNSURE;
}

/*
 * Half of the host's patience: the other half is for the answer. Less than two round trips would
 * leave the path empty. RWY_NEVER: the host sends no READs, or it waits for long enough.
 */
static rwy_dur longest_wait(const struct eng_responder *rs)
{
	rwy_dur two_trips = 2 * rs->side.e->tunnel[rs->side.tunnel].min_rtt;
	rwy_dur half = rs->reads_expected ? least_patience(rs) : RWY_NEVER;

	if (half != RWY_NEVER)
		half /= 2;
	if (rs->leaving.impatient && half > NIC_PATIENCE / 2)
		half = NIC_PATIENCE / 2;
	return half > two_trips ? half : two_trips;
}

static uint64_t limit_of(const struct eng_responder *rs)
{
	rwy_dur wait = longest_wait(rs);
	unsigned __int128 bytes;

	if (wait == RWY_NEVER)
		return NO_LIMIT;
	if (!rs->leaving.Bps)
		return LEAST;
	bytes = (unsigned __int128)rs->leaving.Bps * wait / RWY_SEC;
	return bytes < LEAST ? LEAST : bytes < NO_LIMIT ? (uint64_t)bytes : NO_LIMIT;
}

void eng_read_wait_start(struct eng_responder *rs)
{
	rs->leaving = (struct eng_leaving){0};
	rs->leaving.limit = limit_of(rs);
}

void eng_read_wait_repeated(struct eng_responder *rs)
{
	/* Without an outstanding one it has lost the answer on its LAN. */
	if (rs->leaving.impatient || !rs->resp.rd_n)
		return;
	rs->leaving.impatient = true;
	rs->leaving.limit = limit_of(rs);
}

/* Rates of windows; a lower one counts only after some windows, for a host may pause. */
static void end_window(struct eng_responder *rs, rwy_time now)
{
	struct eng_leaving *l = &rs->leaving;
	uint64_t rate = l->bytes * RWY_SEC / (now - l->since);
	uint64_t kept = l->Bps - l->Bps / 8;

	l->Bps = rate > kept ? rate : kept;
	l->limit = limit_of(rs);
	l->since = now;
	l->bytes = 0;
}

void eng_read_wait_delivered(struct eng_responder *rs, uint64_t bytes, rwy_time now)
{
	struct eng_leaving *l = &rs->leaving;
	rwy_dur window = rs->side.e->tunnel[rs->side.tunnel].min_rtt;

	if (window < WINDOW_MIN)
		window = WINDOW_MIN;
	/* A host that does not fill its limit shows only its own rate. */
	if (!l->since || now - l->since > WINDOW_STALE * window || (!rs->custody && !rs->ack_blocked)) {
		l->since = now;
		l->bytes = 0;
		return;
	}
	l->bytes += bytes;
	if (now - l->since >= window)
		end_window(rs, now);
}
