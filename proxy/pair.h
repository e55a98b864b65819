/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs: links of queue pairs whose programs exchange their numbers themselves, without CM. Each of
 * the two hosts tells its own relay which of its queue pairs belongs to which of the other host,
 * and gets an alias for that one. Neither relay asks the other: a relay passes packets of the other
 * host only to a queue pair that its own host has named for them, so what one host says alone
 * carries nothing. Inside proxy/ only.
 */
#ifndef PROXY_PAIR_H
#define PROXY_PAIR_H

#include "proxy/ask.h"
#include "proxy/edge.h"

/*
 * host, which asked at this relay address, pairs ask->lqpn with ask->rqpn of ask->target.addr;
 * *alias stands for that one. The same again gives the same alias. Another link of this queue pair
 * with that host ends.
 */
enum proxy_answer proxy_pair_begin(struct proxy_edge *e, const struct rwy_ip *host,
    const struct rwy_ip *relay, const struct proxy_ask *ask, uint32_t *alias, rwy_time now);
/* It ends. Also when there is none: the host asks again when an answer is lost. */
void proxy_pair_end(struct proxy_edge *e, const struct rwy_ip *host, const struct rwy_ip *relay,
    const struct proxy_ask *ask, rwy_time now);

#endif
