/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a local host may be silent. The requester side stands in for the remote host. When it
 * asks again is a matter of the LAN here: the tenant's bounds. When it gives up is a matter of the
 * remote host: an error that comes before that host would have made it is wrong, and one that comes
 * later does no harm. So CM's retry counts and ACK timeout count where they are known.
 */
#include "engine/requester.h"

#define UNIT 4096 /* ns: a timeout of t is 4.096 us x 2^t; 0: none (IBA 9.7.6.1.3) */
/* A host's timer may take up to four times its timeout (IBA 9.7.6.1.3). */
#define SLACK 4u

/*
 * The longest time that the remote host waits in all: each try lasts as long as a timer may.
 * timeout_plus_1: 0 if CM did not tell the timeout.
 */
static rwy_dur remote_patience(uint8_t timeout_plus_1, uint8_t retry)
{
	unsigned timeout = timeout_plus_1 - 1u;

	if (!timeout_plus_1)
		return 0;
	return timeout ? (rwy_dur)(retry + 1u) * SLACK * ((rwy_dur)UNIT << timeout) : RWY_NEVER;
}

struct roce_reqr_cfg eng_requester_cfg(const struct eng_requester *rq)
{
	const struct eng_timers *t = &rq->side.tenant->cfg.timers;
	struct roce_reqr_cfg cfg;

	roce_reqr_cfg_default(&cfg);
	cfg.window_max = rq->side.e->cfg.host_window;
	cfg.rto_min = t->timeout_min;
	cfg.rto_max = t->timeout_max;
	cfg.rnr_retry = rq->rnr_retry != ENG_RETRY_UNKNOWN ? rq->rnr_retry : t->rnr_retry;
	cfg.retry = rq->retry != ENG_RETRY_UNKNOWN ? rq->retry : t->retry;
	cfg.patience = rq->retry != ENG_RETRY_UNKNOWN ? remote_patience(rq->ack_timeout, rq->retry) : 0;
	return cfg;
}
